"""`Callers`: the running programs of a box, and which of them a request of the kernel comes from.

The kernel names the thread that asks. Its ancestors lead to the worker that started the program; each worker has said
which program that is. So a request acts with the session, the policy and the record of the command that ran it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Final

from ramet.core.fs import FileSystem

REMEMBERED_SECONDS: Final = 0.2
"""How long the caller of a thread is remembered: its number may belong to another one later."""
MOST_FAILURES: Final = 10
"""Messages of one program; the others are counted."""
CREDENTIALS: Final = struct.Struct("=iII")


class Caller:
    """A program that was started, and what acts for it."""

    def __init__(self, number: int, fs: FileSystem) -> None:
        self.number, self.fs = number, fs
        self.session: object = (getattr(fs, "session_id", fs), getattr(fs, "agent_id", ""))
        """Tells those apart for whom a policy may decide differently."""
        self.context: Context = copy_context()
        self.tasks: set[asyncio.Task[None]] = set()
        self.last: set[asyncio.Task[None]] = set()
        """Those that close its files."""
        self.ended = False
        self.cancelled = False
        """Whether its command was: nothing is stored any more."""
        self.failures: list[str] = []
        """What went wrong beyond what an errno can say."""
        self._uncounted = 0

    def report(self, text: str) -> None:
        """Keep a message for the user, once."""
        if text in self.failures:
            return
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(text)
        else:
            self._uncounted += 1

    def take_failures(self) -> list[str]:
        """Return the messages since the last call."""
        found, self.failures = self.failures, []
        if self._uncounted:
            found.append(f"{self._uncounted} more of these")
            self._uncounted = 0
        return found

    def cancel(self) -> None:
        """End what is asked for it: its processes are about to be killed."""
        self.cancelled = True
        for task in self.tasks:
            task.cancel()


class Callers:
    """Programs join before they start; workers say their number through `greetings`."""

    def __init__(self) -> None:
        self.greetings, self.voice = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """Where workers are heard, and what they speak through."""
        self.greetings.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.greetings.setblocking(False)
        self._next = 1
        self._members: dict[int, Caller] = {}
        self._workers: dict[int, Caller] = {}
        """By the process id of the worker."""
        self._known: dict[int, tuple[Caller, float]] = {}

    @contextmanager
    def member(self, fs: FileSystem) -> Iterator[Caller]:
        """Admit a program while it runs; what it leaves behind stays known."""
        self._forget_dead()
        caller = self._members[self._next] = Caller(self._next, fs)
        self._next += 1
        try:
            yield caller
        finally:
            caller.ended = True
            del self._members[caller.number]

    def find(self, thread: int) -> Caller | None:
        """Return the program that a thread belongs to; None for one that has ended: no other must act for it."""
        now = time.monotonic()
        known = self._known.get(thread)
        if known is not None and now < known[1]:
            return known[0]
        self._listen()
        caller = self._ancestor(thread)
        if caller is not None:
            if len(self._known) > 256:
                self._known.clear()
            self._known[thread] = caller, now + REMEMBERED_SECONDS
        return caller

    def _ancestor(self, pid: int) -> Caller | None:
        caller = self._workers.get(pid)
        while caller is None and pid > 1:
            parent = parent_of(pid)
            if parent is None:
                return None
            pid = parent
            caller = self._workers.get(pid)
        return caller

    def _listen(self) -> None:
        """Learn which worker runs which program."""
        while True:
            try:
                data, ancillary, _, _ = self.greetings.recvmsg(32, socket.CMSG_SPACE(CREDENTIALS.size))
            except BlockingIOError:
                return
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                    caller = self._members.get(int(data))
                    if caller is not None:
                        self._workers[CREDENTIALS.unpack(payload)[0]] = caller

    def _forget_dead(self) -> None:
        """Forget workers whose last process has ended."""
        self._listen()
        for pid, caller in list(self._workers.items()):
            if caller.ended and parent_of(pid) is None:
                del self._workers[pid]

    def close(self) -> None:
        self.greetings.close()
        self.voice.close()


def parent_of(pid: int) -> int | None:
    """Return the parent of a process or thread; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b") ")[2].split()[1])
    except OSError:
        return None


def same_process(one: int, other: int) -> bool:
    """Whether two threads belong to one process."""
    return one == other or os.path.isdir(f"/proc/{one}/task/{other}")
