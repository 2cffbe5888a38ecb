"""Numbers with the 64-bit mantissas that `printf` computes with, and how C writes them.

Values are exact (a fraction of a power of two), so every rounding is the one of the C library.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Final, NamedTuple

_BITS: Final = 64
_LARGEST: Final = 16383
"""The highest binary exponent; the lowest one is as far below zero."""
_TINY: Final = -16445
"""The exponent of the last bit of the smallest number."""
_EXACT: Final = Context(prec=60_000, rounding=ROUND_HALF_EVEN, Emax=999_999, Emin=-999_999)
_HEX: Final = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)(?:[pP]([+-]?\d+))?")


class LongDouble(NamedTuple):
    """`mantissa * 2 ** exponent`, or one of the values that are no number."""

    negative: bool
    mantissa: int = 0
    exponent: int = 0
    special: str = ""
    out_of_range: bool = False


@lru_cache(maxsize=512)
def parse(text: str) -> LongDouble:
    """A number as C reads it; the text is one."""
    negative = text.startswith("-")
    bare = text.lstrip("+-").lower()
    if bare.startswith(("inf", "nan")):
        return LongDouble(negative, special=bare[:3])
    found = _HEX.fullmatch(text)
    if found is not None:
        digits = found[2] + found[3]
        scale = int(found[4] or 0) - 4 * len(found[3])
        if abs(scale) > 100_000:
            return _beyond(negative, scale > 0 and int(digits, 16) > 0)
        return _rounded(negative, int(digits or "0", 16) << max(scale, 0), 1 << max(-scale, 0))
    number = Decimal(bare)
    if number and abs(number.adjusted()) > 5000:
        return _beyond(negative, number.adjusted() > 0)
    return _rounded(negative, *number.as_integer_ratio())


def of_int(value: int) -> LongDouble:
    return _rounded(value < 0, abs(value), 1)


def _beyond(negative: bool, large: bool) -> LongDouble:
    if large:
        return LongDouble(negative, special="inf", out_of_range=True)
    return LongDouble(negative, out_of_range=True)


def _rounded(negative: bool, top: int, bottom: int) -> LongDouble:
    if not top:
        return LongDouble(negative)
    exponent = max(top.bit_length() - bottom.bit_length() - _BITS, _TINY)
    mantissa = _divided(top, bottom, exponent)
    if mantissa.bit_length() > _BITS:
        exponent += 1
        mantissa = _divided(top, bottom, exponent)
        if mantissa.bit_length() > _BITS:  # rounded up to the next power of two
            mantissa, exponent = mantissa >> 1, exponent + 1
    if mantissa.bit_length() + exponent - 1 > _LARGEST:
        return _beyond(negative, True)
    return LongDouble(negative, mantissa, exponent, out_of_range=not mantissa)


def _divided(top: int, bottom: int, exponent: int) -> int:
    """`top / bottom / 2 ** exponent` as an integer, rounded to even."""
    if exponent < 0:
        top <<= -exponent
    else:
        bottom <<= exponent
    found, rest = divmod(top, bottom)
    if rest * 2 > bottom or (rest * 2 == bottom and found & 1):
        found += 1
    return found


def _decimal(value: LongDouble) -> Decimal:
    if value.exponent >= 0:
        return Decimal(value.mantissa << value.exponent)
    return _EXACT.scaleb(Decimal(value.mantissa * 5**-value.exponent), value.exponent)


def written(value: LongDouble, kind: str, flags: str, precision: int | None) -> str:
    """What `%e %f %g %a` (or a capital letter) make of a number, with its sign and without padding."""
    sign = "-" if value.negative else "+" if "+" in flags else " " if " " in flags else ""
    lower = kind.lower()
    if value.special:
        text = value.special
    elif lower == "a":
        text = _hexadecimal(value, precision, "#" in flags)
    elif lower == "f":
        text = _fixed(_decimal(value), 6 if precision is None else precision, "#" in flags)
    elif lower == "e":
        text = _scientific(_decimal(value), 6 if precision is None else precision, "#" in flags)
    else:
        text = _general(_decimal(value), 6 if precision is None else precision or 1, "#" in flags)
    return sign + (text.upper() if kind.isupper() else text)


def _fixed(number: Decimal, precision: int, point: bool) -> str:
    text = format(_EXACT.quantize(number, Decimal((0, (1,), -min(precision, 40_000)))), "f")
    if precision > 40_000:
        text += "0" * (precision - 40_000)
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


def _hexadecimal(value: LongDouble, precision: int | None, point: bool) -> str:
    """The first digit takes four bits of the mantissa."""
    if not value.mantissa:
        return "0x0" + (("." + "0" * precision) if precision else "." if point else "") + "p+0"
    shift = _BITS - value.mantissa.bit_length()
    mantissa, exponent = value.mantissa << shift, value.exponent - shift
    if precision is not None and precision < 15:
        mantissa = _divided(mantissa, 1, 4 * (15 - precision)) << 4 * (15 - precision)
        if mantissa.bit_length() > _BITS:
            mantissa, exponent = mantissa >> 4, exponent + 4
    digits = f"{mantissa:016x}"
    rest = digits[1:].rstrip("0") if precision is None else digits[1 : precision + 1].ljust(precision, "0")
    return f"0x{digits[0]}{'.' + rest if rest or point else ''}p{exponent + 60:+d}"
