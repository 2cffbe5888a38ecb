"""`FsspecResource`: any fsspec filesystem as a tree that can be mounted.

    Workspace({"/data": FsspecResource("gs://bucket/folder", token="anon")})
    Workspace({"/zip": (FsspecResource("zip://::archive.zip"), MountMode.READ)})

Rules that this file keeps:
- A filesystem is called from threads of this resource: one if its client is synchronous, since such clients share a
  connection, a few if it is asynchronous.
- Content is spooled before the filesystem sees it, so a source that fails leaves the old content.
- Where a filesystem forgets empty directories, a hidden marker keeps them.
- A link is described and never crossed. Only synchronous filesystems have links: of those every parent is looked at.
"""

from __future__ import annotations

import asyncio
import errno
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from ramet.core.errors import fail, missing_extra, unavailable
from ramet.core.paths import Path
from ramet.core.resource import Cap, Data, Description, How
from ramet.core.stat import Attrs, Kind, Stat

T = TypeVar("T")
BLOCK: Final = 1 << 20
SPOOLED: Final = 8 << 20
"""Bytes of a content on its way that stay in memory."""
MARKER: Final = ".ramet-keep"
KNOWN_SECONDS: Final = 2.0
"""How long a directory that was reached without a link is taken for one."""
KNOWN: Final = 10_000
AT_ONCE: Final = 8
MODIFIED: Final = ("mtime", "LastModified", "last_modified", "updated", "modified", "modified_at")
VERSIONS: Final = ("ETag", "etag", "generation", "md5Hash", "sha", "content_md5")
ERRORS: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (FileNotFoundError, errno.ENOENT), (FileExistsError, errno.EEXIST), (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR), (PermissionError, errno.EACCES), (NotImplementedError, errno.ENOTSUP),
    (UnicodeError, errno.EILSEQ),
)  # fmt: skip


