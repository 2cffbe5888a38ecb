"""`RAMResource`: a persistent tree in memory. `fork()` is O(1); both sides then copy a node when they first change it.

Rules that this file keeps:
- A node is changed in place only by the tree whose token it carries. `fork()` gives both trees new tokens, so that
  every node is shared and none is owned; `_own_*` copies the nodes along one path and nothing else.
- `sum` (our digest) and `memo` (whatever a committer keeps) of a node are None from the moment the node, or anything
  below it, changes. A directory has them only when all its children have them.
- A file with several names lives in the inode table and its entries hold its number, so that a copy shows under every
  name. A directory with such an entry never keeps `sum` or `memo`: a change under another name would not reach it.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from typing import Final

from ramet.backends.local.buffers import Blocks
from ramet.backends.local.ram_nodes import Dir, Fifo, File, Link, Node, Token, UsedDir, UsedFile, digest
from ramet.core.errors import fail
from ramet.core.limits import memory_share
from ramet.core.paths import ROOT, Path
from ramet.core.resource import ROW, Cap, Data, How
from ramet.core.stat import Attrs, Stat

CAPS: Final = (
    Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.COPY | Cap.LINKS | Cap.HARDLINKS
    | Cap.MODES | Cap.MTIMES | Cap.ATIMES | Cap.TRUNCATE | Cap.DIRS | Cap.VERSIONS | Cap.PRECONDITIONS | Cap.LOCAL
)  # fmt: skip

KEEPER_BYTES: Final = 4 * 1024 * 1024
"""Bytes from which on a content that arrives is given to the `keeper`."""


class RAMResource:
    """Files in memory. `quota` bounds the bytes of all files; what does not fit fails with ENOSPC.

    Without a quota the bound is 2 GiB or a quarter of the memory, whichever is less (`core.limits.memory_share`). A
    tree whose `keeper` takes large contents elsewhere has no bound then.
    """

    caps = CAPS
    keeper: Callable[[Blocks, AsyncIterator[bytes]], Awaitable[Blocks]] | None = None
    """Takes what has arrived of a large content and what still comes, and keeps it elsewhere. A fork has none."""

    def __init__(self, *, quota: int | None = None, clock: Callable[[], int] = time.time_ns) -> None:
        self._token = Token()
        self._clock = clock
        self._root = Dir(self._token, 0o755, clock())
        self._shared: dict[int, File] = {}
        self._shared_token = self._token
        self._handles: set[RAMHandle] = set()
        self._used = 0
        self._has_fifos = False
        self._kept = False
        self.quota = quota

    def __repr__(self) -> str:
        return f"RAMResource({self._used} bytes)"

    # ------------------------------------------------------------------------------------------------ verbs

    async def stat(self, path: Path) -> Stat:
        return self._node(path).describe()

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for row in self.scan_now(path):
            for entry in row:
                yield entry

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        for block in self._file(path).content.read(start, stop):
            yield block

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if isinstance(data, bytes):
            content = Blocks(data)
        else:
            content = Blocks()
            async for block in data:
                content.append(block)
                self._check_quota(content.size)
                if self.keeper is not None and content.size > KEEPER_BYTES and how is not How.LINK:
                    content = await self.keeper(content, data)
                    self._check_quota(content.size)
        return self._store(path, content, how, at, if_version)

    async def mkdir(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EEXIST, path)
        parent = self._own_dir(path.parent)
        name = path.name
        if name in parent.entries:
            raise fail(errno.EEXIST, path)
        now = self._clock()
        parent.entries[name] = Dir(self._token, 0o755, now)
        parent.subdirs += 1
        parent.mtime_ns = now

    async def remove(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EBUSY, path)
        node = self._node(path)
        if isinstance(node, Dir) and node.entries:
            raise fail(errno.ENOTEMPTY, path)
        parent = self._own_dir(path.parent)
        self._drop(parent, path.name, path)
        parent.mtime_ns = self._clock()

    async def rename(self, src: Path, dst: Path) -> None:
        node = self._node(src)
        if src == dst:
            return
        if dst.under(src) or len(src) == 1:
            raise fail(errno.EINVAL, dst)
        target_parent = self._dir(dst.parent)
        existing = target_parent.entries.get(dst.name)
        if existing is not None:
            old = self._shared[existing] if isinstance(existing, int) else existing
            if old is node:
                return
            if isinstance(old, Dir):
                if not isinstance(node, Dir):
                    raise fail(errno.EISDIR, dst)
                if old.entries:
                    raise fail(errno.ENOTEMPTY, dst)
            elif isinstance(node, Dir):
                raise fail(errno.ENOTDIR, dst)
        now = self._clock()
        source = self._own_dir(src.parent)
        target = self._own_dir(dst.parent)
        if existing is not None:
            self._drop(target, dst.name, dst)
        entry = source.entries.pop(src.name)
        target.entries[dst.name] = entry
        if isinstance(node, Dir):
            source.subdirs -= 1
            target.subdirs += 1
        source.mtime_ns = target.mtime_ns = now
        for handle in self._handles:
            if handle.path is not None and handle.path.under(src):
                handle.path = handle.path.below(src).onto(dst)

    async def copy(self, src: Path, dst: Path) -> None:
        source = self._file(src)
        self._check_quota(source.content.size)
        made = self._store(dst, source.content.copy(), How.REPLACE, 0, None)
        if made.mode != source.mode:
            self.setattr_now(dst, Attrs(mode=source.mode))

    def copy_files_now(self, src: Path, dst: Path, names: Sequence[str], need: int = 0) -> int:
        try:
            target = self._own_dir(dst)
            source = self._dir(src)
        except OSError:
            return 0  # copying each of them says what is wrong
        now, token, shared, done = self._clock(), self._token, self._shared, 0
        for name in names:
            entry = source.entries.get(name)
            file = shared[entry] if isinstance(entry, int) else entry
            if not isinstance(file, File) or isinstance(file, Fifo) or file.mode & need != need:
                break
            size = file.content.size
            if name in target.entries or not self._fits(size):
                break
            target.entries[name] = File(token, file.content.copy(), file.mode, now)
            self._used += size
            done += 1
        if done:
            target.mtime_ns = now
        return done

    def remove_files_now(self, directory: Path, names: Sequence[str]) -> int:
        try:
            parent = self._own_dir(directory)
        except OSError:
            return 0
        done = 0
        for name in names:
            entry = parent.entries.get(name)
            if not isinstance(entry, (File, int)):
                break
            self._drop(parent, name, directory / name)
            done += 1
        if done:
            parent.mtime_ns = self._clock()
        return done

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        self.setattr_now(path, attrs)

    async def close(self) -> None:
        self._handles.clear()

    # ------------------------------------------------------------------------------------- optional powers

    async def link(self, src: Path, dst: Path) -> None:
        node = self._node(src)
        if isinstance(node, Dir):
            raise fail(errno.EPERM, src)
        if dst.name in self._dir(dst.parent).entries or len(dst) == 1:
            raise fail(errno.EEXIST, dst)
        parent = self._own_dir(dst.parent)
        if isinstance(node, Link):
            parent.entries[dst.name] = Link(node.target, node.mtime_ns)
            return
        file = self._own_file(src)
        if file.nlink == 1:
            self._own_table()[file.inode] = file
            self._own_dir(src.parent).entries[src.name] = file.inode
        file.nlink += 1
        file.stat = None
        parent.entries[dst.name] = file.inode
        parent.mtime_ns = self._clock()

    async def mkfifo(self, path: Path) -> None:
        parent = self._own_dir(path.parent)
        if len(path) == 1 or path.name in parent.entries:
            raise fail(errno.EEXIST, path)
        now = self._clock()
        parent.entries[path.name] = Fifo(self._token, Blocks(), 0o644, now)
        parent.mtime_ns = now
        self._has_fifos = True

    def fork(self) -> RAMResource:
        """An independent copy that shares everything until one side changes it."""
        twin = RAMResource.__new__(RAMResource)
        twin._root, twin._shared, twin._used, twin.quota = self._root, self._shared, self._used, self.quota
        twin._clock, twin._handles, twin._has_fifos = self._clock, set(), self._has_fifos
        twin._kept = self._kept or self.keeper is not None
        shared = Token()  # no tree owns the shared nodes
        twin._shared_token = self._shared_token = shared
        self._token, twin._token = Token(), Token()
        return twin

    def digest(self, path: Path) -> bytes:
        """SHA-256 over names, kinds, modes and content at and below `path`; nothing unchanged is read again."""
        return digest(self._node(path), self._shared)

    def open(self, path: Path, *, write: bool) -> RAMHandle:
        handle = RAMHandle(self, path, self._file(path))
        self._handles.add(handle)
        return handle

    def stat_now(self, path: Path) -> Stat:
        return self._node(path).describe()

    def scan_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        shared, entries = self._shared, self._dir(path).entries
        if len(entries) <= ROW:
            yield [
                (name, (shared[entry] if isinstance(entry, int) else entry).describe())
                for name, entry in entries.items()
            ]
            return
        known = [(name, shared[entry] if isinstance(entry, int) else entry) for name, entry in entries.items()]
        for start in range(0, len(known), ROW):
            yield [(name, node.describe()) for name, node in known[start : start + ROW]]

    kinds_now = scan_now  # the stats are at hand anyway

    def read_now(self, path: Path, need: int = 0, most: int = sys.maxsize) -> bytes:
        file = self._file(path)
        if need and file.mode & need != need:
            raise fail(errno.EACCES, path)
        if file.content.size > most:
            raise fail(errno.EFBIG, path)
        return file.content.join()

    def setattr_now(self, path: Path, attrs: Attrs) -> None:
        node = self._node(path)
        if isinstance(node, Link):
            if not attrs.follow and (attrs.mtime_ns is not None or attrs.atime_ns is not None):
                modified = node.mtime_ns if attrs.mtime_ns is None else attrs.mtime_ns
                accessed = node.atime_ns if attrs.atime_ns is None else attrs.atime_ns
                self._own_dir(path.parent).entries[path.name] = node.copy(modified, accessed)
            return
        if attrs.size is not None:
            if isinstance(node, Dir):
                raise fail(errno.EISDIR, path)
            if isinstance(node, Fifo):
                raise fail(errno.EINVAL, path)
            self._resize(self._own_file(path), attrs.size)
        owned = self._own_dir(path) if isinstance(node, Dir) else self._own_file(path)
        if attrs.mode is not None:
            owned.mode = attrs.mode & 0o7777
        if attrs.mtime_ns is not None:
            owned.mtime_ns = attrs.mtime_ns
        if attrs.atime_ns is not None:
            owned = self._own_used(path, owned)
            owned.atime_ns = attrs.atime_ns
        if isinstance(owned, File):
            owned.stat = owned.memo = owned.sum = None

    # ------------------------------------------------------------------------------------ saving and loading

    def dump(self) -> Iterator[tuple[Path, Node]]:
        """Every path below the root with its node, directories first; a file with several names comes once per name."""
        pending: list[tuple[Path, Dir]] = [(ROOT, self._root)]
        while pending:
            path, directory = pending.pop()
            for name, entry in directory.entries.items():
                node = self._shared[entry] if isinstance(entry, int) else entry
                below = path / name
                yield below, node
                if isinstance(node, Dir):
                    pending.append((below, node))

    def fifos(self) -> list[Path]:
        """The named pipes; a tree in which none was ever made is not looked through."""
        return [path for path, node in self.dump() if isinstance(node, Fifo)] if self._has_fifos else []

    def node(self, path: Path) -> Node:
        """Return the node itself for a commit; it must not be changed."""
        return self._node(path)

    def linked(self, number: int) -> File:
        """The file with several names that an entry's number stands for."""
        return self._shared[number]

    def adopt(self, root: Dir, shared: dict[int, File]) -> None:
        """Begin with a tree that someone else has built and that no resource owns."""
        self._root, self._shared, self._shared_token = root, shared, Token()

    def only(self, paths: Collection[Path]) -> RAMResource:
        """An independent tree of these paths, everything below them, and the directories that lead to them."""
        twin = self.fork()
        ways = {ROOT}
        for path in paths:
            while len(path) > 1:
                path = path.parent
                ways.add(path)
        pending = [] if ROOT in paths else [ROOT]
        while pending:
            here = pending.pop()
            directory = twin._own_dir(here)
            for name, entry in list(directory.entries.items()):
                below = here / name
                if below in paths:
                    continue
                if below in ways and isinstance(entry, Dir):
                    pending.append(below)
                    continue
                del directory.entries[name]
                directory.subdirs -= isinstance(entry, Dir)
        return twin

    def graft(self, path: Path, directory: Dir) -> None:
        """Put a directory that someone else has built, and that no resource owns, where nothing is yet."""
        parent = self._own_dir(path.parent)
        parent.entries[path.name] = directory
        parent.subdirs += 1

    @property
    def links(self) -> dict[int, File]:
        """The files with several names that are known, by number; it must not be changed."""
        return self._shared

    def take_over(self, other: RAMResource) -> None:
        """Take over the tree of a resource that is no longer used. Nothing is copied."""
        self.adopt(other._root, other._shared)
        self._has_fifos = other._has_fifos

    def put_now(self, path: Path, content: Blocks) -> None:
        """Create or replace a file at once; its parent must exist."""
        self._store(path, content, How.REPLACE, 0, None)

    # ------------------------------------------------------------------------------ finding and owning nodes

    def _node(self, path: Path) -> Node:
        node: Node = self._root
        if len(path) == 1:
            return node
        for name in path[1:].split("/"):
            if not isinstance(node, Dir):
                raise fail(errno.ELOOP if isinstance(node, Link) else errno.ENOTDIR, path)
            entry = node.entries.get(name)
            if entry is None:
                raise fail(errno.ENOENT, path)
            node = self._shared[entry] if isinstance(entry, int) else entry
        return node

    def _dir(self, path: Path) -> Dir:
        node = self._node(path)
        if not isinstance(node, Dir):
            raise fail(errno.ELOOP if isinstance(node, Link) else errno.ENOTDIR, path)
        return node

    def _file(self, path: Path) -> File:
        node = self._node(path)
        if not isinstance(node, File):
            raise fail(errno.ELOOP if isinstance(node, Link) else errno.EISDIR, path)
        if isinstance(node, Fifo):
            raise fail(errno.ENXIO, path)
        return node

    def _own_dir(self, path: Path) -> Dir:
        """The directory, copied along its path where it is shared; its memo and those above it are gone."""
        token = self._token
        node = self._root
        if node.token is not token:
            node = self._root = node.copy(token)
        node.memo = node.sum = None
        if len(path) == 1:
            return node
        for name in path[1:].split("/"):
            below = node.entries.get(name)
            if not isinstance(below, Dir):
                if below is None:
                    raise fail(errno.ENOENT, path)
                raise fail(errno.ELOOP if isinstance(below, Link) else errno.ENOTDIR, path)
            if below.token is not token:
                below = node.entries[name] = below.copy(token)
            below.memo = below.sum = None
            node = below
        return node

    def _own_file(self, path: Path) -> File:
        parent = self._own_dir(path.parent)
        entry = parent.entries.get(path.name)
        if isinstance(entry, int):
            file = self._shared[entry]
            if file.token is not self._token:
                self._own_table()[entry] = self._copied(file)
            return self._shared[entry]
        if entry is None:
            raise fail(errno.ENOENT, path)
        if not isinstance(entry, File):
            raise fail(errno.ELOOP if isinstance(entry, Link) else errno.EISDIR, path)
        if entry.token is not self._token:
            entry = parent.entries[path.name] = self._copied(entry)
        return entry

    def _own_used(self, path: Path, owned: File | Dir) -> UsedFile | UsedDir:
        """A node of ours with room for a time of access, in the place of one that has none."""
        if isinstance(owned, UsedFile | UsedDir):
            return owned
        twin = owned.used()
        if isinstance(twin, UsedFile):
            self._rehandle(owned, twin)
        if len(path) == 1:
            assert isinstance(twin, UsedDir)
            self._root = twin
            return twin
        entries = self._own_dir(path.parent).entries
        if isinstance(twin, UsedFile) and isinstance(entries[path.name], int):
            self._own_table()[twin.inode] = twin
        else:
            entries[path.name] = twin
        return twin

    def _copied(self, file: File) -> File:
        twin = file.copy(self._token)
        self._rehandle(file, twin)
        return twin

    def _rehandle(self, old: Node, new: File) -> None:
        for handle in self._handles:
            if handle.node is old:
                handle.node = new

    def _own_table(self) -> dict[int, File]:
        if self._shared_token is not self._token:
            self._shared = self._shared.copy()
            self._shared_token = self._token
        return self._shared

    # -------------------------------------------------------------------------------------- changing things

    def usage(self) -> tuple[int, int | None]:
        """Return the bytes of all files, and how many there may be at most."""
        if self.quota is not None:
            return self._used, self.quota
        return self._used, None if self._kept or self.keeper is not None else memory_share()

    def _fits(self, extra: int) -> bool:
        used, most = self.usage()
        return most is None or used + extra <= most

    def _check_quota(self, extra: int) -> None:
        if extra > 0 and not self._fits(extra):
            raise fail(errno.ENOSPC)

    def _store(self, path: Path, content: Blocks, how: How, at: int, if_version: str | None) -> Stat:
        if len(path) == 1:
            raise fail(errno.EISDIR, path)
        entry = self._dir(path.parent).entries.get(path.name)
        if if_version is not None:
            found = self._node(path) if entry is not None else None
            if not isinstance(found, File) or str(found.version) != if_version:
                raise fail(errno.ESTALE, path)
        if entry is not None and how in (How.CREATE, How.LINK):
            raise fail(errno.EEXIST, path)
        if entry is None:
            if how is How.PATCH:
                raise fail(errno.ENOENT, path)
            return self._create(path, content, how)
        file = self._own_file(path)
        if isinstance(file, Fifo):
            raise fail(errno.ENXIO, path)
        now = self._clock()
        if how is How.REPLACE:
            self._check_quota(content.size - file.content.size)
            self._used += content.size - file.content.size
            file.content = content
        else:
            offset = file.content.size if how is How.APPEND else at
            self._grow(file, offset + content.size)
            for block in content.read(0, None):
                file.content.write(offset, block)
                offset += len(block)
        file.changed(now)
        return file.describe()

    def _create(self, path: Path, content: Blocks, how: How) -> Stat:
        now = self._clock()
        node: File | Link
        if how is How.LINK:
            node = Link(content.join().decode("utf-8", "surrogateescape"), now)
        else:
            self._check_quota(content.size)
            node = File(self._token, content, 0o644, now)
            self._used += content.size
        parent = self._own_dir(path.parent)
        parent.entries[path.name] = node
        parent.mtime_ns = now
        return node.describe()

    def _drop(self, parent: Dir, name: str, path: Path) -> None:
        """Take one name away; the content goes with the last one."""
        entry = parent.entries.pop(name)
        if isinstance(entry, Dir):
            parent.subdirs -= 1
            return
        if isinstance(entry, Link):
            return
        if isinstance(entry, int):
            file = self._shared[entry]
            if file.token is not self._token:
                file = self._own_table()[entry] = self._copied(file)
            file.nlink -= 1
            file.stat = None
            if file.nlink:
                return
            self._own_table().pop(entry, None)
        else:
            file = entry
        self._used -= file.content.size
        for handle in self._handles:
            if handle.path == path:
                handle.path = None

    def _grow(self, file: File, size: int) -> None:
        extra = size - file.content.size
        if extra > 0:
            self._check_quota(extra)
            self._used += extra

    def _resize(self, file: File, size: int) -> None:
        self._check_quota(size - file.content.size)
        self._used += size - file.content.size
        file.content.resize(size)
        file.changed(self._clock())

    # ---------------------------------------------------------------------------------------------- digests


