"""HTTP/1.1 with a client: whole requests are read however they are cut, and doubtful ones are errors."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ramet.network.conversation import LARGEST_HEAD, BadRequest, Conversation, end_to_end
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.relay import BLOCK, Connection

GOOD = b"POST http://h/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;ext=1\r\nhel\r\n2\r\nlo\r\n0\r\nX: trailer\r\n\r\n"
)


async def nothing() -> AsyncIterator[bytes]:
    for block in list[bytes]():
        yield block


def talk(act: Callable[[Conversation, Connection], Awaitable[None]]) -> None:
    """Run a test with both ends of a connection."""

    async def inside() -> None:
        one, other = socket.socketpair()
        server = Connection(*await asyncio.open_connection(sock=one, limit=BLOCK))
        client = Connection(*await asyncio.open_connection(sock=other, limit=BLOCK))
        try:
            async with asyncio.timeout(60):
                await act(Conversation(server), client)
        finally:
            for end in (server, client):
                end.writer.close()

    asyncio.run(inside())


async def body_of(found: Conversation) -> bytes:
    body = found.body()
    return b"" if body is None else b"".join([block async for block in body])


@pytest.mark.parametrize("text", [GOOD, CHUNKED])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_request_may_come_in_any_pieces(text: bytes, size: int) -> None:
    async def act(server: Conversation, client: Connection) -> None:
        async def send() -> None:
            for at in range(0, 2 * len(text), size):
                client.writer.write((text + text)[at : at + size])
                await client.writer.drain()

        sending = asyncio.ensure_future(send())
        for _ in range(2):
            request = await server.request()
            assert request is not None and request.method == b"POST" and await body_of(server) == b"hello"
            await server.answer(200, "OK", [("Content-Length", "0")], nothing())
            assert server.goes_on()
        await sending
        client.writer.write_eof()
        assert await server.request() is None

    talk(act)


DOUBTFUL = [
    GOOD.replace(b"\r\n", b"\n"), GOOD.replace(b"Host: h\r\n", b"Host: h\n"),
    GOOD.replace(b"Host: h", b"Host: h\r X: y"),
    GOOD.replace(b"Host: h\r\n", b"Host: h\r\n folded: x\r\n"), GOOD.replace(b"Host: h\r\n", b"Host: h\r\n\tx\r\n"),
    GOOD.replace(b"Host: h\r\n", b""), GOOD.replace(b"Host: h\r\n", b"Host: h\r\nHost: h\r\n"),
    GOOD.replace(b"Length: 5", b"Length: 5\r\nContent-Length: 5"), GOOD.replace(b"Length: 5", b"Length: 5, 5"),
    GOOD.replace(b"Length: 5", b"Length: -5"), GOOD.replace(b"Length: 5", b"Length: 0x5"),
    GOOD.replace(b"Length: 5", b"Length: 5 5"), GOOD.replace(b"Content-Length: 5", b"Content-Length : 5"),
    GOOD.replace(b"Length: 5", b"Length: 5\r\nTransfer-Encoding: chunked"),
    CHUNKED.replace(b"chunked", b"chunked, chunked"), CHUNKED.replace(b"chunked", b"gzip, chunked"),
    CHUNKED.replace(b"chunked", b"identity"), CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0"),
    CHUNKED.replace(b"chunked\r\n", b"chunked\r\nTransfer-Encoding: identity\r\n"),
    GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"), GOOD.replace(b"HTTP/1.1", b"HTTP/1.2"), GOOD.replace(b" HTTP/1.1", b""),
    GOOD.replace(b"POST ", b"POST  "), GOOD.replace(b"/x", b"/x y"), GOOD.replace(b"/x", b"/\xff"),
    GOOD.replace(b"/x", b"/\0"), GOOD.replace(b"POST", b"PO(T"), GOOD.replace(b"Host: h", b"Ho st: h"),
    GOOD.replace(b"Host: h", b"Host: h\r\nX: \0"), b"\r\n" + GOOD, b" " + GOOD, b"SSH-2.0-x\r\n", b"\x16\x03\x01\r\n",
    GOOD.replace(b"Host: h", b"Host: h\r\n" + b"X: " + b"y" * LARGEST_HEAD),
]  # fmt: skip


@pytest.mark.parametrize("text", DOUBTFUL, ids=[str(number) for number in range(len(DOUBTFUL))])
def test_what_two_readers_may_read_differently_is_an_error(text: bytes) -> None:
    async def act(server: Conversation, client: Connection) -> None:
        async def send() -> None:
            client.writer.write(text)
            await client.writer.drain()
            client.writer.write_eof()

        sending = asyncio.ensure_future(send())
        with pytest.raises(BadRequest):
            await server.request()
        await server.refuse(400, "Bad Request", "no")
        assert not server.goes_on()
        await sending
        assert (await client.reader.read(100)).startswith(b"HTTP/1.1 400 Bad Request\r\n")

    talk(act)


def test_a_body_that_is_cut_is_an_error() -> None:
    async def act(server: Conversation, client: Connection) -> None:
        client.writer.write(GOOD[:-1])
        client.writer.write_eof()
        assert await server.request() is not None
        with pytest.raises(NetworkFailure):
            await body_of(server)

    talk(act)


def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"abc"
        raise NetworkFailure(FailureKind.PARTIAL, "gone")

    async def short() -> AsyncIterator[bytes]:
        yield b"abc"

    async def ask(blocks: AsyncIterator[bytes], headers: list[tuple[str, str]]) -> None:
        async def act(server: Conversation, client: Connection) -> None:
            client.writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            assert await server.request() is not None
            with pytest.raises(NetworkFailure):
                await server.answer(200, "OK", headers, blocks)
            assert not server.goes_on()
            got = b""
            try:
                while block := await client.reader.read(100):
                    got += block
            except ConnectionResetError:
                return
            assert not got.endswith(b"0\r\n\r\n")

        one, other = socket.socketpair()
        server = Connection(*await asyncio.open_connection(sock=one, limit=BLOCK))
        client = Connection(*await asyncio.open_connection(sock=other, limit=BLOCK))
        await act(Conversation(server), client)
        server.writer.close()
        client.writer.close()

    asyncio.run(ask(broken(), []))
    asyncio.run(ask(broken(), [("Content-Length", "10")]))
    asyncio.run(ask(short(), [("Content-Length", "10")]))


def test_a_refusal_reaches_a_client_that_is_still_sending() -> None:
    async def act(server: Conversation, client: Connection) -> None:
        async def send() -> None:
            client.writer.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n")
            for _ in range(9):
                client.writer.write(b"x" * 100_000)
                await client.writer.drain()

        sending = asyncio.ensure_future(send())
        assert await server.request() is not None
        await server.refuse(403, "Forbidden", "no")
        assert not server.goes_on()
        await server.end()
        server.connection.writer.close()
        await sending
        assert (await client.reader.read()).endswith(b"ramet: no\n")

    talk(act)


def test_what_is_done_for_a_client_ends_when_it_goes() -> None:
    async def act(server: Conversation, client: Connection) -> None:
        client.writer.write(GOOD)
        assert await server.request() is not None
        async with server.watched():
            assert await body_of(server) == b"hello"
            await server.answer(200, "OK", [("Content-Length", "0")], nothing())
        assert server.goes_on()
        client.writer.write(GOOD.replace(b"hello", b"third") + GOOD)  # another request, sent ahead
        assert await server.request() is not None
        with pytest.raises(ConnectionResetError):
            async with server.watched():
                assert await body_of(server) == b"third"
                client.writer.close()
                await asyncio.Event().wait()
        assert server.trailing == GOOD

    talk(act)


def test_a_request_that_is_cancelled_is_not_taken_for_a_client_that_left() -> None:
    async def act(server: Conversation, client: Connection) -> None:
        client.writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await server.request() is not None

        async def work() -> None:
            async with server.watched():
                await asyncio.Event().wait()

        working = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    talk(act)


def test_headers_of_one_connection_stay_there() -> None:
    given = [
        ("Connection", "keep-alive, X-Mine, Host, Content-Length"), ("X-Mine", "1"), ("Host", "h"), ("X-Other", "2"),
        ("Proxy-Authorization", "Basic x"), ("TE", "trailers"), ("Upgrade", "h2c"), ("Content-Length", "3"),
        ("Transfer-Encoding", "chunked"), ("Proxy-Connection", "close"),
    ]  # fmt: skip
    assert end_to_end(given) == [(b"Host", b"h"), (b"X-Other", b"2"), (b"Content-Length", b"3")]


def test_random_damage_never_passes_a_second_request() -> None:
    """Whatever is damaged: a request is read as one, or not at all, and nothing else breaks."""
    luck = random.Random(7)
    marks = [
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\0",
        b":",
        b" ",
        b"\t",
        b",",
        b"5",
        b"Transfer-Encoding: chunked\r\n",
    ]

    async def read(text: bytes) -> None:
        one, other = socket.socketpair()
        server = Connection(*await asyncio.open_connection(sock=one, limit=BLOCK))
        with other:
            other.sendall(text)
            other.shutdown(socket.SHUT_WR)
            found = Conversation(server)
            try:
                while (request := await found.request()) is not None:
                    names = [name for name, _ in request.headers]
                    assert names.count(b"content-length") + names.count(b"transfer-encoding") <= 1
                    assert names.count(b"host") == 1 or request.http_version == b"1.0"
                    assert len(await body_of(found)) <= len(text)
                    await found.answer(200, "OK", [("Content-Length", "0")], nothing())
                    if not found.goes_on():
                        break
            except (BadRequest, NetworkFailure, ConnectionError):
                return
            finally:
                server.writer.close()

    async def act() -> None:
        for _ in range(1500):
            text = bytearray(luck.choice([GOOD, CHUNKED]) * 2)
            for _ in range(luck.randint(1, 3)):
                at = luck.randrange(len(text))
                if luck.random() < 0.5:
                    text[at : at + luck.randint(0, 2)] = luck.choice(marks)
                else:
                    text[at] = luck.randrange(256)
            await read(bytes(text))

    asyncio.run(act())
