"""The commands beside GNU's on 100 MB of log-like text and on trees of 10,000 files, in memory and on disk."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Case
from bench.sandbox import inside_seconds
from ramet import DiskResource, RAMResource, Workspace
from ramet.backends.local.buffers import Blocks
from ramet.core.paths import parse

SIZE = int(os.environ.get("RAMET_BENCH_MB", "100")) << 20
TMPFS = "/dev/shm" if os.path.isdir("/dev/shm") else None

TEXT = {
    "wc -l": ("wc -l log", 1.5),
    "wc": ("wc log", 3.0),
    "grep -c literal": ("grep -c checkout log", 1.2),
    "grep -cE": ("grep -cE 'GET /[a-z]+/[0-9]+ .*(500|503)$' log", 1.2),
    "grep -ci": ("grep -ci CHECKOUT log", 2.0),
    "grep -v": ("grep -v checkout log | tail -1", 2.0),
    "grep -n": ("grep -n checkout log | tail -1", 2.0),
    "sort": ("sort log | tail -1", 1.2),
    "sort -n -k2": ("sort -n -k2 log | tail -1", 2.0),
    "sort|uniq -c|sort -rn": ("cut -d' ' -f4 log | sort | uniq -c | sort -rn | head -3", 1.5),
    "cut -d' ' -f2": ("cut -d' ' -f2 log | tail -1", 2.0),
    "tr a-z A-Z": ("tr a-z A-Z < log | tail -c 1", 1.5),
    "sed s/GET/POST/g": ("sed s/GET/POST/g log | tail -1", 1.5),
    "sed s/x/y/": ("sed s/checkout/y/ log | tail -1", 2.0),
    "sed /x/d": ("sed /checkout/d log | tail -1", 2.0),
    "sed -n 5p": ("sed -n '5{p;q}' log", 1.5),
    "awk sum of a field": ("awk '{s+=$2} END{print s}' log", 3.0),
    "awk -F, filter": ("awk -F, '$3>5{print $1}' csv | tail -1", 3.0),
    "head -1": ("head -1 log", 1.0),
    "tail -1": ("tail -1 log", 1.0),
    "md5sum": ("md5sum log", 1.1),
    "sha256sum": ("sha256sum log", 1.1),
    "gzip -1": ("gzip -1 -c log | tail -c 1", 1.2),
    "jq -c . of JSON lines": ("jq -c . json | tail -1", 2.0),
}
TREES = {
    "grep -r needle, 10,000 files": ("grep -r needle tree", 2.0),
    "find -type f | wc -l": ("find tree -type f | wc -l", 3.0),
    "ls -lR": ("ls -lR tree | tail -1", 4.0),
    "du -s": ("du -s tree", 3.0),
}


def make_data(folder: Path) -> None:
    rng = random.Random(1)
    words = ["checkout", "cart", "login", "search", "item", "help"]
    line = "10.0.{}.{} {} [15/Nov/2026:10:{:02d}:{:02d}] GET /{}/{} HTTP/1.1 {}\n"
    block = "".join(
        line.format(
            rng.randrange(256), rng.randrange(256), rng.randrange(100_000), rng.randrange(60), rng.randrange(60),
            rng.choice(words), rng.randrange(1000), rng.choice([200, 200, 200, 404, 500, 503]),
        )
        for _ in range(50_000)
    )  # fmt: skip
    repeats = SIZE // len(block) + 1
    with open(folder / "log", "w") as file:
        for _ in range(repeats):
            file.write(block)
    rows = "".join(f"name{i},{rng.random():.4f},{rng.randrange(10)},text {i}\n" for i in range(50_000))
    (folder / "csv").write_text(rows * (SIZE // len(rows) + 1))
    record = "".join(
        json.dumps({"id": i, "name": f"user {i}", "tags": ["a", "b"], "score": rng.random()}, separators=(",", ":"))
        + "\n"
        for i in range(20_000)
    )
    (folder / "json").write_text(record * (SIZE // 2 // len(record) + 1))
    for d in range(100):
        (folder / "tree" / f"d{d}").mkdir(parents=True)
        for f in range(100):
            text = "some lines of an ordinary file\n" * 20 + ("needle\n" if f == 7 else "")
            (folder / "tree" / f"d{d}" / f"file{f}.txt").write_text(text)


def in_memory(folder: Path) -> RAMResource:
    ram = RAMResource()
    for name in ("log", "csv", "json"):
        content = Blocks()
        with open(folder / name, "rb") as file:
            while block := file.read(1 << 20):
                content.append(block)
        ram.put_now(parse(f"/{name}"), content)

    async def tree() -> None:
        await ram.mkdir(parse("/tree"))
        for d in range(100):
            await ram.mkdir(parse(f"/tree/d{d}"))
            for f in range(100):
                data = (folder / "tree" / f"d{d}" / f"file{f}.txt").read_bytes()
                await ram.write(parse(f"/tree/d{d}/file{f}.txt"), data)

    asyncio.run(tree())
    return ram


def ours(ws: Workspace, script: str) -> float:
    async def act() -> float:
        start = time.perf_counter()
        result = await ws.execute(script, cwd="/data")
        assert result.exit_code == 0, result.error_text
        return time.perf_counter() - start

    return asyncio.run(act())


def cases() -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(dir=TMPFS))
    try:
        make_data(folder)
        binds = {str(folder): "/data"}
        mounts = {"RAM": Workspace({"/data": in_memory(folder)}), "disk": Workspace({"/data": DiskResource(folder)})}
        for where, ws in mounts.items():
            for name, (script, mark) in {**TEXT, **TREES}.items():
                yield Case(
                    f"{name}, {where}",
                    lambda w=ws, s=script: ours(w, s),  # type: ignore[misc]
                    lambda s=script: inside_seconds(s, "cd /data", binds),  # type: ignore[misc]
                    "GNU",
                    mark,
                    repeat=2,
                )
        ws = mounts["RAM"]
        yield Case(
            "cp -r of 10,000 files, RAM",
            lambda: ours(ws, "cp -r tree copy; s=$?; rm -rf copy; exit $s"),
            lambda: inside_seconds("cp -r /data/tree copy; rm -rf copy", "", binds),
            "GNU on tmpfs",
            1.0,
            repeat=3,
        )
    finally:
        shutil.rmtree(folder)
