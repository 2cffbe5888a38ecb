"""Trash: removed workspaces, which can be restored until a collection deletes their revisions.

- Removing appends one entry to the log of the workspace. Tags, retention, notes and drafts stay where they are, and the
  entry that clears the grants remembers them.
- Restoring appends one entry with the head that was removed. It needs the right to write that the caller had before.
- Creating a workspace of the same name empties the trash of that name: the old one cannot be restored any more.
- A collection condemns the revisions of removed workspaces after half of the grace period. From then on they count as
  gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ramet.core.errors import RametError
from ramet.store.model.ids import RevisionId
from ramet.store.refs.gc_log import REVISIONS
from ramet.store.refs.grants import Access
from ramet.store.refs.refs import RefEntry, not_found

if TYPE_CHECKING:
    from ramet.store.repository import Repository


@dataclass(frozen=True)
class RemovedWorkspace:
    """A workspace in the trash: its name, when it was removed, and the name of its last revision, if it had one."""

    name: str
    time: float
    revision: str | None


def trash(repository: Repository) -> list[RemovedWorkspace]:
    """List the removed workspaces that the caller may read and that can be restored, by name."""
    found: list[RemovedWorkspace] = []
    for name in repository.refs.all_names():
        entry = repository.refs.last(name)
        if not entry.deleted or not repository.grants.allows_removed(repository.principal, name, "readonly"):
            continue
        try:
            _check_whole(repository, name, entry)
            head = None if entry.head is None else repository.read_revision(entry.head, expired=True).name
        except RametError as error:
            if error.code not in ("revision_expired", "revision_not_found", "store_corrupt"):
                raise
            continue  # collected, or shredded
        found.append(RemovedWorkspace(name, entry.time, head))
    return found


def restore(repository: Repository, name: str) -> None:
    """Bring a removed workspace back as it was, with its tags and grants."""
    repository.require_safe_refs()
    try:
        entry = repository.refs.last(name)
        _check_access(repository, name, "readwrite")
    except RametError as error:
        if error.code != "workspace_not_found":
            raise
        raise RametError(
            "workspace_not_found", f"cannot restore {name!r}: it is not in the trash",
            "`ls --trash` lists what can be restored",
        ) from None  # fmt: skip
    if not entry.deleted:
        raise RametError(
            "workspace_exists", f"cannot restore {name!r}: a workspace of this name exists",
            "Fork it to another name and remove it first.",
        )  # fmt: skip
    before = repository.gc_log.now().number
    _check_whole(repository, name, entry)
    granted = repository.grants.removed(name)
    if granted:
        repository.grants.put(name, granted, repository.principal)
    repository.refs.restore(name, entry)
    if repository.gc_log.now().number != before:
        try:
            _check_whole(repository, name, entry)
        except RametError:
            repository.refs.delete(name)
            repository.grants.clear(name)
            raise


def _check_access(repository: Repository, name: str, access: Access) -> None:
    if not repository.refs.last(name).deleted:
        repository.check_access(name, access)
    elif not repository.grants.allows_removed(repository.principal, name, access):
        raise not_found(name)


def _check_whole(repository: Repository, name: str, entry: RefEntry) -> None:
    """Refuse what a collection has condemned or removed."""
    needed = [identity for identity in (entry.head, entry.latest) if identity is not None]
    history: set[RevisionId] = set(needed)
    for identity in needed:
        history |= repository.ancestors(repository.read_revision(identity, expired=True)).keys()
    doomed = repository.refresh_gc_state().doomed
    gone = any(doomed[key].condemned for one in history if (key := REVISIONS + one.hex()) in doomed)
    if gone or not all(repository.is_whole(repository.read_revision(one, expired=True)) for one in needed):
        raise RametError(
            "revision_expired", f"cannot restore {name!r}: a collection has removed its revisions",
            "Restore a workspace before gc deletes it; `retention` says how long that is.",
        )  # fmt: skip
