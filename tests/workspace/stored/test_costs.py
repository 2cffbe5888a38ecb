"""Totals of records by agent, session and time, from one table of commands."""

from __future__ import annotations

import asyncio
from dataclasses import astuple

import pytest

from ramet import RametError, Store
from ramet.store.commit.kernel_state import SEGMENT
from ramet.workspace.stored.costs import CostRow, total_costs


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


@pytest.mark.parametrize("by", ["agent", "run"])
def test_a_long_history_is_totalled_by_segments_that_are_kept(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            for number in range(2 * SEGMENT + 5):
                meta: dict[str, str | int | float | bool] = {"run": f"r{number // 300}", "tokens": number}
                script = f"echo {number} > /f{number % 7}; cd /{number % 3}"
                await ws.execute(script, agent_id=f"a{number % 2}", meta=meta)

    asyncio.run(act())
    ref = store["w"]

    def plain(rows: list[CostRow]) -> list[tuple[object, ...]]:
        return [
            (*astuple(one)[:3], round(one.seconds, 6), one.bytes_written, one.files, one.meta, one.last) for one in rows
        ]

    whole = plain(total_costs(ref.history(), by=by))
    assert plain(ref.costs(by=by)) == whole and len(whole) == 2
    read: list[bytes] = []
    fetch = store.repository.packs.read

    def noted(identity: bytes) -> bytes:
        read.append(identity)
        return fetch(identity)

    monkeypatch.setattr(store.repository.packs, "read", noted)
    assert plain(ref.costs(by=by)) == whole
    assert not set(read) & set(ref.find().history), "full segments are not read again"
