"""Requests per second of `echo hi` over HTTP, beside the peer's daemon: eight connections, one process each."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Case, Measure
from bench.peers import installed

CONNECTIONS = 8
TOKEN = "bench-token-bench-token"


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _started(command: list[str], port: int, env: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def _request(path: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def _talk(port: int, request: bytes, turns: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    for _ in range(turns):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split()[0])
        answer = head + await reader.readexactly(size)
    writer.close()
    return answer


def _measure(port: int, request: bytes, turns: int) -> Measure:
    """Seconds per request."""

    async def all_of_them() -> list[bytes]:
        return await asyncio.gather(*(_talk(port, request, turns) for _ in range(CONNECTIONS)))

    def measure() -> float:
        began = time.perf_counter()
        answers = asyncio.run(all_of_them())
        spent = time.perf_counter() - began
        if not all(b" 200 " in answer.partition(b"\r\n")[0] and b"hi\\n" in answer for answer in answers):
            raise RuntimeError(f"an answer is wrong: {answers[0]!r}")
        return spent / (turns * CONNECTIONS)

    return measure


def cases() -> Iterator[Case]:
    ours, theirs = _port(), _port()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as home:
        token = Path(home) / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        serve = [
            sys.executable, "-m", "ramet.apps.cli", "serve", "--store", f"{home}/store", "--port", str(ours),
            "--token-file", str(token),
        ]  # fmt: skip
        daemon = [
            str(installed("mirage-ai")), "-m", "uvicorn", "mirage.server.daemon:app", "--host", "127.0.0.1", "--port",
            str(theirs), "--log-level", "warning",
        ]  # fmt: skip
        env = {
            "MIRAGE_HOME": home, "MIRAGE_AUTH_TOKEN": TOKEN, "MIRAGE_AUTH_MODE": "token",
            "MIRAGE_IDLE_GRACE_SECONDS": "3600",
        }  # fmt: skip
        with _started(serve, ours, {}), _started(daemon, theirs, env):
            asyncio.run(_talk(ours, _request("/v1/workspaces", {"name": "b", "kind": "memory"}), 1))
            config = {"id": "b", "config": {"mounts": {"/": {"vfs": "ram", "mode": "write"}}}}
            asyncio.run(_talk(theirs, _request("/v1/workspaces", config), 1))
            yield Case(
                "HTTP exec echo hi, per request",
                _measure(ours, _request("/v1/workspaces/b/exec", {"command": "echo hi"}), 300),
                _measure(theirs, _request("/v1/workspaces/b/shell", {"command": "echo hi"}), 25),
                "mirage-ai daemon", 0.1, repeat=3,
            )  # fmt: skip
