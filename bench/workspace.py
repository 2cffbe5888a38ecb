"""Workspaces: making, copying, branching, saving and loading 10,000 files of 100 MB, beside GNU tar."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.harness import Case, timed
from bench.sandbox import inside_seconds
from ramet import RAMResource, Workspace
from ramet.backends.blocks import Blocks
from ramet.core.paths import parse

TMPFS = "/dev/shm" if os.path.isdir("/dev/shm") else None
FILES, FILE_SIZE = 10_000, 10_000


def filled() -> RAMResource:
    ram = RAMResource()
    content = os.urandom(FILE_SIZE)

    async def fill() -> None:
        for d in range(100):
            await ram.mkdir(parse(f"/d{d}"))
            for f in range(FILES // 100):
                ram.put_now(parse(f"/d{d}/f{f}"), Blocks(content[:-8] + b"%8d" % (d * 100 + f)))

    asyncio.run(fill())
    return ram


def host_tree(folder: Path) -> None:
    content = os.urandom(FILE_SIZE)
    for d in range(100):
        (folder / f"d{d}").mkdir(parents=True)
        for f in range(FILES // 100):
            (folder / f"d{d}" / f"f{f}").write_bytes(content)


def in_loop(act: Callable[[], object]) -> Callable[[], float]:
    def measure() -> float:
        async def run() -> float:
            start = time.perf_counter()
            act()
            return time.perf_counter() - start

        return asyncio.run(run())

    return measure


def cases() -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(dir=TMPFS))
    try:
        host_tree(folder / "tree")
        binds = {str(folder): "/data"}
        ws = Workspace({"/": filled()})
        snap = folder / "snap.tar"
        yield Case("Workspace()", in_loop(Workspace), absolute_mark=300e-6, repeat=20)
        yield Case("copy() of 10,000 files, 100 MB", timed(ws.copy), absolute_mark=1e-3, repeat=10)
        yield Case("branch() of the same", timed(ws.branch), absolute_mark=1e-3, repeat=10)
        yield Case(
            "snapshot of the same",
            timed(lambda: ws.snapshot(snap)),
            lambda: inside_seconds("tar cf /tmp/x.tar -C /data tree", "", binds),
            "tar cf",
            1.8,
        )
        yield Case(
            "load of the same",
            timed(lambda: Workspace.load(snap)),
            lambda: inside_seconds("mkdir o; tar xf x.tar -C o; rm -rf o", "tar cf x.tar -C /data tree", binds),
            "tar xf",
            1.8,
        )
    finally:
        shutil.rmtree(folder)
