"""`Door`: the way from a workspace to the network. Every hop is decided, checked, signed, bounded and recorded here.

Rules that this file keeps:
- One call is one request to one host: a client that follows redirects comes back for each.
- What is recorded and shown is what the client wrote; secrets are added afterwards.
- The address that was checked is the address that is contacted.
- The loopback of a box belongs to the workspace: no policy decides about it, and nothing of it is recorded.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ramet.core.paths import decode
from ramet.network.addresses import is_public, plain_address
from ramet.network.credentials import Cover, Headers, sign
from ramet.network.exchange import Caller, Exchange, Marks, NetworkRecord, Progress, Waits
from ramet.network.failures import FailureKind, NetworkFailure, failure_of
from ramet.network.network import REMEDY, Decision, Network, NetworkLimits
from ramet.network.relay import BLOCK, Connection, Count, relay
from ramet.network.resolver import Resolver
from ramet.network.rules import NetworkVerdict, Outgoing
from ramet.network.targets import Target
from ramet.network.transport import Body, Dial, Transport

if TYPE_CHECKING:
    import httpx2

MINUTE: Final = 60.0
LONGEST_PATH: Final = 512
"""Characters of a path in a record."""
LOOPBACK: Final = "127.0.0.1"
OFF: Final = f"the network is off in this workspace; {REMEDY}"
HOST: Final = "host"
SWITCHING: Final = 101
LINGER: Final = 60.0
"""Seconds for which a server of a tunnel may be silent after its client has ended: most have gone then."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

Note = Callable[[NetworkRecord], None]
Question = Callable[[Outgoing], Awaitable[bool | str]]
"""Asks about a request: True allows this one, "host" also later ones of the session to the host."""


