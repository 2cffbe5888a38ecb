"""`Forward`: a port of this machine that leads elsewhere."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from ramet.network.forward import Forward, listen_on_loopback
from ramet.network.relay import Connection

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BIG = 8 << 20


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer in capitals until the other side ends."""
    while data := await reader.read(65536):
        writer.write(data.upper())
        await writer.drain()
    writer.write(b".")
    writer.close()


@asynccontextmanager
async def forwarding(serve: Serve, **options: object) -> AsyncIterator[Forward]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def dial() -> Connection:
        return Connection(*await asyncio.open_connection("127.0.0.1", port))

    async with server, Forward(listen_on_loopback(0), dial, **options) as forward:  # type: ignore[arg-type]
        yield forward


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def test_many_connections_stream_both_ways_to_their_ends() -> None:
    async def talk(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * BIG)
        writer.write_eof()
        assert await reader.read() == b"X" * BIG + b"."
        writer.close()

    async def test() -> None:
        async with forwarding(shout) as forward:
            await asyncio.gather(*(talk(forward.port) for _ in range(12)))
            while forward.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    run(test)


def test_more_than_the_most_are_reset() -> None:
    async def test() -> None:
        async with forwarding(shout, most=2) as forward:
            kept = [await asyncio.open_connection("127.0.0.1", forward.port) for _ in range(2)]
            for _, writer in kept:
                writer.write(b"a")
            assert [await reader.read(1) for reader, _ in kept] == [b"A", b"A"]
            reader, _ = await asyncio.open_connection("127.0.0.1", forward.port)
            with pytest.raises(ConnectionResetError):
                await reader.read()
            for _, writer in kept:
                writer.close()

    run(test)


def test_a_failure_to_connect_is_told_and_resets() -> None:
    told: list[Exception] = []

    async def dial() -> Connection:
        raise ConnectionRefusedError("nothing there")

    async def test() -> None:
        async with Forward(listen_on_loopback(0), dial, failed=told.append) as forward:
            reader, _ = await asyncio.open_connection("127.0.0.1", forward.port)
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(test)
    assert str(told[0]) == "nothing there"


def test_closing_ends_connections_and_frees_the_port() -> None:
    async def test() -> None:
        async with forwarding(shout) as forward:
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            writer.write(b"a")
            assert await reader.read(1) == b"A"
            await forward.close()
            assert await reader.read() == b""
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", forward.port)) != 0
            writer.close()

    run(test)


def test_a_forward_of_a_loop_that_has_ended_is_closed_by_another() -> None:
    made: list[Forward] = []

    async def dial() -> Connection:
        raise ConnectionRefusedError

    async def open_one() -> None:
        made.append(await Forward(listen_on_loopback(0), dial).__aenter__())

    async def close_it() -> None:
        assert not made[0].serving
        await made[0].close()

    asyncio.run(open_one())
    asyncio.run(close_it())
