"""`Unwritable`: the mutations of a resource whose files are read-only views, all refused."""

from __future__ import annotations

import errno

from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Data, How
from ramet.core.stat import Attrs, Stat


class Unwritable:
    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        raise fail(errno.EROFS, path)

    async def mkdir(self, path: Path) -> None:
        raise fail(errno.EROFS, path)

    async def remove(self, path: Path) -> None:
        raise fail(errno.EROFS, path)

    async def rename(self, src: Path, dst: Path) -> None:
        raise fail(errno.EROFS, src)

    async def copy(self, src: Path, dst: Path) -> None:
        raise fail(errno.EROFS, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        raise fail(errno.EROFS, path)
