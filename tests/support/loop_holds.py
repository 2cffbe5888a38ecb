"""How long something keeps the event loop from its other work, in the processor time of the loop's own thread.

Rule: no bound here is one of wall clock. A machine that is busy, slow or stopped for a while makes no test fail, what
holds the loop fails every try.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from ramet import RAMResource, Workspace
from ramet.core.paths import parse

TRIES = 5
PACE = 0.0025
"""Seconds of processor time that `_work` takes on the machine that the bounds were made for."""
HANDED_OVER = 0.010
"""Seconds after which a thread that computes has given way to the loop there."""


async def longest_hold(work: Awaitable[object], clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds of work at most before the event loop gets a turn; those of all threads by `time.process_time`."""
    worst, done = 0.0, False

    async def probe() -> None:
        nonlocal worst
        last = clock()
        while not done:
            await asyncio.sleep(0)
            now = clock()
            worst, last = max(worst, now - last), now

    probing = asyncio.create_task(probe())
    await asyncio.sleep(0)
    worst = 0.0
    try:
        await work
    finally:
        done = True
        await probing
    return worst


async def held_by(
    script: str,
    *before: str,
    files: Mapping[str, bytes] | None = None,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """The longest hold of a script, in a workspace where others ran before; where there are files, among them.

    What is imported on the first call is not at stake: one of those before should make it.
    """
    ram = RAMResource()
    for name, data in (files or {}).items():
        await ram.write(parse(f"/{name}"), data)
    ws = Workspace({"/data": ram} if files else {})
    where = "/data" if files else None
    for one in before:
        await ws.execute(one, cwd=where)
    worst = await longest_hold(ws.execute(script, cwd=where), clock)
    await ws.close()
    return worst


def too_long(
    measure: Callable[[], Coroutine[Any, Any, float]], bound: float, tries: int = TRIES, *, threads: bool = False
) -> list[float]:
    """What was measured, if it was over the bound in all tries; nothing if one of them stayed below it.

    Caches that others fill or a turn of the host make a try longer than it is: never all of them. Python's collector
    rests meanwhile: how long it takes depends on all that the process holds, here on thousands of other tests. What is
    measured of all `threads` grows while the system lets the loop's own one wait, so that is looked at as well.
    """
    taken: list[float] = []
    for _ in range(tries):
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            taken.append(asyncio.run(measure()))
        finally:
            gc.enable()
        if taken[-1] < bound or taken[-1] < bound * slowness() or (threads and taken[-1] < bound * crowding()):
            return []
    return taken


class Lateness:
    """Seconds since it was made. Work counts in full; waiting by a twentieth, since others take the processor too."""

    def __init__(self) -> None:
        self._spent, self._started = time.process_time(), time.monotonic()

    def __call__(self, expected: float = 0.0) -> float:
        spent, passed = time.process_time() - self._spent, time.monotonic() - self._started
        return max(spent - expected, (passed - expected) / 20)


def slowness() -> float:
    """How many times longer than it should anything takes now on this machine; never less than 1."""
    return max(1.0, min(_work() for _ in range(3)) / PACE)


def crowding() -> float:
    """How many times longer than it should the loop waits for its turn beside a thread that gives way all the time."""

    def compute() -> None:
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass

    async def beside() -> float:
        return await longest_hold(asyncio.to_thread(compute), time.process_time)

    return max(1.0, asyncio.run(beside()) / HANDED_OVER)


def _work() -> float:
    start, seen = time.thread_time(), {}
    for number in range(20_000):
        seen[number & 255] = (number, str(number))
    return time.thread_time() - start
