"""Format times for `printf '%(...)T'` and `\\D{...}` within bash's buffer of 128 bytes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ramet.core.paths import encode
from ramet.text.strftime import strftime

_ROOM: Final = 128
"""Bytes, with one for the end: a time that takes more is none at all."""


def time_text(form: str, moment: datetime) -> str:
    """Format a time; empty when that is too long."""
    if len(form) > _ROOM * _ROOM:
        return ""
    text = strftime(form, moment, c_library=True)
    return text if len(encode(text)) < _ROOM else ""
