"""Directories into the store and back: any tree, any interruption, and no more looking than needed."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ramet import DiskResource, Store
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.store.checkout.directory import checkout
from ramet.store.checkout.lazy_tree import LazyTree
from ramet.store.commit.directory import commit_directory
from ramet.store.commit.memory_tree import commit_memory
from ramet.store.commit.stat_cache import StatCache
from ramet.store.commit.watch import Watcher
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, Objects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

NAMES = st.sampled_from(
    [b"a", b"A", b"-rf", b"new\nline", b"\xff\xfe", b" ", b"\\", b"caf\xc3\xa9", b"x" * 200, b"*", b"~"]
)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["dir", "file", "link", "hard", "mode", "time", "xattr", "remove", "large", "rename"]),
        st.lists(NAMES, min_size=1, max_size=3),
        st.integers(0, 1000),
    ),
    max_size=14,
)


def act(root: bytes, actions: list[tuple[str, list[bytes], int]]) -> None:
    """Do to a directory whatever the list says, as far as it can be done."""
    for what, names, number in actions:
        path = root + b"/" + b"/".join(names)
        try:
            if what == "dir":
                os.makedirs(path)
            elif what in ("file", "large"):
                with open(path, "wb") as file:
                    size = 1_100_000 + number * 1000 if what == "large" else number
                    file.write(random.Random(number).randbytes(size))
            elif what == "link":
                os.symlink(b"../" + names[-1], path)
            elif what == "hard":
                others = sorted(p for top, _, files in os.walk(root) for p in (top + b"/" + f for f in files))
                os.link(others[number % len(others)], path, follow_symlinks=False)
            elif what == "mode":
                os.chmod(path, 0o500 + number % 0o277)
            elif what == "time":
                os.utime(path, ns=(number * 10**12, number * 10**12 + 7))
            elif what == "xattr":
                os.setxattr(path, "user.test", b"%d" % number)
            elif what == "remove":
                os.unlink(path)
            else:
                os.rename(path, root + b"/" + names[0])
        except (OSError, ZeroDivisionError):
            continue


def described(root: bytes) -> list[tuple[Any, ...]]:
    """Everything that a checkout must bring back; files with several names by all of them."""
    names: dict[int, list[bytes]] = {}
    found: list[tuple[Any, ...]] = []
    for top, folders, files in os.walk(root):
        for name in sorted(folders + files):
            path = top + b"/" + name
            info = os.lstat(path)
            below = path[len(root) :]
            row: list[Any] = [below, info.st_mode, info.st_mtime_ns]
            if os.path.islink(path):
                row.append(os.readlink(path))
            elif not os.path.isdir(path):
                names.setdefault(info.st_ino, []).append(below)
                row.append(Path(os.fsdecode(path)).read_bytes())
            if not os.path.islink(path):
                row.append([(x, os.getxattr(path, x)) for x in os.listxattr(path) if x.startswith("user.")])
            found.append(tuple(row))
    return [*sorted(found), tuple(sorted(tuple(sorted(paths)) for paths in names.values()))]


def commit(objects: Objects, root: Path, cache: StatCache | None = None, **options: Any) -> TreeId:
    reader = PackReader(objects)
    reader.refresh()
    writer = PackWriter(objects, reader)
    tree = commit_directory(str(root), writer, StatCache() if cache is None else cache, **options).tree
    writer.finish()
    return tree


def reading(objects: Objects) -> PackReader:
    reader = PackReader(objects)
    reader.refresh()
    return reader


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=ACTIONS, then=ACTIONS)
@example(  # objects at the same place of two packs
    first=[("dir", [b"a"], 0), ("file", [b"A"], 1)],
    then=[("file", [b"A"], 2), ("file", [b"a", b"a"], 1)],
)
def test_what_is_committed_comes_back(
    first: list[tuple[str, list[bytes], int]],
    then: list[tuple[str, list[bytes], int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base = tmp_path_factory.mktemp("t")
    source, target, objects, cache = base / "in", base / "out", MemoryObjects(), StatCache()
    source.mkdir()
    for actions in (first, then):
        act(os.fsencode(source), actions)
        later = time.time_ns() + 10**10  # nothing is too young to be trusted: the cache has to be right
        tree = commit(objects, source, cache, now=lambda later=later: later)
        assert tree == commit(MemoryObjects(), source), "a cache changes the cost, never the result"
        receipt = checkout(reading(objects), tree, str(target))
        assert not receipt.problems
        assert described(os.fsencode(target)) == described(os.fsencode(source))
        again = checkout(reading(objects), tree, str(target), verify=True)
        assert again.written == again.removed == 0
        assert commit(MemoryObjects(), target) == tree


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS.map(lambda actions: [a for a in actions if a[0] != "xattr"]))
def test_memory_and_disk_have_the_same_ids(
    actions: list[tuple[str, list[bytes], int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("t")
    act(os.fsencode(root), actions)
    objects = MemoryObjects()
    tree = commit(objects, root)
    loaded = LazyTree(reading(objects), "another store").resource(tree)
    assert isinstance(loaded, RAMResource)
    writer = PackWriter(MemoryObjects(), PackReader(MemoryObjects()))
    assert commit_memory(loaded, writer, "this store").tree == tree
    writer.abandon()


@pytest.mark.parametrize("how", ["hardlink", "reflink"])
def test_checkouts_from_the_cache(tmp_path: Path, how: Any) -> None:
    source = tmp_path / "in"
    (source / "d").mkdir(parents=True)
    for number in range(20):
        (source / "d" / f"f{number}").write_text(f"content {number}")
    (source / "twice").write_text("two names")
    os.link(source / "twice", source / "d" / "again")
    (source / "big").write_bytes(os.urandom(3_000_000))
    (source / "empty").touch()
    objects = DirectoryObjects(str(tmp_path / "store"))
    tree = commit(objects, source)
    reader = reading(objects)
    first = checkout(reader, tree, str(tmp_path / "one"), how=how)
    second = checkout(reader, tree, str(tmp_path / "two"), how=how)
    assert first.linked == 0 and second.linked == 21
    one, two = tmp_path / "one" / "d" / "f1", tmp_path / "two" / "d" / "f1"
    assert (one.stat().st_ino == two.stat().st_ino) is (how == "hardlink")
    for target in ("one", "two"):
        assert described(os.fsencode(tmp_path / target)) == described(os.fsencode(source))
        assert commit(MemoryObjects(), tmp_path / target) == tree, "links to the cache are not links of the tree"
        again = checkout(reader, tree, str(tmp_path / target), how=how)
        assert again.written == again.removed == 0
    with open(two, "r+") as file:  # in place: with hard links the cache sees it too
        file.write("CHANGED")
    checkout(reader, tree, str(tmp_path / "three"), how=how)
    assert (tmp_path / "three" / "d" / "f1").read_text() == "content 1"
    with pytest.raises(RametError, match="no local cache"):
        checkout(PackReader(MemoryObjects()), tree, str(tmp_path / "four"), how=how)


def test_a_damaged_chunk_is_reported_and_never_taken_for_good(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").write_text("content")
    os.utime(tmp_path / "in" / "f", ns=(10**18, 10**18))
    objects = MemoryObjects()
    tree = commit(objects, tmp_path / "in")

    class Damaged(PackReader):
        def fetch(self, place: Any, most: int | None = None) -> bytes:
            return super().fetch(place, most).replace(b"content", b"CONTENT")

    broken = Damaged(objects)
    broken.refresh()
    assert checkout(broken, tree, str(tmp_path / "out")).problems == [str(tmp_path / "out" / "f")]
    assert checkout(reading(objects), tree, str(tmp_path / "out")).written == 1
    assert (tmp_path / "out" / "f").read_text() == "content"


# ---------------------------------------------------------------------------------------------- what is remembered


def test_the_next_process_knows_what_this_one_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, objects = tmp_path / "in", DirectoryObjects(str(tmp_path / "store"))
    source.mkdir()
    for number in range(10):
        (source / f"f{number}").write_text(f"content {number}")
    later = time.time_ns() + 10**10

    def kept() -> StatCache:
        reader = reading(objects)
        return StatCache.load(reader.local, str(source), reader.packs())

    tree = commit(objects, source, kept(), now=lambda: later)
    opened: list[Any] = []
    real = os.open

    def counted(path: Any, *arguments: Any, **options: Any) -> int:
        if "dir_fd" in options:
            opened.append(path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", counted)
    assert commit(objects, source, kept(), now=lambda: later) == tree and opened == []
    (saved,) = (tmp_path / "store" / "local").glob("stat-*")
    good = saved.read_bytes()
    saved.write_bytes(good[:-1] + b"?")
    assert not kept().folders, "a damaged cache is an empty one"
    saved.write_bytes(good)
    assert kept().folders
    for pack in (tmp_path / "store" / "packs").iterdir():
        pack.unlink()
    assert not kept().folders, "what is known must be in the store"
    assert commit(objects, source, kept(), now=lambda: later) == tree and len(opened) == 10
    assert not checkout(reading(objects), tree, str(tmp_path / "out")).problems


def test_a_commit_that_fails_teaches_the_cache_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("content")
    cache = StatCache()
    objects = MemoryObjects()
    writer = PackWriter(objects, PackReader(objects))
    commit_directory(str(tmp_path), writer, cache, now=lambda: time.time_ns() + 10**10)
    writer.abandon()
    assert not cache.folders
    tree = commit(objects, tmp_path, cache)
    assert not checkout(reading(objects), tree, str(tmp_path / "out")).problems


def test_a_watcher_sees_every_change(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    source, objects, cache = tmp_path / "in", MemoryObjects(), StatCache()
    for number in range(5):
        (source / f"d{number}" / "e").mkdir(parents=True)
        (source / f"d{number}" / "e" / "f").write_text(f"{number}")
    later = time.time_ns() + 10**11
    with Watcher(str(source)) as watcher:

        def watched() -> TreeId:
            return commit(objects, source, cache, dirty=watcher.take(cache), now=lambda: later)

        def check() -> None:
            assert watched() == commit(MemoryObjects(), source)

        check()
        check()
        assert watcher.take(cache) == {b""}, "nothing changed, nothing below the root has to be looked at"
        (source / "d1" / "e" / "f").write_text("changed")
        assert watcher.take(cache) == {b"", b"/d1", b"/d1/e"}
        (source / "d1" / "e" / "f").write_text("changed again")
        check()
        (source / "d2").rename(tmp_path / "away")
        (source / "d3").rename(source / "d2")
        check()
        (source / "d2" / "e" / "f").unlink()
        os.chmod(source / "d4" / "e", 0o700)
        check()
        assert set(cache.folders) == {b"", b"/d0", b"/d0/e", b"/d1", b"/d1/e", b"/d2", b"/d2/e", b"/d4", b"/d4/e"}
        os.link(source / "d0" / "e" / "f", source / "hard")
        check()
        check()
    assert watcher.take(cache) is None


def test_a_watched_workspace_commits_what_changed(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")

    async def live() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("w")
        async with store.open("w", mounts={"/src": DiskResource(tmp_path / "src", create=True)}) as ws:
            ws.watch()
            for number in range(3):
                await ws.execute(
                    f"mkdir -p /src/d{number}; echo {number} > /src/d{number}/f; echo {number} > /src/d0/f"
                )
                (tmp_path / "src" / "d0" / "outside").write_text(str(number))
                await ws.commit(str(number))
                assert b"".join(store["w"].show("/src/d0/f")) == b"%d\n" % number
                assert b"".join(store["w"].show("/src/d0/outside")) == b"%d" % number

    asyncio.run(live())


def test_progress_is_reported(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"f{number}").write_text("x")
    steps: list[tuple[str, int, int | None]] = []
    objects = MemoryObjects()
    tree = commit(objects, tmp_path, progress=lambda *step: steps.append(step))
    assert steps == [("commit", 256, None), ("commit", 512, None), ("commit", 600, 600)]
    steps.clear()
    checkout(reading(objects), tree, str(tmp_path / "out"), progress=lambda *step: steps.append(step))
    assert steps == [("checkout", 256, None), ("checkout", 512, None), ("checkout", 600, 600)]


# ------------------------------------------------------------------------------------------------------ SIGKILL

KILLED = """
import os, signal, sys
from tests.store.commit.test_directory import commit, described, reading
from pathlib import Path
from ramet.store.checkout.directory import checkout
from ramet.store.model.ids import chunk_id, tree_id
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.commit.stat_cache import StatCache

