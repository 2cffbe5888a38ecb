"""Before authentication a server bounds heads, times and connections: real bytes over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from tests.apps.server.harness import TOKEN, run, serving

import ramet
from ramet import Store
from ramet.apps.server.app import create_app
from ramet.apps.server.auth import CLIENTS, Authentication, _host_name
from ramet.apps.server.connections import configure
from ramet.apps.server.settings import Bounds, ServerSettings
from ramet.concurrency.watchdog import WATCHDOG, Hold

LINE = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
AUTHORIZED = b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"


@contextlib.asynccontextmanager
async def listening(**bounds: Any) -> AsyncIterator[int]:
    """A server on a port of this machine."""
    settings = ServerSettings(token=TOKEN, bounds=Bounds(**bounds))
    with socket.create_server(("127.0.0.1", 0)) as at:
        app = create_app(Store("memory:"), settings)
        server = uvicorn.Server(configure(app, settings.bounds, app.connections, lifespan="on"))
        serving = asyncio.ensure_future(server.serve([at]))
        try:
            yield at.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


async def answer_to(port: int, *pieces: bytes) -> bytes:
    """Send bytes, and return all that comes until the server closes, or a whole answer is there."""
    reading, writing = await asyncio.open_connection("127.0.0.1", port)
    found = b""
    try:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                writing.write(piece)
                await writing.drain()
            while block := await reading.read(65536):
                found += block
                if b"\r\n\r\n" in found and b'"status"' in found:
                    break
    finally:
        writing.close()
        with contextlib.suppress(ConnectionError):
            await writing.wait_closed()
    return found


def status(answer: bytes) -> int:
    return int(answer.split(b" ")[1]) if answer else 0


async def served(port: int) -> None:
    """Ask until the server answers; a machine that stands still may be too late now and then."""
    for _ in range(50):
        if status(await answer_to(port, LINE + b"\r\n")) == 200:
            return
    raise AssertionError("nobody is served any more")


async def status_of(port: int) -> dict[str, Any]:
    """Ask the server how it is."""
    said = await answer_to(port, b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n" + AUTHORIZED + b"\r\n")
    found: dict[str, Any] = json.loads(said.partition(b"\r\n\r\n")[2])
    return found


def test_a_head_has_its_bounds() -> None:
    async def test() -> None:
        async with listening() as port:
            fits = b"".join(b"x-%d: y\r\n" % n for n in range(98))
            assert status(await answer_to(port, LINE + fits + b"\r\n")) == 200
            assert status(await answer_to(port, LINE + fits + b"x-98: y\r\nx-99: y\r\n\r\n")) == 431
            large = b"x: " + b"y" * 60_000 + b"\r\n"
            assert status(await answer_to(port, LINE + large + b"\r\n")) == 200
            assert status(await answer_to(port, LINE + large + large + b"\r\n")) == 431
            assert (
                status(await answer_to(port, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")) == 431
            )

    run(test)


def test_a_head_that_never_ends_is_cut_off() -> None:
    async def test() -> None:
        async with listening() as port:
            for begin in (LINE + b"x: ", b"GET /", LINE):
                pieces = [b"y" * 65_536 if begin is not LINE else b"x: y\r\n" * 10_000] * 200
                assert status(await answer_to(port, begin, *pieces)) in (431, 0), "12 MB are not read"

    run(test)


def test_trailers_are_bounded_too() -> None:
    async def test() -> None:
        async with listening() as port:
            head = b"POST /v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
            pieces = [b"x: " + b"y" * 60_000 + b"\r\n"] * 50
            assert await answer_to(port, head + AUTHORIZED + b"\r\n0\r\n", *pieces, b"\r\n") == b"", "closed"
            assert (await status_of(port))["connections"]["refused"] == {"431": 1}

    run(test)


def test_a_slow_head_is_not_awaited() -> None:
    async def test() -> None:
        async with listening(head_seconds=0.2) as port:
            said = await asyncio.gather(*(answer_to(port, piece) for piece in (b"", b"G", LINE, LINE + b"x: ")))
            assert [status(one) for one in said] == [408] * 4
            await served(port)

    run(test)


def test_a_body_may_take_longer_than_a_head() -> None:
    async def test() -> None:
        async with listening(head_seconds=1.0) as port:
            reading, writing = await asyncio.open_connection("127.0.0.1", port)
            head = b"POST /v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 13\r\n"
            writing.write(head + AUTHORIZED + b'\r\n{"name"')
            await writing.drain()
            assert status(await answer_to(port, b"")) == 408, "one that began later is late"
            writing.write(b': "a"}')
            assert status(await reading.read(1000)) == 201
            writing.close()
            await writing.wait_closed()

    run(test)


def test_connections_are_bounded_in_all_and_by_peer() -> None:
    async def test() -> None:
        for bounds in ({"connections": 3}, {"peer_connections": 3}):
            async with listening(**bounds) as port:
                held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
                assert status(await answer_to(port, LINE + b"\r\n")) in (503, 0)
                for _, writing in held:
                    writing.close()
                    await writing.wait_closed()
                await served(port)  # connections that closed are not counted for ever

    run(test)


def test_every_server_of_ours_has_these_bounds() -> None:
    root = Path(ramet.__file__).parent
    found = [path for path in root.glob("**/*.py") if re.search(r"uvicorn\.Config\(", path.read_text())]
    assert [path.name for path in found] == ["connections.py"], "use `configure`"


def test_idle_clients_are_forgotten_behind_a_busy_one() -> None:
    gate = Authentication(None, ServerSettings())
    gate._client("busy")
    for number in range(CLIENTS + 500):
        gate._client(str(number)).running -= 1
    assert len(gate._clients) == CLIENTS and "busy" in gate._clients and "0" not in gate._clients


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("localhost", "localhost"), ("LOCALHOST:8750", "localhost"), ("[::1]:80", "::1"), ("[::1]", "::1"),
        ("localhost:80:90", ""), ("localhost:evil", ""), ("[::1]evil", ""), ("[::1", ""), ("::1", ""), ("", ""),
        ("localhost:80@evil", ""), ("evil/localhost", ""), ("localhost ", ""), ("localhost,evil", ""),
        ("localhost:", ""),
    ],
)  # fmt: skip
def test_a_host_header_is_a_name_and_a_port(text: str, name: str) -> None:
    assert _host_name(text) == name


def test_two_host_headers_are_none() -> None:
    async def test() -> None:
        async with listening() as port:
            two = b"GET /v1/health HTTP/1.1\r\nHost: evil\r\nHost: 127.0.0.1\r\n\r\n"
            assert status(await answer_to(port, two)) in (400, 421)

    run(test)


def test_a_command_without_a_timeout_ends() -> None:
    async def test() -> None:
        async with (
            listening(command_seconds=0.2) as port,
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", timeout=60) as http,
        ):
            http.headers["authorization"] = f"Bearer {TOKEN}"
            await http.post("/workspaces", json={"name": "w"})
            ended = (await http.post("/workspaces/w/exec", json={"command": "sleep 100"})).json()
            assert ended.get("exit_code") == 124, ended
            longer = (await http.post("/workspaces/w/exec", json={"command": "sleep 0.4", "timeout_ms": 30_000})).json()
            assert longer["exit_code"] == 0

    run(test)


def test_an_idempotency_key_belongs_to_a_body() -> None:
    async def test() -> None:
        async with (
            listening() as port,
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", timeout=60) as http,
        ):
            http.headers["authorization"] = f"Bearer {TOKEN}"
            await http.post("/workspaces", json={"name": "w"})
            large = b"x" * (17 << 20)  # above what is compared as a whole
            for method, url, one, other in (
                ("POST", "/workspaces/w/exec", b'{"command": "echo 1"}', b'{"command": "echo 2"}'),
                ("PUT", "/workspaces/w/file?path=/f", large, large + b"!"),
            ):
                key = {"idempotency-key": url.rpartition("/")[2][:4]}
                first = await http.request(method, url, content=one, headers=key)
                again = await http.request(method, url, content=one, headers=key)
                changed = await http.request(method, url, content=other, headers=key)
                assert first.status_code == again.status_code == 200 and first.content == again.content
                assert again.headers["idempotency-replayed"] == "true"
                assert changed.status_code == 409, "another body"
            stat = (await http.get("/workspaces/w/stat?path=/f")).json()
            assert stat["size"] == len(large)

    run(test)


def test_the_status_shows_connections_refusals_limits_and_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WATCHDOG, "counts", Counter({"tsort": 2}))
    monkeypatch.setattr(WATCHDOG, "recent", deque([Hold("tsort", 1.5, "tsort.py:7 (run)")]))

    async def test() -> None:
        async with listening(headers=20) as port:
            for _ in range(3):
                await answer_to(port, LINE + b"x: y\r\n" * 30 + b"\r\n")
            found = await status_of(port)
            assert found["status"] == "ok" and found["started_at"] > 1e9
            assert (found["connections"]["peers"], found["connections"]["refused"]) == (1, {"431": 3})
            assert found["connections"]["open"] >= 1
            assert found["limits"]["headers"] == 20 and found["limits"]["connections"] == 2048
            assert found["holds"] == {"tsort": 2}
            assert found["recent_holds"] == [{"command": "tsort", "seconds": 1.5, "where": "tsort.py:7 (run)"}]

    run(test)


def test_the_status_is_for_the_administrator() -> None:
    async def test() -> None:
        async with serving(Store("memory:"), principals={"token-of-the-reader": "reader"}) as (http, _):
            headers = {"authorization": "Bearer token-of-the-reader"}
            assert (await http.get("/v1/status", headers=headers)).status_code == 403
            assert (await http.get("/v1/status")).json()["status"] == "ok"

    run(test)
