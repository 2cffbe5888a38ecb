"""Reading a revision without checking it out: little is fetched, once, and never while the event loop waits."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ramet import RametError, RAMResource, Store
from ramet.core.paths import parse
from ramet.store.checkout.lazy_tree import LazyBlocks, RemoteTree
from ramet.store.model.ids import chunk_id
from ramet.store.objects.objects import MemoryObjects
from ramet.store.packs.local_cache import FrameCache, IndexCache
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


class Remote(MemoryObjects):
    """A store that is far away: it says who asks."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.watching = False
        self.asked_by_loop: list[str] = []
        self.ranges: Counter[tuple[str, int]] = Counter()

    def get_range(self, key: str, start: int, size: int) -> bytes:
        self.ranges[key, start] += 1
        if self.watching and threading.current_thread() is threading.main_thread():
            self.asked_by_loop.append(key)
        return super().get_range(key, start, size)


SCRIPT = r"""
for i in {1..20}; do mkdir -p /d$i/e; for j in {1..5}; do echo $i $j > /d$i/e/f$j; done; done
ln /d1/e/f1 /d2/hard; ln -s ../d3/e/f3 /d4/soft; head -c 3000000 /dev/urandom > /big; cp /big /twin
"""

VERBS = r"""
cat /d5/e/f5; ls /d6; stat -c %h /d2/hard; cat /d4/soft; echo more >> /d7/e/f1; cat /d7/e/f1; mv /d8/e/f1 /d9/e/new
cat /d9/e/new; rm -r /d10; cp /d11/e/f1 /d12/; cat /d12/f1; mkdir /d13/x; ln /d14/e/f1 /d14/l; truncate -s 2 /d15/e/f1
cat /d15/e/f1; echo; tail -c 5 /big | wc -c; cmp /big /twin && echo same; chmod 600 /d16/e/f1; grep -c . /d17/e/*
dd if=/dev/zero of=/twin bs=1 count=3 seek=100 conv=notrunc 2>/dev/null; cmp /big /twin | cut -c1-14
"""


def test_no_verb_makes_the_event_loop_wait() -> None:
    async def act() -> tuple[str, list[str]]:
        objects = Remote()
        store = Store(objects)
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute(SCRIPT)
        cold = Store(objects)
        async with cold.open("w", readonly=True) as ws:
            assert isinstance(ws.mounts()[0].resource, RemoteTree)
            cold.repository.packs._frames.clear()
            objects.watching = True
            result = await ws.execute(VERBS)
            objects.watching = False
            return result.text, objects.asked_by_loop

    async def local() -> str:
        store = Store("memory:")
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute(SCRIPT)
        async with store.open("w", readonly=True) as ws:
            return (await ws.execute(VERBS)).text

    text, asked = asyncio.run(act())
    assert text == asyncio.run(local())
    assert asked == []


def test_many_readers_fetch_a_frame_once() -> None:
    objects = Remote()
    writer = PackWriter(objects, PackReader(objects))
    for number in range(50):
        writer.add(chunk_id(b"%d" % number * 1000), b"%d" % number * 1000)
    writer.finish()
    reader = PackReader(objects)
    reader.refresh()
    barrier = threading.Barrier(8)

    def read(number: int) -> bytes:
        barrier.wait()
        return reader.read(chunk_id(b"%d" % number * 1000))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == [b"%d" % number * 1000 for number in range(8)]
    assert sum(objects.ranges.values()) == 1


def test_what_fails_to_load_can_be_asked_for_again() -> None:
    async def act() -> None:
        objects = Remote()
        store = Store(objects)
        store.create("w")
        async with store.open("w", mounts={"/": RAMResource()}) as ws:
            await ws.execute("mkdir /d; echo kept > /d/f")
        cold = Store(objects)
        async with cold.open("w", readonly=True) as ws:
            tree = ws.mounts()[0].resource
            cold.repository.packs._frames.clear()
            packs = {key: objects._objects.pop(key) for key in list(objects._objects) if key.endswith(".pack")}
            with pytest.raises(RametError):
                await tree.stat(parse("/d/f"))
            objects._objects.update(packs)
            assert [block async for block in tree.read(parse("/d/f"))] == [b"kept\n"]

    asyncio.run(act())


def test_a_range_fetches_the_chunks_it_touches() -> None:
    objects = Remote()
    reader = PackReader(objects)
    writer = PackWriter(objects, reader)
    parts = [bytes([65 + number]) * (300_000 + number) for number in range(8)]
    ids = list(map(chunk_id, parts))
    for identity, part in zip(ids, parts, strict=True):
        writer.add(identity, part)
    writer.finish()
    whole = b"".join(parts)
    content = LazyBlocks(ids, len(whole), reader)
    assert content.pread(len(whole) - 5, 10) == whole[-5:] and sum(objects.ranges.values()) == 1
    for start, size in ((0, 1), (299_999, 2), (300_000, 300_001), (5, 2_000_000), (len(whole), 5)):
        assert content.pread(start, size) == whole[start : start + size]
    assert content.join() == whole
    content.write(1, b"!")
    assert content.join() == whole[:1] + b"!" + whole[2:]


# ------------------------------------------------------------------------------------------- what stays at hand


def test_the_shelf_is_bounded_and_refuses_what_is_damaged(tmp_path: Path) -> None:
    shelf = FrameCache(str(tmp_path), bound=100_000)
    for number in range(40):
        shelf.put(f"{number:02}-frame", bytes([number]) * 5000)
    kept = [number for number in range(40) if shelf.get(f"{number:02}-frame") == bytes([number]) * 5000]
    assert kept and len(kept) * 5032 <= 100_000 and 39 in kept
    victim = next(path for path in tmp_path.rglob("39-frame"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"x")
    assert shelf.get("39-frame") is None and not victim.exists()


def test_indexes_of_many_packs_are_read_from_one_file(tmp_path: Path) -> None:
    class Listed(MemoryObjects):
        local = str(tmp_path)
        gets = 0

        def get(self, key: str) -> bytes:
            self.gets += 1
            return super().get(key)

    objects = Listed()
    for number in range(100):
        writer = PackWriter(objects, PackReader(objects))
        writer.add(chunk_id(b"content %d" % number), b"content %d" % number)
        writer.finish()
    PackReader(objects).refresh()
    objects.gets = 0
    reader = PackReader(objects)
    reader.refresh()
    assert objects.gets == 0 and reader.read(chunk_id(b"content 7")) == b"content 7"
    (tmp_path / "indexes").write_bytes(b"damaged")
    assert IndexCache(str(tmp_path)).load() == {}
    again = PackReader(objects)
    again.refresh()
    assert objects.gets == 100 and again.packs() == reader.packs(), "it can be made again at any time"


def test_hard_links_survive_in_directories_that_were_never_read() -> None:
    """A new pair of names does not get the number of one that was not met, and a change reaches all names."""
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("mkdir d e; echo a > d/f; ln d/f t; echo q > e/q; ln e/q e/r")
        async with store.open("w") as ws:
            await ws.execute("echo b > b; ln b c")
        async with store.open("w") as ws:
            assert (await ws.execute("cat b c d/f t e/q e/r")).text == "b\nb\na\na\nq\nq\n"
        async with store.open("w") as ws:
            await ws.execute("echo z >> t; rm e/r")
        async with store.open("w") as ws:
            assert (await ws.execute("cat d/f t e/q; stat -c %h d/f e/q")).text == "a\nz\na\nz\nq\n2\n1\n"

    asyncio.run(act())
