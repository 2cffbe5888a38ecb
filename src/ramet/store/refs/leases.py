"""Leases: take, renew, take over and release the right to write a workspace.

- The lease is part of the last entry of the workspace's log, so taking it over is one compare-and-swap on that log.
- A lease ends when it expires, or at once when its holder was a process of this machine that has ended, or one of this
  process that gave it back while the store could not be reached.
- Taking a lease raises the fence: a writer with an older fence fails its next append and overwrites nothing.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import time
from dataclasses import replace
from typing import Final

from ramet.core.errors import RametError
from ramet.store.refs.refs import RefEntry, Refs, not_found

LEASE_SECONDS: Final = 60.0
CLOCK_SKEW: Final = 5.0
"""Seconds by which clocks may differ: a lease of another machine expires this much later."""


_COUNT: Final = itertools.count()
_ENDED: Final[set[str]] = set()
"""Holders of this process that ended without the store hearing of it: an outage must not lock their process out."""


def holder_name() -> str:
    """Return a lease holder name for this process: host, pid, start time, and `SECONDS-COUNT` of this call in hex."""
    unique = f"{int(time.time()):x}-{next(_COUNT):x}"
    return f"{socket.gethostname()}/{os.getpid()}/{_start_time(os.getpid())}/{unique}"


def describe_holder(holder: str) -> str:
    """Describe a holder to a person: `process 4711 (ramet shell) since 2026-01-31 12:00:00 UTC`."""
    parts = holder.split("/")
    if len(parts) != 4:
        return holder
    host, pid, _, unique = parts
    local = host == socket.gethostname()
    described = f"process {pid}" + (_program(pid) if local else f" on {host}")
    seconds, dash, _ = unique.partition("-")  # holders of older versions have only a nonce
    if dash and re.fullmatch("[0-9a-f]{8}", seconds):
        described += time.strftime(" since %Y-%m-%d %H:%M:%S UTC", time.gmtime(int(seconds, 16)))
    return described


def _program(pid: str) -> str:
    """Return ` (ramet shell)`: the program of a process, and the verb of `ramet`; other arguments may hold secrets."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = file.read(4096).decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        return ""
    if os.path.basename(argv[0]).startswith("python"):
        if argv[1:2] == ["-m"]:
            argv = argv[2:]
        elif len(argv) > 1 and not argv[1].startswith("-"):
            argv = argv[1:]
    name = os.path.basename(argv[0]) if argv else ""
    verb = next(iter(argv[1:2]), "") if name in ("ramet", "ramet.apps.cli") else ""
    return f" ({name} {verb})" if verb.isalpha() else f" ({name})" if name else ""


def _start_time(pid: int) -> str:
    """Return the start time of a process in kernel ticks, to detect a reused pid; empty when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def holder_is_gone(holder: str) -> bool:
    """Return whether the holder has ended: a process of this machine, or a writer of this process."""
    if holder in _ENDED:
        return True
    parts = holder.split("/")
    if len(parts) != 4 or parts[0] != socket.gethostname() or not parts[2]:
        return False
    return _start_time(int(parts[1])) != parts[2]


class Leases(Refs):
    """The logs of all workspaces of a store, with the leases in them."""

    def is_held(self, name: str) -> bool:
        """Return whether a writer holds the lease, by the last entry read, without a request."""
        entry = self._last.get(name)
        return entry is not None and entry.holder != "" and not self._is_dead(entry)

    def acquire(self, name: str, holder: str, ttl: float = LEASE_SECONDS) -> RefEntry:
        """Take the lease of a workspace; `workspace_busy` while another holder is alive."""
        while True:
            now = self.last(name)
            if now.deleted:
                raise not_found(name)
            if now.holder and now.holder != holder and not self._is_dead(now):
                left = now.expires - self._clock()
                raise RametError(
                    "workspace_busy", f"workspace {name!r} is held by {describe_holder(now.holder)}",
                    "Wait for it, end that process, or open the workspace read-only. "
                    f"A process that died without a word holds it for {max(left, 0):.0f} s more.",
                    {"holder": now.holder, "expires": now.expires},
                )  # fmt: skip
            entry = replace(
                now, number=now.number + 1, fence=now.fence + 1, holder=holder, expires=self._clock() + ttl,
                kind="lease", time=self._clock(),
            )  # fmt: skip
            try:
                if self._append(name, entry):
                    return entry
            except BaseException:
                _ENDED.add(holder)  # the entry may have been written
                raise

    def _is_dead(self, entry: RefEntry) -> bool:
        return self._clock() > entry.expires + CLOCK_SKEW or holder_is_gone(entry.holder)

    def renew(self, name: str, mine: RefEntry, ttl: float = LEASE_SECONDS) -> RefEntry:
        """Renew the lease; `lease_lost` when another writer took it."""
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
        """Release the lease; a lost lease is ignored."""
        _ENDED.add(mine.holder)
        now = self.last(name)
        if now.fence == mine.fence and now.holder == mine.holder:
            self._append(
                name, replace(now, number=now.number + 1, holder="", expires=0.0, kind="release", time=self._clock())
            )
        _ENDED.discard(mine.holder)

    def delete(self, name: str) -> None:
        now = self.last(name)
        if now.deleted:
            raise not_found(name)
        if now.holder and not self._is_dead(now):
            raise RametError("workspace_busy", f"workspace {name!r} is in use", "close its writer first")
        entry = replace(
            now, number=now.number + 1, fence=now.fence + 1, holder="", kind="delete", deleted=True, time=self._clock()
        )
        if not self._append(name, entry):
            raise RametError("head_moved", f"the head of {name!r} moved concurrently", "try again")

    def restore(self, name: str, removed: RefEntry) -> RefEntry:
        """Undo a removal, if its entry is still the last one."""
        entry = replace(
            removed, number=removed.number + 1, fence=removed.fence + 1, holder="", expires=0.0, kind="restore",
            deleted=False, time=self._clock(),
        )  # fmt: skip
        if not self._append(name, entry):
            raise RametError("head_moved", f"workspace {name!r} changed concurrently", "try again")
        return entry
