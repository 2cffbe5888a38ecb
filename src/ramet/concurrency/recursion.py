"""Recursion as deep as the input nests: Python's recursion limit is raised while it runs, and only then.

- Work inside `room` recurses by plain Python calls alone, which use none of the thread's C stack, and the reader of its
  input bounds the depth (`DEEPEST`).
- `level` counts the nesting of a tree that is compiled to functions. At every eighth level the compiler wraps what it
  made: `roomy` for a plain function, `apart` for a coroutine function, which goes on in a task with its own C stack.
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
"""Levels that a text may nest; deeper ones are refused where they are read."""
_FRAMES: Final = 45_000
"""Nested calls that `room` allows. With more of them, recursion in C in another thread (comparing nested lists, say)
could overflow the eight megabytes of its stack."""
HOP: Final = 16
"""Nested coroutines after which the next one goes `apart`."""

_lock = threading.Lock()
_asked: list[int] = []
_usual = 0


class Room:
    """A raised recursion limit. The limit belongs to all threads: the highest request holds, and the last one to leave
    restores it. ``with`` may nest, and may last while other tasks run."""

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
"""``with room:`` around work that nests as deep as a text does."""


def roomy(run: Callable[[A], T]) -> Callable[[A], T]:
    """Return the function with `room` around each call."""

    def called(host: A) -> T:
        with room:
            return run(host)

    return called


def apart(run: Callable[[A], Awaitable[T]]) -> Callable[[A], Awaitable[T]]:
    """Return the coroutine function run in a task, and with it on a C stack, of its own: resuming nested coroutines
    uses the C stack for each of them."""

    async def inside(host: A) -> T:
        return await run(host)

    async def waiting(host: A) -> T:
        return await asyncio.create_task(inside(host))

    return waiting


_STATION: Final = 8
"""Levels between two stations."""
_SHALLOW: Final = 32
"""Levels that fit into Python's own limit."""


class _Depth(threading.local):
    level = 0


_depth = _Depth()


class _Level:
    __slots__ = ()

    def __enter__(self) -> bool:
        depth = _depth.level = _depth.level + 1
        if depth == _SHALLOW:
            room.__enter__()
        return not depth % _STATION

    def __exit__(self, *exception: object) -> None:
        if _depth.level == _SHALLOW:
            room.__exit__()
        _depth.level -= 1


level: Final = _Level()
"""``with level as station:`` around the compiling of what is one level further in; true where to wrap the result."""
