"""`LoopThread`: an event loop in a separate thread, for synchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ramet.concurrency.fork import renew_after_fork
from ramet.concurrency.threads import start_thread

T = TypeVar("T")


class LoopThread:
    """A forked child gets a new loop and thread with its first call."""

    def __init__(self, name: str = "ramet-loop") -> None:
        self._name, self._forked = name, False
        self._start()
        renew_after_fork(self, _forked=lambda: True)

    def _start(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = start_thread(self.loop.run_forever, self._name)
        self._forked = False

    def __enter__(self) -> LoopThread:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return not self._thread.is_alive()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._forked and not self.loop.is_closed():
            self._start()
        if self.closed:
            work.close()
            raise RuntimeError("the workspace is closed")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it; Ctrl-C cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("this call would wait for itself: inside a workspace's own calls, await the workspace")
        future = self.start(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine on the loop from another loop; cancellation propagates."""
        return await asyncio.wrap_future(self.start(work))

    def call(self, make: Callable[[], T]) -> T:
        """Call a plain function on the loop."""

        async def act() -> T:
            return make()

        return self.run(act())

    def close(self) -> None:
        """Stop the loop. Idempotent."""
        if self._forked:
            return  # the parent's thread is not here
        if not self.closed:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()
