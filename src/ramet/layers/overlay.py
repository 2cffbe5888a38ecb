"""`Overlay`: copy-on-write over any Resource. Writes and deletions stay in an upper tree until `commit()` or `abort()`.

Rules that this file keeps:
- The lower resource is only read, until `commit()`.
- `_gone` holds the lower paths that were removed; everything below one is hidden, also when something new is there.
- `_base` remembers the version of a lower file when it was first changed here; `commit()` never overwrites another.
- `_linked` leads from the inode of a lower file with several names to the one it was raised by: all change together.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import Node
from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Batching, Cap, Data, Edit, Handle, HardLinks, How, Layer, Openable, Resource, extension
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing

ABSENT = "absent"
"""The base of a path that did not exist below when it was first written here."""


class Change(NamedTuple):
    path: Path
    what: Literal["added", "modified", "removed", "posted"]
    kind: Kind


class Conflict(NamedTuple):
    """The lower resource is not as it was when the overlay first touched `path`."""

    path: Path
    expected: str | None
    found: str | None


@dataclass(frozen=True)
class CommitReport:
    applied: tuple[Change, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.conflicts


class Overlay:
    transparent = False

    caps = (
        Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.LINKS | Cap.MODES | Cap.MTIMES
        | Cap.ATIMES | Cap.TRUNCATE | Cap.DIRS | Cap.LOCAL | Cap.HARDLINKS
    )  # fmt: skip

    def __init__(self, inner: Resource, batching: Batching | None = None) -> None:
        """`batching` is the power of `inner` to make several changes one, if it has it."""
        self.inner, self._batching = inner, batching
        self._upper = RAMResource()
        self._gone: set[Path] = set()
        self._base: dict[Path, str | None] = {}
        self._linked: dict[int, Path] = {}

    def __repr__(self) -> str:
        return f"Overlay({self.inner!r}, {len(self._base) + len(self._gone)} changes)"

    # ------------------------------------------------------------------------------------------- two trees

    def _hidden(self, path: Path) -> bool:
        """Return whether the lower resource is hidden at `path`."""
        if not self._gone:
            return False
        while len(path) > 1:
            if path in self._gone:
                return True
            path = path.parent
        return False

    def raised(self, path: Path) -> Node:
        """Return the node of a path that the overlay changed; FileNotFoundError for others."""
        return self._upper.node(path)

    def hides(self, path: Path) -> bool:
        """Return whether the lower resource is hidden at `path`."""
        return self._hidden(path)

    def _above(self, path: Path) -> Stat | None:
        try:
            return self._upper.stat_now(path)
        except FileNotFoundError:
            return None

    async def _below(self, path: Path) -> Stat | None:
        if self._hidden(path):
            return None
        try:
            return await self.inner.stat(path)
        except FileNotFoundError:
            return None

    async def stat(self, path: Path) -> Stat:
        found = self._above(path)
        if found is None or len(path) == 1:
            if self._hidden(path):
                raise fail(errno.ENOENT, path)
            found = await self.inner.stat(path)
            if self._linked and await self._join(path, found):
                return self._upper.stat_now(path)
        return found

    async def _join(self, path: Path, below: Stat) -> bool:
        """Link `path` to its raised copy if it is another name of a lower file that was raised."""
        first = self._linked.get(below.inode) if below.inode is not None and (below.nlink or 1) > 1 else None
        if first is None or first == path or self._above(first) is None:
            return False
        await self._raise_parents(path)
        self._note(path, below)
        await self._upper.link(first, path)
        return True

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        mine = self._above(path)
        if mine is not None and mine.kind is not Kind.DIR:
            raise fail(errno.ELOOP if mine.kind is Kind.LINK else errno.ENOTDIR, path)
        upper = dict(chain.from_iterable(self._upper.scan_now(path))) if mine is not None else {}
        if not self._hidden(path):
            try:
                async for name, stat in self.inner.scan(path):
                    if name not in upper and (not self._gone or path / name not in self._gone):
                        if self._linked and await self._join(path / name, stat):
                            stat = self._upper.stat_now(path / name)
                        yield name, stat
            except (FileNotFoundError, NotADirectoryError):
                if mine is None:
                    raise
        elif mine is None:
            raise fail(errno.ENOENT, path)
        for entry in upper.items():
            yield entry

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if self._above(path) is not None:
            return self._upper.read(path, start, stop)
        return self._read_below(path, start, stop)

    async def _read_below(self, path: Path, start: int, stop: int | None) -> AsyncIterator[bytes]:
        if self._hidden(path):
            raise fail(errno.ENOENT, path)
        if self._linked and await self._join(path, await self.inner.stat(path)):
            async for block in self._upper.read(path, start, stop):
                yield block
            return
        async with closing(self.inner.read(path, start, stop)) as blocks:
            async for block in blocks:
                yield block

    # -------------------------------------------------------------------------------------------- changing

    async def _raise_parents(self, path: Path) -> None:
        """Make the directories that hold `path` exist above, with the attributes they have below."""
        missing: list[tuple[Path, Stat]] = []
        parent = path.parent
        while self._above(parent) is None:
            missing.append((parent, await self.stat(parent)))
            parent = parent.parent
        for directory, stat in reversed(missing):
            if stat.kind is not Kind.DIR:
                raise fail(errno.ELOOP if stat.kind is Kind.LINK else errno.ENOTDIR, path)
            await self._upper.mkdir(directory)
            await ops.keep_attrs(self._upper, directory, stat)

    async def _raise_file(self, path: Path, content: bool = True) -> None:
        """Copy a lower file to the upper tree so that it can be changed."""
        if self._above(path) is not None:
            return
        stat = await self.stat(path)
        await self._raise_parents(path)
        self._note(path, stat)
        if stat.kind is Kind.DIR:
            await self._upper.mkdir(path)
        elif stat.kind is Kind.LINK:
            await self._upper.write(path, (stat.target or "").encode("utf-8", "surrogateescape"), How.LINK)
        else:
            await self._upper.write(path, self.inner.read(path) if content else b"")
            if stat.inode is not None and (stat.nlink or 1) > 1:
                self._linked[stat.inode] = path
        await ops.keep_attrs(self._upper, path, stat)

    def _note(self, path: Path, below: Stat | None) -> None:
        if path not in self._base:
            self._base[path] = ABSENT if below is None else _state(below)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if len(path) == 1:
            raise fail(errno.EISDIR, path)
        above = self._above(path)
        below = await self._below(path) if above is None else None
        found = above or below
        if if_version is not None and (found is None or found.version != if_version):
            raise fail(errno.ESTALE, path)
        if found is not None:
            if how in (How.CREATE, How.LINK):
                raise fail(errno.EEXIST, path)
            if found.kind is not Kind.FILE:
                raise fail(errno.ELOOP if found.kind is Kind.LINK else errno.EISDIR, path)
        if above is None:
            if below is not None and (how in (How.APPEND, How.PATCH) or (below.nlink or 1) > 1):
                await self._raise_file(path)
            else:
                await self._raise_parents(path)
                # All of the data first: a source that fails must leave the old content in sight.
                data = data if isinstance(data, bytes) else await ops.collect(data)
                self._note(path, await self._below(path))
                written = await self._upper.write(path, data, how, at=at)
                if below is not None and below.mode is not None:
                    await ops.keep_attrs(self._upper, path, Stat(Kind.FILE, mode=below.mode))
                    written = self._upper.stat_now(path)
                return written
        return await self._upper.write(path, data, how, at=at)

    async def mkdir(self, path: Path) -> None:
        if self._above(path) is not None or await self._below(path) is not None:
            raise fail(errno.EEXIST, path)
        await self._raise_parents(path)
        self._note(path, None if self._hidden(path) else await self._below(path))
        await self._upper.mkdir(path)

    async def remove(self, path: Path) -> None:
        stat = await self.stat(path)
        if len(path) == 1:
            raise fail(errno.EBUSY, path)
        if stat.kind is Kind.DIR:
            async for _ in self.scan(path):
                raise fail(errno.ENOTEMPTY, path)
        below = await self._below(path)
        if self._above(path) is not None:
            await self._upper.remove(path)
        if below is not None:
            self._note(path, below)
            self._gone.add(path)

    async def rename(self, src: Path, dst: Path) -> None:
        stat = await self.stat(src)
        if src == dst:
            return
        if dst.under(src) or len(src) == 1:
            raise fail(errno.EINVAL, dst)
        try:
            existing: Stat | None = await self.stat(dst)
        except FileNotFoundError:
            existing = None
        if existing is not None:
            if existing.is_dir != stat.is_dir:
                raise fail(errno.EISDIR if existing.is_dir else errno.ENOTDIR, dst)
            await self.remove(dst)
        await self._raise_tree(src)
        await self._raise_parents(dst)
        moved = [(src, stat), *[entry async for entry in ops.walk(self._upper, src)]] if stat.is_dir else [(src, stat)]
        for path, _ in moved:
            target = path.below(src).onto(dst)
            self._note(target, None if self._hidden(target) else await self._below(target))
        below = await self._below(src)
        await self._upper.rename(src, dst)
        if below is not None:
            self._note(src, below)
            self._gone.add(src)

    async def _raise_tree(self, top: Path) -> None:
        await self._raise_file(top)
        if self._upper.stat_now(top).kind is Kind.DIR:
            async for path, _ in ops.walk(self, top):
                await self._raise_file(path)

    async def copy(self, src: Path, dst: Path) -> None:
        stat = await self.stat(src)
        if stat.kind is not Kind.FILE:
            raise fail(errno.EISDIR, src)
        await self.write(dst, self.read(src))
        await ops.keep_attrs(self, dst, Stat(Kind.FILE, mode=stat.mode))

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self._raise_file(path, content=attrs.size != 0)
        await self._upper.setattr(path, attrs)

    async def link(self, src: Path, dst: Path) -> None:
        stat = await self.stat(src)
        if stat.kind is Kind.DIR:
            raise fail(errno.EPERM, src)
        if self._above(dst) is not None or await self._below(dst) is not None:
            raise fail(errno.EEXIST, dst)
        await self._raise_file(src)
        await self._raise_parents(dst)
        self._note(dst, None)
        await self._upper.link(src, dst)

    async def close(self) -> None:
        """Leave the lower resource open: it belongs to the creator of the overlay."""

    def open(self, path: Path, *, write: bool) -> Handle:
        """Open a file of the upper tree (the VFS raises a file before it opens it for writing)."""
        if self._above(path) is not None:
            return self._upper.open(path, write=write)
        openable = extension(self.inner, Openable)  # type: ignore[type-abstract]
        if write or openable is None or self._hidden(path):
            raise fail(errno.ENOTSUP, path)
        return openable.open(path, write=False)

    def fork(self) -> Overlay:
        """Return an independent overlay with the same changes over the same lower resource."""
        twin = Overlay(self.inner, self._batching)
        self._fork_into(twin)
        return twin

    def _fork_into(self, twin: Overlay) -> None:
        twin._upper, twin._gone, twin._base = self._upper.fork(), set(self._gone), dict(self._base)
        twin._linked = dict(self._linked)

    # ------------------------------------------------------------------------------ what changed, and its end

    async def diff(self) -> list[Change]:
        """Return the changes against the lower resource, in the order in which `commit` applies them."""
        changes: list[Change] = []
        for path in sorted(self._gone):
            below = await _stat_or_none(self.inner, path)
            if below is not None and not (path.parent != ROOT and self._hidden(path.parent)):
                for lower, stat in await _tree(self.inner, path, below):
                    again = self._made(lower)  # made anew as the same kind of thing: that is a modification
                    if again is None or again.kind is not stat.kind:
                        changes.append(Change(lower, "removed", stat.kind))
        removed = {change.path for change in changes}
        async for path, stat in ops.walk(self._upper, ROOT):
            if path not in self._base:
                continue  # a directory that only carries what is below
            below = None if path in removed else await _stat_or_none(self.inner, path)
            if below is None:
                changes.append(Change(path, "added", stat.kind))
            elif stat.kind is not Kind.DIR or stat.mode != below.mode:
                changes.append(Change(path, "modified", stat.kind))
        return changes

    async def conflicts(self) -> list[Conflict]:
        """Return paths whose lower version has changed since they were first touched here."""
        found: list[Conflict] = []
        for path, expected in sorted(self._base.items()):
            if self._made(path) is None and path not in self._gone:
                continue
            _forget(self.inner, path)  # what was seen a moment ago says nothing about now
            below = await _stat_or_none(self.inner, path)
            state = ABSENT if below is None else _state(below)
            if state != expected and not (
                below is not None and below.is_dir and expected == ABSENT and self._is_dir(path)
            ):
                found.append(Conflict(path, expected, state))
        return found

    def _made(self, path: Path) -> Stat | None:
        """What the overlay has at a path; None also where a file replaced a directory above it."""
        try:
            return self._above(path)
        except NotADirectoryError:
            return None

    def _is_dir(self, path: Path) -> bool:
        above = self._made(path)
        return above is not None and above.is_dir

    async def commit(self) -> CommitReport:
        """Apply all changes to the lower resource; with conflicts nothing is applied and the overlay stays."""
        conflicts = await self.conflicts()
        if conflicts:
            return CommitReport(conflicts=tuple(conflicts))
        changes = await self.diff()
        late: list[Conflict] = []
        applied: list[Change] = []
        names: dict[int, Path] = {}
        together = [change for change in changes if self._is_batched(change)]
        if together and not await self._apply_together(together):
            return CommitReport(conflicts=tuple(Conflict(one.path, self._base.get(one.path), None) for one in together))
        applied += together
        for change in changes:
            if self._is_batched(change):
                continue
            try:
                await self._apply(change, names)
                applied.append(change)
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
                late.append(Conflict(change.path, self._base.get(change.path), None))
        if late:
            return CommitReport(tuple(applied), tuple(late))
        self.abort()
        return CommitReport(tuple(applied))

    def _is_batched(self, change: Change) -> bool:
        if self._batching is None or Cap.WRITE not in self.inner.caps or not self._batching.batches(change.path):
            return False
        return change.kind in (Kind.FILE, Kind.DIR)

    async def _apply_together(self, changes: list[Change]) -> bool:
        """Make one change of these; False if one of the files has changed below, and nothing was done."""
        assert self._batching is not None
        edits = [
            Edit(
                change.path,
                None if change.what == "removed" else await ops.read_bytes(self._upper, change.path),
                None if change.what == "added" else _version_of(self._base.get(change.path)),
            )
            for change in changes
            if change.kind is Kind.FILE
        ]
        try:
            if edits:
                await self._batching.apply(edits)
            for change in changes:
                # A directory comes and goes with its files; only one that stays empty must be made.
                empty = change.kind is Kind.DIR and not any(edit.path.under(change.path) for edit in edits)
                if empty and change.what == "added":
                    await self.inner.mkdir(change.path)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            return False
        finally:
            for change in changes:
                _forget(self.inner, change.path)
        return True

    async def _apply(self, change: Change, names: dict[int, Path]) -> None:
        """One change to the lower resource; `names` holds the first name of each file that has several."""
        path = change.path
        if change.what == "removed":
            await self.inner.remove(path)
            return
        stat = self._upper.stat_now(path)
        if stat.kind is Kind.DIR:
            if change.what == "added":
                await self.inner.mkdir(path)
        elif stat.kind is Kind.LINK:
            if change.what == "modified":
                await self.inner.remove(path)
            await self.inner.write(path, (stat.target or "").encode("utf-8", "surrogateescape"), How.LINK)
            return
        elif (stat.nlink or 1) > 1 and stat.inode in names and await self._apply_link(change, names[stat.inode]):
            return
        else:
            if stat.inode is not None:
                names[stat.inode] = path
            base = self._base.get(path)
            version = base if Cap.PRECONDITIONS in self.inner.caps and change.what == "modified" else None
            await self.inner.write(path, self._upper.read(path), if_version=_version_of(version))
        await ops.keep_attrs(self.inner, path, stat)

    async def _apply_link(self, change: Change, first: Path) -> bool:
        """Make `change.path` another name of `first` below; False where the resource has no such names."""
        power = extension(self.inner, HardLinks) if Cap.HARDLINKS in self.inner.caps else None  # type: ignore[type-abstract]
        if power is None:
            return False
        if change.what == "modified":
            here, there = await self.inner.stat(change.path), await self.inner.stat(first)
            if here.inode is not None and here.inode == there.inode:
                return True  # they were one file before, and writing to the first name changed both
            await self.inner.remove(change.path)
        await power.link(first, change.path)
        return True

    def abort(self) -> None:
        """Discard every change."""
        self._upper = RAMResource()
        self._gone.clear()
        self._base.clear()
        self._linked.clear()


def _forget(resource: Resource | None, path: Path) -> None:
    """Drop what any layer and the backend remember of a path."""
    while resource is not None:
        forget: Any = getattr(resource, "forget", None)
        if forget is not None:
            forget(path) if isinstance(resource, Layer) else forget()
        resource = getattr(resource, "inner", None)


def _state(stat: Stat) -> str:
    """Return what must not have changed: the version if there is one, else size and time."""
    if stat.kind is not Kind.FILE:
        return f"{stat.kind.value}:{stat.target or ''}"
    return f"version:{stat.version}" if stat.version is not None else f"seen:{stat.size}:{stat.mtime_ns}"


def _version_of(state: str | None) -> str | None:
    return state[8:] if state is not None and state.startswith("version:") else None


async def _stat_or_none(resource: Resource, path: Path) -> Stat | None:
    try:
        return await resource.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


async def _tree(resource: Resource, top: Path, stat: Stat) -> list[tuple[Path, Stat]]:
    """Everything at and below `top`, children before their directories."""
    if stat.kind is not Kind.DIR:
        return [(top, stat)]
    found = [(top, stat), *[entry async for entry in ops.walk(resource, top)]]
    found.reverse()
    return found
