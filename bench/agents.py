"""Sandboxes of the OpenAI Agents SDK beside its own local backend. Needs the extra; run as `python -m bench agents`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.harness import Case, timed

FILES = "for d in {1..100}; do mkdir d$d; for i in {1..100}; do echo $d $i > d$d/f$i; done; done"


async def _life(client: Any) -> None:
    session = await client.create()
    async with session:
        assert (await session.exec("echo hi")).stdout == b"hi\n"
    await client.delete(session)


async def _persist_again(change: str = "") -> float:
    """Seconds to persist a workspace of 10,000 files again, after a change or none."""
    from ramet.agents.openai_agents import RametSandboxClient

    client = RametSandboxClient()
    session = await client.create()
    async with session:
        await session.exec(FILES)
        await session.persist_workspace()
        await session.exec(change or ":")
        start = time.perf_counter()
        await session.persist_workspace()
        took = time.perf_counter() - start
    await client.delete(session)
    return took


def cases() -> list[Case]:
    from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

    from ramet.agents.openai_agents import RametSandboxClient

    ours, theirs = RametSandboxClient(), UnixLocalSandboxClient()
    return [
        Case(
            "sandbox: create, start, exec, stop",
            timed(lambda: asyncio.run(_life(ours))),
            timed(lambda: asyncio.run(_life(theirs))),
            "unix_local",
            mark=0.5,
            repeat=15,
        ),
        Case(
            "sandbox: persist 10,000 unchanged files",
            lambda: asyncio.run(_persist_again()),
            absolute_mark=0.005,
            repeat=3,
        ),
        Case(
            "sandbox: persist 10,000 files, one changed",
            lambda: asyncio.run(_persist_again("echo new > d50/f50")),
            absolute_mark=0.02,
            repeat=3,
        ),
    ]
