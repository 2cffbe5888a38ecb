"""The C locale: where it holds, every byte is a character of its own to lengths, slices and patterns.

Text is looked at that way only when it is not ASCII, so scripts that never leave UTF-8 pay for one flag of a string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramet.core.paths import encode
from ramet.shell.expand.aside import WINDOW, windows
from ramet.shell.expand.growing import decoded, encoded, grown


def bytewise(host: Any) -> bool:
    """Whether the session has chosen the C locale; a session that chose nothing has UTF-8."""
    get = host.store.get
    return (get("LC_ALL") or get("LC_CTYPE") or get("LANG") or "") in ("C", "POSIX")


def as_bytes(text: str) -> str:
    """The text with one character per byte."""
    if len(text) > WINDOW:
        return grown(map(as_bytes, windows(text)))
    return encode(text).decode("ascii", "surrogateescape")


def as_text(text: str) -> str:
    """The reverse: bytes that make up characters become those again."""
    return text if text.isascii() else decoded(encoded(text))


def all_ascii(found: str | Sequence[str] | None) -> bool:
    if found is None:
        return True
    return found.isascii() if isinstance(found, str) else all(map(str.isascii, found))
