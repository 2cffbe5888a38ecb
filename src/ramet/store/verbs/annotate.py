"""Tags, pins, holds and grants of workspaces and revisions.

Naming a revision without holding the lease checks the decisions of collections before and after, and undoes the name
when the revision is not complete.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ramet.core.errors import RametError
from ramet.store.refs.grants import Access
from ramet.store.refs.resolve import RevisionLike, expired_error
from ramet.store.refs.retention import Pin, Retention
from ramet.store.refs.tags import Tag

if TYPE_CHECKING:
    from ramet.store.repository import Repository


def tag(
    repository: Repository, name: str, tag: str, spec: RevisionLike | None, message: str, author: str, force: bool
) -> Tag:
    """Tag a revision, which also keeps it."""
    repository.require_safe_refs()
    repository.check_access(name, "readwrite")
    before = repository.gc_log.now()
    target = repository.find(name, spec)
    made = repository.tags.create(name, tag, target.id, message=message, author=author, force=force)
    if repository.gc_log.now().number != before.number and not repository.is_whole(target):
        repository.tags.delete(name, tag)
        raise expired_error(target.name)
    return made


def pin(repository: Repository, name: str, spec: RevisionLike | None, seconds: float | None, why: str) -> Pin:
    """Pin a revision, for some seconds or until the pin is removed."""
    before = repository.gc_log.now()
    target = repository.find(name, spec)
    until = None if seconds is None else repository.clock() + seconds
    made = repository.pins.place(target, until=until, why=why)
    if repository.gc_log.now().number != before.number and not repository.is_whole(target):
        repository.pins.remove(made.token)
        raise expired_error(target.name)
    return made


def hold(repository: Repository, name: str, why: str) -> Retention:
    """Place a hold: nothing of the workspace is removed until the hold is lifted."""
    repository.refs.require(name)
    repository.check_access(name, "readwrite")
    if not why:
        raise RametError("invalid_argument", "a hold needs a reason", "pass a reason")
    repository.require_safe_refs()
    return repository.policies.set(replace(repository.policies.own(name), hold=why), name)


def lift(repository: Repository, name: str) -> Retention:
    """End a hold."""
    repository.check_access(name, "readwrite")
    return repository.policies.set(replace(repository.policies.own(name), hold=""), name)


def grant(repository: Repository, name: str, principal: str, access: Access | None) -> None:
    """Grant a principal access to a workspace; with None, revoke it."""
    repository.refs.require(name)
    repository.check_access(name, "readwrite")
    repository.require_safe_refs()
    granted = dict(repository.grants.of(name))
    if access is not None:
        granted[principal] = access
    elif granted.pop(principal, None) is None:
        raise RametError("not_found", f"{principal!r} has no grant on {name!r}", "see `grants`")
    repository.grants.put(name, granted, repository.principal)
