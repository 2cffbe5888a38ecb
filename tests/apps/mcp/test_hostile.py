"""An MCP server and a hostile client: every odd message gets an answer or an end, and the next one is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client

from ramet import Store
from ramet.apps.mcp.server import run_http

DEEP = "[" * 100_000 + "]" * 100_000
ODD: tuple[bytes, ...] = (
    b"", b"{", b"\xff\xfe\x00", b"null", b"7", b'"x"', b"[]", b"{}", b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "no/such", "params": {}}', b'{"jsonrpc": "2.0", "id": 6, "method": 7}',
    b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}',
    b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "no", "arguments": {}}}',
    b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": 7}}}',
    b'{"jsonrpc": "2.0", "id": 10, "method": "resources/read", "params": {"uri": "ramet://other/etc/passwd"}}',
    b'{"jsonrpc": "2.0", "id": 11, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}}',
    b'{"jsonrpc": "2.0", "id": 12, "method": "resources/read", "params": {"uri": "ramet://p/../../etc/passwd"}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}}',
    b'{"jsonrpc": "2.0", "id": 13, "result": {}}', b'{"jsonrpc": "2.0", "id": 14, "method": "x", "params": %s}'
    % DEEP.encode(), DEEP.encode(), b'{"jsonrpc": "2.0", "id": "' + b"a" * 5_000_000 + b'", "method": "ping"}',
)  # fmt: skip


def message(method: str, number: int | None = None, **params: Any) -> bytes:
    plain: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(plain if number is None else {**plain, "id": number}).encode()


BEGIN = message(
    "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"}
)  # fmt: skip


@contextlib.asynccontextmanager
async def child(store: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    words = [sys.executable, "-m", "ramet.apps.cli", "mcp", "p", "--store", str(store)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=1 << 26
    )
    assert process.stdin is not None
    process.stdin.write(BEGIN + b"\n" + message("notifications/initialized") + b"\n")
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def answer_to(process: asyncio.subprocess.Process, number: int) -> dict[str, Any]:
    """Read until the answer to this request."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        found: dict[str, Any] = json.loads(line)
        if found.get("id") == number:
            return found
    raise AssertionError("the server ended")


def call(number: int, command: str) -> bytes:
    return message("tools/call", number, name="bash", arguments={"command": command})


def test_odd_messages_over_stdio(tmp_path: Path) -> None:
    async def test() -> None:
        async with child(tmp_path) as process:
            assert process.stdin is not None
            for odd in ODD:
                process.stdin.write(odd.replace(b"\n", b" ") + b"\n")
            process.stdin.write(call(100, "echo served") + b"\n")
            answer = await answer_to(process, 100)
            assert answer["result"]["structuredContent"]["stdout"]["text"] == "served\n"

    asyncio.run(asyncio.wait_for(test(), 250))


def test_many_requests_at_once_some_cancelled_over_stdio(tmp_path: Path) -> None:
    async def test() -> None:
        async with child(tmp_path) as process:
            assert process.stdin is not None
            for number in range(1000, 1100):
                process.stdin.write(call(number, "sleep 600" if number % 2 else f"echo {number}") + b"\n")
                if number % 2:
                    process.stdin.write(message("notifications/cancelled", requestId=number) + b"\n")
            process.stdin.write(call(2000, "echo last") + b"\n")
            answer = await answer_to(process, 2000)
            assert answer["result"]["structuredContent"]["stdout"]["text"] == "last\n"

    asyncio.run(asyncio.wait_for(test(), 250))


def test_a_client_that_never_reads_and_goes_leaves_no_process(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ramet.apps.cli", "mcp", "p", "--store", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(BEGIN + b"\n" + message("notifications/initialized") + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        for number in range(50):
            process.stdin.write(call(number, "seq 100000") + b"\n")
        process.stdin.close()
        process.stdout.close()
        process.wait(200)

    async def test() -> None:
        async with Store(str(tmp_path)).open("p") as ws:  # its lease was released, or is over soon
            assert (await ws.execute("true")).exit_code == 0

    asyncio.run(asyncio.wait_for(test(), 250))


def test_odd_messages_over_http(tmp_path: Path) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            url, stop = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", asyncio.Event()
            serving = asyncio.ensure_future(run_http(Store(str(tmp_path)), "p", stop=stop, listening=listening))
            headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            async with httpx2.AsyncClient(timeout=200, headers=headers) as http:
                for odd in ODD:
                    for method in ("POST", "PUT", "DELETE"):
                        found = await http.request(method, url, content=odd)
                        assert found.status_code < 500, (odd[:80], found.status_code, found.text[:200])
                assert (await http.post(url, content=b"x" * (17 << 20))).status_code == 413
                assert (await http.post(url, content=BEGIN, headers={"mcp-session-id": "no"})).status_code < 500
            async with Client(url) as client:
                calls = [client.call_tool("bash", {"command": f"echo {number}"}) for number in range(40)]
                assert len(await asyncio.gather(*calls)) == 40
                waiting = asyncio.ensure_future(client.call_tool("bash", {"command": "sleep 600"}))
                await client.call_tool("bash", {"command": "true"})
                waiting.cancel()
                answer = await client.call_tool("bash", {"command": "echo served"})
                assert answer.structured_content["stdout"]["text"] == "served\n"
            stop.set()
            await serving

    asyncio.run(asyncio.wait_for(test(), 250))
