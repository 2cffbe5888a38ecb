"""The cache is never stale within one workspace, saves requests, and stays within its bounds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.paths import ROOT, Path, parse
from ramet.core.stat import Stat
from ramet.layers.cache import Cache
from ramet.layers.memory_cache import Entry, MemoryCache
from ramet.layers.passthrough import Passthrough

P = parse


class Remote(Passthrough):
    """A tree whose answers may be trusted for `ttl` seconds, and that counts what it is asked."""

    transparent = False

    def __init__(self, inner: RAMResource, ttl: float | None = 60.0) -> None:
        super().__init__(inner)
        self.ttl = ttl
        self.reads = 0
        self.stats = 0
        self.scans = 0

    async def stat(self, path: Path) -> Stat:
        self.stats += 1
        return (await self.inner.stat(path))._replace(ttl=self.ttl)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        self.scans += 1
        async for name, stat in self.inner.scan(path):
            yield name, stat._replace(ttl=self.ttl)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        self.reads += 1
        async for block in self.inner.read(path, start, stop):
            for i in range(0, len(block), 1000):
                await asyncio.sleep(0)
                yield block[i : i + 1000]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make(ttl: float | None = 60.0, **options: Any) -> tuple[RAMResource, Remote, Cache, Clock]:
    ram, clock = RAMResource(), Clock()
    remote = Remote(ram, ttl)
    return ram, remote, Cache(remote, clock=clock, **options), clock


def test_the_second_read_makes_no_request() -> None:
    async def check() -> None:
        ram, remote, cache, _ = make()
        await ram.write(P("/f"), b"x" * 5000)
        assert await ops.read_bytes(cache, P("/f")) == await ops.read_bytes(cache, P("/f")) == b"x" * 5000
        assert [b async for b in cache.read(P("/f"), 10, 20)] == [b"x" * 10]
        assert (remote.reads, remote.stats) == (1, 1)
        assert cache.stats.bytes_from_backend == 5000 and cache.stats.bytes_from_cache == 5010

    asyncio.run(check())


def test_an_expired_content_is_revalidated_not_read_again() -> None:
    async def check() -> None:
        ram, remote, cache, clock = make(ttl=10)
        await ram.write(P("/f"), b"one")
        await ops.read_bytes(cache, P("/f"))
        clock.now += 11
        assert await ops.read_bytes(cache, P("/f")) == b"one"
        assert remote.reads == 1 and cache.stats.revalidated == 1
        await ram.write(P("/f"), b"two")
        clock.now += 11
        assert await ops.read_bytes(cache, P("/f")) == b"two"

    asyncio.run(check())


def test_listings_and_absence_are_remembered() -> None:
    async def check() -> None:
        ram, remote, cache, _ = make()
        await ram.write(P("/f"), b"")
        for _ in range(3):
            assert [name async for name, _ in cache.scan(ROOT)] == ["f"]
            for _ in range(2):
                with pytest.raises(FileNotFoundError):
                    await cache.stat(P("/no"))
        assert remote.scans == 1 and remote.stats <= 2
        await cache.write(P("/no"), b"now it is")
        assert (await cache.stat(P("/no"))).size == 9

    asyncio.run(check())


def test_a_reader_that_stops_early_fills_the_cache_only_within_the_budget() -> None:
    async def check(budget: int, expected_reads: int) -> None:
        ram, remote, cache, _ = make(max_drain_bytes=budget)
        await ram.write(P("/f"), b"y" * 50_000)
        source = cache.read(P("/f"))
        async for _ in source:
            break
        await source.aclose()  # type: ignore[attr-defined]
        await cache.settle()
        assert await ops.read_bytes(cache, P("/f")) == b"y" * 50_000
        assert remote.reads == expected_reads

    asyncio.run(check(100_000, 1))
    asyncio.run(check(1_000, 2))


def test_the_least_recently_used_goes_first() -> None:
    store = MemoryCache(max_bytes=10)
    for name in "abc":
        store.put(P("/" + name), Entry(b"1234", None, None, 0))
        store.get(P("/a"))
    assert sorted(store.entries) == ["/a", "/c"] and store.size == 8
    store.put(P("/big"), Entry(b"x" * 11, None, None, 0))
    assert sorted(store.entries) == ["/a", "/c"]


def test_two_mounts_in_one_store_do_not_meet() -> None:
    async def check() -> None:
        store = MemoryCache()
        caches = []
        for prefix in ("/one", "/two"):
            ram = RAMResource()
            await ram.write(P("/f"), prefix.encode())
            caches.append(Cache(Remote(ram), files=store, prefix=P(prefix)))
        for cache, wanted in zip(caches * 2, (b"/one", b"/two") * 2, strict=True):
            assert await ops.read_bytes(cache, P("/f")) == wanted

    asyncio.run(check())


class CacheMachine(RuleBasedStateMachine):
    """Reads through the cache equal the backend: at once for its own writes, after a ttl for those of others."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.ram, self.remote, self.cache, self.clock = make(ttl=10)
        self.run(self.ram.mkdir(P("/d")))

    def teardown(self) -> None:
        self.run(self.cache.close())
        self.loop.close()

    def run(self, act: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(act)

    PATHS = st.sampled_from([P("/a"), P("/b"), P("/d/a"), P("/d/b")])

    @rule(path=PATHS, data=st.binary(max_size=3))
    def write(self, path: Path, data: bytes) -> None:
        self.run(self.cache.write(path, data))

    @rule(path=PATHS)
    def remove(self, path: Path) -> None:
        try:
            self.run(self.cache.remove(path))
        except FileNotFoundError:
            return

    @rule(src=PATHS, dst=PATHS)
    def rename(self, src: Path, dst: Path) -> None:
        try:
            self.run(self.cache.rename(src, dst))
        except FileNotFoundError:
            return

    @rule(path=PATHS, data=st.binary(max_size=3))
    def write_out_of_band(self, path: Path, data: bytes) -> None:
        self.run(self.ram.write(path, data))
        self.clock.now += 11

    @rule(path=PATHS)
    def read(self, path: Path) -> None:
        try:
            self.run(ops.read_bytes(self.cache, path))
        except FileNotFoundError:
            return

    @invariant()
    def same_tree(self) -> None:
        async def tree(fs: Any) -> list[tuple[Path, int | None, bytes]]:
            return [
                (path, stat.size, b"" if stat.is_dir else await ops.read_bytes(fs, path))
                async for path, stat in ops.walk(fs, ROOT)
            ]

        assert self.run(tree(self.cache)) == self.run(tree(self.ram))


TestCacheModel = CacheMachine.TestCase
TestCacheModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_a_reader_who_goes_through_a_directory_finds_the_next_files_under_way() -> None:
    class Slow(Passthrough):
        """Answers after a turn of the loop, and counts who waits at once."""

        now = most = reads = 0

        async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
            async for name, stat in self.inner.scan(path):
                yield name, stat._replace(ttl=60.0)

        async def stat(self, path: Path) -> Stat:
            return (await self.inner.stat(path))._replace(ttl=60.0)

        async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
            Slow.now += 1
            Slow.reads += 1
            Slow.most = max(Slow.most, Slow.now)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            async for block in self.inner.read(path, start, stop):
                yield block
            Slow.now -= 1

    async def check(order: Callable[[list[str]], list[str]]) -> tuple[int, int]:
        Slow.now = Slow.most = Slow.reads = 0
        ram = RAMResource()
        for folder in ("/a", "/b"):
            await ram.mkdir(P(folder))
            for number in range(40):
                await ram.write(P(f"{folder}/f{number}"), f"{folder} {number}".encode())
        fs = Cache(Slow(ram))
        for folder in ("/a", "/b"):
            names = order([name async for name, _ in fs.scan(P(folder))])
            for name in names:
                assert await ops.read_bytes(fs, P(folder) / name) == f"{folder} {name[1:]}".encode()
        await fs.close()
        return Slow.most, Slow.reads

    for order in (sorted, list):
        most, reads = asyncio.run(check(order))
        assert most > 8 and reads == 80, "many at once, none twice"
    shuffled = random.Random(7).sample
    most, reads = asyncio.run(check(lambda names: shuffled(names, len(names))))
    assert most <= 2 and reads == 80, "no order, no guess"


class Crowded(Passthrough):
    """Answers when it is told to, and counts who waits at once."""

    transparent = False

    def __init__(self, inner: RAMResource) -> None:
        super().__init__(inner)
        self.gate = asyncio.Event()
        self.waiting: list[Path] = []
        self.scanned: list[Path] = []

    async def stat(self, path: Path) -> Stat:
        return (await self.inner.stat(path))._replace(ttl=60.0)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        self.scanned.append(path)
        async for name, stat in self.inner.scan(path):
            yield name, stat._replace(ttl=60.0)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        self.waiting.append(path)
        await self.gate.wait()
        async for block in self.inner.read(path, start, stop):
            yield block


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_small_files_of_a_directory_come_side_by_side_and_the_next_ones_behind_them() -> None:
    async def check() -> None:
        ram = RAMResource()
        names = [f"f{number:03}" for number in range(100)]
        for name in names:
            await ram.write(P(f"/{name}"), name.encode())
        await ram.write(P("/large"), bytes(3 << 20))
        backend = Crowded(ram)
        fs = Cache(backend)
        assert await fs.small_files(ROOT, names[:4]) == [None] * 4, "nobody has listed it: nothing is known of them"
        await fs.entries(ROOT)
        asked = asyncio.ensure_future(fs.small_files(ROOT, [*names[:64], "large", "missing"]))
        await turns()
        assert [path.name for path in backend.waiting[:64]] == names[:64]
        backend.gate.set()
        assert await asked == [*(name.encode() for name in names[:64]), None, None]

        backend.gate.clear()
        backend.waiting.clear()
        assert await fs.small_files(ROOT, names[:32]) == [name.encode() for name in names[:32]], "from the cache"
        following = asyncio.ensure_future(fs.small_files(ROOT, names[40:70]))
        await turns()
        assert [path.name for path in backend.waiting] == names[64:100], "six that are asked for, the others soon"
        await fs.write(P("/f080"), b"new")
        backend.gate.set()
        assert (await following)[-1] == b"f069"
        assert [data async for data in fs.read(P("/f080"))] == [b"new"]
        assert await ops.read_bytes(fs, P("/f080")) == b"new"
        await fs.close()

    asyncio.run(check())


def test_what_was_asked_for_before_a_change_is_no_answer_after_it() -> None:
    async def check() -> None:
        ram = RAMResource()
        for number in range(8):
            await ram.write(P(f"/f{number}"), b"old")
        backend = Crowded(ram)
        fs = Cache(backend)
        await fs.entries(ROOT)
        first = asyncio.ensure_future(fs.small_files(ROOT, ["f0"]))
        await turns()
        assert len(backend.waiting) > 1, "others are under way"
        await fs.write(P("/f3"), b"new")
        await fs.entries(ROOT)
        asked = asyncio.ensure_future(fs.small_files(ROOT, ["f3"]))
        await turns()
        backend.gate.set()
        assert await asked in ([None], [b"new"])
        await first
        await fs.close()

    asyncio.run(check())


def test_who_looks_into_one_directory_after_the_other_finds_the_next_listed() -> None:
    async def check() -> None:
        ram = RAMResource()
        for number in range(10):
            await ram.mkdir(P(f"/d{number}"))
            await ram.write(P(f"/d{number}/f"), b"")
        backend = Crowded(ram)
        fs = Cache(backend)
        await fs.entries(ROOT)
        for number in range(10):
            assert [name for name, _ in await fs.entries(P(f"/d{number}"))] == ["f"]
            await turns()
            if number == 1:
                assert P("/d2") in backend.scanned and P("/d6") not in backend.scanned
        assert len(backend.scanned) == 11, "each once"
        await fs.close()

    asyncio.run(check())


def test_what_is_read_ahead_is_not_served_after_a_change() -> None:
    async def check() -> None:
        ram = RAMResource()
        for number in range(30):
            await ram.write(P(f"/f{number:02}"), b"old")
        fs = Cache(ram)
        names = sorted([name async for name, _ in fs.scan(P("/"))])
        for place, name in enumerate(names):
            if place == 10:
                await fs.write(P("/f20"), b"new")
            assert await ops.read_bytes(fs, P("/") / name) == (b"new" if name == "f20" else b"old")
        await fs.close()

    asyncio.run(check())
