"""Large contents go into the store as they arrive: the same chunks, the same revision, and nothing half."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ramet import Store
from ramet.backends.local.ram import KEEPER_BYTES, RAMResource
from ramet.core.paths import parse
from ramet.store.checkout.lazy_tree import LazyBlocks
from ramet.workspace.stored.store import StoredWorkspace

KEY = "11" * 32


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


async def pieces(data: bytes, breaks: bool = False) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 100_000):
        await asyncio.sleep(0)
        yield data[at : at + 100_000]
    if breaks:
        raise ConnectionAbortedError("gone")


def kept(ws: StoredWorkspace, path: str) -> bool:
    (mount,) = ws.mounts()
    assert isinstance(mount.resource, RAMResource)
    blocks = mount.resource.node(parse(path)).content  # type: ignore[union-attr]
    return isinstance(blocks, LazyBlocks) and not blocks.is_loaded


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_what_is_absorbed_is_what_a_commit_would_have_written(tmp_path: Path, key: str | None) -> None:
    data = content(3 * KEEPER_BYTES + 12345)

    async def act() -> None:
        store = Store(str(tmp_path), key=key)
        store.create("w")
        async with store.open("w") as ws:
            await ws.fs.write(parse("/a"), pieces(data))
            assert not kept(ws, "/a")
            first = await ws.commit("through memory")
            ws.stream_uploads()
            await ws.fs.write(parse("/b"), pieces(data))
            await ws.fs.write(parse("/small"), pieces(b"small"))
            assert kept(ws, "/b") and not kept(ws, "/small")
            second = await ws.commit("through the store")
            assert kept(ws, "/b"), "committing does not read it"
            nodes = [store.repository.node(second, path) for path in ("/a", "/b")]
            assert nodes[0].payload == nodes[1].payload and nodes[0].size == nodes[1].size == len(data)
            assert (await ws.execute("cmp /a /b && cp /b /c && mv /b /d")).exit_code == 0
            await ws.commit("copied")
            assert kept(ws, "/c") and kept(ws, "/d"), "neither does copying"
            await ws.execute("echo more >> /c")
            third = await ws.commit("changed")
        assert first.seq == 1 and b"".join(store["w"].show("/c")) == data + b"more\n"
        assert b"".join(store["w"].show("/d", str(third.seq))) == data
        assert store.verify().ok

    asyncio.run(act())


def test_what_breaks_off_leaves_the_old_content(tmp_path: Path) -> None:
    data = content(2 * KEEPER_BYTES)

    async def act() -> None:
        store = Store(str(tmp_path))
        store.create("w")
        async with store.open("w") as ws:
            ws.stream_uploads()
            await ws.execute("echo old > /f")
            with pytest.raises(ConnectionAbortedError):
                await ws.fs.write(parse("/f"), pieces(data, breaks=True))
            slow = asyncio.ensure_future(ws.fs.write(parse("/f"), endless()))
            await asyncio.sleep(0.05)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            assert (await ws.execute("cat /f")).text == "old\n"
        assert store.verify().ok

    asyncio.run(act())


async def endless() -> AsyncIterator[bytes]:
    while True:
        await asyncio.sleep(0)
        yield os.urandom(1 << 18)


def test_content_that_is_looked_at_first_is_not_absorbed(tmp_path: Path) -> None:
    async def act() -> None:
        store = Store(str(tmp_path))
        store.create("w")
        async with store.open("w", scan="refuse") as ws:
            ws.stream_uploads()
            await ws.fs.write(parse("/f"), pieces(content(KEEPER_BYTES + 1)))
            assert not kept(ws, "/f")

    asyncio.run(act())
