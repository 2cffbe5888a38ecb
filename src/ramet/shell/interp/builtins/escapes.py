"""Backslash escapes of `echo -e`, `printf` formats and `%b`: three dialects of one language."""

from __future__ import annotations

import re
import sys
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


def _decode(pattern: re.Pattern[bytes], data: bytes, plain: bool, most: int = sys.maxsize) -> tuple[bytes, bool, int]:
    """What some bytes mean, whether they ask for an end, and where escapes begin that were not looked at: those of
    them that begin after a place.

    `plain`: the locale has only ASCII, so that other characters are written as what they were asked by.
    """
    out: list[bytes] = []
    pos = 0
    for match in pattern.finditer(data):
        if match.start() > most:
            break
        out.append(data[pos : match.start()])
        octal, hexa, short, long, named, stop = match.groups()
        if stop is not None:
            return b"".join(out), True, match.end()
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
    end = min(max(pos, most), len(data))
    out.append(data[pos:end])
    return b"".join(out), False, end


class Escapes:
    """The escapes of a very long text, which comes in blocks."""

    def __init__(self, plain: bool, pattern: re.Pattern[bytes] = _ECHO) -> None:
        self._plain, self._pattern, self._rest = plain, pattern, b""
        self.stopped = False
        """Whether `\\c` ended the output."""

    def feed(self, block: bytes, last: bool = False) -> bytes:
        """What the next block means, but for an escape that may not be all there."""
        data = self._rest + block
        most = sys.maxsize if last else len(data) - _LONGEST
        found, self.stopped, end = _decode(self._pattern, data, self._plain, most)
        self._rest = data[end:]
        return found


_LONGEST: Final = 10
"""Bytes of an escape."""
_BLOCK: Final = 1 << 18


_WANTING: Final = re.compile(rb"\\(?:([xuU])(?![0-9A-Fa-f])|.)", re.DOTALL)


def unfinished(data: bytes) -> list[str]:
    """What `printf` has to say about escapes without the digits that they are to have."""
    if b"\\" not in data:
        return []
    letters = [match[1].decode() for match in _WANTING.finditer(data) if match[1]]
    return [f"missing {'hex' if letter == 'x' else 'unicode'} digit for \\{letter}" for letter in letters]


def echo(data: bytes, plain: bool = False) -> tuple[bytes, bool]:
    """`echo -e`: the bytes, and whether `\\c` ended the output."""
    return _decode(_ECHO, data, plain)[:2]


def percent_b(data: bytes, plain: bool = False) -> tuple[bytes, bool]:
    if len(data) <= _BLOCK:
        return _decode(_PERCENT_B, data, plain)[:2]
    if b"\\" not in data:
        return data, False
    decoding = Escapes(plain, _PERCENT_B)
    out: list[bytes] = []
    for start in range(0, len(data), _BLOCK):
        out.append(decoding.feed(data[start : start + _BLOCK], last=start + _BLOCK >= len(data)))
        if decoding.stopped:
            break
    return b"".join(out), decoding.stopped


def format(data: bytes, plain: bool = False) -> bytes:
    return _decode(_FORMAT, data, plain)[0]
