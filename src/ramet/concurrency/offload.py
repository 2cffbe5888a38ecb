"""Work that would hold up the event loop, done in a thread while its execution waits: `aside`.

What runs there is plain Python or short calls into C, so the interpreter lock changes hands every few milliseconds.
It calls `checkpoint` now and then, which ends it when nobody waits for the answer any more.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ramet.concurrency.collector import put_off, spare, work_begins, work_ends

if TYPE_CHECKING:
    from ramet.core.limits import Budget

T = TypeVar("T")

MANY: Final = 20_000
"""Things that are not gone through in a moment."""
_LOOK: Final = 0.01
"""Seconds between two looks at the budget while the work goes on."""


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads of their own: whatever takes its time here keeps no backend from its work, nor other long work."""
    return ThreadPoolExecutor(32, "ramet-aside")


class Abandoned(BaseException):
    """Nobody waits for this work; never leaves its thread."""


class _Here(threading.local):
    stop: threading.Event | None = None
    """What tells the work of this thread that it was abandoned, if something does."""
    home: asyncio.AbstractEventLoop | None = None
    """The event loop that this thread works for; only its own thread may write to streams."""


here = _Here()


def watched(items: Iterable[T]) -> Iterator[T]:
    """The same items; they end where the work on them was abandoned."""
    for place, item in enumerate(items):
        if not place & 255:
            checkpoint()
        yield item


def drop(items: list[Any]) -> None:
    """Let go of very many items, some at a time."""
    while items:
        checkpoint()
        del items[-1024:]


def checkpoint() -> None:
    """End work that was abandoned. Costs next to nothing elsewhere."""
    stop = here.stop
    if stop is not None:
        if stop.is_set():
            raise Abandoned
        spare()


def at_home(work: Callable[[], object]) -> None:
    """Have the event loop that this thread works for do something, and wait for it; do it where there is none."""
    home = here.home
    if home is None:
        work()
        return
    done = threading.Event()
    failure: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            failure.append(error)
        done.set()

    home.call_soon_threadsafe(run)
    while not done.wait(_LOOK):
        checkpoint()
    if failure:
        raise failure[0]


def looking(budget: Budget) -> Callable[[], None]:
    """What long work calls now and then, wherever it is done: it ends with the time of its execution, or abandoned."""

    def look() -> None:
        checkpoint()
        budget.check()

    return look


async def aside(budget: Budget, work: Callable[[], T]) -> T:
    """What `work` gives; the limits and the cancellation of the execution hold while it is done."""
    if budget.slice_end == float("inf"):
        return work()  # someone needs the answer without a pause
    put_off()
    stop, home = threading.Event(), asyncio.get_running_loop()

    def run() -> T:
        here.stop, here.home = stop, home
        work_begins()  # it may go on for a moment when its call has ended
        try:
            return work()
        finally:
            work_ends()
            here.stop = here.home = None

    # What holds where this is called, such as the limits of a command, holds there too.
    doing = home.run_in_executor(_threads(), copy_context().run, run)
    try:
        while not (await asyncio.wait((doing,), timeout=_LOOK))[0]:
            budget.check()
        return doing.result()
    finally:
        doing.add_done_callback(_forget)
        if not doing.done():
            stop.set()
            # What it changes of the session, it changes before the next command begins.
            await asyncio.wait((doing,), timeout=_LOOK)


async def through(budget: Budget, count: int, work: Callable[[], T]) -> T:
    """What `work` gives that goes through so many things: aside when they are many."""
    return work() if count < MANY else await aside(budget, work)


def _forget(doing: asyncio.Future[Any]) -> None:
    """The end of abandoned work is of no interest, nor is how it ended."""
    if not doing.cancelled():
        doing.exception()
