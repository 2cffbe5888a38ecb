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

DEEPEST: Final = 20_000
"""Levels that a text may nest; what nests deeper is refused where it is read."""
_FRAMES: Final = 1_000_000
"""Calls within calls that there is room for: the levels, and what each of them takes."""


HOP: Final = 16
"""Levels of coroutines that wait for each other before the next one is put `apart`."""


class _Room:
    """The limit belongs to all threads, so they share the room: it closes behind the last one."""

    __slots__ = ("_lock", "_users", "_usual")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(_FRAMES, self._usual))
            self._users += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setrecursionlimit(self._usual)


room: Final = _Room()
"""``with room:`` around deep work. It may be entered again within."""


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
