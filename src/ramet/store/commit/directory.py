"""Writing a host directory into a store: folders by what their stats say, files by reading those that changed.

Rules that this file keeps:
- An entry whose time is not safely in the past when it is read is read again next time: a change within the clock's
  granularity would not show in its stat.
- Trees are first made as if no file had several names; those that hold such files, and what is above them, are made
  again once all names are known. Files are numbered in the order in which a walk in name order meets them.
- Special files (devices, sockets, pipes) have no content to keep and are left out.
- In a folder that has not changed nothing is done per entry but to ask for its stat and to put that into the stamps.
"""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from ramet.backends.local.disk import TEMP_PREFIX
from ramet.core.errors import RametError
from ramet.core.progress import EVERY, Progress, silent
from ramet.store.commit.commit_filter import KEEP_ALL, CommitFilter
from ramet.store.commit.file_reader import TOGETHER, FileReader
from ramet.store.commit.stat_cache import DirectoryStat, Row, StatCache, encoded_names, facts_of, stamp
from ramet.store.model import trees
from ramet.store.model.ids import TreeId, tree_id
from ramet.store.model.trees import DIR, FILE, LINK, Node, hard_group
from ramet.store.packs.writer import PackWriter

RACY_NS: Final = 2_000_000_000
NEVER: Final = 0
"""The inode of a stamp that matches nothing."""
_facts: Final = attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")


class DirectoryCommit(NamedTuple):
    """The tree of a host directory, and the paths that were left out of it."""

    tree: TreeId
    withheld: list[str]


def commit_directory(
    root: str,
    writer: PackWriter,
    cache: StatCache,
    rules: CommitFilter = KEEP_ALL,
    *,
    progress: Progress = silent,
    now: Callable[[], int] = time.time_ns,
    dirty: set[bytes] | None = None,
) -> DirectoryCommit:
    """Write the tree of a host directory. Files whose stat has not changed are not opened.

    `cache` is updated in place, once the writer says that everything is durable. `dirty` names the directories
    (`b""` is the root, `b"/a/b"` one below) that may have changed, and their parents, as a watcher saw them; every
    other directory is taken from the cache unread.
    """
    if cache.linked or not cache.trusted or cache.rules != _patterns(rules):
        dirty = None  # names of one file may be anywhere, and what another process saw has to be looked at once

    def walked(dirty: set[bytes] | None) -> tuple[_Walk, TreeId]:
        walk = _Walk(os.fsencode(root), writer, cache, rules, progress, now(), dirty)
        return walk, walk.run()

    try:
        walk, tree = walked(dirty)
        if walk.linked and dirty is not None:
            walk, tree = walked(None)
    except _StaleCache:
        cache.forget()
        walk, tree = walked(None)
    writer.on_durable(walk.settle)
    progress("commit", walk.done, walk.done)
    return DirectoryCommit(tree, walk.left_out)


def _patterns(rules: CommitFilter) -> list[str] | None:
    return None if rules.ignore is None else list(rules.ignore.patterns)


class _StaleCache(Exception):
    """A tree that the cache relied on cannot be read: everything has to be looked at again."""


