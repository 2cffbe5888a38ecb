"""Copies and branches of native workspaces: they share the bytes, and each has its own programs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.workspace.native.conftest import SECONDS

from ramet.core.errors import RametError
from ramet.native.options import Native
from ramet.workspace.result import IOResult
from ramet.workspace.stored.store import Store
from ramet.workspace.workspace import Workspace

START = "mkdir -p /p/d; cd /p; echo 1 > a; echo 2 > b; echo 3 > d/c; ln -s a l"


async def call(ws: Workspace, text: str) -> IOResult:
    return await ws.execute(text, native=True, timeout=SECONDS)


def test_a_copy_shares_the_bytes_and_nothing_else(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            monkeypatch.setattr("ramet.native.tree.TreeResource.as_memory", must_not_copy)
            async with ws.copy() as twin:
                assert (await call(twin, "cd /p; cat l b d/c; echo twin > a; rm b")).stdout == b"1\n2\n3\n"
                assert (await call(ws, "cd /p; echo mine > d/c; cat a b")).stdout == b"1\n2\n"
                async with twin.copy() as third:
                    await ws.close()  # its layers stay as long as others use them
                    assert (await call(third, "cd /p; cat a d/c; ls")).stdout == b"twin\n3\na\nd\nl\n"
                    assert (await third.execute("cat /p/a")).stdout == b"twin\n"

    def must_not_copy(_: object) -> None:
        raise AssertionError("bytes were copied")

    asyncio.run(steps())


def test_many_copies_keep_the_layers_few(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            for number in range(12):
                async with ws.copy() as twin:
                    assert (await twin.execute("ls /p | wc -l")).stdout == b"%d\n" % (4 + number)
                await call(ws, f"echo {number} > /p/n{number}")
            assert (await call(ws, "cat /p/n3 /p/d/c; ls /p | wc -l")).stdout == b"3\n3\n16\n"

    asyncio.run(steps())


def test_a_branch_with_very_many_changes(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace makes them a lower layer, a branch does not."""
    monkeypatch.setattr("ramet.native.runtime.FOLDED", 5)

    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            branch = ws.branch()
            await call(branch, "cd /p; seq 9 | split -l 1")
            await call(branch, "echo 1 > /p/last")
            assert len(await branch.diff()) == 10 and (await branch.commit()).ok
            await branch.close()
            assert (await call(ws, "ls /p/x* /p/last | wc -l")).stdout == b"10\n"

    asyncio.run(steps())


def test_a_branch_of_a_branch_runs_no_programs_and_takes_nothing_from_it(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            outer = ws.branch()
            await call(outer, "echo 1 > /p/outer")
            inner = outer.branch()
            with pytest.raises(RametError, match="cannot run native programs"):
                await call(inner, "echo 2 > /p/inner")
            await inner.execute("cat /p/outer > /p/inner")
            assert (await inner.commit()).ok
            await inner.close()
            assert [change.path for change in await outer.diff()] == ["/p/inner", "/p/outer"]
            assert (await outer.commit()).ok
            await outer.close()
            assert (await call(ws, "cat /p/inner /p/outer")).stdout == b"1\n1\n"

    asyncio.run(steps())


def test_three_attempts_side_by_side_keep_one(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            async with ws.speculate(3) as tries:
                work = "cd /p; echo {} > won; rm b; rm -r d; echo d > d; ln -sfn b l; chmod 600 a"
                await asyncio.gather(*(call(one, work.format(number)) for number, one in enumerate(tries)))
                assert [(str(c.path), c.what) for c in await tries[1].diff()] == [
                    ("/p/a", "modified"), ("/p/b", "removed"), ("/p/d", "modified"), ("/p/d/c", "removed"),
                    ("/p/l", "modified"), ("/p/won", "added"),
                ]  # fmt: skip
                assert (await ws.execute("ls /p")).stdout == b"a\nb\nd\nl\n"
                tries.keep(tries[1])
            assert tries.report is not None and tries.report.ok
            shown = await call(ws, "cd /p; cat won d; readlink l; stat -c %a a; ls")
            assert shown.stdout == b"1\nd\nb\n600\na\nd\nl\nwon\n"
            assert ws.history.after(0)[-2].kind == "command"

    asyncio.run(steps())


def test_a_conflict_applies_nothing_and_abort_discards(native: Native) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            branch = ws.branch()
            await call(branch, "cd /p; echo theirs > a; echo new > n")
            await call(ws, "echo mine > /p/a")
            report = await branch.commit()
            assert [str(one.path) for one in report.conflicts] == ["/p/a"]
            assert (await call(ws, "cat /p/a; ls /p/n")).exit_code != 0
            await branch.abort()
            assert await branch.diff() == []
            assert (await call(branch, "cat /p/a")).stdout == b"1\n"
            await branch.close()

    asyncio.run(steps())


def test_a_branch_of_a_stored_workspace_is_committed_with_it(native: Native, tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app", native=native) as ws:
            await call(ws, START)
            await ws.commit("start")
            branch = ws.branch()
            await branch.execute("cd /p; rm b; echo more >> a", native=True, timeout=SECONDS, agent_id="ada")
            assert (await branch.commit()).ok
            await branch.close()
            await call(ws, "echo 5 > /p/e")
        assert {change.path: change.what for change in store["app"].diff()} == {
            "/p/a": "modified", "/p/b": "removed", "/p/e": "added",
        }  # fmt: skip
        async with store.open("app", native=native) as ws:
            assert (await call(ws, "cat /p/a /p/e")).stdout == b"1\nmore\n5\n"

    asyncio.run(steps())


def test_what_runs_is_not_frozen(native: Native) -> None:
    """A copy then has the bytes; discarding is refused."""

    async def steps() -> None:
        async with Workspace(native=native) as ws:
            await call(ws, START)
            await call(ws, "sleep 1000 > /dev/null 2>&1 & echo x > /p/x")
            async with ws.copy() as twin:
                assert (await twin.execute("cat /p/x")).stdout == b"x\n"
            assert ws.programs is not None
            with pytest.raises(RametError):
                ws.programs.discard()

    asyncio.run(steps())


def test_many_changes_of_a_workspace_in_memory_become_a_layer(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        async with Workspace(native=native) as ws:
            assert ws.programs is not None
            runtime = ws.programs._runtime
            await call(ws, "mkdir /d; for n in 1 2 3 4 5 6 7 8; do echo $n > /d/$n; done; rm /d/8")
            assert runtime.entries == 0
            await call(ws, "echo x > /d/1; rm /d/2; touch /d/9")
            assert [row.paths_written for row in ws.history.after(1)] == [("/d/1", "/d/9")]
            assert (await ws.execute("cat /d/1; ls /d | wc -l")).stdout == b"x\n7\n"
            await ws.execute("exec 5> /d/open")
            await call(ws, "for n in 1 2 3 4 5 6 7 8; do echo $n > /d/m$n; done")
            assert runtime.entries > 5  # not while a session has a file open

    monkeypatch.setattr("ramet.native.runtime.FOLDED", 5)
    asyncio.run(steps())
