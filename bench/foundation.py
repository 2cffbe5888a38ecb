"""Import, small files, walks, bulk bytes and forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path as HostPath

from bench.harness import Case, timed
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import Resource
from ramet.layers.stack import Policy, build
from ramet.vfs.dev import DevResource
from ramet.vfs.vfs import VFS

TMPFS = "/dev/shm" if os.path.isdir("/dev/shm") else None
MIB = 1 << 20


def stacked(resource: Resource) -> VFS:
    return VFS({ROOT: build(resource, Policy()), parse("/dev"): DevResource()})


def import_seconds(module: str) -> float:
    """Time that importing takes in a fresh interpreter, without the interpreter's own start."""
    code = f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)


def import_megabytes() -> float:
    code = (
        "import resource\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nimport ramet\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)


async def fill(fs: Resource, files: int) -> None:
    for d in range(files // 100):
        await fs.mkdir(parse(f"/d{d}"))
        for f in range(100):
            await fs.write(parse(f"/d{d}/file{f}.txt"), b"some content of a small file\n")


def walk_ours(fs: Resource) -> float:
    async def walk() -> float:
        start = time.perf_counter()
        pending = [ROOT]
        seen = 0
        while pending:
            here = pending.pop()
            async for name, stat in fs.scan(here):
                seen += 1
                if stat.is_dir:
                    pending.append(here / name)
        assert seen > 1000
        return time.perf_counter() - start

    return asyncio.run(walk())


def walk_host(top: str) -> float:
    """A walk that learns what ours learns: the stat of everything."""
    start = time.perf_counter()
    for here, directories, files in os.walk(top):
        for name in (*directories, *files):
            os.lstat(os.path.join(here, name))
    return time.perf_counter() - start


def repeated(fs: Resource, path: Path, verb: str, times: int = 2000) -> float:
    """Seconds per call."""

    async def act() -> float:
        start = time.perf_counter()
        if verb == "read":
            for _ in range(times):
                await ops.read_bytes(fs, path)
        elif verb == "write":
            for _ in range(times):
                await fs.write(path, b"some content of a small file\n")
        else:
            for _ in range(times):
                await fs.stat(path)
        return (time.perf_counter() - start) / times

    return asyncio.run(act())


def host_read(path: str, times: int = 2000) -> float:
    start = time.perf_counter()
    for _ in range(times):
        with open(path, "rb") as file:
            file.read()
    return (time.perf_counter() - start) / times


def read_all(fs: Resource, path: Path) -> float:
    async def act() -> float:
        start = time.perf_counter()
        total = 0
        async for block in fs.read(path):
            total += len(block)
        assert total == 100 * MIB
        return time.perf_counter() - start

    return asyncio.run(act())


def write_all(fs: Resource, path: Path) -> float:
    async def blocks():  # type: ignore[no-untyped-def]
        block = os.urandom(MIB)
        for _ in range(100):
            yield block

    async def act() -> float:
        start = time.perf_counter()
        await fs.write(path, blocks())  # type: ignore[no-untyped-call]
        return time.perf_counter() - start

    return asyncio.run(act())


def host_read_all(path: str) -> float:
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.read(MIB):
            pass
    return time.perf_counter() - start


def memory_copy() -> float:
    data = bytes(100 * MIB)
    start = time.perf_counter()
    bytearray(data)
    return time.perf_counter() - start


def cases() -> Iterator[Case]:
    yield Case("import ramet", lambda: import_seconds("ramet"), absolute_mark=0.06)
    with tempfile.TemporaryDirectory(dir=TMPFS) as folder:
        root = HostPath(folder) / "tree"
        ram, disk = stacked(RAMResource()), stacked(DiskResource(root))
        asyncio.run(fill(ram, 10_000))
        asyncio.run(fill(disk, 10_000))
        small, host = parse("/d7/file7.txt"), str(root / "d7" / "file7.txt")
        yield Case("stat, RAM", lambda: repeated(ram, small, "stat"), absolute_mark=5e-6)
        yield Case("read small file, RAM", lambda: repeated(ram, small, "read"), absolute_mark=10e-6)
        yield Case("write small file, RAM", lambda: repeated(ram, small, "write"), absolute_mark=20e-6)
        yield Case(
            "read small file, disk", lambda: repeated(disk, small, "read"), lambda: host_read(host), "open/read", 3.0
        )
        yield Case("walk 10,000, RAM", lambda: walk_ours(ram), lambda: walk_host(str(root)), "os.walk+lstat", 3.0)
        yield Case("walk 10,000, disk", lambda: walk_ours(disk), lambda: walk_host(str(root)), "os.walk+lstat", 2.0)
        big = parse("/big")
        yield Case("write 100 MB, RAM", lambda: write_all(ram, big), memory_copy, "memcpy", 2.0, repeat=3)
        yield Case("read 100 MB, RAM", lambda: read_all(ram, big), memory_copy, "memcpy", 2.0, repeat=3)
        write_all(disk, big)
        path = str(root / "big")
        yield Case("read 100 MB, disk", lambda: read_all(disk, big), lambda: host_read_all(path), "read", 1.25)
    tree = RAMResource()
    asyncio.run(fill(tree, 100_000))
    yield Case("fork of 100,000 files", timed(tree.fork), absolute_mark=1e-3)
