"""`Forward`: a port of this machine that leads elsewhere, connection by connection.

- Bytes stream both ways with back-pressure; each side learns of the end of the other.
- At most `most` connections at once; more are reset.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Final, Self

from ramet.core.errors import RametError
from ramet.network.relay import BLOCK, Connection, relay

MOST: Final = 256
Failed = Callable[[Exception], None]
Dial = Callable[[], Awaitable[Connection]]
_RESET: Final = struct.pack("ii", 1, 0)


class Forward:
    """Serves a listening socket: `async with Forward(listener, dial):`."""

    def __init__(
        self, listener: socket.socket, dial: Dial, *, most: int = MOST, failed: Failed | None = None
    ) -> None:  # fmt: skip
        """`failed` is called with the reason why a connection could not be made."""
        self._listener, self._dial, self._most, self._failed = listener, dial, most, failed
        self.port: int = listener.getsockname()[1]
        """The port of this machine."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def serving(self) -> bool:
        """Whether it serves on the running loop."""
        return self._server is not None and self._loop is asyncio.get_running_loop()

    @property
    def connections(self) -> int:
        return len(self._tasks)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._accept, sock=self._listener, limit=BLOCK)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop listening, and end every connection."""
        server, serving = self._server, self.serving
        self._server = None
        if server is None:
            return
        if not serving:  # its loop has ended, and its connections with it
            self._listener.close()
            return
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._most:
            _reset(writer)
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other = await self._dial()
        except (OSError, RametError) as error:
            if self._failed is not None:
                self._failed(error)
            _reset(writer)
            return
        else:
            try:
                await relay(Connection(reader, writer), other)
            finally:
                other.writer.close()
        finally:
            writer.close()


def listen_on_loopback(port: int | socket.socket) -> socket.socket:
    """Return a socket that listens on this machine's loopback; port 0 picks a free one."""
    return port if isinstance(port, socket.socket) else socket.create_server(("127.0.0.1", port))


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as one that was refused."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.close()
