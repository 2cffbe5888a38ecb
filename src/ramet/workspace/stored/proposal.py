"""`propose`: keep what a branch or a trial changed as a fork, so that it can be compared, commented on and merged.

- The fork has one revision more than its base: the changes, with the records of all that was done.
- A branch knows which record wrote which line. In a trial, a file counts for the last record that lists it.
- It is made whole or not at all.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from ramet.backends.local.disk import DiskResource
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind
from ramet.layers.passthrough import Passthrough
from ramet.workspace.stored.commit_policy import CommitPolicy

if TYPE_CHECKING:
    from ramet.store.model.revisions import Revision
    from ramet.store.repository import Repository
    from ramet.workspace.record.history import ExecutionRecord
    from ramet.workspace.stored.open_options import OpenOptions
    from ramet.workspace.stored.store import Store
    from ramet.workspace.stored.workspace import StoredWorkspace
    from ramet.workspace.workspace import Branch, Workspace

RECENT: Final = 100
"""Revisions among which a state of a directory is looked for."""


@dataclass(frozen=True)
class Attempt:
    """What was done in a workspace that will not be kept: the changed paths, all below `top`, and the records."""

    source: Workspace
    changed: Collection[Path]
    records: Sequence[ExecutionRecord]
    top: Path = ROOT


async def propose(
    repository: Repository, base: Revision, name: str, attempt: Attempt, message: str, options: OpenOptions
) -> Revision:
    """Fork `base` as `name`, and make the changes there as one revision, with their records."""
    from ramet.store.verbs.fork import fork
    from ramet.workspace.stored.store import WorkspaceOpener

    source, top, numbers = attempt.source, attempt.top, dict[int, int]()
    await asyncio.to_thread(fork, repository, base.workspace, base, name)
    try:
        async with WorkspaceOpener(repository, name, None, options) as ws:
            for record, paths in _by_record(attempt.records, attempt.changed):
                numbers[record.number] = ws.history.next_number
                with ws.recorder.replaying(record, top, numbers.get(record.parent, 0)):
                    await _copy(source, ws, paths, top)
            mine, theirs = source.recorder.ledger, ws.recorder.ledger
            if mine is not None and theirs is not None:
                files = [(str(path), await _kind(source, path)) for path in attempt.changed]
                theirs.take()  # who copied the files; the source knows who wrote each line
                theirs.absorb(
                    mine, [(path, kind is not None) for path, kind in files if kind in (Kind.FILE, None)], numbers
                )
            return await ws.commit(message)
    except BaseException:
        await asyncio.to_thread(repository.rm, name)
        raise


async def propose_branch(ws: StoredWorkspace, branch: Branch, name: str, message: str) -> Revision:
    """Fork the workspace as it is, with what the branch changed; the branch stays as it is."""
    repository = ws.repository
    if branch.parent is not ws:
        raise RametError("invalid_argument", "cannot propose that: it is no branch of this workspace", "Propose one.")
    repository.refs.require_free(name)
    await branch.sync()
    if conflicts := await branch.conflicts():
        paths = ", ".join(str(one.path) for one in conflicts[:5])
        raise RametError("merge_conflict", f"cannot propose the branch: {paths} changed meanwhile", "Branch again.")
    base = await ws.commit(subject=f"before {name}")
    saved = {parse(mount.prefix) for mount in base.mounts if mount.tree is not None}
    changes = await branch.diff()
    outside = [one.path for one in changes if one.what == "posted" or ws.fs.mount_of(one.path) not in saved]
    if outside:
        raise RametError(
            "unsupported", f"cannot propose a change of {outside[0]}: its files are not in the store",
            "Commit the branch, or abort it.",
        )  # fmt: skip
    remote = {mount.prefix: mount.resource for mount in ws.mounts() if mount.prefix not in saved}
    options = replace(
        ws.options, commit=CommitPolicy("never"), native=False, drafts="off", mounts={}, prepare=None,
        resources={str(prefix): Borrowed(resource) for prefix, resource in remote.items()},
    )  # fmt: skip
    attempt = Attempt(branch, {one.path for one in changes}, branch.new_records())
    return await propose(repository, base, name, attempt, message, options)


class Borrowed(Passthrough):
    """A mount of another open workspace, which closes it."""

    async def close(self) -> None:
        """Leave it open."""


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
