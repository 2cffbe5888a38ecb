"""Commit an overlay: the tree below it, changed by what its upper directory says.

- Only the upper directory is scanned, so a commit costs what changed since the overlay was made.
- Files are read through the merged directory, which hides the attributes that the kernel keeps in the upper one.
- A file whose stamp has not changed since an earlier commit is not read again, unless its time is recent.
- What the tree below has was filtered by the commit that wrote it; the rules apply to what the upper directory has.
"""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final

from ramet.backends.local.disk import TEMP_PREFIX
from ramet.backends.local.overlay_marks import is_opaque, is_removed
from ramet.core.progress import Progress, silent
from ramet.store.commit.commit_filter import KEEP_ALL, CommitFilter
from ramet.store.commit.directory import RACY_NS, DirectoryCommit, first_bytes
from ramet.store.commit.file_reader import BATCH_FILES, FileReader
from ramet.store.commit.stat_cache import Facts
from ramet.store.model import trees
from ramet.store.model.ids import TreeId, tree_id
from ramet.store.model.trees import DIR, LINK, Node
from ramet.store.packs.writer import PackWriter

DEEPEST: Final = 200
"""Directories below each other that recursion handles; a deeper tree is scanned as a directory."""
_facts: Final = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")


@dataclass(frozen=True)
class Overlay:
    """An overlay on a stored tree: `base` is the content of its lower layers."""

    base: TreeId
    upper: str
    merged: str


OverlayCache = dict[bytes, tuple[Facts, Node]]
"""Files of the upper directory by path, as earlier commits read them."""


class CannotCommitOverlay(Exception):
    """The overlay has hard links, which are numbered over the whole tree, or is too deep."""


def commit_overlay(
    overlay: Overlay,
    writer: PackWriter,
    cache: OverlayCache,
    rules: CommitFilter = KEEP_ALL,
    *,
    progress: Progress = silent,
    now: Callable[[], int] = time.time_ns,
) -> DirectoryCommit:
    """Write the tree of an overlay; raises CannotCommitOverlay where the merged directory must be scanned."""
    walk = _UpperWalk(overlay, writer, cache, rules, now() - RACY_NS)
    tree = walk.directory(b"", overlay.base, 0)

    def remember() -> None:
        cache.clear()
        cache.update(walk.files)

    writer.on_durable(remember)
    progress("commit", walk.done, walk.done)
    return DirectoryCommit(tree, walk.left_out)


@dataclass(slots=True)
class _UpperWalk:
    overlay: Overlay
    writer: PackWriter
    cache: OverlayCache
    rules: CommitFilter
    racy: int
    """Entries with a time after this may change without a sign."""
    files: OverlayCache = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    done: int = 0
    reader: FileReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = FileReader(self.writer)

    def directory(self, where: bytes, base: TreeId, depth: int) -> TreeId:
        """Write the tree of a directory: the nodes below it, with the entries of the upper one on top."""
        if depth > DEEPEST:
            raise CannotCommitOverlay
        nodes = {node.name: node for node in trees.decode(self.writer.read(base))} if base != trees.EMPTY_ID else {}
        if any(node.group for node in nodes.values()):
            raise CannotCommitOverlay
        upper = os.fsencode(self.overlay.upper) + where
        with os.scandir(upper) as entries:
            rows = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
        for name in self.ignored(where, list(rows)):
            nodes.pop(name, None)
            rows.pop(name)
        changed: list[tuple[bytes, Facts]] = []
        for name, found in rows.items():
            below = nodes.pop(name, None)
            kind = modes.S_IFMT(found.st_mode)
            if kind == modes.S_IFREG:
                if found.st_nlink > 1:
                    raise CannotCommitOverlay
                path, facts = where + b"/" + name, _facts(found)
                known = self.cache.get(path)
                if known is not None and known[0] == facts:
                    nodes[name], self.files[path] = known[1], known
                else:
                    changed.append((name, facts))
            elif kind == modes.S_IFLNK:
                nodes[name] = Node(name, LINK, 0o777, found.st_mtime_ns, 0, os.readlink(upper + b"/" + name))
            elif kind == modes.S_IFDIR:
                covered = below.tree if below is not None and below.kind == DIR else trees.EMPTY_ID
                base_below = trees.EMPTY_ID if is_opaque(upper + b"/" + name) else covered
                made = self.directory(where + b"/" + name, base_below, depth + 1)
                merged = os.fsencode(self.overlay.merged) + where + b"/" + name
                mode, xattrs = found.st_mode & 0o7777, self.reader.attributes(merged)
                nodes[name] = Node(name, DIR, mode, found.st_mtime_ns, 0, made, 0, xattrs)
        self.read(where, changed, nodes)
        self.done += len(rows)
        encoded = trees.encode(nodes.values())
        identity = tree_id(encoded)
        self.writer.add_tree(identity, encoded)
        return identity

    def ignored(self, where: bytes, names: list[bytes]) -> set[bytes]:
        """Return the entries that no commit takes."""
        drop = {name for name in names if name.startswith(os.fsencode(TEMP_PREFIX))}
        if self.rules.ignore is not None and names:
            folder = os.fsdecode(where[where.rfind(b"/") + 1 :])
            upper = os.fsencode(self.overlay.upper) + where
            known = list(map(os.fsdecode, names))
            secret = self.rules.ignore.matching(folder, known, partial(first_bytes, upper))
            removed = {name for name in secret if is_removed(os.lstat(upper + b"/" + os.fsencode(name)))}
            encoded = {os.fsencode(name) for name in secret - removed}
            self.left_out.extend(f"{os.fsdecode(where)}/{os.fsdecode(name)}" for name in sorted(encoded - drop))
            drop |= encoded
        return drop

    def read(self, where: bytes, changed: list[tuple[bytes, Facts]], nodes: dict[bytes, Node]) -> None:
        """Read files of a directory into nodes."""
        if not changed:
            return
        folder = os.open(os.fsencode(self.overlay.merged) + where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            step = BATCH_FILES if self.rules.check is None else 1
            for at in range(0, len(changed), step):
                part = changed[at : at + step]
                if self.rules.check is not None:
                    self.writer.check_content = partial(self.rules.check, os.fsdecode(where + b"/" + part[0][0]))
                found = self.reader.read(folder, [name for name, _ in part], [facts for _, facts in part])
                self.writer.check_content = None
                for (name, facts), node in zip(part, found, strict=True):
                    if node is None:
                        continue  # removed meanwhile
                    nodes[name] = node
                    if max(facts[2], facts[3]) < self.racy and node.size == facts[1]:
                        self.files[where + b"/" + name] = (facts, node)
        finally:
            os.close(folder)
