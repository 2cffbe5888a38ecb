"""Object keys as file names, and pages of a bucket listing as directory entries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ramet.core.stat import Kind, Stat

MARKER: Final = ".ramet-keep"
"""The object that keeps an empty directory."""

Entries = list[tuple[str, Stat]]

_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]|[\udc80-\udcff]|%(?=(?:25)*(?:[01][0-9A-F]|5C|7F|U[89A-F][0-9A-F]))")
_ESCAPED: Final = re.compile(
    r"%25(?=(?:25)*(?:[01][0-9A-F]|5C|7F|U[89A-F][0-9A-F]))|%([01][0-9A-F]|5C|7F)|%U([89A-F][0-9A-F])"
)
is_plain: Final = re.compile(r"[^\x00-\x1f\x7f\\\udc80-\udcff%]*").fullmatch


def escaped(name: str) -> str:
    """A name as part of a key: control characters and bytes that are not UTF-8 are written as `%0A` and `%UFF`.

    So is the backslash, which some servers take for a slash.
    """

    def escape(found: re.Match[str]) -> str:
        number = ord(found[0])
        return "%25" if found[0] == "%" else f"%U{number - 0xDC00:02X}" if number > 0xFF else f"%{number:02X}"

    return _FORBIDDEN.sub(escape, name)


def unescaped(key: str) -> str:
    def unescape(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return chr(0xDC00 + int(found[2], 16)) if found[2] else "%"

    return _ESCAPED.sub(unescape, key) if "%" in key else key


def stat_of(meta: Any, ttl: float) -> Stat:
    modified = round(meta["last_modified"].timestamp() * 1e6) * 1000
    return Stat(Kind.FILE, meta["size"], modified, (meta["e_tag"] or "").strip('"') or meta["version"], ttl)


def files_of(page: Iterable[Any], start: int, ttl: float, folders: Iterable[str] = ()) -> Entries:
    """Return the files of a page, whose keys differ from `start` on; `folders` are skipped."""
    skipped = {"", MARKER, *folders}
    return [
        (unescaped(name), stat_of(meta, ttl)) for meta in page if (name := meta["path"][start:]) not in skipped
    ]  # fmt: skip


def level_of(page: list[Any], start: int, ttl: float, *, whole: bool) -> Entries | None:
    """Derive the entries of a directory from a recursive page; None if the page is not sufficient.

    A key that ends in a slash (a directory marker of some tools) arrives without it and looks like an empty file; only
    a listing of one level distinguishes them. Deeper keys may hide the rest of the level unless the page is `whole`.
    """
    names = [meta["path"][start:] for meta in page]
    deeper = [name for name in names if "/" in name] if "/" in "".join(names) else []
    if deeper and not whole:
        return None
    empty = [name for name, meta in zip(names, page, strict=True) if not meta["size"]]
    if any(name and name != MARKER and "/" not in name for name in empty):
        return None
    folders = dict.fromkeys(name.partition("/")[0] for name in deeper)
    flat = [meta for name, meta in zip(names, page, strict=True) if "/" not in name] if deeper else page
    directory = Stat(Kind.DIR, ttl=ttl)
    return [(unescaped(name), directory) for name in folders] + files_of(flat, start, ttl, folders)
