"""What a collection decided, in a log that writers read before they rely on anything.

    gc/store/<20-digit number>     {"kind", "time", "doomed", "sweeping", "shallow", "removed", "taken"}

The last entry holds and says everything. Appending succeeds for one collector only, so two cannot decide differently.
Rules that this file keeps:
- A thing is first *suspected* (nothing refers to it), later *condemned* (nothing new may rely on it), then removed.
- A thing that is `sweeping` may vanish at any moment; whoever needs it must write it anew.
- Packs that were joined into others go without being suspected: nothing is taken away. `taken` is the last entry that
  may have taken something.
- `shallow` names the revisions at which histories end because what came before them has expired.
- Old entries are joined: of them only what sweeps removed is kept. An entry goes when it is older than `AGE` and not
  among the last `RECENT`; who appends makes sure that the number was not one that is gone.
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

NAME: Final = "store"
PACKS: Final = "packs/"
REVISIONS: Final = "revisions/"
JOINING: Final = "joining"
JOINED: Final = "joined"
AGE: Final = 3600.0
"""Seconds for which an entry is an object of its own."""
RECENT: Final = 64
LIVE: Final = 256
"""Entries from which on it is worth joining them."""
FRESH: Final = 5.0
"""Seconds for which what was read may be used by those who only look."""


class Condemnation(NamedTuple):
    """Since when nothing refers to a thing, and since when nothing may; 0 while it is only suspected."""

    since: float
    condemned: float = 0.0


@dataclass(frozen=True)
class GcState:
    """What holds about things that nobody refers to."""

    number: int = 0
    kind: str = "none"
    time: float = 0.0
    doomed: Mapping[str, Condemnation] = field(default_factory=dict)
    """Keys of objects (`packs/<name>` stands for a pack with its index)."""
    sweeping: frozenset[str] = frozenset()
    shallow: frozenset[RevisionId] = frozenset()
    removed: Mapping[str, int] = field(default_factory=dict)
    """What the sweep that ended with this entry removed: `packs`, `revisions`, `bytes`."""
    taken: int = 0
    """The number of the last entry that was not about joining packs."""

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
        raise RametError("store_corrupt", f"entry {number} of the collector is damaged", "run repair") from None


class GcLog:
    """The log of collections of a store."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known = GcState()
        self._refreshed_at = -1e9

    def now(self, older: float = 0.0) -> GcState:
        """What holds; asks the store unless the last answer is younger than `older` seconds."""
        if time.monotonic() - self._refreshed_at >= older:
            began = time.monotonic()
            newest = self._log.newest(NAME, self._known.number)
            if newest is not None:
                self._known = decode(*newest)
            self._refreshed_at = began
        return self._known

    @property
    def known(self) -> GcState:
        """What was read last, without asking."""
        return self._known

    def append(self, state: GcState) -> GcState | None:
        """Make this the next entry; None when another collector was first."""
        number = state.number + 1
        state = replace(state, number=number, taken=state.taken if state.kind in (JOINING, JOINED) else number)
        if not self._log.append(NAME, state.number, state.encode()) or self._is_late(number):
            self._refreshed_at = -1e9
            return None
        self._known = state
        return state

    def _is_late(self, number: int) -> bool:
        """Whether a number that was just appended had been used, and the entry was joined with others since."""
        # Behind what was joined there are always so many entries; in a moment nobody appends as many.
        if not isinstance(self._log, ObjectLog) or self._log.newest(NAME, number + RECENT - 1) is None:
            return False
        self._log.withdraw(NAME, number)
        return True

    def compact(self, now: float) -> int:
        """Join the old entries, if they are many; how many. What sweeps removed stays told."""
        log = self._log
        if not isinstance(log, ObjectLog) or len(numbers := log.live(NAME)) < LIVE:
            return 0
        old = numbers[:-RECENT]
        try:
            read = log.read_all(NAME, old)
        except KeyError:
            return 0  # another one is at it
        gone, kept = 0, list[tuple[int, bytes]]()
        for number, data in zip(old, read, strict=True):
            try:
                state = decode(number, data)
            except RametError:
                gone += 1
                continue  # only the last one matters
            if state.time > now - AGE:
                break
            gone += 1
            if state.kind == "swept":
                kept.append((number, GcState(number, "swept", state.time, removed=state.removed).encode()))
        if gone:
            log.join(NAME, old[gone - 1], kept)
        return gone

    def history(self) -> Iterator[GcState]:
        """All entries that can be understood, in order."""
        for number, data in self._log.entries(NAME):
            try:
                yield decode(number, data)
            except RametError:
                continue  # only the last one matters, and that one is asked for elsewhere

    def number(self) -> int:
        """The number of the last entry, whether or not it can be understood."""
        newest = self._log.newest(NAME, self._known.number)
        return self._known.number if newest is None else newest[0]

    def damaged(self) -> list[int]:
        """The number of the last entry if it cannot be understood."""
        newest = self._log.newest(NAME)
        try:
            if newest is not None:
                decode(*newest)
        except RametError:
            return [newest[0]] if newest is not None else []
        return []

    def mend(self, at: float) -> None:
        """After an unreadable last entry: begin again with the last ends of histories that are known."""
        for last in self.damaged():
            shallow = [state.shallow for state in self.history()]
            self.append(GcState(last, "mend", at, shallow=shallow[-1] if shallow else frozenset()))
