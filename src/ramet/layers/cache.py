"""`Cache`: caches listings and contents of a slow resource, never stale within one workspace.

Rules that this file keeps:
- An answer is trusted for its `ttl`; then a content is revalidated by `version` and read again only if it changed.
- Every write, removal or rename through this layer invalidates what it touches before it returns, even if it fails.
- The cache is bounded: bytes by `max_bytes`, entries by `max_entries`; the least recently used entry is evicted first.
- A reader that stops early costs at most `max_drain_bytes` more, read in the background to fill the cache.
- When files of a directory are read in order, the next small ones are fetched ahead (`prefetch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap, Data, How, Resource
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing
from ramet.core.usage import served_from_cache
from ramet.layers.memory_cache import MIB, Entry, MemoryCache
from ramet.layers.passthrough import Passthrough
from ramet.layers.prefetch import FILES, LISTINGS, TOTAL, Prefetch, is_directory, worth_it


@dataclass
class CacheStats:
    hits: int = 0
    revalidated: int = 0
    misses: int = 0
    bytes_from_cache: int = 0
    bytes_from_backend: int = 0


class Listing:
    """The cached entries of a directory. A change invalidates its own entry only."""

    __slots__ = ("_names", "entries", "until", "whole")

    def __init__(self, entries: list[tuple[str, Stat]], until: float) -> None:
        self.entries, self.until = entries, until
        self.whole = True
        self._names: dict[str, Stat] | None = None

    def get(self, name: str) -> Stat | None:
        if self._names is None:
            self._names = dict(self.entries)
        return self._names.get(name)

    def forget(self, name: str) -> None:
        self.get(name)
        assert self._names is not None
        self._names.pop(name, None)
        self.whole = False


class Cache(Passthrough):
    transparent = False  # a handle or a second name of a file would change bytes behind the cache's back

    def __init__(
        self,
        inner: Resource,
        *,
        files: MemoryCache | None = None,
        prefix: Path = ROOT,
        max_drain_bytes: int = 8 * MIB,
        max_entries: int = 100_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(inner)
        self.files = files if files is not None else MemoryCache()
        self._prefix = prefix  # several mounts may share one store of contents
        self.max_drain_bytes = max_drain_bytes
        self.stats = CacheStats()
        self._max_entries = max_entries
        self._clock = clock
        self._index: OrderedDict[Path, tuple[Stat | None, float]] = OrderedDict()
        self._listings: OrderedDict[Path, Listing] = OrderedDict()
        self._drains: set[asyncio.Task[Any]] = set()
        self._shares: set[asyncio.Task[None]] = set()
        self._ahead = Prefetch(worth_it)
        self._ahead_below = Prefetch(is_directory, sure=1, most=LISTINGS)
        self._listing_now: dict[Path, asyncio.Task[None]] = {}
        self._coming: dict[Path, tuple[asyncio.Task[bytes | None], int, int]] = {}
        """Prefetches under way: size, and the epoch in which each started."""
        self._epoch = 0  # moves with every change, so that an answer asked for before it is not remembered after it

    @property
    def caps(self) -> Cap:
        return self.inner.caps & ~Cap.HARDLINKS

    # ---------------------------------------------------------------------------------------------- reading

    async def stat(self, path: Path) -> Stat:
        known = self._cached_stat(path)
        if known is not None:
            if known[0] is None:
                raise fail(2, path)
            return known[0]
        epoch = self._epoch
        try:
            found = await self.inner.stat(path)
        except FileNotFoundError:
            # Absence has no stat that could say how long it lasts: trust it as long as its directory's listing.
            if epoch == self._epoch and (listing := self._listing(path.parent)) is not None:
                self._remember(path, None, listing.until)
            raise
        if epoch == self._epoch:
            self._remember(path, found, self._until(found))
        return found

    def _cached_stat(self, path: Path) -> tuple[Stat | None, float] | None:
        """Return the cached stat of a path, from its own entry or from its directory's listing."""
        known = self._index.get(path)
        listing = self._listings.get(path.parent)
        if listing is not None and len(path) > 1 and (known is None or known[1] < listing.until):
            stat = listing.get(path.name)
            known = known if stat is None else (stat, listing.until)  # of the two the one that was asked for later
        return known if known is not None and self._clock() < known[1] else None

    def _until(self, stat: Stat) -> float:
        return float("inf") if stat.ttl is None else self._clock() + stat.ttl

    def _remember(self, path: Path, stat: Stat | None, until: float) -> None:
        if until > self._clock():
            self._index[path] = (stat, until)
            if len(self._index) > self._max_entries:
                self._index.popitem(last=False)

    def _listing(self, path: Path) -> Listing | None:
        known = self._listings.get(path)
        return known if known is not None and known.whole and self._clock() < known.until else None

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        known = self._listing(path)
        if known is not None:
            self.stats.hits += 1
            served_from_cache(0)
            for entry in tuple(known.entries):
                yield entry
            return
        self.stats.misses += 1
        epoch = self._epoch
        entries: list[tuple[str, Stat]] = []
        async for entry in self.inner.scan(path):
            entries.append(entry)
            yield entry
        await self._listed(path, entries, epoch)

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        self._list_ahead(path)
        if path in self._listing_now:
            await asyncio.wait([self._listing_now[path]])
        known = self._listing(path)
        if known is not None:
            self.stats.hits += 1
            served_from_cache(0)
            return known.entries.copy()
        return (await self._list(path)).copy()

    async def _list(self, path: Path) -> list[tuple[str, Stat]]:
        self.stats.misses += 1
        epoch = self._epoch
        entries = await ops.entries(self.inner, path)
        await self._listed(path, entries, epoch)
        return entries

    async def _listed(self, path: Path, entries: list[tuple[str, Stat]], epoch: int) -> None:
        """Store an answer that was requested in `epoch`, unless something has changed since."""
        if epoch == self._epoch and len(entries) <= self._max_entries:
            ttls = [stat.ttl for _, stat in entries] or [(await self.inner.stat(path)).ttl]
            until = self._clock() + min([ttl for ttl in ttls if ttl is not None], default=float("inf"))
            if until > self._clock():
                self._listings[path] = Listing(entries, until)
                if len(self._listings) * 100 > self._max_entries:
                    self._listings.popitem(last=False)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if start == 0 and stop is None:
            self._read_ahead(path)
        if path in self._coming:
            await asyncio.wait([self._coming[path][0]])
        entry = await self._valid_entry(path)
        if entry is not None:
            piece = entry.data if start == 0 and stop is None else entry.data[start:stop]
            self.stats.bytes_from_cache += len(piece)
            served_from_cache(len(piece))
            if piece:
                yield piece
            return
        self.stats.misses += 1
        if start or stop is not None:
            async with closing(self.inner.read(path, start, stop)) as blocks:
                async for block in blocks:
                    self.stats.bytes_from_backend += len(block)
                    yield block
            return
        async with closing(self._read_whole(path)) as blocks:
            async for block in blocks:
                yield block

    async def read_bytes(self, path: Path) -> bytes:
        self._read_ahead(path)
        if path in self._coming:
            await asyncio.wait([self._coming[path][0]])
        entry = await self._valid_entry(path)
        if entry is None:
            self.stats.misses += 1
            return await self._whole(path)
        self.stats.bytes_from_cache += len(entry.data)
        served_from_cache(len(entry.data))
        return entry.data

    async def _whole(self, path: Path) -> bytes:
        """Fetch a whole content; the version is taken before it, as in `_read_whole`."""
        epoch = self._epoch
        stat = await self.stat(path)
        if self.files.remote and stat.version is not None:
            shared = await self._from_others(path, stat, stat.version, epoch)
            if shared is not None:
                return shared
        data = await ops.read_bytes(self.inner, path)
        self.stats.bytes_from_backend += len(data)
        if self._worth_keeping(stat) and len(data) <= self.files.max_bytes:
            self._keep(path, data, stat, epoch)
        return data

    def _worth_keeping(self, stat: Stat) -> bool:
        keep = (stat.kind is Kind.FILE and stat.ttl != 0) or stat.version is not None
        return keep and (stat.size or 0) <= self.files.max_bytes

    async def _from_others(self, path: Path, stat: Stat, version: str, epoch: int) -> bytes | None:
        """Return a content that another process has put into the shared cache."""
        shared = await self.files.fetch(path.onto(self._prefix), version)
        if shared is not None:
            self.stats.revalidated += 1
            self.stats.bytes_from_cache += len(shared)
            served_from_cache(len(shared))
            self._keep(path, shared, stat, epoch, share=False)
        return shared

    async def _valid_entry(self, path: Path) -> Entry | None:
        entry = self.files.get(path.onto(self._prefix))
        if entry is None:
            return None
        if entry.fresh(self._clock()):
            self.stats.hits += 1
            return entry
        if entry.fingerprint is None:
            self.files.forget(path.onto(self._prefix))
            return None
        self._index.pop(path, None)
        self._doubt(path)
        try:
            stat = await self.stat(path)
        except FileNotFoundError:
            self.files.forget(path.onto(self._prefix))
            raise
        if stat.version != entry.fingerprint:
            self.files.forget(path.onto(self._prefix))
            return None
        self.stats.revalidated += 1
        renewed = Entry(entry.data, entry.fingerprint, stat.ttl, self._clock())
        self.files.put(path.onto(self._prefix), renewed)
        return renewed

    async def _read_whole(self, path: Path) -> AsyncIterator[bytes]:
        # The version is taken before the bytes: if the file changes while it is read, the next check will see that.
        epoch = self._epoch
        stat = await self.stat(path)
        if self.files.remote and stat.version is not None:
            shared = await self._from_others(path, stat, stat.version, epoch)
            if shared is not None:
                if shared:
                    yield shared
                return
        keep = self._worth_keeping(stat)
        source = self.inner.read(path)
        parts: list[bytes] = []
        total, finished = 0, False
        try:
            async for block in source:
                total += len(block)
                self.stats.bytes_from_backend += len(block)
                if keep and total <= self.files.max_bytes:
                    parts.append(block)
                else:
                    keep = False
                    parts.clear()
                yield block
            finished = True
        finally:
            if finished:
                if keep:
                    self._keep(path, b"".join(parts), stat, epoch)
            else:
                self._stopped_early(path, source, parts if keep else None, stat, epoch)

    def _keep(self, path: Path, data: bytes, stat: Stat, epoch: int, *, share: bool = True) -> None:
        if epoch == self._epoch and (stat.size is None or stat.size == len(data)):
            place = path.onto(self._prefix)
            self.files.put(place, Entry(data, stat.version, stat.ttl, self._clock()))
            if share and self.files.remote and stat.version is not None:
                task = asyncio.ensure_future(self.files.share(place, stat.version, data))
                self._shares.add(task)
                task.add_done_callback(self._shares.discard)

    def _stopped_early(
        self, path: Path, source: AsyncIterator[bytes], parts: list[bytes] | None, stat: Stat, epoch: int
    ) -> None:
        """Finish a short rest of the stream in the background; otherwise close it."""
        left = None if parts is None or stat.size is None else stat.size - sum(map(len, parts))
        if parts is None or left is None or left > self.max_drain_bytes or epoch != self._epoch:
            task = asyncio.ensure_future(_close(source))
        else:
            task = asyncio.ensure_future(self._drain(path, source, parts, stat, epoch))
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)

    async def _drain(
        self, path: Path, source: AsyncIterator[bytes], parts: list[bytes], stat: Stat, epoch: int
    ) -> None:
        try:
            async for block in source:
                self.stats.bytes_from_backend += len(block)
                parts.append(block)
            self._keep(path, b"".join(parts), stat, epoch)
        except OSError:
            return  # the rest was not requested; the next reader gets the error

    # ----------------------------------------------------------------------------------------- reading ahead

    def _read_ahead(self, path: Path) -> None:
        listing = self._listing(path.parent)
        if listing is None:
            return
        guesses = self._ahead.after(path, listing.entries)
        if len(self._coming) <= FILES // 2:  # looking again at each file would cost more than it brings
            self._expect(path.parent, (guess.name for guess in guesses), listing, FILES)

    def _list_ahead(self, path: Path) -> None:
        """Prefetch listings when directories are read one after another."""
        listing = self._listing(path.parent) if len(path) > 1 else None
        if listing is None:
            return
        for following in self._ahead_below.after(path, listing.entries):
            if len(self._listing_now) >= LISTINGS:
                return
            if following not in self._listing_now and self._listing(following) is None:
                task = asyncio.ensure_future(self._list_quietly(following))
                self._listing_now[following] = task
                self._drains.add(task)
                task.add_done_callback(self._drains.discard)

    async def _list_quietly(self, path: Path) -> None:
        try:
            await self._list(path)
        except OSError:
            return  # who asks for it will meet the error
        finally:
            del self._listing_now[path]

    def _expect(self, directory: Path, names: Iterable[str], listing: Listing, most: int) -> None:
        """Prefetch these files, at most `most` at a time."""
        total = sum(size for _, size, _ in self._coming.values())
        for name in names:
            path, stat = directory / name, listing.get(name)
            if stat is None or path in self._coming or self.files.get(path.onto(self._prefix)) is not None:
                continue
            size = stat.size or 0
            if len(self._coming) >= most or total + size > TOTAL:
                return
            total += size
            self._start(path, size)

    def _expect_below_next(self, directory: Path, most: int) -> None:
        """Near the end of a directory, prefetch the first files of the next one if it is listed."""
        above = self._listing(directory.parent) if len(directory) > 1 else None
        if above is None:
            return
        for name in self._ahead_below.behind(directory.parent, [directory.name], above.entries)[:1]:
            listing = self._listing(directory.parent / name)
            if listing is not None:
                files = [one for one, stat in listing.entries if worth_it(stat)]
                self._expect(directory.parent / name, files[:FILES], listing, most)

    def _start(self, path: Path, size: int) -> asyncio.Task[bytes | None]:
        task = asyncio.ensure_future(self._fetch(path))
        self._coming[path] = task, size, self._epoch
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)
        return task

    async def _fetch(self, path: Path) -> bytes | None:
        try:
            return await self._whole(path)
        except OSError:
            return None  # not requested yet; the next reader gets the error
        finally:
            del self._coming[path]

    async def small_files(self, directory: Path, names: Sequence[str]) -> list[bytes | None]:
        """Fetch these files concurrently, then those likely to be read next."""
        listing = self._listing(directory)
        found: list[bytes | None] = [None] * len(names)
        if listing is None:
            return found
        tasks: list[tuple[int, asyncio.Task[bytes | None]]] = []
        total, now = 0, self._clock()
        for number, name in enumerate(names):
            path, stat = directory / name, listing.get(name)
            entry = self.files.get(path.onto(self._prefix))
            if entry is not None and entry.fresh(now):
                found[number] = entry.data
                self.stats.hits += 1
                self.stats.bytes_from_cache += len(entry.data)
                served_from_cache(len(entry.data))
            elif stat is not None and worth_it(stat) and total + (stat.size or 0) <= TOTAL:
                total += stat.size or 0
                self.stats.misses += 1
                coming = self._coming.get(path)
                if coming is None:
                    tasks.append((number, self._start(path, stat.size or 0)))
                elif coming[2] == self._epoch:
                    tasks.append((number, coming[0]))
        following = self._ahead.behind(directory, names, listing.entries)
        most = len(tasks) + FILES  # these come first, since they were asked for first
        self._expect(directory, following, listing, most)
        if len(following) < FILES:
            self._expect_below_next(directory, most)
        if tasks:
            await asyncio.wait([task for _, task in tasks])
        for number, task in tasks:
            if not task.cancelled():
                found[number] = task.result()
        return found

    # ---------------------------------------------------------------------------------------------- writing

    def forget(self, path: Path) -> None:
        self._epoch += 1
        self._index.pop(path, None)
        self._index.pop(path.parent, None)
        self._doubt(path)
        self._doubt(path.parent)
        self._listings.pop(path, None)
        self.files.forget(path.onto(self._prefix))

    def _doubt(self, path: Path) -> None:
        """Invalidate the entry of a path in its directory's listing."""
        listing = self._listings.get(path.parent)
        if listing is not None and len(path) > 1:
            listing.forget(path.name)

    def forget_below(self, top: Path) -> None:
        """Invalidate `top` and everything below it."""
        self.forget(top)
        self.files.forget_below(top.onto(self._prefix))
        for known in [p for p in self._index if p.under(top)]:
            del self._index[known]
        for known in [p for p in self._listings if p.under(top)]:
            del self._listings[known]

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self.forget(path)
        try:
            return await self.inner.write(path, data, how, at=at, if_version=if_version)
        finally:
            self.forget(path)

    async def mkdir(self, path: Path) -> None:
        self.forget(path)
        try:
            await self.inner.mkdir(path)
        finally:
            self.forget(path)

    async def remove(self, path: Path) -> None:
        self.forget_below(path)
        try:
            await self.inner.remove(path)
        finally:
            self.forget_below(path)

    async def rename(self, src: Path, dst: Path) -> None:
        try:
            await self.inner.rename(src, dst)
        finally:
            self.forget_below(src)
            self.forget_below(dst)

    async def copy(self, src: Path, dst: Path) -> None:
        try:
            await self.inner.copy(src, dst)
        finally:
            self.forget(dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        if attrs == Attrs():
            await self.inner.setattr(path, attrs)
            return
        try:
            await self.inner.setattr(path, attrs)
        finally:
            self.forget(path)

    # ------------------------------------------------------------------------------------------- lifecycle

    async def settle(self) -> None:
        """Wait for the background reads that are under way."""
        while self._drains or self._shares:
            await asyncio.gather(*self._drains, *self._shares, return_exceptions=True)

    async def close(self) -> None:
        for task in tuple(self._drains):
            task.cancel()
        await asyncio.gather(*self._drains, *self._shares, return_exceptions=True)
        await self.inner.close()


async def _close(source: AsyncIterator[bytes]) -> None:
    closing = getattr(source, "aclose", None)
    if closing is not None:
        with contextlib.suppress(OSError):  # the reader has what it asked for
            await closing()
