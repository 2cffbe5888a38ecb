"""What a commit, a checkout and a comparison hold in memory does not follow the number of files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ramet.store.model.ids import TreeId, tree_id
from ramet.store.model.trees import FILE, Node, encode
from ramet.store.verbs import diff

PEAK = """
import sys
from ramet.store.model.ids import chunk_id
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.writer import PackWriter
from ramet.store.packs.reader import PackReader

objects = DirectoryObjects(sys.argv[1], sync=False)
writer = PackWriter(objects, PackReader(objects))
for number in range(int(sys.argv[2])):
    data = b"content of object number %d" % number
    writer.add(chunk_id(data), data)
writer.finish()
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmHWM")))
"""

TREE = """
import os, sys, time
from ramet.store.checkout.directory import checkout
from ramet.store.verbs.diff import DiffSummary, compare
from ramet.store.commit.directory import commit_directory
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.writer import PackWriter
from ramet.store.packs.reader import PackReader
from ramet.store.commit.stat_cache import StatCache

base, files = sys.argv[1], int(sys.argv[2])
for number in range(files):
    if number % 200 == 0:
        folder = f"{base}/in/d{number // 200}"
        os.makedirs(folder)
    with open(f"{folder}/f{number}", "w") as file:
        file.write(str(number))
objects = DirectoryObjects(f"{base}/store", sync=False)
packs = PackReader(objects)
later = time.time_ns() + 10**10

def commit():
    packs.refresh()
    writer = PackWriter(objects, packs)
    stats = StatCache.load(packs.local, f"{base}/in", packs.names())
    tree = commit_directory(f"{base}/in", writer, stats, now=lambda: later).tree
    writer.finish()
    return tree

tree = commit()
assert commit() == tree
assert checkout(packs, tree, f"{base}/out").written == files
assert checkout(packs, tree, f"{base}/out").kept == files
assert DiffSummary.of(compare(packs.read, None, tree)).counts["added"] == files + files // 200
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmHWM")))
"""


def peak(script: str, base: Path, count: int) -> int:
    """Kilobytes that a process of its own had at most."""
    command = [sys.executable, "-c", script, str(base), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_writer_holds_a_few_bytes_of_each_object(tmp_path: Path) -> None:
    found = []
    for number in range(3):  # the peak of a busy machine varies by some megabytes: the smallest one counts
        few = peak(PEAK, tmp_path / f"few{number}", 140_000)
        many = peak(PEAK, tmp_path / f"many{number}", 420_000)
        assert many < 130_000, "kilobytes"
        found.append((many - few) * 1024 / 280_000)
        if found[-1] < 110:
            return
    raise AssertionError(f"bytes for each more, its record in the index and little else: {found}")


def test_a_large_directory_is_committed_and_checked_out_in_little_memory(tmp_path: Path) -> None:
    few, many = peak(TREE, tmp_path / "few", 1_000), peak(TREE, tmp_path / "many", 5_000)
    assert many < 90_000, "kilobytes"
    assert (many - few) * 1024 / 4_000 < 2_500, "bytes for each more, below the bound up to which files are collected"


def test_of_very_many_differences_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_RENAME_CANDIDATES", 4)

    def tree(names: str) -> bytes:
        return encode([Node(name.encode(), FILE, 0o644, 0, 1, name.lower().encode() * 32) for name in names])

    def compared(before: str, after: str) -> list[tuple[str, str]]:
        read = {tree_id(tree(names)): tree(names) for names in (before, after)}.__getitem__
        found = diff.compare(read, TreeId(tree_id(tree(before))), TreeId(tree_id(tree(after))))  # type: ignore[arg-type]
        return [(difference.path, difference.what) for difference in found]

    assert compared("ab", "AB") == [("/A", "renamed"), ("/B", "renamed")]
    assert compared("abc", "ABC") == [(f"/{name}", "added") for name in "ABC"] + [
        (f"/{name}", "removed") for name in "abc"
    ]
