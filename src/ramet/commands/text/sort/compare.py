"""Comparison keys of sort: numbers, sizes, months, versions and folded text as values that Python orders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ramet.commands.text.sort.keys import BLANKS

_NUMERIC = re.compile(r"[ \t\n]*(-?)(\d*)(?:\.(\d*))?")
_SMALL = re.compile(r"[ \t\n]*(-?\d{1,15}(?:\.\d{1,6})?|-?\.\d{1,6})(?![\d.])")


_LONG = 4000
"""Digits from which on a number stays text: int() takes quadratic time and has a limit."""


def numeric_key(text: str) -> Any:
    """Return the leading decimal number, exactly: long numbers never compare equal by rounding."""
    if len(text) <= _LONG and text.isdigit() and text.isascii():
        return int(text)
    found = _NUMERIC.match(text)
    if found is None:
        return 0
    sign, whole, fraction = found.groups()
    if not whole and not fraction:
        return 0
    if len(whole) > _LONG:
        return exact(bool(sign), whole, fraction or "")
    if not fraction:
        return int(sign + whole)
    fraction = fraction.rstrip("0")
    if not fraction:
        return int(sign + (whole or "0"))
    if len(whole) + len(fraction) <= 15:
        return float(f"{sign}{whole or '0'}.{fraction}")
    return exact(bool(sign), whole, fraction)


def exact(minus: bool, whole: str, fraction: str) -> Any:
    """Return a number of any length, as an int if it is short."""
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if not fraction and len(whole) <= _LONG:
        return -int(whole or "0") if minus else int(whole or "0")
    return Exact(minus, len(whole), whole + fraction)


class Exact:
    """A number by its digits, comparable with int and float."""

    __slots__ = ("_place", "digits", "minus", "size")

    def __init__(self, minus: bool, size: int, digits: str) -> None:
        self.minus, self.size, self.digits = minus, size, digits
        """Sign, number of digits before the point, and all digits."""
        # A tuple that orders like the number; a negative one ends in a character after every digit.
        self._place = (-1, -size, digits.translate(_OPPOSITE) + ":") if minus else (1, size, digits)

    def __lt__(self, other: Any) -> bool:
        return self._place < _exactly(other)._place

    def __gt__(self, other: Any) -> bool:
        return self._place > _exactly(other)._place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Exact, int, float)) and self._place == _exactly(other)._place

    def __neg__(self) -> Exact:
        return Exact(not self.minus, self.size, self.digits)

    __hash__ = None  # type: ignore[assignment]


_OPPOSITE = str.maketrans("0123456789", "9876543210")


def _exactly(number: Any) -> Exact:
    if isinstance(number, Exact):
        return number
    # A float here has at most fifteen digits, which its repr shows exactly.
    whole, _, fraction = f"{abs(Decimal(repr(number))):f}".partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    return Exact(number < 0, len(whole), whole + fraction)


_GENERAL = re.compile(
    r"\s*[-+]?(?:inf(?:inity)?|nan|0[xX][0-9a-fA-F.]+(?:[pP][-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)", re.I
)


def general_key(text: str) -> tuple[int, float]:
    """Conversion failures sort first, then NaNs, then numbers."""
    found = _GENERAL.match(text)
    if found is None:
        return (0, 0.0)
    word = found[0].strip()
    number = float.fromhex(word) if "x" in word.lower() else float(word)
    return (1, 0.0) if number != number else (2, number)


_HUMAN = re.compile(r"[ \t\n]*(-?)(\d*)(?:\.(\d*))?([KkMGTPEZYRQ]?)")
_ORDER = {c: i for i, c in enumerate("KMGTPEZYRQ", 1)} | {"k": 1}


def human_key(text: str) -> tuple[int, Any]:
    found = _HUMAN.match(text)
    assert found is not None
    number = numeric_key(found[0])
    order = _ORDER.get(found[4], 0) if number else 0
    return (-order if found[1] and number else order, number)


_MONTHS = {m: i for i, m in enumerate(re.findall("...", "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"), 1)}


def month_key(text: str) -> int:
    return _MONTHS.get(text.lstrip(" \t\n")[:3].upper(), 0)


_SUFFIX = re.compile(r"(?<=.)(?:\.[A-Za-z~][A-Za-z0-9~]*)+$", re.M)
"""Extensions of a non-empty name; works on many names, one per line."""
_DIGITS = re.compile(r"([0-9]+)")
_END = "\1"
"""Ends a text before a number: only `~` orders before it."""
_LAST = "\0010\1"
"""Ends a name that ends with a text: a missing number counts as zero."""
_SPECIAL = {"": "\0", ".": "\1", "..": "\2"}


def _version_order() -> dict[int, int]:
    """Order of characters outside numbers: `~`, the end of a text (1), letters, the rest.

    Digits keep their codes. The code of the newline stays free as the separator of names; in a name it counts as a tab.
    That leaves one code too few for bytes, so the last character gets code 256.
    """
    letters = [*range(65, 91), *range(97, 123)]
    others = [c for c in range(256) if c not in letters and chr(c) not in "0123456789~\n"]
    places = [place for place in range(2, 257) if not 48 <= place <= 57 and place != 10]
    order = {char: place for place, char in zip(places, letters + others, strict=True)}
    return {**order, ord("~"): 0, ord("\n"): order[ord("\t")]}


_WIDE_ORDER = _version_order()
_BYTE_ORDER = bytes([_WIDE_ORDER.get(c, c) & 0xFF if c != 10 else 10 for c in range(256)])


class _Counted(dict[str, str]):
    """Digits that compare as numbers: prefixed by their count."""

    def __missing__(self, digits: str) -> str:
        number = digits.lstrip("0")
        made = f"{_END}{chr(48 + len(number))}{number}"
        if len(self) < 100_000:
            self[digits] = made
        return made


_COUNTED = _Counted()


def version_key(text: str) -> str:
    """GNU's version order: special names first, then the text without its suffix, then all of it."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    text = text.replace("\n", "\t")
    bare = _SUFFIX.sub("", text)
    whole = _counted(text.translate(_WIDE_ORDER)) + (_END if "0" <= text[-1] <= "9" else _LAST)
    if len(bare) == len(text):
        return _kind(text) + whole + whole
    return _kind(text) + _counted(bare.translate(_WIDE_ORDER)) + (_END if "0" <= bare[-1] <= "9" else _LAST) + whole


