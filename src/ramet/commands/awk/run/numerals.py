"""Parse octal and hexadecimal input (-n), or all numbers of C's strtod (--posix)."""

from __future__ import annotations

import re
from collections.abc import Callable

from ramet.commands.awk.run.values import Array, Field, Value, looks_numeric, number_text, to_number
from ramet.commands.awk.syntax.dialect import Dialect
from ramet.commands.awk.syntax.tree import AwkError

Reader = Callable[[str], tuple[float, bool] | None]
"""Return the number at the start of a text and whether it is all of the text; None for ordinary numbers."""

_BLANKS = " \t\n\r\f\v"
_BASED = re.compile(r"0[xX]([0-9a-fA-F]+)|0([0-7]+)(?![0-9.eE])")
_STRTOD = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP]([+-]?\d+))?|(inf(?:inity)?|nan))",
    re.IGNORECASE,
)


def _based(text: str) -> tuple[float, bool] | None:
    cut = text.strip(_BLANKS)
    found = _BASED.match(cut)
    if found is None:
        return None
    return float(int(found[1], 16) if found[1] else int(found[2], 8)), found.end() == len(cut)


def _strtod(text: str) -> tuple[float, bool] | None:
    cut = text.strip(_BLANKS)
    found = _STRTOD.match(cut)
    if found is None:
        return None
    number = float(found[4]) if found[4] else float.fromhex(f"0x{found[2]}p{found[3] or 0}")
    return -number if found[1] == "-" else number, found.end() == len(cut)


class Numerals:
    """The functions of `values` that depend on what a number looks like."""

    def __init__(self, read: Reader) -> None:
        self._read = read

    def to_number(self, text: Value) -> float:
        if isinstance(text, Array):
            raise AwkError("fatal: attempt to use array in a scalar context")
        found = self._read(text)
        return to_number(text) if found is None else found[0]

    def looks_numeric(self, text: str) -> float | None:
        found = self._read(text)
        if found is None:
            return looks_numeric(text)
        return found[0] if found[1] else None

    def num(self, value: Value) -> float:
        if value.__class__ is float:
            number: float = value
            return number
        return 0.0 if value is None else self.to_number(value)

    def truth(self, value: Value) -> bool:
        if value.__class__ is float:
            return bool(value != 0.0)
        if value is None:
            return False
        number = self.looks_numeric(value) if value.__class__ is Field else None
        return value != "" if number is None else number != 0.0

    def compare(self, left: Value, right: Value, form: str) -> int:
        a, b = self._as_number(left), self._as_number(right)
        if a is not None and b is not None:
            return -1 if a < b else 1 if a > b else 0
        x = number_text(left, form) if left.__class__ is float else left or ""
        y = number_text(right, form) if right.__class__ is float else right or ""
        return -1 if x < y else 1 if x > y else 0

    def _as_number(self, value: Value) -> float | None:
        if value.__class__ is float:
            number: float = value
            return number
        if value is None:
            return 0.0
        return self.looks_numeric(value) if value.__class__ is Field else None


def numerals_of(dialect: Dialect) -> Numerals | None:
    """Return how the numbers of a program are read, where it is not as always."""
    if dialect.plain_numbers:
        return None
    return Numerals(_based if dialect.nondecimal else _strtod)
