"""Refs: the only thing of a store that moves. A workspace has a numbered log; its last entry is what holds now.

    refs/<workspace>/<20-digit number>     {"head", "fence", "holder", "expires", "kind", ...}

Appending the next number succeeds for one writer only (`Log`): an atomic compare-and-swap on a disk, on S3, in memory
and in PostgreSQL alike. The
head and the lease live in the same log, so whoever takes a lease over moves the log on, and a writer that wakes up late
fails its next append: it cannot overwrite anything, and it learns that its fence is not the current one.

Logs do not grow for ever: old entries are joined into one object, without those that only held a lease longer. An
entry is removed only when it is older than `AGE`; whoever appends more than `LATE` after the last look makes sure that
the number was free because nobody had it, and not because it was removed.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from ramet.core.errors import RametError
from ramet.store.model.ids import RevisionId
from ramet.store.objects.log import Log, ObjectLog

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
TTL: Final = 60.0
SKEW: Final = 5.0
"""Seconds by which clocks may disagree: a lease of another machine is dead only this long after its end."""
AGE: Final = 3600.0
"""Seconds for which an entry is an object of its own."""
LATE: Final = 900.0
RECENT: Final = 64
"""Entries that are never joined, however old: the log goes on from them."""
LIVE: Final = 512
"""Entries from which on it is worth joining them."""


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

    def encode(self) -> bytes:
        plain = {
            "head": None if self.head is None else self.head.hex(), "fence": self.fence, "holder": self.holder,
            "expires": self.expires, "kind": self.kind, "time": self.time, "deleted": self.deleted,
        }  # fmt: skip
        return json.dumps(plain, sort_keys=True).encode()


def decode(number: int, data: bytes) -> RefEntry:
    """An entry from its bytes; `store_corrupt` when they are not one."""
    try:
        return _decode(number, json.loads(data))
    except (ValueError, KeyError, TypeError):
        raise RametError("store_corrupt", f"entry {number} of a log is damaged", "run verify, then repair") from None


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
    )


def holder_name() -> str:
    """This process, so that others on the machine can tell whether it still lives: host, pid, start time, a nonce."""
    return f"{socket.gethostname()}/{os.getpid()}/{_started(os.getpid())}/{os.urandom(4).hex()}"


def _started(pid: int) -> str:
    """When a process began, in the kernel's ticks; tells a reused pid from the old process. Empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def holder_is_gone(holder: str) -> bool:
    """Whether the holder was a process of this machine that does not run any more."""
    parts = holder.split("/")
    if len(parts) != 4 or parts[0] != socket.gethostname() or not parts[2]:
        return False
    return _started(int(parts[1])) != parts[2]


