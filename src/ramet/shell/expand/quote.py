"""Turning values back into shell text: `${x@Q}`, `printf %q`, `declare -p`, `set`, `alias`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final
from unicodedata import category

from ramet.concurrency.sizes import SMALL
from ramet.core.paths import encode
from ramet.shell.expand.c_locale import as_bytes, bytewise
from ramet.shell.expand.long_text import windows

# It names the unsafe half of ASCII: a class that reaches up to the last character takes milliseconds to compile.
_BACKSLASH: Final = re.compile(r"[\x00-\x22$&-*,;<>?\[-^`{-}\x7f]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\x80-\x9f\u2028\u2029\ufffe\uffff]").search
_DOUBLE: Final = re.compile(r'[\\"$`]')
_TABLES: Final = {
    where: {code: f"\\{chr(code)}" for code in range(0x80) if where.match(chr(code))} for where in (_BACKSLASH, _DOUBLE)
}
"""The same for long texts, in which a pattern that finds much takes its time."""
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
    if len(text) <= SMALL:
        return _CONTROL(text) is not None or not (text.isascii() or text.isprintable() or all(map(_is_assigned, text)))
    if text.isascii():
        return any(_has_any(part, _CONTROL_BYTES) for part in windows(text))
    return any(map(unprintable, windows(text)))


def _is_assigned(char: str) -> bool:
    """Whether a character means anything, if only to those who agreed about it."""
    return char.isprintable() or category(char) != "Cn"


def _has_any(text: str, some: bytes) -> bool:
    """Whether any of some characters of ASCII is in a text: of a long one a pattern finds it ten times as slowly."""
    data = encode(text)
    return len(data.translate(None, some)) != len(data)


_CONTROL_BYTES: Final = bytes(range(0x20)) + b"\x7f"


def _backslashes(where: re.Pattern[str], text: str) -> str:
    """A backslash before every character that the pattern finds."""
    return where.sub(r"\\\g<0>", text)


def _within(begin: str, change: Callable[[str], str], text: str, end: str) -> Iterator[str]:
    """A long text between quotes, in pieces."""
    return chain((begin,), map(change, windows(text)), (end,))


def _translated(table: dict[int, str]) -> Callable[[str], str]:
    return lambda part: part.translate(table)


def as_locale(host: Any, text: str) -> str:
    """The text with one character per byte where the C locale holds: what is not ASCII is then not printable."""
    return text if text.isascii() or not bytewise(host) else as_bytes(text)


def ansi(text: str) -> str:
    """`$'...'`."""
    if len(text) <= SMALL:
        return f"$'{text.translate(_ANSI)}'"
    return "".join(_ansi_pieces(text))


def _ansi_pieces(text: str) -> Iterator[str]:
    return _within("$'", _translated(_ANSI), text, "'")


_WIDE_CONTROLS: Final = (*range(0x80, 0xA0), 0x2028, 0x2029, 0xFFFE, 0xFFFF)


class _Escapes(dict[int, str]):
    """What stands for a character in `$'...'`; of all there are, those that were asked about are kept."""

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
    if len(text) <= SMALL:
        return "\\'" if text == "'" else "'" + text.replace("'", "'\\''") + "'"
    return "".join(single_pieces(text))


def single_pieces(text: str) -> Iterator[str]:
    """The same, of a long text in pieces."""
    if len(text) <= SMALL:
        return iter((single(text),))
    return _within("'", lambda part: part.replace("'", "'\\''"), text, "'")


def at_q(text: str) -> str:
    """`${x@Q}`: always quoted."""
    return ansi(text) if unprintable(text) else single(text)


def backslashed(text: str) -> str:
    """`printf %q`: backslashes where needed."""
    if not text:
        return "''"
    if len(text) > SMALL:
        return "".join(backslashed_pieces(text))
    if unprintable(text):
        return ansi(text)
    quoted = _backslashes(_BACKSLASH, text)
    return "\\" + quoted if quoted[0] in "~#" else quoted.replace(":~", ":\\~").replace("=~", "=\\~")


def backslashed_pieces(text: str) -> Iterator[str]:
    """The same, of a long text in pieces."""
    if len(text) <= SMALL:
        return iter((backslashed(text),))
    return _ansi_pieces(text) if unprintable(text) else _marked(text)


def _marked(text: str) -> Iterator[str]:
    quoted = map(_translated(_TABLES[_BACKSLASH]), windows(text))
    if text[0] in "~#":
        yield "\\"
        yield from quoted
        return
    before = ""
    for part in quoted:
        if before in (":", "=") and part[0] == "~":
            yield "\\"
        yield part.replace(":~", ":\\~").replace("=~", "=\\~")
        before = part[-1]


def double(text: str) -> str:
    """`"..."` as `declare -p` writes values."""
    if len(text) > SMALL:
        return "".join(double_pieces(text))
    if unprintable(text):
        return ansi(text)
    return '"' + _backslashes(_DOUBLE, text) + '"'


def double_pieces(text: str) -> Iterator[str]:
    """The same, of a long text in pieces."""
    if len(text) <= SMALL:
        return iter((double(text),))
    if unprintable(text):
        return _ansi_pieces(text)
    return _within('"', _translated(_TABLES[_DOUBLE]), text, '"')


def setting(text: str) -> str:
    """A value as `set` and `trap`-like listings write it: quoted only where needed."""
    if unprintable(text):
        return ansi(text)
    return single(text) if is_special(text) else text


_METAS: Final = re.compile(r"[ \t\n'\"\\|&;()<>!{}*\[\]?^$`]|^[~#]|[=:]~").search
_META_BYTES: Final = b" \t\n'\"\\|&;()<>!{}*[]?^$`"


def is_special(text: str) -> bool:
    """Whether anything in a text means something to the shell."""
    if len(text) <= SMALL:
        return _METAS(text) is not None
    if text[0] in "~#" or text.find("=~") >= 0 or text.find(":~") >= 0:
        return True
    return any(_has_any(part, _META_BYTES) for part in windows(text))


def word(text: str) -> str:
    """A word of a trace line (`set -x`)."""
    if not text:
        return "''"
    if is_special(text):
        return single(text)
    return ansi(text) if unprintable(text) else text


def word_pieces(text: str) -> Iterator[str]:
    """The same, of a long text in pieces."""
    if len(text) <= SMALL:
        return iter((word(text),))
    if is_special(text):
        return single_pieces(text)
    return _ansi_pieces(text) if unprintable(text) else windows(text)
