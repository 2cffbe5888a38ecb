"""Long work of one request: runs in a thread, reports progress, stops when the client disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ramet.apps.server.models_maintenance import Progressed
from ramet.apps.server.problems import Refusal, internal, problem_of
from ramet.apps.server.request import NDJSON, NO_STORE, Call, Reply, answer, encode_json
from ramet.core.progress import Progress

if TYPE_CHECKING:
    from ramet.apps.server.api import Api

T = TypeVar("T")
log: Final = logging.getLogger("ramet.server")
EVERY: Final = 0.1
"""Seconds between two progress lines."""
AT_ONCE: Final = 4
"""Long operations of all clients that may run concurrently."""


class StopWork(BaseException):
    """Raised inside the work, at its next progress report, when the client is gone."""


class ThreadProgress:
    """A Progress that passes reports to the event loop, and lets it stop the work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._next = 0.0
        self.stopped = False
        self.news: asyncio.Queue[Progressed] = asyncio.Queue()
        self.on_stop: list[Callable[[], object]] = []

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self.stopped:
            raise StopWork
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            self._loop.call_soon_threadsafe(self.news.put_nowait, Progressed(stage, done, total))

    def stop(self) -> None:
        self.stopped = True
        for act in self.on_stop:
            with contextlib.suppress(RuntimeError):  # its event loop has just ended
                act()


async def long_work(
    api: Api,
    call: Call,
    work: Callable[[ThreadProgress], T],
    told: Callable[[T], object],
    *,
    stream: bool,
    after: Callable[[T], object] | None = None,
) -> Reply:
    """Run `work` and respond with its report: as JSON, or streamed after progress lines."""
    if api.working >= AT_ONCE:
        raise Refusal("too_many_requests", f"{AT_ONCE} long operations are running", "try again when one has ended")
    if stream:
        return Reply(headers=[NDJSON, NO_STORE], blocks=_lines(api, work, told, after))
    progress = ThreadProgress()
    found = await call.watched(_run_task(api, work, progress))
    if after is not None:
        after(found)
    return answer(told(found))


async def _run_task(api: Api, work: Callable[[ThreadProgress], T], progress: ThreadProgress) -> T:
    api.working += 1
    # A separate thread: the store's threads are few, and ordinary requests need them.
    task = asyncio.ensure_future(asyncio.to_thread(_stoppable, work, progress))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        progress.stop()
        await asyncio.gather(task, return_exceptions=True)
        raise
    finally:
        api.working -= 1


def _stoppable(work: Callable[[ThreadProgress], T], progress: ThreadProgress) -> T:
    try:
        return work(progress)
    except StopWork:
        raise asyncio.CancelledError from None


async def _lines(
    api: Api, work: Callable[[ThreadProgress], T], told: Callable[[T], object], after: Callable[[T], object] | None
) -> AsyncIterator[bytes]:
    progress = ThreadProgress()
    task = asyncio.ensure_future(_run_task(api, work, progress))
    try:
        while not task.done():
            news = asyncio.ensure_future(progress.news.get())
            await asyncio.wait({task, news}, return_when=asyncio.FIRST_COMPLETED)
            if news.done():
                yield encode_json(news.result()) + b"\n"
            else:
                news.cancel()
        last: dict[str, Any]
        try:
            found = task.result()
            if after is not None:
                after(found)
            last = {"report": told(found)}
        except Exception as error:
            problem = problem_of(error)
            if problem is None or problem.status >= 500:
                log.error("long work failed", exc_info=error)
            last = {"problem": problem or internal()}
        yield encode_json(last) + b"\n"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


def in_a_loop(work: Callable[[Progress], Any]) -> Callable[[ThreadProgress], Any]:
    """Wrap a coroutine as long work: it runs in an event loop in the thread, and stopping cancels it."""

    def run(progress: ThreadProgress) -> Any:
        async def act() -> Any:
            task = asyncio.ensure_future(work(progress))
            loop = asyncio.get_running_loop()
            progress.on_stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
            if progress.stopped:
                task.cancel()
            return await task

        try:
            return asyncio.run(act())
        except asyncio.CancelledError:
            raise StopWork from None

    return run
