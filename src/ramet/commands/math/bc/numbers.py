"""Numbers of bc: scaled integers that truncate, and the functions of the math library."""

from __future__ import annotations

import decimal
import math
import re
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from ramet.core.errors import LimitExceeded

LARGEST: Final = 200_000
"""Digits of a number: one multiplication of more would block the event loop."""
MOST_PLACES: Final = LARGEST // 2
"""Digits after the point: a square root works with twice as many."""
if 0 < sys.get_int_max_str_digits() < LARGEST:
    sys.set_int_max_str_digits(LARGEST)  # Python's default limit is 4300 digits
_BITS: Final = math.ceil(LARGEST * math.log2(10))
_SHORT: Final = 4096
"""Bits of a number that str() converts quickly; its time is quadratic."""

Check = Callable[[], object]
"""Raises when the deadline has passed; for work in threads."""


class Spot(NamedTuple):
    """Position for errors: the function and the byte offset in GNU's code."""

    function: str
    at: int


class Trouble(Exception):
    """A runtime error: ends the current line."""

    def __init__(self, text: str, spot: Spot | None = None) -> None:
        super().__init__(text)
        self.text, self.spot = text, spot


class BcNumber(NamedTuple):
    """`digits` * 10 ** -`scale`; the sign is in the digits."""

    digits: int
    scale: int = 0

    def at(self, scale: int) -> int:
        """Return the digits at another scale, truncated."""
        if scale >= self.scale:
            return self.digits * int(10 ** (scale - self.scale))
        cut = int(10 ** (self.scale - scale))
        return -(-self.digits // cut) if self.digits < 0 else self.digits // cut

    @property
    def truth(self) -> bool:
        return self.digits != 0


ZERO, ONE = BcNumber(0), BcNumber(1)


def _fits(bits: int) -> None:
    if bits > _BITS:
        raise LimitExceeded("digits of a number", LARGEST)


def add(a: BcNumber, b: BcNumber) -> BcNumber:
    scale = max(a.scale, b.scale)
    return BcNumber(a.at(scale) + b.at(scale), scale)


def sub(a: BcNumber, b: BcNumber) -> BcNumber:
    scale = max(a.scale, b.scale)
    return BcNumber(a.at(scale) - b.at(scale), scale)


def mul(a: BcNumber, b: BcNumber, scale: int) -> BcNumber:
    _fits(a.digits.bit_length() + b.digits.bit_length())
    full = a.scale + b.scale
    kept = min(full, max(scale, a.scale, b.scale))
    return BcNumber(BcNumber(a.digits * b.digits, full).at(kept), kept)


def div(a: BcNumber, b: BcNumber, scale: int) -> BcNumber:
    if not b.digits:
        raise Trouble("Divide by zero")
    numerator, denominator = abs(a.digits) * 10 ** (scale + b.scale), abs(b.digits) * 10**a.scale
    quotient = numerator // denominator
    return BcNumber(-quotient if (a.digits < 0) != (b.digits < 0) else quotient, scale)


def mod(a: BcNumber, b: BcNumber, scale: int) -> BcNumber:
    if not b.digits:
        raise Trouble("Modulo by zero")
    quotient = div(a, b, scale)
    full = max(scale + b.scale, a.scale)
    product = BcNumber(quotient.digits * b.digits, quotient.scale + b.scale)
    return BcNumber(sub(a, product).at(full), full)


def power(a: BcNumber, b: BcNumber, scale: int) -> BcNumber:
    exponent = b.at(0)
    if exponent == 0:
        return ONE
    if exponent > 0:
        _fits((a.digits.bit_length() - 1) * exponent)
        _fits(a.scale * exponent * 3)
        full = a.scale * exponent
        kept = min(full, max(scale, a.scale))
        return BcNumber(BcNumber(a.digits**exponent, full).at(kept), kept)
    _fits(a.scale * -exponent * 3)
    if not a.digits:
        raise Trouble("divide by zero")
    return div(ONE, power(a, BcNumber(-exponent), max(scale, a.scale * -exponent)), scale)


def root(a: BcNumber, scale: int) -> BcNumber:
    if a.digits < 0:
        raise Trouble("Square root of a negative number")
    kept = max(scale, a.scale)
    return BcNumber(math.isqrt(a.at(2 * kept)), kept)


# ------------------------------------------------------------------------------------------------ the math library


def _quotient(a: int, b: int) -> int:
    """Integer division that goes towards zero, so that a series ends."""
    return -(-a // b) if a < 0 else a // b


def exponential(x: BcNumber, scale: int, check: Check) -> BcNumber:
    whole = abs(x.at(0))
    if x.digits < 0 and whole * 43 > (scale + 2) * 100:
        return BcNumber(0, scale)  # less than the last place
    extra = scale + 10 + len(str(whole)) + whole * 44 // 100
    _fits(extra * 3)
    value, halvings = BcNumber(x.at(extra), extra), 0
    negative = value.digits < 0
    value = BcNumber(abs(value.digits), extra)
    while value.digits > 10**extra:
        value = BcNumber(value.digits // 2, extra)
        halvings += 1
    total = term = 10**extra
    n = 1
    while term:
        check()
        term = term * value.digits // (10**extra * n)
        total += term
        n += 1
    for _ in range(halvings):
        total = total * total // 10**extra
    result = BcNumber(total, extra)
    if negative:
        result = div(ONE, result, extra)
    return BcNumber(result.at(scale), scale)


def logarithm(x: BcNumber, scale: int, check: Check) -> BcNumber:
    if x.digits <= 0:
        return BcNumber((1 - 10**scale) * 10**scale, scale)
    extra = scale + 10
    value, doublings = BcNumber(x.at(extra), extra), 2
    unit = 10**extra
    while value.digits >= 2 * unit or value.digits * 2 <= unit:
        value = BcNumber(math.isqrt(value.digits * unit), extra)
        doublings *= 2
    y = (value.digits - unit) * unit // (value.digits + unit)
    square = y * y // unit
    total = term = y
    n = 3
    while term:
        check()
        term = _quotient(term * square, unit)
        total += _quotient(term, n)
        n += 2
    return BcNumber(BcNumber(total * doublings, extra).at(scale), scale)


def _atan_digits(y: int, unit: int, check: Check) -> int:
    square = y * y // unit
    total = term = y
    n = 3
    while term:
        check()
        term = -_quotient(term * square, unit)
        total += _quotient(term, n)
        n += 2
    return total


def _pi(extra: int, check: Check) -> int:
    unit = 10 ** (extra + 5)
    value = 4 * (4 * _atan_digits(unit // 5, unit, check) - _atan_digits(unit // 239, unit, check))
    return value // 10**5


def arctangent(x: BcNumber, scale: int, check: Check) -> BcNumber:
    extra = scale + 10
    unit = 10**extra
    y = x.at(extra)
    sign = -1 if y < 0 else 1
    y = abs(y)
    halvings = 0
    while y > unit // 5:
        # atan(x) = 2 atan(x / (1 + sqrt(1 + x^2)))
        y = y * unit // (unit + math.isqrt(unit * unit + y * y))
        halvings += 1
    total = _atan_digits(y, unit, check) << halvings
    return BcNumber(BcNumber(sign * total, extra).at(scale), scale)


def sine(x: BcNumber, scale: int, check: Check, shift: bool = False) -> BcNumber:
    extra = scale + 12 + len(str(abs(x.at(0))))
    unit = 10**extra
    pi = _pi(extra, check)
    value = x.at(extra) + (pi // 2 if shift else 0)
    value %= 2 * pi
    if value > pi:
        value -= 2 * pi
    square = value * value // unit
    total = term = value
    n = 1
    while term:
        check()
        term = -_quotient(term * square, unit * (n + 1) * (n + 2))
        total += term
        n += 2
    rounded = BcNumber(total, extra)
    return BcNumber(rounded.at(scale), scale)


def bessel(n: BcNumber, x: BcNumber, scale: int, check: Check) -> BcNumber:
    order = abs(n.at(0))
    extra = scale + 15 + abs(x.at(0))
    _fits(extra * 3)
    unit = 10**extra
    half = x.at(extra) // 2
    term = unit
    for k in range(1, order + 1):
        check()
        term = term * half // (unit * k)
        if not term:
            break
    total, square = term, half * half // unit
    k = 1
    while term:
        check()
        term = -_quotient(term * square, unit * k * (k + order))
        total += term
        k += 1
    sign = -1 if n.at(0) < 0 and order % 2 else 1
    return BcNumber(BcNumber(sign * total, extra).at(scale), scale)


def decimal_digits(value: int) -> str:
    """Return the digits of a non-negative number in nearly linear time.

    Halves are combined as decimals, whose multiplication is fast.
    """
    if value.bit_length() <= _SHORT:
        return str(value)
    context = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    powers: dict[int, decimal.Decimal] = {}

    def two_to(bits: int) -> decimal.Decimal:
        if bits not in powers:
            half = bits // 2
            small = bits <= _SHORT
            powers[bits] = decimal.Decimal(1 << bits) if small else context.multiply(two_to(half), two_to(bits - half))
        return powers[bits]

    def of(part: int, bits: int) -> decimal.Decimal:
        if bits <= _SHORT:
            return decimal.Decimal(part)
        low = bits // 2
        high = part >> low
        return context.fma(of(high, bits - low), two_to(low), of(part - (high << low), low))

    return str(of(value, value.bit_length()))


def decimal_text(number: BcNumber) -> str:
    sign = "-" if number.digits < 0 else ""
    digits = decimal_digits(abs(number.digits))
    if number.scale:
        digits = digits.rjust(number.scale + 1, "0")
        whole, fraction = digits[: -number.scale], digits[-number.scale :]
        if not whole.strip("0"):
            whole = ""
        if not number.digits:
            return "0"
        return f"{sign}{whole}.{fraction}"
    return sign + digits


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _based_digits(value: int, base: int) -> list[int]:
    """Return the digits of a number in a base; empty for zero."""
    if value.bit_length() > _SHORT:
        half = int(value.bit_length() / math.log2(base)) // 2
        high, low = divmod(value, base**half)
        rest = _based_digits(low, base)
        return [*_based_digits(high, base), *[0] * (half - len(rest)), *rest]
    digits: list[int] = []
    while value:
        value, digit = divmod(value, base)
        digits.append(digit)
    digits.reverse()
    return digits


def based_text(number: BcNumber, base: int) -> str:
    sign = "-" if number.digits < 0 else ""
    value = abs(number.digits)
    unit = 10**number.scale
    whole, fraction = divmod(value, unit)
    digits = _based_digits(whole, base)
    places: list[int] = []
    reached = 1
    while reached < unit and number.scale:
        fraction *= base
        digit, fraction = divmod(fraction, unit)
        places.append(digit)
        reached *= base
    if base <= 16:
        text = "".join(_DIGITS[d] for d in digits)
        tail = "".join(_DIGITS[d] for d in places)
        return sign + (text or ("0" if not tail else "")) + (f".{tail}" if tail else "")
    width = len(str(base - 1))
    text = "".join(f" {d:0{width}d}" for d in digits) or ("" if places else "0")
    return sign + text + ("." + "".join(f"{d:0{width}d} " for d in places).rstrip() if places else "")


def parse_number(text: str, base: int) -> BcNumber:
    whole, _, fraction = text.partition(".")
    _fits(int((len(text) - 1) * math.log2(base)))
    if base == 10 and not re.search("[A-Z]", text):
        return BcNumber(int((whole or "0") + fraction), len(fraction))
    # A single digit keeps its own value; in longer numbers a digit is at most base - 1.
    single = len(whole) == 1 and not fraction
    value = 0
    for char in whole:
        digit = _DIGITS.index(char)
        value = value * base + (digit if single else min(digit, base - 1))
    if not fraction:
        return BcNumber(value)
    scale = len(fraction)
    total, unit = 0, 1
    for char in fraction:
        total = total * base + min(_DIGITS.index(char), base - 1)
        unit *= base
    return BcNumber(value * 10**scale + total * 10**scale // unit, scale)
