"""`RametPath`: `UPath("ramet://proj-x@v1/data")`, a path of universal-pathlib into a revision."""

from __future__ import annotations

from upath import UPath


class RametPath(UPath):  # type: ignore[misc]
    """What the file system of the same protocol offers is all that it needs."""

    __slots__ = ()
