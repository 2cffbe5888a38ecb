"""`python -m bench.load`: many clients at one server, killed in the middle; nothing that was answered may be missing.

Every client keeps a log of the writes that were answered. After the kill, and again at the end, a restarted server has
to hold all of them. Marks: no error, p99 under 50 times p50, resident memory that stays where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

SPREAD = 50.0
"""How many times the median the slowest hundredth may take."""
GROWTH = 1.05
"""How many times the memory after the first half there may be at the end: by then everything bounded is nearly full."""


class Broken(Exception):
    """The connection ended in the middle of a request."""


@dataclass
class Tally:
    """What all clients saw."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    broken: int = 0
    checked: int = 0


class Server:
    """`ramet serve` as a process of its own, on a unix socket."""

    def __init__(self, home: Path, options: list[str]) -> None:
        self.socket = str(home / "s")
        self._log = home / "server.log"
        self._command = [
            sys.executable, "-m", "ramet.apps.cli", "serve", "--store", str(home / "store"), "--socket", self.socket,
            "--concurrency", "10000", *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stderr=log)  # noqa: ASYNC220 (nothing else happens meanwhile)
        for _ in range(600):
            try:
                _, writer = await asyncio.open_unix_connection(self.socket)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return
        raise RuntimeError(f"the server did not start: {self._log.read_text()}")

    def end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def memory(self) -> int:
        """Resident bytes now."""
        if self._process is None:
            return 0
        try:
            fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        except OSError:
            return 0
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def said(self) -> str:
        """What it wrote to stderr beside its greeting."""
        return "\n".join(line for line in self._log.read_text().splitlines() if not line.startswith("ramet serves"))


