"""`Execution`: one call of `execute`, awaited for its result or iterated for its output while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, NamedTuple

from ramet.core.streams import Capture, PipeReader, PipeWriter, Writer, pipe
from ramet.workspace.result import IOResult


class Output(NamedTuple):
    """A piece of output: from descriptor 1 or 2."""

    fd: int
    data: bytes


class Channels:
    """Where an execution writes: into bounded memory, or through pipes to whoever iterates."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.captured_out, self.captured_err = Capture(limit), Capture(limit)
        self.stdout: Writer = self.captured_out
        self.stderr: Writer = self.captured_err

    def stream(self) -> tuple[PipeReader, PipeReader]:
        """From now on output goes to the two readers, with back-pressure, and is not collected."""
        readers: list[PipeReader] = []
        for name in ("stdout", "stderr"):
            reader, writer = pipe()
            setattr(self, name, writer)
            readers.append(reader)
        return readers[0], readers[1]

    def close(self) -> None:
        for writer in (self.stdout, self.stderr):
            if isinstance(writer, PipeWriter):
                writer.close_now()


class Execution(Coroutine[Any, Any, IOResult]):
    """A coroutine that gives an IOResult, and an asynchronous iterator over the output as it appears.

    Iterating starts the work; when the iteration ends, `result` holds the rest (exit code and figures, no output).
    Leaving the iteration early cancels the work.
    """

    def __init__(self, run: Callable[[Channels], Coroutine[Any, Any, IOResult]], limit: int) -> None:
        self._channels = Channels(limit)
        self._run = run
        self._coroutine: Coroutine[Any, Any, IOResult] | None = None
        self.result: IOResult | None = None

    def followed_by(self, act: Callable[[IOResult], Coroutine[Any, Any, None]]) -> Execution:
        """The same call, which ends when `act` has ended; an error of `act` is an error of the call."""

        async def run(channels: Channels) -> IOResult:
            result = await self._run(channels)
            await act(result)
            return result

        return Execution(run, self._channels.limit)

    def _started(self) -> Coroutine[Any, Any, IOResult]:
        if self._coroutine is None:
            self._coroutine = self._run(self._channels)
        return self._coroutine

    def send(self, value: Any, /) -> Any:
        return self._started().send(value)

    def throw(self, kind: Any, value: BaseException | object = None, trace: TracebackType | None = None, /) -> Any:
        return self._started().throw(kind if value is None else value)  # type: ignore[arg-type]

    def close(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, IOResult]:
        return self._started().__await__()

    async def __aiter__(self) -> AsyncIterator[Output]:
        out, err = self._channels.stream()
        task = asyncio.ensure_future(self._finish())
        pending = {_next(1, out), _next(2, err)}
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for ready in done:
                    fd, reader, data = ready.result()
                    if data:
                        pending.add(_next(fd, reader))
                        yield Output(fd, data)
            self.result = await task
        finally:
            for waiting in pending:
                waiting.cancel()
            out.close_now()
            err.close_now()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _finish(self) -> IOResult:
        try:
            return await self._started()
        finally:
            self._channels.close()


def _next(fd: int, reader: PipeReader) -> asyncio.Task[tuple[int, PipeReader, bytes]]:
    async def read() -> tuple[int, PipeReader, bytes]:
        return fd, reader, await reader.read()

    return asyncio.ensure_future(read())
