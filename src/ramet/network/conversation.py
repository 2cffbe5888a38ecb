"""`Conversation`: HTTP/1.1 with one client. What two readers could understand in different ways is an error."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ramet.core.paths import encode
from ramet.network.credentials import Headers
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.relay import BLOCK, Connection

if TYPE_CHECKING:
    import h11

HEAD_SECONDS: Final = 30.0
"""How long a client may take to say what it wants."""
LARGEST_HEAD: Final = 64 * 1024
DRAINED_BYTES: Final = 1 << 20
DRAIN_SECONDS: Final = 0.25
"""What a client may still send after an answer that did not wait for its body, and how long it may pause meanwhile."""
HOP_BY_HOP: Final = frozenset((
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade",
))  # fmt: skip
"""Headers that are about one connection, and are written anew for the next."""
_DOUBTFUL: Final = re.compile(rb"\r[^\n]|(?<!\r)\n|\n[ \t]|\0")
"""Bare line ends, folded headers."""
LEFT: Final = "its client left before the end"
_REQUEST_LINE: Final = re.compile(rb"[!-~]+ [!-~]+ HTTP/1\.[01]")


class BadRequest(Exception):
    """A request that cannot be read without doubt."""


class Conversation:
    """Call `request`, then `answer` or `refuse`, again while `goes_on`."""

    def __init__(self, connection: Connection, first: bytes = b"") -> None:
        import h11

        self.connection = connection
        self._link = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        self._has_body = False
        self.answers = False
        """Whether the answer to the request has begun."""
        self._heard = asyncio.Event()
        """Whether the request was read to its end."""
        self._watching: asyncio.Task[None] | None = None
        if first:
            self._link.receive_data(first)

    # ------------------------------------------------------------------------------------------------ reading

    async def request(self) -> h11.Request | None:
        """The head of the next request; None when the client has gone, or says nothing."""
        import h11

        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await self._head()
        except TimeoutError:
            return None
        if head is None:
            return None
        try:
            found = self._link.next_event()
        except h11.RemoteProtocolError as error:
            raise BadRequest(str(error)) from None
        if not isinstance(found, h11.Request):
            raise BadRequest("it is not a request")
        _check_length(head, found)
        self._has_body = any(
            name == b"transfer-encoding" or (name == b"content-length" and text.strip(b"0"))
            for name, text in found.headers
        )  # fmt: skip
        self._heard.clear()
        if not self._has_body:
            self._link.next_event()
            self._heard.set()
        return found

    async def _head(self) -> bytes | None:
        while True:
            given, _ = self._link.trailing_data
            head, end, _ = given.partition(b"\r\n\r\n")
            if _DOUBTFUL.search(head):
                raise BadRequest("it has a folded header, or a line that does not end with CR LF")
            line, found, _ = given.partition(b"\r\n")
            if found and not _REQUEST_LINE.fullmatch(line):
                raise BadRequest("its first line is none of HTTP/1.1")
            if len(head) > LARGEST_HEAD:
                raise BadRequest(f"its headers are larger than {LARGEST_HEAD} bytes")
            if end:
                return head
            block = await self.connection.reader.read(BLOCK)
            if not block:
                return None
            self._link.receive_data(block)

    def body(self) -> AsyncIterator[bytes] | None:
        """What the request carries, as it comes; None for nothing."""
        return self._blocks() if self._has_body else None

    async def _blocks(self) -> AsyncIterator[bytes]:
        import h11

        if self._link.they_are_waiting_for_100_continue:
            self._write(h11.InformationalResponse(status_code=100, headers=[]))
        try:
            while True:
                event = self._link.next_event()
                if event is h11.NEED_DATA:
                    self._link.receive_data(await self.connection.reader.read(BLOCK))
                elif isinstance(event, h11.Data):
                    yield bytes(event.data)
                else:
                    self._heard.set()
                    return
        except h11.RemoteProtocolError:
            raise NetworkFailure(FailureKind.PROTOCOL, "the body of the request is damaged") from None

    @property
    def trailing(self) -> bytes:
        """What the client sent after its request."""
        return self._link.trailing_data[0]

    # ------------------------------------------------------------------------------------------------ watching

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """End what is done for a request when its client goes, with ConnectionResetError."""
        task, gone = asyncio.current_task(), False
        assert task is not None

        async def watch() -> None:
            nonlocal gone
            await self._until_gone()
            gone = True
            task.cancel(LEFT)

        self._watching = asyncio.ensure_future(watch())
        try:
            yield
        except asyncio.CancelledError:
            if not gone or task.uncancel():
                raise
            raise ConnectionResetError(LEFT) from None
        finally:
            await self.unwatch()

    async def unwatch(self) -> None:
        """Leave what the client sends to another reader."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _until_gone(self) -> None:
        await self._heard.wait()
        while len(self.trailing) < BLOCK:  # requests that are sent ahead
            block = await self.connection.reader.read(BLOCK)
            if not block:
                return
            self._link.receive_data(block)
        await asyncio.Event().wait()

    # ------------------------------------------------------------------------------------------------ answering

    async def answer(self, status: int, reason: str, headers: Headers, blocks: AsyncIterator[bytes]) -> None:
        """Pass an answer on; one that breaks off on the way breaks the connection, so that it does not look whole."""
        chunked = any(name.lower() == "transfer-encoding" for name, _ in headers)
        kept = [row for row in end_to_end(headers) if not (chunked and row[0].lower() == b"content-length")]
        await self._send(status, reason, kept, blocks)

    async def _send(
        self, status: int, reason: str, headers: list[tuple[bytes, bytes]], blocks: AsyncIterator[bytes]
    ) -> None:
        import h11

        self.answers = True
        try:
            self._write(h11.Response(status_code=status, reason=encode(reason), headers=headers))
            async for block in blocks:
                self._write(h11.Data(data=block))
                await self.connection.writer.drain()
            self._write(h11.EndOfMessage())
            await self.connection.writer.drain()
        except h11.LocalProtocolError:
            self.connection.writer.transport.abort()
            raise NetworkFailure(FailureKind.PROTOCOL, "the answer is not as long as it says") from None
        except NetworkFailure:
            self.connection.writer.transport.abort()
            raise

    async def switch(self, reason: str, headers: Headers, protocol: bytes) -> None:
        """Pass on that the server speaks another protocol from here on, as the client has asked."""
        import h11

        rows = [*end_to_end(headers), (b"Connection", b"Upgrade"), (b"Upgrade", protocol)]
        self.answers = True
        try:
            self._write(h11.InformationalResponse(status_code=101, reason=encode(reason), headers=rows))
        except h11.LocalProtocolError:
            self.connection.writer.transport.abort()
            raise NetworkFailure(FailureKind.PROTOCOL, "the server changes the protocol unasked") from None
        await self.connection.writer.drain()

    async def refuse(self, status: int, reason: str, text: str, *headers: tuple[str, str]) -> None:
        """Answer with one line."""
        body = encode(f"ramet: {text}\n")
        rows = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *headers]

        async def blocks() -> AsyncIterator[bytes]:
            yield body

        await self._send(status, reason, [(encode(name), encode(value)) for name, value in rows], blocks())

    async def end(self) -> None:
        """Read a little of what the client still sends, for its system drops an answer when that is refused."""
        import h11

        if self._link.their_state is not h11.SEND_BODY:
            return
        left, writer = DRAINED_BYTES, self.connection.writer
        if writer.can_write_eof():
            writer.write_eof()
        try:
            while left > 0:
                async with asyncio.timeout(DRAIN_SECONDS):
                    block = await self.connection.reader.read(BLOCK)
                if not block:
                    return
                left -= len(block)
        except TimeoutError:
            return

    def goes_on(self) -> bool:
        """Whether the client may send another request, which is awaited then."""
        import h11

        if self._link.our_state is not h11.DONE or self._link.their_state is not h11.DONE:
            return False
        self._link.start_next_cycle()
        self.answers = False
        return True

    def _write(self, event: h11.Event) -> None:
        self.connection.writer.write(self._link.send(event) or b"")


def end_to_end(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers without those of one connection, and without those that `Connection` names."""
    rows = [(encode(name).lower(), name, text) for name, text in headers]
    named = {word.strip().lower() for key, _, text in rows if key == b"connection" for word in encode(text).split(b",")}
    named -= {b"content-length", b"host"}
    return [(encode(name), encode(text)) for key, name, text in rows if key not in HOP_BY_HOP and key not in named]


def _check_length(head: bytes, request: h11.Request) -> None:
    """Refuse a request whose length is said in more than one way."""
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    sizes = [text for name, _, text in lines if name.lower() == b"content-length"]
    codings = [text for name, _, text in lines if name.lower() == b"transfer-encoding"]
    if len(sizes) + len(codings) > 1 or any(b"," in text for text in sizes):
        raise BadRequest("it says its length more than once")
    if codings and request.http_version != b"1.1":
        raise BadRequest("it is chunked, and not of HTTP/1.1")
