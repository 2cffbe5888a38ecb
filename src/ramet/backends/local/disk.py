"""`DiskResource`: a directory of the host as a tree that nothing leads out of.

Rules that this file keeps:
- Every path is opened from the root's descriptor by `safe_open`: no `..`, link or concurrent rename escapes.
- A whole-file write goes to a temporary name in the same directory and is renamed into place: it is never seen half.
- Only regular files are read or written: a FIFO, socket or device is described, never opened for its data.
- Nothing is remembered between calls, so a listing is never stale.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat as modes
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Final, Literal

from ramet.backends.local.safe_open import open_beneath, open_parent
from ramet.core.errors import RametError, fail, wrong_type
from ramet.core.paths import ROOT, Path
from ramet.core.resource import ROW, Cap, Data, How
from ramet.core.stat import Attrs, Kind, Stat

BLOCK: Final = 1024 * 1024
TEMP_PREFIX: Final = ".ramet-tmp-"
_SMALL = 32 * 1024
_READ_ONE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
Fsync = Literal["never", "file", "full"]
Creator = Callable[[], AbstractContextManager[object]]

_FORMAT: Final = 0o170000
"""The bits of a mode that say what a thing is."""
_KINDS: Final = {
    modes.S_IFREG: Kind.FILE,
    modes.S_IFDIR: Kind.DIR,
    modes.S_IFLNK: Kind.LINK,
    modes.S_IFIFO: Kind.FIFO,
    modes.S_IFSOCK: Kind.SOCKET,
    modes.S_IFBLK: Kind.DEVICE,
    modes.S_IFCHR: Kind.DEVICE,
}


class DiskResource:
    """Files below `root` on the host. `fsync` says when a write is forced to the disk: "never", "file" or "full"."""

    caps = (
        Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.COPY | Cap.LINKS
        | Cap.HARDLINKS | Cap.MODES | Cap.MTIMES | Cap.ATIMES | Cap.TRUNCATE | Cap.DIRS | Cap.VERSIONS | Cap.LOCAL
    )  # fmt: skip

    def __init__(self, root: str | os.PathLike[str], *, create: bool = False, fsync: Fsync = "never") -> None:
        """Open a directory; with `create`, make it first."""
        if not isinstance(root, str | os.PathLike):
            raise wrong_type("a directory", root, "Pass a path.")
        self.root = os.path.abspath(os.fspath(root))
        if create:
            os.makedirs(self.root, exist_ok=True)
        elif not os.path.isdir(self.root):
            raise RametError(
                "not_found", f"cannot open {self.root}: it is not a directory", "Create it, or pass create=True."
            )
        self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._fsync: Fsync = fsync

    kept: Collection[str] = frozenset()
    """Files that are written in place: another file under their name would lose the mounts that cover them."""

    @classmethod
    def temporary(cls) -> DiskResource:
        """Make a temporary directory that is removed with the resource."""
        import shutil  # heavy, and few need it
        import tempfile

        disk = cls(tempfile.mkdtemp(prefix="ramet-"))
        weakref.finalize(disk, shutil.rmtree, disk.root, ignore_errors=True)
        return disk

    def __repr__(self) -> str:
        return f"DiskResource({self.root!r})"

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self.release()

    def release(self) -> None:
        """Close the root; the resource is not used any more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    # ------------------------------------------------------------------------------------------------ verbs

    async def stat(self, path: Path) -> Stat:
        return self.stat_now(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for row in self.scan_now(path):
            for entry in row:
                yield entry

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        fd = self._open_file(path, os.O_RDONLY)
        try:
            size = BLOCK if stop is None else min(BLOCK, stop - start)
            while size > 0 and (block := os.pread(fd, size, start)):
                yield block
                start += len(block)
                if stop is not None:
                    size = min(BLOCK, stop - start)
        finally:
            os.close(fd)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if len(path) == 1:
            raise fail(errno.EISDIR, path)
        if if_version is not None and self._version(path) != if_version:
            raise fail(errno.ESTALE, path)
        if how is How.LINK:
            return await self._symlink(path, data)
        if how in (How.REPLACE, How.CREATE):
            return await self._replace(path, data, how)
        flags = os.O_WRONLY | (os.O_CREAT if how is How.APPEND else 0)
        fd = self._open_file(path, flags)
        try:
            offset = os.fstat(fd).st_size if how is How.APPEND else at
            async for block in _blocks(data):
                offset += _pwrite_all(fd, block, offset)
            self._settle(fd)
            return _describe(os.fstat(fd))
        finally:
            os.close(fd)

    async def mkdir(self, path: Path) -> None:
        with self._parent(path, errno.EEXIST) as (fd, name), self.creator():
            os.mkdir(name, 0o777, dir_fd=fd)

    async def remove(self, path: Path) -> None:
        with self._parent(path, errno.EBUSY) as (fd, name):
            try:
                os.unlink(name, dir_fd=fd)
            except (IsADirectoryError, PermissionError) as error:
                if not modes.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise error
                os.rmdir(name, dir_fd=fd)

    async def rename(self, src: Path, dst: Path) -> None:
        if dst in self.kept and src != dst and self._is_file(dst) and self._is_file(src):
            mode = self.stat_now(src).mode
            await self._overwrite(dst, self.read(src))
            await self.setattr(dst, Attrs(mode=mode))
            await self.remove(src)
            return
        source, target = self._parent(src, errno.EINVAL), self._parent(dst, errno.EBUSY)
        with source as (src_fd, src_name), target as (dst_fd, dst_name), self.creator():
            os.rename(src_name, dst_name, src_dir_fd=src_fd, dst_dir_fd=dst_fd)

    async def copy(self, src: Path, dst: Path) -> None:
        source = self._open_file(src, os.O_RDONLY)
        try:
            mode = os.fstat(source).st_mode & 0o7777
            if dst in self.kept and self._is_file(dst):
                await self._overwrite(dst, self.read(src))
                return
            with (
                self._parent(dst, errno.EISDIR) as (parent, name),
                _Temporary(parent, name, mode, self.creator) as temp,
            ):
                copy_content(source, temp.fd)
                self._settle(temp.fd)
                temp.rename()
        finally:
            os.close(source)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        if attrs.size is not None:
            fd = self._open_file(path, os.O_WRONLY)
            try:
                os.ftruncate(fd, attrs.size)
            finally:
                os.close(fd)
        if attrs.mode is None and attrs.mtime_ns is None and attrs.atime_ns is None:
            self.stat_now(path)
            return
        if len(path) == 1:
            _set_attrs(self._fd, ".", attrs)
            return
        with self._parent(path, errno.EINVAL) as (parent, name):
            _set_attrs(parent, name, attrs)

    async def close(self) -> None:
        """The root stays open until the resource is forgotten, so a copy of a workspace may share it."""

    # ------------------------------------------------------------------------------------- optional powers

    async def link(self, src: Path, dst: Path) -> None:
        source, target = self._parent(src, errno.EPERM), self._parent(dst, errno.EEXIST)
        with source as (src_fd, src_name), target as (dst_fd, dst_name), self.creator():
            os.link(src_name, dst_name, src_dir_fd=src_fd, dst_dir_fd=dst_fd, follow_symlinks=False)

    def open(self, path: Path, *, write: bool) -> DiskHandle:
        return DiskHandle(self._open_file(path, os.O_RDWR if write else os.O_RDONLY))

    def stat_now(self, path: Path) -> Stat:
        if len(path) == 1:
            return _describe(os.fstat(self._fd))
        with self._parent(path, errno.EINVAL) as (fd, name):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if modes.S_ISLNK(found.st_mode):
                return _describe(found, os.readlink(name, dir_fd=fd))
            return _describe(found)

    def scan_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        fd = self._on(path, os.O_RDONLY | os.O_DIRECTORY)
        found: list[tuple[str, Stat]] = []
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == "." and name.startswith(TEMP_PREFIX):
                        continue
                    try:
                        info = entry.stat(follow_symlinks=False)
                        target = os.readlink(name, dir_fd=fd) if entry.is_symlink() else None
                    except FileNotFoundError:
                        continue  # removed by someone else since the listing
                    found.append((name, _describe(info, target)))
                    if len(found) == ROW:
                        yield found
                        found = []
        finally:
            os.close(fd)
        yield found

    def kinds_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        """The listing alone, without a stat per file."""
        fd = self._on(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as entries:
                while row := list(islice(entries, ROW)):
                    yield [(e.name, _kind_only(e)) for e in row if not e.name.startswith(TEMP_PREFIX)]
        finally:
            os.close(fd)

    def read_now(self, path: Path, need: int = 0, most: int = sys.maxsize) -> bytes:
        fd = self._open_file(path, os.O_RDONLY, need)
        try:
            # Most files are small, and a large buffer costs more than reading them.
            first = os.read(fd, _SMALL)
            if len(first) < _SMALL:
                return first
            if os.fstat(fd).st_size > most:
                raise fail(errno.EFBIG, path)
            parts, room = [first], most - len(first)
            while block := os.read(fd, BLOCK):
                parts.append(block)
                room -= len(block)
                if room < 0:
                    raise fail(errno.EFBIG, path)  # it grew meanwhile
                if len(block) < BLOCK:
                    break
            return b"".join(parts)
        finally:
            os.close(fd)

    def small_now(self, directory: Path, names: Sequence[str], need: int = 0) -> list[bytes | None]:
        """A name of one component that no link may be needs no look at the way to it: the directory is open."""
        where = self._on(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            return [None if "/" in name else _small(where, name, need) for name in names]
        finally:
            os.close(where)

    # ---------------------------------------------------------------------------------------------- helpers

    def check_path(self, path: Path) -> None:
        """Hook for subclasses: raise for a path that is not to be seen."""

    creator: Creator = staticmethod(nullcontext)
    """Hook for subclasses: a context in which names are created, for another user."""

    def _parent(self, path: Path, at_root: int) -> _Parent:
        self.check_path(path)
        return _Parent(self._fd, path, at_root)

    def _on(self, path: Path, flags: int) -> int:
        self.check_path(path)
        try:
            return open_beneath(self._fd, path, flags)
        except OSError as error:
            raise self._precise(error, path) from None

    def _precise(self, error: OSError, path: Path) -> OSError:
        """O_DIRECTORY turns a link into ENOTDIR; the contract wants ELOOP for it."""
        if error.errno == errno.ENOTDIR and len(path) > 1 and self.stat_now(path).kind is Kind.LINK:
            return fail(errno.ELOOP, path)
        return fail(error.errno or errno.EIO, path)

    def _open_file(self, path: Path, flags: int, need: int = 0) -> int:
        """A descriptor of a regular file whose mode has the bits `need`, never blocking on what is not one."""
        self.check_path(path)
        try:
            if flags & os.O_CREAT:
                with self.creator():
                    fd = open_beneath(self._fd, path, flags | os.O_NONBLOCK)
            else:
                fd = open_beneath(self._fd, path, flags | os.O_NONBLOCK)
        except OSError as error:
            raise fail(error.errno or errno.EIO, path) from None
        mode = os.fstat(fd).st_mode
        if modes.S_ISREG(mode) and mode & need == need:
            return fd
        os.close(fd)
        if modes.S_ISREG(mode):
            raise fail(errno.EACCES, path)
        raise fail(errno.EISDIR if modes.S_ISDIR(mode) else errno.ENXIO, path)

    def _version(self, path: Path) -> str | None:
        try:
            return self.stat_now(path).version
        except FileNotFoundError:
            return None

    async def _replace(self, path: Path, data: Data, how: How) -> Stat:
        with self._parent(path, errno.EISDIR) as (parent, name):
            mode = 0o644
            try:
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                pass
            else:
                if how is How.CREATE:
                    raise fail(errno.EEXIST, path)
                kind = _KINDS.get(modes.S_IFMT(found.st_mode))
                if kind is not Kind.FILE:
                    wrong = {Kind.DIR: errno.EISDIR, Kind.LINK: errno.ELOOP}
                    raise fail(wrong.get(kind or Kind.DEVICE, errno.ENXIO), path)
                mode = found.st_mode & 0o7777
                if found.st_nlink > 1 or path in self.kept:
                    return await self._overwrite(path, data)
            with _Temporary(parent, name, mode, self.creator) as temp:
                async for block in _blocks(data):
                    _write_all(temp.fd, block)
                self._settle(temp.fd)
                if how is How.CREATE:
                    temp.link()
                else:
                    temp.rename()
                if self._fsync == "full":
                    _fsync_directory(parent)
                stat = os.fstat(temp.fd)  # taken last: renaming changes the ctime, which is part of the version
            return _describe(stat)

    def _is_file(self, path: Path) -> bool:
        try:
            return self.stat_now(path).kind is Kind.FILE
        except OSError:
            return False

    async def _overwrite(self, path: Path, data: Data) -> Stat:
        """A file with several names keeps them, so its content changes in place once all of it has arrived."""
        blocks = [block async for block in _blocks(data)]
        fd = self._open_file(path, os.O_WRONLY)
        try:
            size = 0
            for block in blocks:
                size += _pwrite_all(fd, block, size)
            os.ftruncate(fd, size)
            self._settle(fd)
            return _describe(os.fstat(fd))
        finally:
            os.close(fd)

    async def _symlink(self, path: Path, data: Data) -> Stat:
        target = b"".join([block async for block in _blocks(data)])
        with self._parent(path, errno.EEXIST) as (parent, name), self.creator():
            os.symlink(os.fsdecode(target), name, dir_fd=parent)
        return self.stat_now(path)

    def _settle(self, fd: int) -> None:
        if self._fsync != "never":
            os.fsync(fd)


class DiskHandle:
    """An open file of the host; the kernel keeps it through renames and removal."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def pread(self, offset: int, size: int) -> bytes:
        return os.pread(self._fd, size, offset)

    def block(self, offset: int) -> bytes:
        return os.pread(self._fd, BLOCK // 4, offset)

    def pwrite(self, offset: int, data: bytes) -> int:
        return _pwrite_all(self._fd, data, offset)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def lend(self, *, append: bool) -> int:
        """Return the descriptor, whose own offset programs of the machine read and move."""
        if append:
            fcntl.fcntl(self._fd, fcntl.F_SETFL, fcntl.fcntl(self._fd, fcntl.F_GETFL) | os.O_APPEND)
        fcntl.fcntl(self._fd, fcntl.F_SETFL, fcntl.fcntl(self._fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
        return self._fd

    def stat(self) -> Stat:
        return _describe(os.fstat(self._fd))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class _Parent:
    """The directory that holds a path, as a descriptor, with OS errors named after the path."""

    __slots__ = ("_close", "_fd", "_path")

    def __init__(self, root: int, path: Path, at_root: int) -> None:
        if path == ROOT:
            raise fail(at_root, path)
        self._path = path
        try:
            self._fd, _, self._close = open_parent(root, path)
        except NotADirectoryError:
            raise self._crossing(root, path) from None
        except OSError as error:
            raise fail(error.errno or errno.EIO, path) from None

    def __enter__(self) -> tuple[int, str]:
        return self._fd, self._path.name

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._close:
            os.close(self._fd)
        if isinstance(error, OSError) and error.filename != self._path and error.errno is not None:
            raise fail(error.errno, self._path) from None

    @staticmethod
    def _crossing(root: int, path: Path) -> OSError:
        """Some kernels say ENOTDIR for a link in the way; the contract wants ELOOP."""
        above = path.parent
        while above != ROOT:
            try:
                fd = open_beneath(root, above, os.O_PATH)
            except OSError:
                above = above.parent
                continue
            link = modes.S_ISLNK(os.fstat(fd).st_mode)
            os.close(fd)
            return fail(errno.ELOOP if link else errno.ENOTDIR, path)
        return fail(errno.ENOTDIR, path)


class _Temporary:
    """A file under a temporary name that becomes the real one or vanishes."""

    __slots__ = ("_creator", "_name", "_parent", "_temp", "fd")

    def __init__(self, parent: int, name: str, mode: int, creator: Creator) -> None:
        self._parent, self._name, self._creator = parent, name, creator
        self._temp: str | None = TEMP_PREFIX + os.urandom(8).hex()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with creator():
            self.fd = os.open(self._temp, flags, 0o600, dir_fd=parent)
        os.fchmod(self.fd, mode)

    def rename(self) -> None:
        assert self._temp is not None
        with self._creator():
            os.rename(self._temp, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
        self._temp = None

    def link(self) -> None:
        """Take the real name only if it is free."""
        assert self._temp is not None
        with self._creator():
            os.link(self._temp, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)

    def __enter__(self) -> _Temporary:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        if self._temp is not None:
            os.unlink(self._temp, dir_fd=self._parent)


_REGULAR: Final = Kind.FILE
_new: Final = tuple.__new__
"""Makes a `Stat` without the call that names its fields: a walk makes one per file."""


def _describe(info: os.stat_result, target: str | None = None) -> Stat:
    mode, size, modified, inode = info.st_mode, info.st_size, info.st_mtime_ns, info.st_ino
    if mode & _FORMAT == modes.S_IFREG:
        version = "%x-%x-%x-%x" % (modified, size, inode, info.st_ctime_ns)  # noqa: UP031 - twice as fast as an f-string
        bits, links, used = mode & 0o7777, info.st_nlink, info.st_atime_ns
        return _new(Stat, (_REGULAR, size, modified, version, 0, bits, None, inode, links, used))
    kind = _KINDS[mode & _FORMAT]
    return Stat(kind, size, modified, None, 0, mode & 0o7777, target, inode, info.st_nlink, info.st_atime_ns)


_FILE, _DIR = Stat(Kind.FILE), Stat(Kind.DIR)


def _small(directory: int, name: str, need: int) -> bytes | None:
    try:
        fd = os.open(name, _READ_ONE, dir_fd=directory)
    except OSError:
        return None
    try:
        mode = os.fstat(fd).st_mode
        if mode & _FORMAT != modes.S_IFREG or mode & need != need:
            return None
        data = os.read(fd, _SMALL)
        return data if len(data) < _SMALL else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _kind_only(entry: os.DirEntry[str]) -> Stat:
    if entry.is_file(follow_symlinks=False):
        return _FILE
    if entry.is_dir(follow_symlinks=False):
        return _DIR
    return Stat(_KINDS[modes.S_IFMT(entry.stat(follow_symlinks=False).st_mode)])


def _set_attrs(parent: int, name: str, attrs: Attrs) -> None:
    found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    is_link = modes.S_ISLNK(found.st_mode)
    if is_link and attrs.follow:
        return
    if attrs.mode is not None and not is_link:
        # chmod has no nofollow on Linux; going through a descriptor of the thing itself cannot be raced to elsewhere.
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{fd}", attrs.mode & 0o7777)
        finally:
            os.close(fd)
    if attrs.mtime_ns is not None or attrs.atime_ns is not None:
        used = found.st_atime_ns if attrs.atime_ns is None else attrs.atime_ns
        modified = found.st_mtime_ns if attrs.mtime_ns is None else attrs.mtime_ns
        os.utime(name, ns=(used, modified), dir_fd=parent, follow_symlinks=False)


async def _blocks(data: Data) -> AsyncIterator[bytes]:
    if isinstance(data, bytes):
        yield data
    else:
        async for block in data:
            yield block


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _pwrite_all(fd: int, data: bytes, offset: int) -> int:
    done = os.pwrite(fd, data, offset)
    while done < len(data):
        done += os.pwrite(fd, memoryview(data)[done:], offset + done)
    return done


def copy_content(source: int, target: int) -> None:
    """Bytes from file to file inside the kernel (a reflink where the file system has them)."""
    size = os.fstat(source).st_size
    done = 0
    try:
        while done < size:
            moved = os.copy_file_range(source, target, size - done)
            if not moved:
                return
            done += moved
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        while block := os.pread(source, BLOCK, done):
            _write_all(target, block)
            done += len(block)


def _fsync_directory(fd: int) -> None:
    """An O_PATH descriptor cannot be synced; reopen what it stands for."""
    real = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        os.fsync(real)
    finally:
        os.close(real)
