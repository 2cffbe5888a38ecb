"""How executions that compute share the event loop: only a few of their tasks run a slice of work in one turn of it.

A turn of the loop runs all tasks that are ready. Where hundreds compute, as jobs that never end do, each of them gives
way after its slice, and a turn takes as long as all slices together: nothing else runs meanwhile, no call is cancelled.
So only a few are ready at a time. The others wait in a line for each execution; the executions are served in turn, so
that one with many tasks takes nothing from one with few.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final
from weakref import WeakKeyDictionary

_READY: Final = 6
"""Tasks that run a slice in the same turn."""


class Line:
    """Tasks of one execution that wait for a turn."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: deque[asyncio.Future[None]] = deque()


class _Turns:
    """Who is ready, and who waits, on one event loop."""

    __slots__ = ("lines", "ready")

    def __init__(self) -> None:
        self.ready = 0
        self.lines: deque[Line] = deque()

    def passed(self) -> None:
        """One that was ready has run."""
        self.ready -= 1
        while self.lines and self.ready < _READY:
            line = self.lines.popleft()
            future = line.waiting.popleft()
            if line.waiting:
                self.lines.append(line)
            if not future.done():
                future.set_result(None)
                self.ready += 1


_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def give_way(line: Line) -> None:
    """Let the others on this event loop run."""
    loop = asyncio.get_running_loop()
    turns = _loops.get(loop)
    if turns is None:
        turns = _loops[loop] = _Turns()
    if turns.ready < _READY and not turns.lines:
        turns.ready += 1
        try:
            await asyncio.sleep(0)
        finally:
            turns.passed()
        return
    future = loop.create_future()
    if not line.waiting:
        turns.lines.append(line)
    line.waiting.append(future)
    try:
        await future
    finally:
        # Who was given up while waiting, as by `close`, is never told of a turn: nobody would pass it on.
        if not future.cancel() and not future.cancelled():
            turns.passed()
