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
    """Split `NAME` or `NAME@REV`; refuse a path."""
    found = address(text)
    if found.path is not None:
        raise RametError("invalid_argument", f"{text!r} names a path", "write NAME or NAME@REVISION")
    return found.name, found.revision


def file_of(text: str) -> tuple[str, str | None, str]:
    """Split `NAME[@REV]:/path`."""
    found = address(text)
    if found.path is None:
        raise RametError("invalid_argument", f"{text!r} does not name a path", "write NAME@REVISION:/path")
    return found.name, found.revision, found.path


def name_only(text: str) -> str:
    """Return `NAME`, for verbs that change a workspace; refuse a revision."""
    name, revision = split_name(text)
    if revision is not None:
        raise RametError("invalid_argument", f"cannot change {text!r}: it is a past revision", "write NAME, or fork it")
    return name


def absolute(paths: list[str] | None) -> list[str]:
    """Return paths as they are in a workspace, whether or not they were written with a slash in front."""
    return [f"/{path.removeprefix('./').strip('/')}" for path in paths or ()]
