"""What the RAM tree adds to the common promises: forks, quota, holes, digests."""

from __future__ import annotations

import asyncio
import errno
import gc
import tracemalloc
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.backends.local import buffers as blocks_module
from ramet.backends.local.buffers import Blocks
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.paths import ROOT, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs


def test_a_fork_costs_nothing_per_file() -> None:
    tree = RAMResource()

    async def fill() -> None:
        for d in range(100):
            await tree.mkdir(parse(f"/d{d}"))
            for f in range(50):
                await tree.write(parse(f"/d{d}/f{f}"), b"x")

    asyncio.run(fill())
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    twin = tree.fork()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000
    asyncio.run(twin.write(parse("/d0/f0"), b"changed"))
    assert tree.read_now(parse("/d0/f0")) == b"x"


def test_a_fork_keeps_hard_links_together() -> None:
    async def act() -> None:
        tree = RAMResource()
        await tree.write(parse("/a"), b"1")
        await tree.link(parse("/a"), parse("/b"))
        twin = tree.fork()
        await twin.write(parse("/b"), b"2")
        assert twin.read_now(parse("/a")) == b"2"
        assert tree.read_now(parse("/a")) == tree.read_now(parse("/b")) == b"1"
        await tree.remove(parse("/b"))
        assert (await tree.stat(parse("/a"))).nlink == 1
        assert (await twin.stat(parse("/a"))).nlink == 2

    asyncio.run(act())


def test_an_open_handle_writes_to_its_own_side_of_a_fork() -> None:
    async def act() -> None:
        tree = RAMResource()
        await tree.write(parse("/f"), b"old")
        handle = tree.open(parse("/f"), write=True)
        twin = tree.fork()
        handle.pwrite(0, b"new")
        assert tree.read_now(parse("/f")) == b"new"
        assert twin.read_now(parse("/f")) == b"old"

    asyncio.run(act())


def test_the_quota_is_loud_and_gives_back_what_is_freed() -> None:
    async def act() -> None:
        tree = RAMResource(quota=10)
        await tree.write(parse("/a"), b"12345678")
        with pytest.raises(OSError) as caught:
            await tree.write(parse("/b"), b"123")
        assert caught.value.errno == errno.ENOSPC
        with pytest.raises(OSError, match="No space"):
            await tree.write(parse("/a"), b"999", How.APPEND)
        await tree.write(parse("/a"), b"1")
        await tree.write(parse("/b"), b"123456789")
        await tree.remove(parse("/b"))
        await tree.setattr(parse("/a"), Attrs(size=10))
        with pytest.raises(OSError, match="No space"):
            await tree.setattr(parse("/a"), Attrs(size=11))

    asyncio.run(act())


def test_a_hole_costs_no_memory() -> None:
    tree = RAMResource(quota=1 << 40)
    asyncio.run(tree.write(parse("/f"), b""))
    tracemalloc.start()
    asyncio.run(tree.setattr(parse("/f"), Attrs(size=10 << 30)))
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()
    assert asyncio.run(tree.stat(parse("/f"))).size == 10 << 30


def test_digests_see_modes_names_links_and_content() -> None:
    async def act() -> None:
        tree = RAMResource()
        seen = {tree.digest(ROOT)}
        steps = [
            tree.write(parse("/f"), b"x"),
            tree.write(parse("/f"), b"y"),
            tree.setattr(parse("/f"), Attrs(mode=0o755)),
            tree.rename(parse("/f"), parse("/g")),
            tree.mkdir(parse("/d")),
            tree.write(parse("/l"), b"g", How.LINK),
            tree.link(parse("/g"), parse("/d/h")),
            tree.write(parse("/d/h"), b"z"),
        ]
        for count, step in enumerate(steps, 2):
            await step
            seen.add(tree.digest(ROOT))
            assert len(seen) == count

    asyncio.run(act())


_END = st.none()
"""Where an append goes."""