class FsspecResource:
    """`place` is a URL with the filesystem's options, or a filesystem and `root` a directory in it.

    `writable=False` for one that cannot be written (an archive, HTTP): then a mount says so at once.
    """

    def __init__(
        self, place: Any, root: str = "", *, writable: bool = True, ttl: float | None = 5.0, **options: Any
    ) -> None:
        if isinstance(place, str):
            try:
                from fsspec.core import url_to_fs
            except ModuleNotFoundError as error:
                raise missing_extra("fsspec", "a mount of an fsspec filesystem") from error
            place, found = url_to_fs(place, **options)
            root = f"{found.rstrip('/')}/{root.strip('/')}" if root else found
        elif options:
            raise TypeError("options belong to a URL; a filesystem has its own already")
        if getattr(place, "asynchronous", False):
            raise ValueError("a filesystem made with asynchronous=True belongs to one loop; make it without")
        self.fs: Any = place
        self._root = str(place._strip_protocol(root)).rstrip("/")
        self._ttl = ttl
        self._links = not getattr(place, "async_impl", False)
        self._pool = ThreadPoolExecutor(1 if self._links else AT_ONCE, thread_name_prefix="ramet-fsspec")
        self._plain: dict[Path, float] = {}
        self.caps = Cap.RANGES | (Cap.WRITE | Cap.COPY | Cap.DIRS if writable else Cap.READ)
        if writable and self._links:
            self.caps |= Cap.CREATE  # one thread does one thing at a time: among all who use this resource it is atomic

    def __repr__(self) -> str:
        return f"FsspecResource({self._protocol!r}, {self._root!r})"

    @property
    def _protocol(self) -> str:
        named = self.fs.protocol
        return named if isinstance(named, str) else str(named[0])

    def describe(self) -> Description:
        """Options of a filesystem may hold anything, so none is saved."""
        config: dict[str, object] = {"protocol": self._protocol, "root": self._root}
        return Description("fsspec", config, ("options",), needs_override=True)

    # ------------------------------------------------------------------------------------------ asking, names

    async def _ask(self, path: Path, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call)
        except Exception as problem:  # whatever a client raises is translated here, and nowhere else
            raise translated(path, problem) from None

    def _name(self, path: Path) -> str:
        if len(path) == 1:
            return self._root or str(self.fs.root_marker)
        return str(self.fs._strip_protocol(self._root + path))  # with or without a slash in front: each has its way

    def _look(self, path: Path) -> Stat:
        """In a thread: what is there now, past any listing that the filesystem remembers."""
        name = self._name(path)
        self.fs.invalidate_cache(self.fs._parent(name))
        self.fs.invalidate_cache(name)
        return self._as_stat(self.fs.info(name))

    def _found(self, path: Path) -> Stat | None:
        try:
            return self._look(path)
        except (FileNotFoundError, NotADirectoryError):
            return Stat(Kind.DIR, ttl=self._ttl) if len(path) == 1 else None

    def _there(self, path: Path) -> Stat:
        """In a thread: what is there, or the right error; no link was crossed."""
        self._need_directory(path, path.parent)
        found = self._found(path)
        if found is None:
            raise fail(errno.ENOENT, path)
        return found

    def _need_directory(self, path: Path, parent: Path) -> None:
        """In a thread: refuse where a parent of `path` is missing, a file or a link."""
        if len(parent) == 1 or self._plain.get(parent, 0.0) > time.monotonic():
            return
        if self._links:
            self._need_directory(path, parent.parent)
        found = self._found(parent)
        if found is None:
            if not self._links:
                self._need_directory(path, parent.parent)  # a file further up is ENOTDIR
            raise fail(errno.ENOENT, path)
        if found.kind is not Kind.DIR:
            raise fail(errno.ELOOP if found.kind is Kind.LINK else errno.ENOTDIR, path)
        if len(self._plain) > KNOWN:
            self._plain.clear()
        self._plain[parent] = time.monotonic() + KNOWN_SECONDS

    def _as_stat(self, info: Mapping[str, Any]) -> Stat:
        if info.get("islink") or info.get("type") == "link":
            target = info.get("destination")
            shown = target.decode("utf-8", "surrogateescape") if isinstance(target, bytes) else target
            return Stat(Kind.LINK, target=None if shown is None else str(shown), ttl=self._ttl)
        if info["type"] == "directory":
            return Stat(Kind.DIR, mtime_ns=_modified(info), ttl=self._ttl)
        kind = Kind.FILE if info["type"] == "file" else Kind.DEVICE
        version = next((str(info[key]).strip('"') for key in VERSIONS if info.get(key)), None)
        return Stat(kind, info.get("size"), _modified(info), version, self._ttl)

    # ----------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        return await self._ask(path, lambda: self._there(path))

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for name, stat in await self._ask(path, lambda: self._entries(path)):
            if name != MARKER:
                yield name, stat

    def _entries(self, path: Path) -> list[tuple[str, Stat]]:
        here = self._there(path)
        if here.kind is not Kind.DIR:
            raise fail(errno.ELOOP if here.kind is Kind.LINK else errno.ENOTDIR, path)
        top = self._name(path)
        try:
            listed = self.fs.ls(top, detail=True)
        except FileNotFoundError:
            return []  # the root of a bucket or a filesystem that holds nothing yet
        found: dict[str, Stat] = {}
        for info in listed:
            full = str(info["name"]).rstrip("/")
            name = full.rsplit("/", 1)[-1]
            if name and full.strip("/") != top.strip("/"):  # some list the directory itself
                found[name] = self._as_stat(info)
        return list(found.items())

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        file = await self._ask(path, lambda: self._open(path))
        try:
            while stop is None or start < stop:
                size = BLOCK if stop is None else min(BLOCK, stop - start)
                block = await self._ask(path, lambda at=start, size=size: _piece(file, at, size))  # type: ignore[misc]
                if not block:
                    return
                start += len(block)
                yield block
        finally:
            await self._ask(path, file.close)

    def _open(self, path: Path) -> Any:
        kind = self._there(path).kind
        if kind is not Kind.FILE:
            raise fail({Kind.DIR: errno.EISDIR, Kind.LINK: errno.ELOOP}.get(kind, errno.EINVAL), path)
        return self.fs.open(self._name(path), "rb")

    # ----------------------------------------------------------------------------------------------- writing

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if how not in (How.REPLACE, How.CREATE) or if_version is not None:
            raise fail(errno.ENOTSUP, path)
        new = how is How.CREATE
        await self._ask(path, lambda: self._make_room(path, new))
        with _spool() as spool:
            if isinstance(data, bytes):
                spool.write(data)
            else:
                async for block in data:
                    spool.write(block)
            spool.seek(0)
            return await self._ask(path, lambda: self._put(path, spool, new))

    def _make_room(self, path: Path, new: bool = False) -> None:
        """In a thread: refuse what a file system refuses."""
        if len(path) == 1:
            raise fail(errno.EEXIST if new else errno.EISDIR, path)
        self._need_directory(path, path.parent)
        found = self._found(path)
        if found is not None and new:
            raise fail(errno.EEXIST, path)
        if found is not None and found.kind is not Kind.FILE:
            raise fail(errno.EISDIR if found.kind is Kind.DIR else errno.ELOOP, path)

    def _put(self, path: Path, source: Any, new: bool) -> Stat:
        if new:
            self._make_room(path, new)  # again, and now in one step with the writing
        with self.fs.open(self._name(path), "wb") as target:
            while block := source.read(BLOCK):
                target.write(block)
        return self._look(path)

    async def mkdir(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EEXIST, path)

        def make() -> None:
            self._need_directory(path, path.parent)
            if self._found(path) is not None:
                raise fail(errno.EEXIST, path)
            name = self._name(path)
            self.fs.makedirs(name, exist_ok=True)
            if self._found(path) is None:
                self.fs.pipe_file(f"{name}/{MARKER}", b"")

        await self._ask(path, make)

    async def remove(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EBUSY, path)

        def remove() -> None:
            kind, name = self._there(path).kind, self._name(path)
            if kind is Kind.DIR:
                self._remove_directory(path, name)
            else:
                self.fs.rm_file(name)
            parent = path.parent
            if len(parent) > 1 and self._found(parent) is None:
                self.fs.pipe_file(f"{self._name(parent)}/{MARKER}", b"")

        await self._ask(path, remove)

    def _remove_directory(self, path: Path, name: str) -> None:
        self._plain.clear()
        entries = [entry for entry, _ in self._entries(path)]
        if any(entry != MARKER for entry in entries):
            raise fail(errno.ENOTEMPTY, path)
        if entries:
            self.fs.rm_file(f"{name}/{MARKER}")
        if self._found(path) is not None:
            self.fs.rmdir(name)

    async def rename(self, src: Path, dst: Path) -> None:
        await self.stat(src)
        raise fail(errno.ENOTSUP, src)

    async def copy(self, src: Path, dst: Path) -> None:
        def copy() -> None:
            kind = self._there(src).kind
            if kind is not Kind.FILE:
                raise fail(errno.EISDIR if kind is Kind.DIR else errno.ELOOP, src)
            self._make_room(dst)
            self.fs.cp_file(self._name(src), self._name(dst))

        await self._ask(src, copy)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        await self.stat(path)
        if attrs != Attrs():
            raise fail(errno.ENOTSUP, path)

    async def close(self) -> None:
        self._pool.shutdown(wait=False)


def translated(path: Path, problem: Exception) -> OSError:
    """An error of a client in our language. Its text is not shown: some clients put a signed URL into it."""
    if isinstance(problem, OSError) and problem.errno is not None:
        return problem if problem.filename == path else fail(problem.errno, path)
    for kind, number in ERRORS:
        if isinstance(problem, kind):
            return fail(number, path)
    return unavailable(path, f"the filesystem failed ({type(problem).__name__})")


def _piece(file: Any, at: int, size: int) -> bytes:
    """Some bytes of an open file, whose position may have moved: in memory all who open a file share one."""
    if file.tell() != at:
        file.seek(at)
    return bytes(file.read(size))


def _spool() -> AbstractContextManager[Any]:
    return tempfile.SpooledTemporaryFile(SPOOLED)


def _modified(info: Mapping[str, Any]) -> int | None:
    """When it was changed, in whatever way this filesystem says it."""
    for key in MODIFIED:
        value = info.get(key)
        if isinstance(value, int | float):
            return round(value * 1e6) * 1000
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1e6) * 1000
    return None
