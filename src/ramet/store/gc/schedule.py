"""When a process should clean up after commits: collect as often as the policy says, and join packs when they are many.

Rule: nothing here makes a commit wait. What has to be asked of the store is remembered for a while.
"""

from __future__ import annotations

import time
from typing import Final

from ramet.store.model.revisions import Revision
from ramet.store.refs.retention import RetentionPolicies

CROWD: Final = 256
"""Small packs with one key from which on they are joined: whoever opens a store lists a few hundred names, however
often it was committed to."""
PAUSE: Final = 5.0
"""Seconds between two tries of a process to join packs."""
REMEMBERED: Final = 30.0
"""Seconds for which a process remembers how often to collect."""


class GcSchedule:
    """What one process knows about when to clean up."""

    def __init__(self, policies: RetentionPolicies) -> None:
        self._policies = policies
        self._join_at = 0.0
        self._auto: dict[str, tuple[float, int]] = {}
        """After how many commits to collect, by workspace, and when that was read."""

    def gc_is_due(self, revision: Revision) -> bool:
        """Whether the policy says to collect after a commit: after every so many, and not more often than is of use."""
        known = self.gc_is_due_now(revision)
        if known is None:
            every = self._policies.of(revision.workspace).auto or 0
            self._auto[revision.workspace] = (time.monotonic(), every)
            known = bool(every) and not revision.seq % every
        return known

    def gc_is_due_now(self, revision: Revision) -> bool | None:
        """The same without asking the store; None when that has to be asked."""
        read, every = self._auto.get(revision.workspace, (-1e9, 0))
        return None if time.monotonic() - read > REMEMBERED else bool(every) and not revision.seq % every

    def needs_consolidation(self, crowd: int) -> bool:
        """Whether so many small packs are worth being joined, if that was not tried just now."""
        return crowd >= CROWD and time.monotonic() >= self._join_at

    def consolidation_started(self) -> None:
        """Packs are being joined: not again for a while."""
        self._join_at = time.monotonic() + PAUSE
