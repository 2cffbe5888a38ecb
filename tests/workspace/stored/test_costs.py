"""Totals of records by agent, session and time, from one table of commands."""

from __future__ import annotations

import asyncio

import pytest

from ramet import RametError, Store


def test_totals_by_agent_and_session() -> None:
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            ws.create_session("s2")
            await ws.execute("echo 12345 > /f", agent_id="ann", meta={"tokens": 10, "cost_usd": 0.5, "model": "m"})
            await ws.execute("false", "s2", agent_id="ann", meta={"tokens": 5})
            await ws.execute("cat /f", agent_id="bob")

    asyncio.run(act())
    ann, bob = store["w"].costs()
    assert (ann.name, ann.commands, ann.failures, ann.meta) == ("ann", 2, 1, {"tokens": 15, "cost_usd": 0.5})
    assert ann.bytes_written == {"/": 6} and bob.bytes_read == {"/": 6} and bob.failures == 0
    assert (ann.files, bob.files) == (1, 0)
    assert ann.seconds > 0 and ann.first <= ann.last
    assert [(row.name, row.commands) for row in store["w"].costs(by="session")] == [("default", 2), ("s2", 1)]
    assert store["w"].costs(until=ann.first) == [] and len(store["w"].costs(since=ann.first)) == 2
    with pytest.raises(RametError, match="cannot total costs by 'moon'"):
        store["w"].costs(by="moon")
