"""A process that dies without a word: what it had in directories is committed by the next one; memory is gone."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ramet import DiskResource, RametError, Retention, Store
from ramet.store.objects.objects import DirectoryObjects

DIES = """
import asyncio, os, signal, sys
from ramet import DiskResource, RAMResource, Store
async def main():
    store = Store(sys.argv[1])
    mounts = {"/dir": DiskResource(sys.argv[2], create=True), "/mem": RAMResource()} if sys.argv[3] == "new" else {}
    resources = {"/dir": DiskResource(sys.argv[2], create=True)} if not mounts else {}
    async with store.open("w", mounts=mounts, resources=resources, withhold=["*.key"]) as ws:
        await ws.execute("echo committed > /dir/a; echo committed > /mem/a")
        if sys.argv[4] == "commit":
            await ws.commit("one")
        await ws.execute("echo uncommitted | tee /dir/b > /mem/b; echo x > /dir/x.key; echo y > /dir/.netrc")
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def die(store: Path, root: Path, *how: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIES, str(store), str(root), *how], check=False)
    assert done.returncode == -9


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "root").mkdir()
    Store(str(tmp_path / "store")).create("w")
    return tmp_path / "store", tmp_path / "root"


@pytest.mark.parametrize("how", ["commit", "nothing"])
def test_the_next_open_commits_what_a_dead_process_left(places: tuple[Path, Path], how: str) -> None:
    where, root = places
    die(where, root, "new", how)
    store = Store(str(where))

    async def act() -> None:
        resources = {"/dir": DiskResource(str(root), create=True)}
        async with store.open("w", resources=resources) as ws:
            (found,) = ws.recovered
            assert found.workspace == "w" and found.revision.seq == (2 if how == "commit" else 1)
            assert (await ws.execute("cat /dir/a /dir/b")).text == "committed\nuncommitted\n"
            if how == "commit":
                assert (await ws.execute("cat /mem/a; cat /mem/b")).text == "committed\n", "memory is gone"

    asyncio.run(act())
    handle = store["w"]
    first = handle.log()[-1] if how == "nothing" else handle.log()[-2]
    assert first.message.startswith("recovered") and first.lineage == f"fromClaim:{socket.gethostname()}"
    assert b"".join(handle.show("/dir/b", first.name)) == b"uncommitted\n"
    for path in ("/dir/x.key", "/dir/.netrc"):
        with pytest.raises(RametError):
            handle.show(path, first.name)
    assert not list(DirectoryObjects(str(where)).list("bindings/")) and store.verify().ok


def test_an_open_in_order_leaves_nothing_to_recover(places: tuple[Path, Path]) -> None:
    where, root = places
    store = Store(str(where))

    async def act() -> None:
        async with store.open("w", mounts={"/dir": DiskResource(str(root), create=True)}) as ws:
            await ws.execute("echo 1 > /dir/a")
            assert list(store.repository.objects.list("bindings/"))
        async with store.open("w", resources={"/dir": DiskResource(str(root), create=True)}) as ws:
            assert ws.recovered == []

    asyncio.run(act())
    assert [r.seq for r in store["w"].log()] == [1] and not list(store.repository.objects.list("bindings/"))


def test_what_others_committed_meanwhile_is_not_overwritten(places: tuple[Path, Path], tmp_path: Path) -> None:
    """Another machine took the workspace over and committed; the first one comes back later."""
    where, root = places
    die(where, root, "new", "commit")
    store = Store(str(where))
    (binding,) = store.repository.objects.list("bindings/")
    told = store.repository.objects.get(binding)
    store.repository.objects.put(binding, told.replace(socket.gethostname().encode(), b"elsewhere"))
    (tmp_path / "other").mkdir()

    async def act() -> None:
        resources = {"/dir": DiskResource(str(tmp_path / "other"), create=True)}
        async with store.open("w", resources=resources) as ws:
            assert ws.recovered == []
            await ws.execute("echo theirs > /dir/a")
        store.repository.objects.put(binding, told)
        async with store.open("w", resources=resources) as ws:
            (found,) = ws.recovered
            assert found.workspace.startswith("w-recovered-")
            assert (await ws.execute("cat /dir/a; ls /dir")).text == "theirs\na\n"

    asyncio.run(act())
    (aside,) = [name for name in store.ls() if name != "w"]
    assert b"".join(store[aside].show("/dir/b")) == b"uncommitted\n" and store.verify().ok


def test_a_base_that_has_expired_and_a_name_that_is_used_again(places: tuple[Path, Path], tmp_path: Path) -> None:
    where, root = places
    die(where, root, "new", "commit")
    store = Store(str(where))
    (binding,) = store.repository.objects.list("bindings/")
    told = store.repository.objects.get(binding)
    store.repository.objects.delete(binding)

    async def act() -> None:
        for number in range(2):
            async with store.open(
                "w", commit="never", resources={"/dir": DiskResource(str(tmp_path / "o"), create=True)}
            ) as ws:
                await ws.execute(f"echo {number} > /mem/n")
                await ws.commit("meanwhile")
        store.retention(Retention(keep_last=1))
        store.gc(grace=0)
        store.repository.objects.put(binding, told)
        async with store.open("w", resources={"/dir": DiskResource(str(tmp_path / "o"), create=True)}) as ws:
            (found,) = ws.recovered
            assert found.workspace.startswith("w-recovered-")

    (tmp_path / "o").mkdir()
    asyncio.run(act())
    (aside,) = [name for name in store.ls() if name != "w"]
    assert b"".join(store[aside].show("/dir/b")) == b"uncommitted\n" and store.verify().ok
    store.repository.objects.put(binding, told)
    store.rm("w")
    store.create("w")
    assert not list(store.repository.objects.list("bindings/"))
