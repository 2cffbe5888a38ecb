"""A proxy on loopback that lets a real server look unreliable: it refuses, answers with errors, and hangs up midway."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

REFUSALS = {
    "500": b"HTTP/1.1 500 Internal Server Error\r\n",
    "503": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\n",
    "slow down": b"HTTP/1.1 503 Slow Down\r\n",
}
SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class Faults:
    """Forwards to `port` of this machine. Each connection has a fate that a seeded chance decides."""

    def __init__(self, port: int, seed: int, *, trouble: float = 0.5) -> None:
        self._target = port
        self._chance = random.Random(seed)
        self.trouble = trouble
        self.met: dict[str, int] = {}
        """How often each fate was met."""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def __aenter__(self) -> Faults:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """As when the server is killed: nobody is answered, and everybody is hung up on."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.hang_up()
        await asyncio.sleep(0)

    def connections(self) -> int:
        return len(self._open)

    def _fate(self) -> str:
        if self._chance.random() >= self.trouble:
            return "none"
        return self._chance.choice(("reset", "stall", "cut", "cut", *REFUSALS))

    def hang_up(self) -> None:
        """On everybody: the next request needs a new connection, which has a fate of its own."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fate = self._fate()
        self.met[fate] = self.met.get(fate, 0) + 1
        self._open.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                if fate in REFUSALS:
                    await reader.readuntil(b"\r\n\r\n")
                    head = REFUSALS[fate] + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(SLOW_DOWN)
                    writer.write(head + SLOW_DOWN)
                    await writer.drain()
                elif fate == "stall":
                    await reader.read(1)
                    await asyncio.sleep(0.02)
                    writer.transport.abort()
                elif fate == "reset":
                    writer.transport.abort()
                else:
                    # Somewhere in what is sent either way.
                    limit = self._chance.randrange(1, 400_000) if fate == "cut" else 1 << 60
                    await self._forward(reader, writer, limit)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._target)
        left = limit

        async def move(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            nonlocal left
            while left > 0 and (block := await source.read(min(65536, left))):
                left -= len(block)
                target.write(block)
                await target.drain()

        moves = [asyncio.ensure_future(move(reader, upstream)), asyncio.ensure_future(move(upstream_reader, writer))]
        try:
            await asyncio.wait(moves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in moves:
                task.cancel()
            await asyncio.gather(*moves, return_exceptions=True)
            upstream.transport.abort()
            if left <= 0:
                writer.transport.abort()
