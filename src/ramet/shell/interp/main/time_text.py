"""Format times for `printf '%(...)T'` and `\\D{...}` within bash's buffer of 128 bytes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ramet.core.paths import encode

_ROOM: Final = 128
"""Bytes, with one for the end: a time that takes more is none at all."""


def time_text(form: str, moment: datetime, seconds: int | None = None) -> str:
    """A moment in a form, or nothing when that is too long; `seconds` are what `%s` stands for."""
    if len(form) > _ROOM * _ROOM:
        return ""
    if seconds is not None:
        form = form.replace("%s", str(seconds))
    text = moment.strftime(form)
    return text if len(encode(text)) < _ROOM else ""
