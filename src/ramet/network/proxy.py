"""`Proxy`: the door for native programs. It answers at a listener in their box, and decides as for every other client.

Rules that this file keeps:
- A connection belongs to the command whose token it shows, and ends with it; without a token it is refused.
- What reaches a server is written anew from what was read, so that nothing rides along.
- Where the policy intercepts a host, no byte goes to it unread, whether the program uses CONNECT or SOCKS.
"""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from ramet.core.paths import decode
from ramet.network import socks
from ramet.network.conversation import HEAD_SECONDS, BadRequest, Conversation, end_to_end
from ramet.network.door import Door
from ramet.network.exchange import Caller, Waits
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.relay import BLOCK, Connection
from ramet.network.rules import Outgoing
from ramet.network.targets import PORTS, BadURL, Target, parse_host, parse_url, split_port

if TYPE_CHECKING:
    import h11

    from ramet.network.authority import Authority

PORT: Final = 3128
"""Where the proxy listens, inside the box."""
USER: Final = "ramet"
MOST_CONNECTIONS: Final = 256
"""Connections of one box at the same time; more are closed. Each is a file of this process."""
CONNECT_SECONDS: Final = 30.0
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
"""What programs reach without the proxy: their own box. A host that a rule names may be the machine's."""
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_WHO: Final = "the proxy of Ramet answers the programs of a running command"
_UNREAD: Final = "what the program sends to a host that is intercepted is neither TLS nor HTTP"
TLS_HANDSHAKE: Final = b"\x16"
"""How a connection begins that speaks TLS."""
_DROPPED: Final = frozenset((b"host", b"expect"))


