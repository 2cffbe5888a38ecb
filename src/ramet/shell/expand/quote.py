"""Quote values as shell text: `${x@Q}`, `printf %q`, `declare -p`, `set`, `alias`."""

from __future__ import annotations

import re
from typing import Any, Final
from unicodedata import category

from ramet.core.paths import encode
from ramet.shell.expand.c_locale import as_bytes, bytewise

# It names the unsafe half of ASCII: a class that reaches up to the last character takes milliseconds to compile.
_BACKSLASH: Final = re.compile(r"[\x00-\x22$&-*,;<>?\[-^`{-}\x7f]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\x80-\x9f\u2028\u2029\ufffe\uffff]").search
_DOUBLE: Final = re.compile(r'[\\"$`]')
_NAMED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\x1b": "\\E",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    "'": "\\'",
}


def unprintable(text: str) -> bool:
    return _CONTROL(text) is not None or not (text.isascii() or text.isprintable() or all(map(_is_assigned, text)))


def _is_assigned(char: str) -> bool:
    """Return whether Unicode assigns the character, if only to private use."""
    return char.isprintable() or category(char) != "Cn"


def as_locale(host: Any, text: str) -> str:
    """Return the text with one character per byte under the C locale, where only ASCII is printable."""
    return text if text.isascii() or not bytewise(host) else as_bytes(text)


def ansi(text: str) -> str:
    """`$'...'`."""
    return f"$'{text.translate(_ANSI)}'"


_WIDE_CONTROLS: Final = (*range(0x80, 0xA0), 0x2028, 0x2029, 0xFFFE, 0xFFFF)


class _Escapes(dict[int, str]):
    """The text of each character in `$'...'`, filled on demand."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = char if code < 0x80 or _is_assigned(char) else _octal(char)
        return self[code]


def _octal(char: str) -> str:
    return "".join([f"\\{byte:03o}" for byte in encode(char)])


_ANSI: Final = _Escapes(
    {code: _octal(chr(code)) for code in (*range(0x20), 0x7F, *_WIDE_CONTROLS, *range(0xDC80, 0xDD00))}
    | {ord(char): named for char, named in _NAMED.items()}
)


def single(text: str) -> str:
    """`'...'`, with `'\\''` for quotes inside."""
    return "\\'" if text == "'" else "'" + text.replace("'", "'\\''") + "'"


def at_q(text: str) -> str:
    """`${x@Q}`: always quoted."""
    return ansi(text) if unprintable(text) else single(text)


def backslashed(text: str) -> str:
    """`printf %q`: backslashes where needed."""
    if not text:
        return "''"
    if unprintable(text):
        return ansi(text)
    quoted = _BACKSLASH.sub(r"\\\g<0>", text)
    return "\\" + quoted if quoted[0] in "~#" else quoted.replace(":~", ":\\~").replace("=~", "=\\~")


def double(text: str) -> str:
    """`"..."` as `declare -p` writes values."""
    return ansi(text) if unprintable(text) else '"' + _DOUBLE.sub(r"\\\g<0>", text) + '"'


def setting(text: str) -> str:
    """A value as `set` and `trap`-like listings write it: quoted only where needed."""
    if unprintable(text):
        return ansi(text)
    return single(text) if is_special(text) else text


_METAS: Final = re.compile(r"[ \t\n'\"\\|&;()<>!{}*\[\]?^$`]|^[~#]|[=:]~").search


def is_special(text: str) -> bool:
    """Return whether any character of the text means something to the shell."""
    return _METAS(text) is not None


def word(text: str) -> str:
    """A word of a trace line (`set -x`)."""
    if not text:
        return "''"
    if is_special(text):
        return single(text)
    return ansi(text) if unprintable(text) else text
