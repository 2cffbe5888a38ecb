"""A renamed workspace goes on under its new name, and nothing of it is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.store.encrypted import KEY
from tests.store.verbs.test_trash import code, filled

from ramet import RametError, Store
from ramet.store.objects.objects import MemoryObjects
from ramet.store.refs.retention import Retention


def run(store: Store, name: str, *commands: str) -> None:
    async def act() -> None:
        async with store.open(name) as ws:
            for command in commands:
                assert (await ws.execute(command, agent_id="cleo")).exit_code == 0

    asyncio.run(act())


@pytest.mark.parametrize("encrypted", [False, True])
def test_history_tags_notes_and_retention_come_along(tmp_path: Path, encrypted: bool) -> None:
    store = filled(Store(str(tmp_path / "s"), key=KEY if encrypted else None))
    store["w"].tag("good", message="it worked")
    store.repository.note("w", store["w"].find(), "look here")
    store.retention(Retention(keep_last=7), "w")
    commands = [record.command for record in store["w"].history()]
    renamed = store["w"].rename("v")
    assert store.ls() == ["v"] and renamed.name == "v"
    assert [one.name for one in renamed.log()] == ["v-1", "w-1"]
    assert renamed.log()[1].notes[0].message == "look here"
    assert [record.command for record in renamed.history()] == [*commands, "rename w-1 v"]
    assert renamed.find("good").name == "w-1" and b"".join(renamed.show("/a", "good")) == b"one\n"
    assert store.repository.policies.own("v").keep_last == 7
    writer = renamed.blame("/a")[0].writer
    assert writer is not None and writer.agent_id == "ann"
    run(store, "v", "grep -q one /a", "echo two > /b")
    assert store.verify().ok


def test_the_old_name_is_in_the_trash_and_free() -> None:
    store = filled(Store(MemoryObjects()))
    store["w"].rename("v")
    assert [one.name for one in store.trash()] == ["w"]
    store.create("w")
    assert store["w"].log() == [] and len(store["v"].log()) == 2


def test_undo_goes_back_beyond_a_rename_but_not_beyond_a_fork() -> None:
    store = filled(Store(MemoryObjects()))
    run(store, "w", "echo two > /b")
    store["w"].rename("v")
    store["v"].undo()
    names = [name for name, _ in store["v"].ls("/")]
    assert "a" in names and "b" not in names
    store["v"].fork(None, "f")
    assert code(lambda: store["f"].undo()) == "not_found"


def test_a_rename_that_cannot_be_changes_nothing(tmp_path: Path) -> None:
    store = filled(Store(MemoryObjects()))
    store.create("other")
    assert code(lambda: store["w"].rename("other")) == "workspace_exists"
    assert code(lambda: store["w"].rename("w")) == "workspace_exists"
    assert code(lambda: store["w"].rename("a/b")) == "invalid_argument"

    async def busy() -> None:
        async with store.open("w"):
            with pytest.raises(RametError) as caught:
                store["w"].rename("v")
            assert caught.value.code == "workspace_busy"

    asyncio.run(busy())
    store.hold("w", "case 42")
    assert code(lambda: store["w"].rename("v")) == "workspace_held"
    assert store.ls() == ["other", "w"] and store.trash() == []


def test_an_empty_workspace_is_renamed() -> None:
    store = Store(MemoryObjects())
    store.create("w")
    store["w"].rename("v")
    assert store.ls() == ["v"] and store["v"].log() == []
