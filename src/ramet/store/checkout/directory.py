"""Checkout into a host directory: make it equal to a tree, and verify every chunk.

- Files are written in the order of the packs, in bounded batches, so that a block is fetched and unpacked once. Large
  files are written by several threads.
- Every chunk is compared with its digest. An existing file is kept when its size and time match; with `verify=True` its
  content is compared as well.
- The time of a file is set last: a file that a killed checkout left incomplete has a wrong time and is written again.
- With hard links or reflinks, files come from a cache of whole files. A hard-linked file shares its inode with the
  cache: writing it in place changes the cached copy, which then has a wrong time and is written again.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat as modes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Literal, TypedDict

from ramet.core.errors import RametError
from ramet.core.progress import EVERY, Progress, silent
from ramet.store.checkout.block_reader import read_blocks
from ramet.store.checkout.file_cache import FileCache, umask
from ramet.store.checkout.parallel_write import IN_FLIGHT, LargeFileWriter
from ramet.store.checkout.whole_tree import WholeTree
from ramet.store.model import trees
from ramet.store.model.chunker import chunks
from ramet.store.model.ids import SIZE, TreeId, chunk_id
from ramet.store.model.trees import DIR, FILE, Node, Row
from ramet.store.packs.index import Location
from ramet.store.packs.reader import PackReader

How = Literal["copy", "hardlink", "reflink"]
BATCH_FILES: Final = 50_000
"""Files per batch, written in the order of the packs."""
_REGULAR: Final = modes.S_IFREG
Present = os.stat_result | None
"""Stat of an existing path; None when there is none."""
Below = list[tuple[bytes, Node | None, Present]]
"""Pending directories: path, target node, and current stat."""
Job = tuple[bytes, bytes, int, int, int]
"""A pending file of one chunk: path, chunk, mode, mtime_ns, size. A plain tuple, as many are queued."""

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass
class Receipt:
    """What a checkout did, and the id of the resulting tree."""

    tree: TreeId
    written: int = 0
    kept: int = 0
    removed: int = 0
    bytes_written: int = 0
    linked: int = 0
    problems: list[str] = field(default_factory=list)
    """Paths with wrong content because the store is damaged."""
    left_out: tuple[str, ...] = ()
    """Mounts whose files are not in the store: remote ones that are saved as their configuration."""


class CheckoutKeywords(TypedDict, total=False):
    """The options of `checkout` as keyword arguments."""

    how: How
    verify: bool
    progress: Progress


def checkout(
    packs: PackReader,
    tree: TreeId | WholeTree,
    target: str,
    *,
    how: How = "copy",
    verify: bool = False,
    progress: Progress = silent,
) -> Receipt:
    """Make `target` equal to the tree: files, modes, times, links, hard links, extended attributes, empty directories.

    `how="hardlink"` and `"reflink"` take whole files from the store's local cache, which they fill on the way.
    """
    if how != "copy":
        if packs.local is None:
            raise RametError("invalid_argument", "this store has no local cache to link from", 'use how="copy"')
        if not packs.plain_cache:
            raise RametError(
                "invalid_argument", "an encrypted store keeps no plain files to link from",
                'use how="copy", or open the store with plain_cache=True',
            )  # fmt: skip
    whole = tree if isinstance(tree, WholeTree) else WholeTree(tree, {})
    receipt = Receipt(whole.tree)
    top = os.fsencode(target)
    os.makedirs(top, exist_ok=True)
    cache = FileCache(packs.local, how == "reflink") if packs.local is not None and how != "copy" else None
    work = _Checkout(packs, receipt, cache, verify, progress, whole, [top + prefix for prefix in whole.prefixes])
    try:
        work.run(whole.tree, top)
    finally:
        work.pool.shutdown(cancel_futures=True)
        if cache is not None:
            cache.close()
    files = receipt.written + receipt.kept
    progress("checkout", files, files)
    return receipt


@dataclass(slots=True)
class _Checkout:
    packs: PackReader
    receipt: Receipt
    cache: FileCache | None
    verify: bool
    progress: Progress
    whole: WholeTree
    mounts: list[bytes]
    """Paths of mounts below the top, longest first."""
    pool: ThreadPoolExecutor = field(init=False)
    assembler: LargeFileWriter = field(init=False)
    jobs: list[Job] = field(default_factory=list)
    nodes: dict[bytes, Node] = field(default_factory=dict)
    """Nodes of some of these files, by path."""
    changed: bool = False
    """Whether entries of the current directory are added or removed."""
    first: dict[tuple[bytes, int], bytes] = field(default_factory=dict)
    """The first name of each hard-linked file, by mount and number."""
    again: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Hard links to create after all files."""
    special: int = field(default_factory=lambda: umask() | 0o7000)
    """Mode bits that `open` does not set."""
    reported: int = 0

    def __post_init__(self) -> None:
        workers = IN_FLIGHT if self.packs.remote else min(2, os.cpu_count() or 1)
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="ramet-checkout")
        self.assembler = LargeFileWriter(self.packs, self.pool)

    def run(self, tree: TreeId, top: bytes) -> None:
        """Write entries of directories, then files in batches, and the times of directories last."""
        stack: Below = [(top, None, None)]
        done: list[tuple[bytes, int, int, dict[str, bytes], int]] = []
        while stack:
            folder, node, found = stack.pop()
            self.changed = False
            below = self.directory(tree if node is None else node.tree, folder)
            if node is not None and (self.changed or found is None or node.xattrs or not _is_folder(node, found)):
                was = -1 if found is None else found.st_mode & 0o7777
                done.append((folder, node.mode, node.mtime_ns, node.xattrs, was))
            stack += below
            if len(self.jobs) >= BATCH_FILES:
                self.flush()
        self.flush()
        for source, path in self.again:
            os.link(source, path)
            self.receipt.written += 1
        for path, mode, mtime_ns, xattrs, was in reversed(done):
            _set_xattrs(path, xattrs)
            os.utime(path, ns=(mtime_ns, mtime_ns))
            if mode != was:
                os.chmod(path, mode)

    # ----------------------------------------------------------------------------------------------- planning

    def directory(self, tree: TreeId, folder: bytes) -> Below:
        """Make a directory equal to its tree except for file content; returns its subdirectories.

        An unchanged file costs one stat and one comparison.
        """
        data = self.whole.made.get(tree) or self.packs.read(tree)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            there = os.listdir(fd)
            rows = trees.decode_rows(data)
            if not there:
                todo: list[tuple[Node, Present]] = [(Node(*row), None) for row in self.queue_files(rows, folder)]
                return self.entries(todo, folder, fd)
            found = self.changed_entries(rows, self.match_names([row[0] for row in rows], there, folder, fd))
            self.receipt.kept += len(rows) - len(found)
            return self.entries(found, folder, fd)
        finally:
            os.close(fd)

    def queue_files(self, rows: list[Row], folder: bytes) -> list[Row]:
        """Queue the plain files of an empty directory; returns the other entries."""
        if self.cache is not None or self.verify:
            return rows
        top = folder + b"/"
        jobs = [
            (top + name, payload, mode, mtime_ns, size)
            for name, kind, mode, mtime_ns, size, payload, group, xattrs in rows
            if len(payload) == SIZE and not (kind or group or xattrs)
        ]
        self.jobs += jobs
        self.changed = self.changed or bool(jobs)
        if len(jobs) == len(rows):
            return []
        return [row for row in rows if row[1] or row[6] or row[7] or len(row[5]) != SIZE]

    def match_names(self, names: list[bytes], there: list[str], folder: bytes, fd: int) -> Sequence[Present]:
        """Stat these names, None for a missing one. Removes all other entries."""
        if len(names) == len(there):
            try:
                return _stat_names(names, fd)
            except FileNotFoundError:
                pass  # the same count, but other names
        wanted, present = set(names), set(map(os.fsencode, there))
        for name in present - wanted:
            (info,) = _stat_names([name], fd)
            self.remove(folder + b"/" + name, modes.S_ISDIR(info.st_mode))
        infos = iter(_stat_names([name for name in names if name in present], fd))
        return [next(infos) if name in present else None for name in names]

    def changed_entries(self, rows: list[Row], infos: Sequence[Present]) -> list[tuple[Node, Present]]:
        """Return the entries that need work: all but unchanged plain files."""
        if self.verify:
            return [(Node(*row), info) for row, info in zip(rows, infos, strict=True)]
        # Compared field by field: for most files this line is all the work.
        return [
            (Node(name, kind, mode, mtime_ns, size, payload, group, xattrs), info)
            for (name, kind, mode, mtime_ns, size, payload, group, xattrs), info in zip(rows, infos, strict=True)
            if info is None
            or info.st_mtime_ns != mtime_ns
            or info.st_size != size
            or info.st_mode != _REGULAR | mode
            or info.st_nlink != 1
            or kind
            or group
            or xattrs
        ]

    def entries(self, todo: list[tuple[Node, Present]], folder: bytes, fd: int) -> Below:
        """Create or fix entries of an open directory, except for file content."""
        cache = self.cache
        below: Below = []
        for node, found in todo:
            path = folder + b"/" + node.name
            if node.kind == FILE:
                if found is None and cache is not None and not node.group and not node.xattrs and cache.give(node, fd):
                    self.changed = True
                    self.receipt.written += 1
                    self.receipt.linked += 1
                    continue
                self.file(node, path, found, fd)
            elif node.kind == DIR:
                if found is not None and not modes.S_ISDIR(found.st_mode):
                    self.remove(path, False)
                    found = None
                if found is None:
                    self.changed = True
                    os.mkdir(path, 0o700)
                elif found.st_mode & 0o700 != 0o700:
                    os.chmod(path, 0o700)
                    found = None  # its mode has changed
                below.append((path, node, found))
            else:
                self.link(node, path, found)
        return below

    def link(self, node: Node, path: bytes, found: Present) -> None:
        if found is not None:
            if modes.S_ISLNK(found.st_mode) and os.readlink(path) == node.payload:
                if found.st_mtime_ns != node.mtime_ns:
                    os.utime(path, ns=(node.mtime_ns, node.mtime_ns), follow_symlinks=False)
                self.receipt.kept += 1
                return
            self.remove(path, modes.S_ISDIR(found.st_mode))
        self.changed = True
        os.symlink(node.payload, path)
        os.utime(path, ns=(node.mtime_ns, node.mtime_ns), follow_symlinks=False)
        self.receipt.written += 1

    def file(self, node: Node, path: bytes, found: Present, folder: int) -> None:
        group = trees.split_group(node.group)[0]
        if group:
            mount = next((mount for mount in self.mounts if path.startswith(mount + b"/")), b"")
            other = self.first.setdefault((mount, group), path)
            if other is not path:
                if found is not None and self.same_file(other, path):
                    self.receipt.kept += 1
                    return
                if found is not None:
                    self.remove(path, modes.S_ISDIR(found.st_mode))
                self.changed = True
                self.again.append((other, path))
                return
        if found is not None:
            if self.is_there(node, path, found):
                if found.st_mode & 0o7777 != node.mode:
                    os.chmod(path, node.mode)
                self.receipt.kept += 1
                return
            self.remove(path, modes.S_ISDIR(found.st_mode))
        self.changed = True
        if self.cache is not None and not group and not node.xattrs and self.cache.give(node, folder):
            self.receipt.written += 1
            self.receipt.linked += 1
            return
        if len(node.payload) != SIZE:
            self.stream(node, path)
        else:
            self.jobs.append((path, node.payload, node.mode, node.mtime_ns, node.size))
            if node.xattrs or self.cache is not None:
                self.nodes[path] = node

    def same_file(self, other: bytes, path: bytes) -> bool:
        """Return whether a path is already a hard link of another one."""
        try:
            return os.path.samestat(os.lstat(other), os.lstat(path))
        except FileNotFoundError:
            return False

    def is_there(self, node: Node, path: bytes, found: os.stat_result) -> bool:
        """Return whether an existing file is the right one, ignoring its mode."""
        if not modes.S_ISREG(found.st_mode) or (found.st_size, found.st_mtime_ns) != (node.size, node.mtime_ns):
            return False
        if found.st_nlink != max(1, trees.split_group(node.group)[1]) and self.cache is None:
            return False
        if self.cache is not None and found.st_nlink > 1 and found.st_mode & 0o7777 != node.mode:
            return False  # chmod would affect every other checkout
        if node.xattrs and _xattrs(path) != node.xattrs:
            return False
        return not self.verify or _content_is(node, path)

    # ------------------------------------------------------------------------------------------------ writing

    def flush(self) -> None:
        """Write the queued files, block by block in the order of the packs."""
        jobs, self.jobs = self.jobs, []
        places = self.packs.places({job[1] for job in jobs})
        order = sorted([(*places[job[1]], number) for number, job in enumerate(jobs)])
        parts: dict[tuple[str, int, int], list[tuple[int, int, Job]]] = {}
        for pack, start, length, offset, size, number in order:
            parts.setdefault((pack, start, length), []).append((offset, offset + size, jobs[number]))
        blocks = [Location(*block, 0, files[-1][1]) for block, files in parts.items()]

        def compared(place: Location, block: bytes) -> list[tuple[Job, memoryview, bool]]:
            view = memoryview(block)
            found = [(job, view[start:end]) for start, end, job in parts[place[:3]]]
            return [(job, data, chunk_id(data) == job[1]) for job, data in found]

        for files in read_blocks(self.packs, self.pool, blocks, compared):
            for job, data, whole in files:
                self.put(job, data, whole)
        self.nodes.clear()

    def put(self, job: Job, data: memoryview, whole: bool) -> None:
        """Write a file of one chunk; `whole` says whether its digest is right."""
        path, _, mode, mtime_ns, size = job
        node = self.nodes.get(path) if self.nodes else None
        plain = not mode & self.special and (node is None or not node.xattrs)
        fd = os.open(path, _CREATE, mode if plain else 0o600)
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fsdecode(path))
            if not plain:
                _set_xattrs(fd, {} if node is None else node.xattrs)
                os.fchmod(fd, mode)
            if whole:
                os.utime(fd, ns=(mtime_ns, mtime_ns))
        finally:
            os.close(fd)
        self.done(node, path, size, whole)

    def stream(self, node: Node, path: bytes) -> None:
        """Write a file of many chunks (or none) in bounded memory."""
        fd = os.open(path, _CREATE, 0o600)
        try:
            whole = self.assembler.write(fd, path, list(node.chunks))
            _set_xattrs(fd, node.xattrs)
            os.fchmod(fd, node.mode)
            if whole:
                os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))
        finally:
            os.close(fd)
        self.done(node, path, node.size, whole)

    def done(self, node: Node | None, path: bytes, size: int, whole: bool) -> None:
        """Count a file. A damaged file keeps a wrong time, so that it is written again."""
        if not whole:
            self.receipt.problems.append(os.fsdecode(path))
        elif self.cache is not None and node is not None and not node.group and not node.xattrs:
            self.cache.take(node, path)
        self.receipt.written += 1
        self.receipt.bytes_written += size
        if self.receipt.written - self.reported >= EVERY:
            self.reported = self.receipt.written
            self.progress("checkout", self.receipt.written + self.receipt.kept, None)

    def remove(self, path: bytes, directory: bool) -> None:
        self.changed = True
        if directory:
            _remove_tree(path)
        else:
            os.unlink(path)
        self.receipt.removed += 1


