"""Server-sent events: a numbered ring, kept for clients that reconnect."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from ramet.apps.server.request import encode_json

HEARTBEAT: Final = 15.0


class Event(NamedTuple):
    number: int
    kind: str
    workspace: str
    time: float
    data: dict[str, Any]

    def encode(self) -> bytes:
        body = {"workspace": self.workspace, "time": self.time, **self.data}
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, self.kind.encode(), encode_json(body))


class Events:
    """A ring of events. Names and pointers only: never content, output or a secret."""

    def __init__(self, size: int) -> None:
        self._ring: deque[Event] = deque(maxlen=size)
        self._last = 0
        self._news: asyncio.Future[None] | None = None
        self.closed = False

    def add(self, kind: str, workspace: str, /, **data: Any) -> None:
        self._last += 1
        self._ring.append(Event(self._last, kind, workspace, time.time(), data))
        self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        self._news = None

    def close(self) -> None:
        """End every stream, because the server stops."""
        self.closed = True
        self._wake()

    async def stream(self, since: int | None, workspace: str | None) -> AsyncIterator[bytes]:
        """Stream server-sent events after `since`; a `lost` event means that older ones are no longer in the ring."""
        seen = self._last if since is None else min(since, self._last)
        yield b": ramet\nretry: 1000\n\n"
        while not self.closed:
            oldest = self._ring[0].number if self._ring else self._last + 1
            if seen + 1 < oldest:
                yield Event(oldest - 1, "lost", workspace or "", time.time(), {"from": seen + 1}).encode()
                seen = oldest - 1
            if seen < self._last:
                for event in [event for event in self._ring if event.number > seen]:
                    seen = event.number
                    if workspace is None or event.workspace == workspace:
                        yield event.encode()
                continue
            if self._news is None:
                self._news = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait_for(asyncio.shield(self._news), HEARTBEAT)
            except TimeoutError:
                yield b": still here\n\n"
