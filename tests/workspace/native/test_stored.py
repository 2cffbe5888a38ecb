"""Native workspaces of a store: commits, reopening, recovery after a kill, diff and blame."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.workspace.native.conftest import SECONDS, box_directory

from ramet.core.paths import ROOT
from ramet.native.options import Native
from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.directory import commit_directory
from ramet.store.commit.stat_cache import StatCache
from ramet.workspace.stored.store import Store

WRITE = 'perl -e \'open F, ">/theirs"; print F "native\\n"; unlink "/gone"\''


def test_commit_and_reopen_without_native(native: Native, tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app") as ws:
            await ws.execute("echo 1 > /ours; echo 2 > /gone; mkdir -p /d/e; echo 3 > /d/e/f; ln -s ours /l")
            await ws.execute("chmod 640 /ours")
        async with store.open("app", native=native) as ws:
            assert (await ws.execute("cat /d/e/f; readlink l", timeout=SECONDS)).stdout == b"3\nours\n"
            await ws.execute(WRITE, timeout=SECONDS)
            first = await ws.commit("first")
            await ws.execute("perl -e 'open F, \">/d/e/g\"'", timeout=SECONDS)
            second = await ws.commit("second")
        assert [change.path for change in store["app"].diff(first, second)] == ["/d/e/g"]
        async with store.open("app") as ws:
            listed = await ws.execute("find / -not -path '/dev*' | sort; stat -c %a /ours; cat /theirs")
            assert listed.stdout.decode().split() == [
                "/", "/d", "/d/e", "/d/e/f", "/d/e/g", "/home", "/home/user", "/l", "/ours", "/theirs", "/tmp",
                "640", "native",
            ]  # fmt: skip

    asyncio.run(steps())


def test_clone_a_repository_of_a_revision(native: Native, tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        commit = "git -c user.name=n -c user.email=n@example.com commit -q"
        async with store.open("app", native=native) as ws:
            made = await ws.execute(f"(git init -q r; cd r; echo 1 > a; git add a; {commit} -m 1)", timeout=SECONDS)
            assert made.exit_code == 0, made.stderr
        async with store.open("app", native=native) as ws:
            cloned = await ws.execute("git clone -q r c && git -C c log --format=%s && cat c/a", timeout=SECONDS)
            assert (cloned.exit_code, cloned.stdout, cloned.stderr) == (0, b"1\n1\n", b"")
            # Every other program links, also a file of the revision.
            link = "import os; os.link('r/a', 'b'); print(os.stat('b').st_nlink)"
            linked = await ws.execute(f'python3 -c "{link}"', timeout=SECONDS)
            assert linked.stdout == b"2\n", linked.stderr

    asyncio.run(steps())


def test_blame_names_the_call_whose_program_wrote(native: Native, tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app", native=native) as ws:
            await ws.execute(WRITE, agent_id="ada", timeout=SECONDS)
        head = store["app"].head
        assert head is not None and head.agent == "ada"
        async with store.open("app") as ws:
            assert "/theirs" in ws.history.after(0)[-1].paths_written

    asyncio.run(steps())


CHILD = """
import asyncio, sys
from ramet.workspace.stored.store import Store
async def main():
    async with Store(sys.argv[1]).open("app", native=True) as ws:
        await ws.execute(sys.argv[2])
        await ws.execute("echo in process > /ours; rm -r /old; mkdir /old; echo new > /old/new")
        print("ready", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


def test_a_killed_process_loses_nothing(native: Native, tmp_path: Path) -> None:
    """The next open finds what programs and commands wrote, and the box is gone."""

    async def prepare(store: Store) -> None:
        async with store.open("app") as ws:
            await ws.execute("echo 2 > /gone; mkdir /old; echo x > /old/file")

    async def look(store: Store) -> bytes:
        async with store.open("app", wait=SECONDS) as ws:
            assert [found.workspace for found in ws.recovered] == ["app"]
            return (await ws.execute("cat /theirs /ours; ls / /old")).stdout

    store = Store(tmp_path / "store")
    store.create("app")
    asyncio.run(prepare(store))
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "store"), WRITE], stdout=subprocess.PIPE, env={**os.environ}
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
    found = asyncio.run(look(Store(tmp_path / "store")))
    assert found.split() == b"native in process /: home old ours theirs tmp /old: new".split()


