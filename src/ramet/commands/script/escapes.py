"""Backslash escapes of printf and echo."""

from __future__ import annotations

import re

_SIMPLE = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34}
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|0?[0-7]{1,3}|.)", re.S)


class Stop(Exception):
    """`\\c` was met: nothing more is printed."""


def unescape(raw: bytes, *, octal_zero: bool, strict: bool = False) -> bytes:
    """Escapes of a format, or of %b and echo -e (`octal_zero`: `\\0NNN`); `\\c` raises Stop with what came before."""
    if b"\\" not in raw:
        return raw
    out: list[bytes] = []
    at_ = 0
    for found in _ESCAPE.finditer(raw):
        out.append(raw[at_ : found.start()])
        at_ = found.end()
        body = found[1]
        letter = chr(body[0])
        if letter == "c" and octal_zero:
            raise Stop(b"".join(out))
        if letter == "c" and not octal_zero:
            raise Stop(b"".join(out))
        if letter in _SIMPLE and len(body) == 1:
            out.append(bytes([_SIMPLE[letter]]))
        elif letter == "x" and len(body) > 1:
            out.append(bytes([int(body[1:], 16)]))
        elif letter in "uU" and len(body) > 1:
            out.append(chr(int(body[1:], 16)).encode("utf-8", "surrogatepass"))
        elif letter in "01234567":
            digits = body
            if octal_zero and letter == "0":
                digits = body[1:] or b"0"
            elif len(body) > 3:
                digits = body[:3]
                at_ -= len(body) - 3
            out.append(bytes([int(digits, 8) & 255]))
        else:
            out.append(b"\\" + body)
    out.append(raw[at_:])
    return b"".join(out)
