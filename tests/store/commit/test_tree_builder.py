"""Trees from members in any order: what came a while ago counts as what came last does, and takes little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramet.core.errors import RametError
from ramet.store.checkout.walk import walk_tree
from ramet.store.commit import tree_builder as building
from ramet.store.commit.tree_builder import TreeBuilder
from ramet.store.model import trees
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import MemoryObjects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

PATHS = st.sampled_from(["a", "b", "a/b", "a/c", "a/b/c", "d", "d/e", "d/f", "a/b/d", "d/e/f"])
MEMBERS = st.lists(st.tuples(st.sampled_from(["file", "directory", "link", "hard"]), PATHS, PATHS), max_size=25)


def built(members: list[tuple[str, str, str]], live: int) -> tuple[TreeId, PackReader, list[str]]:
    objects = MemoryObjects()
    reader = PackReader(objects)
    writer = PackWriter(objects, reader)
    builder, told = TreeBuilder(writer), []
    before, building.LIVE_ENTRIES = building.LIVE_ENTRIES, live  # type: ignore[misc]
    try:
        for number, (what, path, other) in enumerate(members):
            try:
                if what == "file":
                    builder.file(path, iter([b"%d" % number]), len(str(number)), 0o644, number)
                elif what == "directory":
                    builder.directory(path, 0o750, number)
                elif what == "link":
                    builder.link(path, other, number)
                else:
                    builder.hard_link(path, other)
            except RametError as error:
                told.append(f"{number} {error.code}")
        tree = builder.tree()
    finally:
        building.LIVE_ENTRIES = before  # type: ignore[misc]
    writer.finish()
    return tree, reader, told


@given(MEMBERS)
@settings(max_examples=80, deadline=None)
def test_what_is_packed_early_makes_no_difference(members: list[tuple[str, str, str]]) -> None:
    tree, reader, told = built(members, 1000)
    for live in (1, 3):
        again, _, also = built(members, live)
        assert (again, also) == (tree, told)
    seen = [path for path, _ in walk_tree(reader.read, tree)]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("live", [1, 1000])
def test_later_members_replace_earlier_ones_whatever_they_are(live: int) -> None:
    members = [
        ("file", "a", ""), ("file", "a/b", ""), ("link", "c", "a"), ("directory", "c", ""), ("file", "c/x", ""),
        ("file", "d/e", ""), ("file", "d", ""), ("file", "f", ""), ("file", "f", ""),
    ]  # fmt: skip
    tree, reader, _ = built(members, live)
    kinds = {path: node.kind for path, node in walk_tree(reader.read, tree)}
    assert kinds == {
        "/a": trees.DIR,
        "/a/b": trees.FILE,
        "/c": trees.DIR,
        "/c/x": trees.FILE,
        "/d": trees.FILE,
        "/f": 0,
    }
    nodes = dict(walk_tree(reader.read, tree))
    assert reader.read(nodes["/f"].payload) == b"8"


@pytest.mark.parametrize("live", [1, 1000])
def test_files_with_several_names_are_numbered_by_a_walk(live: int) -> None:
    members = [
        ("file", "z", ""),
        ("file", "b/y", ""),
        ("hard", "a/x", "z"),
        ("hard", "q", "a/x"),
        ("hard", "b/w", "b/y"),
    ]
    tree, reader, told = built([*members, ("hard", "n", "none"), ("hard", "n", "b")], live)
    groups = {path: trees.split_group(node.group) for path, node in walk_tree(reader.read, tree) if node.group}
    assert groups == {"/a/x": (1, 3), "/q": (1, 3), "/z": (1, 3), "/b/w": (2, 2), "/b/y": (2, 2)}
    assert told == ["5 snapshot_invalid", "6 snapshot_invalid"]


MANY = """
import sys
from ramet.store.commit.tree_builder import TreeBuilder
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.writer import PackWriter
from ramet.store.packs.reader import PackReader

objects = DirectoryObjects(sys.argv[1], sync=False)
writer = PackWriter(objects, PackReader(objects))
builder = TreeBuilder(writer)
for number in range(int(sys.argv[2])):
    builder.file(f"d{number % 97}/f{number}", iter([b"x"]), 1, 0o644, number)
builder.tree()
writer.finish()
with open("/proc/self/status") as file:
    print(next(line.split()[1] for line in file if line.startswith("VmHWM")))
"""


def test_a_name_takes_few_bytes(tmp_path: Path) -> None:
    """Members that go from folder to folder, as no sorted archive does."""

    def peak(count: int) -> int:
        command = [sys.executable, "-c", MANY, str(tmp_path / str(count)), str(count)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024

    assert (peak(240_000) - peak(60_000)) / 180_000 < 140
