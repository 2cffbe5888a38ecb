"""What a process that died left behind in directories: the next one that opens the workspace makes a revision of it.

    bindings/<workspace>/<fence>     {"host", "roots": {prefix: directory}, "withhold"}

Rules that this file keeps:
- Whoever opens a workspace with directories says so in the store, and takes it back when it ends in order.
- What is found is committed before the directories are used again, and never over what others committed meanwhile: then
  it becomes a workspace of its own, `NAME-recovered-<fence>`.
- Memory that was not committed is gone with its process; nothing here pretends otherwise.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ramet.core.errors import RametError
from ramet.store.directory import commit_directory
from ramet.store.hygiene import Withheld
from ramet.store.ids import RevisionId, TreeId
from ramet.store.refs import Entry
from ramet.store.repository import Repository
from ramet.store.revisions import MountState, Revision
from ramet.store.statcache import StatCache

SPACE = "bindings"


@dataclass(frozen=True)
class Binding:
    """A workspace that was opened with directories of a machine."""

    workspace: str
    fence: int
    host: str
    roots: Mapping[str, str]
    withhold: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{SPACE}/{self.workspace}/{self.fence:020d}"


@dataclass(frozen=True)
class Recovered:
    """What was found after a process that died: the revision that was made of it, and in which workspace."""

    revision: Revision
    workspace: str


def bind(
    repository: Repository, name: str, lease: Entry, roots: Mapping[str, str], withhold: Withheld
) -> Binding | None:
    """Say which directories a workspace works in from now on; None when there are none."""
    if not roots:
        return None
    made = Binding(name, lease.fence, socket.gethostname(), dict(roots), withhold.patterns)
    plain = {"host": made.host, "roots": made.roots, "withhold": made.withhold}
    repository.objects.put(made.key, json.dumps(plain, sort_keys=True).encode())
    return made


def unbind(repository: Repository, binding: Binding | None) -> None:
    """It ended in order."""
    if binding is not None:
        repository.objects.delete(binding.key)


def left_behind(repository: Repository, name: str) -> list[Binding]:
    """Bindings of a workspace whose processes did not end in order; asked by whoever holds its lease."""
    found: list[Binding] = []
    for key in repository.objects.list(f"{SPACE}/{name}/"):
        try:
            plain = json.loads(repository.objects.get(key))
            found.append(
                Binding(name, int(key.rpartition("/")[2]), plain["host"], plain["roots"], tuple(plain["withhold"]))
            )
        except (ValueError, KeyError, TypeError):
            raise RametError("store_corrupt", f"the binding {key} is damaged", "look at it, then remove it") from None
    return found


def recover(repository: Repository, name: str, lease: Entry) -> tuple[Entry, list[Recovered]]:
    """Make revisions of what dead processes left in directories of this machine; gives the lease as it is then."""
    done: list[Recovered] = []
    for binding in left_behind(repository, name):
        roots = {prefix: root for prefix, root in binding.roots.items() if os.path.isdir(root)}
        if binding.host != socket.gethostname():
            continue  # only that machine can look; it will when the workspace is opened there
        lease, found = _recovered(repository, binding, roots, lease)
        if found is not None:
            done.append(found)
        unbind(repository, binding)
    return lease, done


def _recovered(
    repository: Repository, binding: Binding, roots: Mapping[str, str], lease: Entry
) -> tuple[Entry, Recovered | None]:
    name, head = binding.workspace, lease.head
    last = _last_head(repository, binding)
    base = None if last is None else _still_there(repository, last)
    states = {mount.prefix: mount for mount in base.mounts} if base is not None else {}
    writer = repository.writer(name)
    try:
        for prefix, root in sorted(roots.items()):
            tree: TreeId = commit_directory(root, writer, StatCache(), withheld=Withheld(binding.withhold))
            states[prefix] = replace(states.get(prefix, MountState(prefix, "disk")), type="disk", tree=tree)
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    mounts = tuple(states[prefix] for prefix in sorted(states))
    if base is not None and {m.prefix: m.tree for m in base.mounts} == {m.prefix: m.tree for m in mounts}:
        return lease, None
    current = None if head is None else repository.read_revision(head, expired=True)
    if current is not None and all(_tree(current, prefix) == states[prefix].tree for prefix in roots):
        return lease, None  # it was committed after all: the process died between that and its end
    made = Revision(
        workspace=name, seq=1 if base is None else base.seq + 1, parents=() if base is None else (base.id,),
        lineage=f"fromClaim:{binding.host}", mounts=mounts, kernel=None if base is None else base.kernel,
        history=() if base is None else base.history, time=repository.clock(),
        message="recovered: its process died before it committed",
    )  # fmt: skip
    if head == last:
        return repository.commit(name, lease, made), Recovered(made, name)
    aside = f"{name}-recovered-{binding.fence}"
    made = replace(made, workspace=aside, seq=1)
    repository.begin(aside, made)
    return lease, Recovered(made, aside)


def _still_there(repository: Repository, identity: RevisionId) -> Revision | None:
    """A revision that may have expired since."""
    try:
        return repository.read_revision(identity, expired=True)
    except RametError as error:
        if error.code not in ("revision_not_found", "revision_expired"):
            raise
        return None


def _last_head(repository: Repository, binding: Binding) -> RevisionId | None:
    """Where the workspace was when its process died."""
    found = [entry.head for entry in repository.refs.history(binding.workspace) if entry.fence == binding.fence]
    return found[-1] if found else None


def _tree(revision: Revision, prefix: str) -> TreeId | None:
    return next((mount.tree for mount in revision.mounts if mount.prefix == prefix), None)
