"""A cache directory that processes share: fewer reads, nothing stale, bounded, damage is absence."""

from __future__ import annotations

import asyncio
from pathlib import Path as LocalPath

from tests.layers.test_cache import Remote

from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.paths import parse
from ramet.core.resource import Cap, Description
from ramet.layers.cache import Cache
from ramet.layers.disk_cache import DiskCache
from ramet.layers.stack import Policy, build

P = parse


class Bucket(Remote):
    def __init__(self, inner: RAMResource, name: str = "one") -> None:
        super().__init__(inner)
        self.name = name

    @property
    def caps(self) -> Cap:
        return self.inner.caps & ~Cap.LOCAL

    def describe(self) -> Description:
        return Description("bucket", {"name": self.name})


def mounted(
    bucket: Bucket, directory: LocalPath, prefix: str = "/s3", disk: int = 1 << 30, file: int = 1 << 20
) -> Cache:
    store = DiskCache(directory=directory, max_disk_bytes=disk, max_file_bytes=file)
    stack = build(bucket, Policy(cache=store, prefix=P(prefix)))
    assert isinstance(stack, Cache)
    return stack


def files(directory: LocalPath) -> list[LocalPath]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_a_second_process_reads_from_the_directory_after_one_look(tmp_path: LocalPath) -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"x" * 5000)
        first, second = Bucket(ram), Bucket(ram)
        assert len(await ops.read_bytes(mounted(first, tmp_path), P("/f"))) == 5000
        again = mounted(second, tmp_path, "/elsewhere")
        assert await ops.read_bytes(again, P("/f")) == b"x" * 5000
        assert await ops.read_bytes(again, P("/f")) == b"x" * 5000
        assert (second.reads, second.stats) == (0, 1)

    asyncio.run(check())


def test_a_changed_object_or_another_bucket_is_not_served(tmp_path: LocalPath) -> None:
    async def check() -> None:
        ram, other = RAMResource(), RAMResource()
        await ram.write(P("/f"), b"old")
        await other.write(P("/f"), b"other")
        assert await ops.read_bytes(mounted(Bucket(ram), tmp_path), P("/f")) == b"old"
        await ram.write(P("/f"), b"new")
        assert await ops.read_bytes(mounted(Bucket(ram), tmp_path), P("/f")) == b"new"
        assert await ops.read_bytes(mounted(Bucket(other, "two"), tmp_path), P("/f")) == b"other"

    asyncio.run(check())


def test_a_damaged_file_counts_as_absent(tmp_path: LocalPath) -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"content")
        await ops.read_bytes(mounted(Bucket(ram), tmp_path), P("/f"))
        (file,) = files(tmp_path)
        file.write_bytes(file.read_bytes()[:-1])
        bucket = Bucket(ram)
        assert await ops.read_bytes(mounted(bucket, tmp_path), P("/f")) == b"content"
        assert bucket.reads == 1

    asyncio.run(check())


def test_the_directory_is_bounded(tmp_path: LocalPath) -> None:
    async def check() -> None:
        ram = RAMResource()
        cache = mounted(Bucket(ram), tmp_path, disk=100_000, file=50_000)
        for number in range(200):
            await ram.write(P(f"/f{number}"), b"x" * 1000)
            await ops.read_bytes(cache, P(f"/f{number}"))
        await ram.write(P("/large"), b"x" * 60_000)
        await ops.read_bytes(cache, P("/large"))
        sizes = [path.stat().st_size for path in files(tmp_path)]
        assert sum(sizes) < 170_000 and max(sizes) < 50_000

    asyncio.run(check())


def test_a_directory_that_cannot_be_written_costs_no_read(tmp_path: LocalPath) -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"content")
        cache = mounted(Bucket(ram), tmp_path / "cache")
        (tmp_path / "cache").rmdir()
        (tmp_path / "cache").write_text("a file is in the way")
        assert await ops.read_bytes(cache, P("/f")) == b"content" == await ops.read_bytes(cache, P("/f"))

    asyncio.run(check())
