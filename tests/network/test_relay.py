"""`relay`: bytes in both directions, and what happens after one of them has ended."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from ramet.network.relay import BLOCK, Connection, relay

Act = Callable[[Connection, Connection, "asyncio.Task[None]"], Awaitable[None]]


async def ends() -> tuple[Connection, Connection]:
    one, other = socket.socketpair()
    return (
        Connection(*await asyncio.open_connection(sock=one, limit=BLOCK)),
        Connection(*await asyncio.open_connection(sock=other, limit=BLOCK)),
    )


def relayed(act: Act, linger: float | None) -> None:
    """Run a test with the client's end, the server's end, and the relay between them."""

    async def inside() -> None:
        client, near = await ends()
        far, server = await ends()
        task = asyncio.ensure_future(relay(near, far, linger=linger))
        try:
            async with asyncio.timeout(60):
                await act(client, server, task)
        finally:
            task.cancel()
            for end in (client, near, far, server):
                end.writer.close()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(inside())


def test_a_server_may_answer_after_its_client_has_ended() -> None:
    async def act(client: Connection, server: Connection, task: asyncio.Task[None]) -> None:
        client.writer.write(b"ask")
        client.writer.write_eof()
        assert await server.reader.read() == b"ask"
        for _ in range(3):
            server.writer.write(b"x" * BLOCK)
            await server.writer.drain()
        server.writer.write_eof()
        assert await client.reader.read() == b"x" * BLOCK * 3
        await task

    for linger in (None, 60.0):
        relayed(act, linger)


def test_a_server_that_is_silent_after_that_is_left() -> None:
    async def act(client: Connection, server: Connection, task: asyncio.Task[None]) -> None:
        server.writer.write(b"first")
        assert await client.reader.readexactly(5) == b"first"
        client.writer.write_eof()
        await task

    relayed(act, 0.01)


def test_a_client_that_is_silent_is_not_left() -> None:
    """Silence counts only after an end."""

    async def act(client: Connection, server: Connection, task: asyncio.Task[None]) -> None:
        done, _ = await asyncio.wait({task}, timeout=0.05)
        assert not done
        server.writer.write(b"late")
        assert await client.reader.readexactly(4) == b"late"

    relayed(act, 0.01)
