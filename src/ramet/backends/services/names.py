"""Names of a service's things: a title and the id that decides, as in `Login fails__42`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ramet.backends.file_names import as_name
from ramet.core.paths import encode

TITLE: Final = 80
"""Bytes of a title that a name carries."""


def title_name(title: str) -> str:
    """A title as the part of a name: escaped, and cut at a character to `TITLE` bytes."""
    cut = encode(title.strip())[:TITLE]
    return as_name(cut.decode("utf-8", "ignore").strip() or "untitled")


def split_name(file: str, id: str) -> str:
    """A file of a service: `graph.png` with the id before its extension."""
    stem, dot, extension = file.rpartition(".")
    if not dot or not stem:
        stem, extension = stem or extension, ""
    return f"{title_name(stem)}__{id}" + (f".{title_name(extension)}" if extension else "")


def key_first(name: str) -> str | None:
    """The number that a name begins with: `42__Login fails`, or `42`."""
    found = re.fullmatch(r"(\d{1,18})(?:__.*)?", name, re.DOTALL)
    return found[1] if found is not None else None


def key_last(pattern: str, extension: str = "", *, any_end: bool = False) -> Callable[[str], str | None]:
    """Find the key at the end of a name: `general__C024`, or `C024`; an extension may follow, any if `any_end`."""
    end = r"(?:\.[^.]*)?" if any_end else f"(?:{re.escape(extension)})?"
    compiled = re.compile(rf"(?:.*__)?({pattern}){end}", re.DOTALL)

    def find(name: str) -> str | None:
        found = compiled.fullmatch(name)
        return found[1] if found is not None else None

    return find


def time_ns(text: str | None) -> int | None:
    """An ISO 8601 time in nanoseconds."""
    if not text:
        return None
    try:
        return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) * 1_000_000_000
    except ValueError:
        return None