def _stat_names(names: list[bytes], folder: int) -> list[os.stat_result]:
    """Stat names relative to an open directory, which avoids path resolution."""
    look = os.stat
    return [look(name, dir_fd=folder, follow_symlinks=False) for name in names]


def _is_folder(node: Node, found: os.stat_result) -> bool:
    return (found.st_mode, found.st_mtime_ns) == (modes.S_IFDIR | node.mode, node.mtime_ns)


def _content_is(node: Node, path: bytes) -> bool:
    """Return whether a file has the content of its node."""
    with open(path, "rb") as file:
        blocks = iter(lambda: file.read(4 << 20), b"")
        ids = [chunk_id(chunk) for chunk in chunks(blocks, node.size)] if node.size else []
    return b"".join(ids) == node.payload


def _xattrs(path: bytes) -> dict[str, bytes]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return {name: os.getxattr(path, name) for name in names if name.startswith("user.")}
    except OSError:
        return {}


def _set_xattrs(file: int | bytes, xattrs: dict[str, bytes]) -> None:
    """Set extended attributes; ignored where the filesystem has none, as `cp` does."""
    for name, value in xattrs.items():
        try:
            os.setxattr(file, name, value)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise


def _remove_tree(path: bytes) -> None:
    try:
        shutil.rmtree(path)
    except PermissionError:
        for top, names, _ in os.walk(path):
            for name in names:
                if not os.path.islink(top + b"/" + name):
                    os.chmod(top + b"/" + name, 0o700)
        shutil.rmtree(path)
