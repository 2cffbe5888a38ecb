"""Whole trees: push, checkout, tar and git deliver the files of every mount, and name what they leave out."""

from __future__ import annotations

import asyncio
import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.store.verbs.test_verbs import refused

from ramet import DiskResource, HTTPConfig, HTTPResource, RametError, RAMResource, Store
from ramet.core.resource import Resource
from ramet.workspace.stored.store import OpenOptions

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def mounted(script: str = "echo a > /data/a; mkdir -p /data/d/e; echo f > /data/d/e/f; echo r > /r") -> Store:
    """Return a store whose workspace has files in `/`, in `/data` and on a server."""
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        mounts: dict[str, Resource] = {
            "/data": RAMResource(),
            "/far": HTTPResource(HTTPConfig(base="http://127.0.0.1:9/")),
        }
        async with store.open("w", mounts=mounts) as ws:
            await ws.execute(script, agent_id="ann")

    asyncio.run(act())
    return store


def git(repository: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_checkout_has_every_mount(tmp_path: Path) -> None:
    store = mounted()
    receipt = store["w"].checkout(str(tmp_path / "out"))
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert found == {"r", "data", "data/a", "data/d", "data/d/e", "data/d/e/f"}
    assert receipt.left_out == ("/far",) and receipt.written == 3
    again = store["w"].checkout(str(tmp_path / "out"))
    assert (again.written, again.kept, again.tree) == (0, 3, receipt.tree)


def test_a_checkout_of_one_mount_takes_its_prefix(tmp_path: Path) -> None:
    store = mounted()
    store["w"].checkout(str(tmp_path / "out"), prefix="/data")
    assert (tmp_path / "out" / "d" / "e" / "f").read_text() == "f\n"
    assert refused(lambda: store["w"].checkout(str(tmp_path / "no"), prefix="/far")) == "not_found"


def test_files_of_two_mounts_are_never_linked_to_each_other(tmp_path: Path) -> None:
    """Hard links are numbered within a mount: the first pair of each mount has the same number."""
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w", mounts={"/data": RAMResource()}) as ws:
            await ws.execute("echo one > /a; ln /a /b; echo two > /data/a; ln /data/a /data/b")

    asyncio.run(act())
    store["w"].checkout(str(tmp_path))
    assert (tmp_path / "b").read_text() == "one\n" and (tmp_path / "data" / "b").read_text() == "two\n"
    assert (tmp_path / "data" / "b").stat().st_nlink == 2


def test_a_mount_hides_what_is_below_it(tmp_path: Path) -> None:
    store = Store("memory:")
    store.create("w")
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "new").write_text("new")

    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("mkdir -p /m/n; echo old > /m/n/old; echo side > /m/side")
        async with store.open("w", mounts={"/m/n": DiskResource(tmp_path / "disk", create=True)}) as ws:
            await ws.commit()

    asyncio.run(act())
    store["w"].checkout(str(tmp_path / "out"))
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert found == {"m/side", "m/n/new"}


@needs_git
def test_a_push_has_every_mount_the_author_and_the_trailers(tmp_path: Path) -> None:
    store = mounted()
    git(tmp_path, "init", "--quiet", "--bare", "r.git")
    done = store["w"].push(str(tmp_path / "r.git"))
    assert git(tmp_path / "r.git", "ls-tree", "-r", "--name-only", "w").split() == ["data/a", "data/d/e/f", "r"]
    assert done.left_out == ("/far",)
    shown = git(tmp_path / "r.git", "log", "-1", "--format=%an%n%B", "w").splitlines()
    head = store["w"].find()
    assert shown[0] == "ann" and f"Ramet-Revision: w-1 {head.id.hex()}" in shown and "Ramet-Agent: ann" in shown


@needs_git
@pytest.mark.parametrize(
    ("paths", "files"),
    [(["/data"], ["a", "d/e/f"]), (["/data/a"], ["a"]), (["/r", "/data/d"], ["d/e/f", "r"]), (["/"], None)],
)
def test_a_push_of_paths_has_them(tmp_path: Path, paths: list[str], files: list[str] | None) -> None:
    store = mounted()
    git(tmp_path, "init", "--quiet", "--bare", "r.git")
    store["w"].push(str(tmp_path / "r.git"), paths=paths)
    expected = ["data/a", "data/d/e/f", "r"] if files is None else files
    assert git(tmp_path / "r.git", "ls-tree", "-r", "--name-only", "w").split() == expected


@needs_git
def test_a_push_refuses_a_path_that_is_not_there(tmp_path: Path) -> None:
    store = mounted()
    git(tmp_path, "init", "--quiet", "--bare", "r.git")
    assert refused(lambda: store["w"].push(str(tmp_path / "r.git"), paths=["/typo"])) == "not_found"


@needs_git
def test_a_git_export_has_every_mount_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    done = mounted()["w"].export_git(str(tmp_path / "repo"))
    assert (tmp_path / "repo" / "data" / "d" / "e" / "f").read_text() == "f\n" and done.left_out == ["w-1:/far"]


def test_a_tar_has_every_mount() -> None:
    out = io.BytesIO()
    mounted()["w"].export(out, kind="tar")
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        assert {"r", "data/a", "data/d/e/f"} <= set(tar.getnames())


def test_a_reader_may_leave_remote_mounts_out_with_a_notice() -> None:
    store = mounted()

    async def act() -> None:
        async with store.open_with("w", OpenOptions(readonly=True, skip_remote=True)) as ws:
            assert (await ws.execute("cat /data/a /r")).text == "a\nr\n"
            assert ws.restored.problems == ["/far is left out: its files are not in the store"]
        with pytest.raises(RametError, match="/far") as caught:
            await store.open("w", readonly=True).__aenter__()
        assert "resources=" in caught.value.remediation

    asyncio.run(act())
