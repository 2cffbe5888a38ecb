"""`LazyTree`: a stored tree as a memory resource that loads directories and content on access.

The nodes are those of `RAMResource`, so a workspace on top of them forks in O(1) and commits only what changed: an
untouched node keeps the memo with its stored id.

- A directory is listed once and content loaded once, even by concurrent readers: nodes have an identity.
- A failed load leaves the node unloaded, and can be retried.
- On a remote store no verb blocks the event loop: a verb first loads what it needs in a thread (`RemoteTree`). A local
  store needs no thread.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import accumulate
from typing import Final

from ramet.backends.local.buffers import Blocks
from ramet.backends.local.ram import RAMHandle, RAMResource
from ramet.backends.local.ram_nodes import Dir, Entry, File, Link, Node, Token
from ramet.concurrency.fork import renew_after_fork
from ramet.core.errors import Unsupported
from ramet.core.paths import Path
from ramet.core.paths import decode as decode_name
from ramet.core.resource import Data, How
from ramet.core.stat import Attrs, Stat
from ramet.store.commit.memory_tree import Memo
from ramet.store.model import trees
from ramet.store.model.ids import ChunkId, TreeId
from ramet.store.packs.reader import PackReader

UNCACHED_CHUNKS: Final = 32
"""Chunks of one file from which on a read bypasses the block cache."""
_publishing = threading.Lock()
renew_after_fork(sys.modules[__name__], _publishing=threading.Lock)
"""Held while loaded data becomes nodes or blocks; never during a fetch."""


class LazyBlocks(Blocks):
    """Content of a stored file. Reading a range loads its chunks; changing it loads all."""

    __slots__ = ("_chunks", "_ends", "_packs", "_store")

    def __init__(self, chunks: list[ChunkId], size: int, packs: PackReader, store: object = None) -> None:
        super().__init__()
        self.size, self._store = size, store
        self._chunks: list[ChunkId] | None = chunks
        self._ends: list[int] | None = None
        self._packs = packs

    @property
    def is_loaded(self) -> bool:
        return self._chunks is None

    def load(self) -> None:
        """Load the whole content."""
        chunks = self._chunks
        if chunks is None:
            return
        blocks = [self._packs.read(chunk) for chunk in chunks]
        with _publishing:
            if self._chunks is chunks:
                self._set(blocks)
                self._chunks = None

    def copy(self) -> Blocks:
        chunks = self._chunks
        if chunks is not None:
            return LazyBlocks(chunks, self.size, self._packs, self._store)
        return super().copy()

    def payload(self, store: object) -> bytes | None:
        chunks = self._chunks
        return None if chunks is None or store is None or store is not self._store else b"".join(chunks)

    def pieces(self, start: int, stop: int | None) -> list[tuple[ChunkId, int, int]] | None:
        """Return the chunks of a range and the part of each; None when the content is loaded."""
        chunks = self._chunks
        if chunks is None:
            return None
        end = self.size if stop is None else min(stop, self.size)
        if start >= end:
            return []
        if len(chunks) == 1:
            return [(chunks[0], start, end)]
        if self._ends is None:
            places = self._packs.places(set(chunks))
            self._ends = list(accumulate(places[chunk].size for chunk in chunks))
        ends = self._ends
        found: list[tuple[ChunkId, int, int]] = []
        for number in range(bisect_right(ends, start), len(chunks)):
            begin = ends[number - 1] if number else 0
            if begin >= end:
                break
            found.append((chunks[number], max(0, start - begin), min(end, ends[number]) - begin))
        return found

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        pieces = self.pieces(start, stop)
        if pieces is None:
            yield from super().read(start, stop)
            return
        chunks = (chunk for chunk, _, _ in pieces)
        found = map(self._packs.read, chunks) if len(pieces) < UNCACHED_CHUNKS else self._packs.stream(chunks)
        for data, (_, begin, end) in zip(found, pieces, strict=True):
            yield data if end - begin == len(data) else data[begin:end]

    def block(self, offset: int) -> bytes:
        if self._chunks is not None:
            return self.pread(offset, 1 << 20)
        return super().block(offset)

    def join(self) -> bytes:
        if self._chunks is not None:
            return b"".join(self.read())
        return super().join()

    def append(self, data: bytes) -> None:
        self.load()
        super().append(data)

    def write(self, offset: int, data: bytes) -> None:
        self.load()
        super().write(offset, data)

    def resize(self, size: int) -> None:
        if size:
            self.load()
        else:
            self._chunks = None
            self._set([])
            return
        super().resize(size)


Fetch = Callable[[TreeId], list[trees.Node]]
Build = Callable[[list[trees.Node]], dict[str, Entry]]


class LazyDir(Dir):
    """A directory of the store, listed when it is first looked into."""

    __slots__ = ("_build", "_fetch", "_listed", "tree")

    def __init__(self, token: Token, mode: int, mtime_ns: int, tree: TreeId, fetch: Fetch, build: Build) -> None:
        self._listed: dict[str, Entry] | None = None
        self._fetch, self._build = fetch, build
        self.tree = tree
        super().__init__(token, mode, mtime_ns)
        self._listed = None

    @property
    def is_listed(self) -> bool:
        return self._listed is not None

    @property
    def entries(self) -> dict[str, Entry]:
        listed = self._listed
        if listed is None:
            nodes = self._fetch(self.tree)
            with _publishing:
                listed = self._listed
                if listed is None:
                    listed = self._build(nodes)
                    self.subdirs = sum(isinstance(entry, Dir) for entry in listed.values())
                    self._listed = listed
        return listed

    @entries.setter
    def entries(self, value: dict[str, Entry]) -> None:
        self._listed = value


class LinkTable(dict[int, File]):
    """Hard-linked files: those changed here, and behind them the stored ones as they are loaded."""

    def __init__(self, met: dict[int, File], own: dict[int, File] | None = None) -> None:
        super().__init__(own or {})
        self._met = met

    def __bool__(self) -> bool:
        return bool(len(self) or self._met)

    def __missing__(self, number: int) -> File:
        return self._met[number]

    def copy(self) -> LinkTable:
        return LinkTable(self._met, self)


class RemoteTree(RAMResource):
    """A tree of a remote store. Every verb first loads what it needs in a thread."""

    packs: PackReader

    @property
    def kinds_now(self) -> None:  # type: ignore[override]
        """Absent, so that this resource is not `Quick`."""
        raise AttributeError("kinds_now")

    def fork(self) -> RemoteTree:
        twin = RemoteTree.__new__(RemoteTree)
        twin.__dict__.update(super().fork().__dict__)
        twin.packs = self.packs
        return twin

    async def _ready(self, path: Path, *, inside: bool = False, content: bool = False) -> None:
        """Load the directories on a path, and with `inside` or `content` what is at its end."""
        node: Node = self._root
        for name in path[1:].split("/") if len(path) > 1 else ():
            if not isinstance(node, Dir):
                return  # the verb reports the error
            entry = (await self._entries(node)).get(name)
            if entry is None:
                return
            node = self._shared[entry] if isinstance(entry, int) else entry
        if inside and isinstance(node, Dir):
            await self._entries(node)
        elif content and isinstance(node, File):
            blocks = node.content
            if isinstance(blocks, LazyBlocks) and not blocks.is_loaded:
                await asyncio.to_thread(blocks.load)

    async def _entries(self, node: Dir) -> dict[str, Entry]:
        if isinstance(node, LazyDir) and not node.is_listed and self.packs.cached(node.tree) is None:
            await asyncio.to_thread(getattr, node, "entries")
        return node.entries

    async def stat(self, path: Path) -> Stat:
        await self._ready(path)
        return await super().stat(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        await self._ready(path, inside=True)
        async for entry in super().scan(path):
            yield entry

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        await self._ready(path)
        content = self._file(path).content
        if isinstance(content, LazyBlocks) and not content.is_loaded:
            pieces = await asyncio.to_thread(content.pieces, start, stop)
            if pieces is not None:
                for chunk, begin, end in pieces:
                    data = self.packs.cached(chunk)
                    if data is None:
                        data = await asyncio.to_thread(self.packs.read, chunk)
                    yield data if end - begin == len(data) else data[begin:end]
                return
        for block in content.read(start, stop):
            yield block

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        await self._ready(path, content=how not in (How.REPLACE, How.CREATE))
        return await super().write(path, data, how, at=at, if_version=if_version)

    async def mkdir(self, path: Path) -> None:
        await self._ready(path.parent, inside=True)
        await super().mkdir(path)

    async def remove(self, path: Path) -> None:
        await self._ready(path, inside=True)
        await super().remove(path)

    async def rename(self, src: Path, dst: Path) -> None:
        await self._ready(src)
        await self._ready(dst.parent, inside=True)
        await self._ready(dst, inside=True)
        await super().rename(src, dst)

    async def copy(self, src: Path, dst: Path) -> None:
        await self._ready(src)
        await self._ready(dst.parent, inside=True)
        await super().copy(src, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        # Empty attributes announce a write into the file.
        await self._ready(path, content=attrs.size is not None or attrs == Attrs())
        await super().setattr(path, attrs)

    async def link(self, src: Path, dst: Path) -> None:
        await self._ready(src)
        await self._ready(dst.parent, inside=True)
        await super().link(src, dst)

    async def mkfifo(self, path: Path) -> None:
        await self._ready(path.parent, inside=True)
        await super().mkfifo(path)

    def open(self, path: Path, *, write: bool) -> RAMHandle:
        """Open a loaded file; other files are read as streams."""
        content = self._file(path).content
        if isinstance(content, LazyBlocks) and not content.is_loaded:
            raise Unsupported(f"{path} is not here yet")
        return super().open(path, write=write)


class LazyTree:
    """Builds the nodes of one stored tree."""

    def __init__(self, packs: PackReader, store: object) -> None:
        self._packs, self._store = packs, store
        self._token = Token()  # owned by no resource: nodes are copied before they change
        self._met: dict[int, File] = {}
        self._numbers: dict[int, int] = {}

    def resource(self, tree: TreeId) -> RAMResource:
        ram: RAMResource
        if self._packs.remote:
            ram = remote = RemoteTree()
            remote.packs = self._packs
        else:
            ram = RAMResource()
        ram.adopt(self.directory(tree, 0o755, 0), LinkTable(self._met))
        return ram

    def directory(self, tree: TreeId, mode: int, mtime_ns: int) -> Dir:
        """A directory of the store, listed when it is first looked into."""
        directory = LazyDir(self._token, mode, mtime_ns, tree, self._nodes, self._entries)
        directory.memo = Memo(self._store, tree)
        return directory

    def _nodes(self, tree: TreeId) -> list[trees.Node]:
        return trees.decode(self._packs.read(tree))

    def _entries(self, nodes: list[trees.Node]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for node in nodes:
            name = decode_name(node.name)
            if node.kind == trees.DIR:
                found[name] = self.directory(node.tree, node.mode, node.mtime_ns)
            elif node.kind == trees.LINK:
                found[name] = Link(decode_name(node.payload), node.mtime_ns)
            elif node.group:
                found[name] = self._linked(node)
            else:
                found[name] = self._file(node)
        return found

    def _linked(self, node: trees.Node) -> int:
        """Return the number of a hard-linked file, created by its first loaded name."""
        group, names = trees.split_group(node.group)
        number = self._numbers.get(group)
        if number is None:
            file = self._file(node)
            file.nlink = names
            number = self._numbers[group] = file.inode
            self._met[number] = file
        return number

    def _file(self, node: trees.Node) -> File:
        file = File(self._token, LazyBlocks(node.chunks, node.size, self._packs, self._store), node.mode, node.mtime_ns)
        file.memo = Memo(self._store, node.payload)
        return file
