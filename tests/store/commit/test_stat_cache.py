"""What a commit remembers of a directory: it saves work and never changes the result."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.directory import DirectoryCommit, commit_directory
from ramet.store.commit.ignore_rules import DEFAULT_RULES, IgnoreRules
from ramet.store.commit.stat_cache import StatCache, facts_of
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, Objects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


def commit(
    objects: Objects, root: Path, cache: StatCache, withheld: IgnoreRules | None = None, **options: Any
) -> TreeId:
    return commit_with_report(objects, root, cache, withheld, **options).tree


def commit_with_report(
    objects: Objects, root: Path, cache: StatCache, withheld: IgnoreRules | None, **options: Any
) -> DirectoryCommit:
    reader = PackReader(objects)
    reader.refresh()
    writer = PackWriter(objects, reader)
    later = time.time_ns() + 10**10  # nothing is too young to be trusted
    done = commit_directory(str(root), writer, cache, CommitFilter(withheld), now=lambda: later, **options)
    writer.finish()
    return done


def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files that are opened to be read."""
    found: list[Any] = []
    real = os.open

    def counted(path: Any, *arguments: Any, **options: Any) -> int:
        if "dir_fd" in options:
            found.append(path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", counted)
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "in"
    for folder in ("a/b", "c"):
        (root / folder).mkdir(parents=True)
        for number in range(3):
            (root / folder / f"f{number}").write_text(f"{folder} {number}")
    return root


def test_names_that_are_not_text_are_remembered_too(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = os.fsencode(source) + b"/c/\xff\xfe"
    with open(strange, "wb") as file:
        file.write(b"strange")
    cache, objects = StatCache(), MemoryObjects()
    tree = commit(objects, source, cache)
    assert set(facts_of(cache.folders[b"/c"])) == {"f0", "f1", "f2", os.fsdecode(b"\xff\xfe")}
    seen = opened(monkeypatch)
    assert commit(objects, source, cache) == tree and seen == []
    with open(strange, "ab") as file:
        file.write(b"r")
    assert commit(objects, source, cache) != tree and seen == [b"\xff\xfe"]


def test_other_patterns_are_applied_to_what_is_known(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, objects = StatCache(), MemoryObjects()
    whole = commit(objects, source, cache, withheld=DEFAULT_RULES)
    narrow = IgnoreRules(["f1"])
    seen = opened(monkeypatch)
    # A watcher that saw no change must not hide that the patterns are others.
    without, left = commit_with_report(objects, source, cache, narrow, dirty={b""})
    assert without != whole and sorted(left) == ["/a/b/f1", "/c/f1"] and seen == []
    assert without == commit(MemoryObjects(), source, StatCache(), withheld=narrow)
    again = commit_with_report(objects, source, cache, narrow)
    assert again.tree == without
    assert sorted(again.withheld) == ["/a/b/f1", "/c/f1"], "what is left out is told each time"
    assert commit(objects, source, cache, withheld=DEFAULT_RULES) == whole


def test_patterns_are_remembered_between_processes(source: Path, tmp_path: Path) -> None:
    objects = DirectoryObjects(str(tmp_path / "store"))

    def kept() -> StatCache:
        reader = PackReader(objects)
        reader.refresh()
        return StatCache.load(reader.local, str(source), reader.packs())

    narrow = IgnoreRules(["f1"])
    tree = commit(objects, source, kept(), withheld=narrow)
    assert kept().rules == ["built-in 2", "f1"] and kept().files == 3 + 4
    assert commit(objects, source, kept(), withheld=narrow) == tree
    assert commit(objects, source, kept()) == commit(MemoryObjects(), source, StatCache())


@pytest.mark.parametrize("touched", ["a/b/f1", "c/new"])
def test_trees_that_are_gone_are_made_again(source: Path, touched: str) -> None:
    cache, objects = StatCache(), MemoryObjects()
    commit(objects, source, cache)
    for key in list(objects.list("packs/")):
        objects.delete(key)
    (source / touched).write_text("changed")
    fresh = MemoryObjects()
    expected = commit(fresh, source, StatCache())
    assert commit(objects, source, cache) == expected
    reader = PackReader(objects)
    reader.refresh()
    assert reader.read(expected)


def test_a_second_name_far_below_is_noticed(source: Path) -> None:
    """The folders above stay as they are, and yet their trees have to be made again."""
    cache, objects = StatCache(), MemoryObjects()
    commit(objects, source, cache)
    os.link(source / "a/b/f1", source.parent / "outside")
    assert commit(objects, source, cache) == commit(MemoryObjects(), source, StatCache())
    assert cache.linked and cache.folders[b""].encoded and not cache.folders[b"/c"].encoded
    os.link(source / "a/b/f1", source / "c/again")
    for _ in range(2):
        assert commit(objects, source, cache) == commit(MemoryObjects(), source, StatCache())
    os.unlink(source / "c/again")
    os.unlink(source.parent / "outside")
    assert commit(objects, source, cache) == commit(MemoryObjects(), source, StatCache())
    assert not cache.linked


def test_what_a_remote_store_was_given_is_not_fetched_from_it(source: Path, tmp_path: Path) -> None:
    fetched: list[str] = []

    class Remote(MemoryObjects):
        remote = True
        local = str(tmp_path / "local")

        def get_range(self, key: str, start: int, size: int) -> bytes:
            fetched.append(key)
            return super().get_range(key, start, size)

    objects, cache = Remote(), StatCache()
    commit(objects, source, cache)
    (source / "a/b/f1").write_text("changed")
    (source / "c/new").write_text("new")
    assert commit(objects, source, cache) == commit(MemoryObjects(), source, StatCache())
    assert fetched == [], "the trees of the last commit are on this machine"


def test_a_commit_that_fails_costs_the_next_one_work_and_nothing_else(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, objects = StatCache(), MemoryObjects()
    commit(objects, source, cache)
    (source / "c" / "f1").write_text("changed")
    with monkeypatch.context() as patched:
        patched.setattr(objects, "put", _full)
        with pytest.raises(OSError, match="full"):
            commit(objects, source, cache)
    assert b"/c" not in cache.folders and b"/a/b" in cache.folders
    seen = opened(monkeypatch)
    tree = commit(objects, source, cache)
    assert tree == commit(MemoryObjects(), source, StatCache()) and set(seen) >= {b"f0", b"f1", b"f2"}
    seen.clear()
    assert commit(objects, source, cache) == tree and seen == []


def _full(key: str, data: bytes) -> None:
    raise OSError("full")


@pytest.mark.parametrize("what", ["gone", "attributes", "grown", "large"])
def test_files_that_are_not_as_most_are_read_one_by_one(
    what: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files are read together, unless one vanishes, grows, is large or has attributes."""
    real = os.open
    if what == "large":
        (source / "c" / "f1").write_bytes(bytes(100_000))
    if what == "attributes":
        try:
            os.setxattr(source / "c" / "f1", "user.colour", b"red")
        except OSError:
            pytest.skip("no extended attributes here")

    def strange(path: Any, *arguments: Any, **options: Any) -> int:
        if path == b"f1" and what == "gone":
            raise FileNotFoundError(path)
        if path == b"f1" and what == "grown":
            with open(source / "c" / "f1", "w") as file:
                file.write("it is longer by now")
        return real(path, *arguments, **options)

    objects, cache = MemoryObjects(), StatCache()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", strange)
        tree = commit(objects, source, cache)
    again = commit(objects, source, cache)
    assert (again == tree) is (what not in ("gone", "grown")), (
        "what was gone is there again, what grew has another time"
    )
    assert again == commit(MemoryObjects(), source, StatCache())
