"""Removed workspaces come back as they were, until a collection deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from ramet import RametError, Store
from ramet.store.objects.objects import MemoryObjects


def filled(store: Store, name: str = "w") -> Store:
    async def act() -> None:
        async with store.open(name) as ws:
            await ws.execute("echo one > /a", agent_id="ann")
            await ws.commit("first")
            await ws.execute("cat /a", agent_id="bob")

    store.create(name)
    asyncio.run(act())
    return store


def code(call: Callable[[], object]) -> str:
    with pytest.raises(RametError) as caught:
        call()
    return caught.value.code


def test_a_removed_workspace_comes_back_with_everything() -> None:
    store = filled(Store(MemoryObjects()))
    store["w"].tag("good")
    before = store["w"].log(), store["w"].tags(), store["w"].history()
    store.rm("w")
    assert store.ls() == [] and code(lambda: store["w"].log()) == "workspace_not_found"
    assert [(one.name, one.revision) for one in store.trash()] == [("w", "w-1")]
    store.restore("w")
    assert (store["w"].log(), store["w"].tags(), store["w"].history()) == before
    assert store.trash() == [] and store.verify().ok


def test_a_restored_workspace_can_be_written() -> None:
    store = filled(Store(MemoryObjects()))
    store.rm("w")
    store.restore("w")

    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("echo two > /a")

    asyncio.run(act())
    assert [one.name for one in store["w"].log()] == ["w-2", "w-1"]


def test_an_empty_workspace_comes_back() -> None:
    store = Store(MemoryObjects())
    store.create("w")
    store.rm("w")
    assert [(one.name, one.revision) for one in store.trash()] == [("w", None)]
    store.restore("w")
    assert store.ls() == ["w"]


@pytest.mark.parametrize("name", ["w", "never"])
def test_what_is_not_in_the_trash_is_not_restored(name: str) -> None:
    store = filled(Store(MemoryObjects()))
    expected = "workspace_exists" if name == "w" else "workspace_not_found"
    assert code(lambda: store.restore(name)) == expected


def test_a_taken_name_is_not_restored_over() -> None:
    store = filled(Store(MemoryObjects()))
    store["w"].tag("good")
    store.rm("w")
    store.create("w")
    assert code(lambda: store.restore("w")) == "workspace_exists"
    assert store["w"].tags() == [] and store["w"].log() == []


def test_after_a_collection_it_is_gone(tmp_path: Path) -> None:
    store = filled(Store(str(tmp_path)))
    store.rm("w")
    store.gc()  # suspects it; the grace period has just begun
    assert [one.name for one in store.trash()] == ["w"]
    store.gc(grace=0)
    assert store.trash() == [] and code(lambda: store.restore("w")) in ("revision_expired", "revision_not_found")


def test_what_was_suspected_stays_after_a_restore(tmp_path: Path) -> None:
    store = filled(Store(str(tmp_path)))
    store.rm("w")
    store.gc()
    store.restore("w")
    store.gc(grace=0)
    assert b"".join(store["w"].show("/a")) == b"one\n" and store.verify().ok


def test_grants_come_back_and_protect_the_trash() -> None:
    objects = MemoryObjects()
    ann, eve = Store(objects, principal="ann"), Store(objects, principal="eve")
    filled(ann)
    ann["w"].grant("ann", "readwrite")
    ann.rm("w")
    assert eve.trash() == [] and code(lambda: eve.restore("w")) == "workspace_not_found"
    ann.restore("w")
    assert dict(ann["w"].grants()) == {"ann": "readwrite"} and eve.ls() == []


def test_old_grants_do_not_reach_a_new_workspace() -> None:
    store = Store(MemoryObjects(), principal="ann")
    filled(store)
    store["w"].grant("ann", "readwrite")
    store.rm("w")
    store.create("w")
    store.rm("w")
    store.restore("w")
    assert dict(store["w"].grants()) == {}


def test_a_shredded_workspace_is_not_in_the_trash(tmp_path: Path) -> None:
    store = filled(Store(str(tmp_path), key=bytes(range(32))))
    store.keys.shred("w")
    assert store.trash() == []
