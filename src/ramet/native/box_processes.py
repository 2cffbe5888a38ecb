"""Processes of a box by the numbers that its programs see: list them, signal one.

Only processes of the box's own pid namespace count: those of a view have other numbers, and other rights.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ramet.native.server import PROGRAM

_OURS: Final = os.fsencode(PROGRAM)
"""In the command lines of the zygote and the workers."""


@dataclass(frozen=True)
class BoxProcess:
    """One process: `pid` and `parent` as programs see them."""

    pid: int
    parent: int
    argv: tuple[bytes, ...]
    leads: bool
    """Whether it leads a session, as each program that Ramet has started."""
    started: float
    """Seconds since the epoch."""

    @property
    def text(self) -> str:
        return b" ".join(self.argv).decode("utf-8", "surrogateescape")


def signal_process(first: int, pid: int, number: int) -> bool:
    """Send a signal to a process of the box whose first process is given; False when there is none of this number."""
    if pid <= 1:
        return False
    for outside, inside in _members(first):
        if inside != pid:
            continue
        try:
            handle = os.pidfd_open(outside)
        except OSError:
            return False
        try:
            if (outside, pid) not in _members(first):
                return False  # it has ended, and its number is another one's now
            signal.pidfd_send_signal(handle, number)
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
    return False


def list_processes(first: int) -> list[BoxProcess]:
    """Return what programs have started; those that Ramet has started are jobs and not listed here."""
    found = {one.pid: one for outside, inside in _members(first) if (one := _look(outside, inside)) is not None}
    ours = {pid for pid, one in found.items() if pid == 1 or _OURS in one.argv}
    # An ordinary user cannot look at the workers: then the parent of a job's program is none of those found.
    jobs = {pid for pid, one in found.items() if one.leads and (one.parent in ours or one.parent not in found)}
    return [one for pid, one in sorted(found.items()) if one.argv and pid not in ours | jobs]


def _members(first: int) -> Iterator[tuple[int, int]]:
    """Every process of the box: its number outside and inside."""
    space = _namespace(first)
    for name in os.listdir("/proc") if space else ():
        if name.isdigit() and _namespace(int(name)) == space and (inside := _field(int(name), b"NSpid:")):
            yield int(name), int(inside[-1])


def _namespace(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return 0  # it has ended, or belongs to another user


def _field(pid: int, name: bytes) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next((line.split()[1:] for line in file if line.startswith(name)), [])
    except OSError:
        return []


def _look(outside: int, inside: int) -> BoxProcess | None:
    try:
        with open(f"/proc/{outside}/cmdline", "rb") as file:
            argv = tuple(file.read().rstrip(b"\0").split(b"\0"))
        started = os.stat(f"/proc/{outside}").st_mtime
    except OSError:
        return None
    above = _field(outside, b"PPid:")
    parent = _field(int(above[0]), b"NSpid:") if above else []
    session = _field(outside, b"NSsid:")
    leads = bool(session) and int(session[-1]) == inside
    return BoxProcess(inside, int(parent[-1]) if parent else 0, argv if argv != (b"",) else (), leads, started)
