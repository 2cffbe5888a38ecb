"""The language beside bash: a spawned bash for small commands, bash's own clock for work inside one process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from bench.harness import Case
from bench.peers import start_all
from bench.sandbox import inside_seconds, spawn_seconds
from ramet import Workspace
from ramet.shell.syntax.parser import Parser

TIMES = 200

SMALL = {
    "echo hi": ("echo hi", 0.1),
    "echo | tr | wc": ("echo hello | tr a-z A-Z | wc -c", 0.1),
    "ten builtins in a pipeline": (" | ".join(["echo x", *["while read l; do echo $l; done"] * 9]), 0.2),
}
WORK = {
    "100,000-turn arithmetic loop": ("for ((i=0;i<100000;i++)); do ((s+=i)); done", 1.5),
    "20,000 function calls with locals": (
        'f() { local a=$1 b=2; r=$((a+b)); }; for ((i=0;i<20000;i++)); do f $i; done', 2.0),
    "20,000 ${x%..} and case": (
        'for ((i=0;i<20000;i++)); do x=file$i.txt; y=${x%.txt}; case $y in *9) z=1;; file*) z=2;; esac; done', 2.0),
    "1,000 command substitutions": ("for ((i=0;i<1000;i++)); do x=$(echo $i); done", 0.2),
    "10,000 array appends and reads": ("for ((i=0;i<10000;i++)); do a+=($i); done; echo ${a[@]} > /dev/null", 3.0),
    "string building, 20,000 turns": ('for ((i=0;i<20000;i++)); do s+="$i,"; done; echo ${#s} > /dev/null', 3.0),
    "while read, 20,000 lines": ("seq 20000 > /tmp/n; while read x; do y=$x; done < /tmp/n", 2.0),
}  # fmt: skip


def ours(script: str, times: int = 1) -> float:
    """Seconds per run, in a warm workspace, history included."""

    async def act() -> float:
        ws = Workspace()
        await ws.execute(script)
        start = time.perf_counter()
        for _ in range(times):
            await ws.execute(script)
        spent = (time.perf_counter() - start) / times
        await ws.close()
        return spent

    return asyncio.run(act())


def many_sessions(count: int = 1000) -> float:
    async def one(ws: Workspace, number: int) -> None:
        name = f"s{number}"
        ws.create_session(name)
        await ws.execute(f"x={number}; echo $x > /tmp/{number}", session_id=name)
        assert (await ws.execute(f"cat /tmp/{number}; echo $x", session_id=name)).exit_code == 0

    async def act() -> float:
        ws = Workspace()
        start = time.perf_counter()
        await asyncio.gather(*(one(ws, number) for number in range(count)))
        return time.perf_counter() - start

    return asyncio.run(act())


def neighbour_delay() -> float:
    """Median latency of `echo` in one session while another one is in a tight loop."""

    async def act() -> float:
        ws = Workspace()
        ws.create_session("busy")
        busy = asyncio.create_task(ws.execute("while :; do ((x++)); done", session_id="busy", timeout=3))
        await asyncio.sleep(0.05)
        seen = []
        for _ in range(50):
            start = time.perf_counter()
            await asyncio.sleep(0)
            await ws.execute("echo")
            seen.append(time.perf_counter() - start)
            await asyncio.sleep(0.002)
        busy.cancel()
        await asyncio.gather(busy, return_exceptions=True)
        return sorted(seen)[len(seen) // 2]

    return asyncio.run(act())


def parse_seconds_per_megabyte() -> float:
    lines = [
        f'if [ "$x{i}" = "{i}" ]; then echo "value: ${{x{i}:-none}}" | sed s/a/b/ > out{i}.txt; fi'
        for i in range(20_000)
    ]
    text = "\n".join(lines)
    start = time.perf_counter()
    parser = Parser(text)
    while parser.next() is not None:
        pass
    return (time.perf_counter() - start) / (len(text) / 1e6)


def cases() -> Iterator[Case]:
    peers = start_all()
    for name, (script, mark) in SMALL.items():
        yield Case(
            name,
            lambda s=script: ours(s, TIMES),  # type: ignore[misc]
            lambda s=script: spawn_seconds(s),  # type: ignore[misc]
            "spawned bash",
            mark,
            peers={peer: running.measure(script) for peer, running in peers.items()},
        )
    for name, (script, mark) in WORK.items():
        yield Case(
            name,
            lambda s=script: ours(s),  # type: ignore[misc]
            lambda s=script: inside_seconds(s),  # type: ignore[misc]
            "bash",
            mark,
            repeat=3,
            peers={peer: running.measure(script) for peer, running in peers.items() if peer != "mirage-ai"},
        )
    yield Case("1,000 sessions x 2 commands", many_sessions, absolute_mark=2.0, repeat=3)
    yield Case("echo beside a tight loop (median)", neighbour_delay, absolute_mark=0.005, repeat=3)
    yield Case("parse 1 MB of script", parse_seconds_per_megabyte, absolute_mark=0.5, repeat=3)
    for running in peers.values():
        running.close()
