"""What a commit remembers of directories: never so much that what must be left out gets in later."""

from __future__ import annotations

import asyncio

import pytest

from ramet import RAMResource
from ramet.core.paths import parse
from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.ignore_rules import IgnoreRules
from ramet.store.commit.memory_tree import commit_memory
from ramet.store.model import trees
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import MemoryObjects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


class Bench:
    def __init__(self) -> None:
        self.ram = RAMResource()
        self.objects = MemoryObjects()
        self.packs = PackReader(self.objects)

    def write(self, path: str) -> None:
        async def act() -> None:
            place = parse("/")
            for part in path.strip("/").split("/")[:-1]:
                place = place / part
                try:
                    await self.ram.mkdir(place)
                except FileExistsError:
                    continue
            await self.ram.write(parse(path), b"content")

        asyncio.run(act())

    def rename(self, old: str, new: str) -> None:
        asyncio.run(self.ram.rename(parse(old), parse(new)))

    def commit(self, withheld: IgnoreRules | None) -> list[str]:
        writer = PackWriter(self.objects, self.packs)
        done = commit_memory(self.ram, writer, self.objects, CommitFilter(withheld))
        writer.finish()
        done.settle()
        return sorted(self.names(done.tree, ""))

    def names(self, tree: TreeId, where: str) -> list[str]:
        found: list[str] = []
        for node in trees.decode(self.packs.read(tree)):
            path = f"{where}/{node.name.decode()}"
            found += self.names(node.tree, path) if node.kind == trees.DIR else [path]
        return found


def test_a_directory_that_gets_another_name_is_looked_into_again() -> None:
    bench = Bench()
    bench.write("/a/conf/gh")
    bench.write("/b/x")
    assert bench.commit(IgnoreRules()) == ["/a/conf/gh", "/b/x"]
    bench.rename("/a/conf", "/a/.config")
    assert bench.commit(IgnoreRules()) == ["/b/x"]
    bench.rename("/a/.config", "/a/conf")
    assert bench.commit(IgnoreRules()) == ["/a/conf/gh", "/b/x"]


@pytest.mark.parametrize("first", [IgnoreRules(), IgnoreRules(["y"])])
def test_other_patterns_look_into_everything(first: IgnoreRules) -> None:
    bench = Bench()
    for path in ("/a/b/key", "/a/c/x", "/d/key", "/e"):
        bench.write(path)
    assert bench.commit(first) == ["/a/b/key", "/a/c/x", "/d/key", "/e"]
    bench.write("/e2")
    assert bench.commit(IgnoreRules(["key"])) == ["/a/c/x", "/e", "/e2"]
    assert bench.commit(IgnoreRules(["key"])) == ["/a/c/x", "/e", "/e2"]
    assert bench.commit(first) == ["/a/b/key", "/a/c/x", "/d/key", "/e", "/e2"]
