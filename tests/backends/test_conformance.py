"""Every local resource, and every stack of layers around one, keeps the promises of a Resource."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path as HostPath

import pytest

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap, Data, How, Resource
from ramet.core.stat import Attrs, Stat
from ramet.layers.cache import Cache
from ramet.layers.emulate import Emulate
from ramet.layers.limit import Limit
from ramet.layers.overlay import Overlay
from ramet.layers.passthrough import Passthrough
from ramet.layers.retry import Retry
from ramet.layers.trace import Trace
from ramet.testing import CHECKS, Check, run_check
from ramet.vfs.vfs import VFS


class Slow(Passthrough):
    """Yields to the event loop at every call and gives one byte at a time where that is bearable."""

    transparent = False

    @property
    def caps(self) -> Cap:
        return self.inner.caps & ~Cap.HARDLINKS

    async def stat(self, path: Path) -> Stat:
        await asyncio.sleep(0)
        return await self.inner.stat(path)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        async for block in self.inner.read(path, start, stop):
            await asyncio.sleep(0)
            if len(block) <= 1000:
                for i in range(len(block)):
                    yield block[i : i + 1]
            else:
                yield block

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        await asyncio.sleep(0)
        return await self.inner.write(path, data, how, at=at, if_version=if_version)


class Plain(Passthrough):
    """A RAM tree that admits only to the minimum, so that everything else has to be emulated."""

    transparent = False

    @property
    def caps(self) -> Cap:
        return Cap.WRITE | Cap.DIRS | Cap.VERSIONS

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        assert start == 0 and stop is None
        return self.inner.read(path)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        assert how is How.REPLACE and if_version is None
        return await self.inner.write(path, data)

    async def rename(self, src: Path, dst: Path) -> None:
        raise AssertionError("must be emulated")

    async def copy(self, src: Path, dst: Path) -> None:
        raise AssertionError("must be emulated")

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        raise AssertionError("must be emulated or refused")


async def _no_sleep(_: float) -> None:
    return None


MAKERS: dict[str, Callable[[HostPath], Resource]] = {
    "ram": lambda tmp: RAMResource(),
    "disk": lambda tmp: DiskResource(tmp / "root", create=True),
    "disk-fsync": lambda tmp: DiskResource(tmp / "root", fsync="full", create=True),
    "slow": lambda tmp: Slow(RAMResource()),
    "overlay-ram": lambda tmp: Overlay(RAMResource()),
    "overlay-disk": lambda tmp: Overlay(DiskResource(tmp / "root", create=True)),
    "cache-ram": lambda tmp: Cache(RAMResource()),
    "cache-slow": lambda tmp: Cache(Slow(RAMResource())),
    "emulate": lambda tmp: Emulate(Plain(RAMResource())),
    "trace": lambda tmp: Trace(RAMResource(), lambda _: None),
    "limit-retry": lambda tmp: Limit(Retry(RAMResource(), sleep=_no_sleep)),
    "vfs": lambda tmp: VFS({ROOT: RAMResource()}),
    "vfs-disk": lambda tmp: VFS({ROOT: DiskResource(tmp / "root", create=True)}),
    "vfs-in-vfs": lambda tmp: VFS({ROOT: VFS({ROOT: RAMResource()})}),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("maker", MAKERS)
def test_resource_keeps_its_promises(maker: str, check: Check, tmp_path: HostPath) -> None:
    run_check(check, lambda: MAKERS[maker](tmp_path), pytest.skip)
