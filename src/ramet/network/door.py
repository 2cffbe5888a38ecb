"""`Door`: the way from a workspace to the network. Every hop is decided, checked, signed, bounded and recorded here.

Rules that this file keeps:
- One call is one request to one host: a client that follows redirects comes back for each.
- What is recorded and shown is what the client wrote; secrets are added afterwards.
- The address that was checked is the address that is contacted.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ramet.core.paths import decode
from ramet.network.credentials import Cover, Headers, Signed, sign
from ramet.network.failures import FailureKind, NetworkFailure, failure_of
from ramet.network.network import REMEDY, Decision, Network
from ramet.network.resolver import Resolver
from ramet.network.rules import NetworkVerdict, Outgoing
from ramet.network.targets import Target
from ramet.network.transport import Body, Transport

if TYPE_CHECKING:
    import httpx2

MINUTE: Final = 60.0
_BLOCK: Final = 64 * 1024
LONGEST_PATH: Final = 512
"""Characters of a path in a record."""


class NetworkRecord(NamedTuple):
    """One decision, and the request that followed. The path has no query, and nothing has a secret."""

    at: float
    session_id: str
    agent_id: str
    client: str
    """What asked: `curl`, `wget`, `native`."""
    method: str
    scheme: str
    host: str
    port: int
    path: str
    verdict: str
    """`allow` or `deny`; a question is what it was answered."""
    rule: str
    """The rule that decided; empty where none did."""
    address: str
    status: int
    """0 without an answer."""
    bytes_sent: int
    bytes_received: int
    seconds: float
    error: str


_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
Note = Callable[[NetworkRecord], None]
Question = Callable[[Outgoing], Awaitable[bool | str]]
"""Asks about a request: True allows this one, "host" also later ones of the session to the host."""
HOST: Final = "host"


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    client: str
    session_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True)
class Waits:
    """How long a client waits, and whom it trusts."""

    connect: float | None = None
    silence: float | None = 300.0
    """Seconds without a byte."""
    verify: bool = True
    authorities: str | None = None
    """Certificates (PEM) to trust instead of the machine's."""


@dataclass
class Marks:
    """Seconds since the beginning of the request."""

    resolved: float = 0.0
    connected: float = 0.0
    secured: float = 0.0
    began: float = 0.0
    """When the first byte of the answer came."""


@dataclass
class Exchange:
    """An answer whose body is unread. `headers` and `blocks` have no secret of Ramet in them."""

    status: int
    reason: str
    version: str
    headers: Headers
    address: str
    marks: Marks
    blocks: AsyncIterator[bytes] = field(repr=False)

    def header(self, name: str) -> str | None:
        """The last header of a name."""
        found = [text for given, text in self.headers if given.lower() == name]
        return found[-1] if found else None


