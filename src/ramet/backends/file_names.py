"""Reversible file names for tables, keys and subjects: `%` and two hex digits escape a byte."""

from __future__ import annotations

import re
from typing import Final

from ramet.core.paths import NAME_MAX, decode, encode

_AWKWARD: Final = re.compile(r"[\x00-\x1f\x7f/%]")
_DOTS: Final = re.compile(r"\.{1,2}")
_ESCAPE: Final = re.compile(rb"%([0-9A-F]{2})")


def as_name(text: str, also: str = "") -> str:
    """`text` as one segment of a path; characters of `also` (ASCII) are escaped too. Empty becomes `%`."""
    if not text:
        return "%"
    if _DOTS.fullmatch(text):
        return "%2E" * len(text)
    name = _AWKWARD.sub(_escape, text)
    for character in also:
        name = name.replace(character, f"%{ord(character):02X}")
    return name


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def from_name(name: str, also: str = "") -> str | None:
    """Return the text that `as_name` made this name of; None for a name that it never makes."""
    if name == "%":
        return ""
    text = decode(_ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), encode(name)))
    return text if as_name(text, also) == name else None


def fits(name: str) -> bool:
    return len(encode(name)) <= NAME_MAX