@given(
    st.lists(st.tuples(st.integers(0, 300) | _END, st.binary(max_size=80)), max_size=30),
    st.integers(0, 400),
    st.sampled_from([(64 * 1024, 1024 * 1024), (16, 32), (4, 100)]),
)
def test_blocks_behave_like_a_bytearray(
    writes: list[tuple[int | None, bytes]], size: int, sizes: tuple[int, int]
) -> None:
    with patch.multiple(blocks_module, FULL_TAIL=sizes[0], BLOCK=sizes[1], ZEROS=bytes(sizes[1])):
        blocks, model = Blocks(), bytearray()
        for where, data in writes:
            offset = len(model) if where is None else where
            if data and offset > len(model):
                model.extend(bytes(offset - len(model)))
            if data:
                model[offset : offset + len(data)] = data
            blocks.write(offset, data)
            assert blocks.size == len(model)
            if where is not None:  # appends are not read in between
                assert blocks.pread(where // 2, 50) == bytes(model[where // 2 : where // 2 + 50])
                assert bytes(model[where:]).startswith(blocks.block(where))
        twin = blocks.copy()
        blocks.resize(size)
        assert b"".join(twin.read()) == twin.join() == bytes(model)
        assert blocks.join() == bytes(model[:size]).ljust(size, b"\0")


def test_very_many_small_files_are_little_to_look_through() -> None:
    tree = RAMResource()

    async def write(name: str) -> None:
        await tree.write(parse(f"/{name}"), b"some text")

    async def act() -> int:
        await write("first")
        gc.collect()
        before = len(gc.get_objects())
        for number in range(100):
            await write(str(number))
        gc.collect()
        return len(gc.get_objects()) - before

    assert asyncio.run(act()) < 100 * 3, "a node and its content"


def test_reading_goes_on_with_the_content_it_began_with() -> None:
    async def act() -> None:
        tree = RAMResource()
        await tree.write(parse("/f"), b"a" * 3_000_000)
        got = []
        async for block in tree.read(parse("/f")):
            got.append(block)
            await tree.write(parse("/f"), b"b")
        assert set(b"".join(got)) == {ord("a")}
        assert await ops.read_bytes(tree, parse("/f")) == b"b"

    asyncio.run(act())


def test_times_of_access_have_room_only_where_they_were_set() -> None:
    async def act() -> None:
        tree = RAMResource()
        await tree.mkdir(parse("/d"))
        for name in ("/a", "/d/f", "/plain"):
            await tree.write(parse(name), b"1")
        await tree.link(parse("/a"), parse("/b"))
        await tree.write(parse("/l"), b"a", How.LINK)
        handle = tree.open(parse("/d/f"), write=True)
        kept = tree.fork()
        for name in ("/b", "/d", "/d/f", "/l", "/"):
            await tree.setattr(parse(name), Attrs(atime_ns=5, follow=False))
        handle.pwrite(0, b"2")
        later = tree.fork()
        await later.write(parse("/d/f"), b"3")
        await later.write(parse("/a"), b"3")
        await later.setattr(parse("/l"), Attrs(mtime_ns=7, follow=False))
        for one in (tree, later):
            assert [one.stat_now(parse(name)).atime_ns for name in ("/a", "/b", "/d", "/d/f", "/l", "/")] == [5] * 6
            assert one.stat_now(parse("/plain")).atime_ns is None
        assert tree.read_now(parse("/d/f")) == b"2" and later.stat_now(parse("/l")).mtime_ns == 7
        assert {stat.atime_ns for row in kept.scan_now(ROOT) for _, stat in row} == {None}
        assert tree.digest(parse("/a")) == kept.digest(parse("/a")), "a time is not content"

    asyncio.run(act())


def test_a_named_pipe_keeps_its_time_of_access() -> None:
    async def act() -> None:
        tree = RAMResource()
        await tree.mkfifo(parse("/p"))
        assert tree.stat_now(parse("/p")).atime_ns is None
        await tree.setattr(parse("/p"), Attrs(atime_ns=5))
        assert tree.fork().stat_now(parse("/p")).atime_ns == 5

    asyncio.run(act())
