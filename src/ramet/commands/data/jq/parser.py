"""Parse a jq program by precedence climbing into a tree of tuples `(kind, ...)`."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ramet.commands.data.jq.values import CompileError

Node = tuple[Any, ...]

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n]+|\#(?:\\\\|\\\r?\n|[^\n])*)+)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<quote>")
  | (?P<format>@[a-zA-Z0-9_]+)
  | (?P<variable>\$(?:__loc__\b|(?:[a-zA-Z_][a-zA-Z0-9_]*::)*[a-zA-Z_][a-zA-Z0-9_]*))
  | (?P<field>\.[a-zA-Z_][a-zA-Z0-9_]*)
  | (?P<name>(?:[a-zA-Z_][a-zA-Z0-9_]*::)*[a-zA-Z_][a-zA-Z0-9_]*)
  | (?P<op>\?//=|\?//|\|=|\+=|-=|\*=|/=|%=|//=|==|!=|<=|>=|//|\.\.|[.\[\]{}()|,:;=<>+\-*/%?$])
    """,
    re.VERBOSE,
)
KEYWORDS = frozenset(
    [
        "def",
        "if",
        "then",
        "elif",
        "else",
        "end",
        "as",
        "reduce",
        "foreach",
        "try",
        "catch",
        "label",
        "import",
        "include",
        "and",
        "or",
        "__loc__",
    ]
)
_CONSTANTS = {"null": None, "true": True, "false": False}


class JqToken(NamedTuple):
    kind: str
    text: str
    pos: int


_BINARY = {
    "//": (2, "right"),
    "=": (3, "none"), "|=": (3, "none"), "+=": (3, "none"), "-=": (3, "none"), "*=": (3, "none"), "/=": (3, "none"),
    "%=": (3, "none"), "//=": (3, "none"),
    "or": (4, "left"),
    "and": (5, "left"),
    "==": (6, "none"), "!=": (6, "none"), "<": (6, "none"), "<=": (6, "none"), ">": (6, "none"), ">=": (6, "none"),
    "+": (7, "left"), "-": (7, "left"),
    "*": (8, "left"), "/": (8, "left"), "%": (8, "left"),
}  # fmt: skip


def parse(text: str) -> Node:
    """Return a program: `(imports, definitions, body)`; the body of a library is None."""
    return _Parser(text).program()


