"""`VFS`: all mounts as one Resource; links resolve across all of them.

Every verb is tried directly first; only a path that meets a link (ELOOP) is walked component by component. So a tree
without links pays nothing for them, and a remote mount is never asked twice.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from ramet.core import ops
from ramet.core.errors import Unsupported, fail
from ramet.core.fs import Lending, Open, Power
from ramet.core.paths import ROOT, Path
from ramet.core.resource import (
    Bulk,
    Cap,
    Data,
    Fifos,
    Gathering,
    HardLinks,
    How,
    KernelFifos,
    Layer,
    Openable,
    Resource,
    Whole,
    extension,
)
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import FileStream, closing
from ramet.layers.cache import Cache
from ramet.layers.readonly import ReadOnly
from ramet.vfs.dev import DevResource
from ramet.vfs.fifo import Fifo, FifoStream
from ramet.vfs.kernel_fifo import open_kernel_fifo
from ramet.vfs.links import LinkTree, with_path
from ramet.vfs.mounts import power_of
from ramet.vfs.open_files import CountedStream, DocumentStream, LocalStream, RemoteStream
from ramet.vfs.watch import TreeWatch


class VFS(LinkTree, Whole, Lending):
    """All mounts as one tree."""

    caps = (
        Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.LINKS | Cap.HARDLINKS
        | Cap.MODES | Cap.MTIMES | Cap.ATIMES | Cap.TRUNCATE | Cap.DIRS
    )  # fmt: skip

    def __init__(self, mounts: Mapping[Path, Resource], unlisted: Mapping[Path, Resource] | None = None) -> None:
        """`unlisted` mounts are reached by their path but do not show in the listing of their parent."""
        super().__init__(mounts, unlisted)
        self.watch: TreeWatch | None = None
        """Is told of every change."""
        self._fifos: dict[tuple[Resource, int], Fifo] = {}
        """Open named pipes, by resource and inode."""

    def lacks(self, path: Path) -> bool:
        if self._dirty or path in self._points:
            return False
        try:
            resource, inner, _ = self.locate(path)
            quick = self._quick[resource]
            if quick is not None:
                quick.stat_now(inner)
        except OSError as error:
            return error.errno == errno.ENOENT
        return False

    # ---------------------------------------------------------------------------------------------- verbs

    async def stat(self, path: Path, follow: bool = False) -> Stat:
        try:
            found = await self._stat(path)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise with_path(error, path) from None
            path = await self._follow(path, last=False)
            found = await self._stat(path)
        if follow and found.kind is Kind.LINK:
            return await self._stat(await self._follow(path, last=True, missing_ok=False))
        return found

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        if self._dirty:
            await self._flush_all()
        for attempt in (path, None):
            try:
                here = attempt if attempt is not None else await self.resolve(path)
                points = self._points.get(here, ())
                try:
                    resource, inner, _ = self.locate(here)
                    async with closing(resource.scan(inner)) as entries:
                        async for entry in entries:
                            if points and entry[0] in points:
                                continue
                            yield entry
                except OSError as error:
                    if not points or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                        raise
                for name in points:
                    if self.is_listed(here / name):
                        yield name, await self._stat(here / name)
                return
            except OSError as error:
                if error.errno != errno.ELOOP or attempt is None:
                    raise with_path(error, path) from None

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        return await self._listed(path, kinds=False)

    async def kinds(self, path: Path) -> list[tuple[str, Stat]]:
        return await self._listed(path, kinds=True)

    async def _listed(self, path: Path, kinds: bool) -> list[tuple[str, Stat]]:
        if not self._dirty and path not in self._points:
            resource, inner, _ = self.locate(path)
            quick = self._quick[resource]
            if quick is not None:
                try:
                    return await _gathered(quick.kinds_now(inner) if kinds else quick.scan_now(inner))
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise with_path(error, path) from None
            elif isinstance(resource, Whole):
                try:
                    return await (resource.kinds(inner) if kinds else resource.entries(inner))
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise with_path(error, path) from None
        return [entry async for entry in self.scan(path)]

    async def read_bytes(self, path: Path, need: int = 0, most: int = sys.maxsize) -> bytes:
        """Return the whole content; EFBIG, before more is held, if it has over `most` bytes."""
        if not self._dirty:
            resource, inner, _ = self.locate(path)
            quick = self._quick[resource]
            if quick is not None:
                try:
                    return quick.read_now(inner, need, most)
                except OSError as error:
                    if error.errno not in (errno.ELOOP, errno.ENXIO):
                        raise await self._as_directory(error, path) from None
        if need:
            stat = await self.stat(path, follow=True)
            if stat.mode is not None and stat.mode & need != need:
                raise fail(errno.EACCES, path)
            if stat.size is not None and stat.size > most:
                raise fail(errno.EFBIG, path)
        resource, inner, _ = self.locate(path)
        if not self._dirty and self._quick[resource] is None and isinstance(resource, Whole):
            try:
                return await resource.read_bytes(inner)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENXIO):
                    raise await self._as_directory(error, path) from None
        parts, room = [], most
        async with closing(self.read(path)) as blocks:
            async for block in blocks:
                room -= len(block)
                if room < 0:
                    raise fail(errno.EFBIG, path)
                parts.append(block)
        return b"".join(parts)

    async def small_files(self, directory: Path, names: Sequence[str], need: int = 0) -> list[bytes | None]:
        if not self._dirty and directory not in self._points:
            resource, inner, _ = self.locate(directory)
            quick = self._quick[resource]
            if isinstance(quick, Gathering):
                try:
                    return quick.small_now(inner, names, need)
                except OSError:
                    pass  # reading each of them says what is wrong, and follows a link that the directory may be
            elif quick is None and isinstance(resource, Whole):
                found = await resource.small_files(inner, names)
                if need and any(data is not None for data in found):
                    modes = {name: stat.mode for name, stat in await resource.entries(inner)}
                    lacking = {name for name in names if (mode := modes.get(name)) is not None and mode & need != need}
                    return [None if name in lacking else data for name, data in zip(names, found, strict=True)]
                return found
        return [None] * len(names)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        if self._dirty:
            await self._flush(path)
        begun = False
        try:
            resource, inner, _ = self.locate(path)
            async with closing(resource.read(inner, start, stop)) as blocks:
                async for block in blocks:
                    begun = True
                    yield block
            return
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO) or begun:
                raise await self._as_directory(error, path) from None
        target = await self.resolve(path)
        if (await self._stat(target)).kind is Kind.FIFO:
            yield (await self._from_fifo(target))[start:stop]
            return
        resource, inner, _ = self.locate(target)
        try:
            async with closing(resource.read(inner, start, stop)) as blocks:
                async for block in blocks:
                    yield block
        except OSError as error:
            raise with_path(error, path) from None

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if self._dirty:
            await self._flush(path)
        self._refuse_point(path, errno.EEXIST if how in (How.CREATE, How.LINK) else errno.EISDIR)
        await self._make_way(path)
        watch = self.watch
        if isinstance(data, bytes):
            resource, inner, _ = self.locate(path)
            mark = None if watch is None else watch.before(path)
            try:
                done = await resource.write(inner, data, how, at=at, if_version=if_version)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENXIO):
                    raise with_path(error, path) from None
            else:
                if watch is not None:
                    watch.wrote(path, mark, len(data), how is How.CREATE)
                return done
        # A stream can be consumed only once, so the way is cleared before it is touched.
        target = await self._canonical(path)
        if how not in (How.CREATE, How.LINK):
            target = await self._last_target(target)
        self._refuse_point(target, errno.EISDIR)
        await self._make_way(target)
        resource, inner, _ = self.locate(target)
        try:
            if how in (How.REPLACE, How.APPEND) and await self._is_fifo(target):
                return await self._into_fifo(target, data)
            mark = None if watch is None else watch.before(target)
            done = await resource.write(inner, data, how, at=at, if_version=if_version)
        except OSError as error:
            raise with_path(error, path) from None
        if watch is not None:
            watch.wrote(target, mark, len(data) if isinstance(data, bytes) else done.size, how is How.CREATE)
        return done

    async def _is_fifo(self, path: Path) -> bool:
        try:
            return (await self._stat(path)).kind is Kind.FIFO
        except OSError:
            return False

    async def _last_target(self, path: Path) -> Path:
        """Return where a write to `path` goes: through links, to a file that need not exist."""
        try:
            stat = await self._stat(path)
        except OSError:
            return path
        return await self._follow(path, last=True) if stat.kind is Kind.LINK else path

    async def mkdir(self, path: Path) -> None:
        self._refuse_point(path, errno.EEXIST)
        await self._make_way(path)
        where = await self._at(path, lambda resource, inner: resource.mkdir(inner))
        if self.watch is not None:
            self.watch.wrote(where, None, None, True)

    async def remove(self, path: Path) -> None:
        self._refuse_point(path, errno.EBUSY)
        if not self._is_plain(path):
            self.generation += 1
        where = await self._at(path, lambda resource, inner: resource.remove(inner))
        if self.watch is not None:
            self.watch.removed(where)

    def _is_plain(self, path: Path) -> bool:
        """Return whether the path is known synchronously to be a file."""
        resource, inner, _ = self.locate(path)
        quick = self._quick[resource]
        try:
            return quick is not None and quick.stat_now(inner).kind is Kind.FILE
        except OSError:
            return False

    async def _at(self, path: Path, act: Callable[[Resource, Path], Awaitable[None]]) -> Path:
        """Act on a name directly, or on the resolved name if a link is in the way; returns where it acted."""
        resource, inner, _ = self.locate(path)
        try:
            await act(resource, inner)
            return path
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise with_path(error, path) from None
        where = await self._follow(path, last=False)
        resource, inner, _ = self.locate(where)
        try:
            await act(resource, inner)
        except OSError as error:
            raise with_path(error, path) from None
        return where

    async def rename(self, src: Path, dst: Path) -> None:
        if self._dirty:
            await self._flush_all()
        self._refuse_point(src, errno.EBUSY)
        self._refuse_point(dst, errno.EBUSY)
        old, new = await self._canonical(src), await self._canonical(dst)
        src_resource, src_inner, _ = self.locate(old)
        dst_resource, dst_inner, _ = self.locate(new)
        if src_resource is not dst_resource:
            raise fail(errno.EXDEV, src)
        await self._make_way(dst)
        self.generation += 1
        mark = None if self.watch is None else self.watch.before(new)
        try:
            await src_resource.rename(src_inner, dst_inner)
        except OSError as error:
            raise with_path(error, src) from None
        if self.watch is not None:
            self.watch.renamed(old, new, mark)

    async def copy(self, src: Path, dst: Path) -> None:
        """Copy one file's content and mode: on the server within a mount, streamed between mounts."""
        if self._dirty:
            await self._flush_all()
        await self._make_way(dst)
        src_resource, src_inner, _ = self.locate(src)
        dst_resource, dst_inner, _ = self.locate(dst)
        watch = self.watch
        mark = None if watch is None else watch.before(dst)
        if src_resource is dst_resource and dst not in self._points:
            try:
                await src_resource.copy(src_inner, dst_inner)
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.ELOOP, errno.ENXIO):
                    raise with_path(error, src) from None
            else:
                if watch is not None:
                    watch.copied(src, dst, mark)
                return
        src = await self.resolve(src)
        dst = await self._last_target(await self._canonical(dst))
        src_resource, src_inner, _ = self.locate(src)
        dst_resource, dst_inner, _ = self.locate(dst)
        mark = None if watch is None else watch.before(dst)
        if src_resource is dst_resource:
            try:
                await src_resource.copy(src_inner, dst_inner)
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.ENXIO):
                    raise with_path(error, src) from None
            else:
                if watch is not None:
                    watch.copied(src, dst, mark)
                return
        stat = await src_resource.stat(src_inner)
        await self.write(dst, self.read(src))
        await ops.keep_attrs(dst_resource, dst_inner, Stat(Kind.FILE, mode=stat.mode))
        if watch is not None:
            watch.copied(src, dst, None)

    def copy_files_now(self, src: Path, dst: Path, names: Sequence[str], need: int = 0) -> int:
        """See `Lending`: for two directories of one mount that supports it."""
        found = self._bulk(src)
        if found is None or self._bulk(dst) is not found or dst in self._ways:
            return 0
        done = found.copy_files_now(self.locate(src)[1], self.locate(dst)[1], names, need)
        if self.watch is not None:
            for name in names[:done]:
                self.watch.copied(src / name, dst / name, None)
        return done

    def remove_files_now(self, directory: Path, names: Sequence[str]) -> int:
        found = self._bulk(directory)
        done = 0 if found is None else found.remove_files_now(self.locate(directory)[1], names)
        if self.watch is not None:
            for name in names[:done]:
                self.watch.removed(directory / name)
        return done

    def _bulk(self, directory: Path) -> Bulk | None:
        if self._dirty or directory in self._points:
            return None
        resource = self.locate(directory)[0]
        return resource if isinstance(resource, Bulk) else None

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        if self._dirty:
            await self._flush(path)
        if attrs.mode is not None:
            self.generation += 1
        if attrs.follow or (await self.stat(path)).kind is not Kind.LINK:
            where = await self.resolve(path)
            resource, inner, _ = self.locate(where)
        else:
            where = await self._canonical(path)
            resource, inner, _ = self.locate(where)
            if Cap.LINKS not in resource.caps or Cap.LOCAL not in resource.caps:
                raise fail(errno.ENOTSUP, path)
        mark = None if self.watch is None else self.watch.before(where)
        try:
            await resource.setattr(inner, attrs)
        except OSError as error:
            raise with_path(error, path) from None
        if self.watch is not None:
            self.watch.wrote(where, mark)

    async def link(self, src: Path, dst: Path) -> None:
        old, new = await self._canonical(src), await self._canonical(dst)
        src_resource, src_inner, _ = self.locate(old)
        dst_resource, dst_inner, _ = self.locate(new)
        if src_resource is not dst_resource:
            raise fail(errno.EXDEV, src)
        power = extension(src_resource, HardLinks)  # type: ignore[type-abstract]
        if power is None:
            raise fail(errno.EPERM, src)
        await self._make_way(dst)
        try:
            await power.link(src_inner, dst_inner)
        except OSError as error:
            raise with_path(error, dst) from None
        if self.watch is not None:
            self.watch.linked(old, new)

    async def mkfifo(self, path: Path) -> None:
        self._refuse_point(path, errno.EEXIST)
        await self._make_way(path)
        where = await self._at(path, _mkfifo)
        if self.watch is not None:
            self.watch.wrote(where, None, None, True)

    async def close(self) -> None:
        await self._flush_all()
        for resource in self._mounts.values():
            await resource.close()

    # --------------------------------------------------------------------------------------------- opening

    async def open(self, path: Path, how: Open = Open.READ) -> FileStream:
        if self._dirty:
            await self._flush(path)
        target, stat = await self._find_for_open(path, how)
        resource, inner, _ = self.locate(target)
        if isinstance(resource, DevResource):
            return resource.stream(inner)
        watch = self.watch if how & Open.WRITE else None
        mark = None if watch is None else watch.before(target)
        changed = stat is None or bool(how & Open.TRUNCATE and stat.kind is Kind.FILE and stat.size != 0)
        on_close = Cap.ON_CLOSE in resource.caps and bool(how & Open.WRITE)
        if on_close and (stat is None or stat.kind is Kind.FILE):
            stream: CountedStream = await self._open_document(resource, inner, stat, how)
            if watch is not None:
                stream.on_write = watch.opened(target, mark, changed, stat is None)
            return stream
        if stat is None:
            await self._make_way(target)
            await resource.write(inner, b"", How.CREATE)
        elif stat.kind is Kind.DIR:
            if how & Open.WRITE or how & Open.READ:
                raise fail(errno.EISDIR, path)
        elif stat.kind is Kind.FIFO:
            kernel = extension(resource, KernelFifos)  # type: ignore[type-abstract]
            if kernel is not None:
                return await open_kernel_fifo(kernel, inner, stat, how)
            return await self._open_fifo(resource, path, stat, how)
        elif stat.kind is not Kind.FILE:
            raise fail(errno.ENXIO, path)
        elif how & Open.TRUNCATE and stat.size != 0:
            await resource.write(inner, b"")
        elif how & Open.WRITE:
            await resource.setattr(inner, Attrs())
        stream = self._stream(resource, inner, how)
        if watch is not None:
            stream.on_write = watch.opened(target, mark, changed, stat is None)
        return stream

    def _stream(self, resource: Resource, inner: Path, how: Open) -> CountedStream:
        openable = extension(resource, Openable)  # type: ignore[type-abstract]
        if openable is not None:
            try:
                return LocalStream(openable.open(inner, write=bool(how & Open.WRITE)), how)
            except Unsupported:
                pass  # a layer that has handles for some files only
        return RemoteStream(resource, inner, how, self._note_dirty)

    async def _open_document(self, resource: Resource, path: Path, stat: Stat | None, how: Open) -> DocumentStream:
        """Open for writing where a write is a commit or an edit that others see: it is sent when it is closed."""
        if stat is None or how & (Open.TRUNCATE | Open.APPEND):
            return DocumentStream(resource, path, how, b"", None)
        return DocumentStream(resource, path, how, await ops.read_bytes(resource, path), stat.version)

    async def _open_fifo(self, resource: Resource, path: Path, stat: Stat, how: Open) -> FifoStream:
        if stat.inode is None or extension(resource, Fifos) is None:  # type: ignore[type-abstract]
            raise fail(errno.ENXIO, path)
        key = resource, stat.inode
        fifo = self._fifos.get(key)
        if fifo is None or fifo.idle:
            fifo = self._fifos[key] = Fifo(stat)
        fifo.join(how)
        try:
            await fifo.meet(how)
        except BaseException:
            fifo.leave(how)
            raise
        finally:
            for gone in [other for other, found in self._fifos.items() if found.idle]:
                del self._fifos[gone]
        return FifoStream(fifo, how)

    async def _from_fifo(self, path: Path) -> bytes:
        stream = await self.open(path)
        try:
            return await stream.read_all()
        finally:
            await stream.close()

    async def _into_fifo(self, path: Path, data: Data) -> Stat:
        stream = await self.open(path, Open.WRITE)
        try:
            if isinstance(data, bytes):
                stream.write(data)
            else:
                async for block in data:
                    stream.write(block)
                    await stream.drain()
            return await stream.stat()
        finally:
            await stream.close()

    async def _find_for_open(self, path: Path, how: Open) -> tuple[Path, Stat | None]:
        """Return the file's place and stat; None if it is to be created."""
        try:
            stat = await self.stat(path)
            if stat.kind is not Kind.LINK:
                if how & Open.EXCLUSIVE and how & Open.CREATE:
                    raise fail(errno.EEXIST, path)
                located = path if path in self._mounts else await self._canonical(path)
                return located, stat
            if how & Open.EXCLUSIVE and how & Open.CREATE:
                raise fail(errno.EEXIST, path)
            target = await self._follow(path, last=True, missing_ok=bool(how & Open.CREATE))
            try:
                return target, await self._stat(target)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise
                return target, None
        except OSError as error:
            if error.errno != errno.ENOENT or not how & Open.CREATE:
                raise with_path(error, path) from None
        target = await self._canonical(path)
        if not (await self._stat(target.parent)).is_dir:
            raise fail(errno.ENOTDIR, path)
        return target, None

    # ------------------------------------------------------------------------------- what mounts do beyond files

    async def power(self, path: Path, kind: type[Power], *, write: bool = False) -> tuple[Power, Path] | None:
        resource, inner, _ = self.locate(await self.resolve(path))
        found = power_of(resource, kind)
        if found is None:
            return None
        if write and isinstance(resource, ReadOnly):
            raise fail(errno.EROFS, path)
        return found, inner

    def changed(self, path: Path) -> None:
        found: Any = self.locate(path)[0]
        while found is not None:
            if isinstance(found, Cache):
                found.forget_below(ROOT)
            elif not isinstance(found, Layer) and (forget := getattr(found, "forget", None)) is not None:
                forget()  # a backend that remembers something by itself
            found = getattr(found, "inner", None)

    async def sieve(self, top: Path, text: str, *, fold: bool = False) -> Callable[[Path], bool] | None:
        kept: dict[Path, set[Path]] = {}
        for prefix, searchable in self._searchable.items():
            if prefix.under(top) or top.under(prefix):
                try:
                    found = searchable.search(top.below(prefix) if top.under(prefix) else ROOT, text, fold=fold)
                    kept[prefix] = {path.onto(prefix) async for path in found}
                except OSError:
                    continue  # reading the files reports the error
        if not kept:
            return None
        return lambda path: (paths := kept.get(self.mount_of(path))) is None or path in paths

    # --------------------------------------------------------------------------------------------- helpers

    async def _make_way(self, path: Path) -> None:
        """Before something is created at `path`, make the directories that lead to its mount real."""
        if self._ways and path.parent in self._ways:
            resource, inner, _ = self.locate(path.parent)
            await ops.make_dirs(resource, inner)

    def _refuse_point(self, path: Path, number: int) -> None:
        if path in self._mounts or path in self._points:
            raise fail(number, path)

    async def _as_directory(self, error: OSError, path: Path) -> OSError:
        if path in self._points and error.errno == errno.ENOENT:
            return fail(errno.EISDIR, path)
        return with_path(error, path)


async def _gathered(rows: Iterator[list[tuple[str, Stat]]]) -> list[tuple[str, Stat]]:
    """Return all entries of a directory, yielding the event loop between batches."""
    found = next(rows, [])
    for row in rows:
        await asyncio.sleep(0)
        found += row
    return found


async def _mkfifo(resource: Resource, inner: Path) -> None:
    power = extension(resource, Fifos)  # type: ignore[type-abstract]
    if power is None:
        raise fail(errno.EPERM, inner)
    await power.mkfifo(inner)
