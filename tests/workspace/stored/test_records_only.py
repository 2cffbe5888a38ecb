"""Calls that change no file: their records are durable without a revision, and messages become notes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ramet import RametError, Store
from ramet.store.objects.objects import MemoryObjects
from ramet.workspace.stored.workspace import StoredWorkspace


def run(store: Store, *commands: str, name: str = "w") -> None:
    async def act() -> None:
        async with store.open(name) as ws:
            for command in commands:
                await ws.execute(command)

    asyncio.run(act())


def commands(store: Store, name: str = "w") -> list[str]:
    return [record.command for record in store[name].history()]


@pytest.fixture
def store() -> Store:
    made = Store(MemoryObjects())
    made.create("w")
    run(made, "echo one > /a")
    return made


def test_a_read_only_command_makes_no_revision(store: Store) -> None:
    before = store["w"].log()
    run(store, "ls /")
    run(store, "cat /a")
    assert store["w"].log() == before
    assert commands(store) == ["echo one > /a", "ls /", "cat /a"]
    assert [record.number for record in store["w"].history()] == [1, 2, 3]


def test_a_read_only_command_in_a_new_workspace_makes_no_revision() -> None:
    store = Store(MemoryObjects())
    store.create("w")
    run(store, "ls /")
    assert store["w"].log() == [] and commands(store) == ["ls /"]
    run(store, "echo x > /a")
    assert [one.name for one in store["w"].log()] == ["w-1"] and commands(store) == ["ls /", "echo x > /a"]


def test_a_session_goes_on_without_a_revision(store: Store) -> None:
    run(store, "cd /tmp; x=3")

    async def act() -> bytes:
        async with store.open("w") as ws:
            return (await ws.execute("pwd; echo $x")).stdout

    assert asyncio.run(act()) == b"/tmp\n3\n"
    assert len(store["w"].log()) == 1


def test_the_next_revision_takes_the_records_over(store: Store) -> None:
    run(store, "ls /")
    run(store, "echo two > /a")
    head = store["w"].find()
    assert head.seq == 2
    assert [record.command for record in store["w"].history(2)] == ["echo one > /a", "ls /", "echo two > /a"]
    assert [record.command for record in store["w"].history(1)] == ["echo one > /a"]


@pytest.mark.parametrize("verb", ["fork", "revert", "undo", "merge"])
def test_verbs_keep_the_records(store: Store, verb: str) -> None:
    store["w"].fork(None, "side")
    run(store, "echo more > /b", name="side")
    run(store, "echo two > /a")
    run(store, "ls /")
    name = "w"
    if verb == "fork":
        store["w"].fork(None, "f")
        name = "f"
    elif verb == "revert":
        store["w"].revert(1)
    elif verb == "undo":
        assert store["w"].undo().ok
    else:
        assert store["w"].merge("side").ok
    assert commands(store, name)[:3] == ["echo one > /a", "echo two > /a", "ls /"]


def test_a_fork_of_a_past_revision_ends_there(store: Store) -> None:
    run(store, "ls /")
    store["w"].fork("w-1", "f")
    assert commands(store, "f")[:-1] == ["echo one > /a"]


@pytest.mark.parametrize("encrypted", [False, True])
def test_collections_keep_the_latest_records_only(tmp_path: Path, encrypted: bool) -> None:
    store = Store(str(tmp_path / "store"), key=bytes(range(32)) if encrypted else None)
    store.create("w")
    run(store, "echo one > /a")
    for number in range(3):
        run(store, f"ls / # {number}")
    store.gc(grace=0)
    assert commands(store)[1:] == ["ls / # 0", "ls / # 1", "ls / # 2"]
    assert store.gc(grace=0).kept == 1 and store.verify().ok
    store["w"].fork(None, "f")
    assert commands(store, "f")[-2] == "ls / # 2" and store.verify().ok


def test_lost_records_are_reported_and_dropped(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.create("w")
    run(store, "echo one > /a")
    run(store, "ls /")
    latest = store.repository.refs.last("w").latest
    assert latest is not None
    (tmp_path / "revisions" / latest.hex()).unlink()
    store = Store(str(tmp_path))
    assert [damage.what for damage in store.verify().damages] == ["head"]
    assert store.repair(drop=True).ok
    assert commands(store) == ["echo one > /a"] and store["w"].find().name == "w-1"


KILLED = """
import asyncio, os, signal, sys
from ramet import Store