class Door:
    """Opens exchanges within a `Network`. One per workspace."""

    def __init__(
        self,
        network: Network,
        *,
        note: Note = lambda record: None,
        question: Question | None = None,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.network = network
        self.resolver = resolver or Resolver()
        self._note, self._question, self._clock = note, question, clock
        self._transport = Transport("a request to the network")
        self._remembered: set[tuple[str, str, int, str]] = set()
        """Permissions that were given for a host: session, host, port, rule."""
        self._starts: deque[float] = deque()
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    # ---------------------------------------------------------------------------------------------- deciding

    async def _decide(self, out: Outgoing) -> Decision:
        decision = self.network.decide(out)
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

    async def admit(self, caller: Caller, out: Outgoing, entry: dict[str, Any]) -> list[str]:
        """Decide about a request; returns the addresses that may be contacted. Raises NetworkFailure."""
        decision = await self._decide(out)
        entry["rule"] = decision.rule
        if decision.verdict is NetworkVerdict.DENY:
            raise _refused(out, decision)
        self._count_start()
        try:
            found = await self.resolver.addresses(out.target.host, out.target.port)
        except OSError:
            raise NetworkFailure(FailureKind.RESOLVE, FailureKind.RESOLVE.value) from None
        refusals = [self.network.refuses_address(out, address) for address in found]
        allowed = [address for address, refusal in zip(found, refusals, strict=True) if refusal is None]
        if not allowed:
            refusal = next((one for one in refusals if one is not None), None)
            entry["rule"] = refusal.rule if refusal is not None else ""
            raise _refused(out, refusal or Decision(NetworkVerdict.DENY, "", "it has no address"))
        return allowed

    def _count_start(self) -> None:
        most = self.network.limits.requests_per_minute
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
    async def turn(self) -> AsyncIterator[None]:
        """One of the requests that may run at the same time."""
        loop = asyncio.get_running_loop()
        for other in list(self._turns):  # loops of other threads come and go meanwhile
            if other.is_closed():
                self._turns.pop(other, None)
        line = self._turns.setdefault(loop, asyncio.Semaphore(self.network.limits.concurrency))
        async with line:
            yield

    @asynccontextmanager
    async def recording(self, caller: Caller, out: Outgoing) -> AsyncIterator[dict[str, Any]]:
        """Record one request, however it ends; what is inside fills in rule, address, status and bytes."""
        started = time.monotonic()
        entry: dict[str, Any] = {
            "rule": "", "address": "", "status": 0, "bytes_sent": 0, "bytes_received": 0, "error": "",
        }  # fmt: skip
        verdict = "allow"
        try:
            yield entry
        except NetworkFailure as error:
            entry["error"] = error.text
            if error.kind is FailureKind.REFUSED:
                verdict = "deny"
            raise
        except BaseException as error:
            entry["error"] = entry["error"] or type(error).__name__
            raise
        finally:
            target = out.target
            path = target.path if len(target.path) <= LONGEST_PATH else target.path[:LONGEST_PATH] + "..."
            self._note(NetworkRecord(
                self._clock(), caller.session_id, caller.agent_id, caller.client, out.method, target.scheme,
                target.host, target.port, "" if out.tunnel else path, verdict, entry["rule"], entry["address"],
                entry["status"], entry["bytes_sent"], entry["bytes_received"],
                round(time.monotonic() - started, 6), entry["error"],
            ))  # fmt: skip

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
        """Send one request, and give its answer. `headers` are all that is sent, but for secrets and Host."""
        waits = waits or Waits()
        limits = self.network.limits
        out = Outgoing(method, target, caller.session_id, caller.agent_id)
        async with AsyncExitStack() as stack:
            entry = await stack.enter_async_context(self.recording(caller, out))
            try:
                _check_installed()
                if not _TOKEN.fullmatch(method):
                    raise _refused(out, Decision(NetworkVerdict.DENY, "", "the method is not a word"))
                async with asyncio.timeout(limits.timeout) as bound:
                    addresses = await self.admit(caller, out, entry)
                    await stack.enter_async_context(self.turn())
                    exchange = await self._exchange(out, addresses, headers, body, waits, entry, stack)
                    yield exchange
            except TimeoutError:
                if not bound.expired():
                    raise
                why = f"the network policy ends a request after {limits.timeout:g} seconds"
                raise NetworkFailure(FailureKind.TIMEOUT, why) from None

    @asynccontextmanager
    async def tunnel(self, caller: Caller, target: Target) -> AsyncIterator[Tunnel]:
        """Connect to a host for a program that speaks TLS through it: only its host and port are known."""
        limits = self.network.limits
        out = Outgoing("CONNECT", target, caller.session_id, caller.agent_id, tunnel=True)
        async with AsyncExitStack() as stack:
            entry = await stack.enter_async_context(self.recording(caller, out))
            try:
                async with asyncio.timeout(limits.timeout) as bound:
                    addresses = await self.admit(caller, out, entry)
                    await stack.enter_async_context(self.turn())
                    reader, writer = await _connect(addresses, target.port, entry)
                    stack.callback(writer.close)
                    entry["status"] = 200
                    yield Tunnel(reader, writer, entry, self._check_size)
            except TimeoutError:
                if not bound.expired():
                    raise
                why = f"the network policy ends a request after {limits.timeout:g} seconds"
                raise NetworkFailure(FailureKind.TIMEOUT, why) from None

    async def _exchange(
        self,
        out: Outgoing,
        addresses: Sequence[str],
        headers: Sequence[tuple[str, str]],
        body: Body,
        waits: Waits,
        entry: dict[str, Any],
        stack: AsyncExitStack,
    ) -> Exchange:
        target, marks, started = out.target, Marks(), time.monotonic()
        plain = [(name, text) for name, text in headers if name.lower() != "host"]
        signed = sign(self.network.credentials, out, target.request_line, plain)
        asked = [("Host", target.authority), *signed.headers]
        content = body if body is None or isinstance(body, bytes) else self._outgoing(body, entry)
        if isinstance(body, bytes):
            self._check_size(len(body))
            entry["bytes_sent"] = len(body)
        response = await self._first_answer(out, addresses, asked, content, signed, waits, entry, marks, started)
        stack.push_async_callback(response.aclose)
        marks.began = time.monotonic() - started
        entry["status"] = response.status_code
        cover = Cover(signed.secrets)
        given = [(decode(name), cover.text(decode(text))) for name, text in response.headers.raw]
        blocks = self._incoming(response, cover, entry)
        reason = decode(response.extensions.get("reason_phrase", b""))
        version = decode(response.extensions.get("http_version", b"HTTP/1.1"))
        return Exchange(response.status_code, reason, version, given, entry["address"], marks, blocks)

    async def _first_answer(
        self,
        out: Outgoing,
        addresses: Sequence[str],
        asked: Headers,
        content: Body,
        signed: Signed,
        waits: Waits,
        entry: dict[str, Any],
        marks: Marks,
        started: float,
    ) -> httpx2.Response:
        """Ask one address after the other until one accepts a connection."""

        async def trace(event: str, info: dict[str, Any]) -> None:
            now = time.monotonic() - started
            if event == "connection.connect_tcp.complete":
                marks.connected = now
            elif event == "connection.start_tls.complete":
                marks.secured = now

        for at, address in enumerate(addresses):
            entry["address"] = address
            try:
                return await self._transport.send(
                    out.method, out.target, address, asked, content, request_line=signed.request_line,
                    timeout=waits.silence, connect_timeout=waits.connect, verify=waits.verify,
                    authorities=waits.authorities, trace=trace, exact=True,
                )  # fmt: skip
            except Exception as error:
                failure = failure_of(error)
                if failure is None:
                    raise
                if failure.kind is not FailureKind.CONNECT or at == len(addresses) - 1:
                    raise failure from None
        raise NetworkFailure(FailureKind.CONNECT, FailureKind.CONNECT.value)

    async def _outgoing(self, body: AsyncIterator[bytes], entry: dict[str, Any]) -> AsyncIterator[bytes]:
        async for block in body:
            entry["bytes_sent"] += len(block)
            self._check_size(entry["bytes_sent"])
            yield block

    async def _incoming(self, response: httpx2.Response, cover: Cover, entry: dict[str, Any]) -> AsyncIterator[bytes]:
        try:
            async for block in response.aiter_raw():
                entry["bytes_received"] += len(block)
                self._check_size(entry["bytes_received"])
                if shown := cover.feed(block):
                    yield shown
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            raise failure from None
        if rest := cover.rest():
            yield rest

    def _check_size(self, size: int) -> None:
        if size > self.network.limits.body_bytes:
            why = f"the network policy allows {self.network.limits.body_bytes} bytes for one body"
            raise NetworkFailure(FailureKind.LIMIT, why)

    async def close(self) -> None:
        await self._transport.close()


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

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    entry: dict[str, Any]
    check: Callable[[int], None]

    async def pump(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy in both directions until both have ended; `first` was read already."""
        self.writer.write(first)
        self.entry["bytes_sent"] += len(first)
        both = [
            asyncio.ensure_future(self._copy(reader, self.writer, "bytes_sent")),
            asyncio.ensure_future(self._copy(self.reader, writer, "bytes_received")),
        ]
        try:
            await asyncio.gather(*both)
        except ConnectionError:
            return  # one side has gone
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counter: str) -> None:
        while block := await reader.read(_BLOCK):
            self.entry[counter] += len(block)
            self.check(self.entry[counter])
            writer.write(block)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _connect(
    addresses: Sequence[str], port: int, entry: dict[str, Any]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts."""
    for address in addresses:
        entry["address"] = address
        try:
            return await asyncio.open_connection(address, port)
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
