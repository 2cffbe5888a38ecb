"""Parse and write YAML with its style: comments, quotes, flow style and block scalars survive edits.

- The style of a collection is kept by the identity of its value: a value that an expression passes on is printed as it
  was, and a changed value takes the style of the same path in the document.
"""

from __future__ import annotations

import functools
import re
import textwrap
from typing import Any

from ramet.commands.data import yaml_json
from ramet.commands.data.jq import values
from ramet.commands.data.jq.values import Json
from ramet.commands.data.yaml_style import Document, Looks
from ramet.commands.framework.command import UsageError
from ramet.concurrency.offload import checkpoint


@functools.cache
def loader(library: Any) -> Any:
    """Return a loader of YAML 1.2's core types: `yes` and dates are texts, `1e3` is a number."""
    kept = {
        first: [(tag, pattern) for tag, pattern in pairs if tag.rpartition(":")[2] in ("merge", "null", "int")]
        for first, pairs in library.SafeLoader.yaml_implicit_resolvers.items()
    }
    base: Any = library.SafeLoader

    def fetch_more_tokens(self: Any) -> None:
        checkpoint()
        base.fetch_more_tokens(self)

    made: Any = type("Loader", (base,), {"yaml_implicit_resolvers": kept, "fetch_more_tokens": fetch_more_tokens})
    boolean = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
    real = re.compile(r"^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
    made.add_implicit_resolver("tag:yaml.org,2002:bool", boolean, list("tTfF"))
    made.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^0o[0-7]+$"), ["0"])
    made.add_implicit_resolver("tag:yaml.org,2002:float", real, list("-+0123456789."))
    return made


def read(library: Any, text: str) -> list[Document]:
    """Return the documents of a text."""
    if (document := yaml_json.read(text)) is not None:
        return [document]
    reader = loader(library)(text)
    lines = text.split("\n")
    found: list[Document] = []
    try:
        while reader.check_node():
            node = reader.get_node()
            builder = _Builder(reader, text, lines, found[-1] if found else None)
            found.append(builder.document(node))
    finally:
        reader.dispose()
    return found


_COMMENT = re.compile(r"\s(#.*)$").search
_MORE = re.compile(r"\s*[,\]}]").match


class _Builder:
    def __init__(self, reader: Any, text: str, lines: list[str], before: Document | None) -> None:
        self.reader, self.text, self.lines = reader, text, lines
        self.known: dict[int, tuple[Json, Looks]] = {}
        self.building: set[int] = set()
        self.first = before is None
        self.looked_at = self.last_sign = -1

    def document(self, node: Any) -> Document:
        value, looks = self.node(node)
        end = node.end_mark.line if node.end_mark.index < len(self.text) else len(self.lines)
        below: list[str] = []
        for line in reversed(self.lines[node.start_mark.line : end]):
            if line.startswith("#"):
                below.append(line.rstrip())
            elif line.strip():
                break
        return Document(value, looks, self.known, below[::-1] if self.is_block(node) else [])

    @staticmethod
    def is_block(node: Any) -> bool:
        return not getattr(node, "flow_style", True)

    def node(self, node: Any) -> tuple[Json, Looks]:
        if id(node) in self.building:
            raise UsageError("Error: a YAML value that contains itself", 1, hint=False)
        kind = node.id
        if kind == "scalar":
            plain = values_of(self.reader, node)
            source = self.text[node.start_mark.index : node.end_mark.index]
            if node.style in ("|", ">"):
                head, _, body = source.partition("\n")
                source = re.sub(r"\s+#.*", "", head).rstrip() + "\n" + textwrap.dedent(body).rstrip("\n")
                # Where line ends are kept, or lines begin with blanks, it is written anew.
                source = "" if re.search(r"[+\d]", head.partition("#")[0]) else source
            elif "\n" in source:
                source = ""
            return plain, Looks(node.style or "", source, plain)
        self.building.add(id(node))
        children: dict[str | int, Looks] = {}
        keys: dict[str, str] = {}
        looks = Looks("flow" if node.flow_style else "", children=children, keys=keys)
        value: Json
        if kind == "sequence":
            value = []
            for place, item in enumerate(node.value):
                child, own = self.node(item)
                self.comments(own, item, item)
                value.append(child)
                children[place] = own
        else:
            value = {}
            merged = any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value)
            if merged:
                self.reader.flatten_mapping(node)
            for key, item in node.value:
                name = key_text(values_of(self.reader, key)) if key.id == "scalar" else "?"
                child, own = self.node(item)
                if not merged:
                    self.comments(own, key, item)
                    if key.id == "scalar" and key.start_mark.line == key.end_mark.line:
                        keys[name] = self.text[key.start_mark.index : key.end_mark.index]
                value[name] = child
                children[name] = own
        self.building.discard(id(node))
        self.known[id(value)] = (value, looks)
        return value, looks

    def comments(self, looks: Looks, first: Any, last: Any) -> None:
        """The comment lines above a node, and the comment behind it, or behind its key when the rest is below."""
        checkpoint()
        above: list[str] = []
        for line in range(first.start_mark.line - 1, -1, -1):
            bare = self.lines[line].strip()
            if bare.startswith("#"):
                above.append(bare)
            elif bare:
                break
        looks.above = above[::-1] if not looks.above else looks.above
        block = last.id != "scalar" and self.is_block(last)
        end = first.end_mark if block and first is not last else last.end_mark
        if block and first is last:
            return
        mark = last.start_mark if last.id == "scalar" and last.style in ("|", ">") else end
        looks.comment = self.behind(mark.line, mark.column)

    def behind(self, line: int, column: int) -> str:
        """Return the comment behind a place of a line; none where more of the same collection follows."""
        if line >= len(self.lines):
            return ""
        text = self.lines[line]
        # A long line may hold many nodes: search it once.
        if line != self.looked_at:
            self.looked_at, self.last_sign = line, text.rfind("#")
        if self.last_sign < column or _MORE(text, column):
            return ""
        if text[column] == "#":
            return text[column:].rstrip()
        found = _COMMENT(text, column)
        return found[1].rstrip() if found else ""


