"""Stores on three trees beside git, restic, borg and ostree, and what a workspace in memory costs to commit and fork.

A tool goes through its whole life on a tree once per round (first commit, unchanged, 1 % changed, checkout, checkout
when 99 % is there) and the least of the rounds counts. All trees and stores lie in memory, so nothing waits for a disk.
`RAMET_BENCH_PEERS` names the tools to run beside (`git,restic`); with `RAMET_BENCH_CLOCK=cpu` the time of processors is
measured instead of the clock's, for machines on which others work. `RAMET_BENCH_MANY=1000000` adds what so many files
take, which is minutes and gigabytes.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bench.harness import Case
from bench.store_trees import PEERS, SCALE, STEPS, TREES, Peer, change, scratch, size_of
from ramet import RAMResource, Store
from ramet.core.paths import parse
from ramet.store.checkout.directory import checkout
from ramet.store.commit.directory import commit_directory
from ramet.store.commit.stat_cache import StatCache
from ramet.store.crypto.codec import as_encrypted, unlock
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import DirectoryObjects, Objects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

ROUNDS = int(os.environ.get("RAMET_BENCH_ROUNDS", "2"))
ASKED = os.environ.get("RAMET_BENCH_PEERS", "")
BESIDE = [peer for peer in PEERS if peer.there and (not ASKED or peer.name in ASKED.split(","))]
MANY = os.environ.get("RAMET_BENCH_MANY", "")
Times = dict[str, float]

MARKS: dict[str, dict[str, float]] = {
    "first commit": {"20k": 0.25, "large": 0.07, "100k": 0.31},
    "unchanged": {"20k": 1.0, "100k": 1.6},
    "1% changed": {"20k": 1.4, "large": 0.05, "100k": 1.4},
    "checkout": {"20k": 0.5, "large": 0.33, "100k": 0.67},
    "checkout 99% there": {"20k": 1.2, "100k": 1.2},
}
"""The highest ratio to git that is good enough."""


def clock() -> float:
    """Seconds that passed, or that this process and those it waited for had a processor."""
    if os.environ.get("RAMET_BENCH_CLOCK") != "cpu":
        return time.perf_counter()
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


@cache
def tree(name: str) -> Path:
    """One of the trees, old enough that no store has to doubt its times."""
    root = scratch(name)
    TREES[name](root)
    _DOOMED.append(root)
    time.sleep(2.1)
    return root


_DOOMED: list[Path] = []


def ours(root: Path, encrypted: bool = False) -> Times:
    """Ramet in this process."""
    store, out = scratch("store"), scratch("out")
    times: Times = {}
    objects: Objects = DirectoryObjects(str(store))
    codec = None
    if encrypted:
        sealed = as_encrypted(unlock(objects, bytes(32), True, time.time))
        assert sealed is not None
        objects, codec = sealed.for_workspace("w"), sealed.cache("w")
    packs = PackReader(objects)
    stats = StatCache(f"{store}/local/stat", str(root), codec)

    def commit(step: str) -> TreeId:
        began = clock()
        packs.refresh()
        writer = PackWriter(objects, packs)
        found = commit_directory(str(root), writer, stats).tree
        writer.finish()
        times[step] = clock() - began
        return found

    def out_to(step: str, found: TreeId, folder: str, **options: Any) -> None:
        began = clock()
        receipt = checkout(packs, found, folder, **options)
        times[step] = clock() - began
        assert not receipt.problems

    try:
        commit("first commit")
        times["size"] = size_of(store / "packs")
        before = commit("unchanged")
        change(root)
        after = commit("1% changed")
        out_to("checkout", after, f"{out}/tree")
        out_to("checkout 99% there", before, f"{out}/tree")
        out_to("filling", after, f"{out}/first", how="hardlink")
        out_to("hard links", after, f"{out}/second", how="hardlink")
    finally:
        shutil.rmtree(store)
        shutil.rmtree(out)
    return times


def theirs(peer: Peer, root: Path) -> Times:
    store, out = scratch(peer.name), scratch("out")
    times: Times = {}

    def run(step: str, commands: list[str]) -> None:
        began = clock()
        peer.run(commands, root, store, out)
        times[step] = clock() - began

    try:
        peer.run(peer.prepare, root, store, out)
        run("first commit", peer.commit)
        times["size"] = size_of(store)
        run("unchanged", peer.commit)
        change(root)
        run("1% changed", peer.commit)
        run("checkout", peer.checkout)
        if peer.incremental is not None:
            run("checkout 99% there", peer.incremental)
    finally:
        shutil.rmtree(store)
        shutil.rmtree(out)
    return times


@cache
def measured(name: str) -> dict[str, Times]:
    """The least time of every tool for every step on one tree, the tools taking turns."""
    best: dict[str, Times] = {}
    runs: dict[str, Callable[[Path], Times]] = {"ramet": ours, "encrypted": lambda root: ours(root, True)}
    for peer in BESIDE:
        runs[peer.name] = lambda root, peer=peer: theirs(peer, root)  # type: ignore[misc]
    for _ in range(ROUNDS):
        for tool, run in runs.items():
            for step, took in run(tree(name)).items():
                known = best.setdefault(tool, {})
                known[step] = min(took, known.get(step, took))
    shutil.rmtree(tree(name))
    return best


def _of(name: str, tool: str, step: str) -> Callable[[], float]:
    return lambda: measured(name).get(tool, {}).get(step, float("nan"))


def directories() -> Iterator[Case]:
    there = [peer.name for peer in BESIDE]
    others = [name for name in there if name != "git"]
    for name in TREES:
        for step in STEPS:
            peers = {other: _of(name, other, step) for other in others if step != "checkout 99% there"}
            yield Case(
                f"{name}: {step}", _of(name, "ramet", step), _of(name, "git", step), "git",
                mark=MARKS[step].get(name), repeat=1, peers=peers,
            )  # fmt: skip
        for step in ("first commit", "1% changed", "checkout"):
            yield Case(
                f"{name}: {step}, encrypted", _of(name, "encrypted", step), _of(name, "ramet", step), "plain",
                mark=1.25, repeat=1,
            )  # fmt: skip
        if "restic" in there:
            yield Case(
                f"{name}: first commit beside restic", _of(name, "ramet", "first commit"),
                _of(name, "restic", "first commit"), "restic", mark=0.4, repeat=1,
            )  # fmt: skip
            yield Case(
                f"{name}: bytes of the store", _of(name, "ramet", "size"), _of(name, "restic", "size"), "restic",
                mark=1.15, repeat=1, unit="bytes",
            )  # fmt: skip
        if "ostree" in there:
            yield Case(
                f"{name}: checkout by hard links", _of(name, "ramet", "hard links"), _of(name, "ostree", "checkout"),
                "ostree", mark=1.2, repeat=1,
            )  # fmt: skip


# ------------------------------------------------------------------------------------------------- workspaces


def _resource() -> RAMResource:
    """100,000 files in memory, a hundred in each directory."""
    ram = RAMResource()

    async def fill() -> None:
        for number in range(int(100_000 * SCALE)):
            if number % 10_000 == 0:
                await ram.mkdir(parse(f"/d{number // 10_000}"))
            if number % 100 == 0:
                await ram.mkdir(parse(f"/d{number // 10_000}/e{number // 100 % 100}"))
            path = parse(f"/d{number // 10_000}/e{number // 100 % 100}/f{number % 100}")
            await ram.write(path, b"file number %d\n" % number)

    asyncio.run(fill())
    return ram


@cache
def memory() -> Times:
    """Everything that is asked of a workspace of 100,000 files in memory, in one life."""
    where = scratch("memory")
    found: Times = {}

    def least(name: str, took: float) -> None:
        found[name] = min(took, found.get(name, took))

    async def act() -> None:
        store = Store(str(where))
        store.create("w")
        async with store.open("w", mounts={"/": _resource_in_thread()}) as ws:
            began = time.perf_counter()
            await ws.commit("all")
            found["first"] = time.perf_counter() - began
            for _ in range(10):
                began = time.perf_counter()
                await ws.commit("same")
                least("unchanged", time.perf_counter() - began)
            for round_ in range(10):
                for number in range(10):
                    path = parse(f"/d{number % 2}/e{number}/f{round_}")
                    await ws.fs.write(path, b"changed %d" % round_)
                began = time.perf_counter()
                await ws.commit("ten")
                least("ten changed", time.perf_counter() - began)
        handle = store["w"]
        before = size_of(where)
        began = time.perf_counter()
        count = int(10_000 * SCALE)
        for number in range(count):
            handle.fork(None, f"fork{number}")
        found["forks"] = (time.perf_counter() - began) / SCALE
        found["fork"] = (time.perf_counter() - began) / count
        found["bytes of a fork"] = (size_of(where) - before) / count
        for number in range(5):
            fresh = Store(str(where))
            began = time.perf_counter()
            async with fresh.open(f"fork{number}", readonly=True) as ws:
                assert (await ws.execute("cat /d0/e50/f50")).text == "file number 5050\n"
                least("open a fork", time.perf_counter() - began)
        for _ in range(5):
            began = time.perf_counter()
            assert len(handle.diff()) == 10
            least("diff", time.perf_counter() - began)

    try:
        asyncio.run(act())
    finally:
        shutil.rmtree(where)
    return found


def _resource_in_thread() -> RAMResource:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_resource).result()


@cache
def insertion() -> float:
    """Megabytes that a byte at the front of 100 MB costs."""
    where = scratch("insert")
    size = int(100_000_000 * SCALE)
    (where / "tree").mkdir()
    data = os.urandom(size)
    (where / "tree" / "big").write_bytes(data)
    objects = DirectoryObjects(str(where / "store"))
    packs = PackReader(objects)
    try:
        for content in (data, b"!" + data):
            (where / "tree" / "big").write_bytes(content)
            before = size_of(where / "store")
            writer = PackWriter(objects, packs)
            commit_directory(str(where / "tree"), writer, StatCache())
            writer.finish()
            grown = size_of(where / "store") - before
    finally:
        shutil.rmtree(where)
    return grown / 1e6


HELD = """
import os, sys, time
from ramet.store.commit.directory import commit_directory
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.writer import PackWriter
from ramet.store.packs.reader import PackReader
from ramet.store.commit.stat_cache import StatCache

