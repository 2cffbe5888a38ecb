"""Nodes of the memory tree and their digests. `ram.py` states the rules for changing them.

A time of access has no room in a plain node, because few are ever set: the `Used` nodes are the ones that have it.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Self, TypeVar

from ramet.backends.local.buffers import Blocks
from ramet.core.paths import encode
from ramet.core.stat import Kind, Stat

D = TypeVar("D", bound="Dir")
_numbers = itertools.count(2)  # inode numbers and versions: unique in the process, so forks never confuse them


class Token:
    """The tree that may change a node in place."""

    __slots__ = ()


class File:
    __slots__ = ("content", "inode", "memo", "mode", "mtime_ns", "nlink", "stat", "sum", "token", "version")
    atime_ns: int | None = None

    def __init__(self, token: Token, content: Blocks, mode: int, mtime_ns: int) -> None:
        self.token = token
        self.content = content
        self.mode = mode
        self.mtime_ns = mtime_ns
        self.inode = next(_numbers)
        self.version = self.inode
        self.nlink = 1
        self.stat: Stat | None = None
        self.memo: object = None
        self.sum: bytes | None = None

    def copy(self, token: Token) -> Self:
        twin = type(self).__new__(type(self))
        twin.token, twin.content, twin.mode, twin.mtime_ns = token, self.content.copy(), self.mode, self.mtime_ns
        twin.inode, twin.version, twin.nlink = self.inode, self.version, self.nlink
        twin.stat = twin.memo = twin.sum = None
        return twin

    def used(self) -> UsedFile:
        """The same file with room for a time of access; it takes the place of this one."""
        twin = UsedFile(self.token, self.content, self.mode, self.mtime_ns)
        twin.inode, twin.version, twin.nlink = self.inode, self.version, self.nlink
        return twin

    def changed(self, mtime_ns: int) -> None:
        self.mtime_ns = mtime_ns
        self.version = next(_numbers)
        self.stat = self.memo = self.sum = None

    def describe(self) -> Stat:
        found = self.stat
        if found is None:
            version = str(self.version)
            found = self.stat = Stat(
                Kind.FILE, self.content.size, self.mtime_ns, version, None, self.mode, None, self.inode, self.nlink,
                self.atime_ns,
            )  # fmt: skip
        return found


class UsedFile(File):
    __slots__ = ("atime_ns",)

    def __init__(self, token: Token, content: Blocks, mode: int, mtime_ns: int) -> None:
        super().__init__(token, content, mode, mtime_ns)
        self.atime_ns = None

    def copy(self, token: Token) -> Self:
        twin = super().copy(token)
        twin.atime_ns = self.atime_ns
        return twin


class Fifo(UsedFile):
    """A named pipe: a file that never has content. What flows through it is the VFS's."""

    __slots__ = ()

    def describe(self) -> Stat:
        return Stat(Kind.FIFO, 0, self.mtime_ns, None, None, self.mode, None, self.inode, self.nlink, self.atime_ns)


class Link:
    __slots__ = ("inode", "memo", "mode", "mtime_ns", "sum", "target")
    atime_ns: int | None = None

    def __init__(self, target: str, mtime_ns: int) -> None:
        self.target, self.mtime_ns, self.mode = target, mtime_ns, 0o777
        self.inode = next(_numbers)
        self.memo: object = None
        self.sum: bytes | None = None

    def copy(self, mtime_ns: int, atime_ns: int | None) -> Link:
        """The same link with other times: forks share links, so none is changed in place."""
        twin = Link(self.target, mtime_ns) if atime_ns is None else UsedLink(self.target, mtime_ns, atime_ns)
        twin.inode = self.inode
        return twin

    def describe(self) -> Stat:
        size = len(encode(self.target))
        return Stat(
            Kind.LINK, size, self.mtime_ns, str(self.inode), None, 0o777, self.target, self.inode, 1, self.atime_ns
        )


class UsedLink(Link):
    __slots__ = ("atime_ns",)

    def __init__(self, target: str, mtime_ns: int, atime_ns: int) -> None:
        super().__init__(target, mtime_ns)
        self.atime_ns = atime_ns


class Dir:
    __slots__ = ("entries", "inode", "memo", "mode", "mtime_ns", "subdirs", "sum", "token")
    atime_ns: int | None = None

    def __init__(self, token: Token, mode: int, mtime_ns: int) -> None:
        self.token = token
        self.entries: dict[str, Entry] = {}
        self.mode = mode
        self.mtime_ns = mtime_ns
        self.inode = next(_numbers)
        self.subdirs = 0
        self.memo: object = None
        self.sum: bytes | None = None

    def copy(self, token: Token) -> Dir:
        return self._filled(Dir.__new__(Dir), token, self.entries.copy())

    def _filled(self, twin: D, token: Token, entries: dict[str, Entry]) -> D:
        twin.token, twin.entries, twin.mode, twin.mtime_ns = token, entries, self.mode, self.mtime_ns
        twin.inode, twin.subdirs = self.inode, self.subdirs
        twin.memo = twin.sum = None
        return twin

    def used(self) -> UsedDir:
        """The same directory with room for a time of access; it takes the place of this one."""
        return self._filled(UsedDir.__new__(UsedDir), self.token, self.entries)

    def describe(self) -> Stat:
        links = 2 + self.subdirs
        return Stat(Kind.DIR, 4096, self.mtime_ns, None, None, self.mode, None, self.inode, links, self.atime_ns)


class UsedDir(Dir):
    __slots__ = ("atime_ns",)

    def copy(self, token: Token) -> UsedDir:
        twin = self._filled(UsedDir.__new__(UsedDir), token, self.entries.copy())
        twin.atime_ns = self.atime_ns
        return twin


Node = File | Link | Dir
Entry = Node | int  # an int is the number of a file with several names


def digest(top: Node, shared: Mapping[int, File]) -> bytes:
    """Of the names, modes and contents below a node; `shared` has the files with several names."""
    found: dict[Node, bytes] = {}
    for node in _unsummed(top, shared):
        if isinstance(node, File):
            hasher = hashlib.sha256((b"fifo %o\0" if isinstance(node, Fifo) else b"file %o\0") % node.mode)
            for block in node.content.read(0, None):
                hasher.update(block)
        elif isinstance(node, Link):
            hasher = hashlib.sha256(b"link\0" + encode(node.target))
        else:
            hasher = hashlib.sha256(b"dir %o\0" % node.mode)
            keep = True
            for name, entry in sorted(node.entries.items()):
                child = shared[entry] if isinstance(entry, int) else entry
                keep = keep and child is entry and child.sum is not None
                hasher.update(encode(name) + b"\0" + (child.sum or found[child]))
            if not keep:
                found[node] = hasher.digest()
                continue
        node.sum = hasher.digest()
    return top.sum or found[top]


def _unsummed(top: Node, shared: Mapping[int, File]) -> Iterator[Node]:
    """Nodes without a digest, children before their directories."""
    stack: list[tuple[Node, bool]] = [(top, False)]
    while stack:
        node, entered = stack.pop()
        if node.sum is not None:
            continue
        if entered or not isinstance(node, Dir):
            yield node
            continue
        stack.append((node, True))
        below = (shared[e] if isinstance(e, int) else e for e in node.entries.values())
        stack.extend((child, False) for child in below)
