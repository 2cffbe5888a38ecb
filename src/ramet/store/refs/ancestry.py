"""Ancestors of revisions, up to where history has expired.

A history of thousands of revisions is read once: `Descents` remembers what it is made of, which never changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.model.graph import Descent, newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.refs.gc_log import CACHE_SECONDS

if TYPE_CHECKING:
    from ramet.store.repository import Repository


REMEMBERED: Final = 50_000
"""Revisions whose descent is remembered, at about 500 bytes each."""


class Descents:
    """The descent of revisions of a store, read when it is first asked for."""

    def __init__(self) -> None:
        self._known: dict[RevisionId, Descent] = {}

    def of(self, repository: Repository, identity: RevisionId) -> Descent:
        found = self._known.get(identity)
        if found is None:
            found = repository.read_descent(identity)
            if len(self._known) >= REMEMBERED:
                for old in list(self._known)[: REMEMBERED // 4]:
                    self._known.pop(old, None)
            self._known[identity] = found
        return found

    def newest_first(self, repository: Repository, start: RevisionId) -> Iterator[Descent]:
        """Yield a revision and its ancestors, children before their parents.

        As long as the history is a line, only what is asked for is read.
        """
        following = self.of(repository, start)
        while len(parents := self._parents(repository, following)) < 2:
            yield following
            if not parents:
                return
            following = parents[0]
        found: dict[RevisionId, Descent] = {}
        pending = [following]
        while pending:
            one = pending.pop()
            if one.id not in found:
                found[one.id] = one
                pending += self._parents(repository, one)
        yield from newest_first(found.values())

    def _parents(self, repository: Repository, one: Descent) -> list[Descent]:
        shallow = repository.gc_log.now(CACHE_SECONDS).shallow
        found = []
        for parent in one.parents:
            if parent in shallow:
                continue
            try:
                found.append(self.of(repository, parent))
            except RametError as error:  # it expired just now
                if error.code != "revision_expired":
                    raise
        return found


def revisions_of_records(repository: Repository, start: Revision, first: int, last: int) -> Iterator[Revision]:
    """Yield the revisions that hold the records of a range of numbers, newest first.

    Numbers grow along first parents, so the newest of these revisions is found by bisection. What was merged in counts
    its records by itself, and is not searched.
    """
    line: list[Descent] = []
    following: RevisionId | None = start.id
    for one in repository.descents_of(start):
        if one.id == following:
            line.append(one)
            following = one.parents[0] if one.parents else None

    def numbers(one: Descent) -> tuple[int, int]:
        ops = repository.read_revision(one.id).ops or {}
        return ops.get("first", 0), ops.get("last", 0)

    for one in line[bisect_left(line, -last, key=lambda one: -numbers(one)[0]) :]:
        if numbers(one)[1] < first:
            return
        yield repository.read_revision(one.id)


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
