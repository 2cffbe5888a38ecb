"""Read the elements of Perl-style patterns: characters, classes, sets and names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ramet.patterns import perl_sets as sets
from ramet.patterns.errors import PatternError
from ramet.patterns.perl_sets import ESCAPES, LAST, Members, Range, point, spelled


class Style(NamedTuple):
    """What a pattern means beyond its text, and for which engine it is written."""

    unicode: bool = False
    """Whether `\\w`, `\\d`, `\\s`, `\\b` and named classes know more letters than ASCII's (jq, rg)."""
    lines: bool = False
    """Whether the data may be a block of lines, each matched separately."""
    text: bool = False
    """Whether the data is decoded text rather than bytes."""
    icase: bool = False
    extended: bool = False
    re2: bool = False


class NotForRe2(Exception):
    """RE2 has no such construct, or means something else by it."""


@dataclass(slots=True)
class Scope:
    """What inline flags have set within one group."""

    extended: bool
    spaced_sets: bool
    dotall: bool
    ungreedy: bool
    multiline: bool = False
    opened: list[str] = field(default_factory=list)
    """Groups opened for flags that hold until the end of this one; closed and opened again at each alternative."""
    looks: bool = False
    """Whether this is an assertion, which (*ACCEPT) ends rather than the whole match."""
    start: int = 0
    """Where the alternative at hand begins in what is written, behind the flags that are on already."""
    flags: int = 0
    """How many flags are on there."""
    closers: int = 0
    """Groups opened for (*ACCEPT) until the end of the alternative."""
    accepts: bool = False
    thens: list[int] = field(default_factory=list)
    """Where (*THEN) stood in the alternative."""
    inner: list[int] = field(default_factory=list)
    """Where it stood in groups without alternatives."""
    choices: int = 0
    units: int = 0
    """Characters, sets and groups in this one, as often as they are repeated."""
    options: int = 0
    """How many of them may be left out."""


