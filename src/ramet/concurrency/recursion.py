"""Room for work that nests as deep as its input does: Python's limit of calls is raised while it runs, and only then.

Rule: what runs with room recurses by plain Python calls alone, which take nothing of the thread's own stack, and
is bounded by who made its input. So a small stack is as good as a large one, and nothing else loses its guard.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

A = TypeVar("A")
T = TypeVar("T")

DEEPEST: Final = 10_000
"""Levels that a text may nest; what nests deeper is refused where it is read."""
_FRAMES: Final = 45_000
"""Calls within calls that there is room for, whatever the levels take of them. Were it more, what recurses in C in
another thread meanwhile (comparing nested lists, say) could go deeper than the eight megabytes of its stack."""
HOP: Final = 16
"""Levels of coroutines that wait for each other before the next one is put `apart`."""

_lock = threading.Lock()
_asked: list[int] = []
_usual = 0


class Room:
    """Python's limit of calls while something deep runs. It belongs to all threads, so they share what they ask for,
    and it is back where it was behind the last one. ``with`` may be nested, and may hold while others run."""

    __slots__ = ("frames",)

    def __init__(self, frames: int) -> None:
        self.frames = frames

    def __enter__(self) -> None:
        global _usual
        with _lock:
            if not _asked:
                _usual = sys.getrecursionlimit()
            _asked.append(self.frames)
            _settle()

    def __exit__(self, *exception: object) -> None:
        with _lock:
            _asked.remove(self.frames)
            _settle()


def _settle() -> None:
    wanted = max(_usual, max(_asked, default=0))
    if wanted != sys.getrecursionlimit():
        sys.setrecursionlimit(wanted)


room: Final = Room(_FRAMES)
"""``with room:`` around what nests as deep as a text does."""


def roomy(run: Callable[[A], T]) -> Callable[[A], T]:
    """A function that goes on with room."""

    def called(host: A) -> T:
        with room:
            return run(host)

    return called


def apart(run: Callable[[A], Awaitable[T]]) -> Callable[[A], Awaitable[T]]:
    """A coroutine function that goes on in a task, and with it on a stack, of its own: coroutines that wait for each
    other take of the thread's stack, all of them, whenever the last one goes on."""

    async def inside(host: A) -> T:
        return await run(host)

    async def waiting(host: A) -> T:
        return await asyncio.create_task(inside(host))

    return waiting
