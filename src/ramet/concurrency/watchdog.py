"""Watchdog of the event loop: reports every hold of more than a second with the command that holds it.

- One daemon thread asks each loop that runs commands for a sign, and looks at the stack of the loop's thread when none
  comes. It runs while commands run.
- A hold is logged (`ramet.watchdog`, in a server too), counted by command, and shown by `ramet doctor` for its process.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from ramet.concurrency.fork import renew_after_fork

LOG: Final = logging.getLogger("ramet.watchdog")
LOG.addHandler(logging.NullHandler())  # a program that set up no log keeps its standard error clean
PATIENCE: Final = 1.0
"""Seconds without a sign of the loop that are reported."""
_PACE: Final = 0.1
"""Seconds between two questions."""
_IDLE: Final = 10
"""Questions without a running command after which the thread waits for one."""
_RECENT: Final = 100
"""Holds that are kept."""


class Hold(NamedTuple):
    """One hold of an event loop."""

    command: str
    """Name of the command, `shell` outside of one."""
    seconds: float
    where: str
    """File, line and function that ran when the hold was noticed."""


class _Watched:
    """One event loop that runs commands: ``with`` around each of them."""

    __slots__ = ("asked", "found", "running", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.running = 0
        self.asked = 0.0
        """When the loop was asked for the sign that has not come yet; 0 when none is due."""
        self.found: tuple[str, str] | None = None
        """Command and place of the hold that goes on."""

    def __enter__(self) -> None:
        self.running += 1

    def __exit__(self, *_: object) -> None:
        self.running -= 1


class Watchdog:
    """Watches the event loops of a process while they run commands."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._programs: dict[CodeType, Callable[[Mapping[str, Any]], str]] = {}
        self.recent: deque[Hold] = deque(maxlen=_RECENT)
        self.counts: Counter[str] = Counter()
        """Holds by command, since the process began."""
        self._forget()
        renew_after_fork(self, _wake=self._forget)

    def _forget(self) -> threading.Event:
        self._loops: dict[asyncio.AbstractEventLoop, _Watched] = {}
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        return self._wake

    def name_by(self, code: CodeType, name: Callable[[Mapping[str, Any]], str]) -> None:
        """Take the name of a command from the local variables of frames that run this code."""
        self._programs[code] = name

    def watching(self) -> _Watched:
        """Watch the running loop: ``with WATCHDOG.watching():``."""
        loop = asyncio.get_running_loop()
        watched = self._loops.get(loop)
        if watched is None:
            watched = self._loops[loop] = _Watched()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="ramet-watchdog", daemon=True)
            self._thread.start()
        elif not self._wake.is_set():
            self._wake.set()
        return watched

    def _watch(self) -> None:
        idle = 0
        while True:
            time.sleep(_PACE)
            busy = False
            for loop, watched in list(self._loops.items()):
                if watched.running or watched.asked:
                    busy = True
                    self._look(loop, watched)
                elif idle > _IDLE or loop.is_closed():
                    self._loops.pop(loop, None)
                    if watched.running:
                        self._loops[loop] = watched  # a command began meanwhile
            idle = 0 if busy else idle + 1
            if idle > _IDLE + 1:
                self._wake.clear()
                if not self._loops:
                    self._wake.wait()
                idle = 0

    def _look(self, loop: asyncio.AbstractEventLoop, watched: _Watched) -> None:
        now = time.monotonic()
        if not watched.asked:
            watched.asked = now
            try:
                loop.call_soon_threadsafe(self._sign, watched)
            except RuntimeError:
                self._loops.pop(loop, None)  # it was closed
        elif watched.found is None and now - watched.asked >= self._patience - _PACE:
            watched.found = self._stack(watched.thread)
            command, where = watched.found
            LOG.warning("%s has held the event loop for %.1f s at %s", command, now - watched.asked, where)

    def _sign(self, watched: _Watched) -> None:
        """Called on the loop: it gives a sign, and a hold is over."""
        seconds = time.monotonic() - watched.asked
        watched.asked = 0.0
        found, watched.found = watched.found, None
        if found is not None:
            self.recent.append(Hold(found[0], seconds, found[1]))
            self.counts[found[0]] += 1
            LOG.warning("%s held the event loop for %.1f s", found[0], seconds)

    def _stack(self, thread: int) -> tuple[str, str]:
        """Return the command that a thread runs, and where it is."""
        frame: FrameType | None = sys._current_frames().get(thread)
        if frame is None:
            return "shell", "?"
        where = f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
        while frame is not None:
            name = self._programs.get(frame.f_code)
            if name is not None:
                return name(frame.f_locals), where
            frame = frame.f_back
        return "shell", where


WATCHDOG: Final = Watchdog()
"""The one of this process."""
