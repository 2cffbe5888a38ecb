"""`TreeBranch`: what a branch of a native workspace changed in one tree, and how its parent takes that over.

Branch and parent have the same lower layers, and upper layers of their own: both are compared by what is in those.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from stat import S_IFMT, S_ISDIR, S_ISLNK, S_ISREG
from typing import Final

from ramet.backends.local.overlay_marks import is_opaque
from ramet.core.paths import Path
from ramet.core.resource import How, Resource
from ramet.core.stat import Attrs, Kind
from ramet.layers.overlay import Change, CommitReport, Conflict
from ramet.native.overlay_changes import OverlayChange, overlay_changes
from ramet.native.tree import TreeResource
from ramet.native.upper import walk_upper

BLOCK: Final = 1 << 20


class TreeBranch:
    """One tree of a branch; `lower` is the parent's resource at the same prefix, which `commit` writes to."""

    def __init__(self, tree: TreeResource, parent: TreeResource, lower: Resource) -> None:
        self._tree, self._parent, self._lower = tree, parent, lower
        self._known = len(parent.place.frozen)
        """Layers of the parent that the branch began with."""

    def changes(self) -> list[OverlayChange]:
        return overlay_changes(self._tree.place.lowers, self._tree.place.upper)

    def diff(self) -> list[Change]:
        return [_change(change) for change in self.changes()]

    def conflicts(self) -> list[Conflict]:
        """List the paths that the parent has changed since the branch began, too."""
        theirs = self._changed_by_parent()
        found = []
        for change in self.changes():
            above = change.path
            while above not in theirs and above != "/":
                above = above.parent
            if above in theirs:
                found.append(Conflict(change.path, None, None))
        return found

    def _changed_by_parent(self) -> set[str]:
        place = self._parent.place
        uppers = (*place.frozen[self._known :], place.upper)
        return {
            path
            for upper in uppers
            for path, stat in walk_upper(upper)
            if not S_ISDIR(stat.st_mode) or is_opaque(upper + path)
        }

    async def commit(self) -> CommitReport:
        """Make the changes in the parent's tree."""
        changes, lower = self.changes(), self._lower
        for change in changes:  # children come first where something is removed
            replaced = change.after is not None and change.before is not None and _differ(change.before, change.after)
            if change.after is None or replaced:
                await lower.remove(change.path)
        for change in changes:
            if change.after is not None:
                await self._put(change.path, change.after)
        return CommitReport(tuple(map(_change, changes)))

    async def _put(self, path: Path, after: os.stat_result) -> None:
        lower, place = self._lower, self._tree.place.upper + path
        if S_ISDIR(after.st_mode):
            try:
                await lower.mkdir(path)
            except FileExistsError:
                pass  # its mode differs
        elif S_ISLNK(after.st_mode):
            try:
                await lower.remove(path)
            except FileNotFoundError:
                pass  # it is new
            await lower.write(path, os.fsencode(os.readlink(place)), How.LINK)
            return
        elif S_ISREG(after.st_mode):
            await lower.write(path, _content(place))
        else:
            return  # sockets and pipes are of running programs
        await lower.setattr(path, Attrs(mode=after.st_mode & 0o7777, mtime_ns=after.st_mtime_ns))


async def _content(place: str) -> AsyncIterator[bytes]:
    fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while block := os.read(fd, BLOCK):
            yield block
    finally:
        os.close(fd)


def _differ(before: os.stat_result, after: os.stat_result) -> bool:
    return S_IFMT(before.st_mode) != S_IFMT(after.st_mode)


def _change(change: OverlayChange) -> Change:
    found = change.after or change.before
    assert found is not None
    kind = Kind.DIR if S_ISDIR(found.st_mode) else Kind.LINK if S_ISLNK(found.st_mode) else Kind.FILE
    return Change(change.path, change.what, kind)
