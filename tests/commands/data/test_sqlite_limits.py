"""sqlite3 ends when its time is up, and holds no more than its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ramet import Limits, Workspace
from ramet.concurrency.offload import THREADS

ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c)"
SLOW = f"{ENDLESS} select sum(length(hex(randomblob(1000000)))) from c"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a thread changes it
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("stop", ["timeout", "cancel"])
def test_what_was_stopped_leaves_its_thread(stop: str) -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute("sqlite3 :memory: 'select 1'")
            timeout = 1 if stop == "timeout" else None
            running = asyncio.ensure_future(ws.execute(f"sqlite3 :memory: '{SLOW}'", timeout=timeout))
            await until(lambda: THREADS.busy(ws) == 1)
            if stop == "cancel":
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            else:
                assert (await running).exit_code == 124
            await until(lambda: THREADS.busy(ws) == 0)

    asyncio.run(act())


def test_the_threads_of_a_workspace_are_not_those_of_another() -> None:
    async def act() -> None:
        async with Workspace() as greedy, Workspace() as other:
            sessions = [greedy.create_session(str(number)).session_id for number in range(40)]
            running = [
                asyncio.ensure_future(greedy.execute(f"sqlite3 :memory: '{SLOW}'", session_id=session))
                for session in sessions
            ]
            await until(lambda: THREADS.busy(greedy) == 8)
            assert (await other.execute("sqlite3 :memory: 'select 1'", timeout=60)).text == "1\n"
            assert THREADS.busy(greedy) == 8
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(act())


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select length(zeroblob(3000000))", "too big"),
        ("select length(replace(hex(zeroblob(500000)), 0, 1234567890))", "too big"),
        (f"{ENDLESS} select zeroblob(10000) from c", "limit reached: whole_bytes (4194304)"),
        (f"create table t(x); insert into t {ENDLESS} select zeroblob(10000) from c", "full"),
    ],
)
def test_sizes_are_bounded(sql: str, message: str) -> None:
    async def act() -> str:
        async with Workspace(limits=Limits(string_bytes=2 << 20, whole_bytes=4 << 20)) as ws:
            result = await ws.execute(f"sqlite3 :memory: '{sql}'", timeout=100)
            assert result.exit_code not in (0, 70, 124)
            return result.error_text

    assert message in asyncio.run(act())
