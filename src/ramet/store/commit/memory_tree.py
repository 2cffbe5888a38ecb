"""Commit a memory tree: write only the nodes that changed since the last commit.

The memo of a node records its id in a store. It is set only after everything below the node is durable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import Dir, Fifo, File, Link
from ramet.core.paths import ROOT
from ramet.core.paths import encode as encode_name
from ramet.core.progress import EVERY, Progress, silent
from ramet.store.commit.commit_filter import KEEP_ALL, CommitFilter
from ramet.store.commit.ignore_rules import HEAD
from ramet.store.model.chunker import WHOLE, chunks
from ramet.store.model.ids import TreeId, chunk_id, tree_id
from ramet.store.model.trees import DIR, FILE, LINK, Node, encode, hard_group
from ramet.store.packs.writer import PackWriter


class Memo(NamedTuple):
    """The id of a memory node in one store."""

    store: object
    payload: bytes
    name: str = ""
    node: Node | None = None
    """The tree entry of a file with this name."""
    under: tuple[str, ...] | None = None
    """Of a directory: the ignore patterns under which nothing below it was left out while it had this name; None when
    it was loaded from a store and never filtered."""


@dataclass
class TreeCommit:
    """A written tree, and the memos to set once it is durable."""

    tree: TreeId
    memos: list[tuple[File | Dir, Memo]] = field(default_factory=list)
    files: int = 0
    size: int = 0
    withheld: list[str] = field(default_factory=list)
    """Paths that the ignore rules left out."""

    def settle(self) -> None:
        for node, memo in self.memos:
            node.memo = memo


def unchanged_tree(ram: RAMResource, store: object) -> TreeId | None:
    """Return the stored tree of a memory resource that has not changed since its commit; None otherwise."""
    known = _stored_payload(ram.node(ROOT), store)
    return None if known is None else TreeId(known)


def commit_memory(
    ram: RAMResource,
    writer: PackWriter,
    store: object,
    rules: CommitFilter = KEEP_ALL,
    *,
    progress: Progress = silent,
    trust: bool = True,
) -> TreeCommit:
    """Write the tree of a memory resource. Only nodes that changed since their last commit to this store are read.

    Without `trust` all are: what earlier commits wrote may have been collected.
    """
    withheld, scan = rules.ignore, rules.check
    known_to = store if trust else None
    top = ram.node(ROOT)
    assert isinstance(top, Dir)
    if ram.links:
        _forget_linked(top)
    done = TreeCommit(TreeId(b""))
    trees: dict[Dir, bytes] = {}
    fleeting: set[Dir] = set()
    """Directories with hard links below them, which must be written by every commit."""
    numbers: dict[int, int] | None = None
    patterns = None if withheld is None else withheld.patterns

    def is_known(node: Dir, name: str) -> bool:
        """Return whether a directory is unchanged and needs no new filtering."""
        memo = node.memo
        if type(memo) is not Memo or memo.store is not known_to:
            return False
        if patterns is not None and (memo.under != patterns or memo.name != name):
            return False
        trees[node] = memo.payload
        return True

    stack: list[tuple[Dir, bool, str]] = [] if is_known(top, "") else [(top, False, "")]
    while stack:
        node, entered, path = stack.pop()
        drop: Collection[str] = ()
        if withheld is not None:
            drop = withheld.matching(path[path.rfind("/") + 1 :], node.entries, partial(first_bytes, ram, node.entries))
        memo = node.memo
        if type(memo) is Memo and memo.store is known_to and not drop and memo.under in (None, patterns):
            trees[node] = memo.payload
            continue
        if not entered:
            stack.append((node, True, path))
            stack.extend(
                (child, False, f"{path}/{name}")
                for name, child in node.entries.items()
                if isinstance(child, Dir) and name not in drop and not is_known(child, name)
            )
            continue
        nodes: list[Node] = []
        keep = True
        for name, entry in node.entries.items():
            if name in drop:
                done.withheld.append(f"{path}/{name}")
                keep = False  # reported by every commit
                continue
            if type(entry) is File:
                memo = entry.memo
                if type(memo) is Memo and memo.name == name and memo.store is known_to and memo.node is not None:
                    nodes.append(memo.node)
                    continue
            if isinstance(entry, Dir):
                nodes.append(Node(encode_name(name), DIR, entry.mode, entry.mtime_ns, 0, trees[entry]))
                keep = keep and entry not in fleeting
            elif isinstance(entry, Link):
                nodes.append(Node(encode_name(name), LINK, 0o777, entry.mtime_ns, 0, encode_name(entry.target)))
            else:
                child, group = entry, 0
                if isinstance(child, int):
                    if numbers is None:
                        numbers = _number_hard_links(ram, top, known_to)
                    keep = False
                    child = ram.linked(child)
                    group = hard_group(numbers[child.inode], child.nlink) if child.nlink > 1 else 0
                if isinstance(child, Fifo):
                    continue  # a pipe has no content
                payload = _stored_payload(child, known_to)
                if payload is None and scan is None:
                    payload = child.content.payload(known_to)  # copied from the store, or uploaded as a stream
                if payload is None:
                    if scan is not None:
                        writer.check_content = partial(scan, f"{path}/{name}")
                    payload = _file(child, writer, store, done)
                    writer.check_content = None
                    if done.files % EVERY == 0:
                        progress("commit", done.files, None)
                made = Node(encode_name(name), FILE, child.mode, child.mtime_ns, child.content.size, payload, group)
                nodes.append(made)
                if child is entry:
                    done.memos.append((child, Memo(store, payload, name, made)))
        encoded = encode(nodes)
        identity = tree_id(encoded)
        writer.add_tree(identity, encoded)
        trees[node] = identity
        if keep:
            done.memos.append((node, Memo(store, identity, path[path.rfind("/") + 1 :], under=patterns)))
        else:
            fleeting.add(node)
    done.tree = TreeId(trees[top])
    progress("commit", done.files, done.files)
    return done


def first_bytes(ram: RAMResource, entries: Mapping[str, object], name: str) -> bytes:
    """Return the start of a file in memory; nothing for another kind of entry."""
    entry = entries.get(name)
    file = ram.linked(entry) if isinstance(entry, int) else entry
    return file.content.pread(0, HEAD) if isinstance(file, File) else b""


def _forget_linked(top: Dir) -> None:
    """Clear the memos of directories with hard links below them.

    The number of a hard-linked file is unique in the whole tree, and a change under one name must reach all others,
    also in directories that are not loaded yet.
    """
    linked: set[Dir] = set()
    order = [top]
    for node in order:  # grows during the loop: parents come before their children
        order.extend(entry for entry in node.entries.values() if isinstance(entry, Dir))
    for node in reversed(order):
        if any(isinstance(entry, int) or entry in linked for entry in node.entries.values()):
            linked.add(node)
            node.memo = None


def _number_hard_links(ram: RAMResource, top: Dir, store: object) -> dict[int, int]:
    """Number the hard-linked files in the order of a walk by name."""
    found: dict[int, int] = {}
    stack: list[Dir | int] = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            if ram.linked(node).nlink > 1:
                found.setdefault(node, len(found) + 1)
        elif _stored_payload(node, store) is None:
            inside = [
                (encode_name(name), entry) for name, entry in node.entries.items() if isinstance(entry, Dir | int)
            ]
            inside.sort(key=lambda pair: pair[0], reverse=True)
            stack.extend(entry for _, entry in inside)
    return found


def _stored_payload(node: object, store: object) -> bytes | None:
    memo = getattr(node, "memo", None)
    return memo.payload if isinstance(memo, Memo) and memo.store is store else None


def _file(node: File, writer: PackWriter, store: object, done: TreeCommit) -> bytes:
    done.files += 1
    done.size += node.content.size
    if node.content.size <= WHOLE:
        data = node.content.join()
        payload: bytes = chunk_id(data) if data else b""
        if data:
            writer.add(payload, data)
    else:
        ids: list[bytes] = []
        for chunk in chunks(node.content.read(0, None), node.content.size):
            identity = chunk_id(chunk)
            writer.add(identity, chunk)
            ids.append(identity)
        payload = b"".join(ids)
    return payload
