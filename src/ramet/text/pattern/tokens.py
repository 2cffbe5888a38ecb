"""Shell patterns as tokens: characters, sets, stars and extended groups, read from (text, quoted) pieces.

In unquoted text a backslash quotes the next character. A bracket or a group that never closes is ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ramet.concurrency.recursion import DEEPEST
from ramet.text.pattern.collation import COLLATING

Piece = tuple[str, bool]


class PatternTooCostly(Exception):
    """A pattern that would take too long on its text, or nests too deep."""


_CLASSES: Final = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "0-9A-Za-z",
    "upper": "A-Z",
    "lower": "a-z",
    "space": " \\t-\\r",
    "blank": " \\t",
    "punct": "!-/:-@\\[-`{-~",
    "print": " -~",
    "graph": "!-~",
    "cntrl": "\\x00-\\x1f\\x7f",
    "xdigit": "0-9A-Fa-f",
    "word": "0-9A-Za-z_",
    "ascii": "\\x00-\\x7f",
}
_CASED: Final = (_CLASSES["upper"], _CLASSES["lower"])
_TESTS: Final[dict[str, Callable[[str], bool]]] = {
    "alpha": lambda c: c.isalpha() or (c.isnumeric() and not c.isascii()),
    "alnum": lambda c: c.isalnum(),
    "upper": str.isupper,
    "lower": str.islower,
    "space": lambda c: c.isspace() and c not in "\x1c\x1d\x1e\x1f\x85\xa0\u2007\u202f",
    "blank": lambda c: c in " \t\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u205f\u3000",
    "punct": lambda c: c.isprintable() and not c.isalnum() and not c.isspace(),
    "print": str.isprintable,
    "graph": lambda c: c.isprintable() and not c.isspace(),
    "word": lambda c: c.isalnum() or c == "_",
    "cntrl": lambda c: "\x80" <= c <= "\x9f" or c in "\u2028\u2029",
}


class Set:
    """A bracket expression: what one character may be."""

    __slots__ = ("classes", "negated", "source")

    def __init__(self, source: str, classes: tuple[str, ...], negated: bool) -> None:
        self.source = source  # the inside of a regular expression's brackets, good for ASCII and listed characters
        self.classes = classes
        self.negated = negated

    def regex(self) -> str:
        if not self.source:
            return r"[\s\S]" if self.negated else r"(?!)"
        if not self.classes:
            return f"[{'^' if self.negated else ''}{self.source}]"
        wide = self.source + "".join(_wide(name) for name in self.classes)
        found = f"[{'^' if self.negated else ''}{wide}]"
        if self.source in _CASED:
            return f"(?-i:{found})"  # a class looks at the character itself, even where case does not matter
        return found


class PatternGroup:
    """An extended group: ``op(alternative|...)``."""

    __slots__ = ("alternatives", "op")

    def __init__(self, op: str, alternatives: list[list[Token]]) -> None:
        self.op = op
        self.alternatives = alternatives


class PatternStar:
    __slots__ = ()


class One:
    __slots__ = ()


STAR, ONE = PatternStar(), One()
Token = str | Set | PatternGroup | PatternStar | One
"""A str token is exactly one character."""

_wide_cache: dict[str, str] = {}


def _wide(name: str) -> str:
    """The characters beyond ASCII that a class holds, as the inside of brackets (basic plane)."""
    found = _wide_cache.get(name)
    if found is None:
        test = _TESTS.get(name)
        ranges: list[str] = []
        if test is not None:
            first = -1
            for code in range(0x80, 0x10000):
                inside = not 0xD800 <= code <= 0xDFFF and test(chr(code))
                if inside and first < 0:
                    first = code
                elif not inside and first >= 0:
                    ranges.append(f"\\u{first:04x}-\\u{code - 1:04x}")
                    first = -1
            if name not in ("space", "blank", "cntrl"):
                ranges.append("\\U00010000-\\U0010ffff" if name in ("print", "graph") else "")
        found = _wide_cache[name] = "".join(ranges)
    return found


# ------------------------------------------------------------------------- reading


ACTIVE = re.compile(r"[*?\[\\]").search
_EXTENDED = frozenset("?*+@!")


def is_active(pieces: Iterable[Piece], extglob: bool) -> bool:
    """Could these pieces be a pattern at all? (For the decision whether a word is looked up among file names.)"""
    for text, quoted in pieces:
        if quoted:
            continue
        if "*" in text or "?" in text or "[" in text:
            return True
        if extglob and "(" in text and re.search(r"[?*+@!]\(", text):
            return True
    return False


def characters(pieces: Sequence[Piece]) -> list[tuple[str, bool]]:
    """One (character, quoted) pair per character, backslashes in unquoted text resolved."""
    chars: list[tuple[str, bool]] = []
    for text, quoted in pieces:
        if quoted or "\\" not in text:
            chars.extend((c, quoted) for c in text)
            continue
        escaped = False
        for c in text:
            if escaped:
                chars.append((c, True))
                escaped = False
            elif c == "\\":
                escaped = True
            else:
                chars.append((c, False))
        if escaped:
            chars.append(("\\", True))
    return chars


class TokenReader:
    """A reader of tokens from characters. Brackets that never close are remembered, so that it stays linear."""

    def __init__(self, chars: list[tuple[str, bool]], extglob: bool) -> None:
        self.chars = chars
        self.extglob = extglob
        self._last_bracket = _last(chars, ("]", False))
        self._last_parenthesis = _last(chars, (")", False)) if extglob else -1
        self._open_brackets: set[int] = set()

    def tokens(self, pos: int, nested: int) -> tuple[list[list[Token]], int] | None:
        """Alternatives up to the closing parenthesis (when `nested`) or the end; None when it is
        missing."""
        if nested > DEEPEST:
            raise PatternTooCostly(f"pattern: maximum nesting level exceeded ({DEEPEST})")
        chars, n = self.chars, len(self.chars)
        current: list[Token] = []
        alternatives = [current]
        while pos < n:
            c, quoted = chars[pos]
            if quoted:
                current.append(c)
                pos += 1
                continue
            if nested and c == ")":
                return alternatives, pos + 1
            if nested and c == "|":
                current = []
                alternatives.append(current)
                pos += 1
                continue
            if self.extglob and c in _EXTENDED and pos + 1 < n and chars[pos + 1] == ("(", False):
                group = self.tokens(pos + 2, nested + 1) if pos < self._last_parenthesis else None
                if group is not None:
                    current.append(PatternGroup(c, group[0]))
                    pos = group[1]
                    continue
                if nested:
                    return None
                current.extend(one for one, _ in chars[pos:])  # as in bash, all of the rest is text then
                break
            if c == "*":
                if not (current and current[-1] is STAR):
                    current.append(STAR)
            elif c == "?":
                current.append(ONE)
            elif c == "[" and (found := self._bracket(pos + 1)) is not None:
                current.append(found[0])
                pos = found[1]
                continue
            else:
                current.append(c)
            pos += 1
        return None if nested else (alternatives, pos)

    def _bracket(self, pos: int) -> tuple[Set, int] | None:
        """A bracket expression after its ``[``; None when it never closes and ``[`` is itself."""
        if pos > self._last_bracket or pos in self._open_brackets:
            return None
        chars, n = self.chars, len(self.chars)
        passed: list[int] = []
        negated = False
        if pos < n and chars[pos] in (("!", False), ("^", False)):
            negated = True
            pos += 1
        source: list[str] = []
        classes: list[str] = []
        first = True
        while pos < n:
            c, quoted = chars[pos]
            if c == "]" and not quoted and not first:
                return Set("".join(source), tuple(classes), negated), pos + 1
            first = False
            if c == "[" and not quoted and pos + 1 < n and chars[pos + 1][0] in ":=." and not chars[pos + 1][1]:
                found = self._named(pos + 1, chars[pos + 1][0])
                if found is not None:
                    name, after = found
                    if chars[pos + 1][0] == ":":
                        if name in _CLASSES:
                            source.append(_CLASSES[name])
                            classes.append(name)
                        pos = after
                        continue
                    if not name:
                        pos = after
                        continue
                    c, pos = name, after - 1
            elif c == "[" and not quoted:
                passed.append(pos + 1)
            pos += 1
            # A range, unless the dash is quoted or last.
            if pos + 1 < n and chars[pos] == ("-", False) and chars[pos + 1] != ("]", False):
                high = chars[pos + 1][0]
                after = pos + 2
                if high == "[" and not chars[pos + 1][1] and pos + 2 < n and chars[pos + 2][0] in ".=":
                    named = self._named(pos + 2, chars[pos + 2][0])
                    if named is not None and named[0]:
                        high, after = named
                if c <= high:
                    source.append(f"{_in_brackets(c)}-{_in_brackets(high)}")
                pos = after
                continue
            source.append(_in_brackets(c))
        self._open_brackets.update(passed)
        return None

    def _named(self, pos: int, kind: str) -> tuple[str, int] | None:
        """``:name:]`` and its like, where ``pos`` is on the first mark: the name of a class, or the character that is
        named, which is empty where there is none."""
        chars, n = self.chars, len(self.chars)
        end, n = pos + 1, min(n, pos + _LONGEST_NAME)
        while end + 1 < n:
            if chars[end][0] == kind and chars[end + 1] == ("]", False) and end > pos + 1:
                name = "".join(c for c, _ in chars[pos + 1 : end])
                if kind == "=" and len(name) > 1:
                    return None
                if kind == "." and len(name) > 1:
                    name = COLLATING.get(name, "")
                return name, end + 2
            end += 1
        return None


_LONGEST_NAME = 256
"""Characters of the name of a class, far more than any has."""


def _last(chars: list[tuple[str, bool]], wanted: tuple[str, bool]) -> int:
    """Where a character stands for the last time; -1 for nowhere."""
    for place in range(len(chars) - 1, -1, -1):
        if chars[place] == wanted:
            return place
    return -1


def _in_brackets(c: str) -> str:
    return "\\" + c if c in "\\]^-[&~|" else c