base, files = sys.argv[1], int(sys.argv[2])
for number in range(files):
    if number % 200 == 0:
        folder = f"{base}/tree/d{number // 200}"
        os.makedirs(folder)
    with open(f"{folder}/f{number}", "w") as file:
        file.write(str(number))
objects = DirectoryObjects(f"{base}/store")
packs = PackReader(objects)
for _ in range(2):
    writer = PackWriter(objects, packs)
    stats = StatCache.load(packs.local, f"{base}/tree", packs.names())
    commit_directory(f"{base}/tree", writer, stats, now=lambda: time.time_ns() + 10**10)
    writer.finish()
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmHWM")))
"""


@cache
def held() -> float:
    """Megabytes of memory that a process needs at most to commit 200,000 files, first all of them and then none."""
    where = scratch("held")
    try:
        command = [sys.executable, "-c", HELD, str(where), str(int(200_000 * SCALE))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout) / 1024
    finally:
        shutil.rmtree(where)


@cache
def many() -> Times:
    """Seconds and megabytes of each step on very many tiny files, in a process of its own."""
    where = scratch("many")
    try:
        command = [sys.executable, "-m", "bench.store_many", str(where), MANY]
        return dict(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    finally:
        shutil.rmtree(where)


class Counted:
    """Counts the requests that pass."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.calls = inner, Counter[str]()
        self.local, self.remote = inner.local, inner.remote

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)  # what is not there, or is no call, is no request
        if callable(found):
            self.calls[name] += 1
        return found


