"""`Nodes`: the files that the kernel knows, by number: names below a directory, as in the tree."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.stat import Kind
from ramet.native.fuse.messages import ROOT_NODE

if TYPE_CHECKING:
    from ramet.native.fuse.draft import Draft

_INODES: Final = (1 << 63) - 1


class Node:
    """A name that the kernel holds. It stays until the kernel has forgotten it and nothing lies below it."""

    __slots__ = ("children", "draft", "inode", "kind", "lookups", "name", "number", "parent")

    def __init__(self, number: int, parent: Node | None, name: str, kind: Kind, inode: int) -> None:
        self.number, self.parent, self.name, self.kind, self.inode = number, parent, name, kind, inode
        self.lookups = 0
        self.children: dict[str, Node] = {}
        self.draft: Draft | None = None
        """What programs have written and the mount has not."""


class Nodes:
    """The nodes of one mount; `top` is its prefix in the workspace."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self.root = Node(ROOT_NODE, None, "", Kind.DIR, _inode(top))
        self._by_number = {ROOT_NODE: self.root}
        self._next = ROOT_NODE + 1

    def get(self, number: int) -> Node:
        node = self._by_number.get(number)
        if node is None:
            raise fail(errno.ESTALE)
        return node

    def path(self, node: Node) -> Path:
        """Return where a node is in the workspace; ENOENT once its name is gone."""
        names: list[str] = []
        while node.parent is not None:
            names.append(node.name)
            node = node.parent
        if node is not self.root:
            raise fail(errno.ENOENT)
        path = self._top
        for name in reversed(names):
            path = path / name
        return path

    def look_up(self, parent: Node, name: str, kind: Kind) -> Node:
        """Return the node of a name and count that the kernel holds it once more."""
        found = parent.children.get(name)
        if found is not None and found.kind is not kind:
            self.detach(found)
            found = None
        if found is None:
            found = Node(self._next, parent, name, kind, inode_of(self.path(parent) / name))
            self._next += 1
            parent.children[name] = self._by_number[found.number] = found
        found.lookups += 1
        return found

    def forget(self, number: int, count: int) -> None:
        node = self._by_number.get(number)
        if node is not None:
            node.lookups -= count
            self.drop(node)

    def drop(self, node: Node) -> None:
        """Remove nodes upwards that nothing needs."""
        while node.lookups <= 0 and not node.children and node.draft is None and node.number != ROOT_NODE:
            self._by_number.pop(node.number, None)
            parent, node.parent = node.parent, None
            if parent is None:
                return
            if parent.children.get(node.name) is node:
                del parent.children[node.name]
            node = parent

    def detach(self, node: Node) -> None:
        """Take the name from a node: the file was removed or replaced."""
        parent = node.parent
        if parent is not None and parent.children.get(node.name) is node:
            del parent.children[node.name]
        orphan = Node(0, None, "", Kind.DIR, 0)  # its path leads nowhere
        node.parent = orphan
        if parent is not None:
            self.drop(parent)

    def moved(self, parent: Node, name: str, target: Node, target_name: str) -> None:
        """Follow a rename."""
        replaced = target.children.get(target_name)
        node = parent.children.get(name)
        if replaced is not None and replaced is not node:
            self.detach(replaced)
        if node is not None:
            del parent.children[name]
            node.parent, node.name = target, target_name
            target.children[target_name] = node
            self.drop(parent)


def inode_of(path: Path) -> int:
    """Return the number that programs see for a path: stable while this process lives."""
    return _inode(path)


def _inode(path: str) -> int:
    return hash(path) & _INODES | 1
