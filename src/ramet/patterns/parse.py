"""Parse POSIX regular expressions in the dialects of grep, sed, awk and the C library.

A `Dialect` lists every difference; the parser knows nothing of its callers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from ramet.concurrency.offload import checkpoint
from ramet.concurrency.recursion import DEEPEST, room
from ramet.patterns import errors
from ramet.patterns import size_limits as bounds
from ramet.patterns.errors import PatternError
from ramet.patterns.tree import (
    EMPTY,
    AnyChar,
    Assert,
    Assertion,
    BackRef,
    Char,
    CharSet,
    Choice,
    Group,
    Node,
    Repeat,
    Sequence,
)

REPEAT_MAX = 32767
CLASSES = frozenset(
    ("alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph", "cntrl", "xdigit")
)


class Leading(Enum):
    """What a repetition operator means where there is nothing to repeat."""

    LITERAL = "literal"
    IGNORED = "ignored"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Dialect:
    basic: bool
    """Operators are written with a backslash."""
    leading: Leading
    leading_interval: Leading
    loose_interval: bool
    """A brace that starts no interval stands for itself."""
    loose_paren: bool
    """A closing parenthesis without its opening one stands for itself."""
    list_escapes: bool = False
    """A backslash escapes inside brackets."""
    c_escapes: bool = False
    """`\\n`, `\\t`, `\\x41` and so on are the characters they are in C."""
    boundary: str = "b"
    strict_class: bool = False
    """`[:space:]` alone is refused."""
    back_references: bool = True
    gnu: bool = True
    """What POSIX does not have: `\\|`, `\\+`, `\\?`, `\\w` and the like, and escapes inside brackets."""
    single_repeat: bool = False
    """`*` or an interval right behind a repetition is refused."""
    empty_ranges: bool = False
    """A range whose end comes before its start holds nothing, instead of being refused."""
    newline_apart: bool = False
    """A newline is neither any character nor one that is not in a list."""
    repeated_anchors: bool = False
    """`^*` is an anchor any number of times; else the operator has nothing to repeat."""


GREP_BASIC = Dialect(True, Leading.LITERAL, Leading.LITERAL, False, False, strict_class=True)
GREP_EXTENDED = Dialect(False, Leading.IGNORED, Leading.IGNORED, True, True, strict_class=True)
GREP_SELECTING = replace(GREP_EXTENDED, repeated_anchors=True)
"""How the automaton that looks for lines reads what GREP_EXTENDED looks for inside of them."""
SED_BASIC = Dialect(
    True, Leading.LITERAL, Leading.ERROR, False, False, c_escapes=True, strict_class=True, single_repeat=True
)
SED_EXTENDED = Dialect(False, Leading.ERROR, Leading.ERROR, False, False, c_escapes=True, strict_class=True)
POSIX_BASIC = Dialect(True, Leading.LITERAL, Leading.ERROR, False, False)
EXPR = Dialect(True, Leading.LITERAL, Leading.LITERAL, False, False, empty_ranges=True)
POSIX_EXTENDED = Dialect(False, Leading.ERROR, Leading.ERROR, False, True)
AWK = Dialect(
    False,
    Leading.LITERAL,
    Leading.LITERAL,
    True,
    True,
    list_escapes=True,
    c_escapes=True,
    boundary="y",
    back_references=False,
)
AWK_TRADITIONAL = replace(AWK, gnu=False)
AWK_POSIX = replace(AWK_TRADITIONAL, leading=Leading.ERROR, leading_interval=Leading.ERROR)


@dataclass(frozen=True, slots=True)
class Parsed:
    tree: Node
    groups: int
    back_references: bool
    warnings: tuple[str, ...]
    words: bool = False
    """Whether the characters around a match are part of the tree."""
    same: tuple[tuple[int, int], ...] = ()
    """Groups that are not in the tree, each with the one around it, which always takes part as it would."""
    long: bool = False
    """Whether to avoid `re`, which compiles slowly."""


_PLAIN_RUN = re.compile(r"[\w ,:;/<>=!%&~'\"#@-]+(?=[\w ,:;/<>=!%&~'\"#@-])", re.ASCII).match
"""Characters that stand for themselves in every dialect, up to the last one of them."""
_CHARS = {chr(code): Char(chr(code)) for code in range(128)}
_MANY = 100
"""Parentheses from which on groups that are nothing but groups are left out."""
_LONG = 10_000
"""Characters of a pattern that is compiled by what is quickest in it, not what matches quickest."""
_SMALL = 1000
"""Characters that are not too big a pattern if nothing in them is repeated a number of times."""


def parse(pattern: str, dialect: Dialect) -> Parsed:
    """The tree of a pattern, or PatternError in the library's words."""
    if len(pattern) <= _SMALL and "{" not in pattern and pattern.count("(") <= _MANY:
        return _parsed(_Parser(pattern, dialect))
    if len(pattern) > bounds.LENGTH:
        raise PatternError(errors.TOO_BIG)
    with room:
        parser = _Parser(pattern, dialect)
        parser.merges = pattern.count("(") > _MANY
        parsed = _parsed(parser)
        if parsed.back_references and parsed.same:
            parsed = _parsed(_Parser(pattern, dialect))  # whose numbers are those of groups in the tree
    bounds.check(parsed.tree, bounds.SLOW_UNITS if parsed.back_references else bounds.UNITS)
    return parsed


