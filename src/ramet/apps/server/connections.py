"""Connections of the HTTP servers: bounds on heads, times and counts before authentication.

`ramet serve`, `ui`, `rendezvous` and `mcp --http` get their configuration of uvicorn here, so that each has the bounds:

- A head has at most `header_bytes` and `headers`, trailers included (431), and arrives within `head_seconds` (408).
- A server has at most `connections`, and `peer_connections` from one address (503, closed at once).
- More requests than connections never run (`limit_concurrency`).
"""

from __future__ import annotations

import asyncio
import http
from collections import Counter
from typing import Any, ClassVar, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ramet.apps.server.settings import Bounds

_LINE: Final = len(": \r\n")


class ConnectionTable:
    """The connections of one server, by the address of the peer; unix sockets have none."""

    def __init__(self) -> None:
        self.total = 0
        self.peers: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()
        """Connections that a bound has closed, by the status they got."""

    def add(self, peer: str | None) -> None:
        self.total += 1
        if peer is not None:
            self.peers[peer] += 1

    def remove(self, peer: str | None) -> None:
        self.total -= 1
        if peer is not None:
            self.peers[peer] -= 1
            if not self.peers[peer]:
                del self.peers[peer]

    def is_over(self, peer: str | None, bounds: Bounds) -> bool:
        return self.total > bounds.connections or (peer is not None and self.peers[peer] > bounds.peer_connections)


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """A connection that became a WebSocket; it stays in the table until it ends."""

    table: ClassVar[ConnectionTable]

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.remove(None if self.client is None else self.client[0])
        super().connection_lost(exc)


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed when a head is too large or too slow."""

    bounds: ClassVar[Bounds]
    table: ClassVar[ConnectionTable]
    _timer: asyncio.TimerHandle | None = None
    _peer: str | None = None
    _in_head = True
    """Whether the head of a request is awaited or incomplete."""
    _received = 0
    """Bytes since the head began; they count where a header that never ends is not told of."""
    _size = _count = 0
    """Bytes and number of the headers of this request."""
    _refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = None if self.client is None else self.client[0]
        self.table.add(self._peer)
        if self.table.is_over(self._peer, self.bounds):
            self._refuse(503, "too many connections")
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.table.remove(self._peer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._in_head:
            self._received += len(data)
        super().data_received(data)
        if self._in_head and self._received > self.bounds.header_bytes:
            self._refuse(431, "the head of the request is too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._received, self._size, self._count = True, 0, 0, 0
        if self._timer is None:
            self._await_head()

    def on_url(self, url: bytes) -> None:
        self._size += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value) + _LINE
        self._count += 1
        if self._count <= self.bounds.headers and self._size <= self.bounds.header_bytes:
            super().on_header(name, value)
        elif not self._in_head:
            self._refuse(431, "the trailers of the request are too large")  # of a body that is being read

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        if self._count > self.bounds.headers or self._size > self.bounds.header_bytes:
            self._refuse(431, "the head of the request is too large")
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        if not self._refused:
            super().handle_websocket_upgrade()

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.bounds.head_seconds, self._is_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        self._timer = None
        self._refuse(408, "the head of the request did not arrive in time")

    def _refuse(self, status: int, why: str) -> None:
        """Answer and close; what is still sent is not read."""
        if self._refused:
            return
        self._refused = True
        self.table.refused[status] += 1
        self._stop_timer()
        if self.cycle is None or self.cycle.response_complete:  # no answer to another request is being written
            head = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: text/plain\r\n"
            self.transport.write(f"{head}content-length: {len(why)}\r\nconnection: close\r\n\r\n{why}".encode())
        self.transport.close()


def configure(
    app: Any, bounds: Bounds, table: ConnectionTable | None = None, *, websockets: bool = False, **options: Any
) -> uvicorn.Config:
    """Return the configuration of a server whose connections are bounded, and counted in `table`."""
    table = table or ConnectionTable()
    protocol = type("Protocol", (BoundedProtocol,), {"bounds": bounds, "table": table})
    socket: Any = type("WebSocket", (BoundedWebSocket,), {"table": table}) if websockets else "none"
    return uvicorn.Config(
        app, http=protocol, ws=socket, ws_max_size=bounds.frame_bytes, ws_per_message_deflate=False,
        log_level="warning", access_log=False, server_header=False, date_header=False,
        limit_concurrency=bounds.connections + 1, backlog=2048, **options,
    )  # fmt: skip
