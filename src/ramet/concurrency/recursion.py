"""Deep recursion: raise Python's recursion limit while deeply nested input is processed.

- Code under `room` recurses by plain Python calls only, which use no C stack, and its input is bounded by a limit.
- Coroutines that await each other do use the C stack, so every `HOP` levels the next one runs in a task (`apart`).
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
"""Levels that a text may nest; the parser refuses more."""
_FRAMES: Final = 45_000
"""The raised recursion limit. A higher one would let C code of another thread (comparing nested lists, say) overflow
its stack of 8 MB meanwhile."""
HOP: Final = 16
"""Nested coroutines after which the next one gets its own task."""

_lock = threading.Lock()
_asked: list[int] = []
_usual = 0


class Room:
    """A raised recursion limit. It is process-wide: the highest request holds, and the last one to leave restores it.
    ``with`` may be nested and may span awaits."""

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
"""``with room:`` around code that nests as deep as its input."""


def roomy(run: Callable[[A], T]) -> Callable[[A], T]:
    """Return the function wrapped in `room`."""

    def called(host: A) -> T:
        with room:
            return run(host)

    return called


def apart(run: Callable[[A], Awaitable[T]]) -> Callable[[A], Awaitable[T]]:
    """Return a coroutine function that runs in its own task, and so on a fresh C stack."""

    async def inside(host: A) -> T:
        return await run(host)

    async def waiting(host: A) -> T:
        return await asyncio.create_task(inside(host))

    return waiting
