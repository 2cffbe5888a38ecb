"""Commit a host directory: directories by their stats, files by reading those that changed.

- An entry with a recent time is read again by the next commit: its stat might not show a change within the clock's
  granularity.
- Trees are first built without hard links; trees with hard-linked files, and their parents, are built again once all
  names are known. Hard-linked files are numbered in the order of a walk by name.
- Devices, sockets and pipes are skipped.
- In an unchanged directory each entry costs one stat and its part of the stamps.
"""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from ramet.backends.local.disk import TEMP_PREFIX
from ramet.core.errors import RametError
from ramet.core.progress import EVERY, Progress, silent
from ramet.store.commit.commit_filter import KEEP_ALL, CommitFilter
from ramet.store.commit.file_reader import BATCH_FILES, FileReader
from ramet.store.commit.ignore_rules import HEAD, VERSION
from ramet.store.commit.stat_cache import DirectoryStat, Row, StatCache, encoded_names, facts_of, stamp
from ramet.store.model import trees
from ramet.store.model.ids import TreeId, tree_id
from ramet.store.model.trees import DIR, FILE, LINK, Node, hard_group
from ramet.store.packs.writer import PackWriter

RACY_NS: Final = 2_000_000_000
NEVER: Final = 0
"""Inode of a stamp that never matches."""
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
    hidden: Collection[str] = (),
) -> DirectoryCommit:
    """Write the tree of a host directory. Files whose stat has not changed are not opened.

    `cache` is updated in place, once the writer says that everything is durable. `dirty` names the directories
    (`b""` is the root, `b"/a/b"` one below) that may have changed, and their parents, as a watcher saw them; every
    other directory is taken from the cache unread. `hidden` names are left out at the top.
    """
    if cache.linked or not cache.trusted or cache.rules != _patterns(rules):
        dirty = None  # hard links may be anywhere, and stats of another process need one full check

    def walked(dirty: set[bytes] | None) -> tuple[_Walk, TreeId]:
        walk = _Walk(os.fsencode(root), writer, cache, rules, progress, now(), dirty, frozenset(hidden))
        return walk, walk.run()

    try:
        walk, tree = walked(dirty)
        if walk.linked and dirty is not None:
            walk, tree = walked(None)
    except _StaleCache:
        cache.forget()
        walk, tree = walked(None)
    writer.on_durable(walk.update_cache)
    progress("commit", walk.done, walk.done)
    return DirectoryCommit(tree, walk.left_out)


def _patterns(rules: CommitFilter) -> list[str] | None:
    """What cached directories depend on: the rules that filtered them."""
    return None if rules.ignore is None else [f"built-in {VERSION}", *rules.ignore.patterns]


