"""Run blocking work in a thread without losing limits or cancellation.

- `offload` runs ordinary code in a thread while its execution waits; `offload_large` does so only above a size.
- The deadline and the cancellation of the execution hold meanwhile: the caller gets them within 10 ms.
- A thread cannot be interrupted, so long Python loops inside `work` call `checkpoint`, which ends abandoned work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ramet.concurrency.sizes import HUGE
from ramet.concurrency.threads import Threads

if TYPE_CHECKING:
    from ramet.core.limits import Budget

T = TypeVar("T")

_POLL: Final = 0.01
"""Seconds between two checks of the budget while a thread works."""
THREADS: Final = Threads(32, 8, "ramet-offload")
"""Threads for offloaded work, and those of them that one workspace may have; backends have their own, so neither
starves the other."""


class Abandoned(BaseException):
    """Raised by `checkpoint` when no execution waits for this work; never leaves its thread."""


class _Worker(threading.local):
    stop: threading.Event | None = None
    """Set when the work of this thread was abandoned; None outside of `offload`."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop that this thread works for."""


_worker = _Worker()


def in_thread() -> bool:
    """Return whether this code runs inside `offload`."""
    return _worker.stop is not None


def checkpoint() -> None:
    """End this work if it was abandoned. Costs one attribute lookup elsewhere."""
    stop = _worker.stop
    if stop is not None and stop.is_set():
        raise Abandoned


def interruptible(items: Iterable[T]) -> Iterator[T]:
    """Yield the same items, with a `checkpoint` every 256 of them."""
    for place, item in enumerate(items):
        if not place & 255:
            checkpoint()
        yield item


def interrupt_check(budget: Budget) -> Callable[[], None]:
    """Return a function that ends work which was abandoned or is past its deadline, in any thread."""

    def check() -> None:
        checkpoint()
        budget.check()

    return check


def on_loop(work: Callable[[], object]) -> None:
    """Run `work` on the event loop that this thread works for, and wait for it; run it here if there is none."""
    loop = _worker.loop
    if loop is None:
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

    loop.call_soon_threadsafe(run)
    while not done.wait(_POLL):
        checkpoint()
    if failure:
        raise failure[0]


async def offload(budget: Budget, work: Callable[[], T], interrupt: Callable[[], None] | None = None) -> T:
    """Run `work` in a thread and return its result; raises as soon as the budget does.

    `interrupt` is called from here when no execution waits for the work any more, for work that cannot call
    `checkpoint`.
    """
    if budget.slice_end == float("inf"):
        return work()  # the caller may not suspend
    stop, loop = threading.Event(), asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()  # context variables, such as the limits of a command, hold in the thread too

    def run() -> None:
        _worker.stop, _worker.loop = stop, loop
        try:
            checkpoint()
            made = context.run(work)
        except BaseException as error:
            _report(loop, future.set_exception, future, error)
        else:
            _report(loop, future.set_result, future, made)
        finally:
            _worker.stop = _worker.loop = None

    THREADS.submit(budget.owner or budget, run)
    try:
        while not (await asyncio.wait((future,), timeout=_POLL))[0]:
            budget.check()
        return future.result()
    finally:
        future.add_done_callback(_ignore_result)
        if not future.done():
            stop.set()
            if interrupt is not None:
                interrupt()
            # What the thread changes of the session should be done before the next command starts.
            await asyncio.wait((future,), timeout=_POLL)


async def offload_large(budget: Budget, size: int, work: Callable[[], T], threshold: int = HUGE) -> T:
    """Run `work` on `size` bytes or items: inline up to the threshold, in a thread above it."""
    return work() if size <= threshold else await offload(budget, work)


def _report(
    loop: asyncio.AbstractEventLoop, tell: Callable[[Any], None], future: asyncio.Future[Any], outcome: object
) -> None:
    """Give an outcome to the event loop, if it still runs."""

    def act() -> None:
        if not future.done():
            tell(outcome)

    try:
        loop.call_soon_threadsafe(act)
    except RuntimeError:
        return  # the loop was closed: no execution waits any more


def _ignore_result(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