class Door:
    """Opens exchanges within a `Network`; without one only with `inside`, the loopback of the workspace's box."""

    def __init__(
        self,
        network: Network | None,
        *,
        note: Note = lambda record: None,
        question: Question | None = None,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
        inside: Dial | None = None,
    ) -> None:
        self.network = network
        self.limits = NetworkLimits() if network is None else network.limits
        self.resolver = resolver or Resolver()
        self.inside = inside
        self.watch: Note | None = None
        """Hears of each request, after it was noted."""
        self._note, self._question, self._clock = note, question, clock
        self._transport = Transport("a request to the network", "" if network is None else network.authorities)
        self._remembered: set[tuple[str, str, int, str]] = set()
        """Permissions that were given for a host: session, host, port, rule."""
        self._starts: deque[float] = deque()
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    # ---------------------------------------------------------------------------------------------- deciding

    async def _decide(self, network: Network, out: Outgoing) -> Decision:
        decision = network.decide(out)
        if decision.verdict is not NetworkVerdict.ASK:
            return decision
        key = (out.session_id, out.target.host, out.target.port, decision.rule)
        answered: bool | str = key in self._remembered
        if not answered and self._question is not None:
            answered = await self._question(out)
        if answered == HOST:
            self._remembered.add(key)
        if answered:
            return decision._replace(verdict=NetworkVerdict.ALLOW)
        why = decision.reason or "it takes a permission that was not given"
        return decision._replace(verdict=NetworkVerdict.DENY, reason=why)

    async def _permit(self, out: Outgoing, progress: Progress) -> Network:
        """Decide about a request, which may take a question. Raises NetworkFailure."""
        network = self.network
        if network is None:
            raise NetworkFailure(FailureKind.OFF, OFF)
        decision = await self._decide(network, out)
        progress.rule = decision.rule
        if decision.verdict is NetworkVerdict.DENY:
            raise _refused(out, decision)
        self._count_start()
        return network

    async def _addresses(self, network: Network, out: Outgoing, progress: Progress) -> list[str]:
        """The addresses that may be contacted. Raises NetworkFailure."""
        try:
            found = await self.resolver.addresses(out.target.host, out.target.port)
        except OSError:
            raise NetworkFailure(FailureKind.RESOLVE, FailureKind.RESOLVE.value) from None
        refusals = [network.refuses_address(out, address) for address in found]
        allowed = [address for address, refusal in zip(found, refusals, strict=True) if refusal is None]
        if not allowed:
            refusal = next((one for one in refusals if one is not None), None)
            progress.rule = refusal.rule if refusal is not None else ""
            raise _refused(out, refusal or Decision(NetworkVerdict.DENY, "", "it has no address"))
        return allowed

    def _stays_inside(self, out: Outgoing) -> bool:
        """Whether a request is for the loopback of the box: no rule names the loopback of the machine for it."""
        target = out.target
        loopback = target.host == "localhost" or (target.is_address and plain_address(target.host).is_loopback)
        if self.inside is None or not loopback:
            return False
        network = self.network
        return network is None or not any(
            rule.verdict is not NetworkVerdict.DENY and rule.names(out) for rule in network.rules
        )

    def stays_inside(self, caller: Caller, target: Target) -> bool:
        """Whether a request is for a program of the box."""
        return self._stays_inside(Outgoing("GET", target, caller.session_id, caller.agent_id))

    def intercepts(self, caller: Caller, target: Target) -> bool:
        """Whether what a native program sends to a host is read, instead of passed through a tunnel."""
        out = Outgoing("CONNECT", target, caller.session_id, caller.agent_id)
        return self.network is not None and self.network.intercepts(out) and not self._stays_inside(out)

    def _count_start(self) -> None:
        most = self.limits.requests_per_minute
        if most is None:
            return
        now = time.monotonic()
        while self._starts and now - self._starts[0] > MINUTE:
            self._starts.popleft()
        if len(self._starts) >= most:
            why = f"the network policy allows {most} requests a minute; wait, or ask its owner for more"
            raise NetworkFailure(FailureKind.LIMIT, why)
        self._starts.append(now)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One of the requests that may run at the same time."""
        loop = asyncio.get_running_loop()
        for other in list(self._turns):  # loops of other threads come and go meanwhile
            if other.is_closed():
                self._turns.pop(other, None)
        line = self._turns.setdefault(loop, asyncio.Semaphore(self.limits.concurrency))
        async with line:
            yield

    @asynccontextmanager
    async def _bounded(self) -> AsyncIterator[None]:
        seconds = self.limits.timeout
        try:
            async with asyncio.timeout(seconds) as bound:
                yield
        except TimeoutError:
            if not bound.expired():
                raise
            why = f"the network policy ends a request after {seconds:g} seconds"
            raise NetworkFailure(FailureKind.TIMEOUT, why) from None

    def check_size(self, size: int) -> None:
        """Refuse a body above the limit of the policy."""
        if size > self.limits.body_bytes:
            why = f"the network policy allows {self.limits.body_bytes} bytes for one body"
            raise NetworkFailure(FailureKind.LIMIT, why)

    @asynccontextmanager
    async def recording(self, caller: Caller, out: Outgoing) -> AsyncIterator[Progress]:
        """Record one request, however it ends."""
        started, progress = time.monotonic(), Progress()
        verdict = "allow"
        try:
            yield progress
        except NetworkFailure as error:
            progress.error = error.text
            if error.kind in (FailureKind.REFUSED, FailureKind.OFF):
                verdict = "deny"
            raise
        except asyncio.CancelledError as cancelled:
            if not (out.tunnel and progress.status):  # a tunnel ends with its command
                progress.error = str(cancelled) or "cancelled"
            raise
        except BaseException:
            progress.error = progress.error or "its client left before the end"
            raise
        finally:
            target = out.target
            path = target.path if len(target.path) <= LONGEST_PATH else target.path[:LONGEST_PATH] + "..."
            if self.network is not None:
                record = NetworkRecord(
                    self._clock(), caller.session_id, caller.agent_id, caller.client, out.method, target.scheme,
                    target.host, target.port, "" if out.tunnel else path, verdict, progress.rule, progress.address,
                    progress.status, progress.bytes_sent, progress.bytes_received,
                    round(time.monotonic() - started, 6), progress.error,
                )  # fmt: skip
                self._note(record)
                if self.watch is not None:
                    self.watch(record)

    # ---------------------------------------------------------------------------------------------- exchanging

    @asynccontextmanager
    async def open(
        self,
        caller: Caller,
        method: str,
        target: Target,
        headers: Sequence[tuple[str, str]],
        body: Body = None,
        *,
        waits: Waits | None = None,
    ) -> AsyncIterator[Exchange]:
        """Send one request, and give its answer.

        `headers` are all that is sent, but for secrets, and for Host, which only programs of the box get as it is.
        """
        out = Outgoing(method, target, caller.session_id, caller.agent_id)
        async with AsyncExitStack() as stack:
            if self._stays_inside(out):
                _check_installed()
                request = _Request(self, out, Progress(), waits or Waits(), self.inside)
                yield await request.send([LOOPBACK], headers, body, stack)
                return
            progress = await stack.enter_async_context(self.recording(caller, out))
            _check_installed()
            if not _TOKEN.fullmatch(method):
                raise _refused(out, Decision(NetworkVerdict.DENY, "", "the method is not a word"))
            network = await self._permit(out, progress)
            await stack.enter_async_context(self._bounded())
            addresses = await self._addresses(network, out, progress)
            await stack.enter_async_context(self._turn())
            yield await _Request(self, out, progress, waits or Waits()).send(addresses, headers, body, stack)

    @asynccontextmanager
    async def tunnel(self, caller: Caller, target: Target) -> AsyncIterator[Tunnel]:
        """Connect to a host for a program that speaks TLS through it: only its host and port are known."""
        out = Outgoing("CONNECT", target, caller.session_id, caller.agent_id, tunnel=True)
        async with AsyncExitStack() as stack:
            if self.inside is not None and self._stays_inside(out):
                connection = await _connect_inside(self.inside, target.port)
                stack.callback(connection.writer.close)
                yield Tunnel(connection, Progress(), lambda size: None)
                return
            progress = await stack.enter_async_context(self.recording(caller, out))
            network = await self._permit(out, progress)
            await stack.enter_async_context(self._bounded())
            addresses = await self._addresses(network, out, progress)
            await stack.enter_async_context(self._turn())
            connection = await _connect(addresses, target.port, progress)
            stack.callback(connection.writer.close)
            progress.status = 200
            yield Tunnel(connection, progress, self.check_size)

    async def close(self) -> None:
        await self._transport.close()


class _Request:
    """One admitted request: to addresses of the internet, or to the box by `dial`."""

    def __init__(self, door: Door, out: Outgoing, progress: Progress, waits: Waits, dial: Dial | None = None) -> None:
        self._door, self._out, self._progress, self._waits, self._dial = door, out, progress, waits, dial
        self._marks, self._started = Marks(), time.monotonic()

    async def send(
        self, addresses: Sequence[str], headers: Headers | Sequence[tuple[str, str]], body: Body, stack: AsyncExitStack
    ) -> Exchange:
        target, progress = self._out.target, self._progress
        network = self._door.network
        credentials = network.credentials if network is not None and self._dial is None else ()
        plain = [(name, text) for name, text in headers if name.lower() != "host"]
        hosts = [text for name, text in headers if name.lower() == "host"] if self._dial is not None else []
        exposed = target.scheme == "http" and any(map(is_public, addresses))
        signed = sign(credentials, self._out, target.request_line, plain, exposed=exposed)
        if isinstance(body, bytes):
            self._count_sent(len(body))
        elif body is not None:
            body = self._outgoing(body)
        asked = [("Host", hosts[0] if hosts else target.authority), *signed.headers]
        response = await self._first_answer(addresses, signed.request_line, asked, body)
        stack.push_async_callback(response.aclose)
        self._marks.began = time.monotonic() - self._started
        progress.status = response.status_code
        cover = Cover(signed.secrets)
        given = [(cover.text(decode(name)), cover.text(decode(text))) for name, text in response.headers.raw]
        reason = cover.text(decode(response.extensions.get("reason_phrase", b"")))
        version = decode(response.extensions.get("http_version", b"HTTP/1.1"))
        made = Exchange(
            response.status_code, reason, version, given, progress.address, self._marks, self._incoming(response, cover)
        )
        if response.status_code == SWITCHING and (stream := response.extensions.get("network_stream")) is not None:
            made.switched = _Switched(stream, cover, self._count_sent, self._count_received)
        return made

    async def _first_answer(
        self, addresses: Sequence[str], request_line: str, asked: Headers, body: Body
    ) -> httpx2.Response:
        """Ask one address after the other until one accepts a connection."""
        target, waits = self._out.target, self._waits
        for at, address in enumerate(addresses):
            self._progress.address = address
            try:
                return await self._door._transport.send(
                    self._out.method, target, address, asked, body, request_line=request_line,
                    timeout=waits.silence, connect_timeout=waits.connect, verify=waits.verify,
                    authorities=waits.authorities, trace=self._trace, exact=True, dial=self._dial,
                )  # fmt: skip
            except Exception as error:
                failure = failure_of(error)
                if failure is None:
                    raise
                if failure.kind is not FailureKind.CONNECT or at == len(addresses) - 1:
                    raise failure from None
        raise NetworkFailure(FailureKind.CONNECT, FailureKind.CONNECT.value)

    async def _trace(self, event: str, info: dict[str, Any]) -> None:
        now = time.monotonic() - self._started
        if event == "connection.connect_tcp.complete":
            self._marks.connected = now
        elif event == "connection.start_tls.complete":
            self._marks.secured = now

    def _count_sent(self, size: int) -> None:
        self._progress.bytes_sent += size
        if self._dial is None:
            self._door.check_size(self._progress.bytes_sent)

    def _count_received(self, size: int) -> None:
        self._progress.bytes_received += size
        if self._dial is None:
            self._door.check_size(self._progress.bytes_received)

    async def _outgoing(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for block in body:
            self._count_sent(len(block))
            yield block

    async def _incoming(self, response: httpx2.Response, cover: Cover) -> AsyncIterator[bytes]:
        try:
            async for block in response.aiter_raw():
                self._count_received(len(block))
                if shown := cover.feed(block):
                    yield shown
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            raise failure from None
        if rest := cover.rest():
            yield rest


class _Switched:
    """A connection to a server that has changed its protocol, such as a WebSocket."""

    def __init__(self, stream: Any, cover: Cover, sent: Count, received: Count) -> None:
        self._stream, self._cover, self._sent, self._received = stream, cover, sent, received

    async def relay(self, first: bytes, client: Connection) -> None:
        both = [asyncio.ensure_future(self._send(first, client)), asyncio.ensure_future(self._receive(client))]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Exception as error:
            failure = failure_of(error)
            raise error if failure is None else failure from None
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _send(self, block: bytes, client: Connection) -> None:
        while True:
            if block:
                self._sent(len(block))
                await self._stream.write(block)
            block = await client.reader.read(BLOCK)
            if not block:
                return

    async def _receive(self, client: Connection) -> None:
        while block := await self._stream.read(BLOCK):
            self._received(len(block))
            client.writer.write(self._cover.whole(block))
            await client.writer.drain()


@dataclass(frozen=True)
class SessionDoor:
    """The door as commands of one session see it."""

    door: Door
    session_id: str
    agent: Callable[[], str]

    def caller(self, client: str) -> Caller:
        return Caller(client, self.session_id, self.agent())


@dataclass
class Tunnel:
    """A connection to a host whose bytes Ramet counts and does not read."""

    connection: Connection
    progress: Progress
    check: Callable[[int], None]

    async def relay(self, first: bytes, client: Connection) -> None:
        """Copy in both directions until both have ended; `first` was read already."""
        self.connection.writer.write(first)
        self._sent(len(first))
        await relay(client, self.connection, sent=self._sent, received=self._received, linger=LINGER)

    def _sent(self, size: int) -> None:
        self.progress.bytes_sent += size
        self.check(self.progress.bytes_sent)

    def _received(self, size: int) -> None:
        self.progress.bytes_received += size
        self.check(self.progress.bytes_received)


async def _connect_inside(dial: Dial, port: int) -> Connection:
    try:
        return Connection(*await asyncio.open_connection(sock=await dial(port)))
    except OSError:
        raise NetworkFailure(FailureKind.CONNECT, FailureKind.CONNECT.value) from None


async def _connect(addresses: Sequence[str], port: int, progress: Progress) -> Connection:
    """Connect to the first address that accepts."""
    for address in addresses:
        progress.address = address
        try:
            return Connection(*await asyncio.open_connection(address, port))
        except OSError:
            continue
    raise NetworkFailure(FailureKind.CONNECT, FailureKind.CONNECT.value)


def _check_installed() -> None:
    try:
        import httpx2  # noqa: F401
    except ImportError:
        why = "the network needs an optional dependency outside: pip install 'ramet[http]'"
        raise NetworkFailure(FailureKind.REFUSED, why) from None


def _refused(out: Outgoing, decision: Decision) -> NetworkFailure:
    """One line that names the request, the rule and the remedy."""
    by = f" (rule {decision.rule!r})" if decision.rule else ""
    method = "" if out.method == "GET" else f"{out.method[:40]!a} " if not out.method.isalpha() else f"{out.method} "
    where = out.target.authority if out.tunnel else out.target.shown
    text = f"the network policy refuses {method}{where}: {decision.reason or 'a rule denies it'}{by}; {REMEDY}"
    return NetworkFailure(FailureKind.REFUSED, text, decision.rule)
