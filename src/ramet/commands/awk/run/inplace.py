"""`awk -i inplace`: replace each input file by what the program prints while it reads the file."""

from __future__ import annotations

import secrets

from ramet.commands.awk.syntax.tree import AwkError
from ramet.core.errors import reason
from ramet.core.paths import Path
from ramet.core.proc import Proc
from ramet.core.stat import Attrs
from ramet.core.streams import Writer


class Inplace:
    """The output that replaces the current file, which stays untouched until all is written."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._path: Path | None = None
        self._temporary: Path | None = None
        self._mode: int | None = None
        self.writer: Writer = proc.stdout

    @property
    def busy(self) -> bool:
        return self._path is not None

    async def begin(self, name: str) -> None:
        proc = self._proc
        path = proc.path(name)
        temporary = proc.path(f"{path.parent}/gawk.{secrets.token_hex(3)}")
        try:
            self._mode = (await proc.fs.stat(path, follow=True)).mode
            self.writer = await proc.create(str(temporary))
        except OSError as error:
            raise AwkError(f"fatal: inplace::begin: cannot create `{temporary}': {reason(error)}") from None
        self._path, self._temporary = path, temporary

    async def end(self, suffix: str) -> None:
        assert self._path is not None and self._temporary is not None
        proc, path, temporary = self._proc, self._path, self._temporary
        self._path = None
        await proc.close(self.writer)
        self.writer = proc.stdout
        if suffix:
            await proc.fs.rename(path, proc.path(f"{path.parent}/{path.name}{suffix}"))
        if self._mode is not None:
            await proc.fs.setattr(temporary, Attrs(mode=self._mode & 0o7777))
        await proc.fs.rename(temporary, path)

    async def abandon(self) -> None:
        """Drop the output of a stopped program: the file stays as it was."""
        if self._path is not None and self._temporary is not None:
            self._path = None
            await self._proc.close(self.writer)
            self.writer = self._proc.stdout
            await self._proc.fs.remove(self._temporary)