def _parsed(parser: _Parser) -> Parsed:
    tree = parser.alternatives(0)
    if parser.pos < len(parser.text):
        raise PatternError(errors.CLOSE_PAREN)
    if parser.class_alone:
        raise PatternError(errors.CLASS_SYNTAX)
    warnings, same, long = tuple(parser.warnings), tuple(parser.same), len(parser.text) > _LONG
    return Parsed(tree, parser.opened, parser.used_backref, warnings, same=same, long=long)


_WORD = CharSet(((95, 95),), ("alnum",))
_SPACE = CharSet((), ("space",))
_NEWLINE = (10, 10)
_LETTERS: dict[str, Node] = {
    "w": _WORD,
    "W": replace(_WORD, negated=True),
    "s": _SPACE,
    "S": replace(_SPACE, negated=True),
    "<": Assert(Assertion.WORD_START),
    ">": Assert(Assertion.WORD_END),
    "B": Assert(Assertion.NOT_BOUNDARY),
    "`": Assert(Assertion.TEXT_START),
    "'": Assert(Assertion.TEXT_END),
}
_C_ESCAPES = {"n": "\n", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "r": "\r"}
_HEX = "0123456789abcdefABCDEF"


class _Parser:
    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.text = pattern
        self.dialect = dialect
        self.pos = 0
        self.opened = 0
        self.closed = 0
        """The groups that can be referred back to, a bit for each: of the numbers with one digit only."""
        self.used_backref = False
        self.class_alone = False
        """A class without brackets around it was seen, which is wrong if nothing else is."""
        self.taken = False
        self.leading = True
        """Nothing but anchors so far: a repetition here is worth a warning."""
        self.warnings: list[str] = []
        self.merges = False
        self.same: list[tuple[int, int]] = []

    # ------------------------------------------------------------------ operators, by dialect

    def at(self, operator: str) -> bool:
        """Whether the operator (`(`, `)`, `|`, `{`) stands here, with or without backslash as the dialect wants it."""
        if self.dialect.basic:
            if operator == "|" and not self.dialect.gnu:
                return False
            return self.text.startswith("\\" + operator, self.pos)
        return self.text.startswith(operator, self.pos)

    def skip(self) -> None:
        self.pos += 2 if self.dialect.basic else 1

    # ------------------------------------------------------------------ grammar

    def alternatives(self, depth: int) -> Node:
        before = self.closed
        options = [self.branch(depth)]
        if not self.at("|"):
            return options[0]
        # An alternative may refer back to groups before the choice and to its own, not to those of its neighbours.
        everywhere = self.closed
        while self.at("|"):
            self.skip()
            self.closed = before
            options.append(self.branch(depth))
            everywhere |= self.closed
        self.closed = everywhere
        return Choice(tuple(options))

    def branch(self, depth: int) -> Node:
        parts: list[Node] = []
        text, end = self.text, len(self.text)
        # `fresh`: nothing before that a repetition could apply to; `anchored`: a basic `^` here is an anchor.
        fresh = anchored = self.leading = True
        plain = _PLAIN_RUN if end > _SMALL else None
        while self.pos < end:
            if not len(parts) & 255:
                checkpoint()
            if plain is not None and (run := plain(text, self.pos)):
                # All but the last, which may be repeated.
                parts += map(_CHARS.__getitem__, run[0])
                self.pos = run.end()
                fresh = anchored = self.leading = self.taken = False
            if self.at("|"):
                break
            if self.at(")") and not self.taken:
                if depth or not self.dialect.loose_paren:
                    if not depth:
                        raise PatternError(errors.CLOSE_PAREN)
                    break
                if self.dialect.basic:
                    raise PatternError(errors.CLOSE_PAREN)
            self.taken = False
            repeat = self.repetition(fresh)
            if repeat is not None:
                low, high = repeat
                if (low, high) != (-1, -1):
                    parts[-1] = _repeated(parts[-1], low, high)
                    if self.dialect.single_repeat and (text.startswith("*", self.pos) or self.at("{")):
                        raise PatternError(errors.BAD_REPEAT)
                elif text[self.pos - 1] != "}":
                    # An operator with nothing to repeat takes what follows for an expression, even a parenthesis.
                    self.taken = self.at(")") and not self.dialect.repeated_anchors
                continue
            char = text[self.pos]
            if char == "^" and (anchored or not self.dialect.basic):
                self.pos += 1
                parts.append(Assert(Assertion.LINE_START))
                fresh, anchored = not self.dialect.repeated_anchors, False
                continue
            if char == "$" and self.dollar_is_anchor():
                self.pos += 1
                parts.append(Assert(Assertion.LINE_END))
                fresh, anchored = not self.dialect.repeated_anchors, False
                continue
            leading = self.leading
            parts.append(self.atom(depth))
            asserts = isinstance(parts[-1], Assert)
            self.leading = leading and asserts
            fresh, anchored = asserts and not self.dialect.repeated_anchors, False
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def dollar_is_anchor(self) -> bool:
        if not self.dialect.basic:
            return True
        after = self.pos + 1
        return after == len(self.text) or self.text.startswith(("\\)", "\\|"), after)

    def repetition(self, fresh: bool) -> tuple[int, int | None] | None:
        """The bounds of the repetition operator here; (-1, -1) when it was skipped, None when there is none."""
        text, pos, basic = self.text, self.pos, self.dialect.basic
        char = text[pos]
        bounds: tuple[int, int | None]
        if char == "*":
            bounds, width = (0, None), 1
        elif not basic and char in "+?":
            bounds, width = ((1, None) if char == "+" else (0, 1)), 1
        elif basic and self.dialect.gnu and text.startswith(("\\+", "\\?"), pos):
            bounds, width = ((1, None) if text[pos + 1] == "+" else (0, 1)), 2
        elif self.at("{"):
            return self.interval(fresh)
        else:
            return None
        rule = self.dialect.leading
        if fresh and rule is not Leading.IGNORED:
            if rule is Leading.LITERAL:
                return None
            raise PatternError(errors.BAD_REPEAT)
        if self.leading and rule is Leading.IGNORED:
            self.warnings.append(f"{char} at start of expression")
        self.pos += width
        return (-1, -1) if fresh else bounds

    def interval(self, fresh: bool) -> tuple[int, int | None] | None:
        start = self.pos
        rule = self.dialect.leading_interval
        if fresh and rule is Leading.ERROR:
            raise PatternError(errors.BAD_REPEAT)
        if fresh and rule is Leading.LITERAL:
            return None
        self.skip()
        low = self.number()
        high: int | None = low
        comma = self.text.startswith(",", self.pos)
        if comma:
            self.pos += 1
            high = self.number()
        elif low is None:
            high = None
        backwards = low is not None and high is not None and high < low
        valid = (low is not None or comma) and self.at("}") and not (fresh and backwards)
        if not valid:
            # No number at all, or one too many, is wrong even where other text may follow a brace.
            wrong = self.text.startswith(",", self.pos) if comma else low is None and self.at("}")
            if self.dialect.loose_interval and (fresh or not wrong):
                self.pos = start
                if not fresh or self.dialect.repeated_anchors:
                    return None
                # With nothing before it, even a brace that starts no interval is an operator, and is ignored.
                self.skip()
                return (-1, -1)
            closed = self.text.find("\\}" if self.dialect.basic else "}", self.pos) >= 0
            raise PatternError(errors.BAD_INTERVAL if closed else errors.OPEN_BRACE)
        self.skip()
        least = low or 0
        if backwards:
            raise PatternError(errors.BAD_INTERVAL)
        if least > REPEAT_MAX or (high is not None and high > REPEAT_MAX):
            raise PatternError(errors.TOO_BIG)
        if self.leading and rule is Leading.IGNORED:
            self.warnings.append("{...} at start of expression")
            self.leading = False
        if fresh:
            if not self.dialect.repeated_anchors:
                self.pos = start
                self.skip()
            return (-1, -1)
        return least, high

    def number(self) -> int | None:
        start = self.pos
        while self.pos < len(self.text) and self.text[self.pos] in "0123456789":
            self.pos += 1
        return int(self.text[start : min(self.pos, start + 9)]) if self.pos > start else None

    def atom(self, depth: int) -> Node:
        text = self.text
        if self.at("("):
            return self.group(depth)
        char = text[self.pos]
        if char == "[":
            return self.bracket()
        self.pos += 1
        if char == ".":
            return CharSet((_NEWLINE,), (), True) if self.dialect.newline_apart else AnyChar()
        if char == "\\":
            return self.escape()
        return Char(char)

    def group(self, depth: int) -> Node:
        self.skip()
        self.opened += 1
        number = self.opened
        if number > bounds.GROUPS or depth >= DEEPEST:
            raise PatternError(errors.TOO_BIG)
        body = self.alternatives(depth + 1)
        if not self.at(")"):
            raise PatternError(errors.OPEN_PAREN)
        self.skip()
        if number < 10:
            self.closed |= 1 << number
        if self.merges and isinstance(body, Group):
            self.same.append((body.number, number))
            body = body.body
        return Group(number, body)

    def escape(self) -> Node:
        if self.pos >= len(self.text):
            raise PatternError(errors.BAD_ESCAPE)
        char = self.text[self.pos]
        self.pos += 1
        if char in "123456789" and self.dialect.back_references:
            number = int(char)
            if not self.closed >> number & 1:
                raise PatternError(errors.BAD_BACKREF)
            self.used_backref = True
            return BackRef(number)
        if char == self.dialect.boundary and self.dialect.gnu:
            return Assert(Assertion.BOUNDARY)
        if self.dialect.c_escapes:
            plain = self.c_escape(char)
            if plain is not None:
                return Char(plain)
        if char in _LETTERS and self.dialect.gnu:
            return _LETTERS[char]
        return Char(char)

    def c_escape(self, char: str) -> str | None:
        """The character of a C escape whose letter has just been read; None when it is not one."""
        text = self.text
        if char in _C_ESCAPES:
            return _C_ESCAPES[char]
        awk = self.dialect.boundary == "y"
        if awk and char == "b":
            return "\b"
        if awk and char in "01234567":
            return self.digits(self.pos - 1, 3, 8, "01234567")
        if char == "x":
            return self.digits(self.pos, 2, 16, _HEX)
        if not awk and char == "d":
            return self.digits(self.pos, 3, 10, "0123456789")
        if not awk and char == "o":
            return self.digits(self.pos, 3, 8, "01234567")
        if not awk and char == "c":
            if self.pos >= len(text):
                raise PatternError(errors.BAD_ESCAPE)
            self.pos += 1
            if text[self.pos - 1] == "\\":
                if not text.startswith("\\", self.pos):
                    raise PatternError(errors.RECURSIVE_ESCAPE)
                self.pos += 1
            return chr(ord(text[self.pos - 1].upper()) ^ 0x40)
        return None

    def digits(self, start: int, width: int, base: int, allowed: str) -> str | None:
        end = start
        while end < len(self.text) and end - start < width and self.text[end] in allowed:
            end += 1
        if end == start:
            return None
        value = int(self.text[start:end], base) & 0xFF
        self.pos = end
        return chr(value) if value < 0x80 else bytes((value,)).decode("utf-8", "surrogateescape")

    # ------------------------------------------------------------------ bracket expressions

    def bracket(self) -> Node:
        text, start = self.text, self.pos
        self.pos += 1
        if self.pos >= len(text):
            raise PatternError(errors.BAD_PATTERN)
        negated = text[self.pos] == "^"
        if negated:
            self.pos += 1
            if self.pos >= len(text):
                raise PatternError(errors.BAD_PATTERN)
        ranges: list[tuple[int, int]] = []
        classes: list[str] = []
        first = True
        while True:
            if self.pos >= len(text):
                raise PatternError(errors.OPEN_BRACKET)
            char = text[self.pos]
            if char == "]" and not first:
                self.pos += 1
                break
            # A hyphen is itself at either end; anywhere else it must be inside a range.
            hyphen = text.startswith("-", self.pos) and not text.startswith("-]", self.pos)
            if hyphen and not first:
                raise PatternError(errors.BAD_RANGE)
            first = False
            if text.startswith("[:", self.pos):
                classes.append(self.named(":"))
                continue
            equivalent = text.startswith("[=", self.pos)
            low = self.element()
            if text.startswith("-", self.pos) and not text.startswith("-]", self.pos):
                self.pos += 1
                if self.pos >= len(text):
                    raise PatternError(errors.OPEN_BRACKET)
                equivalent = equivalent or text.startswith("[=", self.pos)
                high = self.element()
                if equivalent:
                    raise PatternError(errors.BAD_RANGE)
                if high >= low:
                    ranges.append((low, high))
                elif not self.dialect.empty_ranges:
                    raise PatternError(errors.BAD_RANGE)
            else:
                ranges.append((low, low))
        inner = text[start + 1 + negated : self.pos - 1]
        single = not classes and "-" not in inner
        if self.dialect.strict_class and single and len(inner) > 2 and inner[0] == inner[-1] == ":":
            self.class_alone = True
        if negated and self.dialect.newline_apart:
            ranges.append(_NEWLINE)
        return CharSet(tuple(ranges), tuple(classes), negated)

    def named(self, kind: str) -> str:
        end = self.text.find(kind + "]", self.pos + 2)
        if end < 0:
            raise PatternError(errors.OPEN_BRACKET)
        name = self.text[self.pos + 2 : end]
        self.pos = end + 2
        if kind == ":":
            if name not in CLASSES:
                raise PatternError(errors.BAD_CLASS)
            return name
        if len(name) != 1:
            raise PatternError(errors.BAD_COLLATION)
        return name

    def element(self) -> int:
        """One end of a range: a character, a collating symbol or an equivalence class of one character."""
        text = self.text
        if text.startswith("[.", self.pos):
            return ord(self.named("."))
        if text.startswith("[=", self.pos):
            return ord(self.named("="))
        char = text[self.pos]
        self.pos += 1
        if char == "\\" and self.pos < len(text):
            after = text[self.pos]
            if self.dialect.list_escapes:
                self.pos += 1
                return ord(self.c_escape(after) or after)
            if self.dialect.c_escapes and self.dialect.gnu and after in "nftvardox":
                at = self.pos
                self.pos += 1
                plain = self.c_escape(after)
                if plain is not None:
                    return ord(plain)
                self.pos = at
        return ord(char)