@dataclass
class _Member:
    """A running command, and what is done for it."""

    caller: Caller
    context: Context
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class Proxy:
    """Serves one listener at a time, on the loop that runs the commands."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._members: dict[str, _Member] = {}
        self._server: asyncio.Server | None = None
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._made: Authority | None = None

    @property
    def authority(self) -> Authority | None:
        """What signs the certificates that programs see; None where no HTTPS is read."""
        if self._made is None and self._door.network is not None and self._door.network.intercept:
            from ramet.network.authority import Authority

            self._made = Authority()
        return self._made

    @property
    def bundle(self) -> bytes | None:
        """The certificates that programs trust; None where those of the machine are enough."""
        authority, network = self.authority, self._door.network
        if network is None or (authority is None and not network.authorities):
            return None
        from ramet.network.authority import bundle_of

        return bundle_of(network.authorities, "" if authority is None else authority.certificate)

    @property
    def trust(self) -> dict[str, str]:
        """The variables that lead programs to these certificates."""
        network = self._door.network
        if network is None or not (network.intercept or network.authorities):
            return {}
        from ramet.network.authority import trust_variables

        return trust_variables()

    @asynccontextmanager
    async def member(self, caller: Caller) -> AsyncIterator[dict[str, str]]:
        """Admit a command while it runs; gives the variables that lead its programs here."""
        token = secrets.token_hex(16)
        member = self._members[token] = _Member(caller, copy_context())
        place = f"{USER}:{token}@127.0.0.1:{PORT}"
        http = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://{place}")
        other = dict.fromkeys(("socks_proxy", "SOCKS_PROXY"), f"socks5h://{place}")
        network = self._door.network
        direct = [host for host in LOOPBACK if network is None or not network.permits_somewhere(host)]
        without = dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(direct))
        try:
            yield {**http, **other, **without, "NODE_USE_ENV_PROXY": "1"}
        finally:
            del self._members[token]
            await _cancel(member.tasks)

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
        await _cancel(self._tasks)

    # ---------------------------------------------------------------------------------------------- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._tasks.add(task)
        client = Connection(reader, writer)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                first = await reader.read(1)
            if first[:1] == bytes((socks.VERSION,)):
                await self._socks(client)
            elif first:
                await self._http(client, first)
        except (OSError, asyncio.IncompleteReadError):  # TimeoutError is one
            return  # the client went away, or says nothing
        except asyncio.CancelledError:
            return  # its command has ended, or the workspace; `asyncio` logs what is raised here
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _for(self, member: _Member, work: Coroutine[Any, Any, None]) -> None:
        """Do something as a part of a command, which ends it when it ends itself."""
        task = asyncio.get_running_loop().create_task(work, context=member.context.copy())
        member.tasks.add(task)
        try:
            await task
        finally:
            member.tasks.discard(task)

    async def _http(self, client: Connection, first: bytes) -> None:
        """A proxy of HTTP: requests with whole URLs, or one CONNECT."""
        try:
            talk = Conversation(client, first)
        except ImportError:
            return
        while (request := await _request(talk)) is not None:
            member = self._member_of(request)
            if member is None:
                asks = ("Proxy-Authenticate", 'Basic realm="ramet"')
                await talk.refuse(407, "Proxy Authentication Required", _WHO, asks)
            elif request.method == b"CONNECT":
                await self._for(member, self._connect(talk, member.caller, request))
            else:
                await self._for(member, self._pass_on(talk, member.caller, request))
            if not talk.goes_on():
                await talk.end()
                return

    def _member_of(self, request: h11.Request) -> _Member | None:
        for name, text in request.headers:
            if name == b"proxy-authorization" and text[:6].lower() == b"basic ":
                try:
                    user, _, token = decode(base64.b64decode(text[6:], validate=True)).partition(":")
                except ValueError:
                    return None
                return self._members.get(token) if user == USER else None
        return None

    async def _pass_on(self, talk: Conversation, caller: Caller, request: h11.Request) -> None:
        """Plain HTTP: one request, decided with its method and path."""
        text = decode(request.target)
        try:
            if "://" not in text:
                raise BadURL("it is not a whole URL")
            target = parse_url(text).bare()
        except BadURL as error:
            await talk.refuse(400, "Bad Request", f"the proxy cannot read the URL: {error}")
            return
        await self._forward(talk, caller, request, target)

    async def _forward(self, talk: Conversation, caller: Caller, request: h11.Request, target: Target) -> None:
        rows = [(decode(name), decode(text)) for name, text in request.headers.raw_items()]
        headers = [(decode(name), decode(text)) for name, text in end_to_end(rows) if name.lower() not in _DROPPED]
        if any(name == b"transfer-encoding" for name, _ in request.headers):
            headers.append(("Transfer-Encoding", "chunked"))
        asks = _asks_for_websocket(request) and talk.body() is None
        if asks:
            headers += [("Connection", "Upgrade"), ("Upgrade", "websocket")]
        waits = Waits(CONNECT_SECONDS, None)
        try:
            async with talk.watched(), self._door.open(
                caller, decode(request.method), target, headers, talk.body(), waits=waits
            ) as exchange:  # fmt: skip
                if asks and exchange.switched is not None:
                    await talk.unwatch()
                    await talk.switch(exchange.reason, exchange.headers, b"websocket")
                    await exchange.switched.relay(talk.trailing, talk.connection)
                else:
                    await talk.answer(exchange.status, exchange.reason, exchange.headers, exchange.blocks)
        except NetworkFailure as failure:
            if not talk.answers:
                await talk.refuse(*_status_of(failure, target))

    async def _connect(self, talk: Conversation, caller: Caller, request: h11.Request) -> None:
        try:
            host, port = split_port(decode(request.target))
            if port is None:
                raise BadURL("it names no port")
            target = Target("https", parse_host(host), port)
        except BadURL as error:
            await talk.refuse(400, "Bad Request", f"the proxy cannot read the host: {error}")
            return
        try:
            await self._lead(caller, target, talk.connection, talk.trailing, _ESTABLISHED)
        except NetworkFailure as failure:
            if not talk.connection.writer.is_closing():
                await talk.refuse(*_status_of(failure, target))

    async def _socks(self, client: Connection) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                user, token = await socks.password_of(client)
                member = self._members.get(token) if user == USER else None
                socks.tell_admitted(client, admitted=member is not None)
                if member is None:
                    return
                target = await socks.target_of(client)
        except socks.SocksError:
            await client.writer.drain()
            return
        await self._for(member, self._socks_connect(client, member.caller, target))

    async def _socks_connect(self, client: Connection, caller: Caller, target: Target) -> None:
        try:
            await self._lead(caller, target, client, b"", socks.answer(socks.SUCCEEDED))
        except NetworkFailure as failure:
            if not client.writer.is_closing():
                client.writer.write(socks.answer(socks.code_of(failure)))
                await client.writer.drain()

    # ---------------------------------------------------------------------------------------------- tunnels

    async def _lead(self, caller: Caller, target: Target, client: Connection, first: bytes, accepted: bytes) -> None:
        """Connect a client to a host, and tell it so. Fails before that, or breaks the connection after it."""
        authority = self.authority
        if authority is None or not self._door.intercepts(caller, target):
            async with self._door.tunnel(caller, target) as tunnel:
                client.writer.write(accepted)
                try:
                    await tunnel.relay(first, client)
                except NetworkFailure:
                    client.writer.transport.abort()
                    raise
            return
        if first:
            raise NetworkFailure(FailureKind.PROTOCOL, "the program speaks before it is connected")
        transport = cast("asyncio.Transport", client.writer.transport)  # that of uvloop is none of its subclasses
        transport.pause_reading()  # what comes now belongs to TLS
        client.writer.write(accepted)
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                first = await _look(transport)
            if first == TLS_HANDSHAKE:
                await self._read_secured(caller, target, transport, authority)
            elif first:
                transport.resume_reading()
                await self._read_inside(caller, replace(target, scheme="http"), Conversation(client))
        except TimeoutError:
            await self._note_unread(caller, target, NetworkFailure(FailureKind.REFUSED, _UNREAD))
        finally:
            client.writer.close()

    async def _read_secured(
        self, caller: Caller, target: Target, transport: asyncio.Transport, authority: Authority
    ) -> None:
        secured: Connection | None = None
        try:
            secured = await _secure(transport, authority.context(target.host))
            await self._read_inside(caller, target, Conversation(secured))
        except ssl.SSLError as error:
            await self._note_unread(caller, target, _unread(error))
        finally:
            if secured is not None:
                secured.writer.close()

    async def _read_inside(self, caller: Caller, target: Target, talk: Conversation) -> None:
        """Requests of a connection, each decided with its method and path; all are for the host of the connection."""
        while True:
            try:
                request = await talk.request()
            except BadRequest as error:
                await self._note_unread(caller, target, NetworkFailure(FailureKind.REFUSED, f"{_UNREAD}: {error}"))
                await _refuse_unread(talk, error)
                return
            if request is None:
                return
            try:
                inner = _inside(request, target)
            except BadURL as error:
                why = f"a request inside of the connection to {target.authority} is for another host: {error}"
                await self._note_unread(caller, target, NetworkFailure(FailureKind.REFUSED, why))
                await talk.refuse(421, "Misdirected Request", why)
            else:
                await self._forward(talk, caller, request, inner)
            if not talk.goes_on():
                await talk.end()
                return

    async def _note_unread(self, caller: Caller, target: Target, failure: NetworkFailure) -> None:
        """Record a connection whose requests were not read."""
        out = Outgoing("CONNECT", target, caller.session_id, caller.agent_id, tunnel=True)
        try:
            async with self._door.recording(caller, out):
                raise failure
        except NetworkFailure:
            return


async def _request(talk: Conversation) -> h11.Request | None:
    try:
        return await talk.request()
    except BadRequest as error:
        await _refuse_unread(talk, error)
        return None


async def _refuse_unread(talk: Conversation, error: BadRequest) -> None:
    await talk.refuse(400, "Bad Request", f"the proxy cannot read this request: {error}")
    await talk.end()


async def _look(transport: asyncio.Transport) -> bytes:
    """Look at the next byte of a connection whose reading is paused, and leave it there."""
    loop = asyncio.get_running_loop()
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as twin:
        twin.setblocking(False)
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(twin.fileno(), lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(twin.fileno())
        return twin.recv(1, socket.MSG_PEEK)


async def _secure(transport: asyncio.Transport, context: ssl.SSLContext) -> Connection:
    """Speak TLS as a server from here on."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=BLOCK, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    secured = await loop.start_tls(
        transport, protocol, context, server_side=True, ssl_handshake_timeout=HEAD_SECONDS
    )  # fmt: skip
    assert secured is not None
    protocol.connection_made(secured)
    return Connection(reader, asyncio.StreamWriter(secured, protocol, reader, loop))


