"""Backslash escapes of `echo -e`, `printf` formats and `%b`: three dialects of one language."""

from __future__ import annotations

import re
from typing import Final

from ramet.core.paths import encode
from ramet.shell.syntax.quoting import code_point

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
    rb"|([abeEfnrtv\\\"'?])|(c))"
)
_FORMAT: Final = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([abeEfnrtv\\\"'?])|(\0))"
)


def _decode(pattern: re.Pattern[bytes], data: bytes) -> tuple[bytes, bool]:
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
            out.append(encode(code_point(int(short or long, 16))))
        else:
            char = named.decode()
            out.append(_NAMED.get(char, named))
        pos = match.end()
    out.append(data[pos:])
    return b"".join(out), False


def echo(data: bytes) -> tuple[bytes, bool]:
    """`echo -e`: the bytes, and whether `\\c` ended the output."""
    return _decode(_ECHO, data)


def percent_b(data: bytes) -> tuple[bytes, bool]:
    return _decode(_PERCENT_B, data)


def format(data: bytes) -> bytes:
    return _decode(_FORMAT, data)[0]
