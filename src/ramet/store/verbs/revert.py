"""Revert to a past revision, by path or as a whole, and merge two histories.

Each creates a new revision; history is never rewritten. None of them keeps a process image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ramet.store.model.address import parse_address
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.packs.writer import PackWriter
from ramet.store.verbs.merge import MergeConflict, TreeStage, graft, merge_trees

if TYPE_CHECKING:
    from ramet.store.repository import Repository


@dataclass(frozen=True)
class MergeResult:
    """The merge revision, or the conflicts."""

    revision: Revision | None
    conflicts: tuple[MergeConflict, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.conflicts


def revert(repository: Repository, name: str, spec: str, message: str = "") -> Revision:
    """Create a new head with the content of a past revision."""
    target = repository.find(name, spec)
    with repository.writing(name) as entry:
        head = repository.find(name)
        revision = replace(
            target, workspace=name, seq=head.seq + 1, parents=(head.id,), lineage=f"revert:{target.name}",
            time=repository.clock(), message=message or f"revert to {target.name}", diff=None, ops=None,
            memory=None,
        )  # fmt: skip
        repository.commit(name, entry, revision, "revert")
    return revision


def revert_paths(repository: Repository, name: str, spec: str, paths: list[str], message: str = "") -> Revision:
    """Create a new head with these paths as in a past revision, everything else unchanged."""
    target = repository.find(name, spec)
    with repository.writing(name) as entry:
        head = repository.find(name)
        writer = repository.writer(name)
        drafts = TreeStage(repository.packs.read, writer)
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
            time=repository.clock(), message=message or f"revert {', '.join(paths)} to {target.name}", diff=None,
            ops=None, memory=None,
        )  # fmt: skip
        repository.commit(name, entry, revision, "revert")
    return revision


def merge(repository: Repository, name: str, other: str, message: str = "") -> MergeResult:
    """Merge another workspace (`OTHER` or `OTHER@REV`) into this one: a revision with two parents, or conflicts."""
    theirs = repository.resolve(other)
    with repository.writing(name) as entry:
        ours = repository.find(name)
        base = repository.common_ancestor(ours, theirs)
        if base is not None and base.id == theirs.id:
            return MergeResult(ours)
        writer = repository.writer(name)
        mounts, conflicts = _merge_mounts(repository, writer, base, ours, theirs)
        if conflicts:
            writer.abandon()
            return MergeResult(None, tuple(conflicts))
        repository.share(parse_address(other).name, theirs.id, name)
        writer.finish()
        revision = replace(
            ours, seq=ours.seq + 1, parents=(ours.id, theirs.id), mounts=tuple(mounts),
            lineage=f"merge:{theirs.name}", time=repository.clock(), message=message or f"merge {theirs.name}",
            diff=None, ops=None, memory=None,
        )  # fmt: skip
        repository.commit(name, entry, revision, "merge")
    return MergeResult(revision)


def _merge_mounts(
    repository: Repository, writer: PackWriter, base: Revision | None, ours: Revision, theirs: Revision
) -> tuple[list[MountState], list[MergeConflict]]:
    mounts: list[MountState] = []
    conflicts: list[MergeConflict] = []
    old = {m.prefix: m.tree for m in base.mounts} if base is not None else {}
    yours = {m.prefix: m for m in theirs.mounts}
    for mount in ours.mounts:
        their = yours.pop(mount.prefix, None)
        tree = mount.tree
        if their is not None and (tree is not None or their.tree is not None):
            merged = merge_trees(repository.packs.read, writer, old.get(mount.prefix), tree, their.tree)
            top = mount.prefix.rstrip("/")
            conflicts.extend(replace(conflict, path=top + conflict.path) for conflict in merged.conflicts)
            tree = merged.tree
        mounts.append(replace(mount, tree=tree))
    mounts.extend(yours.values())
    return mounts, conflicts
