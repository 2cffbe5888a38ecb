"""Ancestors of revisions, up to where history has expired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramet.core.errors import RametError
from ramet.store.model.graph import newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision

if TYPE_CHECKING:
    from ramet.store.repository import Repository


def common_ancestor(repository: Repository, one: Revision, other: Revision) -> Revision | None:
    """Return the nearest common ancestor of two revisions."""
    mine = ancestors(repository, one)
    return next((r for r in newest_first(ancestors(repository, other).values()) if r.id in mine), None)


def ancestors(repository: Repository, start: Revision) -> dict[RevisionId, Revision]:
    """Return a revision and all its ancestors, by id."""
    found: dict[RevisionId, Revision] = {}
    pending = [start]
    while pending:
        revision = pending.pop()
        if revision.id not in found:
            found[revision.id] = revision
            pending.extend(parents_of(repository, revision))
    return found


def parents_of(repository: Repository, revision: Revision) -> list[Revision]:
    """Return the parents of a revision that have not expired."""
    found: list[Revision] = []
    for parent in revision.parents:
        try:
            found.append(repository.read_revision(parent))
        except RametError as error:
            if error.code != "revision_expired":
                raise
    return found