def _optional(left: Node) -> Node:
    """`?`: of a chain such as `.a.b[f]?` only the last link may fail without a word, and not what `f` is."""
    return ("optional", left) if left[0] in ("iterate", "index", "slice") else ("try", left, None)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.depth = 0
        self.quoted = 0
        self.token = self.lex()

    # ------------------------------------------------------------------ tokens

    def lex(self) -> JqToken:
        while True:
            if self.pos >= len(self.text):
                return JqToken("eof", "", self.pos)
            found = _TOKEN.match(self.text, self.pos)
            if found is None:
                raise self.error("syntax error, unexpected INVALID_CHARACTER")
            start = self.pos
            self.pos = found.end()
            kind = str(found.lastgroup)
            if kind == "space":
                continue
            text = found[0]
            if (kind == "name" and text in KEYWORDS) or kind == "op":
                kind = text
            return JqToken(kind, text, start)

    def error(self, message: str) -> CompileError:
        line = self.text.count("\n", 0, self.pos) + 1
        return CompileError(f"{message} at <top-level>, line {line}:\n{self.text}")

    def unexpected(self) -> CompileError:
        names = {"eof": "end of file", "name": "IDENT", "number": "LITERAL", "quote": "QQSTRING_START"}
        shown = names.get(self.token.kind, f"'{self.token.text}'")
        return self.error(f"syntax error, unexpected {shown} (Unix shell quoting issues?)")

    def advance(self) -> JqToken:
        token = self.token
        if token.kind == "quote":
            # What follows is the inside of a string, which `string_body` reads character by character.
            self.quoted = self.pos
            self.token = JqToken("inside", "", self.pos)
            return token
        self.token = self.lex()
        return token

    def at(self, *kinds: str) -> bool:
        return self.token.kind in kinds

    def accept(self, kind: str) -> bool:
        if self.token.kind == kind:
            self.advance()
            return True
        return False

    def expect(self, kind: str) -> JqToken:
        if self.token.kind != kind:
            raise self.unexpected()
        return self.advance()

    # ------------------------------------------------------------------ program

    def program(self) -> Node:
        meta: Node | None = None
        if self.at("name") and self.token.text == "module":
            self.advance()
            meta = self.term()
            self.expect(";")
        imports: list[Node] = []
        while self.at("import", "include"):
            imports.append(self.import_())
        definitions: list[Node] = []
        while self.at("def"):
            definitions.append(self.definition())
        body = None if self.at("eof") else self.pipe()
        if not self.at("eof"):
            raise self.unexpected()
        return ("program", tuple(imports), tuple(definitions), body, meta)

    def import_(self) -> Node:
        word = self.advance().kind
        self.expect("quote")
        path = self.string_body(None)
        if path[0] != "literal":
            raise self.error("Import path must be constant")
        alias = None
        if word == "import":
            self.expect("as")
            alias = self.advance().text
        meta: Node | None = None
        if not self.at(";"):
            meta = self.term()
        self.expect(";")
        return ("import", path[1], alias, meta)

    def definition(self) -> Node:
        self.expect("def")
        name = self.name_token()
        params: list[str] = []
        if self.accept("("):
            while True:
                params.append(self.advance().text)
                if not self.accept(";"):
                    break
            self.expect(")")
        self.expect(":")
        body = self.pipe()
        self.expect(";")
        return ("def", name, tuple(params), body)

    def name_token(self) -> str:
        if self.token.kind == "name" or self.token.kind in KEYWORDS:
            return self.advance().text
        raise self.unexpected()

    # ------------------------------------------------------------------ operators

    def pipe(self) -> Node:
        self.depth += 1
        if self.depth > 400:
            raise self.error("the program is nested too deeply")
        try:
            if self.at("def"):
                definition = self.definition()
                return ("local", definition, self.pipe())
            left = self.comma()
            if self.accept("|"):
                return ("pipe", left, self.pipe())
            return left
        finally:
            self.depth -= 1

    def comma(self) -> Node:
        left = self.binary(2)
        while self.accept(","):
            left = ("comma", left, self.binary(2))
        return left

    def binary(self, lowest: int) -> Node:
        left = self.unary()
        while True:
            known = _BINARY.get(self.token.kind)
            if known is None or known[0] < lowest:
                return left
            op = self.advance().kind
            level, side = known
            right = self.binary(level if side == "right" else level + 1)
            left = ("binary", op, left, right)
            if side == "none":
                after = _BINARY.get(self.token.kind)
                if after is not None and after[0] == level:
                    raise self.unexpected()

    def unary(self) -> Node:
        if self.accept("-"):
            return ("negate", self.binary(_BINARY["*"][0]))  # `-1 * 2` is `-(1 * 2)`
        return self.postfix()

    def postfix(self) -> Node:
        """Return a term, perhaps bound to variables for all that follows."""
        start = self.token
        if start.kind in ("reduce", "foreach", "if", "try", "label", "def"):
            left = self.keyword()
            left = self.suffixes(left)
        else:
            left = self.term()
        if self.accept("as"):
            patterns = [self.pattern()]
            while self.accept("?//"):
                patterns.append(self.pattern())
            self.expect("|")
            return ("as", left, tuple(patterns), self.pipe())
        return left

    def keyword(self) -> Node:
        kind = self.token.kind
        if kind == "def":
            definition = self.definition()
            return ("local", definition, self.pipe())
        self.advance()
        if kind == "if":
            return self.if_()
        if kind == "try":
            body = self.post_term()
            handler = self.post_term() if self.accept("catch") else None
            return ("try", body, handler)
        if kind == "label":
            name = self.expect("variable").text
            self.expect("|")
            return ("label", name, self.pipe())
        source = self.term()
        self.expect("as")
        patterns = [self.pattern()]
        while self.accept("?//"):
            patterns.append(self.pattern())
        self.expect("(")
        start = self.pipe()
        self.expect(";")
        update = self.pipe()
        extract = None
        if kind == "foreach" and self.accept(";"):
            extract = self.pipe()
        self.expect(")")
        return (kind, source, tuple(patterns), start, update, extract)

    def post_term(self) -> Node:
        """Return the operand of try and catch: a term without operators."""
        if self.at("reduce", "foreach", "if", "try", "label", "def"):
            return self.suffixes(self.keyword())
        if self.accept("-"):
            return ("negate", self.post_term())
        return self.term()

    def if_(self) -> Node:
        test = self.pipe()
        self.expect("then")
        yes = self.pipe()
        if self.accept("elif"):
            return ("if", test, yes, self.if_())
        no: Node = ("identity",)
        if self.accept("else"):
            no = self.pipe()
        self.expect("end")
        return ("if", test, yes, no)

    # ------------------------------------------------------------------ patterns

    def pattern(self) -> Node:
        if self.at("variable"):
            return ("var", self.advance().text)
        if self.accept("["):
            items = [self.pattern()]
            while self.accept(","):
                items.append(self.pattern())
            self.expect("]")
            return ("array", tuple(items))
        if self.accept("{"):
            entries: list[Node] = []
            while True:
                entries.append(self.pattern_entry())
                if not self.accept(","):
                    break
            self.expect("}")
            return ("object", tuple(entries))
        raise self.unexpected()

    def pattern_entry(self) -> Node:
        if self.at("variable"):
            name = self.advance().text
            inner = self.pattern() if self.accept(":") else None
            return (("literal", name[1:]), name, inner)
        if self.at("quote"):
            self.advance()
            key = self.string_body(None)
        elif self.accept("("):
            key = self.pipe()
            self.expect(")")
        else:
            key = ("literal", self.name_token())
        self.expect(":")
        return (key, None, self.pattern())

    # ------------------------------------------------------------------ terms

    def term(self) -> Node:
        whole = self.at("(")
        return self.suffixes(self.primary(), whole)

    def suffixes(self, left: Node, whole: bool = False) -> Node:
        """Return what follows a term; `whole` says that it stands in parentheses, where `?` is for all of it."""
        while True:
            if self.at("?", "?//"):
                left = ("try", left, None) if whole else _optional(left)
                whole = True
                if self.at("?"):
                    self.advance()
                else:
                    # Outside of patterns this is `?` and then `//`.
                    self.token = JqToken("//", "//", self.token.pos)
                continue
            whole = False
            if self.at("field"):
                left = ("index", left, ("literal", self.advance().text[1:]))
            elif self.at("["):
                self.advance()
                left = self.bracket(left)
            elif self.at("."):
                saved = (self.pos, self.token)
                self.advance()
                if self.accept("["):
                    left = self.bracket(left)
                elif self.at("quote"):
                    self.advance()
                    left = ("index", left, self.string_body(None))
                else:
                    self.pos, self.token = saved
                    return left
            else:
                return left

    def bracket(self, left: Node) -> Node:
        if self.accept("]"):
            return ("iterate", left)
        if self.accept(":"):
            stop = self.pipe()
            self.expect("]")
            return ("slice", left, None, stop)
        key = self.pipe()
        if self.accept(":"):
            end: Node | None = None if self.at("]") else self.pipe()
            self.expect("]")
            return ("slice", left, key, end)
        self.expect("]")
        return ("index", left, key)

    def primary(self) -> Node:
        token = self.token
        kind = token.kind
        if kind == "number":
            self.advance()
            return ("number", token.text)
        if kind == "quote":
            self.advance()
            return self.string_body(None)
        if kind == "format":
            self.advance()
            if self.at("quote"):
                self.advance()
                return self.string_body(token.text)
            return ("format", token.text)
        if kind == "field":
            self.advance()
            return ("index", ("identity",), ("literal", token.text[1:]))
        if kind == ".":
            self.advance()
            if self.at("quote"):
                self.advance()
                return ("index", ("identity",), self.string_body(None))
            if self.accept("["):
                return self.bracket(("identity",))
            return ("identity",)
        if kind == "..":
            self.advance()
            return ("call", "recurse", ())
        if kind == "variable":
            self.advance()
            if token.text == "$__loc__":
                line = self.text.count("\n", 0, token.pos) + 1
                return ("literal", {"file": "<top-level>", "line": line})
            return ("variable", token.text)
        if kind == "$":
            self.advance()
            name = self.name_token()
            return ("variable", "$" + name)
        if kind == "(":
            self.advance()
            inner = self.pipe()
            self.expect(")")
            return inner
        if kind == "[":
            self.advance()
            if self.accept("]"):
                return ("literal", [])
            inner = self.pipe()
            self.expect("]")
            return ("collect", inner)
        if kind == "{":
            return self.object_()
        if kind == "-":
            self.advance()
            return ("negate", self.postfix())
        if kind in ("reduce", "foreach", "if", "try", "label", "def"):
            return self.keyword()
        if kind == "name":
            return self.call()
        raise self.unexpected()

    def call(self) -> Node:
        name = self.advance().text
        if name == "break" and self.at("variable"):
            return ("break", self.advance().text)
        if name in _CONSTANTS and not self.at("("):
            return ("literal", _CONSTANTS[name])
        args: list[Node] = []
        if self.accept("("):
            while True:
                args.append(self.pipe())
                if not self.accept(";"):
                    break
            self.expect(")")
        return ("call", name, tuple(args))

    def object_(self) -> Node:
        self.advance()
        entries: list[Node] = []
        while not self.at("}"):
            entries.append(self.entry())
            if not self.accept(","):
                break
        self.expect("}")
        return ("object", tuple(entries))

    def entry(self) -> Node:
        token = self.token
        if token.kind == "variable":
            self.advance()
            if token.text == "$__loc__":
                line = self.text.count("\n", 0, token.pos) + 1
                return (("literal", "__loc__"), ("literal", {"file": "<top-level>", "line": line}))
            return self.bound_entry(token.text[1:])
        if token.kind == "$":
            self.advance()
            return self.bound_entry(self.name_token())
        if token.kind == "(":
            self.advance()
            key = self.pipe()
            self.expect(")")
            self.expect(":")
            return (key, self.entry_value())
        if token.kind == "quote" or token.kind == "format":
            self.advance()
            if token.kind == "format":
                if not self.at("quote"):
                    key = ("format", token.text)
                else:
                    self.advance()
                    key = self.string_body(token.text)
            else:
                key = self.string_body(None)
        elif token.kind == "number":
            raise self.unexpected()
        else:
            key = ("literal", self.name_token())
        if self.accept(":"):
            return (key, self.entry_value())
        return (key, ("index", ("identity",), key))

    def bound_entry(self, name: str) -> Node:
        """`$name` is an entry of that name, `$name: value` one whose key is what the variable holds."""
        variable = ("variable", "$" + name)
        if self.accept(":"):
            return (variable, self.entry_value())
        return (("literal", name), variable)

    def entry_value(self) -> Node:
        left = self.entry_operand()
        while self.accept("|"):
            left = ("pipe", left, self.entry_operand())
        return left

    def entry_operand(self) -> Node:
        return self.binary_entry()

    def binary_entry(self) -> Node:
        if self.accept("-"):
            return ("negate", self.entry_operand())
        if self.at("reduce", "foreach", "if", "try", "label", "def"):
            return self.suffixes(self.keyword())
        left = self.term()
        # Operators other than `|` bind here in newer versions; comma ends the entry.
        while self.token.kind in _BINARY:
            op = self.advance().kind
            level, side = _BINARY[op]
            left = ("binary", op, left, self.binary(level if side == "right" else level + 1))
        return left

    # ------------------------------------------------------------------ strings

    def string_body(self, form: str | None) -> Node:
        """Return a string whose opening quote has been read; `form` formats what is interpolated."""
        text, pos = self.text, self.quoted
        parts: list[Any] = []
        run: list[str] = []
        while True:
            if pos >= len(text):
                raise self.error("syntax error, unexpected end of file, expecting QQSTRING_TEXT or QQSTRING_END")
            char = text[pos]
            if char == '"':
                pos += 1
                break
            if char != "\\":
                run.append(char)
                pos += 1
                continue
            after = text[pos + 1 : pos + 2]
            if after == "(":
                if run:
                    parts.append("".join(run))
                    run = []
                self.pos = pos + 2
                self.token = self.lex()
                inner = self.pipe()
                if not self.at(")"):
                    raise self.unexpected()
                pos = self.token.pos + 1
                parts.append(inner)
                continue
            decoded, pos = self.string_escape(pos)
            run.append(decoded)
        if run or not parts:
            parts.append("".join(run))
        self.pos = pos
        self.token = self.lex()
        if len(parts) == 1 and isinstance(parts[0], str):
            return ("literal", parts[0])
        return ("interpolation", form, tuple(parts))

    def string_escape(self, pos: int) -> tuple[str, int]:
        text = self.text
        char = text[pos + 1 : pos + 2]
        simple = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}
        if char in simple and char:
            return simple[char], pos + 2
        if char == "u":
            code = self.hex4(pos + 2)
            pos += 6
            if 0xD800 <= code < 0xDC00 and text.startswith("\\u", pos):
                low = self.hex4(pos + 2)
                if 0xDC00 <= low < 0xE000:
                    return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), pos + 6
            return (chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"), pos
        raise self.error("syntax error, unexpected INVALID_CHARACTER")

    def hex4(self, pos: int) -> int:
        digits = self.text[pos : pos + 4]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            raise self.error("invalid \\uXXXX escape")
        return int(digits, 16)
