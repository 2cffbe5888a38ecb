"""Fair turns on the event loop: executions that compute run a few slices per turn, round-robin.

- One turn of the loop runs every ready task. If hundreds of jobs compute, a turn would last as long as all their
  slices together and no cancellation would arrive; so only a few tasks are ready at a time.
- The others wait in one queue per execution, and executions are served in turn: one with many tasks takes no time from
  one with few.
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
    """The ready count and the waiting queues of one event loop."""

    __slots__ = ("lines", "ready")

    def __init__(self) -> None:
        self.ready = 0
        self.lines: deque[Line] = deque()

    def passed(self) -> None:
        """Count a finished slice, and make the next tasks ready."""
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
    """Suspend until the event loop has run the other ready tasks."""
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
        # A task that was closed while it waited never gets its turn and must not count as finished.
        if not future.cancel() and not future.cancelled():
            turns.passed()