def _repeated(node: Node, low: int, high: int | None) -> Node:
    """A repetition; one of another, as in `a**`, is one as well."""
    if isinstance(node, Repeat) and low <= 1 >= node.low and high in (1, None) and node.high in (1, None):
        return Repeat(node.body, low * node.low, 1 if high == 1 == node.high else None)
    return Repeat(node, low, high)


def parse_fixed(pattern: str) -> Parsed:
    return Parsed(Sequence(tuple(Char(c) for c in pattern)), 0, False, ())


def choice(parts: list[Parsed]) -> Parsed:
    """The alternatives of several patterns; their groups are renumbered in order."""
    if len(parts) == 1:
        return parts[0]
    options: list[Node] = []
    same: list[tuple[int, int]] = []
    offset = 0
    for part in parts:
        options.append(_renumber(part.tree, offset))
        same += [(inner + offset, outer + offset) for inner, outer in part.same]
        offset += part.groups
    tree = Choice(tuple(options)) if options else EMPTY
    warnings = tuple(w for p in parts for w in p.warnings)
    return Parsed(tree, offset, any(p.back_references for p in parts), warnings, same=tuple(same))


def _renumber(node: Node, offset: int) -> Node:
    if not offset:
        return node
    if isinstance(node, Group):
        return Group(node.number + offset, _renumber(node.body, offset))
    if isinstance(node, BackRef):
        return BackRef(node.number + offset)
    if isinstance(node, Sequence):
        return Sequence(tuple(_renumber(part, offset) for part in node.parts))
    if isinstance(node, Choice):
        return Choice(tuple(_renumber(option, offset) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(_renumber(node.body, offset), node.low, node.high)
    return node
