"""`RemoteMounts`: the mounts of a workspace that programs see through FUSE: which there are, and who serves them.

The box mounts a device of the kernel for each (`helper/fuse_devices.py`); this process answers. The device closes with
this process, so that a kill leaves no mount behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ramet.core.fs import FileSystem
from ramet.core.paths import parse
from ramet.native.fuse.callers import Caller, Callers
from ramet.native.fuse.connection import Connection
from ramet.native.fuse.draft import Spool
from ramet.native.fuse.verbs import MountedTree

REMEDY: Final = "Load the kernel module fuse, or give a container the device: --device /dev/fuse."


class RemoteMounts:
    """`adopt` the devices of each new box, let each program be a `member`, and `detach` before the box is ended."""

    def __init__(self, folder: str, most: int) -> None:
        """Drafts of files may take `most` bytes of the directory."""
        self.callers = Callers()
        self._spool = Spool(folder, most)
        self._mounts: dict[str, tuple[bool, bool]] = {}
        self._connections: dict[str, Connection] = {}
        self.problem = ""
        """Why programs do not see some of them."""

    def add(self, prefix: str, *, writable: bool, late: bool) -> None:
        """Add a mount; `late` ones get a new file when it is closed, as one write."""
        self._mounts[prefix] = writable, late

    def remove(self, prefix: str) -> None:
        self._mounts.pop(prefix, None)

    @property
    def outermost(self) -> Mapping[str, bool]:
        """Prefixes that are mounted, and whether they are writable: the others lie in these, and are served there."""
        tops = [parse(prefix) for prefix in self._mounts]
        return {
            str(top): writable
            for top, (writable, _) in zip(tops, self._mounts.values(), strict=True)
            if not any(top != other and top.under(other) for other in tops)
        }

    @property
    def unseen(self) -> list[str]:
        """Prefixes that programs do not see."""
        return [prefix for prefix in self.outermost if prefix not in self._connections]

    def adopt(self, devices: Mapping[str, int], problem: str) -> None:
        """Serve the devices of a box that was just built."""
        self.problem = problem
        for prefix, fd in devices.items():
            writable = any(mode for mode, _ in self._below(prefix))
            late = any(late for _, late in self._below(prefix))
            tree = MountedTree(parse(prefix), self._spool, writable=writable, late=late)
            self._connections[prefix] = Connection(fd, tree, self.callers)

    def _below(self, prefix: str) -> Iterator[tuple[bool, bool]]:
        top = parse(prefix)
        return (how for other, how in self._mounts.items() if parse(other).under(top))

    @contextmanager
    def member(self, fs: FileSystem) -> Iterator[Caller]:
        """Answer a program while it runs: with this tree, in this context, on this loop."""
        for connection in self._connections.values():
            connection.attend()
        with self.callers.member(fs) as caller:
            yield caller

    async def settle(self, caller: Caller) -> None:
        """Finish what a program that has ended left to do: its files are closed."""
        for connection in self._connections.values():
            await connection.settle(caller)

    def detach(self) -> None:
        """Fail all requests from now on: a process that waits for one can end."""
        while self._connections:
            self._connections.popitem()[1].close()

    def close(self) -> None:
        self.detach()
        self.callers.close()
