"""Checkpoints of sandbox workspaces as store revisions: written in O(changes), resumed without copying.

A revision made here has one mount, `/`, which is the sandbox's workspace, so that runs of different backends compare.
A store is opened once per process, because the open store caches which objects exist.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Any, Final, NamedTuple

from ramet.agents.openai_agents.archive import portable_target
from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import File
from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, parse
from ramet.core.paths import decode as decode_name
from ramet.store.checkout.walk import content, walk_tree
from ramet.store.commit.kernel_state import append_records, no_writers
from ramet.store.commit.memory_tree import commit_memory, unchanged_tree
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.model.trees import DIR, LINK
from ramet.store.repository import Repository
from ramet.workspace.session import DEFAULT_AGENT_ID
from ramet.workspace.snapshot.tar import TarWriter

MAGIC: Final = b"ramet-revision\0"
"""First bytes of a pointer; no tar starts with them."""
SPOOL: Final = 16 << 20
"""Bytes of an archive that are kept in memory; more goes to a temporary file."""

LINEAGE: Final = "sandbox:"
"""Prefix of the lineage of a sandbox's revision, before the root of its workspace."""
ROOT_OF_SDK: Final = "/workspace"

_OPEN: dict[str, Repository] = {}


class Pointer(NamedTuple):
    """A reference to a revision, used in place of an archive."""

    store: str
    workspace: str
    revision: str

    def encode(self) -> bytes:
        return MAGIC + json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Pointer:
        try:
            plain = json.loads(raw.removeprefix(MAGIC))
            found = cls(**plain)
        except (ValueError, TypeError) as error:
            raise ValueError("the pointer to a revision is damaged") from error
        if not all(isinstance(part, str) for part in found):
            raise ValueError("the pointer to a revision is damaged")
        return found


def repository_at(store: str) -> Repository:
    """Return the store at this address, opened once per process."""
    found = _OPEN.get(store)
    if found is None:
        found = _OPEN[store] = Repository(store)
    return found


def tree_of(revision: Revision) -> TreeId:
    """Return the workspace's tree in a revision; a revision of another origin may have none."""
    for mount in revision.mounts:
        if mount.prefix == "/" and mount.tree is not None:
            return mount.tree
    raise RametError("not_found", f"{revision.name} has no files at /", "use a revision of a sandbox")


# -------------------------------------------------------------------------------------------------- memory trees


async def without(files: RAMResource, skip: Iterable[str]) -> RAMResource:
    """Return the tree without some paths; it shares everything else without a copy."""
    fork = files.fork()
    for name in skip:
        top = parse("/" + name)
        if top == ROOT:
            continue
        try:
            await ops.remove_tree(fork, top)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return fork


class RevisionNote(NamedTuple):
    """Metadata of a new revision."""

    message: str = ""
    root: str = ""
    """Root of the workspace in its sandbox, the prefix of absolute links."""
    records: tuple[dict[str, Any], ...] = ()
    """What happened since the last revision; paths are those of the sandbox."""


async def commit(store: str, name: str, fork: RAMResource, made: RevisionNote) -> Revision:
    """Commit a tree as the head of a workspace; without changes, return the head."""
    repository = repository_at(store)
    known = unchanged_tree(fork, repository.scope(name))
    if known is not None and not repository.packs.remote:
        head = _head(repository, name)
        if head is not None and tree_of(head) == known:
            return head
    return await asyncio.to_thread(_commit, repository, name, fork, made)


def _commit(repository: Repository, name: str, fork: RAMResource, made: RevisionNote) -> Revision:
    repository.require_safe_refs()
    writer = repository.writer(name)
    try:
        done = commit_memory(fork, writer, repository.scope(name))
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    revision = record(repository, name, done.tree, made)
    done.settle()
    return revision


def record(repository: Repository, name: str, tree: TreeId, about: RevisionNote) -> Revision:
    """Make a stored tree the head of a workspace; create the workspace if needed."""
    made = Revision(
        workspace=name, seq=1, parents=(), lineage=f"{LINEAGE}{about.root}",
        mounts=(MountState("/", "ram", tree=tree),), time=repository.clock(), message=about.message,
    )  # fmt: skip
    if not repository.refs.exists(name):
        made = _with_records(repository, made, None, about)
        repository.begin(name, made)
        return made
    with repository.writing(name) as entry:
        head = repository.head(name)
        if head is not None:
            if head.mounts == made.mounts:
                return head
            made = replace(made, seq=head.seq + 1, parents=(head.id,))
        made = _with_records(repository, made, head, about)
        repository.commit(name, entry, made)
    return made


def _with_records(repository: Repository, made: Revision, head: Revision | None, about: RevisionNote) -> Revision:
    """Add what happened in the sandbox to the history of its workspace."""
    writer = repository.writer(made.workspace)
    kernel, history, first = append_records(repository.packs, writer, head, about.records)
    writer.finish()
    agents = {str(record["agent_id"]) for record in about.records}
    agent = agents.pop() if len(agents) == 1 and agents != {DEFAULT_AGENT_ID} else ""
    ops = no_writers(first, first + len(about.records) - 1)
    return replace(made, kernel=kernel, history=history, agent=agent, ops=ops)


def _head(repository: Repository, name: str) -> Revision | None:
    return repository.head(name) if repository.refs.exists(name) else None


async def tree_at(repository: Repository, revision: Revision) -> RAMResource:
    """Load the tree of a revision; from a local store, content is read on access."""
    found = repository.lazy_tree(tree_of(revision), revision.workspace)
    if repository.packs.remote:
        await asyncio.to_thread(_load, found)
    return found


def _load(tree: RAMResource) -> None:
    """Fetch all content of a remote tree now, because later reads must not block."""
    for _, node in tree.dump():
        if isinstance(node, File):
            load = getattr(node.content, "load", None)
            if load is not None:
                load()


# ------------------------------------------------------------------------------------------------------ archives


def export(repository: Repository, revision: Revision) -> tuple[IO[bytes], list[str]]:
    """Write a revision as a tar that every sandbox backend accepts; return the omitted links.

    Hard links become separate files, and links that lead outside are omitted: backends refuse both.
    """
    out: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=SPOOL)
    left_out: list[str] = []
    read, root = repository.packs.read, _root_of(repository, revision)
    tar = TarWriter(out)
    tar.directory(".")
    for path, node in walk_tree(read, tree_of(revision)):
        name = "." + path
        if node.kind == DIR:
            tar.directory(name, mode=node.mode, mtime_ns=node.mtime_ns)
        elif node.kind == LINK:
            target = portable_target(decode_name(node.payload), path[1:], root)
            if target is None:
                left_out.append(path[1:])
                continue
            tar.link(name, target, mtime_ns=node.mtime_ns)
        else:
            tar.file(name, node.size, content(read, node), mode=node.mode, mtime_ns=node.mtime_ns)
    tar.close()
    out.seek(0)
    return out, left_out


def _root_of(repository: Repository, revision: Revision) -> Path:
    """Return the root of a revision's workspace in its sandbox; for a fork, ask its origin."""
    while not revision.lineage.startswith(LINEAGE) and revision.parents:
        revision = repository.read_revision(revision.parents[0])
    return parse(revision.lineage.removeprefix(LINEAGE) if revision.lineage.startswith(LINEAGE + "/") else ROOT_OF_SDK)
