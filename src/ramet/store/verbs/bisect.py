"""Finding the first bad revision: each test halves what is left, also where histories part and join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ramet.core.errors import RametError
from ramet.store.model.graph import newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision

Verdict = Literal["good", "bad", "skip"]


@dataclass
class BisectSearch:
    """Revisions that may be the first bad one. `bad` itself is among them; what is good, and before it, is not."""

    bad: Revision
    left: dict[RevisionId, Revision]
    skipped: set[RevisionId] = field(default_factory=set)

    @classmethod
    def between(
        cls, good: Mapping[RevisionId, Revision], bad: Mapping[RevisionId, Revision], tip: Revision
    ) -> BisectSearch:
        """From the ancestors of a good revision and of a bad one (`tip`), both with themselves."""
        left = {identity: revision for identity, revision in bad.items() if identity not in good}
        if not left or not any(identity in bad for identity in good):
            raise RametError(
                "invalid_argument", f"{tip.name} does not come from the good revision",
                "give a good revision first and a bad one that came later",
            )  # fmt: skip
        return cls(tip, left)

    def next(self) -> Revision | None:
        """The revision whose test tells most; None when nothing is left to be tested."""
        above = self._above()
        size = len(self.left)
        best, most = None, -1
        for revision in newest_first(self.left.values()):
            if revision.id == self.bad.id or revision.id in self.skipped:
                continue
            below = above[revision.id].bit_count()
            if min(below, size - below) > most:
                best, most = revision, min(below, size - below)
        return best

    def _above(self) -> dict[RevisionId, int]:
        """For each revision that is left: itself and the ones left that it comes from, as a set of bits."""
        found: dict[RevisionId, int] = {}
        for number, revision in enumerate(reversed(newest_first(self.left.values()))):
            bits = 1 << number
            for parent in revision.parents:
                bits |= found.get(parent, 0)
            found[revision.id] = bits
        return found

    def record(self, revision: Revision, verdict: Verdict) -> None:
        """Learn how a revision is."""
        if verdict == "skip":
            self.skipped.add(revision.id)
        elif verdict == "good":
            self._drop(self._ancestors(revision))
        else:
            self.bad = revision
            keep = self._ancestors(revision)
            self._drop(identity for identity in list(self.left) if identity not in keep)

    def _ancestors(self, revision: Revision) -> set[RevisionId]:
        found: set[RevisionId] = set()
        pending = [revision.id]
        while pending:
            identity = pending.pop()
            if identity in self.left and identity not in found:
                found.add(identity)
                pending.extend(self.left[identity].parents)
        return found

    def _drop(self, identities: Iterable[RevisionId]) -> None:
        for identity in list(identities):
            self.left.pop(identity, None)

    @property
    def suspects(self) -> list[Revision]:
        """What the first bad revision can be: one, or more when some could not be tested."""
        return newest_first(self.left.values())
