"""`DirectoryBox`: a box in which programs work on real directories, at their own paths, and see no others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from ramet.backends.local.disk import DiskResource
from ramet.core.errors import RametError
from ramet.core.limits import Limits
from ramet.core.paths import ROOT
from ramet.native.layout import SYSTEM_NAMES, box_owner
from ramet.native.mapped_mount import open_mapped
from ramet.native.options import Native
from ramet.network.network import Network
from ramet.workspace.mounts import MountForm, MountMode
from ramet.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ramet.core.streams import Reader
    from ramet.native.tree import TreeResource
    from ramet.workspace.execution import Execution

PROVIDED: Final = "usr"
"""Directories of the system that every box shows read-only."""
_UNBOUNDED: Final = 1 << 62


def shown_directory(path: str, doing: str) -> str:
    """Return a directory of the host as a box shows it: at its real path."""
    found = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(found):
        raise RametError("not_found", f"cannot {doing} {path}: it is no directory", "Name a directory.")
    top = found[1:].partition("/")[0]
    if not top or top in SYSTEM_NAMES:
        raise RametError("invalid_argument", f"cannot {doing} {found}: it belongs to the box", "Use another directory.")
    return found


def readable_mounts(directories: Iterable[str]) -> dict[str, MountForm]:
    """Return mounts that show directories at their own paths."""
    found: dict[str, MountForm] = {}
    for path in directories:
        if os.path.realpath(os.path.expanduser(path)).startswith(f"/{PROVIDED}/"):
            continue  # it is there
        real = shown_directory(path, "read")
        found[real] = (DiskResource(real), MountMode.READ)
    return found


def need_writable(directory: str) -> None:
    """Refuse a directory in which the user of root's box could not write."""
    owner = box_owner()
    if not owner.foreign:
        return
    fd = open_mapped(directory, owner, writable=True)
    if fd < 0:
        raise RametError(
            "native_unavailable", f"cannot let a box of root write to {directory}: its file system maps no owners",
            "Run this as the owner of the directory, or put it on another file system, such as ext4.",
        )  # fmt: skip
    os.close(fd)


class DirectoryBox:
    """`async with DirectoryBox("project", readable=["~/models"]) as box: box.run("make")`.

    Programs change the directory itself. They have the given variables, no files of the host but the given directories
    and its `/usr`, and the network that `network` allows.
    """

    def __init__(
        self, directory: str, *, readable: Iterable[str] = (), writable: Iterable[str] = (),
        env: Mapping[str, str] | None = None, native: Native | None = None,
        network: Network | Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.directory = shown_directory(directory, "bind")
        self._env, self._native, self._network = dict(env or {}), native or Native(), network
        self._mounts = readable_mounts(readable)
        for path in (*writable, self.directory):
            found = shown_directory(path, "write to")
            need_writable(found)
            self._mounts[found] = DiskResource(found)
        self.workspace: Workspace

    async def __aenter__(self) -> Self:
        self.workspace = await asyncio.to_thread(
            lambda: Workspace(self._mounts, native=self._native, env=self._env, network=self._network)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.workspace.close()

    @property
    def tree(self) -> TreeResource:
        """What the box has at `/`."""
        tree = self.workspace._mounts[ROOT].tree
        assert tree is not None
        return tree

    @property
    def place(self) -> str:
        """The directory of the box, by which other processes of this user find it."""
        return os.path.dirname(os.path.dirname(self.tree.place.folder))

    def sees(self, path: str) -> bool:
        """Whether programs find a file of the host at the same path."""
        return path.startswith(f"/{PROVIDED}/") or any(f"{path}/".startswith(f"{top}/") for top in self._mounts)

    def writes(self, path: str) -> str | None:
        """Return the given directory in which programs could change a path of the host, or what is below it."""
        real = os.path.realpath(path)
        open_to = (top for top, form in self._mounts.items() if not isinstance(form, tuple))
        return next((top for top in open_to if f"{real}/".startswith(f"{top}/") or top.startswith(f"{real}/")), None)

    def run(self, command: str, stdin: Reader | Any = None, *, env: Mapping[str, str] | None = None) -> Execution:
        """Run a command in the directory; its output has no bound."""
        limits = Limits(output_bytes=_UNBOUNDED)
        return self.workspace.execute(
            command, stdin=stdin, native=True, cwd=self.directory, env=env, limits=limits
        )  # fmt: skip