def _unread(error: ssl.SSLError) -> NetworkFailure:
    """Why a connection could not be read."""
    reason = (error.reason or "").upper()
    if "ALERT" in reason:
        why = "the program does not accept the certificate of this workspace: see `intercept` in docs/network.md"
        return NetworkFailure(FailureKind.TLS, why)
    if "SNI" in reason or "CALLBACK" in reason or "UNRECOGNIZED" in reason:
        return NetworkFailure(FailureKind.REFUSED, "the program asks for a certificate of another host")
    return NetworkFailure(FailureKind.REFUSED, _UNREAD)


def _inside(request: h11.Request, target: Target) -> Target:
    """Where a request inside of a connection leads; BadURL where that is another host than it was made to."""
    text = decode(request.target)
    if not text.startswith("/") and "://" not in text:
        raise BadURL(f"{text[:60]!r} is not a path")
    found = parse_url(target.origin + text if text.startswith("/") else text).bare()
    for name, said in request.headers:
        if name == b"host":
            host, port = split_port(decode(said))
            if (parse_host(host), port or PORTS[target.scheme]) != (target.host, target.port):
                raise BadURL(f"its Host header is {decode(said)[:60]!r}")
    if (found.scheme, found.host, found.port) != (target.scheme, target.host, target.port):
        raise BadURL(f"its URL begins with {found.origin}")
    return found


def _asks_for_websocket(request: h11.Request) -> bool:
    """Whether a client wants to speak WebSocket. Other protocols are not passed on: Ramet could not read them."""
    found = {name: text.strip().lower() for name, text in request.headers if name in (b"connection", b"upgrade")}
    words = {word.strip() for word in found.get(b"connection", b"").split(b",")}
    return request.method == b"GET" and b"upgrade" in words and found.get(b"upgrade") == b"websocket"


def _status_of(failure: NetworkFailure, target: Target) -> tuple[int, str, str]:
    if failure.kind is FailureKind.REFUSED:
        return 403, "Forbidden", failure.text
    if failure.kind is FailureKind.LIMIT:
        return 429, "Too Many Requests", failure.text
    if failure.kind is FailureKind.TIMEOUT:
        return 504, "Gateway Timeout", f"{target.authority}: {failure.text}"
    if failure.kind is FailureKind.CERTIFICATE:
        return 502, "Bad Gateway", f"the certificate of {target.host} cannot be verified: {failure.text}"
    return 502, "Bad Gateway", f"{target.authority}: {failure.text}"


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
