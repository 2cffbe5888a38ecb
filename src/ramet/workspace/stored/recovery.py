"""Crash recovery: opening a workspace commits what a dead process left, exactly once.

    bindings/<workspace>/<fence>     {"host", "roots": {prefix: folder}, "withhold", "trees": {prefix: folder}, "box"}
    drafts/<workspace>/<fence>/...   the content of memory mounts, see `ramet.store.refs.drafts`

- Opening a workspace with directories records a binding, which a clean end removes.
- Leftover changes are committed before the workspace is used, and never over newer commits: then they become the
  workspace `NAME-recovered-<fence>`.
- The log entry of a recovered head names the fence (`recover:<fence>`), so that an interrupted recovery is not
  repeated.
- Memory without a draft is lost with its process.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ramet.core.errors import RametError
from ramet.native.leftovers import remove_layout
from ramet.native.lowers import read_place
from ramet.native.upper import assemble, fold, make_readable
from ramet.store.commit.ignore_rules import IgnoreRules
from ramet.store.commit.kernel_state import append_records, no_writers, plain_record
from ramet.store.model.ids import RevisionId, TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.refs.refs import RefEntry
from ramet.store.repository import Repository

if TYPE_CHECKING:
    from ramet.store.refs.drafts import Draft

SPACE: Final = "bindings"
MESSAGE: Final = "recovered: its process died before it committed"


@dataclass(frozen=True)
class Binding:
    """The directories of an open workspace, and their host."""

    workspace: str
    fence: int
    host: str
    roots: Mapping[str, str]
    withhold: tuple[str, ...]
    trees: Mapping[str, str] = field(default_factory=dict)
    """Overlays of native programs, which recovery folds into one directory each."""

    box: str = ""
    """The directory of a box that works on the directories and is no part of the workspace."""

    @property
    def key(self) -> str:
        return f"{SPACE}/{self.workspace}/{self.fence:020d}"

    @property
    def boxes(self) -> set[str]:
        """The directories of its boxes."""
        return {box_of(folder) for folder in self.trees.values()} | ({self.box} - {""})

    def encode(self) -> bytes:
        plain = {"host": self.host, "roots": self.roots, "withhold": self.withhold, "trees": self.trees}
        return json.dumps({**plain, "box": self.box}, sort_keys=True).encode()


@dataclass(frozen=True)
class Recovery:
    """The revision that was recovered after a crash, and its workspace."""

    revision: Revision
    workspace: str


def bind(
    repository: Repository,
    name: str,
    lease: RefEntry,
    roots: Mapping[str, str],
    withhold: IgnoreRules,
    trees: Mapping[str, str] | None = None,
) -> Binding | None:
    """Record the directories of an open workspace; None when there are none."""
    if not roots and not trees:
        return None
    made = Binding(name, lease.fence, socket.gethostname(), dict(roots), withhold.patterns, dict(trees or {}))
    repository.objects.put(made.key, made.encode())
    return made


def remember_box(repository: Repository, binding: Binding, box: str) -> Binding:
    """Note the box that works on the directories of an open workspace: others find its ports, and what it leaves."""
    made = replace(binding, box=box)
    repository.objects.put(made.key, made.encode())
    return made


def unbind(repository: Repository, binding: Binding | None) -> None:
    """Remove the binding after a clean end."""
    if binding is not None:
        repository.objects.delete(binding.key)


def leftover_bindings(repository: Repository, name: str) -> list[Binding]:
    """Return bindings without a clean end; the caller holds the lease."""
    found: list[Binding] = []
    for key in repository.objects.list(f"{SPACE}/{name}/"):
        try:
            plain = json.loads(repository.objects.get(key))
            found.append(
                Binding(
                    name,
                    int(key.rpartition("/")[2]),
                    plain["host"],
                    plain["roots"],
                    tuple(plain["withhold"]),
                    plain.get("trees", {}),
                    plain.get("box", ""),
                )
            )
        except (ValueError, KeyError, TypeError):
            raise RametError("store_corrupt", f"the binding {key} is damaged", "look at it, then remove it") from None
    return found


def recover(repository: Repository, name: str, lease: RefEntry) -> tuple[RefEntry, list[Recovery]]:
    """Commit what dead processes left in directories of this machine and in drafts; returns the new lease.

    A crash during recovery leaves everything as it was, or done.
    """
    here = socket.gethostname()
    bound = {binding.fence: binding for binding in leftover_bindings(repository, name)}
    drafted = {draft.fence: draft for draft in _drafts(repository, name) if draft.fence < lease.fence}
    done: list[Recovery] = []
    for fence in sorted({*bound, *drafted}):
        binding, draft = bound.get(fence), drafted.get(fence)
        partly = binding is not None and binding.host != here
        if partly:
            binding = None  # only that host can read it, when it opens the workspace
        if binding is not None or (draft is not None and draft.steps and draft.opened is not None):
            left = _CrashRecovery(repository, name, fence, binding, draft, partly)
            lease, found = left.recover(lease)
            if found is not None:
                done.append(found)
        if draft is not None:
            _put_away(repository, draft)
        unbind(repository, binding)
        for folder in set() if binding is None else binding.boxes:
            if os.path.isdir(folder):
                remove_layout(folder)
    return lease, done


def box_of(folder: str) -> str:
    """Return the directory of the box that a tree belongs to."""
    return os.path.dirname(os.path.dirname(folder))


def _drafts(repository: Repository, name: str) -> list[Draft]:
    """Return the drafts of a workspace, without imports when there are none."""
    if next(iter(repository.objects.list(f"drafts/{name}/")), None) is None:
        return []
    from ramet.store.refs.drafts import read_drafts

    return read_drafts(repository.objects, name)


def _put_away(repository: Repository, draft: Draft) -> None:
    """Remove a draft, the header first; its damaged parts are quarantined."""
    from ramet.store.refs.drafts import remove_draft_objects
    from ramet.store.repair.repair import quarantine  # rarely needed; keeps open fast

    for key in (*draft.broken, *draft.unreached):
        quarantine(repository.objects, key)
    remove_draft_objects(repository.objects, draft.keys)


class _CrashRecovery:
    """The leftovers of one lease holder."""

    def __init__(
        self,
        repository: Repository,
        name: str,
        fence: int,
        binding: Binding | None,
        draft: Draft | None,
        partly: bool,
    ) -> None:
        self._repository, self._name, self._binding = repository, name, binding
        self._which = f"{fence}-memory" if partly else str(fence)
        """The recovered part: everything, or without the directories of another host."""
        began = 0 if draft is None or draft.opened is None else draft.opened.lease - 1
        log = [entry for entry in repository.refs.history(name, began) if entry.fence >= fence]
        mine = [entry for entry in log if entry.fence == fence]
        self._last = mine[-1].head if mine else None
        """The head when the process died."""
        self._latest = mine[-1].latest if mine else None
        """The records after that head."""
        kinds = {entry.kind for entry in log}
        self._is_done = f"recover:{self._which}" in kinds
        has_steps = draft is not None and draft.opened is not None and draft.steps
        # Otherwise its writer has committed it, or another host has.
        current = (
            has_steps and draft is not None and draft.base == self._last and f"recover:{fence}-memory" not in kinds
        )
        self._draft = draft if current else None

    def recover(self, lease: RefEntry) -> tuple[RefEntry, Recovery | None]:
        """Commit the leftovers, if any; returns the new lease."""
        repository, name = self._repository, self._name
        other = f"{name}-recovered-{self._which}"
        if self._is_done or (self._draft is None and self._binding is None):
            return lease, None
        target = name if lease.head == self._last else other
        if target == other and repository.refs.exists(other):
            return lease, None  # recovered before a crash
        base = None if self._last is None else _still_there(repository, self._last)
        before = {mount.prefix: mount for mount in base.mounts} if base is not None else {}
        latest = base if self._latest is None else _still_there(repository, self._latest) or base
        made = self._revision(target, base, before, latest)
        known = None if latest is None else (latest.kernel, latest.history)
        if base is not None and made.mounts == base.mounts and (made.kernel, made.history) == known:
            return lease, None
        head = None if lease.head is None else repository.read_revision(lease.head, expired=True)
        if self._draft is None and head is not None:
            roots = self._roots
            if all(_tree(head, mount.prefix) == mount.tree for mount in made.mounts if mount.prefix in roots):
                return lease, None  # committed: the process died before its end
        made = self._recorded(made)
        if target == name:
            return repository.commit(name, lease, made, f"recover:{self._which}"), Recovery(made, name)
        granted = repository.grants.of(name)
        if granted:
            repository.grants.put(other, granted, None)  # who may not read the one may not read the other
        try:
            repository.begin(other, made)
        except RametError as error:
            if error.code != "workspace_exists":
                raise
            return lease, None  # recovered by a previous lease holder
        return lease, Recovery(made, other)

    def _recorded(self, made: Revision) -> Revision:
        """Add the record of the recovery."""
        repository = self._repository
        writer = repository.writer(made.workspace)
        record = plain_record("recovery", repository.actor, f"recover what holder {self._which} left", made.time)
        kernel, history, number = append_records(repository.packs, writer, made, [record])
        writer.finish()
        ops = no_writers(number if made.ops is None else made.ops["first"], number)
        return replace(made, kernel=kernel, history=history, ops=ops)

    @property
    def _roots(self) -> dict[str, str]:
        """The directories that still exist."""
        roots = {} if self._binding is None else {**self._binding.roots, **self._folded()}
        return {prefix: root for prefix, root in sorted(roots.items()) if os.path.isdir(root)}

    def _folded(self) -> dict[str, str]:
        """Fold the overlays of native programs that still exist; returns the directories."""
        found: dict[str, str] = {}
        for prefix, folder in self._binding.trees.items() if self._binding is not None else ():
            place = read_place(folder)
            if not os.path.isdir(place.upper):
                continue
            make_readable(place.upper)
            if place.shared:
                found[prefix] = f"{folder}/assembled"
                assemble((*place.lowers, place.upper), found[prefix])
            else:
                fold(place.lower, place.upper)
                found[prefix] = place.lower
        return found

    def _revision(
        self, target: str, base: Revision | None, before: dict[str, MountState], latest: Revision | None
    ) -> Revision:
        from ramet.store.commit.commit_filter import CommitFilter  # as above
        from ramet.store.commit.directory import commit_directory
        from ramet.store.commit.stat_cache import StatCache
        from ramet.workspace.stored.replay import replay, with_trees, write

        repository, own = self._repository, target == self._name
        states = dict(before)
        found = None if self._draft is None else replay(repository, self._draft)
        host = "" if self._binding is None else self._binding.host
        made = Revision(
            workspace=target, seq=base.seq + 1 if base is not None and own else 1,
            parents=() if base is None else (base.id,), lineage=f"fromClaim:{host}", mounts=(),
            kernel=None if latest is None else latest.kernel, history=() if latest is None else latest.history,
            time=repository.clock(), message=MESSAGE,
        )  # fmt: skip
        if base is not None and not own:
            repository.share(self._name, base.id if latest is None else latest.id, target)
        writer = repository.writer(target)
        try:
            if found is not None:
                written = write(repository, writer, target, found, latest, own)
                states = with_trees(found, written.trees, states)
                made = replace(
                    made, lineage=found.lineage, kernel=written.kernel, history=written.history,
                    withheld=found.withheld, suspected=written.suspected, agent=found.agent, ops=_ops(found.records),
                )  # fmt: skip
            for prefix, root in self._roots.items():
                assert self._binding is not None
                rules = CommitFilter(IgnoreRules(self._binding.withhold))
                tree = commit_directory(root, writer, StatCache(), rules).tree
                kind = "ram" if prefix in self._binding.trees else "disk"
                states[prefix] = replace(states.get(prefix, MountState(prefix, kind)), type=kind, tree=tree)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return replace(made, mounts=tuple(states[prefix] for prefix in sorted(states)))


def _ops(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the range of records; the writers of lines are unknown."""
    return no_writers(records[0]["number"], records[-1]["number"]) if records else None


def _still_there(repository: Repository, identity: RevisionId) -> Revision | None:
    """Read a revision that may have expired."""
    try:
        return repository.read_revision(identity, expired=True)
    except RametError as error:
        if error.code not in ("revision_not_found", "revision_expired"):
            raise
        return None


def _tree(revision: Revision, prefix: str) -> TreeId | None:
    return next((mount.tree for mount in revision.mounts if mount.prefix == prefix), None)
