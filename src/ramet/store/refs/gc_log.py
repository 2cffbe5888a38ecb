"""`GcLog`: the decisions of collections, which writers read before they refer to existing objects.

    gc/store/<20-digit number>     {"kind", "time", "doomed", "sweeping", "shallow", "removed", "taken"}

The last entry is the whole state. Appending succeeds for one collector only, so two cannot decide differently.

- An object is first *suspected* (nothing refers to it), later *condemned* (nothing new may refer to it), then removed.
- An object in `sweeping` may vanish at any time; a writer that needs it must write it again.
- Consolidated packs go without being suspected, since nothing is lost. `taken` is the last entry that may have removed
  something.
- `shallow` names the revisions at which histories end because their parents have expired.
- Old entries are compacted: only the counts of sweeps are kept. An entry is compacted when it is older than
  `COMPACT_AGE` and not among the last `KEPT_ENTRIES`; appending checks that the number was not a compacted one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ramet.core.errors import RametError
from ramet.store.model.ids import RevisionId
from ramet.store.objects.log import Log, ObjectLog

LOG_NAME: Final = "store"
PACKS: Final = "packs/"
REVISIONS: Final = "revisions/"
JOINING: Final = "joining"
JOINED: Final = "joined"
COMPACT_AGE: Final = 3600.0
"""Seconds before an entry may be compacted."""
KEPT_ENTRIES: Final = 64
COMPACT_ENTRIES: Final = 256
"""Entries from which on a log is compacted."""
CACHE_SECONDS: Final = 5.0
"""Seconds for which readers may use a cached state."""


class Condemnation(NamedTuple):
    """When an object was first found unreferenced, and when it was condemned; 0 while it is only suspected."""

    since: float
    condemned: float = 0.0


@dataclass(frozen=True)
class GcState:
    """The state of garbage collection."""

    number: int = 0
    kind: str = "none"
    time: float = 0.0
    doomed: Mapping[str, Condemnation] = field(default_factory=dict)
    """Keys of unreferenced objects (`packs/<name>` stands for a pack with its index)."""
    sweeping: frozenset[str] = frozenset()
    shallow: frozenset[RevisionId] = frozenset()
    removed: Mapping[str, int] = field(default_factory=dict)
    """What the sweep of this entry removed: `packs`, `revisions`, `bytes`."""
    taken: int = 0
    """The number of the last entry that is not a consolidation."""

    @property
    def condemned_packs(self) -> frozenset[str]:
        cut = len(PACKS)
        return frozenset(k[cut:] for k, s in self.doomed.items() if s.condemned and k.startswith(PACKS))

    def is_doomed(self, revision: RevisionId) -> bool:
        return REVISIONS + revision.hex() in self.doomed

    def encode(self) -> bytes:
        plain = {
            "kind": self.kind, "time": self.time, "doomed": {key: list(s) for key, s in self.doomed.items()},
            "sweeping": sorted(self.sweeping), "shallow": sorted(identity.hex() for identity in self.shallow),
            "removed": dict(self.removed), **({"taken": self.taken} if self.kind in (JOINING, JOINED) else {}),
        }  # fmt: skip
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def decode(number: int, data: bytes) -> GcState:
    try:
        plain: dict[str, Any] = json.loads(data)
        return GcState(
            number, plain["kind"], plain["time"], {key: Condemnation(*s) for key, s in plain["doomed"].items()},
            frozenset(plain["sweeping"]), frozenset(RevisionId(bytes.fromhex(text)) for text in plain["shallow"]),
            plain["removed"], plain.get("taken", number),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RametError("store_corrupt", f"entry gc/store/{number:020d} is damaged", "run repair") from None


class GcLog:
    """The log of collections of a store."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known = GcState()
        self._refreshed_at = -1e9

    def now(self, older: float = 0.0) -> GcState:
        """Return the current state; reads the log unless the last read is younger than `older` seconds."""
        if time.monotonic() - self._refreshed_at >= older:
            began = time.monotonic()
            newest = self._log.newest(LOG_NAME, self._known.number)
            if newest is not None:
                self._known = decode(*newest)
            self._refreshed_at = began
        return self._known

    @property
    def known(self) -> GcState:
        """The state of the last read."""
        return self._known

    def append(self, state: GcState) -> GcState | None:
        """Append the next entry; None when another collector was first."""
        number = state.number + 1
        state = replace(state, number=number, taken=state.taken if state.kind in (JOINING, JOINED) else number)
        if not self._log.append(LOG_NAME, state.number, state.encode()) or self._is_late(number):
            self._refreshed_at = -1e9
            return None
        self._known = state
        return state

    def _is_late(self, number: int) -> bool:
        """Return whether a number that was just appended belongs to a compacted entry."""
        # A compacted entry is followed by `RECENT` others; no concurrent writer appends that many.
        if not isinstance(self._log, ObjectLog) or self._log.newest(LOG_NAME, number + KEPT_ENTRIES - 1) is None:
            return False
        self._log.withdraw(LOG_NAME, number)
        return True

    def compact(self, now: float) -> int:
        """Compact old entries if there are many, and return how many. Counts of sweeps are kept."""
        log = self._log
        if not isinstance(log, ObjectLog) or len(numbers := log.live(LOG_NAME)) < COMPACT_ENTRIES:
            return 0
        old = numbers[:-KEPT_ENTRIES]
        try:
            read = log.read_all(LOG_NAME, old)
        except KeyError:
            return 0  # another process is compacting
        gone, kept = 0, list[tuple[int, bytes]]()
        for number, data in zip(old, read, strict=True):
            try:
                state = decode(number, data)
            except RametError:
                gone += 1
                continue  # only the last one matters
            if state.time > now - COMPACT_AGE:
                break
            gone += 1
            if state.kind == "swept":
                kept.append((number, GcState(number, "swept", state.time, removed=state.removed).encode()))
        if gone:
            log.join(LOG_NAME, old[gone - 1], kept)
        return gone

    def history(self) -> Iterator[GcState]:
        """Yield all readable entries, in order."""
        for number, data in self._log.entries(LOG_NAME):
            try:
                yield decode(number, data)
            except RametError:
                continue  # only the last entry matters, and `now` reads that one

    def number(self) -> int:
        """Return the number of the last entry, readable or not."""
        newest = self._log.newest(LOG_NAME, self._known.number)
        return self._known.number if newest is None else newest[0]

    def damaged(self) -> list[int]:
        """Return the number of the last entry if it is damaged."""
        newest = self._log.newest(LOG_NAME)
        try:
            if newest is not None:
                decode(*newest)
        except RametError:
            return [newest[0]] if newest is not None else []
        return []

    def mend(self, at: float) -> None:
        """Start over after a damaged last entry, with the last known ends of histories."""
        for last in self.damaged():
            shallow = [state.shallow for state in self.history()]
            self.append(GcState(last, "mend", at, shallow=shallow[-1] if shallow else frozenset()))
