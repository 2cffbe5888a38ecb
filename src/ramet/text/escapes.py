"""Backslash escapes of `echo -e`, `printf` formats and `printf %b`, of bash and of GNU.

- A dialect is a pattern whose groups are octal digits, `\\x`, `\\u` and `\\U` digits, a named character, and `\\c`.
- bash knows `\\E`, and in formats `\\'` and `\\?`; GNU's formats end at `\\c`, as `%b` does in both.
- `$'...'` has more (`\\cX`, `\\x{...}`) and yields text: `shell/syntax/ansi_c.py`, with the code points of this module.
"""

from __future__ import annotations

import re
from typing import Final

from ramet.core.paths import encode

_NAMED: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"e": b"\x1b",
    b"E": b"\x1b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
"""Characters that a letter names; other characters of a dialect stand for themselves."""
_CODES: Final = rb"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
_ANY_OCTAL: Final = rb"0[0-7]{0,3}|[1-7][0-7]{0,2}"

Dialect = re.Pattern[bytes]
ECHO: Final[Dialect] = re.compile(rb"\\(?:(0[0-7]{0,3})|" + _CODES + rb"|([abeEfnrtv\\])|(c))")
PERCENT_B: Final[Dialect] = re.compile(rb"\\(?:(" + _ANY_OCTAL + rb")|" + _CODES + rb"|([abeEfnrtv\\])|(c))")
FORMAT: Final[Dialect] = re.compile(rb"\\(?:([0-7]{1,3})|" + _CODES + rb"|([abeEfnrtv\\\"'?])|(\0))")
GNU_ECHO: Final[Dialect] = re.compile(rb"\\(?:(" + _ANY_OCTAL + rb")|" + _CODES + rb"|([abefnrtv\\\"])|(c))")
GNU_FORMAT: Final[Dialect] = re.compile(rb"\\(?:([0-7]{1,3})|" + _CODES + rb"|([abefnrtv\\\"])|(c))")


def decode(dialect: Dialect, data: bytes, ascii_only: bool = False) -> tuple[bytes, bool]:
    """Return the bytes with escapes decoded, and whether `\\c` ended them.

    `ascii_only`: the locale has only ASCII, so `\\u` escapes of other characters stay as they are.
    """
    if b"\\" not in data:
        return data, False
    out: list[bytes] = []
    pos = 0
    for match in dialect.finditer(data):
        out.append(data[pos : match.start()])
        octal, hexa, short, long, named, stop = match.groups()
        if stop is not None:
            return b"".join(out), True
        if named is not None:
            out.append(_NAMED.get(named, named))
        elif octal is not None:
            out.append(bytes((int(octal, 8) & 255,)))
        elif hexa is not None:
            out.append(bytes((int(hexa, 16),)))
        else:
            value = int(short or long, 16)
            if ascii_only and value > 127:
                out.append(b"\\u%04X" % value if value <= 0xFFFF else b"\\U%08X" % value)
            else:
                out.append(encode(code_point(value)))
        pos = match.end()
    out.append(data[pos:])
    return b"".join(out), False


_WITHOUT_DIGITS: Final = re.compile(rb"\\(?:([xuU])(?![0-9A-Fa-f])|.)", re.DOTALL)


def digit_warnings(data: bytes) -> list[str]:
    """Return bash's warnings about `\\x`, `\\u` and `\\U` without digits."""
    if b"\\" not in data:
        return []
    letters = [match[1].decode() for match in _WITHOUT_DIGITS.finditer(data) if match[1]]
    return [f"missing {'hex' if letter == 'x' else 'unicode'} digit for \\{letter}" for letter in letters]


def byte_char(value: int) -> str:
    """Return one byte as a character of our text (a lone high byte is a surrogate escape)."""
    return chr(value) if value < 0x80 else chr(0xDC00 + value)


def code_point(value: int) -> str:
    """Return a code point as bash writes it: UTF-8, also for values that Unicode does not have."""
    if value < 0x80:
        return chr(value)
    if value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF:
        return chr(value)
    out: list[int] = []
    first = 0x3F
    while value > first:
        out.append(0x80 | (value & 0x3F))
        value >>= 6
        first >>= 1
    lead = (~(first * 2 + 1)) & 0xFF
    out.append(lead | value)
    return "".join(byte_char(b) for b in reversed(out))