UNSUPPORTED = "PCRE2 does not support \\F, \\L, \\l, \\N{name}, \\U, or \\u"
_CONTROLS = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
_PROPERTIES = {"Xan": "\\p{L}\\p{N}", "Xwd": "\\p{L}\\p{N}_", "Xsp": "\\s", "Xps": "\\s", "Any": "\\x00-\\U0010ffff"}
NO_NAME_END = "syntax error in subpattern name (missing terminator?)"
TOKEN = re.compile(
    r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^]\\])*(?:\]|\\?\Z)|(\((?!\?|\*)|\(\?(?:P?<(?![=!])|'))", re.DOTALL
)


class Reader:
    """Where the reading of a pattern is, and what is written of it so far."""

    def __init__(self, pattern: str, style: Style) -> None:
        self.pattern, self.style = pattern, style
        self.pos = 0
        self.out: list[str] = []
        self.groups = 0
        self.total = sum(1 for found in TOKEN.finditer(pattern) if found[1])
        self.scopes = [Scope(style.extended, False, False, False)]
        self.repeatable = False
        self.last_units = self.last_options = 0
        """Of what a quantifier here would repeat."""
        self.last = LAST if style.text or style.unicode else 0xFF
        never: list[Range] = [sets.NEWLINE] if style.lines else []
        if style.text:
            never.append(sets.NO_UTF8)
        self.never = tuple(never)

    def emit(self, text: str, repeatable: bool = True) -> None:
        self.out.append(text)
        self.repeatable = repeatable
        self.scopes[-1].units += 1
        self.last_units, self.last_options = 1, 0

    def only_regex(self) -> None:
        if self.style.re2:
            raise NotForRe2

    def literal(self, char: str) -> str:
        code = ord(char)
        if self.style.lines and char == "\n":
            return self.nothing()
        if char.isalnum() or char == "_" or code > 0x7F:
            return char
        return point(code) if code < 32 else "\\" + char

    def nothing(self) -> str:
        return f"[^\\x00-{point(self.last)}]"

    def dot(self, dotall: bool) -> str:
        if dotall and not self.never:
            return "(?s:.)"
        if not self.style.text:
            return "."
        return spelled(Members([] if dotall else [sets.NEWLINE], []), True, self.never, self.last)

    def code(self) -> int | None:
        """The code point of the escape at `pos`, which is then behind it; None when it stands for no character."""
        pattern, char, after = self.pattern, self.pattern[self.pos + 1], self.pos + 2
        if char in "xo" and pattern.startswith("{", after):
            stop = pattern.find("}", after)
            digits = pattern[after + 1 : stop if stop >= 0 else len(pattern)]
            base, what = (16, "hex") if char == "x" else (8, "octal")
            if stop < 0 or not re.fullmatch(r"[0-9a-fA-F]+" if base == 16 else r"[0-7]+", digits):
                raise PatternError(f"non-{what} character in \\{char}{{}} (closing brace missing?)")
            self.pos = stop + 1
            code = int(digits, base)
            if code > LAST:
                raise PatternError("character code point value in \\x{} or \\o{} is too large")
            return code
        if char == "x":
            found = re.compile(r"[0-9a-fA-F]{0,2}").match(pattern, after)
            assert found is not None
            self.pos = found.end()
            return int(found[0] or "0", 16)
        if char == "0" or (char in "1234567" and self.is_octal(after - 1)):
            found = re.compile(r"[0-7]{1,3}").match(pattern, after - 1)
            assert found is not None
            self.pos = found.end()
            return int(found[0], 8) & 0xFF
        if char == "c":
            if after >= len(pattern):
                raise PatternError("\\c at end of pattern")
            self.pos = after + 1
            return ord(pattern[after].upper()) ^ 64
        if char == "N" and (named := re.compile(r"\{U\+([0-9a-fA-F]+)\}").match(pattern, after)):
            self.pos = named.end()
            return int(named[1], 16)
        if char == "b":
            return None
        if char in _CONTROLS:
            self.pos = after
            return _CONTROLS[char]
        return None

    def is_octal(self, pos: int) -> bool:
        found = re.compile(r"\d+").match(self.pattern, pos)
        return found is not None and int(found[0]) >= 10 and int(found[0]) > self.total

    def class_escape(self, char: str) -> str:
        lower = char.lower()
        if self.style.unicode and lower in "dws":
            if not self.style.lines or char in "dw":
                return "\\" + char
            return spelled(Members([], ["\\" + lower]), True, self.never, self.last) if char != lower else "[^\\S\\n]"
        return spelled(Members(list(ESCAPES[lower]), []), char != lower, self.never, self.last)

    def property(self, negated: bool) -> str:
        inside = self.property_name(negated)
        if inside.startswith("["):
            return inside
        if self.never:
            inside = f"(?:(?![{''.join(point(low) + '-' + point(high) for low, high in self.never)}]){inside})"
        if self.style.icase and not self.style.unicode:
            inside = f"(?-i:{inside})"
        return inside

    def property_name(self, negated: bool) -> str:
        """`\\p{...}` behind its letter, in the spelling of the engine."""
        self.only_regex()
        pattern, pos = self.pattern, self.pos
        if pos >= len(pattern):
            raise PatternError("malformed \\P or \\p sequence")
        name = pattern[pos]
        self.pos = pos + 1
        if name == "{":
            stop = pattern.find("}", pos)
            if stop < 0:
                raise PatternError("malformed \\P or \\p sequence")
            name = pattern[pos + 1 : stop]
            self.pos = stop + 1
        if name.startswith("^"):
            name, negated = name[1:], not negated
        if name in _PROPERTIES:
            return f"[{'^' if negated else ''}{_PROPERTIES[name]}]"
        return f"\\{'P' if negated else 'p'}{{{name}}}"

    def delimited(self) -> tuple[str, str] | None:
        """A name or number between delimiters, with the one that opens it."""
        closing = {"{": "}", "<": ">", "'": "'"}.get(self.pattern[self.pos : self.pos + 1])
        if closing is None:
            return None
        opening, start = self.pattern[self.pos], self.pos + 1
        stop = self.pattern.find(closing, start)
        if stop == start or start >= len(self.pattern):
            raise PatternError("subpattern name expected")
        if stop < 0:
            raise PatternError(NO_NAME_END)
        self.pos = stop + 1
        return opening, self.pattern[start:stop]

    def set(self) -> None:
        pattern = self.pattern
        if found := re.compile(r"\[([:.=])[^]\\]*?\1\]").match(pattern, self.pos):
            raise PatternError(
                "POSIX named classes are supported only within a class"
                if found[1] == ":"
                else "POSIX collating elements are not supported"
            )
        self.pos += 1
        negated = pattern.startswith("^", self.pos)
        self.pos += negated
        ranges: list[Range] = []
        extras: list[str] = []
        first = True
        while True:
            if self.pos >= len(pattern):
                raise PatternError("missing terminating ] for character class")
            char = pattern[self.pos]
            if char == "]" and not first:
                self.pos += 1
                break
            first = False
            if self.scopes[-1].spaced_sets and char in " \t":
                self.pos += 1
                continue
            self.member(ranges, extras)
        if extras:
            self.only_regex()
        self.emit(spelled(Members(ranges, extras), negated, self.never, self.last))

    def member(self, ranges: list[Range], extras: list[str]) -> None:
        """One character, range or class between the brackets."""
        low = self.item(ranges, extras)
        pattern = self.pattern
        if low == -1 or not pattern.startswith("-", self.pos) or pattern.startswith("-]", self.pos):
            if low is not None and low >= 0:
                ranges.append((low, low))
            return
        if self.pos + 1 >= len(pattern):
            raise PatternError("missing terminating ] for character class")
        if low is None and self.style.unicode:
            return
        self.pos += 1
        high = self.item([], [])
        if high == -1:
            raise PatternError("missing terminating ] for character class")
        sets.check_range(low, high)
        assert low is not None and high is not None
        ranges.append((low, high))

    def item(self, ranges: list[Range], extras: list[str]) -> int | None:
        """The code point that comes next; None for a class, which is added to the set, and -1 for nothing."""
        pattern = self.pattern
        if found := re.compile(r"\[([:.=])(\^?)([^]\\]*?)\1\]").match(pattern, self.pos):
            self.pos = found.end()
            if found[1] != ":":
                raise PatternError("POSIX collating elements are not supported")
            members = sets.CLASSES.get(found[3])
            if members is None:
                raise PatternError("unknown POSIX class name")
            if self.style.unicode:
                extras.append(found[0])
            else:
                ranges += sets.complement(members) if found[2] else members
            return None
        if pattern[self.pos] != "\\":
            self.pos += 1
            return ord(pattern[self.pos - 1])
        if self.pos + 1 >= len(pattern):
            raise PatternError("\\ at end of pattern")
        return self.set_escape(ranges, extras)

    def set_escape(self, ranges: list[Range], extras: list[str]) -> int | None:
        pattern, char = self.pattern, self.pattern[self.pos + 1]
        if char == "Q":
            stop = pattern.find("\\E", self.pos + 2)
            text = pattern[self.pos + 2 : stop if stop >= 0 else len(pattern)]
            self.pos = stop + 2 if stop >= 0 else len(pattern)
            ranges += [(ord(quoted), ord(quoted)) for quoted in text]
            return -1
        if char == "E":
            self.pos += 2
            return -1
        if char == "b":
            self.pos += 2
            return 8
        code = self.code()
        if code is not None:
            return code
        if char.isdigit():
            self.pos += 2
            return ord(char)
        self.pos += 2
        lower = char.lower()
        if lower in ESCAPES:
            if self.style.unicode and lower in "dws":
                extras.append("\\" + char)
            else:
                ranges += ESCAPES[lower] if char == lower else sets.complement(ESCAPES[lower])
            return None
        if lower == "p":
            name = self.property_name(char == "P")
            extras.append(name[1:-1] if name.startswith("[") else name)
            return None
        if char in "RXB":
            raise PatternError("escape sequence is invalid in character class")
        if char == "N":
            raise PatternError("\\N is not supported in a class")
        if char in "FLlUu":
            raise PatternError(UNSUPPORTED)
        return ord(char)
