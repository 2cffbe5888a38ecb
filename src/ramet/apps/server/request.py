"""`Call` and `Reply`: request and response of a handler, on bare ASGI for speed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from ramet.apps.server.problems import Refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Blocks = AsyncIterator[bytes]
T = TypeVar("T")

JSON: Final = (b"content-type", b"application/json")
PROBLEM: Final = (b"content-type", b"application/problem+json")
NDJSON: Final = (b"content-type", b"application/x-ndjson")
NO_STORE: Final = (b"cache-control", b"no-store")
NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")
PATIENCE: Final = 0.01
"""Seconds until a running request is watched for a client disconnect."""

_encoder = msgspec.json.Encoder()


class ClientGone(Exception):
    """The client closed the connection; its request was stopped."""


def encode_json(value: object) -> bytes:
    """Encode JSON; names that are not UTF-8 become lone surrogates, which Python and JavaScript decode again."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


class Reply:
    """A response: a whole body, or blocks that are sent as they arrive."""

    __slots__ = ("blocks", "body", "headers", "status")

    def __init__(
        self,
        body: bytes = b"",
        status: int = 200,
        headers: list[tuple[bytes, bytes]] | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        self.body, self.status, self.headers, self.blocks = body, status, headers or [], blocks


def answer(value: object, status: int = 200, headers: list[tuple[bytes, bytes]] | None = None) -> Reply:
    return Reply(encode_json(value), status, [JSON, NO_STORE, *(headers or [])])


class Call:
    """One request."""

    __slots__ = ("_headers", "_query", "_receive", "client", "gone", "parts", "scope")

    def __init__(self, scope: Scope, receive: Receive, client: str = "") -> None:
        self.scope, self._receive, self.client = scope, receive, client
        self._headers: dict[bytes, bytes] | None = None
        self._query: dict[str, str] | None = None
        self.parts: list[str] = []
        """Values of the route's placeholders."""
        self.gone = False

    def header(self, name: bytes) -> str | None:
        if self._headers is None:
            self._headers = dict(self.scope["headers"])
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    def query(self, kind: type[T]) -> T:
        """Parse the query as the route's type; refuse repeated and unknown names."""
        return msgspec.convert(parse_query(self.scope["query_string"]), kind, strict=False)

    async def peek(self, limit: int) -> bytes:
        """A digest of the first `limit` bytes of the body and of its declared length; the body can still be read."""
        seen: list[Message] = []
        digest, size, more = hashlib.sha256(), 0, True
        while more and size <= limit:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            seen.append(message)
            piece = message.get("body", b"")
            digest.update(piece[: max(0, limit - size)])
            size += len(piece)
            more = bool(message.get("more_body"))
        rest = self._receive

        async def receive() -> Message:
            return seen.pop(0) if seen else await rest()

        self._receive = receive
        length = self.header(b"content-length") or "" if size > limit else str(size)
        return digest.digest() + length.encode()

    async def body(self, limit: int) -> bytes:
        """Read the whole body; refuse one longer than `limit` with 413."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            data: bytes = message.get("body", b"")
            if len(data) > limit:
                raise too_large(limit)
            return data
        pieces: list[bytes] = []
        size = 0
        while True:
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
            if not message.get("more_body"):
                return b"".join(pieces)
            message = await self._receive()

    async def blocks(self, limit: int) -> Blocks:
        """Stream the body. A client that disconnects raises an error, so that no partial body is stored."""
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit:
            raise too_large(limit)
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            if piece:
                yield piece
            if not message.get("more_body"):
                return

    async def watched(self, work: Awaitable[T]) -> T:
        """Await `work`, and cancel it when the client disconnects. Quick work is not watched and costs nothing."""
        task = asyncio.current_task()
        assert task is not None
        watcher: asyncio.Task[None] | None = None

        async def watch() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            self.gone = True
            task.cancel()

        def begin() -> None:
            nonlocal watcher
            watcher = asyncio.ensure_future(watch())

        timer = asyncio.get_running_loop().call_later(PATIENCE, begin)
        try:
            return await work
        except asyncio.CancelledError:
            if self.gone:
                raise ClientGone from None
            raise
        finally:
            timer.cancel()
            if watcher is not None:
                watcher.cancel()


def parse_query(raw: bytes) -> dict[str, str]:
    """Parse a query; bytes that are not UTF-8 are kept, because paths may contain them."""
    found: dict[str, str] = {}
    for pair in raw.split(b"&") if raw else ():
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        key = unquote_to_bytes(name).decode("utf-8", "surrogateescape")
        if key in found:
            raise Refusal("invalid_argument", f"parameter {key!r} is repeated", "send it once")
        found[key] = unquote_to_bytes(value).decode("utf-8", "surrogateescape")
    return found


def decode_json(data: bytes, kind: type[T]) -> T:
    """Decode a JSON body as the route's type."""
    return msgspec.json.decode(data or b"{}", type=kind)


def too_large(limit: int) -> Refusal:
    return Refusal("limit_exceeded", f"the body is larger than {limit} bytes", "send less", status=413)


async def send_reply(reply: Reply, call: Call, send: Send) -> None:
    """Send a response; blocks are sent with back-pressure, and a client disconnect ends them."""
    head = call.scope["method"] == "HEAD"
    if reply.blocks is None:
        length = (b"content-length", str(len(reply.body)).encode())
        headers = [*reply.headers, NO_SNIFF]
        if not any(name == b"content-length" for name, _ in headers) and reply.status not in (204, 304):
            headers.append(length)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head else reply.body})
        return
    blocks = reply.blocks

    async def pump() -> None:
        await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers, NO_SNIFF]})
        async for block in blocks:
            await send({"type": "http.response.body", "body": block, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    try:
        await call.watched(pump())
    finally:
        close: Callable[[], Awaitable[None]] | None = getattr(blocks, "aclose", None)
        if close is not None:
            await close()


def plain(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
