"""Revert to a past revision, by path or as a whole, and merge two histories.

- Each creates a new revision and adds one record to the history of the workspace. The history is never taken back:
  the commands that a revert undid stay in it.
- The author is the caller. No revision inherits the author or the agent of another one.
- None of them keeps a process image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ramet.core.errors import RametError
from ramet.store.commit.kernel_state import append_records, no_writers, plain_record
from ramet.store.model.address import parse_address
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.packs.writer import PackWriter
from ramet.store.refs.resolve import RevisionLike
from ramet.store.verbs.merge import MergeConflict, Resolution, TreeStage, graft, merge_trees

if TYPE_CHECKING:
    from ramet.store.repository import Repository


@dataclass(frozen=True)
class MergeResult:
    """The merge revision, or the conflicts."""

    revision: Revision | None
    conflicts: tuple[MergeConflict, ...] = ()
    base: str = ""
    """Id of the revision that both sides of a merge come from; empty for none."""

    @property
    def ok(self) -> bool:
        return not self.conflicts


def revert(repository: Repository, name: str, spec: RevisionLike, message: str = "") -> Revision:
    """Create a new head with the content and the sessions of a past revision."""
    target = repository.find(name, spec)
    with repository.writing(name) as entry:
        head = repository.find(name)
        step = RevisionStep(repository, name, head, "revert", f"revert to {target.name}", message)
        writer = repository.writer(name)
        revision = step.revision(
            writer, target, workspace=name, parents=(head.id,), lineage=f"revert:{target.name}", sessions=target
        )
        writer.finish()
        repository.commit(name, entry, revision, "revert")
    return revision


def revert_paths(
    repository: Repository, name: str, spec: RevisionLike, paths: list[str], message: str = ""
) -> Revision:
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
        step = RevisionStep(repository, name, head, "revert", f"revert {', '.join(paths)} to {target.name}", message)
        revision = step.revision(
            writer, head, parents=(head.id,), mounts=tuple(mounts), lineage=f"revert:{target.name}"
        )
        writer.finish()
        repository.commit(name, entry, revision, "revert")
    return revision


def merge(
    repository: Repository, name: str, other: str | Revision, message: str = "", resolution: Resolution | None = None
) -> MergeResult:
    """Merge another workspace (`OTHER` or `OTHER@REV`) into this one: a revision with two parents, or conflicts."""
    theirs = repository.resolve(other)
    with repository.writing(name) as entry:
        ours = repository.find(name)
        base = repository.common_ancestor(ours, theirs)
        if base is not None and base.id == theirs.id:
            return MergeResult(ours)
        writer = repository.writer(name)
        chosen = resolution or Resolution()
        mounts, conflicts, resolved = _merge_mounts(repository, writer, base, ours, theirs, chosen)
        strange = sorted(chosen.paths() - resolved)
        if conflicts or strange:
            writer.abandon()
        if strange:
            raise RametError(
                "invalid_argument", f"cannot resolve {', '.join(strange)}: not in conflict",
                "Merge without resolutions to see the conflicts.",
            )  # fmt: skip
        if conflicts:
            return MergeResult(None, tuple(conflicts), "" if base is None else base.id.hex())
        source = other.workspace if isinstance(other, Revision) else parse_address(other).name
        repository.share(source, theirs.id, name)
        step = RevisionStep(repository, name, ours, "merge", f"merge {theirs.name}", message)
        revision = step.revision(
            writer, ours, parents=(ours.id, theirs.id), mounts=tuple(mounts), lineage=f"merge:{theirs.name}"
        )
        writer.finish()
        repository.commit(name, entry, revision, "merge")
    return MergeResult(revision)


@dataclass(frozen=True)
class RevisionStep:
    """A revert or merge on top of a head: its author, its record, its message."""

    repository: Repository
    name: str
    head: Revision
    kind: str
    summary: str
    message: str

    def revision(
        self, writer: PackWriter, like: Revision, *, sessions: Revision | None = None, **fields: Any
    ) -> Revision:
        """Return the revision after the head: `like` with these fields, by the caller, with one more record."""
        now, actor = self.repository.clock(), self.repository.actor
        record = plain_record(self.kind, actor, self.summary, now)
        latest = self.repository.latest_of(self.name, self.head)
        kernel, history, number = append_records(self.repository.packs, writer, latest, [record], sessions)
        return replace(
            like, seq=self.head.seq + 1, kernel=kernel, history=history, author=actor, agent="", trace_id="", time=now,
            message=self.message or self.summary, diff=None, memory=None, phase="Committed",
            ops=no_writers(number, number), **fields,
        )  # fmt: skip


def _merge_mounts(
    repository: Repository,
    writer: PackWriter,
    base: Revision | None,
    ours: Revision,
    theirs: Revision,
    resolution: Resolution,
) -> tuple[list[MountState], list[MergeConflict], set[str]]:
    mounts: list[MountState] = []
    resolved: set[str] = set()
    conflicts: list[MergeConflict] = []
    old = {m.prefix: m.tree for m in base.mounts} if base is not None else {}
    yours = {m.prefix: m for m in theirs.mounts}
    for mount in ours.mounts:
        their = yours.pop(mount.prefix, None)
        tree = mount.tree
        if their is not None and (tree is not None or their.tree is not None):
            before, chosen = old.get(mount.prefix), resolution.below(mount.prefix)
            merged = merge_trees(repository.packs.read, writer, before, tree, their.tree, chosen)
            top = mount.prefix.rstrip("/")
            resolved |= {top + path for path in merged.resolved}
            conflicts.extend(replace(conflict, path=top + conflict.path) for conflict in merged.conflicts)
            tree = merged.tree
        mounts.append(replace(mount, tree=tree))
    mounts.extend(yours.values())
    return mounts, conflicts, resolved
