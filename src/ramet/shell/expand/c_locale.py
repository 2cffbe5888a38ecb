"""The C locale: where it holds, every byte is a character of its own to lengths, slices and patterns.

Text is looked at that way only when it is not ASCII, so scripts that never leave UTF-8 pay for one flag of a string.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ramet.concurrency.sizes import SMALL
from ramet.core.paths import decode, encode
from ramet.shell.expand.long_text import windows


def bytewise(host: Any) -> bool:
    """Whether the session has chosen the C locale; a session that chose nothing has UTF-8."""
    get = host.variables.get
    return (get("LC_ALL") or get("LC_CTYPE") or get("LANG") or "") in ("C", "POSIX")


def as_bytes(text: str) -> str:
    """The text with one character per byte."""
    if len(text) > SMALL:
        return "".join(map(as_bytes, windows(text)))
    return encode(text).decode("ascii", "surrogateescape")


def as_text(text: str) -> str:
    """The reverse: bytes that make up characters become those again."""
    return text if text.isascii() else decode(encode(text))


def whole(text: str) -> str:
    """Bytes that came one by one, as by `x+=$'\\xa9'`, and form characters together become these; a text of more than
    a window stays as it is."""
    return text if len(text) > SMALL or _BYTES(text) is None else decode(encode(text))


def at_seam(text: str, more: str) -> tuple[str, str]:
    """A text and what comes behind it; a character that begins in the one and ends in the other is put in the other."""
    if not text or not more or not ("\udc80" <= text[-1] <= "\udcff" and "\udc80" <= more[0] <= "\udcff"):
        return text, more
    seam = max(len(text) - 3, 0)  # bytes of the longest character but one
    return text[:seam], whole(text[seam:] + more[:3]) + more[3:]


_BYTES: Final = re.compile("[\udc80-\udcff]{2}").search


def all_ascii(found: str | Sequence[str] | None) -> bool:
    if found is None:
        return True
    return found.isascii() if isinstance(found, str) else all(map(str.isascii, found))
