"""A revision as a memory tree that is filled as it is looked at: opening costs nothing, reading fetches what is read.

The nodes are those of `RAMResource`, so a workspace on top of them forks in O(1) and commits what changed: an untouched
node still carries the memo that says it is in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ramet.backends.blocks import Blocks
from ramet.backends.ram import Dir, Entry, File, Link, RAMResource, Token
from ramet.core.paths import decode as decode_name
from ramet.store import trees
from ramet.store.commit import Memo
from ramet.store.ids import ChunkId, TreeId

Read = Callable[[bytes], bytes]
"""Gives an object of the store by its id."""


class LazyBlocks(Blocks):
    """The content of a file in the store. Reading a part fetches the chunks it touches; changing it fetches all."""

    __slots__ = ("_chunks", "_ends", "_read")

    def __init__(self, chunks: list[ChunkId], size: int, read: Read) -> None:
        super().__init__()
        self.size = size
        self._chunks: list[ChunkId] | None = chunks
        self._read = read

    def _load(self) -> None:
        if self._chunks is not None:
            chunks, self._chunks = self._chunks, None
            self._set([self._read(chunk) for chunk in chunks])

    def copy(self) -> Blocks:
        if self._chunks is not None:
            return LazyBlocks(self._chunks, self.size, self._read)
        return super().copy()

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        if self._chunks is None:
            yield from super().read(start, stop)
            return
        end = self.size if stop is None else min(stop, self.size)
        at = 0
        for chunk in self._chunks:
            if at >= end:
                return
            data = self._read(chunk)
            below = at + len(data)
            if below > start:
                yield data if at >= start and below <= end else data[max(0, start - at) : end - at]
            at = below

    def block(self, offset: int) -> bytes:
        if self._chunks is not None:
            return self.pread(offset, 1 << 20)
        return super().block(offset)

    def join(self) -> bytes:
        if self._chunks is not None:
            return b"".join(self.read())
        return super().join()

    def append(self, data: bytes) -> None:
        self._load()
        super().append(data)

    def write(self, offset: int, data: bytes) -> None:
        self._load()
        super().write(offset, data)

    def resize(self, size: int) -> None:
        if size:
            self._load()
        else:
            self._chunks = None
            self._set([])
            return
        super().resize(size)


class LazyDir(Dir):
    """A directory of the store, listed when it is first looked into."""

    __slots__ = ("_listed", "_load")

    def __init__(self, token: Token, mode: int, mtime_ns: int, load: Callable[[], dict[str, Entry]]) -> None:
        self._listed: dict[str, Entry] | None = None
        self._load = load
        super().__init__(token, mode, mtime_ns)
        self._listed = None

    @property
    def entries(self) -> dict[str, Entry]:
        if self._listed is None:
            self._listed = self._load()
            self.subdirs = sum(isinstance(entry, Dir) for entry in self._listed.values())
        return self._listed

    @entries.setter
    def entries(self, value: dict[str, Entry]) -> None:
        self._listed = value


class LinkTable(dict[int, File]):
    """Files with several names: those that were changed here, and behind them those of the store as they are met."""

    def __init__(self, met: dict[int, File], own: dict[int, File] | None = None) -> None:
        super().__init__(own or {})
        self._met = met

    def __missing__(self, number: int) -> File:
        return self._met[number]

    def copy(self) -> LinkTable:
        return LinkTable(self._met, self)


class LazyTree:
    """Builds the nodes of one tree of a store."""

    def __init__(self, read: Read, store: object) -> None:
        self._read, self._store = read, store
        self._token = Token()  # owned by no resource: whoever changes a node copies it first
        self._met: dict[int, File] = {}
        self._numbers: dict[int, int] = {}

    def resource(self, tree: TreeId) -> RAMResource:
        ram = RAMResource()
        ram.adopt(self._directory(tree, 0o755, 0), LinkTable(self._met))
        return ram

    def _directory(self, tree: TreeId, mode: int, mtime_ns: int) -> Dir:
        directory = LazyDir(self._token, mode, mtime_ns, lambda: self._entries(tree))
        directory.memo = Memo(self._store, tree)
        return directory

    def _entries(self, tree: TreeId) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for node in trees.decode(self._read(tree)):
            name = decode_name(node.name)
            if node.kind == trees.DIR:
                found[name] = self._directory(node.tree, node.mode, node.mtime_ns)
            elif node.kind == trees.LINK:
                found[name] = Link(decode_name(node.payload), node.mtime_ns)
            elif node.group:
                found[name] = self._linked(node)
            else:
                found[name] = self._file(node)
        return found

    def _linked(self, node: trees.Node) -> int:
        """The number of a file with several names; whichever name is met first makes it."""
        group, names = trees.split_group(node.group)
        number = self._numbers.get(group)
        if number is None:
            file = self._file(node)
            file.nlink = names
            number = self._numbers[group] = file.inode
            self._met[number] = file
        return number

    def _file(self, node: trees.Node) -> File:
        file = File(self._token, LazyBlocks(node.chunks, node.size, self._read), node.mode, node.mtime_ns)
        file.memo = Memo(self._store, node.payload)
        return file