class Refs:
    """The logs of all workspaces of a store."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock
        self._last: dict[str, RefEntry] = {}
        self._learned: dict[str, tuple[int, float]] = {}
        """Which entry of a log was the last one, and when that was so."""

    def names(self) -> list[str]:
        """Workspaces that exist, sorted."""
        return [name for name in self._log.names() if not self.last(name).deleted]

    def last(self, name: str) -> RefEntry:
        """What holds now; `workspace_not_found` when there is no such log."""
        if not NAME.fullmatch(name):
            raise not_found(name)  # it could not have been created, and must not reach what looks for keys
        known, began = self._last.get(name), self._clock()
        newest = self._log.newest(name, 0 if known is None else known.number)
        if newest is not None:
            known = self._last[name] = decode(*newest)
        if known is None:
            raise not_found(name)
        self._learned[name] = known.number, began
        return known

    def require(self, name: str) -> RefEntry:
        """What holds now; `workspace_not_found` also when the workspace was removed."""
        entry = self.last(name)
        if entry.deleted:
            raise not_found(name)
        return entry

    def held(self, name: str) -> bool:
        """Whether somebody writes to it, by what was last seen of it: nothing is asked for."""
        entry = self._last.get(name)
        return entry is not None and entry.holder != "" and not self._is_dead(entry)

    def all_names(self) -> list[str]:
        """Also workspaces that were removed."""
        return self._log.names()

    def raw(self, name: str) -> Iterator[tuple[int, bytes]]:
        """The entries of a log as they lie there."""
        return self._log.entries(name)

    def exists(self, name: str) -> bool:
        try:
            return not self.last(name).deleted
        except RametError as error:
            if error.code != "workspace_not_found":
                raise
            return False

    def history(self, name: str, after: int = 0) -> Iterator[RefEntry]:
        """The entries with numbers above `after`, in order."""
        for number, data in self._log.entries(name, after):
            yield decode(number, data)

    def create(self, name: str, head: RevisionId | None) -> RefEntry:
        if not NAME.fullmatch(name):
            raise RametError(
                "invalid_argument",
                f"{name!r} cannot name a workspace",
                "use letters, digits, dots, dashes, underscores",
            )
        try:
            old = self.last(name)
        except RametError:
            entry = RefEntry(1, head, 0, kind="create", time=self._clock())
        else:
            if not old.deleted:
                raise RametError("workspace_exists", f"workspace {name!r} exists already", "open it, or take another")
            entry = RefEntry(old.number + 1, head, old.fence + 1, kind="create", time=self._clock())
        if not self._append(name, entry):
            raise RametError("workspace_exists", f"workspace {name!r} was created by someone else", "open it")
        return entry

    def _append(self, name: str, entry: RefEntry) -> bool:
        if not self._log.append(name, entry.number, entry.encode()) or self._is_late(name, entry.number):
            return False
        self._last[name] = entry
        self._learned[name] = entry.number, self._clock()
        return True

    def _is_late(self, name: str, number: int) -> bool:
        """Whether a number that was just appended had been used, and the entry was joined with others since."""
        before, when = self._learned.get(name, (0, -1e18))
        if not isinstance(self._log, ObjectLog) or (before == number - 1 and self._clock() - when < LATE):
            return False
        # Behind what was joined there are always so many entries; in a moment nobody appends as many.
        if self._log.newest(name, number + RECENT - 1) is None:
            return False
        self._log.withdraw(name, number)
        return True

    def is_last(self, name: str, entry: RefEntry) -> bool:
        """Whether nothing follows an entry of a log, not even now; cheaper than to ask what does."""
        before, when = self._learned.get(name, (0, -1e18))
        now = self._clock()
        if isinstance(self._log, ObjectLog) and before == entry.number and now - when < LATE:
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
        return sum(self.compact(name) for name, entries in self._log.counts().items() if entries >= LIVE)

    def compact(self, name: str) -> int:
        """Join the old entries of a log, if they are many; how many. What happened stays told, in its order."""
        log = self._log
        if not isinstance(log, ObjectLog) or len(numbers := log.live(name)) < LIVE:
            return 0
        try:
            read = log.read_all(name, numbers[: -RECENT + 1])
        except KeyError:
            return 0  # another one is at it
        found: list[tuple[RefEntry, bytes]] = []
        for number, data in zip(numbers, read, strict=False):
            try:
                entry = decode(number, data)
            except RametError:
                break  # what is damaged stays where `repair` looks for it
            found.append((entry, data))
            if entry.time > self._clock() - AGE:
                break
        # The last that was read only says what follows those that are joined.
        old = [pair for pair, after in pairwise(found) if _tells(pair[0], after[0])]
        if len(found) <= RECENT:
            return 0
        log.join(name, found[-2][0].number, [(entry.number, data) for entry, data in old])
        return len(found) - 1

    def move(self, name: str, seen: RefEntry, *, head: RevisionId | None, kind: str) -> RefEntry:
        """Move the head on from the entry that the caller saw; refuses when the log went on since."""
        entry = replace(seen, number=seen.number + 1, head=head, kind=kind, time=self._clock())
        if self._append(name, entry):
            return entry
        now = self.last(name)
        if now.fence != seen.fence:
            raise RametError(
                "lease_lost", f"another writer took {name!r} over", "open the workspace again; nothing was overwritten",
                {"holder": now.holder},
            )  # fmt: skip
        raise RametError("head_moved", f"the head of {name!r} moved meanwhile", "read it again and repeat")

    def barrier(self, name: str) -> None:
        """Move the log of a workspace that has a writer on by one entry that changes nothing.

        A writer that read the log before cannot append without reading it again, and so learns what happened meanwhile.
        """
        while (now := self.last(name)).holder and not now.deleted:
            if self._append(name, replace(now, number=now.number + 1, kind="gc", time=self._clock())):
                return

    def mend(self, name: str, number: int, head: RevisionId | None, fence: int) -> RefEntry:
        """Say what holds from now on, after an entry that cannot be understood or a head that is lost."""
        self._last.pop(name, None)
        entry = RefEntry(number, head, fence, kind="repair", time=self._clock())
        if not self._append(name, entry):
            raise RametError("head_moved", f"the head of {name!r} moved meanwhile", "run repair again")
        return entry

    # --------------------------------------------------------------------------------------------- leases

    def acquire(self, name: str, holder: str, ttl: float = TTL) -> RefEntry:
        """Become the writer of a workspace; `workspace_busy` while another one lives."""
        while True:
            now = self.last(name)
            if now.deleted:
                raise not_found(name)
            if now.holder and now.holder != holder and not self._is_dead(now):
                left = now.expires - self._clock()
                raise RametError(
                    "workspace_busy", f"workspace {name!r} is held by {now.holder.split('/')[0]}",
                    f"wait {max(left, 0):.0f} s, close the other writer, or open it read-only",
                    {"holder": now.holder, "expires": now.expires},
                )  # fmt: skip
            entry = replace(
                now, number=now.number + 1, fence=now.fence + 1, holder=holder, expires=self._clock() + ttl,
                kind="lease", time=self._clock(),
            )  # fmt: skip
            if self._append(name, entry):
                return entry

    def _is_dead(self, entry: RefEntry) -> bool:
        return self._clock() > entry.expires + SKEW or holder_is_gone(entry.holder)

    def renew(self, name: str, mine: RefEntry, ttl: float = TTL) -> RefEntry:
        """Hold the lease longer; `lease_lost` when it was taken over."""
        now = self.last(name)
        if now.fence != mine.fence:
            raise RametError("lease_lost", f"another writer took {name!r} over", "open the workspace again")
        return self.move_lease(name, now, mine.holder, ttl)

    def move_lease(self, name: str, now: RefEntry, holder: str, ttl: float) -> RefEntry:
        entry = replace(
            now, number=now.number + 1, holder=holder, expires=self._clock() + ttl, kind="renew", time=self._clock()
        )
        if self._append(name, entry):
            return entry
        raise RametError("lease_lost", f"another writer took {name!r} over", "open the workspace again")

    def release(self, name: str, mine: RefEntry) -> None:
        """Let go. Releasing a lease that was lost changes nothing."""
        now = self.last(name)
        if now.fence == mine.fence and now.holder == mine.holder:
            self._append(
                name, replace(now, number=now.number + 1, holder="", expires=0.0, kind="release", time=self._clock())
            )

    def delete(self, name: str) -> None:
        now = self.last(name)
        if now.deleted:
            raise not_found(name)
        if now.holder and not self._is_dead(now):
            raise RametError("workspace_busy", f"workspace {name!r} is in use", "close its writer first")
        entry = replace(now, number=now.number + 1, fence=now.fence + 1, holder="", kind="delete", deleted=True)
        if not self._append(name, entry):
            raise RametError("head_moved", f"the head of {name!r} moved meanwhile", "try again")


def _tells(entry: RefEntry, following: RefEntry) -> bool:
    """Whether an entry says more than the one that follows it: where the head moved, or a fence ended."""
    return entry.kind not in ("renew", "gc") or entry.fence != following.fence


def not_found(name: str) -> RametError:
    return RametError("workspace_not_found", f"no workspace {name!r}", "create it, or see `ls` for the names")
