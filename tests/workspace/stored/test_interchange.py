"""Revisions as archives and as git repositories, and archives as revisions: what goes out comes back the same."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.store.verbs.test_verbs import make, refused

from ramet import DiskResource, Store, Workspace
from ramet.store.objects.objects import MemoryObjects, Objects

FILES = r"""
mkdir -p /a/b/empty /d; printf 'x\0y\377' > /a/bin; chmod 750 /a/bin; ln -s ../a/bin /a/b/l; ln /a/bin /hard
seq 1 60000 > /long; seq 300000 > /d/large; printf n > $'/new\nline'; : > /zero
printf name > /$(printf 'n%.0s' {1..200}); ln -s /nowhere /a/out; n=5; greet() { echo hi; }; cd /a
"""


def exported(store: Store, kind: str, compress: str | None = None) -> bytes:
    out = io.BytesIO()
    store["w"].export(out, kind=kind, compress=compress)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["snapshot", "tar"])
def test_what_goes_out_comes_back(place: Objects, kind: str) -> None:
    store = make(place, FILES)
    archive = exported(store, kind)
    assert archive == exported(Store(place), kind), "the same revision gives the same bytes"
    told: list[tuple[str, int, int | None]] = []
    imported = store.import_archive(
        "copy", io.BytesIO(archive), message="in", author="me", progress=lambda *row: told.append(row)
    )
    assert imported.files == 7 and imported.left_out == [] and told
    assert (imported.revision.name, imported.revision.message, imported.revision.author) == ("copy-1", "in", "me")
    assert store["copy"].diff("w@head", "head") == []
    if kind == "snapshot":
        assert imported.revision.content_manifest == store.find("w").content_manifest

    async def act() -> None:
        async with store.open("copy", readonly=True) as ws:
            script = "stat -c '%h %a' /hard; readlink /a/b/l; ls -d /a/b/empty; tail -1 /d/large; pwd; echo $n"
            result = await ws.execute(script)
            expected = "2 750\n../a/bin\n/a/b/empty\n300000\n"
            assert result.text == expected + ("/a\n5\n" if kind == "snapshot" else "/\n\n")

    asyncio.run(act())
    assert store.verify().ok


@pytest.mark.parametrize("compress", [None, "gz", "bz2", "xz"])
def test_archives_are_what_they_say(tmp_path: Path, compress: str | None) -> None:
    store = make(MemoryObjects(), FILES)
    store["w"].export(tmp_path / "plain.tar", kind="tar", compress=compress)
    with tarfile.open(tmp_path / "plain.tar") as tar:
        members = {member.name: member for member in tar.getmembers()}
        assert members["hard"].islnk() and members["a/b/l"].linkname == "../a/bin" and members["a/b/empty"].isdir()
        assert members["a/bin"].mode == 0o750 and members["n" * 200].size == 4
    store["w"].export(tmp_path / "s.tar", compress=compress)
    loaded = Workspace.load(tmp_path / "s.tar")

    async def act() -> None:
        assert (await loaded.execute("cmp bin /hard && wc -l < /long; greet")).text == "60000\nhi\n"

    asyncio.run(act())
    assert store.import_archive("z", tmp_path / "plain.tar").files == 7
    assert refused(lambda: store["w"].export(tmp_path / "x", kind="zip")) == "invalid_argument"


def test_exact_times_and_several_mounts(tmp_path: Path) -> None:
    store = Store("memory:")
    store.create("w")
    (tmp_path / "disk" / "sub").mkdir(parents=True)
    (tmp_path / "disk" / "sub" / "f").write_text("disk")
    os.utime(tmp_path / "disk" / "sub" / "f", ns=(1_600_000_000_123_456_789,) * 2)

    async def act() -> None:
        async with store.open("w", mounts={"/mnt/disk": DiskResource(tmp_path / "disk", create=True)}) as ws:
            await ws.execute("echo root > /r; echo t > /tmp/t")

    asyncio.run(act())
    archive = io.BytesIO(exported(store, "tar"))
    with tarfile.open(fileobj=archive) as tar:
        names = tar.getnames()
        assert {"r", "mnt", "mnt/disk", "mnt/disk/sub/f", "tmp/t"} <= set(names) and len(names) == len(set(names))
    archive.seek(0)
    store.import_archive("flat", archive)
    node = store.repository.node(store.find("flat"), "/mnt/disk/sub/f")
    assert node.mtime_ns == 1_600_000_000_123_456_789
    snapshot = io.BytesIO(exported(store, "snapshot"))
    again = store.import_archive("again", snapshot).revision
    assert again.content_manifest == store.find("w").content_manifest
    assert [mount.type for mount in again.mounts] == [mount.type for mount in store.find("w").mounts]


def test_an_import_into_a_workspace_is_its_next_revision(place: Objects) -> None:
    store = make(place, "echo 1 > /f; n=7", "echo 2 > /f")
    archive = io.BytesIO(exported(store, "tar"))
    make(place, "echo 3 > /f; echo more > /g", store=store)
    revision = store["w"].import_archive(archive).revision
    assert (revision.name, revision.lineage, len(revision.parents)) == ("w-4", "import:tar", 1)
    assert [d.path for d in store["w"].diff("2", "head")] == []

    async def act() -> None:
        async with store.open("w", readonly=True) as ws:
            assert (await ws.execute("cat /f; echo $n; ls /g")).text == "2\n7\n", "the sessions stay"

    asyncio.run(act())


def hostile(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        tar.addfile(member, io.BytesIO(b""))
    return out.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        hostile("../out"),
        hostile("a/../../out"),
        hostile("h", tarfile.LNKTYPE, "nothing"),
        hostile("h", tarfile.LNKTYPE, "../x"),
        b"no tar at all",
        b"",
        hostile("manifest.json"),
    ],
)
def test_hostile_archives_change_nothing(archive: bytes) -> None:
    store = make(MemoryObjects(), "echo 1 > /f")
    for name in ("w", "new"):
        code = refused(lambda name=name: store.import_archive(name, io.BytesIO(archive)))  # type: ignore[misc]
        assert code == "snapshot_invalid"
    assert store.ls() == ["w"] and store.find("w").seq == 1


def test_links_are_not_followed_and_devices_are_reported() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("l")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("l/passwd"))
        pipe = tarfile.TarInfo("p")
        pipe.type = tarfile.FIFOTYPE
        tar.addfile(pipe)
    store = Store("memory:")
    out.seek(0)
    imported = store.import_archive("w", out)
    assert imported.left_out == ["/p: a device or pipe has no content to keep"]
    assert store["w"].find().mounts[0].tree is not None
    assert store.repository.node(store.find("w"), "/l/passwd").size == 0


# ---------------------------------------------------------------------------------------------------------- git

git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def say(folder: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, env=env, check=True)
    return done.stdout


def with_history(objects: Objects) -> Store:
    store = make(objects, "mkdir -p /src; echo 'print(1)' > /src/a.py; chmod +x /src/a.py; ln -s src/a.py /main")
    store["w"].fork(None, "side")
    make(objects, "echo side > /side.txt; printf q > $'/odd \"name\\n'", name="side", store=store)
    make(objects, "echo ours > /ours.txt; mkdir -p /x/.git; echo no > /x/.git/config; chmod -x /src/a.py", store=store)
    assert store["w"].merge("side").ok
    make(objects, "rm -r /src; echo file > /src; rm /main", store=store)
    store["w"].tag("v1", "2")
    store["w"].tag("v2", message="annotated", author="Ada <ada@example.org>")
    return store


@git
def test_a_history_is_a_git_repository(place: Objects, tmp_path: Path) -> None:
    store = with_history(place)
    done = store["w"].export_git(str(tmp_path / "repo"))
    assert (done.commits, done.tags, done.branch) == (6, 2, "w") and any("/x/.git" in text for text in done.left_out)
    repo = tmp_path / "repo"
    assert say(repo, "fsck", "--strict") == ""
    assert say(repo, "status", "--porcelain") == ""
    subjects = say(repo, "log", "--format=%s|%P|%an <%ae>|%at").splitlines()
    assert len(subjects) == 6 and sum(len(row.split("|")[1].split()) == 2 for row in subjects) == 1
    assert sorted(os.listdir(repo)) == [".git", 'odd "name\n', "ours.txt", "side.txt", "src"]
    assert (repo / "src").read_text() == "file\n"
    first = say(repo, "rev-list", "--max-parents=0", "HEAD").strip()
    assert say(repo, "ls-tree", "-r", first).split()[::4] == ["120000", "100755"]
    assert say(repo, "ls-tree", "v1", "src/a.py").startswith("100644")
    assert say(repo, "cat-file", "-t", "v2") == "tag\n" and "Ada <ada@example.org>" in say(repo, "cat-file", "-p", "v2")
    assert refused(lambda: store["w"].export_git(str(repo))) == "already_exists"
    bare = tmp_path / "again.git"
    store["w"].export_git(str(bare))
    assert say(bare, "rev-parse", "w") == say(repo, "rev-parse", "w"), "the same history gives the same commits"
    with_history(MemoryObjects())["w"].export_git(str(tmp_path / "other.git"))
    assert say(tmp_path / "other.git", "rev-parse", "w^{tree}") == say(repo, "rev-parse", "w^{tree}")


def test_the_stream_needs_no_git() -> None:
    store = with_history(MemoryObjects())
    stream = b"".join(store["w"].git_stream())
    assert stream.startswith(b"feature done\n") and stream.endswith(b"done\n")
    assert stream.count(b"\ncommit refs/heads/w\n") == 6 and b'"x/.git' not in stream
    assert stream == b"".join(store["w"].git_stream())
