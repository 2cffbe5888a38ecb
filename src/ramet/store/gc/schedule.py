"""`GcSchedule`: when to collect and to consolidate packs after commits.

Nothing here blocks a commit: values that need a request are cached.
"""

from __future__ import annotations

import time
from typing import Final

from ramet.store.model.revisions import Revision
from ramet.store.refs.retention import RetentionPolicies

MANY_SMALL_PACKS: Final = 256
"""Small packs with one key from which on they are merged, to bound the names that an open lists."""
CONSOLIDATION_PAUSE: Final = 5.0
"""Seconds between two consolidations of a process."""
POLICY_CACHE_SECONDS: Final = 30.0
"""Seconds for which the policy is cached."""


class GcSchedule:
    """The schedule of one process."""

    def __init__(self, policies: RetentionPolicies) -> None:
        self._policies = policies
        self._join_at = 0.0
        self._auto: dict[str, tuple[float, int]] = {}
        """Commits between collections by workspace, and when that was read."""

    def gc_is_due(self, revision: Revision) -> bool:
        """Return whether the policy wants a collection after this commit."""
        known = self.gc_is_due_now(revision)
        if known is None:
            every = self._policies.of(revision.workspace).auto or 0
            self._auto[revision.workspace] = (time.monotonic(), every)
            known = bool(every) and not revision.seq % every
        return known

    def gc_is_due_now(self, revision: Revision) -> bool | None:
        """As `gc_is_due`, without a request; None when it is not cached."""
        read, every = self._auto.get(revision.workspace, (-1e9, 0))
        return None if time.monotonic() - read > POLICY_CACHE_SECONDS else bool(every) and not revision.seq % every

    def needs_consolidation(self, crowd: int) -> bool:
        """Return whether enough small packs exist, and the last consolidation is long enough ago."""
        return crowd >= MANY_SMALL_PACKS and time.monotonic() >= self._join_at

    def consolidation_started(self) -> None:
        """Start the pause before the next consolidation."""
        self._join_at = time.monotonic() + CONSOLIDATION_PAUSE