def first_bytes(folder: bytes, name: str) -> bytes:
    """Return the start of a regular file; nothing for another kind of entry."""
    try:
        fd = os.open(folder + b"/" + os.fsencode(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""  # a link, or gone meanwhile: the scan itself tells
    try:
        return os.read(fd, HEAD) if modes.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


class _StaleCache(Exception):
    """A cached tree is missing in the store: the whole directory must be scanned."""


@dataclass(slots=True)
class _DirectoryScan:
    """A directory that is being committed."""

    where: bytes
    rows: list[Row]
    stamps: bytes
    known: DirectoryStat | None
    dirs: list[bytes]
    links: bool
    """Whether it has a hard-linked file."""
    above: bool
    """Whether it or a directory below it has one."""
    nodes: list[Node] | None = None
    """None while the directory looks unchanged."""
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
    hidden: frozenset[str]
    patterns: list[str] | None = field(init=False)
    seen: set[bytes] = field(default_factory=set)
    made: dict[bytes, DirectoryStat] = field(default_factory=dict)
    gone: list[bytes] = field(default_factory=list)
    names: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)
    """Paths of hard-linked files below the root, by device and inode."""
    left_out: list[str] = field(default_factory=list)
    linked: bool = False
    done: int = 0
    """Files scanned so far."""
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
                found = self.unchanged_tree(child) or self.scan(child)
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
        return self.write_hard_links(groups) if groups else TreeId(identity)

    def unchanged_tree(self, where: bytes) -> bytes | None:
        """Return the cached tree of a directory in which the watcher saw no change."""
        if self.dirty is None or where in self.dirty:
            return None
        known = self.cache.folders.get(where)
        return None if known is None else known.tree

    def update_cache(self) -> None:
        """Update the cache, once everything is durable."""
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
        """Scan a directory, and read changed files when its stamps differ from the cached ones.

        Returns its tree at once if that is cached and there are no subdirectories to scan.
        """
        self.seen.add(where)
        known = self.cache.folders.get(where)
        fd = os.open(self.root + where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(fd) as entries:
                rows = [(e.name, _facts(e.stat(follow_symlinks=False))) for e in entries]
            stamps = stamp(rows)
            same = known is not None and known.stamps == stamps and self.cache.rules == self.patterns
            if not same and self.drop_ignored(where, rows):
                stamps = stamp(rows)
            if known is not None and (same or known.stamps == stamps) and not known.links and self.usable(known):
                self.count(known.files)
                if not known.dirs:
                    return known.tree
                return _DirectoryScan(where, rows, stamps, known, known.dirs.split(b"/"), False, False)
            dirs = [os.fsencode(name) for name, facts in rows if facts[0] & 0o170000 == modes.S_IFDIR]
            links = self.record_hard_links(where, rows, fd)
            here = _DirectoryScan(where, rows, stamps, known, dirs, links, links)
            if known is None or known.stamps != stamps or not self.usable(known):
                here.nodes = self.changed_entries(here, fd)
            else:
                self.count(known.files)
            return here
        finally:
            os.close(fd)

    def drop_ignored(self, where: bytes, rows: list[Row]) -> bool:
        """Remove ignored entries from the rows, and return whether there were any. Cached stamps have none."""
        names = [row[0] for row in rows]
        drop = {name for name in names if name.startswith(TEMP_PREFIX)}
        if not where:
            drop |= self.hidden.intersection(names)
        if self.rules.ignore is not None:
            folder = os.fsdecode(where[where.rfind(b"/") + 1 :])
            secret = self.rules.ignore.matching(folder, names, partial(first_bytes, self.root + where))
            self.left_out.extend(f"{os.fsdecode(where)}/{name}" for name in sorted(secret - drop))
            drop |= secret
        if drop:
            rows[:] = [row for row in rows if row[0] not in drop]
        return bool(drop)

    def record_hard_links(self, where: bytes, rows: list[Row], fd: int) -> bool:
        """Record hard-linked files, and return whether there are any."""
        found = [row for row in rows if row[1][5] > 1 and row[1][0] & 0o170000 == modes.S_IFREG]
        if found:
            self.linked = True
            device = os.fstat(fd).st_dev
            for name, facts in found:
                self.names.setdefault((device, facts[4]), []).append(where + b"/" + os.fsencode(name))
        return bool(found)

    def usable(self, known: DirectoryStat) -> bool:
        """Return whether a cached directory of an earlier process is valid: its tree must be in the store."""
        return self.cache.trusted or self.writer.has(known.tree)

    def count(self, files: int) -> None:
        before = self.done // EVERY
        self.done += files
        if self.done // EVERY != before:
            self.progress("commit", self.done, None)

    def decode_entries(self, known: DirectoryStat) -> list[Node]:
        """Decode the cached entries of a directory."""
        try:
            return trees.decode(known.encoded or self.writer.read(known.tree))
        except (RametError, ValueError):
            raise _StaleCache from None

    def changed_entries(self, here: _DirectoryScan, fd: int) -> list[Node]:
        """Return the entries of a directory except its subdirectories; reads entries with new stamps."""
        usable = here.known if here.known is not None and self.usable(here.known) else None
        old_facts = facts_of(usable) if usable is not None else {}
        old_nodes = {node.name: node for node in self.decode_entries(usable)} if usable is not None else {}
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
        step = BATCH_FILES if self.rules.check is None else 1
        for at in range(0, len(new), step):
            nodes += self.read(here, fd, names, new[at : at + step])
        if not here.stamps:
            here.stamps = stamp(here.rows)
        return nodes

    def read(self, here: _DirectoryScan, fd: int, names: list[bytes], numbers: list[int]) -> list[Node]:
        """Read files of a directory; stamps that are not reliable are replaced."""
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
        """Write the tree of a directory whose subdirectories are done."""
        below = b"".join([here.below[name] for name in here.dirs])
        known = here.known
        if here.nodes is None and known is not None:
            if known.below == below:
                if here.above and not known.encoded:
                    self.made[here.where] = known._replace(encoded=trees.encode(self.decode_entries(known)))
                return known.tree
            here.nodes = [node for node in self.decode_entries(known) if node.kind != DIR]
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
        self.cache.folders.pop(here.where, None)  # memory: a million files must not be held twice
        self.made[here.where] = DirectoryStat(
            here.stamps, identity, b"/".join(here.dirs), below, files, here.links, held
        )
        return identity

    # --------------------------------------------------------------------------------------------- hard links

    def write_hard_links(self, groups: dict[tuple[int, int], list[bytes]]) -> TreeId:
        """Build the trees with hard-linked files again, and their parents."""
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
