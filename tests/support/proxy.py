"""Proxies on loopback: one lets a real server look unreliable (it refuses, answers with errors, hangs up midway), one
lets it look far away and counts what it is asked.

`python -m tests.support.proxy PORT SECONDS` is the latter in a process of its own, for measurements.
"""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

REFUSALS = {
    "500": b"HTTP/1.1 500 Internal Server Error\r\n",
    "503": b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\n",
    "slow down": b"HTTP/1.1 503 Slow Down\r\n",
}
SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class Faults:
    """Forwards to a port or a socket's path of this machine. Each connection has a fate that a seeded chance decides.

    `lies` are answers that do not come from the server, by name; without any they are those of an HTTP server. With
    `silence` there are also connections on which the server suddenly says no more.
    """

    def __init__(
        self,
        target: int | str,
        seed: int,
        *,
        trouble: float = 0.5,
        lies: Mapping[str, bytes] | None = None,
        silence: bool = False,
    ) -> None:
        self._target = target
        self._chance = random.Random(seed)
        self.trouble = trouble
        self._lies = lies if lies is not None else {name: _refusal(head) for name, head in REFUSALS.items()}
        self._fates: tuple[str, ...] = ("reset", "stall", "cut", "cut", *self._lies, *(("silence",) if silence else ()))
        self.met: dict[str, int] = {}
        """How often each fate was met."""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.is_up = asyncio.Event()

    async def __aenter__(self) -> Faults:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.is_up.set()

    async def down(self) -> None:
        """As when the server is killed: nobody is answered, and everybody is hung up on."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.is_up.clear()
        self.hang_up()
        await asyncio.sleep(0)

    def connections(self) -> int:
        return len(self._open)

    def _fate(self) -> str:
        if self._chance.random() >= self.trouble:
            return "none"
        return self._chance.choice(self._fates)

    def hang_up(self) -> None:
        """On everybody: the next request needs a new connection, which has a fate of its own."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fate = self._fate()
        self.met[fate] = self.met.get(fate, 0) + 1
        self._open.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                if fate in self._lies:
                    with suppress(TimeoutError):  # in some protocols it is the server who speaks first
                        await asyncio.wait_for(reader.read(65536), 0.05)
                    writer.write(self._lies[fate])
                    await writer.drain()
                elif fate == "stall":
                    await reader.read(1)
                    await asyncio.sleep(0.02)
                    writer.transport.abort()
                elif fate == "reset":
                    writer.transport.abort()
                else:
                    # Somewhere in what is sent either way.
                    limit = 1 << 60 if fate == "none" else int(10 ** (self._chance.random() * 5.6))
                    await self._forward(reader, writer, limit, silent=fate == "silence")
        finally:
            self._open.discard(writer)
            writer.close()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int, *, silent: bool
    ) -> None:
        if isinstance(self._target, str):
            upstream_reader, upstream = await asyncio.open_unix_connection(self._target)
        else:
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._target)
        left = limit

        async def move(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            nonlocal left
            while left > 0 and (block := await source.read(min(65536, left))):
                left -= len(block)
                target.write(block)
                await target.drain()

        moves = [asyncio.ensure_future(move(reader, upstream)), asyncio.ensure_future(move(upstream_reader, writer))]
        try:
            await asyncio.wait(moves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in moves:
                task.cancel()
            await asyncio.gather(*moves, return_exceptions=True)
            upstream.transport.abort()
            if left <= 0:
                while silent and await reader.read(65536):
                    pass  # until whoever waits has lost patience
                writer.transport.abort()


def _refusal(head: bytes) -> bytes:
    return head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(SLOW_DOWN) + SLOW_DOWN


class Distance:
    """Forwards to `port` of this machine what comes, `seconds` later: as long as the way to a server may be.

    HTTP requests are counted, and so are the bytes of the answers.
    """

    def __init__(self, port: int, seconds: float = 0.0) -> None:
        self._target, self._seconds = port, seconds
        self.requests: list[str] = []
        """Method and address of each."""
        self.bytes = 0
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Distance:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._open.values():
            writer.transport.abort()
        if self._open:
            await asyncio.wait(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here: Any = asyncio.current_task()
        self._open[here] = writer
        try:
            await self._between(reader, writer)
        finally:
            del self._open[here]

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        answers, upstream = await asyncio.open_connection("127.0.0.1", self._target)
        coming: deque[tuple[float, bytes]] = deque()
        some = asyncio.Event()

        async def take() -> None:
            while block := await reader.read(65536):
                self.requests += [line.decode() for line in REQUEST.findall(block)]
                coming.append((clock() + self._seconds, block))
                some.set()

        async def ask() -> None:
            while await some.wait():
                while coming:
                    when, block = coming.popleft()
                    if (left := when - clock()) > 0:
                        await asyncio.sleep(left)
                    upstream.write(block)
                    await upstream.drain()
                some.clear()

        async def answer() -> None:
            while block := await answers.read(1 << 18):
                self.bytes += len(block)
                writer.write(block)
                await writer.drain()

        tasks = [asyncio.ensure_future(act()) for act in (take, ask, answer)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            upstream.close()
            writer.close()


REQUEST = re.compile(rb"^([A-Z]+ \S+) HTTP/1\.1\r$", re.MULTILINE)


@contextmanager
def far(port: int, seconds: float) -> Iterator[str]:
    """A `Distance` in a process of its own, so that it takes nothing from whoever measures. Gives its address."""
    words = [sys.executable, "-m", "tests.support.proxy", str(port), str(seconds)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
    finally:
        process.kill()
        process.wait()


async def _main(port: int, seconds: float) -> None:
    async with Distance(port, seconds) as proxy:
        print(proxy.endpoint, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2])))