@dataclass(slots=True)
class _DirectoryScan:
    """A directory that is being committed."""

    where: bytes
    rows: list[Row]
    stamps: bytes
    known: DirectoryStat | None
    dirs: list[bytes]
    links: bool
    """Whether a file in it has several names."""
    above: bool
    """Whether one in it or below it has."""
    nodes: list[Node] | None = None
    """None while nothing shows that the folder has changed."""
    pending: list[bytes] = field(init=False)
    below: dict[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pending = list(self.dirs)


@dataclass(slots=True)
class _Walk:
    root: bytes
    writer: PackWriter
    cache: StatCache
    rules: CommitFilter
    progress: Progress
    began: int
    dirty: set[bytes] | None
    patterns: list[str] | None = field(init=False)
    seen: set[bytes] = field(default_factory=set)
    made: dict[bytes, DirectoryStat] = field(default_factory=dict)
    gone: list[bytes] = field(default_factory=list)
    names: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)
    """Files with several names anywhere: their paths below the root, by device and inode."""
    left_out: list[str] = field(default_factory=list)
    linked: bool = False
    done: int = 0
    """Files that were looked at."""
    files: FileReader = field(init=False)

    def __post_init__(self) -> None:
        self.files, self.patterns = FileReader(self.writer), _patterns(self.rules)

    def run(self) -> TreeId:
        top = self.scan(b"")
        stack = [] if isinstance(top, bytes) else [top]
        identity = top if isinstance(top, bytes) else b""
        while stack:
            here = stack[-1]
            if here.pending:
                name = here.pending.pop()
                child = here.where + b"/" + name
                found = self.untouched(child) or self.scan(child)
                if isinstance(found, bytes):
                    here.below[name] = found
                else:
                    stack.append(found)
                continue
            identity = self.finish(here)
            stack.pop()
            if stack:
                stack[-1].below[here.where.rpartition(b"/")[2]] = identity
                stack[-1].above = stack[-1].above or here.above
        groups = {inode: paths for inode, paths in self.names.items() if len(paths) > 1}
        return self.regrouped(groups) if groups else TreeId(identity)

    def untouched(self, where: bytes) -> bytes | None:
        """The tree of a folder that a watcher saw no change in, nor below it."""
        if self.dirty is None or where in self.dirty:
            return None
        known = self.cache.folders.get(where)
        return None if known is None else known.tree

    def settle(self) -> None:
        """What was written is durable: from now on the cache may say so."""
        folders = self.cache.folders
        if self.dirty is None:
            lost = folders.keys() - self.seen
        else:
            tops = tuple(path + b"/" for path in self.gone)
            lost = {path for path in folders if path.startswith(tops)} | set(self.gone) if tops else set()
        for path in lost:
            folders.pop(path, None)
        folders.update(self.made)
        self.cache.linked, self.cache.rules = self.linked, self.patterns
        self.cache.trusted = True
        self.cache.changed = self.cache.changed or bool(lost or self.made)
        self.cache.save(self.writer.packs())

    # --------------------------------------------------------------------------------------------- one folder

    def scan(self, where: bytes) -> _DirectoryScan | bytes:
        """List a folder; when its stamps are not the known ones, also read what changed in it.

        Gives its tree at once if it is known and has no subdirectories that would have to be looked at.
        """
        self.seen.add(where)
        known = self.cache.folders.get(where)
        fd = os.open(self.root + where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(fd) as entries:
                rows = [(e.name, _facts(e.stat(follow_symlinks=False))) for e in entries]
            stamps = stamp(rows)
            same = known is not None and known.stamps == stamps and self.cache.rules == self.patterns
            if not same and self.narrowed(where, rows):
                stamps = stamp(rows)
            if known is not None and (same or known.stamps == stamps) and not known.links and self.usable(known):
                self.count(known.files)
                if not known.dirs:
                    return known.tree
                return _DirectoryScan(where, rows, stamps, known, known.dirs.split(b"/"), False, False)
            dirs = [os.fsencode(name) for name, facts in rows if facts[0] & 0o170000 == modes.S_IFDIR]
            links = self.several(where, rows, fd)
            here = _DirectoryScan(where, rows, stamps, known, dirs, links, links)
            if known is None or known.stamps != stamps or not self.usable(known):
                here.nodes = self.changed(here, fd)
            else:
                self.count(known.files)
            return here
        finally:
            os.close(fd)

    def narrowed(self, where: bytes, rows: list[Row]) -> bool:
        """Leave out what must not be kept; whether there was any. A folder whose stamps are known has none."""
        names = [row[0] for row in rows]
        drop = {name for name in names if name.startswith(TEMP_PREFIX)}
        if self.rules.ignore is not None:
            secret = self.rules.ignore.matching(os.fsdecode(where[where.rfind(b"/") + 1 :]), names)
            self.left_out.extend(f"{os.fsdecode(where)}/{name}" for name in sorted(secret - drop))
            drop |= secret
        if drop:
            rows[:] = [row for row in rows if row[0] not in drop]
        return bool(drop)

    def several(self, where: bytes, rows: list[Row], fd: int) -> bool:
        """Note the files that have several names; whether there are any."""
        found = [row for row in rows if row[1][5] > 1 and row[1][0] & 0o170000 == modes.S_IFREG]
        if found:
            self.linked = True
            device = os.fstat(fd).st_dev
            for name, facts in found:
                self.names.setdefault((device, facts[4]), []).append(where + b"/" + os.fsencode(name))
        return bool(found)

    def usable(self, known: DirectoryStat) -> bool:
        """Whether a folder of an earlier process may be taken at its word: its tree must be in the store."""
        return self.cache.trusted or self.writer.has(known.tree)

    def count(self, files: int) -> None:
        before = self.done // EVERY
        self.done += files
        if self.done // EVERY != before:
            self.progress("commit", self.done, None)

    def decoded(self, known: DirectoryStat) -> list[Node]:
        """The entries of a folder as it was committed."""
        try:
            return trees.decode(known.encoded or self.writer.read(known.tree))
        except (RametError, ValueError):
            raise _StaleCache from None

    def changed(self, here: _DirectoryScan, fd: int) -> list[Node]:
        """The entries of a folder except its directories, reading those whose stamps are new."""
        usable = here.known if here.known is not None and self.usable(here.known) else None
        old_facts = facts_of(usable) if usable is not None else {}
        old_nodes = {node.name: node for node in self.decoded(usable)} if usable is not None else {}
        nodes: list[Node] = []
        if self.dirty is not None:
            now = set(here.dirs)
            self.gone += [here.where + b"/" + n.name for n in old_nodes.values() if n.kind == DIR and n.name not in now]
        names = encoded_names(here.rows)
        new: list[int] = []
        for number, (text, facts) in enumerate(here.rows):
            kind = facts[0] & 0o170000
            if kind == modes.S_IFREG:
                old = old_nodes.get(names[number])
                if old is not None and old_facts.get(text) == facts:
                    nodes.append(old)
                else:
                    new.append(number)
            elif kind == modes.S_IFLNK:
                name = names[number]
                nodes.append(Node(name, LINK, 0o777, facts[2], 0, os.readlink(name, dir_fd=fd)))
        self.count(len(nodes))
        step = TOGETHER if self.rules.check is None else 1
        for at in range(0, len(new), step):
            nodes += self.read(here, fd, names, new[at : at + step])
        if not here.stamps:
            here.stamps = stamp(here.rows)
        return nodes

    def read(self, here: _DirectoryScan, fd: int, names: list[bytes], numbers: list[int]) -> list[Node]:
        """Read some files of a folder; those whose stamps cannot be relied on get other ones."""
        limit, rows = self.began - RACY_NS, here.rows
        if self.rules.check is not None:
            self.writer.check_content = partial(self.rules.check, os.fsdecode(here.where + b"/" + names[numbers[0]]))
        found = self.files.read(fd, [names[number] for number in numbers], [rows[number][1] for number in numbers])
        self.writer.check_content = None
        self.count(len(numbers))
        for number, node in zip(numbers, found, strict=True):
            text, (mode, size, mtime, ctime, _, links) = rows[number]
            if node is None or ctime >= limit or mtime >= limit or node[4] != size:
                rows[number] = (text, (mode, size, mtime, ctime, NEVER, links))
                here.stamps = b""
        return [node for node in found if node is not None]

    def finish(self, here: _DirectoryScan) -> bytes:
        """The tree of a folder whose subdirectories are done."""
        below = b"".join([here.below[name] for name in here.dirs])
        known = here.known
        if here.nodes is None and known is not None:
            if known.below == below:
                if here.above and not known.encoded:
                    self.made[here.where] = known._replace(encoded=trees.encode(self.decoded(known)))
                return known.tree
            here.nodes = [node for node in self.decoded(known) if node.kind != DIR]
        nodes = here.nodes or []
        files = sum([node[1] == FILE for node in nodes])
        for text, facts in here.rows if here.dirs else ():
            if facts[0] & 0o170000 == modes.S_IFDIR:
                name = os.fsencode(text)
                xattrs = self.files.attributes(self.root + here.where + b"/" + name)
                nodes.append(Node(name, DIR, facts[0] & 0o7777, facts[2], 0, here.below[name], 0, xattrs))
        encoded = trees.encode(nodes)
        identity = tree_id(encoded)
        self.writer.add_tree(identity, encoded)
        held = encoded if here.above else b""
        self.cache.folders.pop(here.where, None)  # of a million files nobody can hold both; without it one reads again
        self.made[here.where] = DirectoryStat(
            here.stamps, identity, b"/".join(here.dirs), below, files, here.links, held
        )
        return identity

    # --------------------------------------------------------------------------------------------- hard links

    def regrouped(self, groups: dict[tuple[int, int], list[bytes]]) -> TreeId:
        """Make the trees again that hold files with several names, and those above them."""
        first = {inode: min(path.split(b"/") for path in paths) for inode, paths in groups.items()}
        numbers = {inode: number for number, inode in enumerate(sorted(first, key=first.__getitem__), 1)}
        marks: dict[bytes, dict[bytes, int]] = {}
        for inode, paths in groups.items():
            for path in paths:
                folder, _, name = path.rpartition(b"/")
                marks.setdefault(folder, {})[name] = hard_group(numbers[inode], len(paths))
        for folder in list(marks):
            while folder:
                folder = folder.rpartition(b"/")[0]
                marks.setdefault(folder, {})
        made: dict[bytes, bytes] = {}
        for folder in sorted(marks, key=lambda path: path.count(b"/"), reverse=True):
            mine = marks[folder]
            nodes = [
                node._replace(payload=made.get(folder + b"/" + node.name, node.payload))
                if node.kind == DIR
                else node._replace(group=mine.get(node.name, 0))
                for node in trees.decode((self.made.get(folder) or self.cache.folders[folder]).encoded)
            ]
            encoded = trees.encode(nodes)
            made[folder] = tree_id(encoded)
            self.writer.add_tree(made[folder], encoded)
        return TreeId(made[b""])
