"""Refs: the head and the lease of each workspace, as the last entry of a numbered log.

    refs/<workspace>/<20-digit number>     {"head", "latest", "fence", "holder", "expires", "kind", ...}

Appending the next number succeeds for one writer only (`Log`): an atomic compare-and-swap on a disk, on S3, in memory
and in PostgreSQL. Head and lease share one log: taking over a lease appends an entry, so the next append of the
previous writer fails, and it learns that its fence is outdated.

Logs are compacted: old entries become one object, without those that only renewed a lease. An entry is compacted only
when it is older than `COMPACT_AGE`; a writer that appends more than `RECHECK_AFTER` after its last read checks that the
number was not a compacted one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from ramet.core.errors import RametError, wrong_type
from ramet.store.model.ids import RevisionId
from ramet.store.objects.log import Log, ObjectLog

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
COMPACT_AGE: Final = 3600.0
"""Seconds before an entry may be compacted."""
RECHECK_AFTER: Final = 900.0
STEPS: Final = 2
"""Entries that are asked for by number before the log is listed."""
KEPT_ENTRIES: Final = 64
"""Entries that are never compacted: the log continues from them."""
RECORD: Final = "record"
"""Kind of an entry that adds records of calls and leaves the head where it is."""
COMPACT_ENTRIES: Final = 512
"""Entries from which on a log is compacted."""


@dataclass(frozen=True)
class RefEntry:
    """One entry of a workspace's log."""

    number: int
    head: RevisionId | None
    fence: int
    holder: str = ""
    expires: float = 0.0
    kind: str = "create"
    time: float = 0.0
    deleted: bool = False
    latest: RevisionId | None = None
    """The head with the records of later calls, which changed no file; None while the head has everything."""

    def encode(self) -> bytes:
        plain = {
            "head": None if self.head is None else self.head.hex(), "fence": self.fence, "holder": self.holder,
            "expires": self.expires, "kind": self.kind, "time": self.time, "deleted": self.deleted,
            **({} if self.latest is None else {"latest": self.latest.hex()}),
        }  # fmt: skip
        return json.dumps(plain, sort_keys=True).encode()


def decode(name: str, number: int, data: bytes) -> RefEntry:
    """Decode an entry of the log of a workspace; `store_corrupt` when the bytes are damaged."""
    try:
        return _decode(number, json.loads(data))
    except (ValueError, KeyError, TypeError):
        raise RametError(
            "store_corrupt", f"entry {number} of the log of {name!r} is damaged", "run verify, then repair"
        ) from None


def _decode(number: int, plain: dict[str, Any]) -> RefEntry:
    head = plain["head"]
    return RefEntry(
        number,
        None if head is None else RevisionId(bytes.fromhex(head)),
        plain["fence"],
        plain["holder"],
        plain["expires"],
        plain["kind"],
        plain["time"],
        plain["deleted"],
        RevisionId(bytes.fromhex(plain["latest"])) if "latest" in plain else None,
    )


def check_text(name: object) -> None:
    """Refuse a name that is not text."""
    if not isinstance(name, str):
        raise wrong_type("the name of a workspace", name, "Pass text.")


