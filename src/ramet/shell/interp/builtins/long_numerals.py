"""Numerals of any length, made as short as they may be without meaning another number."""

from __future__ import annotations

import re
from typing import Final

from ramet.shell.expand.arith.numerals import LONGEST_NUMBER
from ramet.shell.expand.long_text import search

LONGEST_REAL: Final = 40_000
"""Characters of a real number that is read as it is."""
_DIGITS: Final = 20_000
"""Digits after which none makes a difference but whether there is one: 64 bits of the smallest numbers have fewer."""
_NO_BLANK, _NO_ZERO, _NO_DIGIT, _NO_OCTAL, _NO_HEX = map(
    re.compile, ("[^ \t\n]", "[^0]", "[^0-9]", "[^0-7]", "[^0-9a-fA-F]")
)


def shortened(text: str) -> str:
    """A very long numeral as a shorter one of the same value, if it has one that counts, and with the same end."""
    begin = search(_NO_BLANK, text)
    begin += text[begin : begin + 1] in ("-", "+")
    other = _NO_DIGIT
    if text[begin : begin + 1] == "0":
        hexadecimal = text[begin + 1 : begin + 2] in ("x", "X")
        begin, other = begin + (2 if hexadecimal else 1), _NO_HEX if hexadecimal else _NO_OCTAL
    zeros = search(_NO_ZERO, text, begin)
    kept = zeros + LONGEST_NUMBER
    end = search(other, text, zeros)
    zero = "0" if zeros > begin else ""
    head = text[max(begin - 3, 0) : begin].lstrip(" \t\n")
    return head + zero + text[zeros : min(end, kept)] + text[end : end + 1]


def shortened_real(text: str) -> str:
    """The same for a real number."""
    begin = search(_NO_BLANK, text)
    sign = text[begin : begin + 1] if text[begin : begin + 1] in ("-", "+") else ""
    begin += len(sign)
    hexadecimal = text[begin : begin + 2] in ("0x", "0X")
    begin += 2 if hexadecimal else 0
    other = _NO_HEX if hexadecimal else _NO_DIGIT
    point = search(other, text, begin)
    fraction = point + (text[point : point + 1] == ".")
    end = search(other, text, fraction) if fraction > point else point
    if end - begin == fraction - point:
        return text[: begin + LONGEST_NUMBER]  # no digits
    power = (_BITS if hexadecimal else _POWER).match(text, end, end + LONGEST_NUMBER)
    exponent = 0 if power is None else int(power[1])
    first = search(_NO_ZERO, text, begin)
    if first >= point:
        first = search(_NO_ZERO, text, fraction)
        digits = text[first : min(first + _DIGITS, end)]
        rest = first + _DIGITS
        step = fraction - first - len(digits)
    else:
        digits = text[first : min(first + _DIGITS, point)]
        more = text[fraction : min(fraction + _DIGITS - len(digits), end)]
        rest = first + _DIGITS if len(digits) == _DIGITS else fraction + len(more)
        step = point - first - len(digits) - len(more)
        digits += more
    if rest < end and any(search(_NO_ZERO, text, at) < to for at, to in ((rest, point), (max(rest, fraction), end))):
        digits, step = digits + "1", step - 1
    exponent += step * (4 if hexadecimal else 1)
    after = text[end : end + 1] if power is None else text[power.end() : power.end() + 1]
    return f"{sign}{'0x' if hexadecimal else ''}{digits or '0'}{'p' if hexadecimal else 'e'}{exponent}{after}"


_POWER: Final = re.compile("[eE]([-+]?[0-9]+)")
_BITS: Final = re.compile("[pP]([-+]?[0-9]+)")
