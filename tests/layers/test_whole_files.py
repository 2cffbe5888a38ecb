"""Whole directories and whole files pass a mount's layers in one piece, and say the same as when they are streamed."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.errors import Unavailable, unavailable
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import Cap, How
from ramet.core.stat import Attrs, Stat
from ramet.layers.cache import Cache
from ramet.layers.memory_cache import MemoryCache
from ramet.layers.passthrough import Passthrough
from ramet.layers.retry import Patience, Retry
from ramet.layers.stack import Policy, build
from ramet.layers.trace import Operation
from ramet.vfs.vfs import VFS

P = parse


class Far(Passthrough):
    """A tree elsewhere: nothing of it is at hand, what it says holds for a while, and some names cannot be reached."""

    transparent = False

    @property
    def caps(self) -> Cap:
        return self.inner.caps & ~Cap.LOCAL

    def _reach(self, path: Path) -> None:
        if "broken" in path:
            raise unavailable(path, "no answer")

    async def stat(self, path: Path) -> Stat:
        return (await self.inner.stat(path))._replace(ttl=60.0)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        self._reach(path)
        async for name, stat in self.inner.scan(path):
            yield name, stat._replace(ttl=60.0)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        self._reach(path)
        async for block in self.inner.read(path, start, stop):
            yield block


async def made() -> tuple[VFS, list[Operation], Any]:
    ram = RAMResource()
    for number in range(6):
        await ram.mkdir(P(f"/d{number}"))
        for name in ("a", "b"):
            await ram.write(P(f"/d{number}/{name}"), f"{number}{name}".encode())
    await ram.mkdir(P("/d3broken"))
    await ram.write(P("/d1/broken"), b"x")
    await ram.write(P("/link"), b"d1", How.LINK)
    await ram.write(P("/d1/secret"), b"hidden")
    await ram.setattr(P("/d1/secret"), Attrs(mode=0o000))
    records: list[Operation] = []
    hasty = Patience(attempts=1)
    mounted: Any = build(Far(ram), Policy(cache=MemoryCache(), record=records.append, patience=hasty, writable=False))
    return VFS({ROOT: RAMResource(), P("/m"): mounted}), records, mounted


def run(act: Any) -> None:
    async def whole() -> None:
        vfs, records, mounted = await made()
        await act(vfs, records)
        await mounted.close()

    asyncio.run(whole())


def test_a_directory_says_the_same_in_either_way() -> None:
    async def act(vfs: VFS, records: list[Operation]) -> None:
        for path in (P("/m"), P("/m/d1"), P("/m/link")):
            streamed = [entry async for entry in vfs.scan(path)]
            assert await vfs.entries(path) == streamed == await vfs.kinds(path)
        for path, kind in (
            (P("/m/no"), FileNotFoundError),
            (P("/m/d1/a"), NotADirectoryError),
            (P("/m/d3broken"), Unavailable),
        ):
            with pytest.raises(kind) as refusal:
                await vfs.entries(path)
            assert refusal.value.filename == path
        assert {record.verb for record in records if record.path == "/d3broken"} == {"scan"}

    run(act)


def test_a_file_says_the_same_in_either_way() -> None:
    async def act(vfs: VFS, records: list[Operation]) -> None:
        assert await vfs.read_bytes(P("/m/d1/a")) == await vfs.read_bytes(P("/m/link/a"), 0o400) == b"1a"
        for path, kind in (
            (P("/m/no"), FileNotFoundError),
            (P("/m/d1"), IsADirectoryError),
            (P("/m/d1/broken"), Unavailable),
        ):
            with pytest.raises(kind):
                await vfs.read_bytes(path)
        reads = [(record.path, record.bytes_read, record.error) for record in records if record.verb == "read"]
        assert ("/d1/a", 2, 0) in reads and ("/no", 0, errno.ENOENT) in reads

    run(act)


def test_small_files_come_together_where_they_may_be_read() -> None:
    async def act(vfs: VFS, records: list[Operation]) -> None:
        names = ["a", "b", "broken", "secret", "missing"]
        assert await vfs.small_files(P("/m/d1"), names) == [None] * 5, "nobody has listed them"
        await vfs.entries(P("/m/d1"))
        assert await vfs.small_files(P("/m/d1"), names) == [b"1a", b"1b", None, b"hidden", None]
        assert await vfs.small_files(P("/m/d1"), names, 0o400) == [b"1a", b"1b", None, None, None]
        assert await vfs.small_files(P("/m/d1"), []) == []
        assert [record.path for record in records if record.verb == "read"][:3] == ["/d1/a", "/d1/b", "/d1/secret"]

    run(act)


def test_a_failed_listing_ahead_harms_no_reader() -> None:
    async def act(vfs: VFS, records: list[Operation]) -> None:
        await vfs.entries(P("/m"))
        for number in range(6):
            assert len(await vfs.entries(P(f"/m/d{number}"))) >= 2
            await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await vfs.entries(P("/m/d3broken"))

    run(act)


def test_what_a_layer_does_not_change_passes() -> None:
    async def act() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"data")
        fs = Passthrough(Passthrough(ram))
        assert await ops.read_bytes(fs, P("/f")) == b"data"
        assert [name for name, _ in await ops.kinds(fs, ROOT)] == ["f"]
        assert await fs.small_files(ROOT, ["f"]) == [None]
        assert await Retry(Cache(ram)).small_files(ROOT, ["f"]) == [None], "it streams, so it has nothing at hand"

    asyncio.run(act())
