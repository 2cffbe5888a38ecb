"""Writing trees into a store: memory by what changed since the last commit, directories by what their stats say.

Rules that this file keeps:
- A node's memo says that its content is in this store. It is set only after everything it stands for is durable.
- A file whose time is not safely in the past when it is read is read again next time: a change within the clock's
  granularity would not show in its stat.
"""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ramet.backends.disk import TEMP_PREFIX
from ramet.backends.ram import Dir, File, Link, RAMResource
from ramet.core.paths import ROOT
from ramet.core.paths import encode as encode_name
from ramet.store.chunking import WHOLE, chunks
from ramet.store.ids import TreeId, chunk_id, tree_id
from ramet.store.packs import PackWriter
from ramet.store.trees import DIR, FILE, LINK, Node, encode, hard_group

RACY_NS = 2_000_000_000
Progress = Callable[[int, int], None]
"""Told files and bytes seen so far."""


class Memo(NamedTuple):
    """What a node of a memory tree became in one particular store."""

    store: object
    payload: bytes


@dataclass
class Committed:
    """A tree that was written, and the memos to set once it is durable."""

    tree: TreeId
    memos: list[tuple[File | Dir, Memo]] = field(default_factory=list)
    files: int = 0

    def settle(self) -> None:
        for node, memo in self.memos:
            node.memo = memo


def commit_ram(ram: RAMResource, writer: PackWriter, store: object) -> Committed:
    """The tree of a memory resource. Only nodes that changed since their last commit to this store are looked at."""
    top = ram.node(ROOT)
    assert isinstance(top, Dir)
    done = Committed(TreeId(b""))
    trees: dict[Dir, bytes] = {}
    kept: set[Dir] = set()
    groups: dict[int, int] = {}
    stack: list[tuple[Dir, bool]] = [(top, False)]
    while stack:
        node, entered = stack.pop()
        known = _known(node, store)
        if known is not None:
            trees[node] = known
            kept.add(node)
            continue
        if not entered:
            stack.append((node, True))
            stack.extend((child, False) for child in node.entries.values() if isinstance(child, Dir))
            continue
        nodes: list[Node] = []
        keep = True
        for name, entry in node.entries.items():
            child = ram.linked(entry) if isinstance(entry, int) else entry
            keep = keep and not isinstance(entry, int)
            if isinstance(child, Dir):
                nodes.append(Node(encode_name(name), DIR, child.mode, child.mtime_ns, 0, trees[child]))
                keep = keep and (
                    child.memo is not None or any(child is n for n, _ in done.memos[-1:]) or child in trees
                )
            elif isinstance(child, Link):
                nodes.append(Node(encode_name(name), LINK, 0o777, child.mtime_ns, 0, encode_name(child.target)))
            else:
                group = 0
                if isinstance(entry, int):
                    group = hard_group(groups.setdefault(child.inode, len(groups) + 1), child.nlink)
                payload = _file(child, writer, store, done)
                nodes.append(
                    Node(encode_name(name), FILE, child.mode, child.mtime_ns, child.content.size, payload, group)
                )
        encoded = encode(nodes)
        identity = tree_id(encoded)
        writer.add(identity, encoded)
        trees[node] = identity
        if keep:
            kept.add(node)
            done.memos.append((node, Memo(store, identity)))
    done.tree = TreeId(trees[top])
    return done


def _known(node: File | Dir, store: object) -> bytes | None:
    memo = node.memo
    return memo.payload if isinstance(memo, Memo) and memo.store is store else None


def _file(node: File, writer: PackWriter, store: object, done: Committed) -> bytes:
    known = _known(node, store)
    if known is not None:
        return known
    done.files += 1
    if node.content.size <= WHOLE:
        data = node.content.join()
        payload: bytes = chunk_id(data) if data else b""
        if data:
            writer.add(payload, data)
    else:
        payload = b"".join(_stored(node.content.read(0, None), node.content.size, writer))
    done.memos.append((node, Memo(store, payload)))
    return payload


def _stored(blocks: Iterator[bytes], size: int, writer: PackWriter) -> Iterator[bytes]:
    if size == 0:
        return
    for chunk in chunks(blocks, size):
        identity = chunk_id(chunk)
        writer.add(identity, chunk)
        yield identity


# --------------------------------------------------------------------------------------------------- directories


class Seen(NamedTuple):
    """What a file looked like when it was last read, and what was read."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    payload: bytes


StatCache = dict[str, Seen]


def commit_directory(
    root: str,
    writer: PackWriter,
    cache: StatCache,
    *,
    excluded: Callable[[str], bool] = lambda _: False,
    progress: Progress | None = None,
    now: Callable[[], int] = time.time_ns,
) -> TreeId:
    """The tree of a host directory. Files whose stat has not changed are not opened; `cache` is updated in place."""
    walk = _Walk(writer, cache, excluded, progress, now())
    identity = walk.directory(root, "")
    for gone in [path for path in cache if path not in walk.seen]:
        del cache[gone]
    return identity


@dataclass
class _Walk:
    writer: PackWriter
    cache: StatCache
    excluded: Callable[[str], bool]
    progress: Progress | None
    began: int
    seen: set[str] = field(default_factory=set)
    groups: dict[tuple[int, int], int] = field(default_factory=dict)
    files: int = 0
    size: int = 0

    def directory(self, folder: str, relative: str) -> TreeId:
        nodes: list[Node] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                path = f"{relative}/{entry.name}"
                if entry.name.startswith(TEMP_PREFIX) or self.excluded(path):
                    continue
                info = entry.stat(follow_symlinks=False)
                node = self.node(entry, path, info)
                if node is not None:
                    nodes.append(node)
        encoded = encode(nodes)
        identity = tree_id(encoded)
        self.writer.add(identity, encoded)
        return identity

    def node(self, entry: os.DirEntry[str], path: str, info: os.stat_result) -> Node | None:
        name, kind, mode = os.fsencode(entry.name), modes.S_IFMT(info.st_mode), info.st_mode & 0o7777
        if kind == modes.S_IFREG:
            group = 0
            if info.st_nlink > 1:
                number = self.groups.setdefault((info.st_dev, info.st_ino), len(self.groups) + 1)
                group = hard_group(number, info.st_nlink)
            return Node(name, FILE, mode, info.st_mtime_ns, info.st_size, self.payload(entry.path, path, info), group)
        if kind == modes.S_IFDIR:
            return Node(name, DIR, mode, info.st_mtime_ns, 0, self.directory(entry.path, path))
        if kind == modes.S_IFLNK:
            return Node(name, LINK, 0o777, info.st_mtime_ns, 0, os.fsencode(os.readlink(entry.path)))
        return None

    def payload(self, host: str, path: str, info: os.stat_result) -> bytes:
        self.seen.add(path)
        self.files += 1
        self.size += info.st_size
        if self.progress is not None and self.files % 256 == 0:
            self.progress(self.files, self.size)
        old = self.cache.get(path)
        if old is not None and (old.size, old.mtime_ns, old.ctime_ns, old.inode) == (
            info.st_size,
            info.st_mtime_ns,
            info.st_ctime_ns,
            info.st_ino,
        ):
            return old.payload
        payload = b"".join(_stored(_host_blocks(host), info.st_size, self.writer)) if info.st_size else b""
        if max(info.st_mtime_ns, info.st_ctime_ns) < self.began - RACY_NS:
            self.cache[path] = Seen(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, payload)
        else:
            self.cache.pop(path, None)
        return payload


def _host_blocks(path: str) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while block := os.read(fd, WHOLE):
            yield block
    finally:
        os.close(fd)
