"""How long something keeps the event loop from its other work, in the processor time of the loop's own thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable


async def longest_hold(work: Awaitable[object]) -> float:
    """Seconds of work at most before the event loop gets a turn."""
    worst, done = 0.0, False

    async def probe() -> None:
        nonlocal worst
        last = time.thread_time()
        while not done:
            await asyncio.sleep(0)
            now = time.thread_time()
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