def values_of(reader: Any, node: Any) -> Json:
    value = reader.construct_object(node)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else "null" if key is None else str(key)


# --------------------------------------------------------------------------------------------------------- writing


class YamlWriter:
    """Prints values in block style, with the looks that are known of them."""

    def __init__(self, library: Any, document: Document | None, indent: int = 2, plain: bool = False) -> None:
        self.document, self.step, self.plain = document, indent, plain
        self.resolver, self.scalars = loader(library)(""), library.ScalarNode
        self.out: list[str] = []

    def text(self, value: Json) -> str:
        self.out = []
        looks = self.looks(value, None)
        if isinstance(value, (dict, list)) and value and not self.is_flow(looks):
            self.block(value, looks, 0)
        else:
            self.out.append(self.inline(value, looks, 0) + "\n")
        if self.document is not None and looks is self.document.looks:
            self.out += [f"{line}\n" for line in self.document.below]
        return "".join(self.out)

    def looks(self, value: Json, fallback: Looks | None) -> Looks:
        if self.document is None:
            return Looks()
        known = self.document.known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        if fallback is not None:
            return fallback
        # A root that was made anew is the document changed.
        return self.document.looks if isinstance(value, type(self.document.value)) else Looks()

    def is_flow(self, looks: Looks) -> bool:
        return looks.style == "flow" and not self.plain

    def block(self, value: Json, looks: Looks, depth: int, first: bool = False) -> None:
        """A collection that is not empty; with `first`, its first line has been begun."""
        pad = " " * depth
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            own = looks.children.get(key)
            child = self.looks(item, own or Looks()) if isinstance(item, (dict, list)) else own or Looks()
            # A collection keeps its comments wherever it goes.
            own = child if isinstance(item, (dict, list)) else own
            for line in child.above:
                if first:
                    continue
                self.out.append(f"{pad}{line}\n")
            lead = "" if first else pad
            first = False
            comment = f" {own.comment}" if own is not None and own.comment else ""
            if isinstance(value, list):
                self.item(item, child, depth, lead + "- ", comment)
            else:
                name = looks.keys.get(str(key)) or self.scalar(key, Looks(), 0)
                self.pair(item, child, depth, f"{lead}{name}:", comment)

    def item(self, item: Json, looks: Looks, depth: int, lead: str, comment: str) -> None:
        if isinstance(item, (dict, list)) and item and not self.is_flow(looks):
            self.out.append(lead)
            self.block(item, looks, depth + 2, first=True)
        else:
            self.line(lead, self.inline(item, looks, depth), comment)

    def pair(self, item: Json, looks: Looks, depth: int, lead: str, comment: str) -> None:
        if isinstance(item, (dict, list)) and item and not self.is_flow(looks):
            self.out.append(f"{lead}{comment}\n")
            self.block(item, looks, depth + self.step)
        else:
            text = self.inline(item, looks, depth)
            self.line(lead + (" " if text else ""), text, comment)

    def line(self, lead: str, text: str, comment: str) -> None:
        first, newline, rest = text.partition("\n")
        self.out.append(f"{lead}{first}{comment}{newline}{rest}\n")

    def inline(self, value: Json, looks: Looks, depth: int) -> str:
        if isinstance(value, dict):
            pairs = (
                f"{looks.keys.get(key) or self.scalar(key, Looks(), 0)}: {self.within(item, looks.children.get(key))}"
                for key, item in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self.within(item, looks.children.get(at)) for at, item in enumerate(value)) + "]"
        return self.scalar(value, looks, depth + self.step)

    def within(self, value: Json, looks: Looks | None) -> str:
        """Return a value inside brackets, where no line may end."""
        own = looks or Looks()
        if isinstance(value, str) and (own.style in ("|", ">") or re.search(r"[,\[\]{}\n]", value)):
            return values.dumps(value) if "\n" in value else self.scalar(value, Looks('"'), 0)
        return self.inline(value, self.looks(value, own) if isinstance(value, (dict, list)) else own, 0)

    def scalar(self, value: Json, looks: Looks, indent: int) -> str:
        same = type(looks.value) is type(value) and looks.value == value
        if same and looks.source and not (self.plain and looks.style in ("'", '"')):
            return re.sub(r"\n(?=[^\n])", "\n" + " " * max(indent, 2), looks.source)
        if value is None:
            return "" if same else "null"
        if not isinstance(value, str):
            return {True: "true", False: "false"}[value] if isinstance(value, bool) else values.dumps(value)
        if "\n" in value and not re.search(r"[^\x20-\x7e\n\t\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", value):
            return _literal(value, indent)
        if looks.style in ("'", '"') and not self.plain:
            return "'" + value.replace("'", "''") + "'" if looks.style == "'" else values.dumps(value)
        return value if self.bare(value) else values.dumps(value) if _odd(value) else _single(value)

    def bare(self, value: str) -> bool:
        """Return whether a text needs no quotes."""
        if not value or value != value.strip() or _odd(value):
            return False
        if re.match(r"[-?:](?:\s|$)|[,\[\]{}#&*!|>'\"%@`]|---|\.\.\.", value) or re.search(r":(?:\s|$)|\s#", value):
            return False
        if _FORMERLY.fullmatch(value):
            return False
        return bool(self.resolver.resolve(self.scalars, value, (True, False)) == "tag:yaml.org,2002:str")


_FORMERLY = re.compile(r"(?i:y|yes|n|no|on|off)|[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?")
"""What YAML 1.1 did not take for text, and readers of it still do not."""


def _odd(value: str) -> bool:
    return not value.isprintable()


def _single(value: str) -> str:
    return '"' + value + '"' if "'" in value and '"' not in value and "\\" not in value else _quoted(value)


def _quoted(value: str) -> str:
    return values.dumps(value) if '"' not in value and "\\" not in value else "'" + value.replace("'", "''") + "'"


def _literal(value: str, indent: int) -> str:
    body = value.rstrip("\n")
    tail = len(value) - len(body)
    chomp = "-" if not tail else "" if tail == 1 and body else "+"
    hint = str(indent) if body[:1] in (" ", "\n") else ""
    lines = value[: -1 if tail else None].split("\n") if chomp == "+" else body.split("\n")
    pad = " " * max(indent, 2)
    return f"|{hint}{chomp}\n" + "\n".join(pad + line if line else "" for line in lines)
