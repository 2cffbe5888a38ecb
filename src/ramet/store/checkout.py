"""A tree of the store as a real directory: what is there stays, what must not be there goes, all of it is verified."""

from __future__ import annotations

import os
import shutil
import stat as modes
from collections.abc import Callable
from dataclasses import dataclass, field

from ramet.store import trees
from ramet.store.ids import ChunkId, TreeId, chunk_id
from ramet.store.trees import DIR, LINK, Node

Read = Callable[[bytes], bytes]


@dataclass
class Receipt:
    """What a checkout did, and the id that the directory now has."""

    tree: TreeId
    written: int = 0
    kept: int = 0
    removed: int = 0
    bytes_written: int = 0
    problems: list[str] = field(default_factory=list)


def checkout(read: Read, tree: TreeId, target: str) -> Receipt:
    """Make `target` equal to the tree: files, modes, times, links, hard links, empty directories."""
    receipt = Receipt(tree)
    os.makedirs(target, exist_ok=True)
    _Checkout(read, receipt).directory(tree, target)
    return receipt


@dataclass
class _Checkout:
    read: Read
    receipt: Receipt
    first: dict[int, str] = field(default_factory=dict)

    def directory(self, tree: TreeId, folder: str) -> None:
        nodes = trees.decode(self.read(tree))
        wanted = {os.fsdecode(node.name): node for node in nodes}
        present: dict[str, os.stat_result] = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in wanted:
                    present[entry.name] = entry.stat(follow_symlinks=False)
                else:
                    self.remove(entry.path)
        for name, node in wanted.items():
            self.entry(node, f"{folder}/{name}", present.get(name))
        for name, node in wanted.items():
            if node.kind == DIR:
                path = f"{folder}/{name}"
                os.chmod(path, node.mode)
                os.utime(path, ns=(node.mtime_ns, node.mtime_ns))

    def entry(self, node: Node, path: str, found: os.stat_result | None) -> None:
        if node.kind == DIR:
            if found is not None and not modes.S_ISDIR(found.st_mode):
                self.remove(path)
                found = None
            if found is None:
                os.mkdir(path, 0o700)
            elif found.st_mode & 0o700 != 0o700:
                os.chmod(path, 0o700)
            self.directory(node.tree, path)
        elif node.kind == LINK:
            target = os.fsdecode(node.payload)
            if found is not None and modes.S_ISLNK(found.st_mode) and os.readlink(path) == target:
                self.receipt.kept += 1
                return
            if found is not None:
                self.remove(path)
            os.symlink(target, path)
            os.utime(path, ns=(node.mtime_ns, node.mtime_ns), follow_symlinks=False)
            self.receipt.written += 1
        else:
            self.file(node, path, found)

    def file(self, node: Node, path: str, found: os.stat_result | None) -> None:
        group = trees.split_group(node.group)[0]
        if group and group in self.first:
            if found is not None:
                self.remove(path)
            os.link(self.first[group], path)
            self.receipt.written += 1
            return
        if group:
            self.first[group] = path
        if (
            found is not None
            and modes.S_ISREG(found.st_mode)
            and (found.st_size, found.st_mtime_ns) == (node.size, node.mtime_ns)
            and found.st_nlink == 1
        ):
            if found.st_mode & 0o7777 != node.mode:
                os.chmod(path, node.mode)
            self.receipt.kept += 1
            return
        if found is not None:
            self.remove(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for identity in node.chunks:
                data = self.verified(identity, path)
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                self.receipt.bytes_written += len(data)
            os.fchmod(fd, node.mode)
            os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))
        finally:
            os.close(fd)
        self.receipt.written += 1

    def verified(self, identity: ChunkId, path: str) -> bytes:
        data = self.read(identity)
        if chunk_id(data) != identity:
            self.receipt.problems.append(path)
        return data

    def remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        self.receipt.removed += 1
