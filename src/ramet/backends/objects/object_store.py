"""`ObjectResource`: a bucket of any object store as a tree. Keys are paths, prefixes are directories.

Rules that this file keeps:
- A directory exists while something lies below its prefix, or its marker does. `mkdir` writes the marker, removing the
  last file of a directory leaves one, and listings hide it.
- The etag is the version. Every range of one read is asked for with the etag of the first, so a read is never torn.
- One `stat` costs at most a HEAD and one page of a listing; a listing is never walked to learn about one path. That
  page is the beginning of the listing, if that is what is asked for next.
- Bytes move in bounded pieces: a read keeps a few ranges in flight, an upload a few parts.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from ramet.backends.objects.config import StoreConfig
from ramet.backends.objects.errors import brief, translated
from ramet.backends.objects.listing import MARKER, Entries, escaped, files_of, is_plain, level_of, stat_of, unescaped
from ramet.core.errors import Unavailable, fail, unavailable
from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, Description, How, Whole
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing

T = TypeVar("T")
FIRST: Final = 256 * 1024
"""Bytes that a read asks for first: a small file needs no second request, a reader that stops early wastes little."""
LARGEST: Final = 8 << 20
"""Bytes of one range, and of one part of an upload."""
SWIFT: Final = 128 << 20
"""Bytes of one range where they come so quickly that the requests for them would be most of the work."""
QUICK: Final = 200 << 20
"""Bytes per second of one connection from which on long ranges pay off; slower ones are read over many connections."""
CHUNK: Final = 1 << 20
"""Bytes that are waited for before they are passed on, in pieces that readers take as they are."""
PIECE: Final = 256 * 1024
AT_ONCE: Final = 6
"""Ranges of one read in flight; of the long ones there are two."""
PAGE: Final = 1000
"""Objects that a listing brings at a time."""
BEGUN: Final = 8
"""Listings whose first page is kept until the next call."""
MOMENT: Final = 2.0
PARTING: Final = 0.05
"""Seconds that the end of a process waits for the threads of obstore."""
KNOWN: Final = 10_000
"""Paths whose kind is cached briefly."""
ATTEMPTS: Final = 3


class _Begun(NamedTuple):
    """A listing of which a `stat` has asked for the first page."""

    epoch: int
    until: float
    page: list[Any]
    rest: Any


class ObjectResource(Whole):
    """What all object stores share. Made by `S3Resource`, `GCSResource`, `AzureResource`; `store` is obstore's."""

    caps = (
        Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.COPY | Cap.DIRS | Cap.VERSIONS | Cap.PRECONDITIONS
    )  # fmt: skip

    def __init__(self, store: Any, config: StoreConfig) -> None:
        _part_gently()
        self._store = store
        self._description = config.describe()
        self._prefix = config.prefix.strip("/") + "/" if config.prefix.strip("/") else ""
        self._ttl = config.ttl
        self._kinds: OrderedDict[Path, tuple[Kind, float]] = OrderedDict()
        self._left: dict[Path, int] = {}
        """Entries that a directory surely still has: it needs no marker before they are gone."""
        self._removed: set[Path] = set()
        """Directories that were removed here; some servers list their prefix for a while yet."""
        self._begun: OrderedDict[Path, _Begun] = OrderedDict()
        self._epoch = 0
        """Moves with every change through this resource: what was seen before it says nothing after it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._description.config.get('bucket')!r})"

    def describe(self) -> Description:
        return self._description

    # ------------------------------------------------------------------------------------------- names, kinds

    def _key(self, path: Path) -> str:
        return self._prefix + (path[1:] if is_plain(path) else escaped(path[1:]))

    def _note(self, path: Path, kind: Kind) -> None:
        self._kinds[path] = (kind, time.monotonic() + MOMENT)
        if len(self._kinds) > KNOWN:
            self._kinds.popitem(last=False)

    def _known_kind(self, path: Path) -> Kind | None:
        if len(path) == 1:
            return Kind.DIR
        found = self._kinds.get(path)
        return found[0] if found is not None and time.monotonic() < found[1] else None

    def _forget(self, path: Path) -> None:
        self._kinds.pop(path, None)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._epoch += 1
        try:
            yield
        finally:
            self._epoch += 1

    def _directory(self) -> Stat:
        return Stat(Kind.DIR, ttl=self._ttl)

    # ----------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        import obstore

        if len(path) == 1:
            return self._directory()  # it exists because it is mounted; listing it reports errors
        key = self._key(path)
        if self._known_kind(path) is not Kind.DIR:
            try:
                found = stat_of(await self._ask(path, lambda: obstore.head_async(self._store, key)), self._ttl)
                self._note(path, Kind.FILE)
                return found
            except FileNotFoundError:
                pass
        if not await self._begin(path, key + "/"):
            self._forget(path)
            raise await self._missing(path)
        self._note(path, Kind.DIR)
        return self._directory()

    async def _missing(self, path: Path) -> OSError:
        """ENOENT, or ENOTDIR when a file is on the way."""
        import obstore

        parent = path.parent
        while len(parent) > 1 and self._known_kind(parent) is not Kind.DIR:
            try:
                await self._ask(parent, lambda at=parent: obstore.head_async(self._store, self._key(at)))  # type: ignore[misc]
                return fail(errno.ENOTDIR, path)
            except FileNotFoundError:
                parent = parent.parent
        return fail(errno.ENOENT, path)

    async def _page(self, path: Path, prefix: str) -> tuple[list[Any], Any]:
        """The first objects below a prefix, at most one page; and what the others come from."""
        import obstore

        async def first() -> tuple[list[Any], Any]:
            pages = obstore.list(self._store, prefix or None, chunk_size=PAGE)
            return await _next(pages), pages

        return await self._ask(path, first)

    async def _begin(self, path: Path, prefix: str) -> bool:
        """Whether something lies below a prefix. Who looks is likely to list it next, and this is where that begins."""
        epoch = self._epoch
        page, rest = await self._page(path, prefix)
        if page and self._ttl > 0:
            self._begun[path] = _Begun(epoch, time.monotonic() + min(self._ttl, MOMENT), page, rest)
            if len(self._begun) > BEGUN:
                self._begun.popitem(last=False)
        return bool(page)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for entry in await self.entries(path):
            yield entry

    async def entries(self, path: Path) -> Entries:
        import obstore

        prefix = self._key(path) + "/" if len(path) > 1 else self._prefix
        begun = self._begun.pop(path, None)
        if begun is not None and begun.epoch == self._epoch and time.monotonic() < begun.until:
            listed = await self._gone_on(begun, len(prefix))
            if listed is not None:
                self._note(path, Kind.DIR)
                return listed
        found = await self._ask(path, lambda: obstore.list_with_delimiter_async(self._store, prefix or None))
        objects, prefixes = found["objects"], found["common_prefixes"]
        if not objects and not prefixes and len(path) > 1 and (await self.stat(path)).kind is Kind.FILE:
            raise fail(errno.ENOTDIR, path)
        self._note(path, Kind.DIR)
        folders = dict.fromkeys(folder.rstrip("/").rsplit("/", 1)[-1] for folder in prefixes)
        listed = []
        for name in folders:
            child = path / unescaped(name)
            if child not in self._removed or (await self._page(child, f"{prefix}{name}/"))[0]:
                listed.append((child.name, self._directory()))
        # A key that ends in a slash (other tools' marker) comes without it: that is the directory itself.
        return listed + files_of(objects, len(prefix), self._ttl, folders)

    async def _gone_on(self, begun: _Begun, start: int) -> Entries | None:
        """The rest of a listing that was begun; None where it is better asked for anew."""
        from obstore.exceptions import BaseError

        page, listed = begun.page, list[tuple[str, Stat]]()
        following: asyncio.Future[Any] | None = None
        try:
            while page:
                if len(page) >= PAGE:  # the next one comes while this one is looked at
                    following = asyncio.ensure_future(_next(begun.rest))
                level = level_of(page, start, self._ttl, whole=following is None)
                if level is None:
                    return None
                listed += level
                page, following = ([] if following is None else await following), None
        except (BaseError, OSError):
            return None
        finally:
            if following is not None:
                following.cancel()
        return list(dict(listed).items())  # a directory comes behind the file that may have its name, and stands for it

    # ----------------------------------------------------------------------------------------------- reading

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        return self._read(path, None, start, stop)

    async def read_bytes(self, path: Path) -> bytes:
        """All of a file, in one request where it is small."""
        import obstore
        from obstore.exceptions import BaseError

        key = self._key(path)
        try:
            data = await obstore.get_range_async(self._store, key, start=0, end=FIRST)
            if len(data) < FIRST:
                return bytes(data)
        except (OSError, ValueError, BaseError):
            pass  # it is empty, or missing, or something failed: that is found out, and tried again, below
        return b"".join([block async for block in self.read(path)])

    def read_version(self, path: Path, version: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        return self._read(path, f'"{version}"', start, stop)

    async def _read(self, path: Path, etag: str | None, start: int, stop: int | None) -> AsyncIterator[bytes]:
        if stop is not None and stop <= start:
            return
        first = await self._first_range(path, start, FIRST if stop is None else min(FIRST, stop - start), etag)
        if first is None:
            return
        block, meta = first
        if block:
            yield block
        end = meta["size"] if stop is None else min(stop, meta["size"])
        etag = meta["e_tag"]
        pending: deque[tuple[int, int, asyncio.Task[Any]]] = deque()
        at, size = start + len(block), FIRST * 2
        try:
            while at < end or pending:
                # The pieces and the number of them in flight grow while the reader goes on.
                while at < end and len(pending) < _in_flight(size):
                    piece = min(size, end - at)
                    pending.append((at, piece, asyncio.ensure_future(self._open_range(path, at, piece, etag))))
                    at += piece
                    size = max(size, min(size * 2, LARGEST))
                begin, piece, opened = pending.popleft()
                started = time.monotonic()
                async with closing(self._piece(path, begin, piece, etag, opened)) as blocks:
                    async for block in blocks:
                        yield block
                if LARGEST <= size < SWIFT and piece >= LARGEST and piece > QUICK * (time.monotonic() - started):
                    size *= 2
        except Unavailable as error:
            error.version = (etag or "").strip('"') or None
            raise
        finally:
            for _, _, task in pending:
                task.cancel()
            await asyncio.gather(*(task for _, _, task in pending), return_exceptions=True)

    async def _first_range(self, path: Path, start: int, size: int, etag: str | None) -> tuple[bytes, Any] | None:
        """The first bytes with what is known about the object; None when it ends before `start`."""
        import obstore

        key = self._key(path)

        options: Any = {"range": (start, start + size)} if etag is None else _pinned(start, size, etag)

        async def get() -> tuple[bytes, Any]:
            result = await obstore.get_async(self._store, key, options=options)
            return bytes(await result.bytes_async()), result.meta

        try:
            return await self._ask(path, get)
        except FileNotFoundError:
            raise await self._not_a_file(path) from None
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise
            # Beyond the end, stores fail with various errors; only the size identifies the case.
            if ((await self.stat(path)).size or 0) <= start:
                return None
            raise

    async def _open_range(self, path: Path, start: int, size: int, etag: str | None) -> Any:
        """One range, whose bytes begin to arrive."""
        import obstore

        key = self._key(path)
        options: Any = {"range": (start, start + size)} if etag is None else _pinned(start, size, etag)
        return await self._ask(path, lambda: obstore.get_async(self._store, key, options=options))

    async def _piece(
        self, path: Path, start: int, size: int, etag: str | None, opened: asyncio.Task[Any]
    ) -> AsyncIterator[bytes]:
        """The bytes of a range as they come; one that breaks is asked for again from there."""
        attempt = 0
        result: Any = opened
        while True:
            try:
                async with closing(_chunks((await result).stream(CHUNK))) as chunks:
                    async for view in chunks:
                        start, size, attempt = start + len(view), size - len(view), 0
                        for at in range(0, len(view), PIECE):
                            yield bytes(view[at : at + PIECE])
                if not size:
                    return
                failure: OSError = unavailable(path, f"{size} bytes are missing")
            except OSError as error:
                failure = error
            except Exception as error:
                failure = self._translated(error, path)
            attempt += 1
            if not isinstance(failure, Unavailable) or attempt >= ATTEMPTS:
                raise failure from None
            await asyncio.sleep(0.02 * 4**attempt)
            result = self._open_range(path, start, size, etag)

    async def _not_a_file(self, path: Path) -> OSError:
        stat = await self.stat(path)  # raises when nothing is there
        return fail(errno.EISDIR if stat.kind is Kind.DIR else errno.ENOENT, path)

    # ----------------------------------------------------------------------------------------------- writing

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if how not in (How.REPLACE, How.CREATE):
            raise fail(errno.ENOTSUP, path)
        await self._make_room(path)
        mode: Any = "create" if how is How.CREATE else "overwrite"
        if if_version is not None:
            mode = await self._condition(path, if_version)
        head, rest = (data, None) if isinstance(data, bytes) else await _gathered(data)
        if rest is None:
            await self._put(path, head, mode)
        else:
            await self._upload(path, _again(head, rest), if_version if isinstance(mode, dict) else mode)
        self._note(path, Kind.FILE)
        return await self.stat(path)

    async def _condition(self, path: Path, version: str) -> dict[str, str]:
        """What the service must find there for a write to happen."""
        return {"e_tag": f'"{version}"'}

    async def _put(self, path: Path, data: bytes, mode: Any) -> None:
        import obstore

        key = self._key(path)
        with self._changing():
            await self._ask(
                path,
                lambda: obstore.put_async(self._store, key, data, mode=mode, use_multipart=False),
                again=mode == "overwrite",
            )

    async def _upload(self, path: Path, blocks: AsyncIterator[bytes], mode: Any) -> None:
        """Many parts, of which none is seen before the last one is there."""
        import obstore

        key = self._key(path)
        # A multipart upload knows no condition: it is checked as late as one can.
        guarded = blocks if mode == "overwrite" else self._guarded(path, blocks, mode)
        with self._changing():
            await self._ask(
                path,
                lambda: obstore.put_async(
                    self._store, key, guarded, use_multipart=True, chunk_size=LARGEST, max_concurrency=AT_ONCE
                ),
                again=False,
            )

    async def _guarded(self, path: Path, blocks: AsyncIterator[bytes], mode: Any) -> AsyncIterator[bytes]:
        async for block in blocks:
            yield block
        self._forget(path)
        try:
            version = (await self.stat(path)).version
        except FileNotFoundError:
            version = None
        if mode == "create" and version is not None:
            raise fail(errno.EEXIST, path)
        if mode != "create" and version != mode:
            raise fail(errno.ESTALE, path)

    async def _make_room(self, path: Path) -> None:
        """Refuse what a file system refuses: a file in the place of a directory, or in one that is not there."""
        if len(path) == 1:
            raise fail(errno.EISDIR, path)
        await self._need_parent(path)
        if self._known_kind(path) is not Kind.FILE and (await self._page(path, self._key(path) + "/"))[0]:
            raise fail(errno.EISDIR, path)

    async def _need_parent(self, path: Path) -> None:
        if self._known_kind(path.parent) is Kind.DIR:
            return
        if (await self.stat(path.parent)).kind is not Kind.DIR:
            raise fail(errno.ENOTDIR, path)

    async def mkdir(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EEXIST, path)
        try:
            await self.stat(path)
        except FileNotFoundError:
            pass
        else:
            raise fail(errno.EEXIST, path)
        await self._need_parent(path)
        await self._put(path / MARKER, b"", "overwrite")
        self._note(path, Kind.DIR)

    async def remove(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EBUSY, path)
        key = self._key(path)
        if (await self.stat(path)).kind is Kind.FILE:
            await self._keep_parent(path)
            await self._delete(path, key)
        else:
            below, _ = await self._page(path, key + "/")
            if any(meta["path"] not in (f"{key}/{MARKER}", key) for meta in below):
                raise fail(errno.ENOTEMPTY, path)
            await self._keep_parent(path)
            await self._delete(path, f"{key}/{MARKER}")
            self._removed.add(path)
        self._forget(path)

    async def _delete(self, path: Path, key: str) -> None:
        import obstore

        with self._changing():
            await self._ask(path, lambda: obstore.delete_async(self._store, key))

    async def _keep_parent(self, path: Path) -> None:
        """Before an entry is removed, write a marker if it is the last one of its directory."""
        parent = path.parent
        if len(parent) == 1:
            return
        left = self._left.get(parent, 0)
        if left <= 1:
            prefix = self._key(parent) + "/"
            here = self._key(path)
            page, _ = await self._page(parent, prefix)
            left = len({meta["path"][len(prefix) :].split("/", 1)[0] for meta in page if meta["path"] != here[:-1]})
            if left <= 1:
                await self._put(parent / MARKER, b"", "overwrite")
        self._left[parent] = left - 1
        if len(self._left) > KNOWN:
            self._left.clear()

    async def rename(self, src: Path, dst: Path) -> None:
        await self.stat(src)
        raise fail(errno.ENOTSUP, src)

    async def copy(self, src: Path, dst: Path) -> None:
        import obstore

        stat = await self.stat(src)
        if stat.kind is not Kind.FILE:
            raise fail(errno.EISDIR, src)
        await self._make_room(dst)
        source, target = self._key(src), self._key(dst)
        with self._changing():
            await self._ask(src, lambda: obstore.copy_async(self._store, source, target))
        self._note(dst, Kind.FILE)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self.stat(path)
        if attrs != Attrs():
            raise fail(errno.ENOTSUP, path)

    async def close(self) -> None:
        """obstore's connections end with it."""

    # ------------------------------------------------------------------------------------------------ errors

    async def _ask(self, path: Path, act: Callable[[], Awaitable[T]], *, again: bool = True) -> T:
        """One request, its errors as ours; what may succeed when asked again is, a few times, when that is safe."""
        attempt = 0
        while True:
            try:
                return await act()
            except OSError as error:
                failure = error
            except ValueError as error:
                raise fail(errno.EINVAL, path, brief(str(error))) from None
            except Exception as error:
                failure = self._translated(error, path)
            attempt += 1
            if not again or not isinstance(failure, Unavailable) or failure.absent or attempt >= ATTEMPTS:
                raise failure from None
            await asyncio.sleep(0.02 * 4**attempt)

    def _translated(self, error: Exception, path: Path) -> OSError:
        return translated(error, path, f"{self._description.type} bucket {self._description.config.get('bucket')!r}")


