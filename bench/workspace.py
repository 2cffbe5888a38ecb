"""Workspaces: making, copying, branching, saving and loading 10,000 files of 100 MB, beside GNU tar and mirage-ai."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.harness import Case, Measure, timed
from bench.peers import installed
from bench.sandbox import inside_seconds
from ramet import RAMResource, Workspace
from ramet.backends.local.buffers import Blocks
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


_MIRAGE = """
import asyncio, os, sys, time
from mirage import Workspace
from mirage.types import MountMode
from mirage.vfs.ram import RAMVFS

def made():
    return Workspace({"/": (RAMVFS(), MountMode.WRITE)})

async def main(files, size, snap):
    vfs = RAMVFS()
    content = os.urandom(size)
    for d in range(100):
        vfs._store.dirs.add(f"/d{d}")
        for f in range(files // 100):
            vfs._store.files[f"/d{d}/f{f}"] = content[:-8] + b"%8d" % (d * 100 + f)
    ws = Workspace({"/": (vfs, MountMode.WRITE)})
    acts = {"make": None, "copy": ws.copy, "snapshot": lambda: ws.snapshot(snap), "load": lambda: Workspace.load(snap)}
    for line in sys.stdin:
        act = acts[line.strip()]
        began = time.perf_counter()
        made() if act is None else await act()
        print(time.perf_counter() - began, flush=True)

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
"""


class Mirage:
    """mirage-ai with the same tree in its memory mount, asked over a pipe."""

    def __init__(self, snap: Path) -> None:
        words = [str(installed("mirage-ai")), "-c", _MIRAGE, str(FILES), str(FILE_SIZE), str(snap)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def peers(self, act: str) -> dict[str, Measure]:
        def measure() -> float:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(act + "\n")
            self._process.stdin.flush()
            return float(self._process.stdout.readline().strip() or "nan")

        return {"mirage-ai": measure}

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def cases() -> Iterator[Case]:
    folder = Path(tempfile.mkdtemp(dir=TMPFS))
    mirage = Mirage(folder / "mirage.tar")
    try:
        host_tree(folder / "tree")
        binds = {str(folder): "/data"}
        ws = Workspace({"/": filled()})
        snap = folder / "snap.tar"
        yield Case("Workspace()", in_loop(Workspace), absolute_mark=300e-6, repeat=20, peers=mirage.peers("make"))
        peers = mirage.peers("copy")
        yield Case("copy() of 10,000 files, 100 MB", timed(ws.copy), absolute_mark=1e-3, repeat=10, peers=peers)
        yield Case("branch() of the same", timed(ws.branch), absolute_mark=1e-3, repeat=10)
        yield Case(
            "snapshot of the same",
            timed(lambda: ws.snapshot(snap)),
            lambda: inside_seconds("tar cf /tmp/x.tar -C /data tree", "", binds),
            "tar cf",
            1.8,
            peers=mirage.peers("snapshot"),
        )
        yield Case(
            "load of the same",
            timed(lambda: Workspace.load(snap)),
            lambda: inside_seconds("mkdir o; tar xf x.tar -C o; rm -rf o", "tar cf x.tar -C /data tree", binds),
            "tar xf",
            1.8,
            peers=mirage.peers("load"),
        )
    finally:
        mirage.close()
        shutil.rmtree(folder)
