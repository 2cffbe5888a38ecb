"""`Trial`: run programs over a directory of the host; look at what they changed, then apply it or not."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from stat import S_ISDIR, S_ISLNK
from typing import TYPE_CHECKING, Final, Self

from ramet.core.paths import Path, parse
from ramet.native.options import Native
from ramet.native.overlay_changes import OverlayChange, apply, conflicts, overlay_changes
from ramet.native.tree import OverlaidDirectory, TreeResource
from ramet.workspace.mounts import MountForm
from ramet.workspace.stored.directory_box import readable_mounts, shown_directory
from ramet.workspace.stored.file_patch import PATCH_BYTES, FilePatch, file_patch
from ramet.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ramet.store.model.revisions import Revision
    from ramet.workspace.stored.store import Store

CLOCK_SECONDS: Final = 0.02
"""Longer than the kernel's clock for file times stands still."""


@dataclass(frozen=True)
class Applied:
    """What became of changes: nothing is applied when there are conflicts."""

    paths: tuple[Path, ...] = ()
    conflicts: tuple[Path, ...] = ()
    skipped: tuple[Path, ...] = field(default=())
    """Sockets and pipes."""


class Trial:
    """`async with Trial("project") as trial:` then `trial.workspace.execute(...)`, `changes()` and `apply()`."""

    def __init__(
        self, directory: str, *, readable: Iterable[str] = (), native: Native | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Open the directory; programs see it at its own path, and `readable` directories without writing."""
        self.directory = shown_directory(directory, "try in")
        self._env, self._native = env, native or Native()
        self._mounts: dict[str, MountForm] = {self.directory: OverlaidDirectory(self.directory)}
        self._mounts.update(readable_mounts(readable))
        self.workspace: Workspace
        self._began = 0

    async def __aenter__(self) -> Self:
        self._began = time.time_ns()
        await asyncio.sleep(CLOCK_SECONDS)  # what changes from here on has a later time
        self.workspace = await asyncio.to_thread(
            lambda: Workspace(self._mounts, native=self._native, env=self._env)
        )  # fmt: skip
        assert self.workspace.programs is not None
        self.workspace.programs.compared = True
        self.workspace.get_session().state.cwd = parse(self.directory)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.workspace.close()

    @property
    def _tree(self) -> TreeResource:
        tree = self.workspace._mounts[parse(self.directory)].tree
        assert tree is not None
        return tree

    def changes(self) -> list[OverlayChange]:
        """List the changed paths, seen from the directory."""
        return overlay_changes([self.directory], self._tree.place.upper)

    def patches(self, changes: Iterable[OverlayChange]) -> Iterator[FilePatch]:
        """Yield the changed lines of each file."""
        for change in changes:
            found = change.after or change.before
            assert found is not None
            if S_ISDIR(found.st_mode):
                continue
            before = self._content(self.directory, change.path, change.before)
            after = self._content(self._tree.place.upper, change.path, change.after)
            modes = [0 if one is None else one.st_mode for one in (change.before, change.after)]
            yield file_patch(change.path, before, after, (modes[0], modes[1]))

    @staticmethod
    def _content(top: str, path: Path, found: os.stat_result | None) -> bytes | None:
        if found is None or S_ISDIR(found.st_mode):
            return None
        if S_ISLNK(found.st_mode):
            return os.fsencode(os.readlink(top + path))
        if found.st_size > PATCH_BYTES:
            return b"\0"  # shown as binary
        with open(top + path, "rb") as file:
            return file.read()

    def apply(self, changes: Sequence[OverlayChange], paths: Collection[str] | None = None) -> Applied:
        """Make the changes in the directory, all of them or those at or below `paths`."""
        tops = None if paths is None else tuple(f"/{path.strip('/')}/" for path in paths)
        chosen = [one for one in changes if tops is None or f"{one.path}/".startswith(tops)]
        found = conflicts(self.directory, chosen, self._began)
        if found:
            return Applied(conflicts=tuple(found))
        skipped = apply(self.directory, self._tree.place.upper, chosen)
        return Applied(tuple(one.path for one in chosen if one.path not in skipped), (), tuple(skipped))

    async def keep(self, store: Store, name: str, message: str) -> Revision:
        """Make a workspace of the result: a fork of one that holds the directory as it is, with one revision more.

        That one is a workspace called as the directory, which is made if there is none. Where another one has its name
        and not its content, it is called `NAME-before`.
        """
        from ramet.workspace.stored.commit_policy import CommitPolicy
        from ramet.workspace.stored.open_options import OpenOptions
        from ramet.workspace.stored.proposal import Attempt, directory_base, propose

        store.repository.refs.require_free(name)
        base = await directory_base(store, self.directory, name)
        top = parse(self.directory)
        changed = {change.path.onto(top) for change in await asyncio.to_thread(self.changes)}
        attempt = Attempt(self.workspace, changed, list(self.workspace.history), top)
        options = OpenOptions(commit=CommitPolicy("never"), native=False)
        return await propose(store.repository, base, name, attempt, message, options)
