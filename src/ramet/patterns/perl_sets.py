"""Character sets of Perl-style patterns as ranges of code points."""

from __future__ import annotations

from typing import NamedTuple

from ramet.patterns.errors import PatternError

Range = tuple[int, int]
LAST = 0x10FFFF
NEWLINE: Range = (10, 10)
NO_UTF8: Range = (0xDC80, 0xDCFF)
"""Bytes that are no UTF-8 are these in decoded text; no Perl pattern matches them."""
FOLDED: tuple[Range, ...] = ((0x17F, 0x17F), (0x212A, 0x212A))
"""Characters beyond ASCII that equal ASCII letters if case is ignored."""

_DIGIT: tuple[Range, ...] = ((48, 57),)
_UPPER: tuple[Range, ...] = ((65, 90),)
_LOWER: tuple[Range, ...] = ((97, 122),)
_SPACE: tuple[Range, ...] = ((9, 13), (32, 32))
_ALNUM = _DIGIT + _UPPER + _LOWER
_WORD = (*_ALNUM, (95, 95))
_BLANK: tuple[Range, ...] = (
    (9, 9),
    (32, 32),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x180E, 0x180E),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_VERTICAL: tuple[Range, ...] = ((10, 13), (0x85, 0x85), (0x2028, 0x2029))

CLASSES: dict[str, tuple[Range, ...]] = {
    "alnum": _ALNUM,
    "alpha": _UPPER + _LOWER,
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": _LOWER,
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": _SPACE,
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGIT, (65, 70), (97, 102)),
}
ESCAPES: dict[str, tuple[Range, ...]] = {"d": _DIGIT, "w": _WORD, "s": _SPACE, "h": _BLANK, "v": _VERTICAL}
"""What a letter after a backslash stands for; in upper case, for everything else."""


class Members(NamedTuple):
    """What stands between brackets: ranges, and what only the engine can tell, in its own spelling."""

    ranges: list[Range]
    extras: list[str]


def complement(ranges: tuple[Range, ...]) -> list[Range]:
    out: list[Range] = []
    at = 0
    for low, high in sorted(ranges + FOLDED):
        if at < low:
            out.append((at, low - 1))
        at = max(at, high + 1)
    if at <= LAST:
        out.append((at, LAST))
    return out


def without(ranges: list[Range], never: tuple[Range, ...]) -> list[Range]:
    """The ranges without the code points of `never`."""
    for low, high in never:
        left: list[Range] = []
        for start, stop in ranges:
            if stop < low or start > high:
                left.append((start, stop))
                continue
            if start < low:
                left.append((start, low - 1))
            if stop > high:
                left.append((high + 1, stop))
        ranges = left
    return ranges


def point(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def spelled(members: Members, negated: bool, never: tuple[Range, ...], last: int) -> str:
    """The set for an engine whose characters end at `last`."""
    ranges, extras = members
    if negated:
        return f"[^{_listed([*ranges, *never], last)}{''.join(extras)}]"
    if not extras:
        listed = _listed(without(ranges, never), last)
        # Nothing is left of the set: no character is in it.
        return f"[{listed}]" if listed else f"[^\\x00-{point(last)}]"
    inside = f"[{_listed(ranges, last)}{''.join(extras)}]"
    return f"(?:(?![{_listed(list(never), last)}]){inside})" if never else inside


def _listed(ranges: list[Range], last: int) -> str:
    return "".join(
        point(low) if low == high else f"{point(low)}-{point(min(high, last))}" for low, high in ranges if low <= last
    )


def check_range(low: int | None, high: int | None) -> None:
    """`None` stands for a class, which is no end of a range."""
    if low is None or high is None:
        raise PatternError("invalid range in character class")
    if low > high:
        raise PatternError("range out of order in character class")
