"""A server inside the test's event loop, and one as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from ramet import Store
from ramet.apps.server.app import App, create_app
from ramet.apps.server.settings import ServerSettings

TOKEN = "test-token-test-token"


@asynccontextmanager
async def serving(store: Store | None, **settings: Any) -> AsyncIterator[tuple[httpx2.AsyncClient, App]]:
    app = create_app(store, ServerSettings(**{"token": TOKEN, "hosts": frozenset({"test"}), **settings}))
    async with app.running():
        transport = httpx2.ASGITransport(app=app)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            yield client, app


def run(test: Callable[[], Awaitable[None]], seconds: float = 250) -> None:
    asyncio.run(asyncio.wait_for(test(), seconds))


class Process:
    """`ramet serve` on a unix socket."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.socket = str(directory / "s")
        self._command = [
            sys.executable, "-m", "ramet.apps.cli", "serve", "--store", str(directory / "store"), "--socket",
            self.socket, *options,
        ]  # fmt: skip
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        for _ in range(2400):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                if probe.connect_ex(self.socket) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    def client(self) -> httpx2.Client:
        return httpx2.Client(transport=httpx2.HTTPTransport(uds=self.socket), base_url="http://localhost", timeout=250)

    def async_client(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=None)
        transport = httpx2.AsyncHTTPTransport(uds=self.socket, limits=limits)
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=250)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(120)

    def memory(self) -> int:
        """Resident bytes at their highest."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) * 1024