@cache
def on_s3() -> Times:
    """How often a real S3 server is asked."""
    from obstore.store import S3Store
    from tests.support.servers import seaweed

    from ramet.store.objects.objects import ObstoreObjects

    folder = scratch("s3")
    found: Times = {}

    async def act(server: Any) -> None:
        store = S3Store(
            server.bucket, endpoint=server.endpoint, access_key_id=server.key, secret_access_key=server.secret,
            region=server.region, virtual_hosted_style_request=False, client_options={"allow_http": True},
        )  # fmt: skip
        counted = Counted(ObstoreObjects(store, "bench"))
        opened = Store(counted)
        opened.create("w")
        ram = RAMResource()
        for number in range(10_000):
            if number % 100 == 0:
                await ram.mkdir(parse(f"/d{number // 100}"))
            await ram.write(parse(f"/d{number // 100}/f{number}"), b"file %d\n" % number)
        async with opened.open("w", mounts={"/": ram}) as ws:
            counted.calls.clear()
            await ws.commit("all")
            found["puts"] = counted.calls["put"] + counted.calls["create"]
        cold = Counted(ObstoreObjects(store, "bench"))
        async with Store(cold).open("w", readonly=True) as ws:
            assert (await ws.execute("cat /d5/f505")).text == "file 505\n"
        found["requests"] = sum(cold.calls.values())

    try:
        with seaweed(folder) as server:
            asyncio.run(act(server))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _in_memory(step: str) -> Callable[[], float]:
    return lambda: memory()[step]


