"""Replay a draft: rebuild trees, sessions and history of a dead process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ramet.backends.local.buffers import Blocks
from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import Link
from ramet.core.errors import RametError
from ramet.core.ops import remove_tree
from ramet.core.paths import Path, decode, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs
from ramet.store.checkout.lazy_tree import LazyBlocks, LazyTree
from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.ignore_rules import NO_RULES
from ramet.store.commit.kernel_state import SEGMENT, Segments, encode_json, kernel_of, write_chunk
from ramet.store.commit.memory_tree import commit_memory
from ramet.store.commit.secret_scan import SecretScanner
from ramet.store.model.ids import ChunkId, TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.packs.writer import PackWriter
from ramet.store.refs.drafts import Change, DirectoryChange, Draft, FileChange, LinkChange, Removal, mounts_of
from ramet.store.repository import Repository
from ramet.workspace.session import DEFAULT_AGENT_ID

Plain = dict[str, Any]


@dataclass
class ReplayResult:
    """The state that a draft describes."""

    mounts: list[MountState]
    """All mounts; memory mounts have no tree here but are in `rams`."""
    rams: dict[str, RAMResource]
    lineage: str
    scan: str
    state: Plain = field(default_factory=dict)
    records: list[Plain] = field(default_factory=list)
    """The commands since the base revision."""
    withheld: tuple[str, ...] = ()

    @property
    def agent(self) -> str:
        """The agent that ran all commands, if there is only one and it has a name."""
        agents = {str(record.get("agent_id", "")) for record in self.records}
        return agents.pop() if len(agents) == 1 and agents != {DEFAULT_AGENT_ID} else ""


def replay(repository: Repository, draft: Draft) -> ReplayResult:
    """Apply the steps of a draft to its base revision. Call it outside of event loops."""
    done = ReplayResult([], {}, "", "off" if draft.opened is None else draft.opened.scan)
    asyncio.run(_replay(repository, draft, done))
    return done


async def _replay(repository: Repository, draft: Draft, done: ReplayResult) -> None:
    scope = repository.scope(draft.workspace)
    lazy: dict[str, LazyTree] = {}
    inside: dict[bytes, bytes] = {}
    for step in draft.steps:
        inside.update(step.chunks)
        if step.fresh:
            done.rams, lazy, done.records = {}, {}, []
        if step.mounts is not None:
            done.mounts = mounts_of(step.mounts)
            memory = {mount.prefix for mount in done.mounts if mount.type == "ram"}
            done.rams = {prefix: ram for prefix, ram in done.rams.items() if prefix in memory}
            for prefix in memory - done.rams.keys():
                lazy[prefix] = LazyTree(repository.packs, scope)
                tree = step.trees.get(prefix, b"")
                done.rams[prefix] = lazy[prefix].resource(TreeId(tree)) if tree else RAMResource()
        for prefix, rows in step.changes.items():
            await _ChangeReplayer(repository, done.rams[prefix], lazy[prefix], inside, scope).play(rows)
        if step.state:
            done.state = json.loads(step.state)
        if step.records:
            done.records += json.loads(step.records)
        done.lineage, done.withheld = step.lineage, tuple(step.withheld)


class _ChangeReplayer:
    """Applies the changes of a step to a tree."""

    def __init__(
        self, repository: Repository, ram: RAMResource, lazy: LazyTree, inside: Mapping[bytes, bytes], scope: object
    ) -> None:
        self._packs, self._ram, self._lazy = repository.packs, ram, lazy
        self._inside, self._scope = inside, scope

    async def play(self, rows: Iterable[Change]) -> None:
        folders: list[tuple[Path, DirectoryChange]] = []
        for row in rows:
            path = parse(decode(row.path))
            if isinstance(row, Removal):
                with suppress(FileNotFoundError):  # a named pipe, which drafts omit
                    await remove_tree(self._ram, path)
            elif isinstance(row, FileChange):
                await self._file(path, row)
            elif isinstance(row, LinkChange):
                await self._ram.write(path, row.target, How.LINK)
                node = self._ram.node(path)
                assert isinstance(node, Link)
                node.mtime_ns = row.mtime_ns
            else:
                folders.append((path, row))
                await self._folder(path, row)
        for path, row in reversed(folders):  # writing into directories has changed their times
            await self._ram.setattr(path, Attrs(mode=row.mode, mtime_ns=row.mtime_ns))

    async def _folder(self, path: Path, row: DirectoryChange) -> None:
        if row.tree:
            self._ram.graft(path, self._lazy.directory(TreeId(row.tree), row.mode, row.mtime_ns))
        else:
            try:
                await self._ram.mkdir(path)
            except FileExistsError:
                return

    async def _file(self, path: Path, row: FileChange) -> None:
        content = await self._content(path, row)
        try:
            await self._ram.stat(path)
        except FileNotFoundError:
            pass
        else:
            await self._ram.remove(path)
        self._ram.put_now(path, content)
        await self._ram.setattr(path, Attrs(mode=row.mode, mtime_ns=row.mtime_ns))

    async def _content(self, path: Path, row: FileChange) -> Blocks:
        if row.chunks and not row.keep and row.chunks[0] not in self._inside:
            ids = [ChunkId(chunk) for chunk in row.chunks]
            size = sum(place.size for place in (self._packs.place(chunk) for chunk in ids))
            return LazyBlocks(ids, size, self._packs, self._scope)
        content = Blocks()
        if row.keep:
            async for block in self._ram.read(path, 0, row.keep):
                content.append(block)
            if content.size != row.keep:
                raise RametError("store_corrupt", f"a draft continues {path}, which is shorter", "run verify")
        for chunk in row.chunks:
            data = self._inside.get(chunk)
            content.append(self._packs.read(chunk) if data is None else data)
        return content


@dataclass(frozen=True)
class ReplayCommit:
    """A replayed draft, written to packs."""

    trees: dict[str, TreeId]
    kernel: ChunkId | None
    history: tuple[ChunkId, ...]
    suspected: tuple[str, ...]


def write(
    repository: Repository, writer: PackWriter, target: str, found: ReplayResult, latest: Revision | None, own: bool
) -> ReplayCommit:
    """Write a replayed draft to packs of the workspace `target`; `own` when the base revision belongs to it.

    `latest` has the history before the draft.
    """
    scanner = None if found.scan == "off" else SecretScanner("report")
    scope = repository.scope(target)
    trees = {
        prefix: commit_memory(ram, writer, scope, CommitFilter.of_mount(NO_RULES, scanner, prefix)).tree
        for prefix, ram in sorted(found.rams.items())
    }
    older: list[Plain] = []
    segments = Segments()
    if latest is not None and latest.kernel is not None:
        older = kernel_of(repository.packs, latest)["history"]["records"]
        if own:
            segments.adopt(latest, older)
    kernel, history = _kernel(writer, segments, found, older)
    return ReplayCommit(trees, kernel, history, () if scanner is None else scanner.findings)


def _kernel(
    writer: PackWriter, segments: Segments, found: ReplayResult, older: list[Plain]
) -> tuple[ChunkId, tuple[ChunkId, ...]]:
    last = int(older[-1]["number"]) if older else 0
    records = older + [record for record in found.records if int(record["number"]) > last]
    following = int(records[-1]["number"]) + 1 if records else 1
    oldest = int(records[0]["number"]) if records else following
    new: dict[int, list[Plain]] = {number: [] for number in segments.missing(oldest, following)}
    for record in records if new else ():
        if int(record["number"]) // SEGMENT in new:
            new[int(record["number"]) // SEGMENT].append(record)
    tail = segments.tail(following)
    state = {**found.state, "history": {"records": [r for r in records if int(r["number"]) >= tail]}}
    return write_chunk(writer, encode_json(state)), segments.write(writer, new, oldest)


def with_trees(
    found: ReplayResult, trees: Mapping[str, TreeId], before: Mapping[str, MountState]
) -> dict[str, MountState]:
    """Return the mounts with their trees; of other than memory mounts, the tree of the base revision."""
    states: dict[str, MountState] = {}
    for mount in found.mounts:
        old = before.get(mount.prefix)
        if mount.type == "ram":
            states[mount.prefix] = replace(mount, tree=trees.get(mount.prefix))
        elif old is not None and old.type == mount.type:
            states[mount.prefix] = replace(mount, tree=old.tree, pin=old.pin)
        else:
            states[mount.prefix] = mount
    return states
