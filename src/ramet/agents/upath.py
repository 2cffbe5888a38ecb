"""`RametPath`: `UPath("ramet://proj-x@v1/data")`, a path of universal-pathlib into a revision."""

from __future__ import annotations

from fsspec.registry import get_filesystem_class
from upath import UPath

# universal-pathlib learns how our URLs are cut from the class itself, once fsspec has loaded it.
get_filesystem_class("ramet")


class RametPath(UPath):  # type: ignore[misc]
    """What the file system of the same protocol offers is all that it needs."""

    __slots__ = ()
