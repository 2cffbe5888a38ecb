"""Turning values back into shell text: `${x@Q}`, `printf %q`, `declare -p`, `set`, `alias`."""

from __future__ import annotations

import re
from typing import Any, Final

from ramet.shell.expand.aside import WINDOW, windows
from ramet.shell.expand.bytewise import as_bytes, bytewise

# It names the unsafe half of ASCII: a class that reaches up to the last character takes milliseconds to compile.
_BACKSLASH: Final = re.compile(r"[\x00-\x22$&-*,;<>?\[-^`{-}\x7f]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\x80-\x9f]").search
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
    if len(text) <= WINDOW:
        return _CONTROL(text) is not None
    return any(_CONTROL(part) is not None for part in windows(text))


def _backslashes(where: re.Pattern[str], text: str) -> str:
    """A backslash before every character that the pattern finds."""
    if len(text) <= WINDOW:
        return where.sub(r"\\\g<0>", text)
    return "".join([where.sub(r"\\\g<0>", part) for part in windows(text)])


def as_locale(host: Any, text: str) -> str:
    """The text with one character per byte where the C locale holds: what is not ASCII is then not printable."""
    return text if text.isascii() or not bytewise(host) else as_bytes(text)


def ansi(text: str) -> str:
    """`$'...'`."""
    out: list[str] = []
    for char in text:
        named = _NAMED.get(char)
        if named is not None:
            out.append(named)
        elif char < " " or char == "\x7f":
            out.append(f"\\{ord(char):03o}")
        elif "\udc80" <= char <= "\udcff":
            out.append(f"\\{ord(char) - 0xDC00:03o}")
        elif "\x80" <= char <= "\x9f":
            out.extend(f"\\{byte:03o}" for byte in char.encode())
        else:
            out.append(char)
    return "$'" + "".join(out) + "'"


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
    quoted = _backslashes(_BACKSLASH, text)
    return "\\" + quoted if quoted[0] in "~#" else quoted.replace(":~", ":\\~").replace("=~", "=\\~")


def double(text: str) -> str:
    """`"..."` as `declare -p` writes values."""
    if unprintable(text):
        return ansi(text)
    return '"' + _backslashes(_DOUBLE, text) + '"'


def setting(text: str) -> str:
    """A value as `set` and `trap`-like listings write it: quoted only where needed."""
    if unprintable(text):
        return ansi(text)
    if len(text) <= WINDOW:
        return single(text) if _METAS(text) else text
    return single(text) if any(_METAS(part) for part in windows(text)) else text


_METAS: Final = re.compile(r"[ \t\n'\"\\|&;()<>!{}*\[\]?^$`]|^[~#]|[=:]~").search


def word(text: str) -> str:
    """A word of a trace line (`set -x`)."""
    if not text:
        return "''"
    if _METAS(text):
        return single(text)
    return ansi(text) if unprintable(text) else text
