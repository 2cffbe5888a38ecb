"""Runs hostile scripts one by one: JSON lines in, JSON lines out. A child of `attack.Victim`, inside its limits."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time

from ramet import Limits, RAMResource, Workspace

SMALL = 64 << 20
"""Bytes of the limits on what a command may hold, so that reaching them stays below what the sweeps allow."""
SEED = "seq 3 > a; cp a b; mkdir -p d; echo 'a,b' > d/c"


def memory(name: str) -> int:
    """Bytes of memory that this process has (`VmRSS`), or had at most since the last reset (`VmHWM`)."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def forget() -> int:
    """Reset the most memory that there was; return what there is now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return memory("VmRSS")


async def run(script: str, seconds: float) -> dict[str, object]:
    worst, done = 0.0, False

    async def probe() -> None:
        nonlocal worst
        last = time.thread_time()
        while not done:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            worst, last = max(worst, now - last), now

    limits = Limits(wall_time=seconds, whole_bytes=SMALL, string_bytes=SMALL)
    async with Workspace({"/": RAMResource(quota=SMALL)}, limits=limits) as ws:
        await ws.execute(SEED)
        before = forget()
        probing = asyncio.create_task(probe())
        await asyncio.sleep(0)
        try:
            result = await ws.execute(f"{{ {script}\n}} > /dev/null")
        finally:
            done = True
            await probing
        grown = memory("VmHWM") - before
        return {"status": result.exit_code, "error": result.error_text[-300:], "held": worst, "grown": grown}


def main() -> None:
    size = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        script, seconds = json.loads(line)
        try:
            answer = asyncio.run(run(script, seconds))
        except Exception as error:
            answer = {"status": -1, "error": repr(error), "held": 0.0, "grown": 0}
        print(json.dumps(answer), flush=True)
    os._exit(0)  # a thread that still computes must not keep the child


if __name__ == "__main__":
    main()
