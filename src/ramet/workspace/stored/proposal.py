"""`propose`: keep what a branch or a trial changed as a fork, so that it can be compared, commented on and merged.

- The fork has one revision more than its base: the changes, each with the record that wrote it. A file that several
  records wrote counts for the last of them.
- It is made whole or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from ramet.backends.local.disk import DiskResource
from ramet.core.paths import ROOT, Path
from ramet.core.resource import How, Resource
from ramet.core.stat import Attrs, Kind
from ramet.store.model.revisions import Revision
from ramet.workspace.record.history import ExecutionRecord
from ramet.workspace.stored.workspace import StoredWorkspace

if TYPE_CHECKING:
    from ramet.workspace.stored.store import Store
    from ramet.workspace.workspace import Workspace

RECENT: Final = 100
"""Revisions among which a state of a directory is looked for."""


async def propose(
    store: Store,
    base: Revision,
    name: str,
    source: Workspace,
    changed: Collection[Path],
    records: Sequence[ExecutionRecord],
    message: str,
    *,
    top: Path = ROOT,
    resources: Mapping[str, Resource] | None = None,
) -> Revision:
    """Fork `base` as `name`, and commit there what `source` has at the changed paths below `top`, by its records."""
    await store.aio(store[base.workspace].fork, base, name)
    try:
        async with store.open(name, commit="never", native=False, resources=resources) as ws:
            for record, paths in _by_record(records, changed):
                with ws.recorder.replaying(record, top):
                    await _copy(source, ws, paths, top)
            return await ws.commit(message)
    except BaseException:
        await store.aio(store.rm, name)
        raise


def _by_record(
    records: Sequence[ExecutionRecord], changed: Collection[Path]
) -> Iterator[tuple[ExecutionRecord, list[Path]]]:
    """Give each path to the last record that lists it or else what it lies in; to the last of all if none does."""
    last = {path: record.number for record in records for path in (*record.paths_written, *record.paths_removed)}

    def writer(path: Path) -> int:
        while path != ROOT:
            if path in last:
                return last[path]
            path = path.parent
        return records[-1].number

    for record in records:
        yield record, sorted(path for path in changed if writer(path) == record.number)


async def _copy(source: Workspace, ws: StoredWorkspace, paths: Sequence[Path], top: Path) -> None:
    """Make paths below `top` as they are in the source."""
    there = {path: await _kind(source, path) for path in paths}
    for path, kind in reversed(there.items()):  # children before their directory
        target = path.below(top)
        old = await _kind(ws, target)
        if old is not None and old is not kind:
            await ws.fs.remove(target)
    for path, kind in there.items():
        if kind in (Kind.DIR, Kind.FILE, Kind.LINK):
            await _put(source, ws, path, path.below(top))


async def _put(source: Workspace, ws: StoredWorkspace, path: Path, target: Path) -> None:
    stat = await source.fs.stat(path)
    await _make_directory(ws, target.parent)
    if stat.kind is Kind.LINK:
        if await _kind(ws, target) is Kind.LINK:
            await ws.fs.remove(target)
        await ws.fs.write(target, os.fsencode(stat.target or ""), How.LINK)
        return
    if stat.kind is Kind.FILE:
        await ws.fs.write(target, source.fs.read(path))
    else:
        await _make_directory(ws, target)
    await ws.fs.setattr(target, Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns))


async def _make_directory(ws: StoredWorkspace, path: Path) -> None:
    """Make a directory and those above it, which a later record may be the one that lists."""
    if await _kind(ws, path) is None:
        await _make_directory(ws, path.parent)
        await ws.fs.mkdir(path)


async def _kind(ws: Workspace, path: Path) -> Kind | None:
    try:
        return (await ws.fs.stat(path)).kind
    except (FileNotFoundError, NotADirectoryError):
        return None


# ---------------------------------------------------------------------------------------- the base of a directory


async def directory_base(store: Store, directory: str, name: str) -> Revision:
    """Return a revision that holds a directory of this machine as it is now; `name` is about to be forked from it.

    That is a recent revision of the workspace that is called as the directory, else the first one of a new workspace.
    """
    called = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.basename(directory)).lstrip("._-")[:100] or "directory"
    if called != name and called in store:
        found = await store.aio(_revision_of, store, directory, called)
        if found is not None:
            return found
    free = (f"{name}-before{number or ''}" for number in count())
    chosen = called if called != name and called not in store else next(one for one in free if one not in store)
    store.create(chosen)
    async with store.open(chosen, mounts={"/": DiskResource(directory)}, commit="never") as ws:
        return await ws.commit(f"{directory} as it was")


def _revision_of(store: Store, directory: str, name: str) -> Revision | None:
    """Return the newest revision of a workspace that has the content of a directory, and nothing else."""
    from ramet.store.commit.commit_filter import CommitFilter
    from ramet.store.commit.directory import commit_directory
    from ramet.store.commit.ignore_rules import IgnoreRules
    from ramet.store.commit.stat_cache import StatCache
    from ramet.store.verbs.diff import compare

    repository = store.repository
    writer = repository.writer(name)
    try:
        tree = commit_directory(directory, writer, StatCache(), CommitFilter(IgnoreRules(()))).tree
        for revision in store[name].log(limit=RECENT):
            mounts = [mount for mount in revision.mounts if not mount.scratch]
            own = revision.workspace == name  # merges bring revisions of others
            if not own or [mount.prefix for mount in mounts] != ["/"] or mounts[0].tree is None:
                continue
            if mounts[0].tree == tree or not any(compare(writer.read, mounts[0].tree, tree, renames=False)):
                return revision
        return None
    finally:
        writer.abandon()