base, what = Path(sys.argv[1]), sys.argv[2]
source, points = base / "in", ("write", "rename", "replace", "link", "symlink", "mkdir", "utime", "unlink", "fdatasync")

def dying(after):
    left = [after]
    def wrapped(real):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] == 0 and arguments[:1] and real.__name__ == "write":
                real(arguments[0], bytes(arguments[1])[:7])  # half of it is written
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return call
    for name in points:
        setattr(os, name, wrapped(getattr(os, name)))

def store(place):
    objects = DirectoryObjects(str(place))
    reader = reading(objects)
    return commit(objects, source, StatCache.load(reader.local, str(source), reader.packs()))

wanted = store(base / "whole")
for after in range(1, 500):
    place = base / f"{what}{after}"
    if what == "commit":
        job = lambda: store(place)
    else:
        place = base / "out"
        job = lambda: checkout(reading(DirectoryObjects(str(base / "whole"))), wanted, str(place), how=what)
    child = os.fork()
    if child == 0:
        dying(after)
        job()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if what == "commit":
        reader = reading(DirectoryObjects(str(place)))
        for name in reader.packs():
            for identity in reader.index(name).ids():
                data = reader.read(identity)
                assert identity in (chunk_id(data), tree_id(data))
        assert store(place) == wanted
        assert not checkout(reading(DirectoryObjects(str(place))), wanted, str(base / f"o{after}")).problems
        assert described(os.fsencode(base / f"o{after}")) == described(os.fsencode(source))
    elif after % 3 == 0:
        job()
        assert described(os.fsencode(place)) == described(os.fsencode(source))
        for name in os.listdir(place):
            if name.endswith("1"):
                os.unlink(place / name)
    if status == 0:
        assert after > 5
        print("survived", after)
        break