def version_keys(texts: list[str]) -> list[str]:
    """Return the version keys of many texts, computed on the joined text."""
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1 or not joined.isascii():
        return list(map(version_key, texts))
    wholes = _counted_lines(joined, texts)
    bare = _SUFFIX.sub("", joined)
    bares = wholes if len(bare) == len(joined) else _counted_lines(bare, bare.split("\n"))
    keys = [_kind(text) + a + b for text, a, b in zip(texts, bares, wholes, strict=True)]
    if not _SPECIAL.keys().isdisjoint(texts):
        keys = [_SPECIAL.get(text, key) for text, key in zip(texts, keys, strict=True)]
    return keys


def _kind(text: str) -> str:
    """Hidden names come before the others."""
    return "\3" if text[:1] == "." else "\4"


def _counted_lines(joined: str, texts: list[str]) -> list[str]:
    made = _counted(joined.encode().translate(_BYTE_ORDER).decode("latin-1")).split("\n")
    return [key + _END if "0" <= text[-1:] <= "9" else key + _LAST for text, key in zip(texts, made, strict=True)]


def _counted(ordered: str) -> str:
    parts = _DIGITS.split(ordered)
    parts[1::2] = map(_COUNTED.__getitem__, parts[1::2])
    return "".join(parts)


def _random_key(salt: bytes) -> Callable[[str], bytes]:
    return lambda text: hashlib.md5(salt + text.encode("latin-1") + b"\0").digest()


_NOT_DICTIONARY = {c: None for c in range(256) if not (chr(c).isalnum() and c < 128) and chr(c) not in BLANKS}
_NOT_PRINTING = {c: None for c in range(256) if not 32 <= c < 127}
_UPPER = {c: c - 32 for c in range(97, 123)}


def comparer(ordering: frozenset[str], salt: bytes) -> Callable[[str], Any] | None:
    """Return a function from a region to its comparison key; None if the text itself is the key."""
    if "n" in ordering:
        return numeric_key
    if "g" in ordering:
        return general_key
    if "h" in ordering:
        return human_key
    if "M" in ordering:
        return month_key
    letters = letters_of(ordering)
    final = version_key if "V" in ordering else _random_key(salt) if "R" in ordering else None
    if letters is None or final is None:
        return letters or final
    return lambda text: final(letters(text))


def letters_of(ordering: frozenset[str]) -> Callable[[str], str] | None:
    """Return a function that folds and drops characters as -f, -d and -i ask; None without these."""
    table: dict[int, int | None] = {}
    if "f" in ordering:
        table |= _UPPER
    if "d" in ordering:
        table |= _NOT_DICTIONARY
    if "i" in ordering:
        table |= _NOT_PRINTING
    if not table:
        return None
    if set(table) == set(_UPPER):
        return lambda text: text.upper() if text.isascii() else text.translate(table)
    return lambda text: text.translate(table)
