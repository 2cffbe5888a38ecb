"""The C locale, in which every byte is one character to lengths, slices and patterns.

Only text that is not ASCII is converted, so scripts in UTF-8 pay for one flag of a string.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ramet.core.paths import decode, encode


def bytewise(host: Any) -> bool:
    """Return whether the session chose the C locale; the default is UTF-8."""
    get = host.variables.get
    return (get("LC_ALL") or get("LC_CTYPE") or get("LANG") or "") in ("C", "POSIX")


def as_bytes(text: str) -> str:
    """Return the text with one character per byte."""
    return encode(text).decode("ascii", "surrogateescape")


def as_text(text: str) -> str:
    """Reverse `as_bytes`."""
    return text if text.isascii() else decode(encode(text))


def whole(text: str) -> str:
    """Decode bytes that were appended one by one, as by `x+=$'\\xa9'`, and form characters together."""
    return text if text.isascii() or _BYTES(text) is None else decode(encode(text))


def at_seam(text: str, more: str) -> tuple[str, str]:
    """Return both texts, with a character that is split between them moved into the second."""
    if not text or not more or not ("\udc80" <= text[-1] <= "\udcff" and "\udc80" <= more[0] <= "\udcff"):
        return text, more
    seam = max(len(text) - 3, 0)  # bytes of the longest character but one
    return text[:seam], whole(text[seam:] + more[:3]) + more[3:]


_BYTES: Final = re.compile("[\udc80-\udcff]{2}").search


def all_ascii(found: str | Sequence[str] | None) -> bool:
    if found is None:
        return True
    return found.isascii() if isinstance(found, str) else all(map(str.isascii, found))
