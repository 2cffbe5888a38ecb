"""Ancestors of revisions, up to where history has expired.

A history of thousands of revisions is read once: `Descents` remembers what it is made of, which never changes, and
`KnownHistory` what belongs to the history of a workspace.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Set
from functools import partial
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


class KnownHistory:
    """A revision and its ancestors by id and by name. It grows with the head of its workspace.

    Ancestors are read when something is looked for that is not among those that were read, newest first.
    """

    def __init__(self, gc_number: int, parents_of: Callable[[Descent], list[Descent]], head: Descent) -> None:
        self.gc_number = gc_number
        """The state of gc in which it was read: later ones may have shortened it."""
        self.head = head
        self._parents_of = parents_of
        self._ids: dict[RevisionId, Descent] = {}
        self._names: dict[str, list[Descent]] = {}
        self._pending = [head]
        self._reading = threading.Lock()

    def __len__(self) -> int:
        """The number of revisions that were read."""
        return len(self._ids)

    def has(self, identity: RevisionId) -> bool:
        with self._reading:
            while identity not in self._ids and self._pending:
                self._read_next()
        return identity in self._ids

    def named(self, name: str) -> list[Descent]:
        self.ids()
        return self._names.get(name, [])

    def ids(self) -> Mapping[RevisionId, Descent]:
        """Return all of them."""
        with self._reading:
            while self._pending:
                self._read_next()
        return self._ids

    def _read_next(self) -> None:
        one = self._pending.pop()
        if one.id not in self._ids:
            self._pending += reversed(self._parents_of(one))  # the first parent is next
            self._ids[one.id] = one
            self._names.setdefault(one.name, []).append(one)

    def grow(self, head: Descent) -> bool:
        """Add a later head and what it brings; False when the head does not descend from the one before."""
        with self._reading:
            before, pending = self.head, self._pending
            if head.id == before.id:
                return True
            added, above = {}, [head]
            while above and above[-1].id != before.id:
                one = above.pop()
                if one.id not in self._ids and one.id not in added:
                    above += reversed(self._parents_of(one))
                    added[one.id] = one
            if not above:
                return False
            for one in added.values():
                self._names.setdefault(one.name, []).append(one)
            self._ids |= added
            self._pending, self.head = [*pending, *above], head
            return True


class Descents:
    """The descent of revisions of a store, read when it is first asked for."""

    def __init__(self) -> None:
        self._known: dict[RevisionId, Descent] = {}
        self._histories: dict[str, KnownHistory] = {}
        self._finding = threading.Lock()

    def history(self, repository: Repository, name: str, start: RevisionId) -> KnownHistory:
        """Return the history of a workspace with this head."""
        number = repository.gc_log.now(CACHE_SECONDS).number
        head = self.of(repository, start)
        with self._finding:
            found = self._histories.pop(name, None)
            if found is None or found.gc_number != number or not found.grow(head):
                found = KnownHistory(number, partial(self.parents_of, repository), head)
            room = REMEMBERED - len(found)
            for other in reversed(list(self._histories)):
                room -= len(self._histories[other])
                if room < 0:
                    del self._histories[other]
            self._histories[name] = found
        return found

    def ids(self, repository: Repository, start: Revision) -> Container[RevisionId]:
        """Return the ids of a revision and its ancestors."""
        for known in list(self._histories.values()):
            if known.head.id == start.id:
                return known.ids()
        return {one.id for one in self.newest_first(repository, start.id)}

    def of(self, repository: Repository, identity: RevisionId) -> Descent:
        found = self._known.get(identity)
        if found is None:
            found = repository.read_descent(identity)
            if len(self._known) >= REMEMBERED:
                for old in list(self._known)[: REMEMBERED // 4]:
                    self._known.pop(old, None)
            self._known[identity] = found
        return found

    def newest_first(
        self, repository: Repository, start: RevisionId, without: Container[RevisionId] = ()
    ) -> Iterator[Descent]:
        """Yield a revision and its ancestors, children before their parents.

        As long as the history is a line, only what is asked for is read. `without` are ids to leave out, with all
        their ancestors.
        """
        following = self.of(repository, start)
        while len(parents := self.parents_of(repository, following)) < 2:
            if following.id in without:
                return
            yield following
            if not parents:
                return
            following = parents[0]
        found: dict[RevisionId, Descent] = {}
        pending = [following]
        while pending:
            one = pending.pop()
            if one.id not in found and one.id not in without:
                found[one.id] = one
                pending += self.parents_of(repository, one)
        yield from newest_first(found.values())

    def parents_of(self, repository: Repository, one: Descent) -> list[Descent]:
        """Return the parents of a revision that have not expired."""
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


def revisions_of_records(
    repository: Repository, start: Revision, records: tuple[int, int] | Set[int]
) -> Iterator[Revision]:
    """Yield the revisions that hold records of these numbers, the first and the last or a set, newest first.

    Numbers grow along first parents, so the newest of these revisions is found by bisection. What was merged in counts
    its records by itself, and is not searched.
    """
    wanted = sorted(records) if isinstance(records, Set) else range(records[0], records[1] + 1)
    line: list[Descent] = []
    following: RevisionId | None = start.id
    for one in repository.descents_of(start):
        if one.id == following:
            line.append(one)
            following = one.parents[0] if one.parents else None

    for one in line[bisect_left(line, -wanted[-1], key=lambda one: -one.first) :]:
        if one.last < wanted[0]:
            return
        if bisect_left(wanted, one.first) < bisect_right(wanted, one.last):
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
