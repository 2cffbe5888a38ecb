"""What each layer adds, beyond forwarding."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator

import pytest

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.errors import fail, unavailable
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import Cap, Data, HardLinks, How, Openable, extension
from ramet.core.stat import Attrs, Stat
from ramet.layers.cache import Cache
from ramet.layers.emulate import Emulate
from ramet.layers.hide import Hide
from ramet.layers.limit import Limit
from ramet.layers.memory_cache import MemoryCache
from ramet.layers.overlay import Overlay
from ramet.layers.passthrough import Passthrough
from ramet.layers.readonly import ReadOnly
from ramet.layers.retry import Patience, Retry
from ramet.layers.stack import Policy, build
from ramet.layers.trace import Operation, Trace

P = parse


class Flaky(Passthrough):
    """Fails the first `failures` calls of everything, and every read once in the middle."""

    def __init__(self, inner: RAMResource, failures: int) -> None:
        super().__init__(inner)
        self.failures = failures
        self.broke: set[Path] = set()

    def _fail(self, path: Path) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise unavailable(path, "come back later")

    async def stat(self, path: Path) -> Stat:
        self._fail(path)
        return await self.inner.stat(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        self._fail(path)
        async for entry in self.inner.scan(path):
            yield entry
            if path not in self.broke:
                self.broke.add(path)
                raise unavailable(path, "broke in the middle")

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        self._fail(path)
        data = b"".join([b async for b in self.inner.read(path, start, stop)])
        yield data[: len(data) // 2]
        if path not in self.broke:
            self.broke.add(path)
            raise unavailable(path, "broke in the middle", data.hex())
        yield data[len(data) // 2 :]

    async def read_version(
        self, path: Path, version: str, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        data = await ops.read_bytes(self.inner, path)
        if data.hex() != version:
            raise fail(errno.ESTALE, path)
        yield data[start:]

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self._fail(path)
        return await self.inner.write(path, data, how, at=at, if_version=if_version)


class Naps:
    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def test_retry_tries_again_and_resumes_reads_where_they_broke() -> None:
    async def check() -> None:
        ram, naps = RAMResource(), Naps()
        await ram.write(P("/f"), b"0123456789")
        await ram.write(P("/g"), b"")
        fs = Retry(Flaky(ram, 2), sleep=naps, jitter=lambda: 1.0)
        assert (await fs.stat(P("/f"))).size == 10
        assert await ops.read_bytes(fs, P("/f")) == b"0123456789"
        assert sorted([name async for name, _ in fs.scan(ROOT)]) == ["f", "g"]
        assert naps.taken == [0.1, 0.2, 0.1, 0.1]

    asyncio.run(check())


def test_a_read_that_broke_never_goes_on_in_another_content() -> None:
    class Forgetful(Flaky):
        read_version = None  # type: ignore[assignment]

    async def check() -> None:
        ram, naps = RAMResource(), Naps()
        await ram.write(P("/f"), b"0123456789")

        async def overwrite(seconds: float) -> None:
            await ram.write(P("/f"), b"abcdefghij")

        got: list[bytes] = []
        with pytest.raises(OSError, match="Stale"):
            got += [block async for block in Retry(Flaky(ram, 0), sleep=overwrite).read(P("/f"))]
        with pytest.raises(OSError, match="broke in the middle"):
            got += [block async for block in Retry(Forgetful(ram, 0), sleep=naps).read(P("/f"))]
        assert not naps.taken and not got

    asyncio.run(check())


def test_retry_gives_up_and_never_repeats_what_may_have_happened() -> None:
    async def check() -> None:
        naps = Naps()
        fs = Retry(Flaky(RAMResource(), 99), Patience(attempts=3), sleep=naps)
        with pytest.raises(OSError, match="come back later"):
            await fs.stat(P("/f"))
        assert len(naps.taken) == 2
        with pytest.raises(OSError, match="come back later"):
            await fs.write(P("/f"), b"x", How.APPEND)
        assert len(naps.taken) == 2
        slow = Retry(Flaky(RAMResource(), 99), Patience(attempts=99, first=10, longest=10, deadline=25), sleep=naps)
        naps.taken.clear()
        with pytest.raises(OSError, match="come back later"):
            await slow.stat(P("/f"))
        assert sum(naps.taken) <= 25

    asyncio.run(check())


def test_an_address_that_never_answered_is_given_up_soon() -> None:
    class Wrong(Passthrough):
        absent, asked = True, 0

        async def stat(self, path: Path) -> Stat:
            if path == ROOT:
                return await self.inner.stat(path)
            self.asked += 1
            if self.absent:
                raise unavailable(path, "nobody is there", absent=True)
            return await self.inner.stat(path)

    async def check() -> None:
        ram, naps = RAMResource(), Naps()
        await ram.write(P("/f"), b"x")
        wrong = Wrong(ram)
        fs = Retry(wrong, sleep=naps, jitter=lambda: 1.0, clock=lambda: sum(naps.taken))
        await fs.stat(ROOT)  # says nothing about the server
        with pytest.raises(OSError, match="nobody is there"):
            await fs.stat(P("/f"))
        assert naps.taken == [0.1, 0.2] and wrong.asked == 3
        wrong.absent = False
        await fs.stat(P("/f"))
        wrong.absent = True  # it was there: it may come back
        naps.taken.clear()
        with pytest.raises(OSError, match="nobody is there"):
            await fs.stat(P("/f"))
        assert naps.taken == [0.1, 0.2, 0.4, 0.8]

    asyncio.run(check())


def test_limit_bounds_what_runs_at_once() -> None:
    class Busy(Passthrough):
        now = most = 0

        async def stat(self, path: Path) -> Stat:
            Busy.now += 1
            Busy.most = max(Busy.most, Busy.now)
            await asyncio.sleep(0)
            Busy.now -= 1
            return await self.inner.stat(path)

    async def check() -> None:
        fs = Limit(Busy(RAMResource()), concurrency=3)
        await asyncio.gather(*(fs.stat(ROOT) for _ in range(20)))
        assert Busy.most == 3

    asyncio.run(check())


def test_limit_paces() -> None:
    async def check() -> None:
        naps = Naps()
        fs = Limit(RAMResource(), rate=10, sleep=naps)
        for _ in range(3):
            await fs.stat(ROOT)
        assert len(naps.taken) == 2 and all(0 < nap <= 0.2 for nap in naps.taken)

    asyncio.run(check())


def test_hide_hides_trees_and_refuses_to_write_there() -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.mkdir(P("/keys"))
        await ram.write(P("/keys/id"), b"secret")
        await ram.write(P("/open"), b"")
        fs = Hide(ram, lambda path: path.name == "keys")
        assert [name async for name, _ in fs.scan(ROOT)] == ["open"]
        for path in ("/keys", "/keys/id"):
            with pytest.raises(FileNotFoundError):
                await fs.stat(P(path))
        with pytest.raises(FileNotFoundError):
            await ops.read_bytes(fs, P("/keys/id"))
        with pytest.raises(PermissionError):
            await fs.write(P("/keys/new"), b"")
        with pytest.raises(PermissionError):
            await fs.rename(P("/open"), P("/keys/open"))
        assert extension(fs, Openable) is None  # type: ignore[type-abstract]

    asyncio.run(check())


def test_trace_records_each_operation_once() -> None:
    async def check() -> None:
        seen: list[Operation] = []
        fs = Trace(RAMResource(), seen.append, clock=lambda: 0.0)
        await fs.write(P("/f"), ops.one_block(b"abc"))
        await ops.read_bytes(fs, P("/f"))
        with pytest.raises(FileNotFoundError):
            await fs.remove(P("/no"))
        handle = fs.open(P("/f"), write=True)
        handle.pread(0, 2)
        handle.pwrite(3, b"d")
        handle.close()
        await fs.link(P("/f"), P("/g"))
        assert seen == [
            Operation("write", P("/f"), 0, 3),
            Operation("read", P("/f"), 3, 0),
            Operation("remove", P("/no"), 0, 0, 0.0, errno.ENOENT),
            Operation("write", P("/f"), 2, 1),
            Operation("link", P("/g")),
        ]

    asyncio.run(check())


def test_powers_do_not_slip_past_read_only() -> None:
    async def check() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"x")
        fs = ReadOnly(ram)
        links = extension(fs, HardLinks)  # type: ignore[type-abstract]
        assert links is not None
        with pytest.raises(OSError, match="Read-only"):
            await links.link(P("/f"), P("/g"))
        openable = extension(fs, Openable)  # type: ignore[type-abstract]
        assert openable is not None
        assert openable.open(P("/f"), write=False).pread(0, 9) == b"x"
        with pytest.raises(OSError, match="Read-only"):
            openable.open(P("/f"), write=True)

    asyncio.run(check())


def test_emulate_refuses_what_it_cannot_do_honestly() -> None:
    class Bare(Passthrough):
        transparent = False

        @property
        def caps(self) -> Cap:
            return Cap.WRITE

    async def check() -> None:
        fs = Emulate(Bare(RAMResource()))
        await fs.write(P("/f"), b"x")
        with pytest.raises(OSError) as caught:
            await fs.setattr(P("/f"), Attrs(mode=0o600))
        assert caught.value.errno == errno.ENOTSUP
        with pytest.raises(PermissionError):
            await fs.write(P("/l"), b"f", How.LINK)

    asyncio.run(check())


def test_an_overlay_reports_conflicts_as_data_and_applies_nothing() -> None:
    async def check() -> None:
        lower = RAMResource()
        for name in "abc":
            await lower.write(ROOT / name, b"old")
        branch = Overlay(lower)
        await branch.write(P("/a"), b"mine")
        await branch.remove(P("/b"))
        await branch.write(P("/new"), b"mine")
        await branch.write(P("/c"), b"mine")
        await lower.write(P("/a"), b"theirs")
        await lower.write(P("/new"), b"theirs")
        report = await branch.commit()
        assert [c.path for c in report.conflicts] == ["/a", "/new"] and not report.applied
        assert lower.read_now(P("/c")) == b"old" and lower.read_now(P("/b")) == b"old"
        assert sorted((c.path, c.what) for c in await branch.diff()) == [
            ("/a", "modified"), ("/b", "removed"), ("/c", "modified"), ("/new", "modified")]  # fmt: skip
        branch.abort()
        assert await branch.diff() == [] and await ops.read_bytes(branch, P("/a")) == b"theirs"

    asyncio.run(check())


def test_an_overlay_replaces_a_directory_by_a_file() -> None:
    async def check() -> None:
        lower = RAMResource()
        for name in ("/d", "/d/e"):
            await lower.mkdir(P(name))
        await lower.write(P("/d/e/f"), b"old")
        branch = Overlay(lower)
        for name in ("/d/e/f", "/d/e", "/d"):
            await branch.remove(P(name))
        await branch.write(P("/d"), b"file")
        report = await branch.commit()
        assert report.ok and lower.read_now(P("/d")) == b"file"

    asyncio.run(check())


def test_two_overlays_over_one_tree_are_independent() -> None:
    async def check() -> None:
        lower = RAMResource()
        await lower.write(P("/f"), b"base")
        one, two = Overlay(lower), Overlay(lower)
        await one.write(P("/f"), b"one")
        await two.write(P("/g"), b"two")
        twin = one.fork()
        await twin.write(P("/f"), b"twin")
        assert await ops.read_bytes(one, P("/f")) == b"one"
        assert (await one.commit()).ok and (await two.commit()).ok
        assert lower.read_now(P("/f")) == b"one" and lower.read_now(P("/g")) == b"two"

    asyncio.run(check())


def test_the_stack_of_a_local_mount_is_the_mount(tmp_path: object) -> None:
    ram = RAMResource()
    assert build(ram, Policy()) is ram
    assert isinstance(build(ram, Policy(writable=False)), ReadOnly)
    disk = DiskResource(str(tmp_path))
    stack = build(disk, Policy())
    assert isinstance(stack, Emulate) and stack.inner is disk


def test_the_stack_of_a_remote_mount_has_everything() -> None:
    class Remote(Passthrough):
        transparent = False

        @property
        def caps(self) -> Cap:
            return Cap.WRITE

    stack = build(Remote(RAMResource()), Policy(cache=MemoryCache(), record=lambda _: None, writable=False))
    kinds = []
    layer: object = stack
    while isinstance(layer, Passthrough):
        kinds.append(type(layer).__name__)
        layer = layer.inner
    assert kinds == ["ReadOnly", "Trace", "Cache", "Emulate", "Limit", "Retry", "Remote"]
    assert isinstance(stack, ReadOnly) and isinstance(stack.inner.inner, Cache)  # type: ignore[attr-defined]


def test_times_of_access_rise_with_their_file_and_go_below_with_it(tmp_path: object) -> None:
    async def act() -> None:
        disk = DiskResource(str(tmp_path))
        await disk.write(P("/f"), b"x")
        await disk.setattr(P("/f"), Attrs(mtime_ns=10**18, atime_ns=2 * 10**18))
        overlay = Overlay(disk)
        await overlay.setattr(P("/f"), Attrs(mode=0o600))
        assert (await overlay.stat(P("/f"))).atime_ns == 2 * 10**18
        await overlay.setattr(P("/f"), Attrs(atime_ns=3 * 10**18))
        assert (await overlay.fork().stat(P("/f"))).atime_ns == 3 * 10**18
        assert (await disk.stat(P("/f"))).atime_ns == 2 * 10**18
        assert (await overlay.commit()).ok
        found = await disk.stat(P("/f"))
        assert (found.atime_ns, found.mtime_ns, found.mode) == (3 * 10**18, 10**18, 0o600)

    asyncio.run(act())


def test_a_time_of_access_is_left_out_with_another_and_refused_alone() -> None:
    class Forgetful(Passthrough):
        @property
        def caps(self) -> Cap:
            return self.inner.caps & ~Cap.ATIMES

    async def act() -> None:
        ram = RAMResource()
        await ram.write(P("/f"), b"x")
        layer = Emulate(Forgetful(ram))
        await layer.setattr(P("/f"), Attrs(mtime_ns=5, atime_ns=6))
        assert (await ram.stat(P("/f"))).mtime_ns == 5 and (await ram.stat(P("/f"))).atime_ns is None
        with pytest.raises(OSError) as caught:
            await layer.setattr(P("/f"), Attrs(atime_ns=6))
        assert caught.value.errno == errno.ENOTSUP

    asyncio.run(act())
