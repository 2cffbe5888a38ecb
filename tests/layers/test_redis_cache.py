"""A cache in a real Redis that machines share: fewer reads, nothing stale, and no Redis costs no read."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path as LocalPath

import pytest

pytest.importorskip("redis")
if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

import redis
from tests.layers.test_disk_cache import Bucket
from tests.support.servers import redis_server

from ramet import Workspace
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.paths import parse
from ramet.core.resource import Cap
from ramet.layers.cache import Cache
from ramet.layers.redis_cache import RedisCache
from ramet.layers.stack import Policy, build
from ramet.workspace.workspace import Settings

P = parse


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def url(server: str) -> str:
    with redis.Redis.from_url(server) as client:
        client.flushall()
    return server


def mounted(bucket: Bucket, url: str, prefix: str = "/s3", file: int = 1 << 20) -> Cache:
    stack = build(bucket, Policy(cache=RedisCache(url=url, max_file_bytes=file), prefix=P(prefix)))
    assert isinstance(stack, Cache)
    return stack


async def read(cache: Cache, path: str = "/f") -> bytes:
    """A content, and everything that follows from it."""
    try:
        return await ops.read_bytes(cache, P(path))
    finally:
        await cache.settle()
        await cache.files.close()


def test_a_second_machine_reads_from_redis_after_one_look(url: str) -> None:
    async def check() -> None:
        ram = RAMResource()
        for content in (b"x" * 5000, b""):
            await ram.write(P("/f"), content)
            first, second = Bucket(ram), Bucket(ram)
            assert await read(mounted(first, url)) == content
            again = mounted(second, url, "/elsewhere")
            assert await read(again) == content
            assert await read(again) == content
            assert (second.reads, second.stats) == (0, 1)

    asyncio.run(check())


def test_a_changed_object_or_another_bucket_is_not_served(url: str) -> None:
    async def check() -> None:
        ram, other = RAMResource(), RAMResource()
        await ram.write(P("/f"), b"old")
        await other.write(P("/f"), b"other")
        assert await read(mounted(Bucket(ram), url)) == b"old"
        await ram.write(P("/f"), b"new")
        assert await read(mounted(Bucket(ram), url)) == b"new"
        assert await read(mounted(Bucket(other, "two"), url)) == b"other"

    asyncio.run(check())


def test_what_is_damaged_or_too_large_is_read_from_the_backend(url: str) -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"content")
        await ram.write(P("/large"), b"l" * 100)
        assert await read(mounted(Bucket(ram), url, file=50)) == b"content"
        assert await read(mounted(Bucket(ram), url, file=50), "/large") == b"l" * 100
        with redis.Redis.from_url(url) as client:
            (key,) = client.keys()
            assert 0 < client.ttl(key) <= 7 * 24 * 3600
            for broken in (b"", b"abc", client.get(key)[:-1]):
                client.set(key, broken)
                bucket = Bucket(ram)
                assert await read(mounted(bucket, url)) == b"content" and bucket.reads == 1

    asyncio.run(check())


def test_a_redis_that_is_gone_costs_no_read_and_is_left_alone(tmp_path: LocalPath) -> None:
    async def check() -> None:
        ram = RAMResource()
        for name in "abc":
            await ram.write(P(f"/{name}"), name.encode())
        bucket = Bucket(ram)
        cache = mounted(bucket, f"unix://{tmp_path}/nothing.sock")
        assert isinstance(cache.files, RedisCache)
        for name in "abc":
            assert await read(cache, f"/{name}") == name.encode()
        assert cache.files._silent_until > 0 and not cache.files._clients and bucket.reads == 3

    asyncio.run(check())


def test_a_write_is_seen_at_once(url: str) -> None:
    async def check() -> None:
        cache = mounted(Bucket(RAMResource()), url)
        for content in (b"one", b"two", b"three"):
            await cache.write(P("/f"), content)
            assert await read(cache) == content

    asyncio.run(check())


def test_workspaces_share_it_and_do_not_show_where_it_is(url: str) -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"shared\n")
        settings = Settings(cache_url=url)
        assert url not in repr(settings)
        buckets = [Bucket(ram), Bucket(ram)]
        for bucket in buckets:
            async with Workspace({"/s3": bucket}, settings=settings) as ws:
                assert Cap.LOCAL not in bucket.caps and (await ws.execute("cat /s3/f")).text == "shared\n"
        assert [bucket.reads for bucket in buckets] == [1, 0]
        with pytest.raises(Exception, match="two shared caches"):
            Workspace(settings=Settings(cache_url=url, cache_dir="x"))

    asyncio.run(check())
