"""`Proxy`: the door for native programs. It answers at a listener in their box, and decides as for every other client.

Rules that this file keeps:
- A connection is one request, or one tunnel. It belongs to the command whose token it shows; without one it gets 407.
- What reaches a server is written anew from what was read, so that nothing rides along.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Final, NamedTuple

from ramet.core.paths import decode, encode
from ramet.network.door import Door
from ramet.network.exchange import Caller, Waits
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.relay import BLOCK, Connection
from ramet.network.targets import BadURL, Target, parse_host, parse_url, split_port

if TYPE_CHECKING:
    import h11

PORT: Final = 3128
"""Where the proxy listens, inside the box."""
USER: Final = "ramet"
HEAD_SECONDS: Final = 30.0
"""How long a client may take to say what it wants."""
HOP_BY_HOP: Final = frozenset((
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade", b"host",
))  # fmt: skip
DIRECT: Final = "localhost,127.0.0.1,::1"
"""What programs reach without the proxy: their own box."""


class _Member(NamedTuple):
    """A running command."""

    caller: Caller
    context: Context


class Proxy:
    """Serves one listener at a time, on the loop that runs the commands."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._members: dict[str, _Member] = {}
        self._server: asyncio.Server | None = None
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def member(self, caller: Caller) -> Iterator[dict[str, str]]:
        """Admit a command while it runs; gives the variables that lead its programs here."""
        token = secrets.token_hex(16)
        self._members[token] = _Member(caller, copy_context())
        address = f"http://{USER}:{token}@127.0.0.1:{PORT}"
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        try:
            yield {
                **dict.fromkeys(names, address), "no_proxy": DIRECT, "NO_PROXY": DIRECT, "NODE_USE_ENV_PROXY": "1",
            }  # fmt: skip
        finally:
            del self._members[token]

    async def serve(self, listener: socket.socket) -> None:
        """Answer at a listener, unless that is so already."""
        loop = asyncio.get_running_loop()
        if listener is self._listener and loop is self._loop:
            return
        if self._loop is loop:
            await self.stop()
        self._listener, self._loop = listener, loop
        twin = listener.dup()  # the server closes its own
        self._server = await asyncio.start_server(self._accept, sock=twin, limit=BLOCK)

    async def stop(self) -> None:
        server, self._server, self._listener = self._server, None, None
        if server is None or self._loop is not asyncio.get_running_loop():
            return
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---------------------------------------------------------------------------------------------- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            return  # the client went away
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11

        link = h11.Connection(h11.SERVER, max_incomplete_event_size=BLOCK)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                request = await _next(link, reader)
        except (h11.RemoteProtocolError, TimeoutError):
            await _refuse(writer, 400, "Bad Request", "the proxy cannot read this request")
            return
        if not isinstance(request, h11.Request):
            return
        member = self._member_of(request)
        if member is None:
            why = "the proxy of Ramet answers the programs of a running command"
            await _refuse(writer, 407, "Proxy Authentication Required", why, 'Proxy-Authenticate: Basic realm="ramet"')
            return
        tunnel = request.method == b"CONNECT"
        work = self._tunnel if tunnel else self._forward
        loop = asyncio.get_running_loop()
        await loop.create_task(work(member.caller, request, link, reader, writer), context=member.context.copy())

    def _member_of(self, request: h11.Request) -> _Member | None:
        for name, text in request.headers:
            if name == b"proxy-authorization" and text[:6].lower() == b"basic ":
                try:
                    user, _, token = decode(base64.b64decode(text[6:], validate=True)).partition(":")
                except ValueError:
                    return None
                return self._members.get(token) if user == USER else None
        return None

    async def _forward(
        self,
        caller: Caller,
        request: h11.Request,
        link: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Plain HTTP: one request, decided with its method and path."""
        text = decode(request.target)
        try:
            if "://" not in text:
                raise BadURL("it is not a whole URL")
            target = parse_url(text)
        except BadURL as error:
            await _refuse(writer, 400, "Bad Request", f"the proxy cannot read the URL: {error}")
            return
        sized = {name for name, _ in request.headers} & {b"content-length", b"transfer-encoding"}
        headers = [(decode(name), decode(value)) for name, value in request.headers.raw_items()
                   if name.lower() not in HOP_BY_HOP]  # fmt: skip
        if b"transfer-encoding" in sized:
            headers = [row for row in headers if row[0].lower() != "content-length"]
            headers.append(("Transfer-Encoding", "chunked"))
        body = _body(link, reader) if sized else None
        began = False
        try:
            async with self._door.open(
                caller, decode(request.method), target.bare(), headers, body, waits=Waits(30.0, None)
            ) as exchange:  # fmt: skip
                lines = [f"HTTP/1.1 {exchange.status} {exchange.reason}"]
                lines += [
                    f"{name}: {value}" for name, value in exchange.headers if encode(name.lower()) not in HOP_BY_HOP
                ]
                writer.write(encode("\r\n".join([*lines, "Connection: close", "", ""])))
                began = True
                async for block in exchange.blocks:
                    writer.write(block)
                    await writer.drain()
                await writer.drain()
        except NetworkFailure as failure:
            if began:
                writer.transport.abort()  # a short answer must not look whole
                return
            await _refuse(writer, *_status_of(failure))

    async def _tunnel(
        self,
        caller: Caller,
        request: h11.Request,
        link: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """CONNECT: bytes in both directions, decided by host and port."""
        try:
            host, port = split_port(decode(request.target))
            if port is None:
                raise BadURL("it names no port")
            target = Target("https", parse_host(host), port)
        except BadURL as error:
            await _refuse(writer, 400, "Bad Request", f"the proxy cannot read the host: {error}")
            return
        began = False
        try:
            async with self._door.tunnel(caller, target) as tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                began = True
                await tunnel.relay(link.trailing_data[0], Connection(reader, writer))
        except NetworkFailure as failure:
            if began:
                writer.transport.abort()
                return
            await _refuse(writer, *_status_of(failure))


async def _next(link: h11.Connection, reader: asyncio.StreamReader) -> object:
    import h11

    while (event := link.next_event()) is h11.NEED_DATA:
        link.receive_data(await reader.read(BLOCK))
    return event


async def _body(link: h11.Connection, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    import h11

    if link.they_are_waiting_for_100_continue:
        link.send(h11.InformationalResponse(status_code=100, headers=[]))
    try:
        while isinstance(event := await _next(link, reader), h11.Data):
            yield bytes(event.data)
    except h11.RemoteProtocolError:
        raise NetworkFailure(FailureKind.PROTOCOL, "the body of the request is damaged") from None


def _status_of(failure: NetworkFailure) -> tuple[int, str, str]:
    if failure.kind is FailureKind.REFUSED:
        return 403, "Forbidden", failure.text
    if failure.kind is FailureKind.LIMIT:
        return 429, "Too Many Requests", failure.text
    if failure.kind is FailureKind.TIMEOUT:
        return 504, "Gateway Timeout", failure.text
    return 502, "Bad Gateway", failure.text


async def _refuse(writer: asyncio.StreamWriter, status: int, reason: str, text: str, *headers: str) -> None:
    body = encode(f"ramet: {text}\n")
    lines = [f"HTTP/1.1 {status} {reason}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}"]
    writer.write(encode("\r\n".join([*lines, *headers, "Connection: close", "", ""])) + body)
    await writer.drain()
