"""The synchronous twin inside a running event loop works, and inside its own loop says so instead of hanging."""

from __future__ import annotations

import asyncio

import pytest

from ramet.workspace.sync import SyncWorkspace


def test_it_works_inside_a_running_event_loop() -> None:
    async def act() -> None:
        with SyncWorkspace() as ws:
            assert ws.execute("echo hi").text == "hi\n"
            texts = await asyncio.gather(*(asyncio.to_thread(ws.execute, f"echo {number}") for number in range(8)))
            assert [found.text for found in texts] == [f"{number}\n" for number in range(8)]

    asyncio.run(asyncio.wait_for(act(), 100))


def test_a_call_from_its_own_loop_is_refused_and_waits_for_nothing() -> None:
    with SyncWorkspace() as ws:

        async def inside() -> None:
            ws.execute("true")

        with pytest.raises(RuntimeError, match="would wait for itself"):
            asyncio.run_coroutine_threadsafe(inside(), ws._thread.loop).result(100)
        assert ws.execute("echo on").text == "on\n"
