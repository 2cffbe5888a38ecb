"""Recursion as deep as the input nests: Python's recursion limit is raised while it runs, and only then.

- Work inside `room` recurses by plain Python calls alone, which use none of the thread's C stack, and the reader of its
  input bounds the depth (`DEEPEST`).
- `level` counts the nesting of a tree that is compiled to functions. At every eighth level the compiler wraps what it
  made: `with_room` for a plain function, `in_new_task` for a coroutine function, which then has its own C stack.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ramet.concurrency.fork import renew_after_fork

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
renew_after_fork(sys.modules[__name__], _lock=threading.Lock)
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


def with_room(run: Callable[[A], T]) -> Callable[[A], T]:
    """Return the function wrapped in `room`."""

    def called(host: A) -> T:
        with room:
            return run(host)

    return called


def in_new_task(run: Callable[[A], Awaitable[T]]) -> Callable[[A], Awaitable[T]]:
    """Return a coroutine function that runs in its own task, and so on a fresh C stack."""

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
