"""Workspaces in a store: the life of a project, alone and with others."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ramet import DiskResource, RametError, RAMResource, Store, Workspace
from ramet.core.paths import ROOT, parse


def test_the_life_of_a_project(tmp_path: Path) -> None:
    async def act() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("proj-x")
        async with store.open("proj-x") as ws:
            await ws.execute("mkdir /workspace; cd /workspace; echo hello > data.txt; greet() { echo hi $1; }; n=5")
            first = await ws.commit("first result")
            assert (first.name, first.lineage, first.phase) == ("proj-x-1", "root", "Committed")
            assert (await ws.commit("again")).id == first.id, "unchanged commits to the same revision"
            await ws.execute("mv data.txt moved.txt; echo new > other.txt")
            second = await ws.commit("second")
        handle = store["proj-x"]
        assert [r.message for r in handle.log()] == ["second", "first result"]
        assert [(d.path, d.what, d.old) for d in handle.diff(second.name)] == [
            ("/workspace/moved.txt", "renamed", "/workspace/data.txt"),
            ("/workspace/other.txt", "added", None),
        ]
        assert second.diff is not None and second.diff["added"] == ["/workspace/other.txt"]
        assert handle.diff(second.name, second.name) == []
        assert b"".join(handle.show("/workspace/data.txt", "1")) == b"hello\n"

        branch = handle.fork("proj-x-1", "proj-y")
        assert branch.lineage == "fromWorkspaceRevision:proj-x-1" and branch.content_manifest == first.content_manifest
        async with store.open("proj-y") as ws:
            assert (await ws.execute("pwd; cat data.txt; greet you; echo $n")).text == "/workspace\nhello\nhi you\n5\n"
            await ws.execute("rm data.txt")
        assert b"".join(handle.show("/workspace/moved.txt")) == b"hello\n", "a fork touches nothing of its source"

        tip = handle.revert("proj-x-1")
        assert tip.name == "proj-x-3" and tip.content_manifest == first.content_manifest
        async with store.open("proj-x") as ws:
            assert (await ws.execute("ls")).text == "data.txt\n"
        assert store.ls() == ["proj-x", "proj-y"]
        store.rm("proj-y")
        assert "proj-y" not in store and store.verify().ok

    asyncio.run(act())


def test_refusals_say_what_to_do() -> None:
    async def act() -> None:
        store = Store("memory:")
        handle = store.create("w")
        codes = []
        for attempt in (
            lambda: store["nobody"],
            lambda: store.create("w"),
            lambda: handle.fork(None, "f"),
            lambda: handle.revert("w-9"),
        ):
            with pytest.raises(RametError) as caught:
                attempt()
            assert caught.value.remediation
            codes.append(caught.value.code)
        assert codes == ["workspace_not_found", "workspace_exists", "revision_not_committed", "revision_not_found"]
        async with store.open("w") as ws:
            await ws.execute("echo x > /f")
            await ws.commit()
            with pytest.raises(RametError) as caught:
                async with store.open("w"):
                    pass
            assert caught.value.code == "workspace_busy"
            async with store.open("w", readonly=True) as reader:
                assert (await reader.execute("cat /f")).text == "x\n"
                with pytest.raises(RametError, match="read-only"):
                    await reader.commit()
        async with store.open("w"):
            pass

    asyncio.run(act())


def test_waiting_for_the_other_writer() -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("w")

        begun = asyncio.Event()

        async def first() -> None:
            async with store.open("w") as ws:
                begun.set()
                await ws.execute("sleep 0.1; echo one > /f")

        async def second() -> str:
            async with store.open("w", wait=60) as ws:
                return (await ws.execute("cat /f")).text

        task = asyncio.create_task(first())
        await begun.wait()
        assert await second() == "one\n"
        await task

    asyncio.run(act())


def test_memory_trees_come_back_exactly() -> None:
    async def act() -> None:
        store, ram = Store("memory:"), RAMResource()
        store.create("w")
        script = r"""
        mkdir -p /a/b/empty; printf 'x\0y\377' > /a/bin; chmod 750 /a/bin; ln -s ../a/bin /a/b/l; ln /a/bin /hard
        touch -d 2001-02-03 /a/bin; head -c 3000000 /dev/urandom > /big; printf n > $'/new\nline'; : > /zero
        """
        async with store.open("w", mounts={"/": ram}) as ws:
            assert (await ws.execute(script)).exit_code == 0
            await ws.commit()
        async with store.open("w") as ws:
            loaded = ws.mounts()[0].resource
            assert isinstance(loaded, RAMResource) and loaded.digest(ROOT) == ram.digest(ROOT)
            assert loaded.read_now(parse("/big")) == ram.read_now(parse("/big"))
            probe = await ws.execute("stat -c %h /hard; echo more >> /hard; tail -c 5 /a/bin; head -c 3 /big | wc -c")
            assert probe.text == "2\nmore\n3\n"

    asyncio.run(act())


def test_reading_one_file_fetches_one_file() -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute("for i in {1..50}; do mkdir /d$i; for j in {1..20}; do echo $i $j > /d$i/f$j; done; done")
            await ws.commit()
        reads: list[bytes] = []
        real = store.repository.packs.read

        def counted(key: bytes) -> bytes:
            reads.append(key)
            return real(key)

        store.repository.packs.read = counted  # type: ignore[method-assign]
        async with store.open("w", readonly=True) as ws:
            assert (await ws.execute("cat /d7/f7")).text == "7 7\n"
        assert len(reads) < 10

    asyncio.run(act())


def test_disks_are_committed_and_checked_out(tmp_path: Path) -> None:
    async def act() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("w")
        async with store.open("w", mounts={"/src": DiskResource(tmp_path / "one", create=True)}) as ws:
            await ws.execute(
                "cd /src; mkdir -p pkg; echo 'print(1)' > pkg/a.py; chmod +x pkg/a.py; ln -s pkg/a.py main"
            )
        async with store.open("w", resources={"/src": DiskResource(tmp_path / "two", create=True)}) as ws:
            assert (
                await ws.execute("cat /src/main; ls -l /src/pkg/a.py | cut -c1-10")
            ).text == "print(1)\n-rwxr-xr-x\n"
        assert os.access(tmp_path / "two" / "pkg" / "a.py", os.X_OK)
        receipt = store["w"].checkout(str(tmp_path / "three"), prefix="/src")
        assert receipt.written == 2 and os.readlink(tmp_path / "three" / "main") == "pkg/a.py"

    asyncio.run(act())


def test_any_flipped_bit_is_found(tmp_path: Path) -> None:
    async def act() -> None:
        store = Store(str(tmp_path))
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute("for i in {1..30}; do head -c 2000 /dev/urandom > /f$i; done")
        assert store.verify().ok

    asyncio.run(act())
    rng = random.Random(2)
    packs = sorted((tmp_path / "packs").glob("*.pack"))
    for _ in range(25):
        pack = rng.choice(packs)
        data = bytearray(pack.read_bytes())
        at = rng.randrange(8, len(data))
        data[at] ^= 1 << rng.randrange(8)
        original = pack.read_bytes()
        pack.write_bytes(bytes(data))
        report = Store(str(tmp_path)).verify()
        assert report.damaged and report.affected == ["w-1"]
        pack.write_bytes(original)
    revision = next((tmp_path / "revisions").iterdir())
    revision.write_bytes(revision.read_bytes().replace(b"Committed", b"Committee"))
    assert Store(str(tmp_path)).verify().damaged == [revision.name]


WORKER = """
import asyncio, sys
from ramet import Store
async def main():
    store = Store(sys.argv[1])
    while True:
        async with store.open("w", wait=30) as ws:
            for _ in range(3):
                n = int((await ws.execute("cat /n 2>/dev/null || echo 0")).text) + 1
                await ws.execute(f"echo {n} > /n; echo {n} > /copy; head -c 20000 /dev/urandom > /noise")
                await ws.commit(str(n))
                print(n, flush=True)
