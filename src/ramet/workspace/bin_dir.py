"""`/bin` and `/usr/bin`: the command table as files, for scripts that look for programs.

The files hold no code: running one by its path runs the command of the table. A tree with its own `/usr/bin` keeps it.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.proc import PROGRAM
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.layers.readonly import Immutable
from ramet.shell.interp.run.external import AS_PROGRAMS, SHELLS
from ramet.workspace.registry import CommandRegistry


class ProgramsResource(Immutable):
    """One file per command, created on access."""

    caps = Cap.RANGES | Cap.LOCAL

    def __init__(self, commands: CommandRegistry) -> None:
        self._commands = commands

    def _content(self, path: Path) -> bytes:
        name = path[1:]
        if name in self._commands or name in SHELLS or name in AS_PROGRAMS:
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
