"""`Execution`: one call of `execute`, awaited for its result or iterated for its output while it runs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Final, NamedTuple

from ramet.concurrency.tasks import give_up
from ramet.core.streams import Capture, PipeReader, PipeWriter, Writer, pipe
from ramet.workspace.result import IOResult

EVERYTHING: Final = 1 << 62


class Output(NamedTuple):
    """A block of output of descriptor 1 or 2."""

    fd: int
    data: bytes


class _OutputOrder:
    """Shared by both writers of one pipe: the order of their bytes, and the number of open writers."""

    __slots__ = ("left", "order")

    def __init__(self) -> None:
        self.left = 2
        self.order: deque[tuple[int, int]] = deque()


class _OutputEnd(PipeWriter):
    """Descriptor 1 or 2 of an execution. Both write into one pipe, which preserves their order."""

    __slots__ = ("_ends", "_fd", "_open")

    def __init__(self, like: PipeWriter, fd: int, ends: _OutputOrder) -> None:
        super().__init__(like._channel)
        self._fd, self._ends, self._open = fd, ends, True

    def write(self, data: bytes) -> None:
        super().write(data)
        if data:
            self._ends.order.append((self._fd, len(data)))

    def close_now(self) -> None:
        if self._open:
            self._open = False
            self._ends.left -= 1
            if not self._ends.left:
                super().close_now()


class Channels:
    """The output of an execution: captured in bounded memory, or streamed through a pipe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.captured_out, self.captured_err = Capture(limit), Capture(limit)
        self.stdout: Writer = self.captured_out
        self.stderr: Writer = self.captured_err

    @property
    def overflowed(self) -> bool:
        """Whether the output exceeds the capture limit."""
        return max(len(self.captured_out), len(self.captured_err)) > self.limit

    def stream(self) -> tuple[PipeReader, deque[tuple[int, int]]]:
        """Stream the output to a reader, with back-pressure, instead of capturing it.

        Also returns the order of the bytes as pairs of descriptor and count.
        """
        reader, writer = pipe()
        ends = _OutputOrder()
        self.stdout, self.stderr = _OutputEnd(writer, 1, ends), _OutputEnd(writer, 2, ends)
        return reader, ends.order

    def close(self) -> None:
        for writer in (self.stdout, self.stderr):
            if isinstance(writer, PipeWriter):
                writer.close_now()


class Execution(Coroutine[Any, Any, IOResult]):
    """A coroutine that returns an IOResult, and an asynchronous iterator over the output.

    Iterating starts the work; at its end, `result` holds the exit code and figures without output. Leaving the
    iteration early cancels the work.
    """

    def __init__(self, run: Callable[[Channels], Coroutine[Any, Any, IOResult]], limit: int) -> None:
        self._channels = Channels(limit)
        self._run = run
        self._coroutine: Coroutine[Any, Any, IOResult] | None = None
        self.result: IOResult | None = None

    def followed_by(self, act: Callable[[IOResult], Coroutine[Any, Any, None]]) -> Execution:
        """Return the same call followed by `act`, whose errors become errors of the call."""

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
        reader, order = self._channels.stream()
        task = asyncio.ensure_future(self._finish())
        try:
            while block := await reader.read(EVERYTHING):
                at = 0
                while at < len(block):
                    fd, size = order.popleft()
                    while order and order[0][0] == fd and at + size < len(block):
                        size += order.popleft()[1]
                    yield Output(fd, block[at : at + size])
                    at += size
            self.result = await task
        finally:
            reader.close_now()
            await give_up((task,))

    async def _finish(self) -> IOResult:
        try:
            return await self._started()
        finally:
            self._channels.close()
