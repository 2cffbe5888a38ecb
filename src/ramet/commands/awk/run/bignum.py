"""`awk -M`: whole numbers of any size. Numbers that are not whole stay as precise as always.

A whole number is a float that knows more: to the rest of awk it is a number like any other, and where it is added,
compared or written the exact value counts.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from ramet.commands.awk.run.numerals import Numerals
from ramet.commands.awk.run.values import Value
from ramet.commands.awk.syntax.tree import AwkError

_MOST_BITS = 1 << 18
"""What is larger than this is refused: writing it alone would take too long."""
_WHOLE = re.compile(r"[ \t\n\r\f\v]*([+-]?\d+)(?![\d.eE])")


class Whole(float):
    """A whole number; the float that it is as well is as close to it as one can be."""

    __slots__ = ("exact",)
    exact: int

    def __new__(cls, exact: int) -> Whole:
        if exact.bit_length() > _MOST_BITS:
            raise AwkError("fatal: number is too large")
        try:
            made = super().__new__(cls, exact)
        except OverflowError:
            made = super().__new__(cls, math.inf if exact > 0 else -math.inf)
        made.exact = exact
        return made

    # Values are told apart by their class; this one passes for the number that it is.
    __class__ = property(lambda self: float)

    def __int__(self) -> int:
        return self.exact

    __trunc__ = __int__

    def __hash__(self) -> int:
        return hash(self.exact)

    def __add__(self, other: float) -> float:
        right = exact(other)
        return float.__add__(self, other) if right is None else Whole(self.exact + right)

    __radd__ = __add__

    def __sub__(self, other: float) -> float:
        right = exact(other)
        return float.__sub__(self, other) if right is None else Whole(self.exact - right)

    def __rsub__(self, other: float) -> float:
        left = exact(other)
        return float.__rsub__(self, other) if left is None else Whole(left - self.exact)

    def __mul__(self, other: float) -> float:
        right = exact(other)
        return float.__mul__(self, other) if right is None else Whole(_product(self.exact, right))

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> float:
        right = exact(other)
        return float.__truediv__(self, other) if right is None else _quotient(self.exact, right)

    def __rtruediv__(self, other: float) -> float:
        left = exact(other)
        return float.__rtruediv__(self, other) if left is None else _quotient(left, self.exact)

    def __pow__(self, other: float, modulo: None = None) -> Any:
        right = exact(other)
        if right is None or right < 0:
            return float.__pow__(float(self), float(other))
        if self.exact.bit_length() * right > 2 * _MOST_BITS:
            raise AwkError("fatal: number is too large")
        return Whole(self.exact**right)

    def __rpow__(self, other: float, modulo: None = None) -> Any:
        left = exact(other)
        return float.__pow__(float(other), float(self)) if left is None else Whole(left) ** self

    def __neg__(self) -> Whole:
        return Whole(-self.exact)

    def __bool__(self) -> bool:
        return self.exact != 0

    def __eq__(self, other: object) -> bool:
        right = exact(other)
        return float.__eq__(self, other) if right is None else self.exact == right

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: float) -> bool:
        right = exact(other)
        return float.__lt__(self, other) if right is None else self.exact < right

    def __le__(self, other: float) -> bool:
        return self < other or self == other

    def __gt__(self, other: float) -> bool:
        right = exact(other)
        return float.__gt__(self, other) if right is None else self.exact > right

    def __ge__(self, other: float) -> bool:
        return self > other or self == other


def exact(value: object) -> int | None:
    """The whole number that a value is, if it is one."""
    if type(value) is Whole:
        return value.exact
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def _product(left: int, right: int) -> int:
    if left.bit_length() + right.bit_length() > 2 * _MOST_BITS:
        raise AwkError("fatal: number is too large")
    return left * right


def _quotient(left: int, right: int) -> float:
    if left % right == 0:
        return Whole(left // right)
    try:
        return left / right
    except OverflowError:
        return math.inf if (left > 0) == (right > 0) else -math.inf


def modulo(left: float, right: float, where: str = " in `%'") -> float:
    if right == 0.0:
        raise AwkError(f"fatal: division by zero attempted{where}")
    a, b = exact(left), exact(right)
    if a is None or b is None:
        return math.fmod(left, right) if math.isfinite(left) else -math.nan
    return Whole(abs(a) % abs(b) * (-1 if a < 0 else 1))


def trunc(value: float) -> float:
    known = exact(value)
    if known is not None:
        return Whole(known)
    return Whole(math.trunc(value)) if math.isfinite(value) else value


def bits(name: str, *values: float) -> float:
    if len(values) < 2 and name != "compl":
        raise AwkError(f"fatal: {name}: called with less than two arguments")
    numbers = [int(value) for value in values]
    if min(numbers) < 0:
        raise AwkError(f"fatal: {name}: negative values are not allowed")
    if name == "compl":
        return Whole(~numbers[0])
    if name in ("lshift", "rshift"):
        if name == "lshift" and numbers[1] > _MOST_BITS:
            raise AwkError("fatal: number is too large")
        return Whole(numbers[0] << numbers[1] if name == "lshift" else numbers[0] >> numbers[1])
    result = numbers[0]
    for number in numbers[1:]:
        result = {"and": result & number, "or": result | number, "xor": result ^ number}[name]
    return Whole(result)


def digits(number: int) -> str:
    """A whole number in decimal digits, however many; Python's own way has a limit."""
    return str(number) if number.bit_length() < 8192 else str(Decimal(number))


class BigNumerals(Numerals):
    """Numbers of the input that are whole are exact."""

    def __init__(self) -> None:
        super().__init__(_read)


def _read(text: str) -> tuple[float, bool] | None:
    found = _WHOLE.match(text)
    if found is None:
        return None
    number = int(found[1]) if len(found[1]) < 4000 else int(Decimal(found[1]))
    return Whole(number), not text[found.end() :].strip(" \t\n\r\f\v")


def literal(text: str) -> Value:
    """A number of the program."""
    if text[:2] in ("0x", "0X"):
        return Whole(int(text, 16))
    if text.isdecimal():
        return Whole(int(text, 8) if text[0] == "0" and not set(text) & {"8", "9"} else int(Decimal(text)))
    number = float(text)
    return Whole(int(Decimal(text))) if number.is_integer() and abs(number) < 1e300 else number


def strtonum(value: Value) -> float:
    if not isinstance(value, str):
        return _NUMERALS.num(value)
    found = re.match(r"0[xX]([0-9a-fA-F]+)|0([0-7]+)(?![0-9.eE])", value)
    if found is not None:
        return Whole(int(found[1], 16) if found[1] else int(found[2], 8))
    return _NUMERALS.to_number(value)


_NUMERALS = BigNumerals()
NAMES = {"modulo": modulo, "trunc": trunc, "bits": bits, "strtonum": strtonum}
"""What the program calls instead of the functions of the same names."""