class Refs:
    """The logs of all workspaces of a store."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock
        self._last: dict[str, RefEntry] = {}
        self._learned: dict[str, tuple[int, float]] = {}
        """The last known entry number of each log, and when it was read."""

    def names(self) -> list[str]:
        """List the workspaces that exist, sorted."""
        return [name for name in self._log.names() if not self.last(name).deleted]

    def last(self, name: str) -> RefEntry:
        """Return the last entry; `workspace_not_found` when there is no such log."""
        if not NAME.fullmatch(name):
            raise not_found(name)  # not a workspace name; it must not become part of a key
        known, began = self._last.get(name), self._clock()
        newest = self._newest(name, 0 if known is None else known.number, began)
        if newest is not None:
            known = self._last[name] = decode(name, *newest)
        if known is None:
            raise not_found(name)
        self._learned[name] = known.number, began
        return known

    def _newest(self, name: str, after: int, now: float) -> tuple[int, bytes] | None:
        """Return the last entry, if its number is above `after`.

        What followed a recent last entry is not compacted yet: asking for it by number spares listing the whole log.
        """
        if not isinstance(self._log, ObjectLog) or not self._is_recent(name, after, now):
            return self._log.newest(name, after)
        newest = None
        for number in range(after + 1, after + 1 + STEPS):
            data = self._log.get(name, number)
            if data is None:
                return newest
            newest = number, data
        return self._log.newest(name, after + STEPS) or newest

    def _is_recent(self, name: str, number: int, now: float) -> bool:
        """Return whether a number was that of the last entry so recently that no later one is compacted."""
        before, when = self._learned.get(name, (0, -1e18))
        return before == number and now - when < RECHECK_AFTER

    def require(self, name: str) -> RefEntry:
        """Return the last entry; `workspace_not_found` also when the workspace was removed."""
        check_text(name)
        entry = self.last(name)
        if entry.deleted:
            raise not_found(name)
        return entry

    def all_names(self) -> list[str]:
        """List all workspaces, including removed ones."""
        return self._log.names()

    def raw(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Yield the encoded entries of a log."""
        return self._log.entries(name)

    def exists(self, name: str) -> bool:
        check_text(name)
        try:
            return not self.last(name).deleted
        except RametError as error:
            if error.code != "workspace_not_found":
                raise
            return False

    def history(self, name: str, after: int = 0) -> Iterator[RefEntry]:
        """Yield the entries with numbers above `after`, in order."""
        for number, data in self._log.entries(name, after):
            yield decode(name, number, data)

    def require_free(self, name: str) -> RefEntry | None:
        """Refuse a name that no new workspace can have; returns the last entry of a removed one."""
        check_text(name)
        if not NAME.fullmatch(name):
            raise RametError(
                "invalid_argument",
                f"{name!r} cannot name a workspace",
                "use letters, digits, dots, dashes, underscores",
            )
        try:
            old = self.last(name)
        except RametError:
            return None
        if not old.deleted:
            raise RametError("workspace_exists", f"workspace {name!r} exists already", "open it, or use another name")
        return old

    def create(self, name: str, head: RevisionId | None) -> RefEntry:
        old = self.require_free(name)
        number, fence = (0, -1) if old is None else (old.number, old.fence)
        entry = RefEntry(number + 1, head, fence + 1, kind="create", time=self._clock())
        if not self._append(name, entry):
            raise RametError("workspace_exists", f"workspace {name!r} was created concurrently", "open it")
        return entry

    def _append(self, name: str, entry: RefEntry) -> bool:
        if not self._log.append(name, entry.number, entry.encode()) or self._is_late(name, entry.number):
            return False
        self._last[name] = entry
        self._learned[name] = entry.number, self._clock()
        return True

    def _is_late(self, name: str, number: int) -> bool:
        """Return whether a number that was just appended belongs to a compacted entry."""
        if not isinstance(self._log, ObjectLog) or self._is_recent(name, number - 1, self._clock()):
            return False
        # A compacted entry is followed by `RECENT` others; no concurrent writer appends that many.
        if self._log.newest(name, number + KEPT_ENTRIES - 1) is None:
            return False
        self._log.withdraw(name, number)
        return True

    def is_last(self, name: str, entry: RefEntry) -> bool:
        """Return whether an entry is still the last of its log; cheaper than reading the last one."""
        now = self._clock()
        if isinstance(self._log, ObjectLog) and self._is_recent(name, entry.number, now):
            found = not self._log.has(name, entry.number + 1)
        else:
            found = self._log.newest(name, entry.number) is None
        if found:
            self._learned[name] = entry.number, now
        return found

    def compact_all(self) -> int:
        """As `compact`, for every log that has many entries."""
        if not isinstance(self._log, ObjectLog):
            return 0
        return sum(self.compact(name) for name, entries in self._log.counts().items() if entries >= COMPACT_ENTRIES)

    def compact(self, name: str) -> int:
        """Compact old entries of a log if there are many, and return how many. The history stays complete."""
        log = self._log
        if not isinstance(log, ObjectLog) or len(numbers := log.live(name)) < COMPACT_ENTRIES:
            return 0
        try:
            read = log.read_all(name, numbers[: -KEPT_ENTRIES + 1])
        except KeyError:
            return 0  # another process is compacting
        found: list[tuple[RefEntry, bytes]] = []
        for number, data in zip(numbers, read, strict=False):
            try:
                entry = decode(name, number, data)
            except RametError:
                break  # `repair` needs damaged entries in place
            found.append((entry, data))
            if entry.time > self._clock() - COMPACT_AGE:
                break
        # The last entry read only shows what follows the others.
        old = [pair for pair, after in pairwise(found) if _is_informative(pair[0], after[0])]
        if len(found) <= KEPT_ENTRIES:
            return 0
        log.join(name, found[-2][0].number, [(entry.number, data) for entry, data in old])
        return len(found) - 1

    def move(
        self, name: str, seen: RefEntry, *, head: RevisionId | None, kind: str, latest: RevisionId | None = None
    ) -> RefEntry:
        """Move the head from the entry that the caller saw; fails when the log has advanced since."""
        entry = replace(seen, number=seen.number + 1, head=head, kind=kind, time=self._clock(), latest=latest)
        if self._append(name, entry):
            return entry
        now = self.last(name)
        if now.fence != seen.fence:
            raise RametError(
                "lease_lost", f"another writer took {name!r} over", "open the workspace again; nothing was overwritten",
                {"holder": now.holder},
            )  # fmt: skip
        raise RametError("head_moved", f"the head of {name!r} moved concurrently", "read it again and repeat")

    def barrier(self, name: str) -> None:
        """Append an entry that changes nothing to the log of a workspace that has a writer.

        A writer that read the log before must read it again before it appends, and so learns the latest gc decisions.
        """
        while (now := self.last(name)).holder and not now.deleted:
            if self._append(name, replace(now, number=now.number + 1, kind="gc", time=self._clock())):
                return

    def mend(self, name: str, number: int, head: RevisionId | None, fence: int) -> RefEntry:
        """Append a repaired state after a damaged entry or a lost head."""
        self._last.pop(name, None)
        entry = RefEntry(number, head, fence, kind="repair", time=self._clock())
        if not self._append(name, entry):
            raise RametError("head_moved", f"the head of {name!r} moved concurrently", "run repair again")
        return entry


def _is_informative(entry: RefEntry, following: RefEntry) -> bool:
    """Return whether an entry adds information to the next one: a moved head, or the end of a fence."""
    return entry.kind not in ("renew", "gc", RECORD) or entry.fence != following.fence


def not_found(name: str) -> RametError:
    return RametError("workspace_not_found", f"no workspace {name!r}", "create it, or see `ls` for the names")
