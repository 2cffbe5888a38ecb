"""The store keeps what it was given, finds what is damaged, and lets exactly one writer move a head."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ramet.core.errors import RametError
from ramet.store.checkout.directory import checkout
from ramet.store.commit.directory import commit_directory
from ramet.store.commit.stat_cache import StatCache
from ramet.store.model import trees
from ramet.store.model.chunker import chunks
from ramet.store.model.fastcdc import MAXIMUM, MINIMUM
from ramet.store.model.ids import EMPTY_CHUNK, TreeId, chunk_id, tree_id
from ramet.store.objects.log import ObjectLog
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, Objects, prove_create
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter
from ramet.store.refs.leases import Leases, holder_is_gone, holder_name
from ramet.store.repository import Repository

NAMES = st.binary(min_size=1, max_size=6).filter(lambda b: b"/" not in b and b"\0" not in b and b not in (b".", b".."))
FILES = st.tuples(st.just("file"), st.binary(max_size=200), st.sampled_from([0o644, 0o600, 0o755, 0o444]))
LINKS = st.tuples(st.just("link"), st.binary(min_size=1, max_size=20).filter(lambda b: b"\0" not in b), st.just(0))
TREES = st.recursive(
    st.dictionaries(NAMES, st.one_of(FILES, LINKS), max_size=4),
    lambda below: st.dictionaries(NAMES, st.one_of(FILES, LINKS, below), max_size=4),
    max_leaves=12,
)


def make(folder: bytes, tree: dict[bytes, object]) -> None:
    for name, what in tree.items():
        path = folder + b"/" + name
        if isinstance(what, dict):
            os.mkdir(path)
            make(path, what)
        elif isinstance(what, tuple) and what[0] == "file":
            with open(path, "wb") as file:
                file.write(what[1])
            os.chmod(path, what[2])
        elif isinstance(what, tuple):
            os.symlink(what[1], path)


def described(folder: bytes) -> list[tuple[object, ...]]:
    """Everything that a checkout must bring back."""
    found: list[tuple[object, ...]] = []
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        info = entry.stat(follow_symlinks=False)
        row: tuple[object, ...] = (entry.name, info.st_mode, info.st_mtime_ns)
        if entry.is_symlink():
            found.append((*row[:2], os.readlink(entry.path)))
        elif entry.is_dir():
            found.append((*row, described(entry.path)))
        else:
            with open(entry.path, "rb") as file:
                found.append((*row, info.st_nlink, file.read()))
    return found


def commit(objects: Objects, folder: str, cache: StatCache | None = None) -> TreeId:
    reader = PackReader(objects)
    reader.refresh()
    writer = PackWriter(objects, reader)
    tree = commit_directory(folder, writer, StatCache() if cache is None else cache).tree
    writer.finish()
    return tree


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_checkout_of_a_commit_is_the_tree(tree: dict[bytes, object], tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.mktemp("t")
    (base / "in").mkdir()
    make(os.fsencode(base / "in"), tree)
    on_disk, in_memory = DirectoryObjects(str(base / "objects")), MemoryObjects()
    identity = commit(on_disk, str(base / "in"))
    assert commit(in_memory, str(base / "in")) == identity, "the same tree has the same id in every store"
    reader = PackReader(on_disk)
    reader.refresh()
    receipt = checkout(reader, identity, str(base / "out"))
    assert described(os.fsencode(base / "out")) == described(os.fsencode(base / "in"))
    assert not receipt.problems
    again = checkout(reader, identity, str(base / "out"))
    assert again.written == again.removed == 0
    assert commit(on_disk, str(base / "out")) == identity


def test_hard_links_and_leftovers(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("same")
    os.link(tmp_path / "in" / "a", tmp_path / "in" / "b")
    objects = MemoryObjects()
    tree = commit(objects, str(tmp_path / "in"))
    (tmp_path / "out" / "stale" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "a").mkdir()
    reader = PackReader(objects)
    reader.refresh()
    checkout(reader, tree, str(tmp_path / "out"))
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "b"]
    assert (tmp_path / "out" / "a").stat().st_ino == (tmp_path / "out" / "b").stat().st_ino


def test_a_commit_reads_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(20):
        (tmp_path / f"f{i}").write_text(f"content {i}")
        os.utime(tmp_path / f"f{i}", ns=(10**18, 10**18))
    objects, cache, later = MemoryObjects(), StatCache(), 4 * 10**18
    opened: list[bytes] = []
    real = os.open

    def counted(path: Any, *arguments: Any, **options: Any) -> int:
        if "dir_fd" in options:
            opened.append(path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", counted)

    def act() -> TreeId:
        opened.clear()
        writer = PackWriter(objects, PackReader(objects))
        tree = commit_directory(str(tmp_path), writer, cache, now=lambda: later).tree
        writer.finish()
        return tree

    first = act()
    assert cache.files == len(opened) == 20
    assert act() == first and opened == []
    (tmp_path / "f3").write_text("CONTENT 3")
    os.utime(tmp_path / "f3", ns=(10**18, 10**18))
    assert act() != first and opened == [b"f3"]


def test_a_file_changed_within_the_clocks_granularity_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    cache = StatCache()
    first = commit(MemoryObjects(), str(tmp_path), cache)
    stamp = (tmp_path / "f").stat()
    (tmp_path / "f").write_text("two")
    os.utime(tmp_path / "f", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert commit(MemoryObjects(), str(tmp_path), cache) != first


# ------------------------------------------------------------------------------------------------------- chunks


@given(st.integers(0, 3), st.integers(1, 5_000_000))
@settings(max_examples=15, deadline=None)
def test_chunks_join_to_the_content(seed: int, size: int) -> None:
    data = random.Random(seed).randbytes(size)
    blocks = [data[i : i + 300_000] for i in range(0, size, 300_000)]
    cut = list(chunks(iter(blocks), size))
    assert b"".join(cut) == data
    assert all(len(c) <= MAXIMUM for c in cut)
    assert size <= 1 << 20 or all(len(c) >= MINIMUM for c in cut[:-1])


def test_an_insertion_moves_one_cut() -> None:
    data = random.Random(1).randbytes(40 << 20)
    before = {chunk_id(c) for c in chunks(iter([data]), len(data))}
    after = list(chunks(iter([b"!" + data]), len(data) + 1))
    new = sum(len(c) for c in after if chunk_id(c) not in before)
    assert new < 2 << 20


def test_ids_are_what_the_format_says() -> None:
    assert EMPTY_CHUNK.hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    assert trees.EMPTY == b"\x90"
    assert tree_id(b"\x90") == trees.EMPTY_ID
    node = trees.Node(b"f", trees.FILE, 0o644, 5, 3, chunk_id(b"abc"))
    assert trees.decode(trees.encode([node])) == [node]
    cut = [len(c) for c in chunks(iter([bytes(range(256)) * 20_000]), 5_120_000)]
    assert sum(cut) == 5_120_000, "golden cuts must not move with a new chunker"
    with pytest.raises(ValueError):
        trees.decode(b"\x93garbage")


# ------------------------------------------------------------------------------------------------ refs and leases


@pytest.fixture(params=["memory", "directory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    return MemoryObjects() if request.param == "memory" else DirectoryObjects(str(tmp_path / "objects"))


def test_create_succeeds_once(objects: Objects) -> None:
    prove_create(objects)
    winners = []

    def race(number: int) -> None:
        if objects.create("refs/x", b"%d" % number):
            winners.append(number)

    threads = [threading.Thread(target=race, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1 and objects.get("refs/x") == b"%d" % winners[0]


def test_a_server_that_ignores_the_condition_is_refused() -> None:
    class Careless(MemoryObjects):
        def create(self, key: str, data: bytes) -> bool:
            self.put(key, data)
            return True

    with pytest.raises(RametError) as caught:
        Repository(Careless()).create("x")
    assert caught.value.code == "store_unsafe_refs"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_keeps_others_out_until_it_ends(objects: Objects) -> None:
    clock = Clock()
    refs, others = Leases(ObjectLog(objects), clock), Leases(ObjectLog(objects), clock)
    refs.create("w", None)
    mine = refs.acquire("w", "far/1/2/a", ttl=60)
    with pytest.raises(RametError) as caught:
        others.acquire("w", "near/1/2/b")
    assert caught.value.code == "workspace_busy" and caught.value.context["holder"] == "far/1/2/a"
    clock.now += 50
    mine = refs.renew("w", mine, ttl=60)
    clock.now += 50
    with pytest.raises(RametError):
        others.acquire("w", "near/1/2/b")
    clock.now += 20
    theirs = others.acquire("w", "near/1/2/b")
    assert theirs.fence > mine.fence
    with pytest.raises(RametError) as caught:
        refs.move("w", mine, head=None, kind="commit")
    assert caught.value.code == "lease_lost"
    refs.release("w", mine)
    assert others.last("w").holder == "near/1/2/b", "letting go of a lost lease changes nothing"
    others.release("w", theirs)
    refs.acquire("w", "far/1/2/a")


def test_a_dead_process_of_this_machine_is_taken_over_at_once(objects: Objects) -> None:
    script = "from ramet.store.refs.leases import holder_name; print(holder_name())"
    dead = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert holder_is_gone(dead) and not holder_is_gone(holder_name())
    refs = Leases(ObjectLog(objects))
    refs.create("w", None)
    refs.acquire("w", dead, ttl=3600)
    refs.acquire("w", holder_name())


def test_heads_move_only_from_where_they_were_seen(objects: Objects) -> None:
    refs, others = Leases(ObjectLog(objects)), Leases(ObjectLog(objects))
    refs.create("w", None)
    seen = refs.last("w")
    others.move("w", others.last("w"), head=None, kind="commit")
    with pytest.raises(RametError) as caught:
        refs.move("w", seen, head=None, kind="commit")
    assert caught.value.code == "head_moved"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200, "sp ace"])
def test_names_that_cannot_be(objects: Objects, name: str) -> None:
    with pytest.raises(RametError) as caught:
        Leases(ObjectLog(objects)).create(name, None)
    assert caught.value.code == "invalid_argument"
