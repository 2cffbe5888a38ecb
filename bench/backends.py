"""A mounted bucket beside obstore's own calls and mirage-ai's mount, on a real S3 server on this machine.

On loopback a request takes a fraction of a millisecond, and what many small objects cost is the work of client and
server: no number of requests at once makes that less. A row tells how much it is, over all cores: the least time that
reading them can take here. And there are rows in which the same server is 10 ms away, as a real one is.

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

from tests.support.proxy import Distance, far
from tests.support.servers import S3Server, seaweed

from bench.harness import Case, Measure
from bench.peers import installed
from ramet import Workspace
from ramet.backends.objects.s3 import S3Config, S3Resource

MEGABYTES = int(os.environ.get("RAMET_BENCH_MB", "1000"))
KEYS, SMALL = 10_000, 2_000
AWAY = 0.01
"""Seconds that a request takes to the server in the rows of a server that is far away."""

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


def obstore_store(server: S3Server, endpoint: str | None = None) -> Any:
    from obstore.store import S3Store

    return S3Store(
        server.bucket, endpoint=endpoint or server.endpoint, access_key_id=server.key, secret_access_key=server.secret,
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


def cpu_of(measure: Measure, server: S3Server | None = None) -> Measure:
    """The CPU that this process takes for it; with the server's, over all cores: no program can take less time."""

    def spent() -> float:
        own = time.process_time()
        if server is None:
            return own
        fields = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        theirs = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return (own + theirs) / (os.cpu_count() or 1)

    def measured() -> float:
        before = spent()
        measure()
        return spent() - before

    return measured


def tenfold(measure: Measure) -> Measure:
    """Of what would take too long a tenth is measured."""
    return lambda: measure() * 10


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


def counting(server: S3Server, script: str, what: str, *, warm: str = "") -> Measure:
    counts: dict[str, Callable[[Distance], int]] = {"bytes": lambda p: p.bytes, "requests": lambda p: len(p.requests)}

    def measure() -> float:
        async def run() -> float:
            async with Distance(urlsplit(server.endpoint).port or 0) as proxy:
                config = S3Config.of("minio", endpoint=proxy.endpoint, bucket=server.bucket,
                                     aws_access_key_id=server.key, aws_secret_access_key=server.secret)  # fmt: skip
                ws = Workspace({"/s3": (S3Resource(config), "read")})
                if warm:
                    await ws.execute(warm)
                before = counts[what](proxy)
                result = await ws.execute(script)
                assert result.exit_code == 0, result.error_text
                await ws.close()
                return float(counts[what](proxy) - before)

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

        async def listing_of(found: Any) -> None:
            async for _ in obstore.list(found, "many/"):
                pass

        def each(found: Any, at_once: int, limit: int | None = None) -> Callable[[], Awaitable[None]]:
            """Read the small objects, so many at once."""

            async def act() -> None:
                listed: list[str] = []
                async for batch in obstore.list(found, "logs/"):
                    listed += [meta["path"] for meta in batch]
                    if limit is not None and len(listed) >= limit:
                        break
                keys = iter(listed[:limit])

                async def work() -> None:
                    for key in keys:
                        _ = b"needle" in bytes(await (await obstore.get_async(found, key)).bytes_async())

                await asyncio.gather(*(work() for _ in range(at_once)))

            return act

        large = f"cat of {MEGABYTES} MB"
        yield Case(large, ours(server, "cat /s3/big > /dev/null"), theirs(stream), "obstore", 1.25, repeat=3,
                   peers=mirage(server, "cat /s3/big > /dev/null"))  # fmt: skip
        yield Case(f"ls of {KEYS:,} keys", ours(server, "ls /s3/many > /dev/null"),
                   theirs(lambda: listing_of(store)), "obstore", 1.2, repeat=5,
                   peers=mirage(server, "ls /s3/many > /dev/null"))  # fmt: skip
        yield Case(f"grep -r over {SMALL:,} objects", ours(server, "grep -r needle /s3/logs > /dev/null"),
                   theirs(each(store, 1)), "one by one", 0.1, repeat=3,
                   peers=mirage(server, "grep -r needle /s3/logs > /dev/null"))  # fmt: skip
        yield Case("the same beside obstore, 32 at once", ours(server, "grep -r needle /s3/logs > /dev/null"),
                   theirs(each(store, 32)), "obstore", 1.5, repeat=3)  # fmt: skip
        grep = ours(server, "grep -r needle /s3/logs > /dev/null")
        yield Case("CPU of that, ours", cpu_of(grep), cpu_of(theirs(each(store, 32))), "obstore, 32 at once", 1.2,
                   repeat=3)  # fmt: skip
        yield Case("CPU of that, with the server's, over all cores", cpu_of(grep, server), theirs(each(store, 1)),
                   "one by one", repeat=3)  # fmt: skip
        yield Case("head -c 1K of the large one", counting(server, "head -c 1K /s3/big > /dev/null", "bytes"),
                   absolute_mark=1e6, repeat=1, unit="bytes")  # fmt: skip
        yield Case("a second read", counting(server, "cat /s3/logs/d1/f1", "requests", warm="cat /s3/logs/d1/f1"),
                   absolute_mark=0, repeat=1, unit="requests")  # fmt: skip
        with far(urlsplit(server.endpoint).port or 0, AWAY) as endpoint:
            there = obstore_store(server, endpoint)
            where = f"{AWAY * 1000:.0f} ms away"
            yield Case(f"grep -r, {where}", ours(server, "grep -r needle /s3/logs > /dev/null", endpoint=endpoint),
                       tenfold(theirs(each(there, 1, SMALL // 10))), "one by one", 0.1, repeat=2)  # fmt: skip
            yield Case(f"ls, {where}", ours(server, "ls /s3/many > /dev/null", endpoint=endpoint),
                       theirs(lambda: listing_of(there)), "obstore", 1.2, repeat=3)  # fmt: skip