class RAMHandle:
    """An open file: it follows renames, survives removal, and always sees the current content."""

    __slots__ = ("node", "path", "tree")

    def __init__(self, tree: RAMResource, path: Path, node: File) -> None:
        self.tree = tree
        self.path: Path | None = path
        self.node = node

    def pread(self, offset: int, size: int) -> bytes:
        return self.node.content.pread(offset, size)

    def block(self, offset: int) -> bytes:
        return self.node.content.block(offset)

    def pwrite(self, offset: int, data: bytes) -> int:
        node = self._own()
        if self.path is not None:
            self.tree._grow(node, offset + len(data))
        node.content.write(offset, data)
        node.changed(self.tree._clock())
        return len(data)

    def truncate(self, size: int) -> None:
        node = self._own()
        if self.path is not None:
            self.tree._resize(node, size)
        else:
            node.content.resize(size)

    def stat(self) -> Stat:
        return self.node.describe()

    def close(self) -> None:
        self.tree._handles.discard(self)

    def _own(self) -> File:
        node = self.node
        if node.token is self.tree._token and node.memo is None and node.sum is None:
            return node
        if self.path is not None:
            self.node = self.tree._own_file(self.path)
        elif node.token is not self.tree._token:
            self.node = node.copy(self.tree._token)
        return self.node
