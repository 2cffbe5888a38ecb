"""Blame names the record that wrote a line, or none: several writers in one revision, branches, tools, reverts."""

from __future__ import annotations

import asyncio
import os
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ramet import AgentRun, DiskResource, RametError, RAMResource, Store
from ramet.core.paths import parse
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import MemoryObjects
from ramet.workspace.record.history import ExecutionRecord
from ramet.workspace.stored.workspace import StoredWorkspace

Act = Callable[[StoredWorkspace], Awaitable[None]]


def stored(*acts: Act, **options: Any) -> Store:
    store = Store(MemoryObjects())
    store.create("w")

    async def run() -> None:
        for act in acts:
            async with store.open("w", **options) as ws:
                await act(ws)

    asyncio.run(run())
    return store


def writers(store: Store, path: str, name: str = "w") -> list[tuple[str, str | None]]:
    return [
        (line.text.decode().strip(), None if line.writer is None else line.writer.agent_id)
        for line in store[name].blame(path)
    ]


def test_each_line_of_one_revision_has_its_own_command() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("printf '%s\\n' a b c > /f", agent_id="ada")
        await ws.execute("sed -i s/b/B/ /f", agent_id="bob")
        await ws.execute("echo d >> /f", agent_id="cy")
        await ws.execute("cp /f /g; mkdir /d; mv /f /d/h", agent_id="dan")
        await ws.execute("mv /d /e; echo e >> /g", agent_id="eve")

    store = stored(act)
    lines = [("a", "ada"), ("B", "bob"), ("c", "ada"), ("d", "cy")]
    assert writers(store, "/e/h") == lines and writers(store, "/g") == [*lines, ("e", "eve")]


def test_a_revert_keeps_the_evidence_and_the_writers() -> None:
    async def good(ws: StoredWorkspace) -> None:
        await ws.execute("echo 1 > /a", agent_id="good")

    async def evil(ws: StoredWorkspace) -> None:
        await ws.execute("rm /a", agent_id="evil")

    store = stored(good, evil)
    made = store["w"].revert("w-1")
    assert made.agent == "" and made.author == store.repository.actor
    assert [(one.kind, one.agent_id) for one in store["w"].history()][:2] == [("command", "good"), ("command", "evil")]
    assert [one.kind for one in store["w"].history()][2:] == ["revert"]
    assert writers(store, "/a") == [("1", "good")]


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ([("good", "seq 3 > /f"), ("evil", "rm /f")], [("1", "good"), ("2", "good"), ("3", "good")]),
        (
            [("good", "seq 9 > /f"), ("evil", "sed -i 9d /f"), ("ada", "sed -i 1s/1/one/ /f")],
            [("one", "ada"), *((str(number), "good") for number in range(2, 10))],
        ),
        # The agent wrote a line again that it had removed: its own copy is not what came back.
        ([("good", "echo x > /f"), ("evil", "rm /f"), ("evil", "echo x > /f"), ("evil", "rm /f")], [("x", "good")]),
        # A line that others removed and wrote again is theirs.
        (
            [
                ("good", "echo x > /f"), ("evil", "echo > /g"), ("good", "rm /f"), ("ada", "echo x > /f"),
                ("evil", "rm /f"),
            ],
            [("x", "ada")],
        ),
    ],
)  # fmt: skip
def test_blame_looks_through_an_undo(scripts: list[tuple[str, str]], expected: list[tuple[str, str]]) -> None:
    def act(agent: str, script: str) -> Act:
        async def run(ws: StoredWorkspace) -> None:
            await ws.execute(script, agent_id=agent)

        return run

    store = stored(*(act(*one) for one in scripts))
    assert store["w"].undo(agent="evil").ok
    assert writers(store, "/f") == expected


def test_the_records_of_a_kept_branch_join_the_history() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("printf '%s\\n' a b > /f", agent_id="base")
        async with ws.speculate(2) as tries:
            for number, one in enumerate(tries):
                await one.execute(f"sed -i s/b/{number}/ /f", agent_id=f"try{number}")
                await one.execute(f"echo new{number} > /n", agent_id=f"try{number}")
            tries.keep(tries[1])

    store = stored(act)
    assert writers(store, "/f") == [("a", "base"), ("1", "try1")] and writers(store, "/n") == [("new1", "try1")]
    found = [(one.number, one.kind, one.agent_id, one.parent) for one in store["w"].history()]
    assert found == [
        (1, "command", "base", 0), (2, "branch", "default", 0), (3, "command", "try1", 2), (4, "command", "try1", 2),
    ]  # fmt: skip


def test_writes_without_a_command_are_named() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("echo 1 > /f", agent_id="shell")
        with ws.recording("tool", "edit /f", agent_id="editor"):
            await ws.fs.write(parse("/f"), b"1\n2\n")
        await ws.execute("true", agent_id="shell")

    store = stored(act)
    assert writers(store, "/f") == [("1", "shell"), ("2", "editor")]
    assert [line.writer.kind for line in store["w"].blame("/f") if line.writer is not None] == ["command", "tool"]


def test_both_sides_of_a_merge_keep_their_writers() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("seq 9 > /f", agent_id="base")

    store = stored(act)
    store["w"].fork(None, "side")

    async def more() -> None:
        async with store.open("w") as ws:
            await ws.execute("sed -i 1s/.*/ours/ /f", agent_id="ours")
        async with store.open("side") as ws:
            await ws.execute("sed -i 9s/.*/theirs/ /f", agent_id="theirs")

    asyncio.run(more())
    assert store["w"].merge("side").ok
    assert writers(store, "/f") == [("ours", "ours"), *((str(n), "base") for n in range(2, 9)), ("theirs", "theirs")]


