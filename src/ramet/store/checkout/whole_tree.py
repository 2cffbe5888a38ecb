"""The whole tree of a revision: all mounts joined into one directory.

The joined directories exist in memory only; everything below a mount is the mount's own tree. Equal mounts give
an equal id. An empty mount that the workspace itself created (`/tmp`, the home directory) leaves no directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ramet.store.model import trees
from ramet.store.model.ids import TreeId, tree_id
from ramet.store.model.revisions import Revision
from ramet.store.model.trees import DIR, Node

Read = Callable[[bytes], bytes]
DIRECTORY_MODE: Final = 0o755
"""Mode of a directory that leads to a mount and is in no tree."""


@dataclass(frozen=True)
class WholeTree:
    """A tree, and its directories that are in no pack, by id."""

    tree: TreeId
    made: Mapping[bytes, bytes]
    prefixes: tuple[bytes, ...] = ()
    """The mounts below `/`, longest first. Numbers of hard-linked files count within a mount."""


def whole_tree(read: Read, revision: Revision) -> WholeTree:
    """Join the trees of all mounts that have content in the store."""
    made: dict[bytes, bytes] = {trees.EMPTY_ID: trees.EMPTY}

    def load(key: bytes) -> bytes:
        found = made.get(key)
        return read(key) if found is None else found

    def place(tree: TreeId, parts: list[bytes], mounted: TreeId) -> TreeId:
        if not parts:
            return mounted
        nodes = {node.name: node for node in trees.decode(load(tree))}
        name = parts[0]
        old = nodes.get(name)
        if old is None or old.kind != DIR:
            old = Node(name, DIR, DIRECTORY_MODE, 0, 0, trees.EMPTY_ID)
        nodes[name] = old._replace(payload=place(old.tree, parts[1:], mounted))
        encoded = trees.encode(nodes.values())
        identity = tree_id(encoded)
        made[identity] = encoded
        return identity

    whole: TreeId = trees.EMPTY_ID
    prefixes: list[bytes] = []
    for mount in sorted(revision.mounts, key=lambda m: (m.prefix.count("/"), m.prefix)):
        if mount.tree is None or (mount.scratch and mount.tree == trees.EMPTY_ID):
            continue
        prefix = mount.prefix.encode("utf-8", "surrogateescape").strip(b"/")
        whole = place(whole, prefix.split(b"/") if prefix else [], mount.tree)
        if prefix:
            prefixes.append(b"/" + prefix)
    return WholeTree(whole, made, tuple(sorted(prefixes, key=len, reverse=True)))


def mounts_without_content(revision: Revision) -> tuple[str, ...]:
    """Return the prefixes of mounts whose files are elsewhere: a revision has only their configuration."""
    return tuple(sorted(mount.prefix for mount in revision.mounts if mount.tree is None))
