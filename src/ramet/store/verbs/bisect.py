"""Bisect: find the first bad revision, also in histories with merges."""

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
    """Candidates for the first bad revision. `bad` is one of them; good revisions and their ancestors are not."""

    bad: Revision
    left: dict[RevisionId, Revision]
    skipped: set[RevisionId] = field(default_factory=set)

    @classmethod
    def between(
        cls, good: Mapping[RevisionId, Revision], bad: Mapping[RevisionId, Revision], tip: Revision
    ) -> BisectSearch:
        """Start from the ancestors of a good and of a bad revision (`tip`), each including itself."""
        left = {identity: revision for identity, revision in bad.items() if identity not in good}
        if not left or not any(identity in bad for identity in good):
            raise RametError(
                "invalid_argument", f"{tip.name} does not come from the good revision",
                "give a good revision first and a bad one that came later",
            )  # fmt: skip
        return cls(tip, left)

    def next(self) -> Revision | None:
        """Return the best revision to test next; None when nothing is left to test."""
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
        """Return the remaining ancestors of each remaining revision, including itself, as bit sets."""
        found: dict[RevisionId, int] = {}
        for number, revision in enumerate(reversed(newest_first(self.left.values()))):
            bits = 1 << number
            for parent in revision.parents:
                bits |= found.get(parent, 0)
            found[revision.id] = bits
        return found

    def record(self, revision: Revision, verdict: Verdict) -> None:
        """Record the verdict on a revision."""
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
        """The remaining candidates: one, or more when some could not be tested."""
        return newest_first(self.left.values())
