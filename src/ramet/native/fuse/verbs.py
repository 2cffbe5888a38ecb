"""`MountedTree`: what the kernel may ask of a mount, answered by the tree of the session that asks.

- Names and attributes are never cached by the kernel: commands in process change the same tree.
- A file whose size is known is read through the page cache; one that is rendered when it is read is asked each time.
- Writes go to a `Draft`, which the mount gets when the file is closed or synced.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ramet.core import ops
from ramet.core.errors import Unsupported, fail
from ramet.core.fs import FileSystem, Open
from ramet.core.paths import Path, decode, encode
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat, default_mode
from ramet.native.fuse.callers import Caller, same_process
from ramet.native.fuse.content import Content
from ramet.native.fuse.draft import Draft, Spool
from ramet.native.fuse.messages import (
    ACCESS_IN,
    ATTR_VALID,
    CREATE_IN,
    HANDLE_IN,
    LARGEST,
    LINK_IN,
    MAKE_IN,
    MKNOD_IN,
    NO_REPLACE,
    OPEN_IN,
    OPEN_OUT,
    READ_IN,
    RENAME2_IN,
    RENAME_IN,
    SETATTR_IN,
    STATFS_OUT,
    WRITE_OUT,
    Op,
    Opened,
    Set,
    format_of,
    pack_attr,
    pack_dirent,
    pack_entry,
)
from ramet.native.fuse.nodes import Node, Nodes, inode_of

W_OK: Final = 2
MOST_OPEN: Final = 65536
"""Open files and directories of one mount: Ramet holds something for each."""
MOST_LISTED: Final = 64 << 20
"""Bytes of all directories that are being listed, beyond the first."""
SPACE: Final = 1 << 28
"""Blocks that `df` shows as free: no remote mount says how much room it has."""


@dataclass
class Ask:
    """One request of the kernel."""

    unique: int
    node: int
    uid: int
    gid: int
    pid: int
    """The thread that asks."""
    body: bytes
    caller: Caller | None = None

    @property
    def fs(self) -> FileSystem:
        assert self.caller is not None
        return self.caller.fs

    @property
    def session(self) -> object:
        assert self.caller is not None
        return self.caller.session

    @property
    def name(self) -> str:
        return decode(self.body.rstrip(b"\0"))

    def names(self, start: int) -> list[str]:
        """The names that follow a structure."""
        return [decode(one) for one in self.body[start:].split(b"\0")[:-1]]


@dataclass
class _OpenFile:
    node: Node
    path: Path
    """Its last name."""
    caller: Caller
    content: Content
    flags: int = 0

    @property
    def writes(self) -> bool:
        return self.flags & os.O_ACCMODE != os.O_RDONLY


@dataclass
class _OpenDirectory:
    node: Node
    caller: Caller
    entries: list[bytes] = field(default_factory=list)
    """Packed, each with the offset of the next."""
    listed: bool = False
    bytes: int = 0
    """Of the entries."""


class MountedTree:
    """One mount: `top` is its prefix. `late` mounts get a new file when it is closed, not when it is made."""

    def __init__(self, top: Path, spool: Spool, *, writable: bool, late: bool = False) -> None:
        self.top, self.writable, self.late = top, writable, late
        self.nodes = Nodes(top)
        self._spool = spool
        self._open: dict[int, _OpenFile | _OpenDirectory] = {}
        self._listed = 0
        """Bytes of the listings of open directories."""
        self._next = 1

    def close(self) -> None:
        """Free the space of drafts; what was not stored is lost."""
        for opened in self._open.values():
            if opened.node.draft is not None:
                opened.node.draft.close()
                opened.node.draft = None
        self._open.clear()

    def opener(self, ask: Ask) -> Caller | None:
        """Return the program that has opened the file of a request."""
        opened = self._open.get(HANDLE_IN.unpack_from(ask.body)[0])
        return None if opened is None else opened.caller

    def describe(self, ask: Ask) -> str:
        """Name what a request is about, for messages."""
        try:
            return str(self.nodes.path(self.nodes.get(ask.node)))
        except OSError:
            return str(self.top)

    # ------------------------------------------------------------------------------------------------- helpers

    def _file(self, number: int) -> _OpenFile:
        found = self._open.get(number)
        if not isinstance(found, _OpenFile):
            raise fail(errno.EBADF)
        return found

    def _admit(self, opened: _OpenFile | _OpenDirectory) -> int:
        if len(self._open) >= MOST_OPEN:
            raise fail(errno.ENFILE)
        number, self._next = self._next, self._next + 1
        self._open[number] = opened
        return number

    def _at(self, ask: Ask, number: int, name: str = "") -> tuple[Node, Path]:
        node = self.nodes.get(number)
        path = self.nodes.path(node)
        return node, path / name if name else path

    async def _stat(self, ask: Ask, node: Node, path: Path) -> Stat:
        """Describe a file as programs see it: with what is written and not stored yet."""
        draft = node.draft
        if draft is not None and draft.pending is not None and draft.maker == ask.session:
            return Stat(Kind.FILE, draft.size, time.time_ns())
        found = await ask.fs.stat(path)
        if draft is not None and (draft.dirty or draft.complete):
            found = found._replace(size=draft.size)
        return found

    def _entry(self, ask: Ask, parent: Node, name: str, stat: Stat) -> bytes:
        node = self.nodes.look_up(parent, name, stat.kind)
        return pack_entry(node.number, pack_attr(stat, node.inode, ask.uid, ask.gid))

    async def _made(self, ask: Ask, parent: Node, name: str, path: Path) -> bytes:
        return self._entry(ask, parent, name, await ask.fs.stat(path))

    # --------------------------------------------------------------------------------------- names and attributes

    async def look_up(self, ask: Ask) -> bytes:
        parent, path = self._at(ask, ask.node, name := ask.name)
        node = parent.children.get(name)
        if node is not None and node.draft is not None:
            return self._entry(ask, parent, name, await self._stat(ask, node, path))
        return await self._made(ask, parent, name, path)

    async def get_attributes(self, ask: Ask) -> bytes:
        node = self.nodes.get(ask.node)
        if node.draft is not None and (node.draft.complete or node.draft.pending is not None):
            stat = Stat(Kind.FILE, node.draft.size, time.time_ns())
            try:
                stat = await self._stat(ask, node, self.nodes.path(node))
            except FileNotFoundError:
                pass  # it was removed while it is open
        else:
            stat = await self._stat(ask, node, self.nodes.path(node))
        return ATTR_VALID.pack(0, 0, 0) + pack_attr(stat, node.inode, ask.uid, ask.gid)

    async def set_attributes(self, ask: Ask) -> bytes:
        valid, _, _, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid, _ = SETATTR_IN.unpack(ask.body)
        node, path = self._at(ask, ask.node)
        if (valid & Set.UID and uid != ask.uid) or (valid & Set.GID and gid != ask.gid):
            raise fail(errno.EPERM, path)
        if valid & Set.SIZE:
            await self._resize(ask, node, path, size)
        if valid & Set.MODE:
            await ask.fs.setattr(path, Attrs(mode=modes.S_IMODE(mode)))
        if valid & (Set.ATIME | Set.MTIME):
            now = time.time_ns()
            times = Attrs(
                mtime_ns=(now if valid & Set.MTIME_NOW else _nanoseconds(mtime, mtime_ns))
                if valid & Set.MTIME
                else None,
                atime_ns=(now if valid & Set.ATIME_NOW else _nanoseconds(atime, atime_ns))
                if valid & Set.ATIME
                else None,
                follow=False,
            )
            await self._set_times(ask, node, path, times, present=bool(valid & Set.MTIME_NOW))
        stat = await self._stat(ask, node, path)
        return ATTR_VALID.pack(0, 0, 0) + pack_attr(stat, node.inode, ask.uid, ask.gid)

    async def _set_times(self, ask: Ask, node: Node, path: Path, times: Attrs, *, present: bool) -> None:
        draft = node.draft
        if draft is not None and present:
            return  # storing it sets them
        if draft is not None and draft.dirty:
            await self._store(ask, node, path)
        await ask.fs.setattr(path, times)

    async def _resize(self, ask: Ask, node: Node, path: Path, size: int) -> None:
        draft = node.draft
        if draft is None:
            await ask.fs.setattr(path, Attrs(size=size))
            return
        async with draft.lock:
            if size == 0:
                draft.replace()
            else:
                await draft.load(ask.fs, path)
                draft.truncate(size)

    async def read_link(self, ask: Ask) -> bytes:
        _, path = self._at(ask, ask.node)
        return encode((await ask.fs.stat(path)).target or "")

    async def check_access(self, ask: Ask) -> bytes:
        if ACCESS_IN.unpack(ask.body)[0] & W_OK and not self.writable:
            raise fail(errno.EROFS)
        return b""

    async def measure(self, ask: Ask) -> bytes:
        return STATFS_OUT.pack(SPACE, SPACE, SPACE, SPACE, SPACE, 4096, 255, 4096)

    # ---------------------------------------------------------------------------------------------- directories

    async def make_directory(self, ask: Ask) -> bytes:
        mode, _ = MAKE_IN.unpack_from(ask.body)
        name = ask.names(MAKE_IN.size)[0]
        parent, path = self._at(ask, ask.node, name)
        await ask.fs.mkdir(path)
        await _give_mode(ask, path, Kind.DIR, mode)
        return await self._made(ask, parent, name, path)

    async def make_file(self, ask: Ask) -> bytes:
        mode, _, _, _ = MKNOD_IN.unpack_from(ask.body)
        name = ask.names(MKNOD_IN.size)[0]
        parent, path = self._at(ask, ask.node, name)
        if not modes.S_ISREG(mode):
            raise fail(errno.EPERM, path)  # a pipe of the kernel would not be that of the workspace
        await ask.fs.write(path, b"", How.CREATE)
        await _give_mode(ask, path, Kind.FILE, mode)
        return await self._made(ask, parent, name, path)

    async def make_link(self, ask: Ask) -> bytes:
        name, target = ask.names(0)
        parent, path = self._at(ask, ask.node, name)
        await ask.fs.write(path, encode(target), How.LINK)
        return await self._made(ask, parent, name, path)

    async def make_hard_link(self, ask: Ask) -> bytes:
        (number,) = LINK_IN.unpack_from(ask.body)
        name = ask.names(LINK_IN.size)[0]
        parent, path = self._at(ask, ask.node, name)
        await ask.fs.link(self.nodes.path(self.nodes.get(number)), path)
        return await self._made(ask, parent, name, path)

    async def remove_file(self, ask: Ask) -> bytes:
        return await self._remove(ask, directory=False)

    async def remove_directory(self, ask: Ask) -> bytes:
        return await self._remove(ask, directory=True)

    async def _remove(self, ask: Ask, *, directory: bool) -> bytes:
        parent, path = self._at(ask, ask.node, name := ask.name)
        node = parent.children.get(name)
        if node is None or node.draft is None or node.draft.pending is None:
            kind = node.kind if node is not None else (await ask.fs.stat(path)).kind
            if (kind is Kind.DIR) is not directory:
                raise fail(errno.ENOTDIR if directory else errno.EISDIR, path)
            await ask.fs.remove(path)
        if node is not None:
            if node.draft is not None:
                node.draft.pending, node.draft.dirty = None, False
            self.nodes.detach(node)
        return b""

    async def rename(self, ask: Ask) -> bytes:
        (number,) = RENAME_IN.unpack_from(ask.body)
        return await self._rename(ask, number, 0, ask.names(RENAME_IN.size))

    async def rename_with_flags(self, ask: Ask) -> bytes:
        number, flags, _ = RENAME2_IN.unpack_from(ask.body)
        return await self._rename(ask, number, flags, ask.names(RENAME2_IN.size))

    async def _rename(self, ask: Ask, number: int, flags: int, names: list[str]) -> bytes:
        old, new = names
        parent, path = self._at(ask, ask.node, old)
        target, goal = self._at(ask, number, new)
        if flags & ~NO_REPLACE:
            raise fail(errno.EINVAL, path)
        if flags and await ops.exists(ask.fs, goal):
            raise fail(errno.EEXIST, goal)
        node = parent.children.get(old)
        if node is not None and node.draft is not None and node.draft.pending is not None:
            node.draft.pending = How.REPLACE  # the mount gets it under its new name
        else:
            await ask.fs.rename(path, goal)
        self.nodes.moved(parent, old, target, new)
        return b""

    async def open_directory(self, ask: Ask) -> bytes:
        assert ask.caller is not None
        node = self.nodes.get(ask.node)
        return OPEN_OUT.pack(self._admit(_OpenDirectory(node, ask.caller)), 0, 0)

    async def read_directory(self, ask: Ask) -> bytes:
        number, offset, size, *_ = READ_IN.unpack(ask.body)
        opened = self._open.get(number)
        if not isinstance(opened, _OpenDirectory):
            raise fail(errno.EBADF)
        if not opened.listed or offset == 0:
            self._drop_listing(opened)
            found = await self._list(ask, opened.node)
            size_of_all = sum(map(len, found))
            if self._listed and self._listed + size_of_all > MOST_LISTED:
                raise fail(errno.ENOMEM)
            self._drop_listing(opened)  # another thread may have listed it meanwhile
            opened.entries, opened.listed, opened.bytes = found, True, size_of_all
            self._listed += size_of_all
        parts: list[bytes] = []
        for entry in opened.entries[offset:]:
            size -= len(entry)
            if size < 0:
                break
            parts.append(entry)
        return b"".join(parts)

    def _drop_listing(self, opened: _OpenDirectory) -> None:
        self._listed -= opened.bytes
        opened.entries, opened.bytes = [], 0

    async def _list(self, ask: Ask, node: Node) -> list[bytes]:
        path = self.nodes.path(node)
        found = {name: stat.kind for name, stat in await ops.kinds(ask.fs, path)}
        for name, child in node.children.items():
            draft = child.draft
            if draft is not None and draft.pending is not None and draft.maker == ask.session:
                found[name] = Kind.FILE
        above = inode_of(path.parent)
        rows = [(".", node.inode, Kind.DIR), ("..", above, Kind.DIR)]
        for name, kind in found.items():
            known = node.children.get(name)
            rows.append((name, inode_of(path / name) if known is None else known.inode, kind))
        return [pack_dirent(inode, at, format_of(kind), encode(name)) for at, (name, inode, kind) in enumerate(rows, 1)]

    async def release_directory(self, ask: Ask) -> bytes:
        opened = self._open.pop(HANDLE_IN.unpack_from(ask.body)[0], None)
        if isinstance(opened, _OpenDirectory):
            self._drop_listing(opened)
        return b""

    # --------------------------------------------------------------------------------------------------- files

    async def create(self, ask: Ask) -> bytes:
        flags, mode, _, _ = CREATE_IN.unpack_from(ask.body)
        name = ask.names(CREATE_IN.size)[0]
        parent, path = self._at(ask, ask.node, name)
        if self.late:
            if await ops.exists(ask.fs, path):
                raise fail(errno.EEXIST, path)
            if not (await ask.fs.stat(path.parent)).is_dir:
                raise fail(errno.ENOTDIR, path)
            stat = Stat(Kind.FILE, 0, time.time_ns())
        else:
            try:
                await ask.fs.write(path, b"", How.CREATE)
            except FileExistsError:
                if flags & os.O_EXCL:
                    raise
                return await self._open_existing(ask, parent, name, path, flags)
            await _give_mode(ask, path, Kind.FILE, mode)
            stat = await ask.fs.stat(path)
        entry = self._entry(ask, parent, name, stat)
        node = parent.children[name]
        draft = self._draft(ask, node, stat)
        draft.complete = True
        if self.late:
            draft.dirty, draft.pending = True, How.CREATE if flags & os.O_EXCL else How.REPLACE
        return entry + self._opened(ask, node, path, flags, stat)

    async def _open_existing(self, ask: Ask, parent: Node, name: str, path: Path, flags: int) -> bytes:
        """Open a file that a command has made since the kernel looked."""
        stat = await ask.fs.stat(path)
        entry = self._entry(ask, parent, name, stat)
        node = parent.children[name]
        await self._begin(ask, node, path, flags, stat)
        return entry + self._opened(ask, node, path, flags, stat)

    async def open(self, ask: Ask) -> bytes:
        flags, _ = OPEN_IN.unpack(ask.body)
        node, path = self._at(ask, ask.node)
        stat = await self._stat(ask, node, path)
        if stat.kind is not Kind.FILE:
            raise fail(errno.ENXIO, path)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            if not self.writable:
                raise fail(errno.EROFS, path)
            await self._begin(ask, node, path, flags, stat)
        return self._opened(ask, node, path, flags, stat)

    async def _begin(self, ask: Ask, node: Node, path: Path, flags: int, stat: Stat) -> None:
        """Make a draft of a file that is there."""
        if node.draft is None or node.draft.pending is None or node.draft.maker != ask.session:
            stream = await ask.fs.open(path, Open.WRITE | Open.APPEND)  # fails where it must not be written
            await stream.close()
        draft = self._draft(ask, node, stat)
        if flags & os.O_TRUNC and stat.size != 0:
            async with draft.lock:
                draft.replace()

    def _draft(self, ask: Ask, node: Node, stat: Stat) -> Draft:
        if node.draft is None:
            node.draft = Draft(self._spool, ask.session, stat.size or 0)
        return node.draft

    def _opened(self, ask: Ask, node: Node, path: Path, flags: int, stat: Stat) -> bytes:
        assert ask.caller is not None
        opened = _OpenFile(node, path, ask.caller, Content(ask.fs), flags)
        how = 0
        if opened.writes:
            assert node.draft is not None
            node.draft.users += 1
        else:
            how |= Opened.NO_FLUSH
        if stat.size is None or (opened.writes and flags & os.O_APPEND):
            how |= Opened.DIRECT
        return OPEN_OUT.pack(self._admit(opened), how, 0)

    async def read(self, ask: Ask) -> bytes:
        number, offset, size, *_ = READ_IN.unpack(ask.body)
        opened = self._file(number)
        draft = opened.node.draft
        if draft is not None and (draft.complete or draft.dirty):
            async with draft.lock:
                await draft.load(ask.fs, self._place(opened))
                return draft.read(offset, size)
        return await opened.content.read(self._place(opened), offset, min(size, LARGEST))

    def _place(self, opened: _OpenFile) -> Path:
        """Return the present name of an open file, or its last one."""
        try:
            opened.path = self.nodes.path(opened.node)
        except FileNotFoundError:
            pass  # it was removed
        return opened.path

    async def write(self, ask: Ask) -> bytes:
        number, offset, size, *_ = READ_IN.unpack_from(ask.body)
        opened = self._file(number)
        draft = opened.node.draft
        if draft is None:
            raise fail(errno.EBADF)
        data = memoryview(ask.body)[READ_IN.size : READ_IN.size + size]
        async with draft.lock:
            if opened.flags & os.O_APPEND:
                draft.append(data)
            else:
                if not draft.complete:
                    await draft.load(ask.fs, self._place(opened))
                draft.write(data, offset)
            draft.writer = ask.pid
        return WRITE_OUT.pack(len(data), 0)

    async def sync(self, ask: Ask) -> bytes:
        opened = self._file(HANDLE_IN.unpack_from(ask.body)[0])
        await self._store(ask, opened.node)
        return b""

    async def flush(self, ask: Ask) -> bytes:
        """A process closes a file: it learns whether what it wrote is stored. Others only had the descriptor."""
        opened = self._file(HANDLE_IN.unpack_from(ask.body)[0])
        draft = opened.node.draft
        if draft is not None and draft.dirty and (not draft.writer or same_process(draft.writer, ask.pid)):
            await self._store(ask, opened.node)
        return b""

    async def _store(self, ask: Ask, node: Node, path: Path | None = None) -> None:
        draft = node.draft
        if draft is None or not draft.dirty:
            return
        assert ask.caller is not None
        async with draft.lock:
            if ask.caller.cancelled:
                draft.dirty = False
                raise fail(errno.EINTR)
            try:
                place = self.nodes.path(node) if path is None else path
            except FileNotFoundError:
                draft.dirty = False  # it was removed
                return
            await draft.store(ask.fs, place)

    async def release(self, ask: Ask) -> bytes:
        opened = self._file(number := HANDLE_IN.unpack_from(ask.body)[0])
        del self._open[number]
        node = opened.node
        try:
            await opened.content.close()
            if opened.writes and node.draft is not None and node.draft.users == 1:
                await self._store(ask, node)
        finally:
            draft = node.draft
            if opened.writes and draft is not None:
                draft.users -= 1
                if not draft.users:
                    node.draft = None
                    draft.close()
                    self.nodes.drop(node)
        return b""


async def _give_mode(ask: Ask, path: Path, kind: Kind, mode: int) -> None:
    """Set the mode of a new file or directory where the mount keeps modes."""
    wanted = modes.S_IMODE(mode)
    if wanted == default_mode(kind):
        return
    try:
        await ask.fs.setattr(path, Attrs(mode=wanted))
    except Unsupported:
        return


def _nanoseconds(seconds: int, rest: int) -> int:
    signed = seconds - (1 << 64) if seconds >= 1 << 63 else seconds
    return signed * 1_000_000_000 + rest


VERBS: Final[Mapping[int, Callable[[MountedTree, Ask], Awaitable[bytes]]]] = {
    Op.LOOKUP: MountedTree.look_up,
    Op.GETATTR: MountedTree.get_attributes,
    Op.SETATTR: MountedTree.set_attributes,
    Op.READLINK: MountedTree.read_link,
    Op.SYMLINK: MountedTree.make_link,
    Op.MKNOD: MountedTree.make_file,
    Op.MKDIR: MountedTree.make_directory,
    Op.UNLINK: MountedTree.remove_file,
    Op.RMDIR: MountedTree.remove_directory,
    Op.RENAME: MountedTree.rename,
    Op.RENAME2: MountedTree.rename_with_flags,
    Op.LINK: MountedTree.make_hard_link,
    Op.OPEN: MountedTree.open,
    Op.READ: MountedTree.read,
    Op.WRITE: MountedTree.write,
    Op.STATFS: MountedTree.measure,
    Op.RELEASE: MountedTree.release,
    Op.FSYNC: MountedTree.sync,
    Op.FLUSH: MountedTree.flush,
    Op.OPENDIR: MountedTree.open_directory,
    Op.READDIR: MountedTree.read_directory,
    Op.RELEASEDIR: MountedTree.release_directory,
    Op.ACCESS: MountedTree.check_access,
    Op.CREATE: MountedTree.create,
}
OF_A_FILE: Final = frozenset((Op.READ, Op.WRITE, Op.RELEASE, Op.FSYNC, Op.FLUSH, Op.READDIR, Op.RELEASEDIR))
"""Requests that act for the program which opened the file."""
INTERRUPTIBLE: Final = frozenset(
    (Op.LOOKUP, Op.GETATTR, Op.READLINK, Op.OPEN, Op.READ, Op.OPENDIR, Op.READDIR, Op.ACCESS, Op.STATFS)
)
