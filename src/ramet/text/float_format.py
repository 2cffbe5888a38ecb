"""Floating-point conversions of `printf`: `%e`, `%f`, `%g` and `%a` of a `Decimal`.

- bash and GNU compute with 64-bit mantissas. `parse` rounds to them, so ties such as `%.1f` of 0.45 round alike.
- `%a` writes a double, with the first digit of a long double where the tool computes with those.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Final

_BITS: Final = 64
_EXPONENT: Final = 4931
"""The largest decimal exponent; smaller numbers than its negative are 0."""
_DIGITS: Final = 40_000
"""Digits after the point that are computed; zeros follow."""
_EXACT: Final = Context(prec=_DIGITS + 20_000, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999)
_READ: Final = Context(prec=20_000, Emax=999_999, Emin=-999_999, traps=[])
"""More digits than 64 bits of the smallest number have."""
_POWER: Final = 10
"""Characters of a binary exponent that are read; more are out of range anyway."""
_HEX: Final = re.compile(r"[+-]?0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?\d+))?")


@lru_cache(maxsize=512)
def parse(text: str) -> tuple[Decimal, bool]:
    """Return the value of a C floating-point literal, and whether it is out of range."""
    sign = -1 if text.startswith("-") else 1
    bare = text.lstrip("+-").lower()
    if bare.startswith(("inf", "nan")):
        return Decimal(bare[:3]).copy_sign(sign), False
    found = _HEX.fullmatch(bare)
    if found is None:
        number = _READ.create_decimal(bare)
        if number.is_infinite() or (not number and bare.partition("e")[0].strip("0.")):
            return number.copy_sign(sign), True
    else:
        scale = min(max(int((found[3] or "0")[:_POWER]) - 4 * len(found[2]), -_DIGITS), _DIGITS)
        number = _scaled(int(found[1] + found[2] or "0", 16), scale)
    if not number:
        return number.copy_sign(sign), False
    if abs(number.adjusted()) > _EXPONENT:
        return Decimal("inf" if number.adjusted() > 0 else 0).copy_sign(sign), True
    return _nearest(number).copy_sign(sign), False


def _nearest(number: Decimal) -> Decimal:
    top, bottom = number.as_integer_ratio()
    shift = _BITS - top.bit_length() + bottom.bit_length()
    if top << max(shift, 0) >= bottom << _BITS + max(-shift, 0):
        shift -= 1
    mantissa, rest = divmod(top << max(shift, 0), bottom := bottom << max(-shift, 0))
    mantissa += 2 * rest > bottom or (2 * rest == bottom and mantissa & 1)
    return _scaled(mantissa, -shift)


def _scaled(mantissa: int, power: int) -> Decimal:
    """Return `mantissa * 2**power` exactly."""
    if power >= 0:
        return Decimal(mantissa << power)
    return _EXACT.scaleb(Decimal(mantissa * 5**-power), power)


def magnitude(value: Decimal, kind: str, precision: int | None, point: bool) -> str:
    """Format a number for the conversion `kind`, without its sign; `point` keeps zeros and the point (`#`)."""
    number, lower = value.copy_abs(), kind.lower()
    if not value.is_finite():
        text = "nan" if value.is_nan() else "inf"
    elif lower == "a":
        text = hexadecimal(float(number), precision, point, long=True)
    elif lower == "f":
        text = _fixed(number, 6 if precision is None else precision, point)
    elif lower == "e":
        text = _scientific(number, 6 if precision is None else precision, point)
    else:
        text = _general(number, 6 if precision is None else precision or 1, point)
    return text.upper() if kind.isupper() else text


def _fixed(number: Decimal, precision: int, point: bool) -> str:
    text = format(_EXACT.quantize(number, Decimal((0, (1,), -min(precision, _DIGITS)))), "f")
    if precision > _DIGITS:
        text += "0" * (precision - _DIGITS)
    return text + "." if point and not precision else text


def _scientific(number: Decimal, precision: int, point: bool) -> str:
    """One digit before the point, two of the exponent at least."""
    if not number:
        digits, exponent = "0" * (precision + 1), 0
    else:
        rounded = Context(prec=precision + 1, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999).plus(number)
        exponent = rounded.adjusted()
        digits = "".join(map(str, rounded.as_tuple().digits)).ljust(precision + 1, "0")
    dot = "." if precision or point else ""
    return f"{digits[0]}{dot}{digits[1 : precision + 1]}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _general(number: Decimal, precision: int, keep: bool) -> str:
    text = _scientific(number, precision - 1, False)
    exponent = int(text.partition("e")[2])
    if -4 <= exponent < precision:
        text = _fixed(number, precision - 1 - exponent, keep)
        return text if keep or "." not in text else text.rstrip("0").rstrip(".")
    if keep:
        return _scientific(number, precision - 1, True)
    digits, _, power = text.partition("e")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}e{power}"


def hexadecimal(number: float, precision: int | None, point: bool, long: bool = False) -> str:
    """Format a double that is not negative by `%a`; the first digit is 1, or 8 to f in the form of a long double."""
    digits, _, power = number.hex().partition("p")
    digits, exponent = digits.removeprefix("0x").replace(".", ""), int(power)
    if long and digits[0] == "1":
        digits, exponent = f"{int(digits, 16) << 3:x}", exponent - 3
    if precision is None:
        digits = digits[0] + digits[1:].rstrip("0")
    elif precision < len(digits) - 1:  # a carry can make the first digit two: 0x10.0
        digits = f"{round(int(digits, 16) / 16 ** (len(digits) - 1 - precision)):x}"
    else:
        digits = digits.ljust(precision + 1, "0")
    after = len(digits) - 1 if precision is None else precision
    lead, rest = digits[: len(digits) - after], digits[len(digits) - after :]
    return f"0x{lead}{'.' if rest or point else ''}{rest}p{exponent:+d}"
