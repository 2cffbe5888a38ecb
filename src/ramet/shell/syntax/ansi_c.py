"""Decoding of ``$'...'`` escapes; the result is text with surrogateescape, so any byte can come out of it."""

from __future__ import annotations

import re

from ramet.text.escapes import byte_char, code_point

_ESCAPE = re.compile(
    r"\\(?:x(?:\{([0-9A-Fa-f]*)\}?|([0-9A-Fa-f]{1,2}))|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
    r"|([0-7]{1,3})|c(\\\\|.)|(.))",
    re.DOTALL,
)
_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}


def rejoin(text: str) -> str:
    """Bytes that were written one by one and form valid UTF-8 together become the characters they mean."""
    if text.isascii() or not any("\udc80" <= c <= "\udcff" for c in text):
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def ansi_decode(source: str, bytewise: bool = False) -> str:
    """The value of ``$'source'``; it ends at the first NUL, as C strings do in bash. Where every byte is a separate
    character, those beyond ASCII stay numbers."""
    if "\\" not in source:
        return source

    def one(m: re.Match[str]) -> str:
        braced, hexa, u4, u8, octal, control, other = m.groups()
        if braced is not None:
            return byte_char(int(braced, 16) & 0xFF) if braced else m.group()
        if hexa is not None:
            return byte_char(int(hexa, 16))
        if u4 is not None or u8 is not None:
            value = int(u4 or u8, 16)
            if bytewise and value > 0x7F:
                return f"\\u{value:04X}" if value <= 0xFFFF else f"\\U{value:08X}"
            return code_point(value)
        if octal is not None:
            return byte_char(int(octal, 8) & 0xFF)
        if control is not None:
            code = control[0]
            return "\x7f" if code == "?" else byte_char(ord(code.upper()) & 0x1F) if ord(code) < 0x80 else m.group()
        return _NAMED.get(other, m.group())

    value = _ESCAPE.sub(one, source)
    nul = value.find("\0")
    return rejoin(value if nul < 0 else value[:nul])
