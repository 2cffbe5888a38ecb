"""Write a pattern tree in the syntax of an engine, exactly or not at all (`Inexpressible`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ramet.concurrency.offload import checkpoint
from ramet.patterns.classes import alike, extra
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


class Lines(Enum):
    """How a pattern sees newlines in the data."""

    BLOCK = "block"
    """The data is many lines: nothing matches a newline, `^` and `$` match at every line."""
    TEXT = "text"
    """The data is one text: newlines are ordinary, `^` and `$` are its ends."""
    MULTI = "multi"
    """Newlines are ordinary, yet `^` and `$` match around them too."""


class Engine(Enum):
    RE2 = "re2"
    RE = "re"
    REGEX = "regex"


class Coding(Enum):
    """What one character of the data is."""

    ASCII = "ascii"
    """A byte, known to be below 128."""
    BYTES = "bytes"
    """A byte, letters being those of ASCII."""
    UTF8 = "utf8"
    """A code point (in UTF-8 for RE2, in a `str` for the others)."""


class Inexpressible(Exception):
    """The engine has no way to say this exactly."""


@dataclass(frozen=True, slots=True)
class Target:
    engine: Engine
    coding: Coding
    lines: Lines
    captures: bool = True
    folds: bool = False
    """Whether case is ignored beyond ASCII, where engines differ."""


_ASCII_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\x09-\x0d\x20",
    "blank": r"\x09\x20",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "print": r"\x20-\x7e",
    "graph": r"\x21-\x7e",
    "cntrl": r"\x00-\x1f\x7f",
    "xdigit": "0-9a-fA-F",
}
_LINE_CLASSES = {"space": r"\x09\x0b-\x0d\x20", "cntrl": r"\x00-\x09\x0b-\x1f\x7f"}
_LETTERS = r"\p{L}\p{Nl}"
_UNICODE_CLASSES = _ASCII_CLASSES | {
    "alpha": _LETTERS,
    "alnum": _LETTERS + "0-9",
    "upper": r"\p{Lu}",
    "lower": r"\p{Ll}",
    "punct": r"\p{P}\p{S}\p{No}\p{Cf}\p{Co}",
    "print": r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\p{Cf}\p{Co}",
    "graph": r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}",
}
_RE2_REPEAT_MAX = 1000
_SEVERAL = 64
"""Alternatives from which on it matters how much of them an engine has in common."""
_MANY = 1000
"""Characters of a set up to which their other cases are spelled out."""
_NO_CHARS = r"\x{d800}-\x{dfff}"
"""What RE2 takes for code points although UTF-8 has none there."""
_BYTE_LETTERS = r"\udcaa\udcb5\udcba\udcc0-\udcd6\udcd8-\udcf6\udcf8-\udcff"
"""Invalid UTF-8 bytes that are letters in Latin-1: glibc treats them as part of a word."""


def emit(node: Node, target: Target) -> str:
    return _Emitter(target).node(node)


class _Emitter:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.unicode = target.coding is Coding.UTF8
        self.folds = target.folds and self.unicode
        self.groups = 0
        """Groups that were written."""
        self.known: dict[str, str] = {}
        self.limit = {Coding.ASCII: 0x7F, Coding.BYTES: 0xFF, Coding.UTF8: 0x10FFFF}[target.coding]
        self.writers = {
            Char: self.char,
            AnyChar: self.any,
            CharSet: self.charset,
            Assert: self.assertion,
            Group: self.group,
            BackRef: self.backref,
            Sequence: self.sequence,
            Choice: self.choice,
            Repeat: self.repeat,
        }

    def node(self, node: Node) -> str:
        text: str = self.writers[type(node)](node)  # type: ignore[operator]
        return text

    def point(self, code: int) -> str:
        """One code point, escaped where it could mean anything else."""
        char = chr(code)
        if code < 0x80:
            return char if char.isalnum() else f"\\x{code:02x}"
        if self.target.engine is Engine.RE2:
            return f"\\x{{{code:x}}}"
        if code <= 0xFF:
            return f"\\x{code:02x}"
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

    @property
    def never(self) -> str:
        if self.target.engine is Engine.RE2:
            return r"[^\x00-\x{10FFFF}]" if self.unicode else r"[^\x00-\xff]"
        return "(?!)"

    def char(self, node: Char) -> str:
        text = self.known.get(node.char)
        if text is None:
            text = self.known[node.char] = self.spell(node)
        return text

    def spell(self, node: Char) -> str:
        code = ord(node.char)
        if code > self.limit:
            near = [other for other in alike(code) if other <= self.limit] if self.target.folds else []
            return f"[{''.join(map(self.point, near))}]" if near else self.never
        if 0xD800 <= code <= 0xDFFF and self.target.engine is Engine.RE2:
            return self.never
        if self.folds and (code > 0x7F or node.char in "iIkKsS"):
            return f"(?-i:[{''.join(map(self.point, sorted(alike(code))))}])"
        return self.point(code)

    def any(self, node: AnyChar) -> str:
        return self.charset(CharSet((), (), True))

    def charset(self, node: CharSet) -> str:
        if self.folds and node.ranges and not node.classes:
            size = sum(high - low + 1 for low, high in node.ranges)
            if size <= _MANY and not any(high > 0xD7FF and low < 0xE000 for low, high in node.ranges):
                codes = {other for low, high in node.ranges for code in range(low, high + 1) for other in alike(code)}
                return f"(?-i:{self.spelled(CharSet(_ranges(codes), (), node.negated))})"
        return self.spelled(node)

    def spelled(self, node: CharSet) -> str:
        parts: list[str] = []
        # In a block of lines the newline only separates; no set may take it.
        block = self.target.lines is Lines.BLOCK
        for low, high in _without_newline(node.ranges) if block and not node.negated else node.ranges:
            if low > self.limit and self.target.folds and high - low <= _MANY:
                parts += [
                    self.point(near) for code in range(low, high + 1) for near in alike(code) if near <= self.limit
                ]
            if low > self.limit or (low >= 0xD800 and high <= 0xDFFF and self.target.engine is Engine.RE2):
                continue
            top = min(high, self.limit)
            parts.append(self.point(low) if low == top else f"{self.point(low)}-{self.point(top)}")
        for name in node.classes:
            if self.target.folds and name in ("upper", "lower"):
                name = "alpha"  # which has letters without case, too
            members = (_UNICODE_CLASSES if self.unicode else _ASCII_CLASSES)[name]
            parts.append(_LINE_CLASSES.get(name, members) if block else members)
            if self.unicode:
                parts.extend(f"{self.point(low)}-{self.point(high)}" for low, high in extra(name))
        if node.negated:
            if block:
                parts.append(r"\x0a")
            if self.unicode:
                parts.append(_NO_CHARS if self.target.engine is Engine.RE2 else r"\udc80-\udcff")
        if not parts:
            if not node.negated:
                return self.never
            if self.target.engine is Engine.RE2:
                return r"[\x00-\xff]"
            return r"[\s\S]"
        return f"[{'^' if node.negated else ''}{''.join(parts)}]"

    def assertion(self, node: Assert) -> str:
        kind, engine = node.kind, self.target.engine
        if kind is Assertion.TEXT_START or (kind is Assertion.LINE_START and self.target.lines is Lines.TEXT):
            return "(?m:^)" if self.target.lines is Lines.BLOCK else r"\A"
        if kind is Assertion.TEXT_END or (kind is Assertion.LINE_END and self.target.lines is Lines.TEXT):
            if self.target.lines is Lines.BLOCK:
                return "(?m:$)"
            return r"\z" if engine is Engine.RE2 else r"\Z"
        if kind is Assertion.LINE_START:
            return "(?m:^)"
        if kind is Assertion.LINE_END:
            return "(?m:$)"
        if engine is Engine.RE2 or engine is Engine.RE:
            if self.unicode:
                raise Inexpressible("word boundaries of Unicode")
            if engine is Engine.RE2 and kind in (Assertion.WORD_START, Assertion.WORD_END):
                raise Inexpressible("one-sided word boundaries")
        word = self.charset(CharSet(((95, 95),), ("alnum",)))
        if self.unicode:
            word = f"{word[:-1]}{_BYTE_LETTERS}]"
        return {
            Assertion.BOUNDARY: r"\b" if not self.unicode else f"(?:(?<!{word})(?={word})|(?<={word})(?!{word}))",
            Assertion.NOT_BOUNDARY: (r"\B" if engine is Engine.RE2 else r"(?!\b)")
            if not self.unicode
            else f"(?:(?<!{word})(?!{word})|(?<={word})(?={word}))",
            Assertion.WORD_START: f"(?<!{word})(?={word})",
            Assertion.WORD_END: f"(?<={word})(?!{word})",
        }[kind]

    def group(self, node: Group) -> str:
        self.groups += 1
        return f"({'' if self.target.captures else '?:'}{self.node(node.body)})"

    def backref(self, node: BackRef) -> str:
        if self.target.engine is Engine.RE2:
            raise Inexpressible("back-references")
        return f"(?:\\{node.number})"

    def sequence(self, node: Sequence) -> str:
        texts: list[str] = []
        parts = node.parts
        for index, part in enumerate(parts):
            if not index & 255:
                checkpoint()
            if type(part) is Char:
                texts.append(self.char(part))
            elif isinstance(part, Assert) and part.kind in (Assertion.WORD_START, Assertion.WORD_END):
                texts.append(self.one_sided(part, parts[index - 1 : index], parts[index + 1 : index + 2]))
            elif isinstance(part, Choice):
                texts.append(f"(?:{self.node(part)})")
            else:
                texts.append(self.node(part))
        return "".join(texts)

    def one_sided(self, node: Assert, before: tuple[Node, ...], after: tuple[Node, ...]) -> str:
        """`\\<` before a certain word character is `\\b`, so is `\\>` after one; this keeps linear engines usable."""
        if not self.unicode:
            if node.kind is Assertion.WORD_START and after and _is_word(after[0], 0):
                return r"\b"
            if node.kind is Assertion.WORD_END and before and _is_word(before[-1], -1):
                return r"\b"
        return self.assertion(node)

    def choice(self, node: Choice) -> str:
        texts: list[str] = []
        groups = self.groups
        for place, option in enumerate(_as_preferred(node.options)):
            if not place & 255:
                checkpoint()
            texts.append(self.node(option))
        # Without groups the longest match is the same in any order, and RE2 shares how neighbours begin.
        if len(texts) > _SEVERAL and self.target.engine is Engine.RE2 and self.groups == groups:
            texts.sort()
        return "|".join(texts)

    def repeat(self, node: Repeat) -> str:
        text = self.node(node.body)
        if not isinstance(node.body, (Char, AnyChar, CharSet, Group)):
            text = f"(?:{text})"
        low, high = node.low, node.high
        if (low, high) == (0, None):
            return text + "*"
        if (low, high) == (1, None):
            return text + "+"
        if (low, high) == (0, 1):
            return text + "?"
        if self.target.engine is Engine.RE2 and max(low, high or 0) > _RE2_REPEAT_MAX:
            return self.long_repeat(text, low, high)
        return f"{text}{{{low},{'' if high is None else high}}}" if high != low else f"{text}{{{low}}}"

    def long_repeat(self, text: str, low: int, high: int | None) -> str:
        parts: list[str] = []
        rest = low
        while rest > 0:
            parts.append(f"{text}{{{min(rest, _RE2_REPEAT_MAX)}}}")
            rest -= _RE2_REPEAT_MAX
        if high is None:
            parts.append(text + "*")
        else:
            rest = high - low
            while rest > 0:
                parts.append(f"{text}{{0,{min(rest, _RE2_REPEAT_MAX)}}}")
                rest -= _RE2_REPEAT_MAX
        return f"(?:{''.join(parts)})"


def _as_preferred(options: tuple[Node, ...]) -> tuple[Node, ...]:
    """Of two ways to match as much, the GNU library takes the earlier option, but nothing at all only after that."""
    if len(options) > 1 and options[0] == EMPTY != options[1]:
        return options[1], EMPTY, *options[2:]
    return options


def _ranges(codes: set[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return tuple(found)


def _without_newline(ranges: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, int]]:
    for low, high in ranges:
        if low <= 10 <= high:
            if low < 10:
                yield low, 9
            if high > 10:
                yield 11, high
        else:
            yield low, high


def _is_word(node: Node, end: int) -> bool:
    """Whether every match of `node` begins (end 0) or ends (end -1) with a word character of ASCII."""
    if isinstance(node, Char):
        return node.char == "_" or (node.char.isascii() and node.char.isalnum())
    if isinstance(node, CharSet):
        if node.negated or not set(node.classes) <= {"alpha", "digit", "alnum", "upper", "lower", "xdigit"}:
            return False
        return all(_word_range(low, high) for low, high in node.ranges)
    if isinstance(node, Group):
        return _is_word(node.body, end)
    if isinstance(node, Repeat):
        return node.low > 0 and _is_word(node.body, end)
    if isinstance(node, Sequence):
        return bool(node.parts) and _is_word(node.parts[end], end)
    if isinstance(node, Choice):
        return all(_is_word(option, end) for option in node.options)
    return False


def _word_range(low: int, high: int) -> bool:
    if low > 0x7F:
        return True  # cannot occur in ASCII data at all
    return high - low < 128 and all(c == 95 or chr(c).isalnum() for c in range(low, high + 1))
