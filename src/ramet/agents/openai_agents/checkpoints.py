"""Checkpoints of sandbox workspaces as store revisions: written in O(changes), resumed without copying.

A revision made here has one mount, `/`, and it is the sandbox's workspace; so runs of different backends can be
compared. A store is opened once per process: what is known to be in it is remembered by the open store.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Final, NamedTuple

from ramet.agents.openai_agents.archive import portable_target
from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import File
from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, parse
from ramet.core.paths import decode as decode_name
from ramet.store.checkout.walk import content, walk_tree
from ramet.store.commit.memory_tree import commit_memory, unchanged_tree
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.model.trees import DIR, LINK
from ramet.store.repository import Repository
from ramet.workspace.snapshot.tar import TarWriter

MAGIC: Final = b"ramet-revision\0"
"""What a pointer begins with; no tar does."""
SPOOL: Final = 16 << 20
"""Bytes of an archive that are kept in memory; more goes to a temporary file."""

LINEAGE: Final = "sandbox:"
"""Begins the lineage of a revision of a sandbox; the root of its workspace follows."""
ROOT_OF_SDK: Final = "/workspace"

_OPEN: dict[str, Repository] = {}


class Pointer(NamedTuple):
    """Where a workspace is, instead of its bytes."""

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
    """The store at this address, opened once."""
    found = _OPEN.get(store)
    if found is None:
        found = _OPEN[store] = Repository(store)
    return found


def tree_of(revision: Revision) -> TreeId:
    """The workspace in a revision; one that was not made here may have no such mount."""
    for mount in revision.mounts:
        if mount.prefix == "/" and mount.tree is not None:
            return mount.tree
    raise RametError("not_found", f"{revision.name} has no files at /", "use a revision that a sandbox has made")


# -------------------------------------------------------------------------------------------------- memory trees


async def without(files: RAMResource, skip: Iterable[str]) -> RAMResource:
    """The tree without some paths. It shares everything else, and nothing is copied."""
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
    """What a new revision says beside its files."""

    message: str = ""
    root: str = ""
    """Where the workspace was in its sandbox: absolute links in it begin with that."""


async def commit(store: str, name: str, fork: RAMResource, made: RevisionNote) -> Revision:
    """A tree as the newest revision of a workspace; the newest one itself when nothing has changed."""
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
    """A durable tree as the newest revision of a workspace, which begins with it if it does not exist."""
    made = Revision(
        workspace=name, seq=1, parents=(), lineage=f"{LINEAGE}{about.root}",
        mounts=(MountState("/", "ram", tree=tree),), time=repository.clock(), message=about.message,
    )  # fmt: skip
    if not repository.refs.exists(name):
        repository.begin(name, made)
        return made
    with repository.writing(name) as entry:
        head = repository.head(name)
        if head is not None:
            if head.mounts == made.mounts:
                return head
            made = replace(made, seq=head.seq + 1, parents=(head.id,))
        repository.commit(name, entry, made)
    return made


def _head(repository: Repository, name: str) -> Revision | None:
    return repository.head(name) if repository.refs.exists(name) else None


async def tree_at(repository: Repository, revision: Revision) -> RAMResource:
    """The tree of a revision. From a store at hand nothing is read until it is looked at."""
    found = repository.lazy_tree(tree_of(revision), revision.workspace)
    if repository.packs.remote:
        await asyncio.to_thread(_load, found)
    return found


def _load(tree: RAMResource) -> None:
    """Have everything of a remote tree here, for nobody may wait for it later."""
    for _, node in tree.dump():
        if isinstance(node, File):
            load = getattr(node.content, "load", None)
            if load is not None:
                load()


# ------------------------------------------------------------------------------------------------------ archives


def export(repository: Repository, revision: Revision) -> tuple[IO[bytes], list[str]]:
    """A revision as the tar that every sandbox backend accepts, and the links that were left out of it.

    Files with several names become files of their own, and links that lead out are left out: backends refuse both.
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
    """Where the workspace of a revision was when its links were made; forks do not say it, their origin does."""
    while not revision.lineage.startswith(LINEAGE) and revision.parents:
        revision = repository.read_revision(revision.parents[0])
    return parse(revision.lineage.removeprefix(LINEAGE) if revision.lineage.startswith(LINEAGE + "/") else ROOT_OF_SDK)