def workspaces() -> Iterator[Case]:
    yield Case("memory, 100k files: unchanged commit", _in_memory("unchanged"), absolute_mark=1e-3, repeat=1)
    yield Case("memory, 100k files: commit of 10 changes", _in_memory("ten changed"), absolute_mark=5e-3, repeat=1)
    yield Case("fork", _in_memory("fork"), absolute_mark=1e-3, repeat=1)
    yield Case("10,000 forks", _in_memory("forks"), absolute_mark=10, repeat=1)
    yield Case("bytes of a fork (as seconds)", _in_memory("bytes of a fork"), absolute_mark=1000, repeat=1)
    yield Case("open a fork of 100k files, read one", _in_memory("open a fork"), absolute_mark=0.05, repeat=1)
    yield Case("diff of 100k files, 10 differ", _in_memory("diff"), absolute_mark=0.02, repeat=1)
    yield Case("MB for a byte before 100 MB (as seconds)", insertion, absolute_mark=2, repeat=1)
    yield Case("MB of memory to commit 200,000 files (as seconds)", held, absolute_mark=130, repeat=1)
    yield Case("S3: PUTs for 10,000 files (as seconds)", lambda: on_s3()["puts"], absolute_mark=49, repeat=1)
    yield Case("S3: requests to open and read (as seconds)", lambda: on_s3()["requests"], absolute_mark=9, repeat=1)


def _of_many(step: str) -> Callable[[], float]:
    return lambda: many()[step]


def very_many() -> Iterator[Case]:
    for step in (*STEPS, "diff") if MANY else ():
        yield Case(f"{MANY} files: {step}", _of_many(step), repeat=1)
        yield Case(
            f"{MANY} files: memory after {step}", _of_many(f"{step}: MB"), absolute_mark=300, repeat=1, unit="MB"
        )


def cases() -> Iterator[Case]:
    wanted = os.environ.get("RAMET_BENCH_ONLY", "")
    for case in (*workspaces(), *directories(), *very_many()):
        if wanted in case.name:
            yield case


if __name__ == "__main__":
    from bench.harness import print_table, run_case

    print_table([run_case(case) for case in cases()])