@cache
def _part_gently() -> None:
    """Once per process: let obstore's threads finish before the interpreter exits.

    A thread that has just delivered a result waits for the interpreter lock; if the interpreter is gone by then, the
    process aborts. Releasing the lock briefly is enough.
    """
    atexit.register(time.sleep, PARTING)


def _in_flight(size: int) -> int:
    return 1 if size < LARGEST else AT_ONCE if size == LARGEST else 2


async def _chunks(stream: Any) -> AsyncIterator[memoryview]:
    """What a stream gives, of which the next is asked for before this one is used: it comes meanwhile."""
    upcoming: asyncio.Future[Any] = stream.__anext__()
    try:
        while True:
            try:
                chunk = await upcoming
            except StopAsyncIteration:
                return
            upcoming = stream.__anext__()
            yield memoryview(chunk)
    finally:
        if not upcoming.cancel() and not upcoming.cancelled():
            upcoming.exception()  # its result is no longer needed


async def _next(pages: Any) -> list[Any]:
    async for page in pages:
        return list(page)
    return []


def _pinned(start: int, size: int, etag: str) -> dict[str, Any]:
    return {"range": (start, start + size), "if_match": etag}


async def _gathered(data: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes] | None]:
    """The content when it is small; else its beginning and the rest."""
    parts: list[bytes] = []
    size = 0
    async for block in data:
        parts.append(block)
        size += len(block)
        if size > LARGEST:
            return b"".join(parts), data
    return b"".join(parts), None


async def _again(head: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for block in rest:
        if block:
            yield block
