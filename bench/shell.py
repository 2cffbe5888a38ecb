"""The language beside bash: a spawned bash for small commands, bash's own clock for work inside one process.

Peers stop after some thousands of commands in one session, whatever their settings say; so they run a part of the
turns in a new session each, and the time of that part is multiplied. A script that a peer fails shows as `nan`.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator

from tests.support.loop_holds import longest_hold

from bench.harness import Case, Measure
from bench.peers import start_all
from bench.sandbox import inside_seconds, spawn_seconds
from ramet import Workspace
from ramet.shell.interp.run.compile import compile_script
from ramet.shell.syntax.parser import Parser

TIMES = 200

SMALL = {
    "echo hi": ("echo hi", 0.1),
    "echo | tr | wc": ("echo hello | tr a-z A-Z | wc -c", 0.1),
    "ten builtins in a pipeline": (" | ".join(["echo x", *["while read l; do echo $l; done"] * 9]), 0.2),
}
TURNS = "@"
"""Stands for the number of turns in a script."""
WORK = {
    "arithmetic loop": (100_000, "for ((i=0;i<@;i++)); do ((s+=i)); done", 1.5),
    "function calls with locals": (
        20_000, 'f() { local a=$1 b=2; r=$((a+b)); }; for ((i=0;i<@;i++)); do f $i; done', 2.0),
    "${x%..} and case": (
        20_000, 'for ((i=0;i<@;i++)); do x=f$i.txt; y=${x%.txt}; case $y in *9) z=1;; f*) z=2;; esac; done', 2.0),
    "command substitutions": (1000, "for ((i=0;i<@;i++)); do x=$(echo $i); done", 0.2),
    "array appends": (10_000, "for ((i=0;i<@;i++)); do a+=($i); done", 3.0),
    "string building": (20_000, 'for ((i=0;i<@;i++)); do s+="$i,"; done', 2.0),
    "while read": (20_000, "seq @ > /tmp/n; while read x; do y=$x; done < /tmp/n", 2.0),
    "while IFS= read -r": (20_000, "seq @ > /tmp/n; while IFS= read -r x; do y=$x; done < /tmp/n", 3.0),
    "words of a brace expansion": (200_000, "for x in {1..@}; do :; done; [[ $x == @ ]]", 2.0),
    "parameters of a brace expansion": (100_000, 'set -- {1..@}; echo "$@"; [[ $# == @ ]]', 2.0),
}  # fmt: skip
PARTS = {"bashkit": 20, "just-bash": 20, "mirage-ai": 100}
"""The part of the turns that each peer runs, where there are so many that it would not run them all."""
FEW = 1000
"""Turns that every peer runs as they are: what it takes to begin would be multiplied with a part of them."""
HOSTILE = {
    "${x//a*b/c} on 10 MB": "x=$(head -c 10000000 /dev/zero | tr '\\0' a); : ${x//a*b/c}",
    "${x%%b*} on 10 MB": "x=$(head -c 10000000 /dev/zero | tr '\\0' a); : ${x%%b*}",
    "=~ on 10 MB": "x=$(head -c 10000000 /dev/zero | tr '\\0' a); [[ $x =~ (a*)*b ]]",
    "10,000 statements on one line": "; ".join([":"] * 10_000),
    "{1..100000000}": "echo {1..100000000}",
    "{a,b} thirty times": "echo " + "{a,b}" * 30,
    "printf %1000000000d": "printf %1000000000d 1",
    "100,000 words split": "x=$(seq 100000); set -- $x",
    "array of 100,000": 'a=({1..100000}); b=("${a[@]}")',
    "a tight loop": "for ((i = 0; i < 200000; i++)); do :; done",
}


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


def held_by(script: str) -> float:
    """Seconds of work that a script does at most before the event loop gets a turn."""

    async def act() -> float:
        ws = Workspace()
        await ws.execute("head -c 9 /dev/zero | tr a b > /tmp/x; seq 1 > /tmp/x; [[ a =~ b ]]")
        return await longest_hold(ws.execute(script))

    return asyncio.run(act())


def scaled(measure: Measure, part: int) -> Measure:
    return lambda: measure() * part


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


def parse_seconds_per_megabyte(compiled: bool = False) -> float:
    """Reading alone leaves the words of plain commands unread: that is for who compiles them."""
    lines = [
        f'if [ "$x{i}" = "{i}" ]; then echo "value: ${{x{i}:-none}}" | sed s/a/b/ > out{i}.txt; fi'
        for i in range(20_000)
    ]
    text = "\n".join(lines)
    gc.collect()
    gc.freeze()  # what earlier rows left behind is not the parser's to look through
    start = time.process_time()
    parser = Parser(text)
    while (script := parser.next()) is not None:
        if compiled:
            compile_script(script)
    spent = time.process_time() - start
    gc.unfreeze()
    return spent / (len(text) / 1e6)


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
    for name, (turns, script, mark) in WORK.items():
        whole = script.replace(TURNS, str(turns))
        yield Case(
            f"{turns:,} {name}",
            lambda s=whole: ours(s),  # type: ignore[misc]
            lambda s=whole: inside_seconds(s),  # type: ignore[misc]
            "bash",
            mark,
            repeat=3,
            peers={
                peer: scaled(running.measure(script.replace(TURNS, str(turns // part))), part)
                for peer, running in peers.items()
                for part in [PARTS[peer] if turns > FEW else 1]
            },
        )
    for name, script in HOSTILE.items():
        yield Case(
            f"held up by {name}",
            lambda s=script: held_by(s),  # type: ignore[misc]
            absolute_mark=0.02,
            repeat=3,
        )
    yield Case("1,000 sessions x 2 commands", many_sessions, absolute_mark=2.0, repeat=3)
    yield Case("echo beside a tight loop (median)", neighbour_delay, absolute_mark=0.005, repeat=3)
    yield Case("parse 1 MB of script", parse_seconds_per_megabyte, absolute_mark=0.5, repeat=3)
    yield Case(
        "parse and compile 1 MB of script", lambda: parse_seconds_per_megabyte(True), absolute_mark=3.0, repeat=3
    )
    for running in peers.values():
        running.close()
