"""Backslash escapes of `echo -e`, `printf` formats and `%b`: three dialects of one language."""

from __future__ import annotations

import re
from typing import Final

from ramet.core.paths import encode
from ramet.shell.syntax.ansi_c import code_point

_NAMED: Final = {
    "a": b"\a",
    "b": b"\b",
    "e": b"\x1b",
    "E": b"\x1b",
    "f": b"\f",
    "n": b"\n",
    "r": b"\r",
    "t": b"\t",
    "v": b"\v",
    "\\": b"\\",
}
_ECHO: Final = re.compile(
    rb"\\(?:0([0-7]{0,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([abeEfnrtv\\])|(c))"
)
_PERCENT_B: Final = re.compile(
    rb"\\(?:(0[0-7]{0,3}|[1-7][0-7]{0,2})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
    rb"|([abeEfnrtv\\])|(c))"
)
_FORMAT: Final = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([abeEfnrtv\\\"'?])|(\0))"
)


def _decode(pattern: re.Pattern[bytes], data: bytes, plain: bool) -> tuple[bytes, bool]:
    """Return the bytes with escapes decoded, and whether `\\c` ended them.

    `plain`: the locale has only ASCII, so `\\u` escapes of other characters stay as they are.
    """
    out: list[bytes] = []
    pos = 0
    for match in pattern.finditer(data):
        out.append(data[pos : match.start()])
        octal, hexa, short, long, named, stop = match.groups()
        if stop is not None:
            return b"".join(out), True
        if octal is not None:
            out.append(bytes((int(octal or b"0", 8) & 255,)))
        elif hexa is not None:
            out.append(bytes((int(hexa, 16),)))
        elif short is not None or long is not None:
            value = int(short or long, 16)
            if plain and value > 127:
                out.append(b"\\u%04X" % value if value <= 0xFFFF else b"\\U%08X" % value)
            else:
                out.append(encode(code_point(value)))
        else:
            char = named.decode()
            out.append(_NAMED.get(char, named))
        pos = match.end()
    out.append(data[pos:])
    return b"".join(out), False


_WANTING: Final = re.compile(rb"\\(?:([xuU])(?![0-9A-Fa-f])|.)", re.DOTALL)


def unfinished(data: bytes) -> list[str]:
    """What `printf` has to say about escapes without the digits that they are to have."""
    if b"\\" not in data:
        return []
    letters = [match[1].decode() for match in _WANTING.finditer(data) if match[1]]
    return [f"missing {'hex' if letter == 'x' else 'unicode'} digit for \\{letter}" for letter in letters]


def echo(data: bytes, plain: bool = False) -> tuple[bytes, bool]:
    """`echo -e`: the bytes, and whether `\\c` ended the output."""
    return _decode(_ECHO, data, plain)


def percent_b(data: bytes, plain: bool = False) -> tuple[bytes, bool]:
    """`printf %b`: the bytes, and whether `\\c` ended the output."""
    return _decode(_PERCENT_B, data, plain)


def format(data: bytes, plain: bool = False) -> bytes:
    """The literal text of a `printf` format."""
    return _decode(_FORMAT, data, plain)[0]
