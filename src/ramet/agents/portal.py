"""`Portal`: an event loop in a thread of its own, for frameworks that call with and without `await`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Everything that goes through one portal runs on one loop, so a workspace sees one caller."""

    def __init__(self, name: str = "ramet") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result; the calling thread waits for it. Ctrl-C stops the work."""
        future = self._send(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """The result; the calling loop goes on meanwhile, and cancelling the caller cancels the work."""
        return await asyncio.wrap_future(self._send(work))

    def _send(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("this is closed already")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """End the thread. Closing twice is fine."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
