"""`-k` of sort: parse a key definition and extract its part of a line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ramet.commands.framework.command import UsageError, quote
from ramet.commands.text.sort.options import LETTERS


@dataclass(frozen=True, slots=True)
class Key:
    """One `-k`: where it begins and ends, and how it compares. Positions are 1-based; 0 means the field's end."""

    first_field: int
    first_char: int
    last_field: int | None
    last_char: int
    ordering: frozenset[str]
    skip_start: bool
    skip_end: bool


Line = str
KeyOf = Callable[[Line], Any]


def parse_key(text: str, defaults: frozenset[str]) -> Key:
    found = re.fullmatch(r"(\d*)(?:\.(\d*))?([A-Za-z]*)(?:,(\d*)(?:\.(\d*))?([A-Za-z]*))?(.*)", text, re.S)
    assert found is not None
    f1, c1, o1, f2, c2, o2, junk = found.groups()
    if not f1:
        raise UsageError(f"invalid number at field start: invalid count at start of {quote(text)}", hint=False)
    if int(f1) == 0:
        raise UsageError(f"field number is zero: invalid field specification {quote(text)}", hint=False)
    if c1 is not None and not c1:
        raise UsageError(
            f"invalid number after '.': invalid count at start of {quote(text[len(f1) + 1 :])}", hint=False
        )
    if c1 is not None and int(c1) == 0:
        raise UsageError(f"character offset is zero: invalid field specification {quote(text)}", hint=False)
    if f2 is not None and not f2:
        raise UsageError(
            f"invalid number after ',': invalid count at start of {quote(text.partition(',')[2])}", hint=False
        )
    if f2 is not None and int(f2) == 0:
        raise UsageError(f"field number is zero: invalid field specification {quote(text)}", hint=False)
    letters = set(o1) | set(o2 or "")
    if junk or letters - set(LETTERS):
        raise UsageError(f"stray character in field spec: invalid field specification {quote(text)}", hint=False)
    own = bool(letters)
    ordering = frozenset(letters - {"b"}) if own else defaults - {"b"}
    skip_start = "b" in o1 if own else "b" in defaults
    skip_end = "b" in (o2 or "") if own else "b" in defaults
    return Key(int(f1), int(c1 or 1), None if f2 is None else int(f2), int(c2 or 0), ordering, skip_start, skip_end)


def check_orderings(ordering: frozenset[str] | set[str]) -> None:
    if len(ordering & set("ghMn")) + bool(ordering & set("RVdi")) > 1:
        # The message names -d only, which ignores more than -i.
        shown_ = ordering - {"i"} if "d" in ordering else ordering
        raise UsageError(f"options '-{''.join(c for c in 'dfghiMnRV' if c in shown_)}' are incompatible", hint=False)


BLANKS = " \t"


def region(key: Key, separator: str | None) -> Callable[[Line], Line]:
    """Return a function from a line to the text that the key covers."""
    first, char = key.first_field - 1, key.first_char - 1
    if separator is None:
        return _blank_region(key)
    sep = separator
    if char == 0 and not key.skip_start and key.last_char == 0:
        if key.last_field is None:
            return (lambda line: line) if first == 0 else lambda line: _tail(line, sep, first)
        last = key.last_field
        if last == key.first_field:
            if first == 0:
                return lambda line: line.partition(sep)[0]

            def one(line: Line) -> Line:
                parts = line.split(sep, first + 1)
                return parts[first] if len(parts) > first else ""

            return one
        return lambda line: sep.join(line.split(sep, last)[first:last])

    def general(line: Line) -> Line:
        parts = line.split(sep)
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + len(part) + 1)
        begin = min(starts[first], len(line)) if first < len(parts) else len(line)
        if key.skip_start:
            begin = _skip(line, begin)
        begin = min(begin + char, len(line))
        return line[begin : max(begin, _end(line, key, starts, len(parts)))]

    return general


def _end(line: Line, key: Key, starts: list[int], count: int) -> int:
    if key.last_field is None:
        return len(line)
    if key.last_field > count:
        return len(line)
    if key.last_char == 0:
        return min(starts[key.last_field] - 1, len(line))
    at = starts[key.last_field - 1]
    if key.skip_end:
        at = _skip(line, at)
    return min(at + key.last_char, len(line))


def _tail(line: Line, sep: str, first: int) -> Line:
    parts = line.split(sep, first)
    return parts[first] if len(parts) > first else ""


def _skip(line: Line, at: int) -> int:
    while (at < len(line) and line[at] in BLANKS) or (at < len(line) and line[at] == "\n"):
        at += 1
    return at


_FIELD = re.compile(r"[ \t\n]*[^ \t\n]*")


_MOST_FIELDS = 1 << 20
"""More fields than any line has: a key after them is empty."""


def _fields(count: int) -> re.Pattern[str]:
    """Compile a pattern of `count` blank-separated fields with their leading blanks."""
    if count > _MOST_FIELDS:
        return re.compile(r"[\s\S]*")
    return re.compile(rf"(?:[ \t\n]*[^ \t\n]*){{{count}}}")


def _blank_region(key: Key) -> Callable[[Line], Line]:
    """Fields separated by the empty string between a non-blank and a blank: a field owns its leading blanks."""
    first, char = key.first_field - 1, key.first_char - 1
    skip_fields = _fields(first)
    simple = char == 0 and not key.skip_start
    if simple and key.last_field is None:
        if first == 0:
            return lambda line: line
        return lambda line: line[skip_fields.match(line).end() :]  # type: ignore[union-attr]
    if simple and key.last_char == 0 and key.last_field is not None:
        if key.last_field < key.first_field:
            return lambda line: ""
        count = key.last_field - first
        span = re.compile(f"{_fields(first).pattern}({_fields(count).pattern})")
        return lambda line: span.match(line)[1]  # type: ignore[index]
    to_last = _fields(key.last_field or 0)
    before_last = _fields(max(0, (key.last_field or 1) - 1))

    def general(line: Line) -> Line:
        begin = skip_fields.match(line).end()  # type: ignore[union-attr]
        if key.skip_start:
            begin = _skip(line, begin)
        begin = min(begin + char, len(line))
        if key.last_field is None:
            return line[begin:]
        if key.last_char == 0:
            end = to_last.match(line).end()  # type: ignore[union-attr]
        else:
            end = before_last.match(line).end()  # type: ignore[union-attr]
            if key.skip_end:
                end = _skip(line, end)
            end = min(end + key.last_char, len(line))
        return line[begin : max(begin, end)]

    return general