asyncio.run(main())
"""


def test_kill_nine_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    Store(str(tmp_path)).create("w")
    rng = random.Random(4)
    acknowledged = 0
    for _ in range(6):
        child = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(rng.randrange(1, 6)):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read()
        child.wait()
        child.stdout.close()
        if rest.strip():
            acknowledged = int(rest.split()[-1])

        async def check() -> int:
            store = Store(str(tmp_path))
            async with store.open("w") as ws:
                result = await ws.execute("cat /n; cmp /n /copy && echo same")
                number, same = result.text.split()
                assert same == "same"
                return int(number)

        found = asyncio.run(check())
        assert found >= acknowledged
        acknowledged = found
    assert Store(str(tmp_path)).verify().ok


def test_a_snapshot_of_a_stored_workspace_is_a_snapshot(tmp_path: Path) -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute("echo kept > /f")
            await ws.commit()
        async with store.open("w") as ws:
            ws.snapshot(tmp_path / "s.tar")
        again = Workspace.load(tmp_path / "s.tar")
        assert (await again.execute("cat /f")).text == "kept\n"

    asyncio.run(act())


def test_a_long_history_is_written_once(tmp_path: Path) -> None:
    """Commits after many commands write the newest ones only; opening brings all of them back."""

    async def act() -> None:
        store = Store(str(tmp_path))
        store.create("w")
        async with store.open("w") as ws:
            for number in range(600):
                await ws.execute(f"echo {number}")
            first = await ws.commit("many")
            assert len(first.history) == 2
            await ws.execute("echo more > f")
            second = await ws.commit("one")
            assert second.history == first.history and second.kernel != first.kernel
        async with store.open("w") as ws:
            assert [record.number for record in ws.history] == list(range(1, 602))
            for _ in range(300):
                await ws.execute("echo again > f")
            third = await ws.commit("again")
            assert third.history[:2] == first.history and len(third.history) == 3
        assert store.verify().ok
        async with store.open("w", readonly=True) as ws:
            assert len(ws.history) == 901

    asyncio.run(act())


def test_a_process_that_commits_for_ever_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.store.repository.CACHED_REVISIONS", 8)
    store = Store(str(tmp_path))
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            for number in range(20):
                await ws.execute(f"echo {number} > /n")
                await ws.commit(str(number))

    asyncio.run(act())
    assert [revision.message for revision in store["w"].log()] == [str(n) for n in range(19, -1, -1)]
    assert len(store.repository._revisions) <= 8


def test_the_newest_revisions_are_listed_without_reading_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path))
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            for number in range(20):
                await ws.execute(f"echo {number} > /n")
                await ws.commit(str(number))

    asyncio.run(act())
    again = Store(str(tmp_path))
    read: list[str] = []
    objects = again.repository.objects
    get = objects.get

    def counted(key: str) -> bytes:
        read.append(key)
        return get(key)

    monkeypatch.setattr(objects, "get", counted)
    assert [one.message for one in again["w"].log(limit=3)] == ["19", "18", "17"]
    assert again["w"].find(again["w"].log(limit=3)[2].id.hex()).message == "17"
    assert len({key for key in read if key.startswith("revisions/")}) <= 4
    assert [one.message for one in again["w"].log(without="w-18")] == ["19", "18"]
