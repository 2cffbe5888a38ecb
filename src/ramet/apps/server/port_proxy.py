"""Pass requests, WebSockets and plain streams on to programs that listen in a workspace.

Rules that this file keeps:
- Each request gets a new connection; what the program gets is written anew from what was read.
- Bodies stream in both directions with back-pressure. A client that goes ends the program's side, and a program that
  breaks off ends the client's: an answer that is cut short never looks whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import h11
import websockets.asyncio.client as websocket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.typing import Subprotocol

from ramet.apps.server.port_headers import PortPlace, from_program, offered_to_program, to_program
from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import ClientGone, Receive, Scope, Send, too_large
from ramet.apps.server.settings import Bounds
from ramet.network.relay import BLOCK, Connection

log: Final = logging.getLogger("ramet.server")
TUNNEL: Final = "ramet.port"
"""Subprotocol of a WebSocket that carries the bytes of one connection; the text `end` ends one direction."""
END: Final = "end"
CONNECT_SECONDS: Final = 10.0
HEAD_BYTES: Final = 64 * 1024
REFUSED: Final = "nothing listens at port {0} of the workspace"
REMEDY: Final = "Start the program first; it must stay running in the background. See the list of ports."

Dial = Callable[[int], Awaitable[socket.socket]]


class ProgramFailed(Exception):
    """The program broke off in the middle of an answer."""


async def dialed(connect: Dial, port: int) -> socket.socket:
    """Connect to a program, or refuse."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await connect(port)
    except ConnectionRefusedError:
        raise Refusal("unavailable", REFUSED.format(port), REMEDY, status=502) from None
    except TimeoutError:
        raise Refusal("unavailable", f"the program at port {port} accepts no connection", REMEDY, status=504) from None


# ------------------------------------------------------------------------------------------------------------- HTTP


