"""A mounted bucket beside obstore's own calls and mirage-ai's mount, on a real S3 server on this machine.

`RAMET_BENCH_MB` is the size of the large object (1000 unless told).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.servers import S3Server, seaweed

from bench.harness import Case, Measure
from bench.peers import installed
from ramet import Workspace
from ramet.backends.s3 import S3Config, S3Resource

MEGABYTES = int(os.environ.get("RAMET_BENCH_MB", "1000"))
KEYS, SMALL = 10_000, 2_000

_MIRAGE = """
import asyncio, sys, time
async def main():
    from mirage import Workspace
    from mirage.types import MountMode
    from mirage.vfs.s3 import S3Config, S3VFS
    endpoint, bucket, key, secret, script = sys.argv[1:]
    config = S3Config(bucket=bucket, endpoint_url=endpoint, path_style=True, region="us-east-1",
                      aws_access_key_id=key, aws_secret_access_key=secret)
    ws = Workspace({"/s3": (S3VFS(config), MountMode.READ)})
    began = time.perf_counter()
    result = await ws.shell(script)
    spent = time.perf_counter() - began
    print("failed" if getattr(result, "exit_code", 0) else spent, flush=True)
asyncio.run(main())
"""


def obstore_store(server: S3Server) -> Any:
    from obstore.store import S3Store

    return S3Store(
        server.bucket, endpoint=server.endpoint, access_key_id=server.key, secret_access_key=server.secret,
        region=server.region, virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip


def ours(server: S3Server, script: str, *, endpoint: str | None = None, warm: str = "") -> Measure:
    """A script on a fresh workspace: nothing of an earlier run is in its cache, but what `warm` brings there."""

    def measure() -> float:
        async def run() -> float:
            config = S3Config.of("minio", endpoint=endpoint or server.endpoint, bucket=server.bucket,
                                 aws_access_key_id=server.key, aws_secret_access_key=server.secret)  # fmt: skip
            ws = Workspace({"/s3": (S3Resource(config), "read")})
            if warm:
                await ws.execute(warm)
            start = time.perf_counter()
            result = await ws.execute(script)
            spent = time.perf_counter() - start
            assert result.exit_code == 0, result.error_text
            await ws.close()
            return spent

        return asyncio.run(run())

    return measure


def theirs(act: Callable[[], Awaitable[object]]) -> Measure:
    def measure() -> float:
        async def run() -> float:
            start = time.perf_counter()
            await act()
            return time.perf_counter() - start

        return asyncio.run(run())

    return measure


def mirage(server: S3Server, script: str) -> dict[str, Measure]:
    python = installed("mirage-ai")
    if python is None:
        return {}

    def measure() -> float:
        words = [str(python), "-c", _MIRAGE, server.endpoint, server.bucket, server.key, server.secret, script]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        last = (done.stdout.strip().splitlines() or ["failed"])[-1]
        return float("nan") if last == "failed" else float(last)

    return {"mirage-ai": measure}


class Counted:
    """Forwards to the server and counts what comes back, and how often somebody asked."""

    def __init__(self, server: S3Server) -> None:
        self._target = urlsplit(server.endpoint).port or 0
        self.bytes = self.requests = 0

    async def __aenter__(self) -> Counted:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.endpoint = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self._target)

        async def ask() -> None:
            while block := await reader.read(65536):
                self.requests += block.count(b" HTTP/1.1\r\n")
                upstream.write(block)
                await upstream.drain()

        async def answer() -> None:
            while block := await upstream_reader.read(65536):
                self.bytes += len(block)
                writer.write(block)
                await writer.drain()

        await asyncio.wait(
            [asyncio.ensure_future(ask()), asyncio.ensure_future(answer())], return_when="FIRST_COMPLETED"
        )
        upstream.close()
        writer.close()


def counting(server: S3Server, script: str, what: str, *, warm: str = "") -> Measure:
    def measure() -> float:
        async def run() -> float:
            async with Counted(server) as proxy:
                config = S3Config.of("minio", endpoint=proxy.endpoint, bucket=server.bucket,
                                     aws_access_key_id=server.key, aws_secret_access_key=server.secret)  # fmt: skip
                ws = Workspace({"/s3": (S3Resource(config), "read")})
                if warm:
                    await ws.execute(warm)
                before: int = getattr(proxy, what)
                result = await ws.execute(script)
                assert result.exit_code == 0, result.error_text
                await ws.close()
                return float(getattr(proxy, what) - before)

        return asyncio.run(run())

    return measure


def cases() -> Iterator[Case]:
    import obstore

    with tempfile.TemporaryDirectory() as folder, seaweed(Path(folder)) as server:
        store = obstore_store(server)
        block = os.urandom(1 << 20)
        obstore.put(store, "big", (block for _ in range(MEGABYTES)))

        async def fill() -> None:
            for first in range(0, KEYS, 200):
                await asyncio.gather(
                    *(obstore.put_async(store, f"many/k{n:05}", b"x") for n in range(first, first + 200))
                )
            text = b"a line of a log that is of no interest\n" * 20
            for first in range(0, SMALL, 200):
                await asyncio.gather(*(
                    obstore.put_async(store, f"logs/d{n % 20}/f{n}", text + (b"needle\n" if n % 100 == 0 else b""))
                    for n in range(first, first + 200)
                ))  # fmt: skip

        asyncio.run(fill())

        async def stream() -> None:
            async for _ in (await obstore.get_async(store, "big")).stream(1 << 20):
                pass

        async def listing() -> None:
            async for _ in obstore.list(store, "many/"):
                pass

        async def one_by_one() -> None:
            async for batch in obstore.list(store, "logs/"):
                for meta in batch:
                    _ = b"needle" in bytes(await (await obstore.get_async(store, meta["path"])).bytes_async())

        large = f"cat of {MEGABYTES} MB"
        yield Case(large, ours(server, "cat /s3/big > /dev/null"), theirs(stream), "obstore", 1.25, repeat=3,
                   peers=mirage(server, "cat /s3/big > /dev/null"))  # fmt: skip
        yield Case(f"ls of {KEYS:,} keys", ours(server, "ls /s3/many > /dev/null"), theirs(listing), "obstore", 1.2,
                   repeat=3, peers=mirage(server, "ls /s3/many > /dev/null"))  # fmt: skip
        yield Case(f"grep -r over {SMALL:,} objects", ours(server, "grep -r needle /s3/logs > /dev/null"),
                   theirs(one_by_one), "one by one", 0.1, repeat=3,
                   peers=mirage(server, "grep -r needle /s3/logs > /dev/null"))  # fmt: skip
        yield Case("head -c 1K of the large one", counting(server, "head -c 1K /s3/big > /dev/null", "bytes"),
                   absolute_mark=1e6, repeat=1, unit="bytes")  # fmt: skip
        yield Case("a second read", counting(server, "cat /s3/logs/d1/f1", "requests", warm="cat /s3/logs/d1/f1"),
                   absolute_mark=0, repeat=1, unit="requests")  # fmt: skip