"""


@pytest.mark.parametrize("what", ["commit", "copy", "hardlink", "reflink"])
def test_a_kill_at_any_write_leaves_nothing_wrong(tmp_path: Path, what: str) -> None:
    source = tmp_path / "in"
    (source / "d").mkdir(parents=True)
    for number in range(12):
        (source / f"f{number}").write_text(f"content {number}")
    (source / "d" / "big").write_bytes(random.Random(1).randbytes(2_000_000))
    os.link(source / "f1", source / "d" / "hard")
    os.symlink("f1", source / "soft")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), what],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.returncode == 0 and "survived" in done.stdout, done.stderr


def test_repeated_parts_of_large_files_are_written_right(tmp_path: Path) -> None:
    """Chunks that come again, in the same file and in others, are copied from where they were written first."""
    import random

    piece = random.Random(3).randbytes(3_000_000)
    for name, content in {"one": piece * 3, "two": b"x" + piece + piece[:100_000] + piece, "three": piece}.items():
        (tmp_path / name).write_bytes(content)
    objects = MemoryObjects()
    tree = commit(objects, tmp_path)
    receipt = checkout(reading(objects), tree, str(tmp_path / "out"))
    assert receipt.written == 3 and receipt.problems == []
    for name in ("one", "two", "three"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / name).read_bytes()
