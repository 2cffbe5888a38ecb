"""A service of the tests: a table of routes on a loopback server, with a log and faults.

The server runs in a thread with its own event loop, so that a test may use as many loops as it likes. It listens on
two loopback addresses: `base` is the API, `signed` the other host that signed downloads come from.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tests.support.descriptions import Checker, checked_ports

API, SIGNED = "127.0.0.1", "127.0.0.2"
SECONDS = 100
"""In which a server that is not stuck begins and ends."""


@dataclass(frozen=True)
class Call:
    """A request as the service got it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    host: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    """Bytes are sent as they are, anything else as JSON."""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Fault:
    """What goes wrong, once: an answer instead of the real one, or a connection that ends before or after the work."""

    matches: Callable[[Call], bool]
    reply: Reply | None = None
    lost: bool = False
    """The request is carried out, and its answer is lost."""
    times: int = 1


Handler = Callable[..., Reply]


class Fake:
    """A service; subclasses fill `routes` with `(method, pattern, handler)`."""

    def __init__(self, checker: Checker | None = None, *, etags: bool = False) -> None:
        self.routes: list[tuple[str, re.Pattern[str], Handler]] = []
        self.calls: list[Call] = []
        self.statuses: list[int] = []
        self.faults: list[Fault] = []
        self._checker, self._etags = checker, etags
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._servers: list[asyncio.Server] = []
        self._served: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.port = 0

    def route(self, method: str, pattern: str, handler: Handler) -> None:
        """`{name}` in a pattern is one segment, `{name+}` the rest of the path; the handler gets them as strings."""
        source = re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", pattern)
        source = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", source)
        self.routes.append((method, re.compile(source), handler))

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(SECONDS)
        checked_ports[self.port] = self._checker
        return self

    def __exit__(self, *error: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()
        del checked_ports[self.port]

    async def _open(self) -> None:
        for _ in range(20):
            first = await asyncio.start_server(self._serve, API, 0)
            self.port = first.sockets[0].getsockname()[1]
            try:
                self._servers = [first, await asyncio.start_server(self._serve, SIGNED, self.port)]
                return
            except OSError:
                first.close()
        raise OSError("no port is free on both addresses")

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        served = dict(self._served)
        for writer in served.values():
            writer.transport.abort()
        if served:
            await asyncio.wait(served)

    @property
    def base(self) -> str:
        return f"http://{API}:{self.port}"

    @property
    def signed(self) -> str:
        return f"http://{SIGNED}:{self.port}"

    def fault(self, method: str, path: str, reply: Reply | None = None, *, lost: bool = False, times: int = 1) -> None:
        def matches(call: Call) -> bool:
            return call.method == method and re.search(path, call.path) is not None

        self.faults.append(Fault(matches, reply, lost, times))

    def count(self, method: str = "", path: str = "") -> int:
        return sum(call.method.startswith(method) and re.search(path, call.path) is not None for call in self.calls)

    # ------------------------------------------------------------------------------------------------ serving

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served[task] = writer
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.transport.abort()
            del self._served[task]

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line = (await reader.readline()).decode("latin-1").split()
        if not line:
            return False
        headers: dict[str, str] = {}
        while (header := await reader.readline()).strip():
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        arrives = self.arriving(line[0], unquote(urlsplit(line[1]).path), length)
        body = await reader.readexactly(min(arrives, length))
        parts = urlsplit(line[1])
        host = headers.get("host", "").partition(":")[0]
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        call = Call(line[0], unquote(parts.path), query, headers, body, host)
        self.calls.append(call)
        if arrives < length:  # the service has seen a part of the body, and the caller gets no answer
            self._handle(call)
            return False
        reply = self._answer(call)
        if reply is None:
            self.statuses.append(0)
            return False
        self.statuses.append(reply.status)
        content = reply.body if isinstance(reply.body, bytes) else b"" if reply.body is None else _json(reply.body)
        given = {"Content-Type": "application/octet-stream" if isinstance(reply.body, bytes) else "application/json"}
        if self._etags and call.method == "GET" and reply.status == 200 and host == API:
            tag = f'W/"{hashlib.sha1(content).hexdigest()}"'
            given["ETag"] = tag
            if headers.get("if-none-match") == tag:
                self.statuses[-1], content, reply = 304, b"", Reply(304, None, reply.headers)
        lines = [f"HTTP/1.1 {reply.status} X", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in {**given, **reply.headers}.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()
        return True

    def _answer(self, call: Call) -> Reply | None:
        for fault in self.faults:
            if fault.matches(call):
                fault.times -= 1
                if fault.times == 0:
                    self.faults.remove(fault)
                if fault.lost:
                    self._handle(call)
                return fault.reply
        return self._handle(call)

    def _handle(self, call: Call) -> Reply:
        for method, pattern, handler in self.routes:
            found = pattern.fullmatch(call.path)
            if found is not None and method == call.method:
                return handler(call, **found.groupdict())
        return self.unknown(call)

    def arriving(self, method: str, path: str, length: int) -> int:
        """How many bytes of a body arrive before the connection is cut."""
        return length

    def unknown(self, call: Call) -> Reply:
        raise AssertionError(f"the fake has no route for {call.method} {call.path}")

    def paged(self, call: Call, entries: list[Any]) -> Reply:
        """A page of a list, joined to the next by a `Link` header."""
        size, page = int(call.query.get("per_page", 30)), int(call.query.get("page", 1))
        headers = {}
        if page * size < len(entries):
            query = urlencode({**call.query, "page": str(page + 1)})
            headers["Link"] = f'<http://localhost:{self.port}{call.path}?{query}>; rel="next"'
        return Reply(200, entries[(page - 1) * size : page * size], headers)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