class Line:
    """One connection, kept open; one request at a time."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            if self._streams is None:
                self._streams = await asyncio.open_unix_connection(self._place)
            reader, writer = self._streams
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            size = int(answer.lower().partition(b"content-length:")[2].split()[0])
            return int(answer.split(b" ", 2)[1]), await reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise Broken from error

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Client:
    """Runs commands, writes and reads files, and remembers what was answered."""

    def __init__(self, number: int, place: str, workspaces: int, tally: Tally) -> None:
        self._number, self._tally, self._line = number, tally, Line(place)
        self._root = f"/v1/workspaces/w{number % workspaces}"
        self._random = random.Random(number)
        self._turn = 0
        self.files: dict[str, tuple[bytes, bytes]] = {}
        """Per file what it was answered to hold, and what a request that got no answer may have made of it."""
        self.lines: list[bytes] = []
        """Lines whose appending was answered; those of requests without an answer may be there as well."""

    async def begin(self) -> None:
        body = json.dumps({"id": f"s{self._number}"}).encode()
        status, text = await self._line.ask("POST", f"{self._root}/sessions", body)
        if status not in (201, 409):
            self._tally.errors.append(f"session: {status} {text[:200]!r}")

    def end(self) -> None:
        self._line.close()

    async def work(self, until: float, down: asyncio.Event) -> None:
        acts = (self._command, self._command, self._write, self._append, self._read, self._read)
        for act in itertools.islice(itertools.cycle(acts), self._number % len(acts), None):
            if time.monotonic() >= until or down.is_set():
                return
            self._turn += 1
            began = time.perf_counter()
            try:
                await act()
            except Broken:
                self._tally.broken += 1
                if not down.is_set():
                    self._tally.errors.append("a connection ended although the server was not killed")
                return
            self._tally.times[act.__name__.strip("_")].append(time.perf_counter() - began)

    async def _good(self, method: str, path: str, body: bytes = b"") -> bytes | None:
        status, text = await self._line.ask(method, f"{self._root}/{path}", body)
        if status == 200:
            return text
        self._tally.errors.append(f"{method} {path}: {status} {text[:200]!r}")
        return None

    async def _ran(self, command: str) -> str | None:
        body = json.dumps({"command": command, "session": f"s{self._number}"}).encode()
        found = await self._good("POST", "exec", body)
        if found is None:
            return None
        result = json.loads(found)
        if result["exit_code"]:
            self._tally.errors.append(f"{command}: status {result['exit_code']}: {result['stderr']}")
        return str(result["stdout"])

    async def _command(self) -> None:
        found = await self._ran(f"echo {self._turn} | tr 0-9 a-j")
        wanted = str(self._turn).translate({48 + digit: 97 + digit for digit in range(10)})
        if found is not None and found != wanted + "\n":
            self._tally.errors.append(f"a command printed {found!r} and not {wanted!r}")

    async def _write(self) -> None:
        path = f"/c{self._number}-{self._turn % 10}"
        content = f"{self._turn} ".encode() * self._random.choice((1, 100, 4000))
        before = self.files.get(path, (b"", b""))[0]
        self.files[path] = before, content
        if await self._good("PUT", f"file?path={quote(path)}", content) is not None:
            self.files[path] = content, content

    async def _append(self) -> None:
        if await self._ran(f"echo {self._turn} >> /log{self._number}") is not None:
            self.lines.append(b"%d" % self._turn)

    async def _read(self) -> None:
        if not self.files:
            await self._good("GET", "stat?path=/")
            return
        await self.check_file(self._random.choice(list(self.files)))

    async def check_file(self, path: str) -> None:
        status, found = await self._line.ask("GET", f"{self._root}/file?path={quote(path)}")
        found = found if status == 200 else b""
        self._tally.checked += 1
        if found not in self.files[path]:
            self._tally.errors.append(f"{path} of {self._root} is not what was written: {status} {found[:40]!r}")
        self.files[path] = found, found

    async def check(self) -> None:
        """Everything that was answered is there."""
        for path in self.files:
            await self.check_file(path)
        if self.lines:
            status, found = await self._line.ask("GET", f"{self._root}/file?path=/log{self._number}")
            held = found.split(b"\n") if status == 200 else []
            self._tally.checked += len(self.lines)
            missing = set(self.lines) - set(held)
            if missing or len(set(held)) != len(held):
                self._tally.errors.append(f"/log{self._number} of {self._root} lost {sorted(missing)[:5]}")


async def _sampled(server: Server, tally: Tally) -> None:
    began = time.monotonic()
    while True:
        size = server.memory()
        if size:
            tally.memory.append((time.monotonic() - began, size))
        await asyncio.sleep(0.5)


async def _all(clients: list[Client], act: Callable[[Client], Awaitable[None]], at_once: int = 200) -> None:
    gate = asyncio.Semaphore(at_once)

    async def one(client: Client) -> None:
        async with gate:
            await act(client)

    await asyncio.gather(*map(one, clients))


async def run(home: Path, count: int, seconds: float, workspaces: int, options: list[str]) -> tuple[Tally, str]:
    server, tally = Server(home, options), Tally()
    await server.start()
    sampling = asyncio.ensure_future(_sampled(server, tally))
    clients = [Client(number, server.socket, workspaces, tally) for number in range(count)]
    try:
        first = Line(server.socket)
        for number in range(workspaces):
            status, text = await first.ask("POST", "/v1/workspaces", json.dumps({"name": f"w{number}"}).encode())
            if status != 201:
                tally.errors.append(f"create: {status} {text!r}")
        first.close()
        down = asyncio.Event()

        def kill() -> None:
            down.set()
            server.end(signal.SIGKILL)

        for last in (False, True):
            await _all(clients, Client.begin)
            if not last:
                asyncio.get_running_loop().call_later(seconds / 2, kill)
            until = time.monotonic() + seconds / (2 if last else 1)
            await asyncio.gather(*(client.work(until, down) for client in clients))
            if last:
                sampling.cancel()
                kill()
            for client in clients:
                client.end()
            if not last:
                down.clear()
            await server.start()
            await _all(clients, Client.check)
            if not last:
                tally.memory.clear()  # the second process is the one that is looked at: it has read what the first left
        server.end(signal.SIGTERM)
        return tally, server.said()
    finally:
        sampling.cancel()
        server.end(signal.SIGKILL)


def _at(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))]


def report(tally: Tally, said: str, seconds: float) -> bool:
    """Print what was seen; whether the marks are met."""
    everything: list[float] = []
    for name, times in sorted(tally.times.items()):
        times.sort()
        everything += times
        print(f"  {name:8} {len(times):7} requests   p50 {_at(times, 0.5) * 1e3:8.2f} ms   "
              f"p99 {_at(times, 0.99) * 1e3:8.2f} ms   longest {times[-1] * 1e3:8.2f} ms")  # fmt: skip
    everything.sort()
    half, late = _at(everything, 0.5), _at(everything, 0.99)
    work = [size for _, size in tally.memory]
    middle, end = work[len(work) // 2], work[-1]
    print(f"  all      {len(everything):7} requests   p50 {half * 1e3:8.2f} ms   p99 {late * 1e3:8.2f} ms   "
          f"{len(everything) / seconds:.0f} per second")  # fmt: skip
    shown = ", ".join(f"{size >> 20} MB {when}" for when, size in (
        ("at first", work[0]), ("in the middle", middle), ("at most", max(work)), ("at the end", end)
    ))  # fmt: skip
    print(f"  memory   {shown}")
    print(f"  {tally.checked} contents checked, {tally.broken} connections ended by the kill")
    for error in tally.errors[:10]:
        print(f"  ERROR {error}")
    for line in said.splitlines()[:20]:
        print(f"  SERVER {line}")
    marks = {
        "no error": not tally.errors and not said,
        f"p99 under {SPREAD:g} times p50": late < SPREAD * half,
        f"memory at the end under {GROWTH:g} times that in the middle": end < GROWTH * middle,
    }
    for name, met in marks.items():
        print(f"{'ok  ' if met else 'MISS'} {name}")
    return all(marks.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workspaces", type=int, default=8)
    parser.add_argument("--home", help="directory for the store; a temporary one when left out")
    parser.add_argument("options", nargs="*", help="options for `ramet serve`, after --")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.home) as home:
        work = run(Path(home), asked.clients, asked.seconds, asked.workspaces, asked.options)
        tally, said = asyncio.run(work)
    return int(not report(tally, said, asked.seconds))


if __name__ == "__main__":
    sys.exit(main())
