"""`/bin` and `/usr/bin`: the command table as files, for scripts that look for programs.

The files hold no code: running one by its path runs the command of the table. A tree with its own `/usr/bin` keeps it.
With native programs they are among the programs of the box.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.proc import PROGRAM
from ramet.core.resource import Cap, Resource
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing
from ramet.layers.readonly import Immutable
from ramet.shell.interp.run.external import AS_PROGRAMS, SHELLS
from ramet.workspace.registry import CommandRegistry


class ProgramsResource(Immutable):
    """One file per command, created on access."""

    caps = Cap.RANGES | Cap.LOCAL

    def __init__(self, commands: CommandRegistry) -> None:
        self._commands = commands

    def has(self, name: str) -> bool:
        return name in self._commands or name in SHELLS or name in AS_PROGRAMS

    def _content(self, path: Path) -> bytes:
        name = path[1:]
        if self.has(name):
            return PROGRAM + encode(name) + b"\n"
        raise fail(errno.ENOENT, path)

    async def stat(self, path: Path) -> Stat:
        if path == ROOT:
            return Stat(Kind.DIR, 0, mode=0o755)
        return Stat(Kind.FILE, len(self._content(path)), mtime_ns=0, version="program", mode=0o755)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        if path != ROOT:
            self._content(path)
            raise fail(errno.ENOTDIR, path)
        for name in sorted({*self._commands, *SHELLS, *AS_PROGRAMS}):
            yield name, await self.stat(path / name)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if path == ROOT:
            raise fail(errno.EISDIR, path)
        yield self._content(path)[start:stop]

    async def close(self) -> None:
        """Nothing is held."""


class CommandsAmongPrograms(Immutable):
    """A directory of the box in whose `folder` the commands hide programs of the same names, as they do in PATH."""

    caps = Cap.RANGES | Cap.LOCAL | Cap.DIRS

    def __init__(self, box: Resource, commands: ProgramsResource, folder: Path) -> None:
        self._box, self._commands, self._folder = box, commands, folder

    def _locate(self, path: Path) -> tuple[Resource, Path]:
        if path != ROOT and path.parent == self._folder and self._commands.has(path.name):
            return self._commands, ROOT / path.name
        return self._box, path

    async def stat(self, path: Path) -> Stat:
        resource, inner = self._locate(path)
        return await resource.stat(inner)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        resource, inner = self._locate(path)
        async with closing(resource.scan(inner)) as entries:
            async for name, stat in entries:
                if path != self._folder or not self._commands.has(name):
                    yield name, stat
        if path == self._folder:
            async for entry in self._commands.scan(ROOT):
                yield entry

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        resource, inner = self._locate(path)
        async with closing(resource.read(inner, start, stop)) as blocks:
            async for block in blocks:
                yield block

    async def close(self) -> None:
        """The box closes its directories."""
