"""awk's printf and sprintf: parse a format once and apply it to values."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence

from ramet.commands.awk.run.values import Field, Value, looks_numeric, num, number_text
from ramet.commands.awk.syntax.tree import AwkError
from ramet.text.printf import fill, pad, sign_mark
from ramet.text.width import bounded

_SPEC = re.compile(
    r"%(?:(\d+)\$)?([-+ #0']*)(\*(?:\d+\$)?|\d+)?(?:\.(\*(?:\d+\$)?|-?\d*))?(?:[hlLjtz](?![hlL]) ?)?"
    r"([diouxXeEfFgGaAcs%])"
)

_STARRED = re.compile(r"%([-+ #0']*)(\*|\d+)?(?:\.(\*|\d*))?.", re.DOTALL)
"""An unknown conversion that may take a width."""

_Conversion = tuple[str, str | None, str | None, str, str | None, tuple[int, int, int]]
"""Flags, width, precision, conversion, which argument it takes if it says so, and where in the format the last four
stand. What takes no argument but those for its width is a conversion that stands for itself."""


@functools.lru_cache(maxsize=512)
def _read(form: str) -> tuple[str | _Conversion, ...]:
    """Return the format as literal texts and conversions."""
    parts: list[str | _Conversion] = []
    pos = 0
    while True:
        at = form.find("%", pos)
        if at < 0:
            parts.append(form[pos:])
            return tuple(parts)
        parts.append(form[pos:at])
        found = _SPEC.match(form, at)
        if found is None:
            # Not a conversion: it stands for itself.
            odd = _STARRED.match(form, at)
            if odd is not None and "*" in (odd[2], odd[3]):
                parts.append((odd[1], odd[2], odd[3], odd[0], None, (odd.start(2), odd.start(3), odd.end() - 1)))
                pos = odd.end()
                continue
            parts.append(form[at])
            pos = at + 1
            continue
        if found[5] == "%" and "*" not in found[0]:
            parts.append("%")
        else:
            places = found.start(3), found.start(4), found.start(5)
            parts.append((found[2], found[3], found[4], found[5], found[1], places))
        pos = found.end()


def sprintf(
    form: str, args: Sequence[Value], convfmt: str, number: Callable[[Value], float] = num, utf8: bool = True
) -> str:
    out: list[str] = []
    index = at = 0
    placed: bool | None = None

    def take(place: str | None = None) -> Value:
        nonlocal index, placed
        if placed is not None and placed != (place is not None):
            raise AwkError("fatal: must use `count$' on all formats or none")
        placed = place is not None
        if place is not None:
            index = int(place) - 1
            if index < 0:
                raise AwkError("fatal: argument index with `$' must be > 0")
            if index >= len(args):
                raise AwkError(f"fatal: argument index {index + 1} greater than total number of supplied arguments")
        if index >= len(args):
            blanks = " " * at
            raise AwkError(
                f"fatal: not enough arguments to satisfy format string\n\t`{form}'\n\t{blanks}^ ran out for this one"
            )
        index += 1
        return args[index - 1]

    for part in _read(form):
        if isinstance(part, str):
            out.append(part)
            continue
        flags, width_text, precision_text, kind, place, (width_at, precision_at, kind_at) = part
        flags = flags.replace("'", "")
        width = 0
        if width_text is not None and width_text[0] == "*":
            at = width_at
            width = int(number(take(width_text[1:-1] or None)))
            if width < 0:
                flags, width = flags + "-", -width
        elif width_text:
            width = int(width_text)
        precision: int | None = None
        if precision_text is not None:
            if precision_text[:1] == "*":
                at = precision_at
                precision = int(number(take(precision_text[1:-1] or None)))
            else:
                precision = int(precision_text or 0)
            if precision < 0:
                precision = None
        bounded(width)
        bounded(precision or 0)
        if kind[0] == "%":
            out.append(kind)
            continue
        at = kind_at
        value = take(place)
        if kind == "c":
            char = _character(value, utf8)
            # The character of a number is as wide as it has bytes.
            extra = len(char.encode("utf-8", "surrogateescape")) - 1 if value.__class__ is float else 0
            out.append(pad(char, flags, width - extra))
        elif kind == "s":
            text = number_text(value, convfmt) if value.__class__ is float else value or ""
            out.append(pad(text if precision is None else text[:precision], flags, width))
        else:
            out.append(_convert(kind, flags, width, precision, number(value)))
    return "".join(out)


def _convert(kind: str, flags: str, width: int, precision: int | None, number: float) -> str:
    if kind in "diouxX":
        if number != number or number in (math.inf, -math.inf):
            return _not_a_number(kind, number)
        if kind in "di":
            return _integer(flags, width, precision, int(number), type(number) is not float)
        return _unsigned(kind, flags, width, precision, number, type(number) is not float)
    return _real(kind, flags, width, precision, number)


def _not_a_number(kind: str, number: float) -> str:
    """Format infinity and NaN as gawk does, without width."""
    text = number_text(number, "%.6g")
    return text.upper() if kind.isupper() else text


def _character(value: Value, utf8: bool) -> str:
    numeric = value if value.__class__ is float else looks_numeric(value) if value.__class__ is Field else None
    if numeric is not None:
        code = int(numeric) if math.isfinite(numeric) else 0
        if 0 <= code < (0x110000 if utf8 else 0x80) and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
        return bytes((code & 0xFF,)).decode("utf-8", "surrogateescape")
    return (value or "\0")[:1]


def _integer(flags: str, width: int, precision: int | None, number: int, wide: bool) -> str:
    """`wide` numbers are written in full, however many digits they have."""
    digits = number_text(abs(number), "") if wide else str(abs(number))
    if precision == 0 and not number:
        return pad("", flags, width)
    return fill(sign_mark(number < 0, flags), digits, flags, width, precision)


def _unsigned(kind: str, flags: str, width: int, precision: int | None, number: float, wide: bool) -> str:
    """Format an unsigned number; zero is detected before the fraction is dropped."""
    whole = int(number)
    if not wide and not -(1 << 63) <= whole < 1 << 64:
        return _real("g", flags, width, precision, float(whole))
    if precision == 0 and not number and "#" not in flags:
        return pad("", flags, width)
    if whole < 0 and not wide:
        whole += 1 << 64
    digits = format(whole, {"o": "o", "x": "x", "X": "X", "u": "d"}[kind])
    sign = {"o": "0", "x": "0x", "X": "0X"}.get(kind, "") if "#" in flags and number else ""
    return fill(sign, digits, flags, width, precision)


def _real(kind: str, flags: str, width: int, precision: int | None, number: float) -> str:
    if number != number or number in (math.inf, -math.inf):
        return _not_a_number(kind, number)
    sign = sign_mark(math.copysign(1.0, number) < 0, flags)
    number = abs(number)
    if kind in "aA":
        from ramet.text.float_format import hexadecimal

        text = hexadecimal(number, precision, "#" in flags)
        text = text.upper() if kind == "A" else text
        sign, text = sign + text[:2], text[2:]  # the zeros follow `0x`
    else:
        alternate = "#" if "#" in flags else ""
        text = format(number, f"{alternate}.{6 if precision is None else precision}{kind}")
    return fill(sign, text, flags, width)
