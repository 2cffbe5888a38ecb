"""How a key compares: numbers, sizes, months, versions, folded text; each becomes a value that Python orders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from ramet.commands.sort.keys import BLANKS

_NUMERIC = re.compile(r"[ \t\n]*(-?)(\d*)(?:\.(\d*))?")
_SMALL = re.compile(r"[ \t\n]*(-?\d{1,15}(?:\.\d{1,6})?|-?\.\d{1,6})(?![\d.])")


def numeric_key(text: str) -> Any:
    """The value of a leading decimal number; exact, so that long numbers never compare equal by rounding."""
    found = _NUMERIC.match(text)
    if found is None:
        return 0
    sign, whole, fraction = found.groups()
    if not whole and not fraction:
        return 0
    if not fraction:
        return int(sign + whole)
    fraction = fraction.rstrip("0")
    if not fraction:
        return int(sign + (whole or "0"))
    if len(whole) + len(fraction) <= 15:
        return float(f"{sign}{whole or '0'}.{fraction}")
    from fractions import Fraction

    return Fraction(f"{sign}{whole or '0'}.{fraction}")


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


_SUFFIX = re.compile(r"(?:\.[A-Za-z~][A-Za-z0-9~]*)*\Z")
_DIGITS = re.compile(r"([0-9]+)")


def _version_order() -> bytes:
    """Characters as they are ordered outside of numbers: `~`, then the end of a part (1), then letters, then others.

    Digits stay what they are. There is one place too few, which a newline shares with a tab.
    """
    letters = [*range(65, 91), *range(97, 123)]
    others = [c for c in range(256) if c not in letters and chr(c) not in "0123456789~\n"]
    places = [place for place in range(2, 256) if not 48 <= place <= 57]
    table = bytearray(range(256))
    for place, char in zip(places, letters + others, strict=True):
        table[char] = place
    table[ord("~")], table[ord("\n")] = 0, table[ord("\t")]
    return bytes(table)


_VERSION_ORDER = _version_order()
_WIDE_ORDER = dict(enumerate(_VERSION_ORDER))
_END = "\1"


def version_key(text: str) -> tuple[Any, ...]:
    """GNU's version order: special names first, then the text without its suffix, then all of it."""
    if not text:
        return (0,)
    if text == ".":
        return (1,)
    if text == "..":
        return (2,)
    hidden = text.startswith(".")
    runs = _version_runs(text)
    if "." not in text:
        return (4, runs, runs)
    found = _SUFFIX.search(text, 1 if hidden else text.index("."))
    assert found is not None
    prefix = text[: found.start()] if 0 < found.start() < len(text) else ""
    return (3 if hidden else 4, _version_runs(prefix) if prefix else runs, runs)


def _version_runs(text: str) -> tuple[Any, ...]:
    """Texts and numbers in turn; a number is its digits behind their count, which orders numbers of any length."""
    try:
        ordered = text.encode("latin-1").translate(_VERSION_ORDER).decode("latin-1")
    except UnicodeEncodeError:
        ordered = text.translate(_WIDE_ORDER)
    parts = _DIGITS.split(ordered)
    if parts[-1]:
        parts += ["", ""]  # where a number could follow, none is zero
    parts[::2] = [part + _END for part in parts[::2]]
    parts[1::2] = [chr(len(part)) + part for part in [part.lstrip("0") for part in parts[1::2]]]
    return tuple(parts)


def _random_key(salt: bytes) -> Callable[[str], bytes]:
    return lambda text: hashlib.md5(salt + text.encode("latin-1")).digest()


_NOT_DICTIONARY = {c: None for c in range(256) if not (chr(c).isalnum() and c < 128) and chr(c) not in BLANKS}
_NOT_PRINTING = {c: None for c in range(256) if not 32 <= c < 127}
_UPPER = {c: c - 32 for c in range(97, 123)}


def comparer(ordering: frozenset[str], salt: bytes) -> Callable[[str], Any] | None:
    """From a region to something that compares as the ordering says; None when the text itself does."""
    if "n" in ordering:
        return numeric_key
    if "g" in ordering:
        return general_key
    if "h" in ordering:
        return human_key
    if "M" in ordering:
        return month_key
    table: dict[int, int | None] = {}
    if "f" in ordering:
        table |= _UPPER
    if "d" in ordering:
        table |= _NOT_DICTIONARY
    if "i" in ordering:
        table |= _NOT_PRINTING
    final = version_key if "V" in ordering else _random_key(salt) if "R" in ordering else None
    if not table:
        return final
    if set(table) == set(_UPPER) and final is None:
        return lambda text: text.upper() if text.isascii() else text.translate(table)
    if final is None:
        return lambda text: text.translate(table)
    return lambda text: final(text.translate(table))