def test_content_that_was_there_before_is_unknown() -> None:
    memory = RAMResource()
    asyncio.run(memory.write(parse("/f"), b"old\n"))

    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("echo new >> /m/f", agent_id="ada")

    assert writers(stored(act, mounts={"/m": memory}), "/m/f") == [("old", None), ("new", "ada")]


def test_changes_behind_the_back_of_a_directory_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old\n")

    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("echo one >> /m/f; echo x > /m/g; echo y > /m/h", agent_id="ada")
        await ws.commit()
        (tmp_path / "f").write_text("old\none\noutside\n")
        await ws.execute("echo two >> /m/f", agent_id="bob")
        (tmp_path / "g").write_text("outside\n")
        await ws.execute("echo y2 >> /m/h", agent_id="cy")
        os.utime(tmp_path / "h", ns=(1, 1))

    store = stored(act, mounts={"/m": DiskResource(str(tmp_path))})
    assert writers(store, "/m/f") == [("old", None), ("one", "ada"), ("outside", None), ("two", "bob")]
    assert writers(store, "/m/g") == [("outside", None)]
    assert writers(store, "/m/h") == [("y", "ada"), ("y2", None)]


def test_an_open_descriptor_and_a_background_job_belong_to_who_writes() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("exec 3>/f; echo 1 >&3", agent_id="one")
        await ws.execute("echo 2 >&3", agent_id="two")
        await ws.execute("{ sleep 0.05; echo late >> /g; } &", agent_id="job")
        await ws.execute("echo soon > /g; wait", agent_id="waits")

    store = stored(act)
    assert writers(store, "/f") == [("1", "one"), ("2", "two")]
    assert writers(store, "/g") == [("soon", "waits"), ("late", "job")]


def test_a_hard_link_makes_writers_unknown() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("echo 1 > /a; ln /a /b", agent_id="one")
        await ws.execute("echo 2 >> /b", agent_id="two")

    assert {who for _, who in writers(stored(act), "/a")} == {None}


def test_of_an_older_revision_only_certain_writers_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions stored the last writer of each path."""

    def old(_: object, __: object, made: Revision, records: list[ExecutionRecord], taken: object) -> dict[str, Any]:
        return {"first": records[0].number, "last": records[-1].number, "writers": {"/f": records[-1].number}}

    monkeypatch.setattr("ramet.workspace.stored.workspace.operations_of", old)

    async def alone(ws: StoredWorkspace) -> None:
        await ws.execute("echo 1 > /f", agent_id="ada")
        await ws.execute("ls", agent_id="bob")
        await ws.execute("echo 2 >> /f", agent_id="ada")
        await ws.commit()

    async def one(ws: StoredWorkspace) -> None:
        await ws.execute("ls", agent_id="bob")
        await ws.execute("echo 3 >> /f", agent_id="cy")

    async def renamed(ws: StoredWorkspace) -> None:
        await ws.execute("mv /f /g; echo 4 >> /g")

    store = stored(alone, one, renamed)
    assert writers(store, "/g") == [("1", None), ("2", None), ("3", "cy"), ("4", None)]


def test_a_failed_commit_loses_no_writer() -> None:
    async def act(ws: StoredWorkspace) -> None:
        await ws.execute("echo 1 > /f", agent_id="ada")
        await ws.execute("echo 2 >> /f", agent_id="bob")

        def refuse(_: Revision) -> None:
            raise RametError("unavailable", "no", "wait")

        with pytest.raises(RametError):
            await ws.commit(noting=refuse)

    assert writers(stored(act), "/f") == [("1", "ada"), ("2", "bob")]


def test_many_writers_of_one_file() -> None:
    async def act(ws: StoredWorkspace) -> None:
        for number in range(40):
            await ws.execute(f"echo {number} >> /f", agent_id=f"a{number % 3}")

    assert writers(stored(act), "/f") == [(str(number), f"a{number % 3}") for number in range(40)]


def test_other_ways_to_change_files_are_single_records(tmp_path: Path) -> None:
    store = Store(MemoryObjects())
    run = AgentRun(store=store)
    run.create_workspace("w")
    with run.sandbox(workspace="w") as box:
        box.files.write("/workspace/deep/a", "1\n")
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as tar:
        tar.addfile(tarfile.TarInfo("b"))
    store.import_archive("w", str(archive), prefix="/in")
    found = [(one.kind, one.command) for one in store["w"].history()]
    assert found == [
        ("mount", "mount /workspace (RAMResource, write)"), ("write", "write /workspace/deep/a (2 bytes)"),
        ("import", "import 1 files of a tar"),
    ]  # fmt: skip


def test_a_line_that_one_removed_and_another_wrote_again() -> None:
    async def act() -> list[tuple[bytes, str]]:
        store = Store("memory:")
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute("printf 'a\nsame\nb\n' > /f", agent_id="ada")
            await ws.commit("first")
            await ws.execute("sed -i 2d /f", agent_id="dan")
            await ws.execute("echo same >> /f", agent_id="eve")
        return [(one.text, one.writer.agent_id) for one in store["w"].blame("/f") if one.writer is not None]

    assert asyncio.run(act()) == [(b"a\n", "ada"), (b"b\n", "ada"), (b"same\n", "eve")]
