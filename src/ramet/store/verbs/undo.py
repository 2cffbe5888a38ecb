"""Undo: take back the last change of a workspace, or what one agent or run changed, and nothing else.

- Undoing a revision is a three-way merge: its content is the base, the content before it is one side, the head the
  other. Later changes stay; where they overlap, the result is conflicts and nothing changes.
- Where other agents changed files in the same revision, only the paths of the agent go back. A path that both wrote is
  a conflict.
- The history stays: undo adds a revision `undo:NAMES`, and what it took back is not taken back again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ramet.core.errors import RametError
from ramet.store.commit.kernel_state import records_of
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.model.trees import EMPTY_ID
from ramet.store.packs.writer import PackWriter
from ramet.store.refs.resolve import expired_error
from ramet.store.verbs.fork import FORK
from ramet.store.verbs.merge import MergeConflict, TreeStage, graft, merge_trees
from ramet.store.verbs.rename import RENAME
from ramet.store.verbs.revert import MergeResult, RevisionStep

if TYPE_CHECKING:
    from ramet.store.repository import Repository

UNDO = "undo:"
"""Begins the lineage of an undo; the names of the undone revisions follow."""


@dataclass(frozen=True)
class _Target:
    """A revision to undo: all of it, or these paths; `shared` paths have other writers too."""

    revision: Revision
    paths: tuple[str, ...] | None = None
    shared: tuple[str, ...] = ()


@dataclass
class _StagedWriter:
    """Passes objects on to a writer, and keeps them readable for the next merge."""

    writer: PackWriter
    made: dict[bytes, bytes] = field(default_factory=dict)

    def add(self, key: bytes, data: bytes) -> None:
        self.made[key] = data
        self.writer.add(key, data)


def undo(
    repository: Repository, name: str, *, agent: str | None = None, run: str | None = None, message: str = ""
) -> MergeResult:
    """Undo the last change, or everything that an agent or a run (a trace, session or sandbox) changed."""
    with repository.writing(name) as entry:
        head = repository.find(name)
        targets = _targets(repository, name, agent, run)
        shared = [MergeConflict(path, "both changed", None, None, None) for one in targets for path in one.shared]
        if shared:
            return MergeResult(None, tuple(shared))
        writer = repository.writer(name)
        staged = _StagedWriter(writer)
        mounts = head.mounts
        for target in targets:
            mounts, conflicts = _without(repository, staged, mounts, target)
            if conflicts:
                writer.abandon()
                return MergeResult(None, tuple(conflicts))
        names = [target.revision.name for target in targets]
        step = RevisionStep(repository, name, head, "revert", f"undo {', '.join(names)}", message)
        revision = step.revision(writer, head, parents=(head.id,), mounts=mounts, lineage=UNDO + ",".join(names))
        writer.finish()
        repository.commit(name, entry, revision, "revert")
    return MergeResult(revision)


def undone_by(revision: Revision) -> tuple[str, ...]:
    """Return the names of the revisions that an undo took back, newest first; none for other revisions."""
    return tuple(revision.lineage.removeprefix(UNDO).split(",")) if revision.lineage.startswith(UNDO) else ()


def _targets(repository: Repository, name: str, agent: str | None, run: str | None) -> list[_Target]:
    """Return what to undo, newest first."""
    history = _own_history(repository, name)
    undone = {one for revision in history for one in undone_by(revision)}
    found: list[_Target] = []
    for revision in history:
        if revision.lineage.startswith((UNDO, FORK, RENAME)) or revision.name in undone:
            continue
        if agent is None and run is None:
            found.append(_Target(revision))
            break
        target = _part(repository, revision, agent, run)
        if target is not None:
            found.append(target)
    if not found:
        who = f"agent {agent!r}" if agent is not None else f"run {run!r}" if run is not None else repr(name)
        raise RametError("not_found", f"cannot undo: no change of {who} is left", "See `log` and `history`.")
    return found


def _own_history(repository: Repository, name: str) -> list[Revision]:
    """List the revisions of a workspace under all names that it had, newest first, without those before a fork."""
    names, found = {name}, []
    for revision in repository.log(name):
        if revision.workspace in names:
            found.append(revision)
            if revision.lineage.startswith(RENAME):
                names.add(revision.lineage.removeprefix(RENAME).rpartition("-")[0])
    return found


def _part(repository: Repository, revision: Revision, agent: str | None, run: str | None) -> _Target | None:
    """Return the part of a revision that an agent or run changed; None when there is none."""
    ops = revision.ops
    records = [] if ops is None else records_of(repository.packs, revision, ops["first"], ops["last"])
    changing = [one for one in records if one.get("paths_written") or one.get("paths_removed") or one.get("paths_cut")]
    whole = run is not None and (run == revision.trace_id or revision.lineage == f"fromClaim:{run}")
    mine = [one for one in changing if whole or _is_by(one, agent, run)]
    if not mine:
        return _Target(revision) if agent and agent == revision.agent and not changing else None
    if len(mine) == len(changing):
        return _Target(revision)
    if any(one.get("paths_cut") for one in changing):
        raise RametError(
            "unsupported", f"cannot undo a part of {revision.name}: it changed more paths than its records name",
            "Revert the paths: `revert` takes them.",
        )  # fmt: skip
    paths, others = _paths(mine), _paths([one for one in changing if one not in mine])
    return _Target(revision, tuple(sorted(paths)), tuple(sorted(paths & others)))


def _is_by(record: dict[str, Any], agent: str | None, run: str | None) -> bool:
    runs = record.get("session_id"), record.get("meta", {}).get("run")
    return (agent is None or record.get("agent_id") == agent) and (run is None or run in runs)


def _paths(records: Iterable[dict[str, Any]]) -> set[str]:
    return {str(path) for one in records for path in (*one.get("paths_written", ()), *one.get("paths_removed", ()))}


def _without(
    repository: Repository, staged: _StagedWriter, mounts: tuple[MountState, ...], target: _Target
) -> tuple[tuple[MountState, ...], list[MergeConflict]]:
    """Merge the content before a revision into these mounts."""
    revision = target.revision
    if repository.expired_parents(revision):
        raise expired_error(f"the revision before {revision.name}")
    before = repository.read_revision(revision.parents[0]) if revision.parents else None

    def read(key: bytes) -> bytes:
        made = staged.made.get(key)
        return repository.packs.read(key) if made is None else made

    old = {m.prefix: m.tree for m in before.mounts} if before is not None else {}
    then = {m.prefix: m.tree for m in revision.mounts}
    made: list[MountState] = []
    conflicts: list[MergeConflict] = []
    for mount in mounts:
        base = then.get(mount.prefix)
        if mount.tree is None or base is None:
            made.append(mount)
            continue
        theirs: TreeId = old.get(mount.prefix) or EMPTY_ID
        top = mount.prefix.rstrip("/")
        if target.paths is not None:
            stage = TreeStage(read, staged)
            past, theirs = theirs, base
            for path in target.paths:
                if path.startswith(top + "/"):
                    theirs = graft(stage, theirs, past, path[len(top) + 1 :].split("/"))
        merged = merge_trees(read, staged, base, mount.tree, theirs)
        conflicts += [replace(conflict, path=top + conflict.path) for conflict in merged.conflicts]
        made.append(mount if merged.tree is None else replace(mount, tree=merged.tree))
    return tuple(made), conflicts
