"""Work that would hold up the event loop, done in a thread while this execution waits.

What runs there is plain Python or short calls into C, so the interpreter lock changes hands every few milliseconds.
It calls `checkpoint` now and then, which ends it when nobody waits for the answer any more.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from ramet.core.abandoned import checkpoint, here

__all__ = ["LARGE", "LONG_SOURCE", "WINDOW", "apart", "aside", "checkpoint", "watched", "windows"]

T = TypeVar("T")

LONG_SOURCE: Final = 4096
"""Characters of a command from which on it is parsed and compiled aside."""
LARGE: Final = 1 << 18
"""Characters from which on work on a text is done aside."""
_LOOK: Final = 0.01
"""Seconds between two looks at the budget while the work goes on."""


def watched(items: Iterable[T]) -> Iterator[T]:
    """The same items; they end where the work on them was abandoned."""
    for place, item in enumerate(items):
        if not place & 255:
            checkpoint()
        yield item


def apart() -> bool:
    """Is this a thread of `aside`, where nobody is held up?"""
    return here.stop is not None


WINDOW: Final = 1 << 16
"""Characters, or values, that are worked on between two chances for others to run."""


def windows(text: str) -> Iterator[str]:
    """A long text in parts."""
    for start in range(0, len(text), WINDOW):
        checkpoint()
        yield text[start : start + WINDOW]


async def aside(host: Any, work: Callable[[], T]) -> T:
    """What `work` gives; the limits and the cancellation of the execution hold while it is done."""
    if host.budget.slice_end == float("inf"):
        return work()  # someone needs the answer without a pause
    stop = threading.Event()

    def run() -> T:
        here.stop = stop
        try:
            return work()
        finally:
            here.stop = None

    doing = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        while not (await asyncio.wait((doing,), timeout=_LOOK))[0]:
            host.budget.check()
        return doing.result()
    finally:
        doing.add_done_callback(_forget)
        if not doing.done():
            stop.set()
            # What it changes of the session, it changes before the next command begins.
            await asyncio.wait((doing,), timeout=_LOOK)


def _forget(doing: asyncio.Future[Any]) -> None:
    """The end of abandoned work is of no interest, nor is how it ended."""
    if not doing.cancelled():
        doing.exception()
