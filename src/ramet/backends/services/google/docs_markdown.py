"""Documents of Google as Markdown, block by block; each block knows where it stands in the document.

What is written here, `docs_edit` reads back: a block is a paragraph, an item of a list, lines of code, or a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

MONOSPACED: Final = frozenset(("Courier New", "Roboto Mono", "Consolas", "Source Code Pro", "Courier", "Inconsolata"))
LEVELS: Final = {"TITLE": 1, "SUBTITLE": 2, **{f"HEADING_{level}": level for level in range(1, 7)}}
_ORDERED: Final = frozenset(("DECIMAL", "ZERO_DECIMAL", "UPPER_ALPHA", "ALPHA", "UPPER_ROMAN", "ROMAN"))
_SPECIAL: Final = re.compile(r"[\\`*\[]|<(?=[A-Za-z/!])|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|~(?=~)")
_START: Final = re.compile(r"(#{1,6}(?=\s|$)|[-+>|]|~~~)|(\d{1,9})([.)])(?=\s|$)")


class Style(NamedTuple):
    """What Markdown can say of a character."""

    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    link: str = ""


PLAIN: Final = Style()


class Atom(NamedTuple):
    """A character, or a thing that stands for itself: an image, a footnote, a person."""

    text: str
    style: Style = PLAIN
    is_thing: bool = False
    length: int = 0
    """UTF-16 units of a thing in the document."""

    @property
    def units(self) -> int:
        return self.length if self.is_thing else 2 if ord(self.text[0]) > 0xFFFF else 1


class Form(NamedTuple):
    """What kind of paragraph it is."""

    kind: str = "text"
    """`text`, `heading`, `item` or `code`."""
    level: int = 0
    ordered: bool = False


TEXT: Final = Form()


@dataclass(frozen=True)
class Block:
    text: str
    """Its Markdown."""
    start: int
    end: int
    """Behind its last newline."""
    form: Form = TEXT
    atoms: Sequence[Atom] = ()
    """What stands in it, without the last newline."""
    table: tuple[tuple[Block | None, ...], ...] = ()
    """The cells that are one paragraph each; None for others."""
    fixed: str = ""
    """Why it cannot be changed."""
    holds_newline: bool = False
    """Whether its last newline must stay: it ends the document, or a table follows."""


class DocumentTab(NamedTuple):
    id: str
    title: str
    data: Mapping[str, Any]


def tabs_of(document: Mapping[str, Any]) -> list[DocumentTab]:
    """All tabs, those inside others behind them."""
    found: list[DocumentTab] = []

    def collect(tabs: Any) -> None:
        for tab in tabs or ():
            properties = tab.get("tabProperties") or {}
            title = str(properties.get("title") or "Tab")
            found.append(DocumentTab(str(properties.get("tabId", "")), title, tab.get("documentTab") or {}))
            collect(tab.get("childTabs"))

    collect(document.get("tabs"))
    return found or [DocumentTab("", str(document.get("title") or ""), document)]


def markdown(blocks: Sequence[Block]) -> str:
    parts: list[str] = []
    for number, block in enumerate(blocks):
        if number:
            both = block.form.kind == "item" == blocks[number - 1].form.kind
            parts.append("\n" if both else "\n\n")
        parts.append(block.text)
    return "".join(parts) + "\n" if parts else ""


def blocks_of(tab: DocumentTab) -> list[Block]:
    """The blocks of a tab; empty paragraphs are none."""
    content = (tab.data.get("body") or {}).get("content") or ()
    found = list(_blocks(content, tab.data))
    notes = tab.data.get("footnotes") or {}
    for number, id in _references(content):
        inner = " ".join(block.text for block in _blocks((notes.get(id) or {}).get("content") or (), tab.data))
        found.append(Block(f"[^{number}]: {inner}", -1, -1, fixed="a footnote"))
    return found


def _references(content: Any) -> Iterator[tuple[str, str]]:
    for element in content:
        for one in (element.get("paragraph") or {}).get("elements") or ():
            note = one.get("footnoteReference")
            if note is not None:
                yield str(note.get("footnoteNumber") or "?"), str(note.get("footnoteId", ""))
        for row in (element.get("table") or {}).get("tableRows") or ():
            for cell in row.get("tableCells") or ():
                yield from _references(cell.get("content") or ())


def _blocks(content: Sequence[Any], data: Mapping[str, Any]) -> Iterator[Block]:
    counts: dict[tuple[str, int], int] = {}
    code: list[Block] = []
    for number, element in enumerate(content):
        start, end = int(element.get("startIndex", 0)), int(element.get("endIndex", 0))
        after = content[number + 1] if number + 1 < len(content) else None
        if "paragraph" in element:
            block = _paragraph(element["paragraph"], start, end, data, counts)
            block = replace(block, holds_newline=after is None or "paragraph" not in after)
            if block.form.kind == "code":
                code.append(block)
                continue
        elif "table" in element:
            block = _table(element["table"], start, end, data)
        else:
            block = Block("", start, end)
        if code:
            yield _fenced(code)
            code = []
        if block.text:
            yield block
    if code:
        yield _fenced(code)


def _fenced(lines: Sequence[Block]) -> Block:
    """Paragraphs of code that follow each other."""
    atoms: list[Atom] = []
    for line in lines:
        atoms += [*([Atom("\n", Style(code=True))] if line is not lines[0] else []), *line.atoms]
    text = "".join(atom.text for atom in atoms)
    fence = "```"
    while fence in text:
        fence += "`"
    last = lines[-1]
    return Block(
        f"{fence}\n{text}\n{fence}", lines[0].start, last.end, Form("code"), atoms, holds_newline=last.holds_newline
    )


def _paragraph(
    paragraph: Mapping[str, Any], start: int, end: int, data: Mapping[str, Any], counts: dict[tuple[str, int], int]
) -> Block:
    atoms = list(_atoms(paragraph.get("elements") or (), data))
    if atoms and atoms[-1].text == "\n":
        atoms.pop()
    bullet = paragraph.get("bullet")
    level = LEVELS.get(str((paragraph.get("paragraphStyle") or {}).get("namedStyleType", "")), 0)
    if bullet is None:
        for key in [key for key in counts if key[1] >= 0 and not atoms]:
            del counts[key]
    if bullet is not None:
        depth, list_id = int(bullet.get("nestingLevel", 0)), str(bullet.get("listId", ""))
        form = Form("item", depth, _is_ordered(data, list_id, depth))
        counts[list_id, depth] = counts.get((list_id, depth), 0) + 1
        for key in [key for key in counts if key[0] == list_id and key[1] > depth]:
            del counts[key]
        mark = f"{counts[list_id, depth]}." if form.ordered else "-"
        return Block(f"{'    ' * depth}{mark} {inline(atoms)}".rstrip(), start, end, form, atoms)
    if level and atoms:
        return Block(f"{'#' * level} {inline(atoms)}", start, end, Form("heading", level), atoms)
    if atoms and all(atom.style.code and not atom.is_thing for atom in atoms):
        return Block("".join(atom.text for atom in atoms), start, end, Form("code"), atoms)
    text = inline(atoms)
    return Block(_START.sub(_escaped_start, text, count=1) if _START.match(text) else text, start, end, Form(), atoms)


def _escaped_start(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}"


def _is_ordered(data: Mapping[str, Any], list_id: str, depth: int) -> bool:
    properties = ((data.get("lists") or {}).get(list_id) or {}).get("listProperties") or {}
    levels = properties.get("nestingLevels") or ()
    return depth < len(levels) and levels[depth].get("glyphType") in _ORDERED


def _atoms(elements: Sequence[Any], data: Mapping[str, Any]) -> Iterator[Atom]:
    for element in elements:
        length = int(element.get("endIndex", 0)) - int(element.get("startIndex", 0))
        run = element.get("textRun")
        if run is not None:
            style = _style(run.get("textStyle") or {})
            for character in str(run.get("content", "")):
                yield Atom(character, PLAIN if character == "\n" else style)
            continue
        yield Atom(_thing(element, data), PLAIN, True, max(length, 1))


def _style(given: Mapping[str, Any]) -> Style:
    return Style(
        bool(given.get("bold")), bool(given.get("italic")), bool(given.get("strikethrough")),
        (given.get("weightedFontFamily") or {}).get("fontFamily") in MONOSPACED,
        str((given.get("link") or {}).get("url") or ""),
    )  # fmt: skip


def _thing(element: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    if "footnoteReference" in element:
        return f"[^{element['footnoteReference'].get('footnoteNumber') or '?'}]"
    if "inlineObjectElement" in element:
        id = str(element["inlineObjectElement"].get("inlineObjectId", ""))
        about = ((data.get("inlineObjects") or {}).get(id) or {}).get("inlineObjectProperties") or {}
        embedded = about.get("embeddedObject") or {}
        words = str(embedded.get("title") or embedded.get("description") or "image")
        return f"![{words}](#{id})"  # the address of the picture ends within half an hour
    if "person" in element:
        about = element["person"].get("personProperties") or {}
        return f"[{about.get('name') or about.get('email') or 'person'}](mailto:{about.get('email', '')})"
    if "richLink" in element:
        about = element["richLink"].get("richLinkProperties") or {}
        return f"[{about.get('title') or about.get('uri') or 'link'}]({about.get('uri', '')})"
    if "horizontalRule" in element:
        return "---"
    for name in ("pageBreak", "columnBreak", "equation", "dateElement", "autoText"):
        if name in element:
            shown = (element[name].get("dateElementProperties") or {}).get("displayText")
            return str(shown or f"<!-- {name} -->")
    return "<!-- unknown -->"


def inline(atoms: Sequence[Atom]) -> str:
    """Characters as Markdown: runs of one style with their marks, without blanks at their edges."""
    parts: list[str] = []
    at = 0
    while at < len(atoms):
        style, thing = atoms[at].style, atoms[at].is_thing
        to = at + 1
        while not thing and to < len(atoms) and atoms[to].style == style and not atoms[to].is_thing:
            to += 1
        words = "".join(atom.text for atom in atoms[at:to])
        parts.append(words if thing else _marked(words, style))
        at = to
    return "".join(parts)


def _marked(words: str, style: Style) -> str:
    core = words.strip(" \x0b")
    if not core:
        return words.replace("\x0b", "\\\n")
    before, _, after = words.partition(core)
    if style.code:
        fence = "`" * (max((len(run) for run in re.findall(r"`+", core)), default=0) + 1)
        pad = " " if core.startswith("`") or core.endswith("`") else ""
        marked = f"{fence}{pad}{core}{pad}{fence}"
    else:
        marked = _SPECIAL.sub(lambda found: f"\\{found[0]}", core)
    marked = f"~~{marked}~~" if style.struck else marked
    marked = f"*{marked}*" if style.italic else marked
    marked = f"**{marked}**" if style.bold else marked
    marked = f"[{marked}]({style.link.replace(' ', '%20').replace(')', '%29')})" if style.link else marked
    return f"{before}{marked}{after}".replace("\x0b", "\\\n")


def _table(table: Mapping[str, Any], start: int, end: int, data: Mapping[str, Any]) -> Block:
    """A table; cells of several paragraphs, lists or tables are shown in one line and cannot be edited."""
    rows: list[tuple[Block | None, ...]] = []
    lines: list[str] = []
    for row in table.get("tableRows") or ():
        cells: list[Block | None] = []
        words: list[str] = []
        for cell in row.get("tableCells") or ():
            content: Sequence[Any] = cell.get("content") or ()
            inner = list(_blocks(content, data))
            shown = "<br>".join(_in_cell(block) for block in inner)
            words.append(shown)
            only = len(content) == 1 and "paragraph" in content[0]
            if only and not inner:
                place = int(content[0].get("startIndex", 0))
                cells.append(Block("", place, place + 1))
            else:
                cells.append(inner[0] if only and inner[0].form == TEXT else None)
        rows.append(tuple(cells))
        lines.append(f"| {' | '.join(words)} |")
        if len(lines) == 1:
            lines.append(f"|{' --- |' * len(words)}")
    return Block("\n".join(lines), start, end, Form("table"), table=tuple(rows))


def _in_cell(block: Block) -> str:
    if block.form.kind == "table":
        return " / ".join(line for line in block.text.replace("|", "").split("\n") if "---" not in line).strip()
    return block.text.strip().replace("|", "\\|").replace("\\\n", "<br>").replace("\n", " ")
