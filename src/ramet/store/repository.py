"""`Repository`: the verbs of a store over chunks, packs, trees, revisions and refs; it knows no live workspaces.

Write order: packs, then the revision, then the ref. A crash at any point leaves garbage, never a hole; readers need no
lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ramet.backends.ram import RAMResource
from ramet.core.errors import RametError
from ramet.store import trees
from ramet.store.checkout import Receipt, checkout
from ramet.store.diff import Difference, compare
from ramet.store.ids import SIZE, ChunkId, RevisionId, TreeId, chunk_id, revision_id, tree_id
from ramet.store.lazy import LazyTree
from ramet.store.merge import Drafts, MergeConflict, graft, merge_trees
from ramet.store.objects import Objects, open_objects, prove_create
from ramet.store.packs import PackReader, PackWriter
from ramet.store.refs import Entry, Refs
from ramet.store.revisions import MountState, Revision, decode


@dataclass
class Report:
    """What `verify` found. `damaged` names objects, `affected` the revisions that need them."""

    objects: int = 0
    packs: int = 0
    revisions: int = 0
    damaged: list[str] = field(default_factory=list)
    affected: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.damaged and not self.affected


@dataclass(frozen=True)
class MergeResult:
    """The merge revision, or why there is none."""

    revision: Revision | None
    conflicts: tuple[MergeConflict, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.conflicts


class Repository:
    """A store at a path, in memory, or on an object store: `Repository("s3://bucket/prefix")`."""

    def __init__(self, where: str | Objects, *, clock: Callable[[], float] = time.time, **options: Any) -> None:
        self.objects: Objects = open_objects(where, **options) if isinstance(where, str) else where
        self.clock = clock
        self.refs = Refs(self.objects, clock)
        self.packs = PackReader(self.objects)
        self.packs.refresh()
        self._revisions: dict[RevisionId, Revision] = {}
        self._proved = False

    def prove(self) -> None:
        """Make sure, once, that this store can be written safely."""
        if not self._proved:
            prove_create(self.objects)
            self._proved = True

    # ------------------------------------------------------------------------------------------- workspaces

    def create(self, name: str) -> None:
        """A new, empty workspace."""
        self.prove()
        self.refs.create(name, None)

    def ls(self) -> list[str]:
        return self.refs.names()

    def rm(self, name: str) -> None:
        """Forget a workspace. Its revisions stay until they are collected."""
        self.refs.delete(name)

    # -------------------------------------------------------------------------------------------- revisions

    def read_revision(self, identity: RevisionId) -> Revision:
        known = self._revisions.get(identity)
        if known is None:
            try:
                data = self.objects.get(f"revisions/{identity.hex()}")
            except KeyError:
                raise RametError(
                    "revision_not_found", f"no revision {identity.hex()[:12]}", "see `log` for what there is"
                ) from None
            if revision_id(data) != identity:
                raise RametError("store_corrupt", f"revision {identity.hex()[:12]} is damaged", "run verify")
            known = self._revisions[identity] = decode(data)
        return known

    def head(self, name: str) -> Revision | None:
        head = self._living(name).head
        return None if head is None else self.read_revision(head)

    def _living(self, name: str) -> Entry:
        entry = self.refs.last(name)
        if entry.deleted:
            raise RametError("workspace_not_found", f"no workspace {name!r}", "see `ls` for the names")
        return entry

    def log(self, name: str) -> list[Revision]:
        """The revisions of a workspace and what they came from, newest first."""
        found: list[Revision] = []
        seen: set[RevisionId] = set()
        head = self._living(name).head
        pending = [] if head is None else [head]
        while pending:
            identity = pending.pop(0)
            if identity in seen:
                continue
            seen.add(identity)
            revision = self.read_revision(identity)
            found.append(revision)
            pending.extend(revision.parents)
        return found

    def find(self, name: str, spec: str | None = None) -> Revision:
        """A revision of a history: None or `HEAD`, its name (`proj-x-3`), its number, or the start of its id."""
        if spec is None or spec == "HEAD":
            head = self.head(name)
            if head is None:
                raise RametError("revision_not_committed", f"workspace {name!r} has no revision yet", "commit first")
            return head
        matches = [
            r for r in self.log(name) if spec in (r.name, str(r.seq)) and (spec == r.name or r.workspace == name)
        ]
        if not matches and len(spec) >= 6:
            matches = [r for r in self.log(name) if r.id.hex().startswith(spec)]
        if len(matches) != 1:
            code = "revision_not_found"
            raise RametError(code, f"no revision {spec!r} in workspace {name!r}", "see `log` for what there is")
        return matches[0]

    def commit(self, name: str, seen: Entry, revision: Revision, kind: str = "commit") -> Entry:
        """Record a revision whose trees are durable, and move the head to it."""
        encoded = revision.encode()
        identity = revision_id(encoded)
        self.objects.put(f"revisions/{identity.hex()}", encoded)
        self._revisions[identity] = revision
        return self.refs.move(name, seen, head=identity, kind=kind)

    def fork(self, name: str, spec: str | None, new_name: str) -> Revision:
        """A workspace that begins with a revision of another one. No content is copied."""
        self.prove()
        source = self.find(name, spec)
        revision = replace(
            source, workspace=new_name, seq=1, parents=(source.id,), lineage=f"fromWorkspaceRevision:{source.name}",
            time=self.clock(), message=f"fork of {source.name}", diff=None,
        )  # fmt: skip
        encoded = revision.encode()
        self.objects.put(f"revisions/{revision.id.hex()}", encoded)
        self.refs.create(new_name, revision.id)
        return revision

    def revert(self, name: str, spec: str, message: str = "") -> Revision:
        """A new tip with the content of a past revision. History is never rewritten."""
        self.prove()
        target = self.find(name, spec)
        entry = self._living(name)
        head = self.head(name)
        assert head is not None
        revision = replace(
            target, workspace=name, seq=head.seq + 1, parents=(head.id,), lineage=f"revert:{target.name}",
            time=self.clock(), message=message or f"revert to {target.name}", diff=None,
        )  # fmt: skip
        self.commit(name, entry, revision, "revert")
        return revision

    def revert_paths(self, name: str, spec: str, paths: list[str]) -> Revision:
        """A new tip in which these paths are what they were in a past revision; everything else stays."""
        self.prove()
        target, head, entry = self.find(name, spec), self.find(name), self._living(name)
        writer = self.writer()
        drafts = Drafts(self.packs.read, writer)
        mounts = list(head.mounts)
        for number, mount in enumerate(mounts):
            top = mount.prefix.rstrip("/")
            inside = [path[len(top) :] for path in paths if path.startswith(top + "/")]
            past = next((m.tree for m in target.mounts if m.prefix == mount.prefix), None)
            if inside and mount.tree is not None:
                tree: TreeId = mount.tree
                for path in inside:
                    tree = graft(drafts, tree, past, path.strip("/").split("/"))
                mounts[number] = replace(mount, tree=tree)
        writer.finish()
        revision = replace(
            head, seq=head.seq + 1, parents=(head.id,), mounts=tuple(mounts), lineage=f"revert:{target.name}",
            time=self.clock(), message=f"revert {', '.join(paths)} to {target.name}", diff=None,
        )  # fmt: skip
        self.commit(name, entry, revision, "revert")
        return revision

    def merge(self, name: str, other: str, message: str = "") -> MergeResult:
        """Bring the head of another workspace into this one: a revision with two parents, or the conflicts."""
        self.prove()
        entry, ours, theirs = self._living(name), self.find(name), self.find(other)
        base = self.common_ancestor(ours, theirs)
        if base is not None and base.id == theirs.id:
            return MergeResult(ours)
        writer = self.writer()
        mounts: list[MountState] = []
        conflicts: list[MergeConflict] = []
        old = {m.prefix: m.tree for m in base.mounts} if base is not None else {}
        yours = {m.prefix: m for m in theirs.mounts}
        for mount in ours.mounts:
            their = yours.pop(mount.prefix, None)
            tree = mount.tree
            if their is not None and (tree is not None or their.tree is not None):
                merged = merge_trees(self.packs.read, writer, old.get(mount.prefix), tree, their.tree)
                top = mount.prefix.rstrip("/")
                conflicts.extend(replace(conflict, path=top + conflict.path) for conflict in merged.conflicts)
                tree = merged.tree
            mounts.append(replace(mount, tree=tree))
        mounts.extend(yours.values())
        if conflicts:
            writer.abandon()
            return MergeResult(None, tuple(conflicts))
        writer.finish()
        revision = replace(
            ours, seq=ours.seq + 1, parents=(ours.id, theirs.id), mounts=tuple(mounts), lineage=f"merge:{theirs.name}",
            time=self.clock(), message=message or f"merge {theirs.name}", diff=None,
        )  # fmt: skip
        self.commit(name, entry, revision, "merge")
        return MergeResult(revision)

    def common_ancestor(self, one: Revision, other: Revision) -> Revision | None:
        """The newest revision that both come from."""
        mine = self._ancestors(one)
        for identity, revision in self._ancestors(other).items():
            if identity in mine:
                return revision
        return None

    def _ancestors(self, start: Revision) -> dict[RevisionId, Revision]:
        found: dict[RevisionId, Revision] = {}
        pending = [start]
        while pending:
            revision = pending.pop(0)
            if revision.id not in found:
                found[revision.id] = revision
                pending.extend(self.read_revision(parent) for parent in revision.parents)
        return found

    # ----------------------------------------------------------------------------------------- reading trees

    def diff(self, before: Revision | None, after: Revision, *, renames: bool = True) -> list[Difference]:
        """What changed between two revisions, of whatever workspaces, with paths as a workspace sees them."""
        found: list[Difference] = []
        old = {mount.prefix: mount.tree for mount in before.mounts} if before is not None else {}
        new = {mount.prefix: mount.tree for mount in after.mounts}
        for prefix in sorted({*old, *new}):
            for difference in compare(self.packs.read, old.get(prefix), new.get(prefix), renames):
                top = "" if prefix == "/" else prefix
                moved = None if difference.old is None else top + difference.old
                found.append(replace(difference, path=top + difference.path, old=moved))
        return found

    def read_file(self, revision: Revision, path: str) -> Iterator[bytes]:
        """The content of a file of a revision."""
        node = self._node(revision, path)
        if node.kind != trees.FILE:
            raise RametError("not_found", f"{path} of {revision.name} is not a file", "see its parent directory")
        for identity in node.chunks:
            yield self.packs.read(identity)

    def _node(self, revision: Revision, path: str) -> trees.Node:
        for mount in sorted(revision.mounts, key=lambda m: len(m.prefix), reverse=True):
            top = mount.prefix.rstrip("/")
            if mount.tree is not None and path.startswith(top + "/"):
                here, rest = mount.tree, path[len(top) + 1 :].split("/")
                for number, part in enumerate(rest):
                    wanted = part.encode("utf-8", "surrogateescape")
                    found = next((n for n in trees.decode(self.packs.read(here)) if n.name == wanted), None)
                    if found is None:
                        break
                    if number == len(rest) - 1:
                        return found
                    if found.kind != trees.DIR:
                        break
                    here = found.tree
        raise RametError("not_found", f"{path} is not in {revision.name}", "see `diff` or `show` for what there is")

    def lazy(self, tree: TreeId) -> RAMResource:
        """A tree as a resource that fetches what is looked at and may be changed without changing the store."""
        return LazyTree(self.packs.read, self).resource(tree)

    def checkout(self, revision: Revision, prefix: str, target: str) -> Receipt:
        """One mount of a revision as a real directory."""
        for mount in revision.mounts:
            if mount.prefix == prefix and mount.tree is not None:
                return checkout(self.packs.read, mount.tree, target)
        raise RametError("not_found", f"{revision.name} has no tree at {prefix}", "see its mounts")

    def writer(self) -> PackWriter:
        self.prove()
        self.packs.refresh()
        return PackWriter(self.objects, self.packs)

    # ----------------------------------------------------------------------------------------------- verify

    def verify(self) -> Report:
        """Read everything and check every digest and reference."""
        report = Report()
        self.packs.refresh()
        bad: set[bytes] = set()
        for name in self.packs.packs():
            report.packs += 1
            for identity in self.packs.index(name).ids():
                report.objects += 1
                try:
                    data = self.packs.read(identity)
                except RametError:
                    bad.add(identity)
                    continue
                if identity not in (chunk_id(data), tree_id(data)):
                    bad.add(identity)
        report.damaged = sorted(identity.hex() for identity in bad)
        for key in self.objects.list("revisions/"):
            report.revisions += 1
            identity = RevisionId(bytes.fromhex(key.rpartition("/")[2]))
            try:
                revision = self.read_revision(identity)
                whole = all(self._reachable(mount, bad) for mount in revision.mounts)
                whole = whole and (revision.kernel is None or self._has(revision.kernel, bad))
            except (RametError, ValueError, KeyError):
                report.damaged.append(identity.hex())
                continue
            if not whole:
                report.affected.append(revision.name)
        return report

    def _has(self, identity: bytes, bad: set[bytes]) -> bool:
        return identity not in bad and self.packs.find(identity) is not None

    def _reachable(self, mount: MountState, bad: set[bytes]) -> bool:
        pending = [] if mount.tree is None else [mount.tree]
        while pending:
            tree = pending.pop()
            if not self._has(tree, bad):
                return False
            for node in trees.decode(self.packs.read(tree)):
                if node.kind == trees.DIR:
                    pending.append(node.tree)
                elif node.kind == trees.FILE:
                    payload = node.payload
                    for at in range(0, len(payload), SIZE):
                        if not self._has(payload[at : at + SIZE], bad):
                            return False
        return True


def kernel_chunk(writer: PackWriter, data: bytes) -> ChunkId:
    """Keep the kernel state of a revision like any other content."""
    identity = chunk_id(data)
    writer.add(identity, data)
    return identity
