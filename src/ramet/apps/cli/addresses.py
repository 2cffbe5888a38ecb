"""Addresses on the command line: NAME, NAME@REVISION and NAME@REVISION:/path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.store.model.address import Address


def address(text: str) -> Address:
    from ramet.store.model.address import parse_address

    return parse_address(text)


def split_name(text: str) -> tuple[str, str | None]:
    """`NAME` or `NAME@REV`; a path would be too much here."""
    found = address(text)
    if found.path is not None:
        raise RametError("invalid_argument", f"{text!r} names a path", "write NAME or NAME@REVISION")
    return found.name, found.revision


def file_of(text: str) -> tuple[str, str | None, str]:
    """`NAME[@REV]:/path`."""
    found = address(text)
    if found.path is None:
        raise RametError("invalid_argument", f"{text!r} names no file", "write NAME@REVISION:/path")
    return found.name, found.revision, found.path


def name_only(text: str) -> str:
    """`NAME`, for what changes a workspace."""
    name, revision = split_name(text)
    if revision is not None:
        raise RametError(
            "invalid_argument", f"{text!r} names a revision, which does not change", "write NAME, or fork it"
        )
    return name
