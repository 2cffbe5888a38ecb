"""C's printf conversions of one value: flags, width and precision of integers, reals and text.

- bash and GNU print reals from 64-bit mantissas (`real`); awk prints doubles and shares signs, zeros and padding.
- Reading an argument as a number stays with each user: what is wrong with it, and how to say so, differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, AnyStr, Final

if TYPE_CHECKING:
    from decimal import Decimal

_BASES: Final = {"d": "d", "u": "d", "o": "o", "x": "x", "X": "X"}


def pad(text: AnyStr, flags: str, width: int) -> AnyStr:
    return text.ljust(width) if "-" in flags else text.rjust(width)


def sign_mark(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def fill(sign: str, digits: str, flags: str, width: int, precision: int | None = None) -> str:
    """Put zeros between a sign or prefix and its digits: up to the precision, or by the flag `0` to the width."""
    if precision is not None:
        digits = digits.rjust(precision, "0")
    elif "0" in flags and "-" not in flags:
        digits = digits.rjust(width - len(sign), "0")
    return pad(sign + digits, flags, width)


def integer(value: int, kind: str, flags: str, width: int, precision: int | None) -> str:
    """Convert by `%d`, `%u`, `%o`, `%x` or `%X`; only `%d` takes negative values."""
    digits = format(abs(value), _BASES[kind]) if value or precision != 0 else ""
    sign = ""
    if kind == "d":
        sign = sign_mark(value < 0, flags)
    elif "#" in flags:
        if kind in "xX" and value:
            sign = "0" + kind
        elif kind == "o" and digits[:1] != "0" and (precision or 0) <= len(digits):
            digits = "0" + digits
    return fill(sign, digits, flags, width, precision)


def real(value: Decimal, kind: str, flags: str, width: int, precision: int | None) -> str:
    """Convert by `%e`, `%f`, `%g` or `%a`, or their capital letters."""
    from ramet.text import float_format

    sign = sign_mark(value.is_signed(), flags)
    text = float_format.magnitude(value, kind, precision, "#" in flags)
    if not value.is_finite():
        return pad(sign + text, flags, width)
    if kind in "aA":  # the zeros follow `0x`
        sign, text = sign + text[:2], text[2:]
    return fill(sign, text, flags, width)