class Exchange:
    """One request of a client, and the answer of the program."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, bounds: Bounds, place: PortPlace, target: bytes
    ) -> None:
        self._scope, self._receive, self._send, self._bounds, self._place = scope, receive, send, bounds, place
        self._target = target
        """The path and the query for the program, as the client has written them."""
        self._link = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self.started = False
        """Whether the client has the head of an answer."""

    async def run(self, connect: Dial) -> None:
        """Answer the client. A Refusal says why there is no answer; nothing was sent then."""
        sock = await dialed(connect, self._place.port)
        up = asyncio.create_task(self._ask(sock))
        down = asyncio.create_task(self._answer(sock))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            if not down.done():
                await up  # the client has gone, or sends too much
            await down
        except Refusal as refused:
            if self.started:
                raise ProgramFailed(str(refused)) from None
            raise
        except OSError:
            if self.started:
                raise ClientGone from None
            raise
        finally:
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            sock.close()

    async def _ask(self, sock: socket.socket) -> None:
        """Send the request; returns only by an error: when the client goes, or sends too much."""
        scope, link = self._scope, self._link
        given = {name: value for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")}
        headers = to_program(scope["headers"], self._place)
        if b"transfer-encoding" in given:
            headers = [(name, value) for name, value in headers if name != b"content-length"]
            headers.append((b"transfer-encoding", b"chunked"))
        headers.append((b"connection", b"close"))
        try:
            head = h11.Request(method=scope["method"], target=self._target, headers=headers)
        except h11.LocalProtocolError as error:
            raise Refusal("invalid_argument", f"cannot pass this request on: {error}", "write it otherwise") from None
        data, broken = link.send(head) or b"", False
        if given:  # the program may answer before the body comes
            data, broken = b"", not await _sent(sock, data)
        size, more = 0, True
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            block = message.get("body", b"")
            size += len(block)
            if size > self._bounds.upload_bytes:
                raise too_large(self._bounds.upload_bytes)
            if broken or not more:
                continue
            more = bool(message.get("more_body"))
            if block:
                data += link.send(h11.Data(block)) or b""
            if not more:
                data += link.send(h11.EndOfMessage()) or b""
            data, broken = b"", not await _sent(sock, data)

    async def _answer(self, sock: socket.socket) -> None:
        """Pass the answer on."""
        try:
            async with asyncio.timeout(self._bounds.port_head_seconds):
                head = await self._next(sock)
                while isinstance(head, h11.InformationalResponse):
                    head = await self._next(sock)
        except TimeoutError:
            seconds = self._bounds.port_head_seconds
            raise Refusal(
                "unavailable", f"the program did not answer within {seconds:g} s", "Look at what it prints.", status=504
            ) from None
        except (h11.RemoteProtocolError, OSError) as error:
            raise self._no_answer(str(error)) from None
        if not isinstance(head, h11.Response):
            raise self._no_answer("it closed the connection")
        headers = from_program(head.headers, self._place, self._target.partition(b"?")[0].decode("latin-1"))
        self.started = True
        await self._send({"type": "http.response.start", "status": head.status_code, "headers": headers})
        while True:
            try:
                async with asyncio.timeout(self._bounds.port_idle_seconds):
                    event = await self._next(sock)
            except (h11.RemoteProtocolError, OSError, TimeoutError) as error:
                raise ProgramFailed(str(error)) from None
            if isinstance(event, h11.EndOfMessage):
                break
            if not isinstance(event, h11.Data):
                raise ProgramFailed("it closed the connection")
            await self._send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    def _no_answer(self, why: str) -> Refusal:
        port = self._place.port
        return Refusal(
            "unavailable", f"the program at port {port} gave no HTTP answer: {why}",
            f"It may speak another protocol: `ramet port NAME {port}` passes every one on.", status=502,
        )  # fmt: skip

    async def _next(self, sock: socket.socket) -> Any:
        while (event := self._link.next_event()) is h11.NEED_DATA:
            # Not a StreamReader: one forgets an early answer when the program then resets the connection.
            self._link.receive_data(await asyncio.get_running_loop().sock_recv(sock, BLOCK))
        return event


async def _sent(sock: socket.socket, data: bytes) -> bool:
    """Send to a program; False when it reads no more, and may have answered already."""
    try:
        await asyncio.get_running_loop().sock_sendall(sock, data)
    except ConnectionError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------- WebSockets


class Talk:
    """A WebSocket of a client: a tunnel to a program, or its twin with a WebSocket of the program."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, bounds: Bounds, place: PortPlace) -> None:
        self._scope, self._receive, self._send, self._bounds, self._place = scope, receive, send, bounds, place
        self.accepted = self.gone = False

    async def tunnel(self, connect: Dial) -> None:
        """Carry the bytes of one connection."""
        sock = await dialed(connect, self._place.port)
        connection = Connection(*await asyncio.open_connection(sock=sock))
        try:
            await self._accept(TUNNEL)
            await self._both(self._upwards(connection), self._downwards(connection))
        finally:
            connection.writer.close()

    async def _upwards(self, connection: Connection) -> None:
        while (message := await self._heard()) is not None:
            if (data := message.get("bytes")) is not None:
                connection.writer.write(data)
                await connection.writer.drain()
            elif message.get("text") == END:
                connection.writer.write_eof()

    async def _downwards(self, connection: Connection) -> None:
        while block := await connection.reader.read(BLOCK):
            await self._send({"type": "websocket.send", "bytes": block})
        await self._send({"type": "websocket.send", "text": END})
        await asyncio.Event().wait()  # the client ends the other direction, then the connection

    async def twin(self, connect: Dial, target: str) -> None:
        """Open a WebSocket of the program, and pass messages on."""
        place, scope, bounds = self._place, self._scope, self._bounds
        sock = await dialed(connect, place.port)
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in to_program(scope["headers"], place) if name != b"host"
        ]  # fmt: skip
        offered = [Subprotocol(one) for one in offered_to_program(scope.get("subprotocols", ()))]
        try:
            theirs = await websocket.connect(
                f"ws://{place.inside}{target}", sock=sock, subprotocols=offered or None, additional_headers=headers,
                user_agent_header=None, compression=None, proxy=None, open_timeout=CONNECT_SECONDS,
                ping_interval=None, max_size=bounds.frame_bytes, close_timeout=1.0,
            )  # fmt: skip
        except InvalidStatus as error:
            status = error.response.status_code
            raise self._no_websocket(f"answered with status {status}") from None
        except (InvalidHandshake, InvalidMessage, OSError, ValueError) as error:
            raise self._no_websocket(f"opened no WebSocket: {error}") from None
        async with theirs:
            answered = theirs.response.headers.raw_items() if theirs.response is not None else ()
            given = [(name.encode(), value.encode("latin-1")) for name, value in answered]
            kept = [
                (name, value) for name, value in from_program(given, place, target.partition("?")[0])
                if not name.startswith(b"sec-websocket-") and name not in (b"date", b"server", b"content-length")
            ]  # fmt: skip
            await self._accept(theirs.subprotocol, kept)
            await self._both(self._to_twin(theirs), self._from_twin(theirs))

    def _no_websocket(self, why: str) -> Refusal:
        return Refusal("unavailable", f"the program at port {self._place.port} {why}", "Look at its log.", status=502)

    async def _to_twin(self, theirs: websocket.ClientConnection) -> None:
        while (message := await self._heard()) is not None:
            data = message.get("bytes")
            await theirs.send(message["text"] if data is None else data)

    async def _from_twin(self, theirs: websocket.ClientConnection) -> None:
        while True:
            data = await theirs.recv()
            await self._send({"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data})

    # ------------------------------------------------------------------------------------------------------- parts

    async def _heard(self) -> Any:
        """The next message of the client; None when it has gone."""
        async with asyncio.timeout(self._bounds.port_idle_seconds):
            message = await self._receive()
        self.gone = message["type"] == "websocket.disconnect"
        return None if self.gone else message

    async def _accept(self, subprotocol: str | None, headers: Any = ()) -> None:
        assert (await self._receive())["type"] == "websocket.connect"
        self.accepted = True
        await self._send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": [*headers]})

    async def _both(self, up: Coroutine[Any, Any, None], down: Coroutine[Any, Any, None]) -> None:
        """Run both directions until one side ends, and tell the client how."""
        tasks = [asyncio.ensure_future(up), asyncio.ensure_future(down)]
        code, why = 1000, ""
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        except ConnectionClosed as closed:
            got = closed.rcvd
            code, why = (1011, "the program broke off") if got is None else (got.code, got.reason)
            code = 1000 if code == 1005 else code
        except TimeoutError:
            code, why = 1013, f"nothing was said for {self._bounds.port_idle_seconds:g} s"
        except OSError:
            code, why = 1011, "the program broke off"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not self.gone:
            with contextlib.suppress(OSError):  # the client has gone meanwhile
                await self._send({"type": "websocket.close", "code": code, "reason": why})