async def act():
    async with Store(sys.argv[1]).open("w", drafts="each") as ws:
        await ws.execute("ls /")
        await ws.save()
        await ws.execute(sys.argv[2])
        await ws.draft()
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(act())
"""


@pytest.mark.parametrize(("then", "seq"), [("true", 1), ("echo two > /b", 2)])
def test_saved_records_survive_a_kill_once(tmp_path: Path, then: str, seq: int) -> None:
    store = Store(str(tmp_path))
    store.create("w")
    run(store, "echo one > /a")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), then], env=dict(os.environ), check=False)
    assert done.returncode == -signal.SIGKILL
    store = Store(str(tmp_path))
    run(store, "pwd")
    found = commands(store)
    assert found[:2] == ["echo one > /a", "ls /"] and found.count("ls /") == 1 and found[-1] == "pwd"
    assert store["w"].find().seq == seq and (then in found) is (seq == 2)


def test_a_writer_that_lost_its_lease_saves_nothing(store: Store) -> None:
    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("ls /")
            refs = store.repository.refs
            now = refs.last("w")
            assert ws.lease is not None
            taken = now.__class__(now.number + 1, now.head, now.fence + 1, "other", 1e12, "lease")
            assert refs._append("w", taken)
            with pytest.raises(Exception, match="took 'w' over"):
                await ws.save()
            ws.lease = None

    asyncio.run(act())
    assert commands(store) == ["echo one > /a"]


def test_old_entries_are_read_as_they_are(store: Store) -> None:
    entry = store.repository.refs.last("w")
    assert entry.latest is None and b"latest" not in entry.encode()


# ----------------------------------------------------------------------------------------------------------- notes


def test_a_message_without_changes_is_a_note_on_the_revision(store: Store) -> None:
    async def act() -> StoredWorkspace:
        async with store.open("w") as ws:
            first = ws.base
            assert first is not None
            made = await ws.commit("reviewed", author="ann")
            assert made == first and made.message == "on close"
            assert [(note.message, note.author) for note in made.notes] == [("reviewed", "ann")]
            again = await ws.commit("and released")
            assert [note.message for note in again.notes] == ["reviewed", "and released"]
            assert (await ws.commit()).id == first.id
            return ws

    asyncio.run(act())
    assert [[note.message for note in one.notes] for one in store["w"].log()] == [["reviewed", "and released"]]


def test_the_message_of_a_change_is_its_message(store: Store) -> None:
    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("echo two > /a")
            made = await ws.commit("second")
            assert made.message == "second" and made.notes == ()
            assert (await ws.commit("second")).notes == ()

    asyncio.run(act())


def test_messages_of_automatic_commits_are_not_notes(store: Store) -> None:
    async def act() -> None:
        async with store.open("w", commit="command") as ws:
            await ws.execute("ls /")

    asyncio.run(act())
    assert all(not one.notes for one in store["w"].log())


def test_a_note_is_about_a_revision_a_file_or_a_line(store: Store) -> None:
    async def work() -> None:
        async with store.open("w") as ws:
            await ws.execute("echo one > /f")
            await ws.commit("first")

    asyncio.run(work())
    handle = store["w"]
    handle.note("as a whole", author="ann")
    handle.note("of a file", "head", path="/a/../f")
    made = handle.note("of a line", "head~0", path="/f", line=1)
    assert [str(note) for note in made.notes] == ["as a whole", "/f: of a file", "/f:1: of a line"]
    assert made.notes[0].author == "ann" and handle.log()[0].notes == made.notes == handle.rename("v").log()[1].notes
    for message, place in ((" ", {}), ("x", {"line": 1}), ("x", {"path": "/f", "line": -1})):
        with pytest.raises(RametError) as refused:
            store["v"].note(message, **place)
        assert refused.value.code == "invalid_argument"
