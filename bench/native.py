"""Native programs: one command, opening, forking and committing, beside bash and the in-process workspace."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bench.harness import Case, Measure, timed
from ramet.native.ingredients import ingredients
from ramet.workspace.stored.store import Store
from ramet.workspace.workspace import Workspace

FILES, FOLDERS = 12_000, 120
CHANGED = 11


def cases() -> list[Case]:
    missing = [one for one in ingredients() if one.required and not one.ok]
    if missing:
        print(f"SKIPPED: native: {missing[0].name}: {missing[0].detail}", file=sys.stderr)
        return []
    loop = asyncio.new_event_loop()
    live = loop.run_until_complete(_live())
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="ramet-bench-"))
    store = Store(folder / "store")
    loop.run_until_complete(_fill(store))

    def measured(work: Callable[[], Coroutine[Any, Any, float]]) -> Measure:
        return lambda: loop.run_until_complete(work())

    def command(ws: Workspace) -> Measure:
        return timed(lambda: loop.run_until_complete(ws.execute("true", native=True)))

    bash = timed(lambda: subprocess.run(["bash", "-c", "true"], check=True))
    small = loop.run_until_complete(_small())
    found = [
        Case("execute('true', native=True)", command(small), bash, "bash -c true", 4.0, repeat=30),
        Case("the same after 2,000 changed files", command(live), bash, "bash -c true", 4.0, repeat=10),
        Case(
            f"first command of {FILES:,} files, cached", measured(lambda: _first(store, "app")), absolute_mark=0.3,
            repeat=3,
        ),
        Case("fork, and its first command", measured(lambda: _fork(store)), absolute_mark=0.05, repeat=3),
        Case(
            f"commit of {CHANGED} changes in {FILES:,} files", measured(lambda: _commit(store, native=True)),
            measured(lambda: _commit(store, native=False)), "in process", 1.5, repeat=3,
        ),
        Case(
            "grep -r", timed(lambda: loop.run_until_complete(_grep(live))),
            timed(lambda: subprocess.run(["grep", "-rc", "x", str(folder / "bare")], stdout=subprocess.DEVNULL)),
            "bare disk", 1.5, repeat=3,
        ),
        Case("(end)", timed(lambda: _end(loop, (live, small), folder)), repeat=1),
    ]  # fmt: skip
    _write_tree(folder / "bare")
    return found


async def _small() -> Workspace:
    ws = Workspace(native=True)
    await ws.execute("true", native=True)
    return ws


async def _live() -> Workspace:
    ws = Workspace(native=True)
    await ws.execute(
        "mkdir /t; cd /t; for d in {1..20}; do mkdir $d; for f in {1..100}; do echo $f > $d/$f; done; done"
    )
    await ws.execute("true", native=True)
    return ws


def _write_tree(place: Path) -> None:
    for folder in range(20):
        (place / str(folder)).mkdir(parents=True)
        for number in range(100):
            (place / str(folder) / str(number)).write_text(f"{number}\n")


async def _grep(live: Workspace) -> None:
    await live.execute("grep -rc x /t > /dev/null", native=True)


async def _fill(store: Store) -> None:
    store.create("app")
    async with store.open("app") as ws:
        for folder in range(FOLDERS):
            count = FILES // FOLDERS
            await ws.execute(f"mkdir d{folder}; for n in {{1..{count}}}; do echo $n > d{folder}/$n; done")
    await _first(store, "app")


async def _first(store: Store, name: str) -> float:
    began = time.perf_counter()
    async with store.open(name, native=True) as ws:
        await ws.execute("true", native=True)
        return time.perf_counter() - began


async def _fork(store: Store) -> float:
    async with store.open("app", native=True, readonly=True):  # a server that already has a box
        began = time.perf_counter()
        name = f"fork{time.time_ns()}"
        store["app"].fork(None, name)
        return time.perf_counter() - began + await _first(store, name)


async def _commit(store: Store, *, native: bool) -> float:
    async with store.open("app", native=native) as ws:
        await ws.execute(f"for n in {{1..{CHANGED}}}; do echo {time.time_ns()} > d$n/1; done")
        began = time.perf_counter()
        await ws.commit("changes")
        return time.perf_counter() - began


def _end(loop: asyncio.AbstractEventLoop, opened: tuple[Workspace, ...], folder: Path) -> None:
    for ws in opened:
        loop.run_until_complete(ws.close())
    loop.close()
    shutil.rmtree(folder)
