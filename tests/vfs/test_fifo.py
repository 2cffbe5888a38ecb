"""Named pipes: both sides wait for each other, everything written arrives once, and nobody who gives up is counted."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Coroutine
from pathlib import Path as HostPath
from typing import Any

import pytest

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.fs import Open
from ramet.core.paths import ROOT, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind
from ramet.layers.overlay import Overlay
from ramet.layers.readonly import ReadOnly
from ramet.vfs.vfs import VFS

P = parse
BOTH = Open.READ | Open.WRITE


def run(act: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(act, 120))


async def made() -> VFS:
    fs = VFS({ROOT: RAMResource()})
    await fs.mkfifo(P("/p"))
    return fs


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("first", [Open.READ, Open.WRITE])
def test_each_side_waits_for_the_other(first: Open) -> None:
    async def act() -> None:
        fs = await made()
        early = asyncio.create_task(fs.open(P("/p"), first))
        await settle()
        assert not early.done()
        late = await fs.open(P("/p"), BOTH & ~first)
        ends = {first: await early, BOTH & ~first: late}
        ends[Open.WRITE].write(b"one\ntwo\n")
        await ends[Open.WRITE].close()
        assert await ends[Open.READ].readline() == b"one\n"
        assert await ends[Open.READ].read_all() == b"two\n"
        await ends[Open.READ].close()

    run(act())


def test_a_writer_that_has_gone_before_the_reader_runs_has_been_there() -> None:
    async def act() -> None:
        fs = await made()
        reading = asyncio.create_task(ops.read_bytes(fs, P("/p")))
        await settle()
        await fs.write(P("/p"), b"gone", How.APPEND)
        assert await reading == b"gone"

    run(act())


def test_a_caller_that_gives_up_is_not_counted() -> None:
    async def act() -> None:
        fs = await made()
        waiting = asyncio.create_task(fs.open(P("/p")))
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        writing = asyncio.create_task(fs.open(P("/p"), Open.WRITE))
        await settle()
        assert not writing.done()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        assert not fs._fifos

    run(act())


def test_readers_that_come_and_go_share_what_is_left() -> None:
    async def act() -> None:
        fs = await made()
        held = await fs.open(P("/p"), BOTH)
        held.write(b"a\nb\n")
        for line in (b"a\n", b"b\n"):
            reader = await fs.open(P("/p"))
            assert await reader.readline() == line
            await reader.close()
        await held.close()
        again = await fs.open(P("/p"), BOTH)
        again.write(b"new\n")
        assert await again.readline() == b"new\n"

    run(act())


def test_a_writer_without_a_reader_breaks_and_a_full_one_waits() -> None:
    async def act() -> None:
        fs = await made()
        opening = asyncio.create_task(fs.open(P("/p")))
        writer = await fs.open(P("/p"), Open.WRITE)
        reader = await opening
        writer.write(bytes(1 << 20))
        assert writer.full
        draining = asyncio.create_task(writer.drain())
        await settle()
        assert not draining.done()
        await reader.close()
        with pytest.raises(BrokenPipeError):
            await draining
        with pytest.raises(BrokenPipeError):
            writer.write(b"x")

    run(act())


def test_it_is_a_separate_kind_of_file() -> None:
    async def act() -> None:
        fs = await made()
        assert (await fs.stat(P("/p"))).kind is Kind.FIFO
        await fs.setattr(P("/p"), Attrs(mode=0o600))
        await fs.rename(P("/p"), P("/q"))
        assert (await fs.stat(P("/q"))).mode == 0o600
        for act, number in (
            (fs.mkfifo(P("/q")), errno.EEXIST),
            (fs.setattr(P("/q"), Attrs(size=1)), errno.EINVAL),
            (fs.write(P("/q"), b"", How.CREATE), errno.EEXIST),
        ):
            with pytest.raises(OSError) as caught:
                await act
            assert caught.value.errno == number
        await fs.remove(P("/q"))
        assert await ops.entries(fs, ROOT) == []

    run(act())


def test_a_fork_has_its_own() -> None:
    async def act() -> None:
        ram = RAMResource()
        await ram.mkfifo(P("/p"))
        here, there = VFS({ROOT: ram}), VFS({ROOT: ram.fork()})
        waiting = asyncio.create_task(here.open(P("/p")))
        held = await there.open(P("/p"), BOTH)
        await settle()
        assert not waiting.done()
        await held.close()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert ram.fork().fifos() == [P("/p")]

    run(act())


def test_other_mounts_have_none(tmp_path: HostPath) -> None:
    async def act() -> None:
        os.mkfifo(tmp_path / "pipe")
        disk = DiskResource(tmp_path)
        fs = VFS(
            {ROOT: RAMResource(), P("/d"): disk, P("/o"): Overlay(RAMResource()), P("/r"): ReadOnly(RAMResource())}
        )
        for act, number in (
            (fs.mkfifo(P("/d/p")), errno.EPERM),
            (fs.mkfifo(P("/o/p")), errno.EPERM),
            (fs.mkfifo(P("/r/p")), errno.EROFS),
            (fs.open(P("/d/pipe")), errno.ENXIO),
            (ops.read_bytes(fs, P("/d/pipe")), errno.ENXIO),
        ):
            with pytest.raises(OSError) as caught:
                await act
            assert caught.value.errno == number

    run(act())