def test_reopening_writes_no_tree_again(native: Native, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree that the last commit left is a layer of the next box, which sees and changes it."""

    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app") as ws:
            await ws.execute("mkdir -p d/e; echo 1 > d/e/f; echo 2 > d/g; echo 3 > gone")
        async with store.open("app", native=own) as ws:
            await ws.execute('python3 -c \'open("d/e/f", "a").write("more\\n")\'; rm gone', timeout=SECONDS)
        monkeypatch.setattr("ramet.store.checkout.directory.checkout", must_not_write)
        async with store.open("app", native=own) as ws:
            shown = await ws.execute("cat d/e/f d/g; test ! -e gone", native=True, timeout=SECONDS)
            assert (shown.stdout, shown.exit_code) == (b"1\nmore\n2\n", 0)
            await ws.execute("rm -r d/e; echo new > d/n", native=True, timeout=SECONDS)
        store["app"].fork(None, "twin")
        async with store.open("twin", native=own) as ws:
            assert (await ws.execute("find d | sort", timeout=SECONDS)).stdout == b"d\nd/g\nd/n\n"
        monkeypatch.undo()
        async with store.open("app") as ws:
            assert (await ws.execute("find d | sort; ls")).stdout == b"d\nd/g\nd/n\nd\nhome\ntmp\n"

    def must_not_write(*_: object) -> None:
        raise AssertionError("the tree is there")

    with box_directory() as directory:
        own = replace(native, directory=directory)
        asyncio.run(steps())


@pytest.mark.parametrize(
    "script",
    [
        "echo new > d/a", "rm d/a", "rm -r d; mkdir d; echo x > d/z", "mv d/a d/b", "ln -s a d/l; chmod 700 d",
        "rm -r d; echo file > d", "ln d/a d/hard", "mkdir -p x/y/z; touch -d @5 x/y/z d/a", "mkfifo d/pipe; echo 1 > e",
        "printf x > \"$(printf 'd/\\xff')\"", "cp -r d d2; rm -r d2/s; rmdir empty",
        "echo k=v > .env; echo k > d/s/k",
    ],
)  # fmt: skip
def test_a_commit_of_the_upper_layer_equals_a_scan_of_the_tree(native: Native, tmp_path: Path, script: str) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app") as ws:
            await ws.execute("mkdir -p d/s empty; echo 1 > d/a; echo 2 > d/s/k; ln -s a d/old")
        async with store.open("app", native=native) as ws:
            await ws.execute(script, native=True, timeout=SECONDS)
            quick = await ws.commit("quick")
            tree = ws._mounts[ROOT].tree
            assert tree is not None
            writer = ws.repository.writer("app")
            rules = CommitFilter.of_mount(ws.options.ignore_rules, None, "/")
            whole = commit_directory(tree.root, writer, StatCache(), rules, hidden=tree.box_names())
            writer.abandon()
            assert [mount.tree for mount in quick.mounts if mount.prefix == "/"] == [whole.tree]
            assert list(quick.withheld) == sorted(whole.withheld)

    asyncio.run(steps())


def test_many_changes_become_a_layer_at_a_commit(
    native: Native, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later looks and commits cost what changed since; a killed process still loses nothing."""

    async def steps() -> None:
        async with store.open("app", native=native) as ws:
            assert ws.programs is not None
            runtime = ws.programs._runtime
            await ws.execute("mkdir d; for n in 1 2 3 4 5 6 7 8; do echo $n > d/$n; done", native=True, timeout=SECONDS)
            await asyncio.sleep(0.03)  # what changed just before a commit is not folded
            await ws.commit("many")
            assert runtime.entries == 0
            await ws.execute("echo new > d/1; rm d/2", native=True, timeout=SECONDS)
            monkeypatch.setattr("ramet.store.commit.directory.commit_directory", must_not_scan)
            await ws.commit("two")
            assert {change.path for change in store["app"].diff()} == {"/d/1", "/d/2"}
            await ws.execute("echo last > d/3", native=True, timeout=SECONDS)
        monkeypatch.undo()
        async with store.open("app") as ws:
            assert (await ws.execute("cat d/1 d/3; ls d | wc -l")).stdout == b"new\nlast\n7\n"

    def must_not_scan(*_: object, **__: object) -> None:
        raise AssertionError("the tree was scanned")

    monkeypatch.setattr("ramet.native.runtime.FOLDED", 5)
    store = Store(tmp_path / "store")
    store.create("app")
    asyncio.run(steps())
