"""The record of a stored workspace: reverts, merges and forks add to it and never borrow a name."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path

import pytest

from ramet import Store
from ramet.store.commit.kernel_state import SEGMENT, encode_json
from ramet.workspace.record.history import ExecutionRecord, RecordFilter, decode_records


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", principal="ada")


def run(store: Store, name: str, *commands: tuple[str, str]) -> None:
    """Run commands of agents, each as one revision."""

    async def act() -> None:
        for agent, command in commands:
            async with store.open(name) as ws:
                result = await ws.execute(command, agent_id=agent)
                assert result.exit_code == 0, result.error_text
                await ws.commit(command)

    asyncio.run(act())


def test_a_revert_keeps_the_commands_that_it_undid(store: Store) -> None:
    store.create("w")
    run(store, "w", ("good", "echo one > /a"), ("evil", "rm /a"))
    made = store["w"].revert("1")
    assert [(r.kind, r.agent_id, r.command) for r in store["w"].history()] == [
        ("command", "good", "echo one > /a"),
        ("command", "evil", "rm /a"),
        ("revert", "ada", "revert to w-1"),
    ]
    assert (made.author, made.agent) == ("ada", "")
    run(store, "w", ("later", "echo two > /b"))
    assert [r.number for r in store["w"].history()] == [1, 2, 3, 4]


def test_reverted_paths_and_merges_name_their_caller(store: Store) -> None:
    store.create("w")
    run(store, "w", ("good", "echo one > /a"))
    fork = store["w"].fork(None, "x")
    assert (fork.author, fork.agent) == ("ada", "")
    run(store, "x", ("other", "echo x > /x"))
    run(store, "w", ("evil", "echo bad > /a"))
    by_path = store["w"].revert("1", paths=["/a"])
    assert (by_path.author, by_path.agent) == ("ada", "")
    merged = store["w"].merge("x").revision
    assert merged is not None and (merged.author, merged.agent) == ("ada", "")
    assert [r.command for r in store["w"].history()][-2:] == ["revert /a to w-1", "merge x-2"]
    assert [r.command for r in store["x"].history()] == ["echo one > /a", "fork w-1 x", "echo x > /x"]


def test_blame_looks_through_a_revert_to_the_writer(store: Store) -> None:
    store.create("w")
    run(store, "w", ("good", "printf '1\\n2\\n' > /a"), ("evil", "echo bad > /a"))
    store["w"].revert("1")
    lines = store["w"].blame("/a")
    assert [line.writer.agent_id if line.writer else None for line in lines] == ["good", "good"]
    assert {line.revision.name for line in lines} == {"w-1"}


def test_reverts_fill_and_cross_segments(store: Store) -> None:
    store.create("w")

    async def fill() -> None:
        async with store.open("w") as ws:
            for number in range(SEGMENT - 3):
                await ws.execute(f"echo {number} > /a", agent_id="worker")
            await ws.commit("many")

    asyncio.run(fill())
    for _ in range(6):
        store["w"].revert("1")
    run(store, "w", ("worker", "echo end > /a"))
    assert [r.number for r in store["w"].history()] == list(range(1, SEGMENT + 5))
    assert store.verify().ok


def test_without_a_principal_the_user_is_the_actor(tmp_path: Path) -> None:
    assert Store(tmp_path / "store").repository.actor == getpass.getuser()


def test_the_revision_of_a_record_is_found_also_far_back(store: Store) -> None:
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            for number in range(2 * SEGMENT + 20):
                await ws.execute(f"echo {number} > /a" if number % 3 == 0 else "false", meta={"run": number // 100})
                if number % 30 == 0:
                    await ws.commit(str(number))

    asyncio.run(act())
    handle = store["w"]
    log = handle.log()
    for number in (1, 2, SEGMENT, SEGMENT + 1, 400, 2 * SEGMENT + 19):
        (found,) = handle.log(records=(number, number))
        assert found.ops is not None and found.ops["first"] <= number <= found.ops["last"]
    assert handle.log(records=(40, 80)) == [one for one in log if one.message in ("90", "60")]
    assert handle.log(records=(1, 10_000)) == log and handle.log(records=(1, 10_000), limit=1) == log[:1]
    assert handle.log(records={40, 80, 81}) == handle.log(records=(40, 80)) and handle.log(records=set()) == []
    assert handle.log(records={2, 400}) == [*handle.log(records=(400, 400)), *handle.log(records=(2, 2))]
    assert handle.log(records=(1, 10_000), limit=2, offset=3) == handle.log(limit=2, offset=3) == log[3:5]
    assert handle.log(offset=4) == log[4:] == handle.log("head", offset=4) and handle.log(offset=10_000) == []
    assert handle.log("w-1", records=(2, 80)) == [] and handle.log(records=(5_000, 6_000)) == []
    assert handle.log(store["w"].fork(None, "x"), records=(40, 80)) == handle.log(records=(40, 80))
    assert handle.count_history() == len(handle.history()) == 2 * SEGMENT + 20
    assert [one.number for one in handle.history(last=300)] == list(range(2 * SEGMENT - 279, 2 * SEGMENT + 21))
    assert [one.number for one in handle.history(where=RecordFilter(number=7))] == [7]
    assert handle.count_history("w-1") == 1


def test_records_are_decoded_whatever_their_output_is() -> None:
    for name in ("plain", "caf\udce9"):
        record = ExecutionRecord(
            1, "s", "a", name, 1.5, 2, 1, b"\xff \xc3\xa4", b"e", meta={"n": 1, "b": True}, paths_cut=1
        )
        plain = encode_json([record.as_dict()])
        assert decode_records(plain) == [record]
    more = plain.replace(b'"number":1', b'"number":1,"new":[]')
    assert decode_records(more) == [record]
    with pytest.raises(ValueError, match="malformed"):
        decode_records(plain.replace(b'"number":1', b'"number":"1"'))
