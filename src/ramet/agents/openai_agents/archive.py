"""The SDK's portable tar: write a tree to it and read it back, never outside the workspace.

Reading an archive takes two steps: all members are validated before the first file is written.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, Final, NamedTuple

from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tarfile

from ramet.core import ops
from ramet.core.paths import Path, encode
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat, default_mode
from ramet.text.tar_header import BLOCK, RECORD
from ramet.vfs.links import MAX_LINKS
from ramet.vfs.vfs import VFS
from ramet.workspace.snapshot.tar import TarWriter

SPOOL: Final = 16 << 20
"""Bytes of an archive that are kept in memory; more goes to a temporary file."""

BAD_ARCHIVE = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)
"""Exceptions of a damaged stream, by compression."""

SAFE_MODE = 0o755
"""Mode bits that an archive may set: no setuid, no setgid, no writing by others, as `tarfile`'s data filter has it."""


class Member(NamedTuple):
    """One entry of a validated archive."""

    parts: tuple[str, ...]
    kind: Kind
    mode: int
    mtime_ns: int
    target: bytes
    """Target of a link."""
    info: tarfile.TarInfo

    @property
    def name(self) -> str:
        return "/".join(self.parts)


# ------------------------------------------------------------------------------------------------- writing


class Segment(NamedTuple):
    """The members of one directory, without its subdirectories' members."""

    mark: bytes
    """Content id of the directory tree when this was packed."""
    data: bytes
    below: tuple[str, ...]
    left_out: tuple[str, ...]


class PackedTree(NamedTuple):
    archive: bytes
    left_out: list[str]
    """Links omitted because they lead outside."""
    segments: dict[str, Segment]


Marker = Callable[[str], bytes]
"""A content id of the directory with this name in the workspace (empty for its root)."""


async def pack(
    fs: VFS, root: Path, skip: Iterable[str], known: Mapping[str, Segment] | None = None, mark: Marker | None = None
) -> PackedTree:
    """Pack the tree at `root` as a tar. Directories whose content is `known` are not read again."""
    skipped, made = set(skip), {}
    left_out: list[str] = []
    pending = [""]
    while pending:
        name = pending.pop()
        now = mark(name) if mark is not None else b""
        segment = known.get(name) if known is not None and mark is not None else None
        if segment is None or segment.mark != now:
            segment = await _segment(fs, root, name, skipped, now)
        made[name] = segment
        left_out.extend(segment.left_out)
        pending.extend(reversed(segment.below))
    parts = [segment.data for segment in made.values()]
    end = 2 * BLOCK
    end += -(sum(map(len, parts)) + end) % RECORD
    return PackedTree(b"".join([*parts, bytes(end)]), left_out, made)


async def _segment(fs: VFS, root: Path, name: str, skipped: set[str], mark: bytes) -> Segment:
    out, left_out, below = io.BytesIO(), [], []
    top = root
    for part in name.split("/") if name else ():
        top = top / part
    tar, stat = TarWriter(out), await fs.stat(top)
    tar.directory("./" + name if name else ".", mode=_mode(stat), mtime_ns=stat.mtime_ns or 0)
    for entry, stat in await ops.scan_sorted(fs, top):
        path, inner = top / entry, f"{name}/{entry}" if name else entry
        if inner in skipped:
            continue
        shown, mtime_ns = "./" + inner, stat.mtime_ns or 0
        if stat.kind is Kind.DIR:
            below.append(inner)
        elif stat.kind is Kind.FILE:
            data = await ops.read_bytes(fs, path)
            tar.file(shown, len(data), iter((data,)), mode=_mode(stat), mtime_ns=mtime_ns)
        elif stat.kind is Kind.LINK:
            raw = stat.target or ""
            doubtful = ".." in raw and raw.startswith("/")
            if doubtful:
                mark = b""  # depends on other directories: read again each time
            target = portable_target(raw, inner, root, sure=doubtful and await _stays_inside(fs, root, raw))
            if target is None:
                left_out.append(inner)
                continue
            tar.link(shown, target, mtime_ns=mtime_ns)
    tar.flush()
    return Segment(mark, out.getvalue(), tuple(below), tuple(left_out))


def _mode(stat: Stat) -> int:
    return default_mode(stat.kind) if stat.mode is None else stat.mode


def portable_target(target: str, name: str, root: Path, *, sure: bool = False) -> str | None:
    """Return the target of link `name` relative to it; None if it leads, or may lead, out of the workspace.

    An absolute target with `..` after other links looks inside; it is accepted only if `sure` confirms it.
    """
    depth = name.count("/")
    if target.startswith("/"):
        prefix = root if root != "/" else ""
        target = "/" + target.lstrip("/")
        if target != prefix and not target.startswith(prefix + "/"):
            return None
        # Replace only the root: `..` after another link must stay.
        rest = target[len(prefix) :].lstrip("/")
        if ".." in rest.split("/") and not sure:
            return None
        target = "/".join([*[".."] * depth, *([rest] if rest else [])]) or "."
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    return None if reached == ".." or reached.startswith("../") else target


async def _stays_inside(fs: VFS, root: Path, target: str) -> bool:
    """Return whether every component of an absolute target exists, inside the root and without absolute links."""
    prefix = root if root != "/" else ""
    pending = target[len(prefix) :].split("/")[::-1] if target.startswith(prefix + "/") else [".."]
    here, hops = root, 0
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if here == root:
                return False
            here = here.parent
            continue
        found = await _look(fs, here / part)
        if found is None:
            return False
        if found.kind is not Kind.LINK:
            here = here / part
            continue
        hops += 1
        if hops > MAX_LINKS or (found.target or "").startswith("/"):
            return False
        pending.extend(reversed((found.target or "").split("/")))
    return True


# ------------------------------------------------------------------------------------------------- reading


class Archive:
    """A tar whose members are all validated. Contents are read as files are written, one at a time."""

    def __init__(self, source: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=source, mode="r:*")
        validate_tarfile(self._tar, allow_external_symlink_targets=False)
        self.members = [found for info in self._tar.getmembers() if (found := _member(info)) is not None]
        plain: Any = self._tar.fileobj  # the decompressed stream
        ends = (info.offset_data + info.size for info in self._tar.getmembers() if info.isreg() and not info.issparse())
        if max(ends, default=0) > plain.seek(0, io.SEEK_END):
            raise tarfile.ReadError("unexpected end of data")

    def content(self, member: Member) -> bytes:
        stream = self._tar.extractfile(member.info)
        return b"" if stream is None else stream.read()

    def close(self) -> None:
        self._tar.close()


def _member(info: tarfile.TarInfo) -> Member | None:
    parts = tuple(part for part in info.name.split("/") if part not in ("", "."))
    if not parts:
        return None
    mtime_ns = int(info.mtime * 1_000_000_000)
    if info.isdir():
        return Member(parts, Kind.DIR, info.mode & SAFE_MODE | 0o700, mtime_ns, b"", info)
    if info.issym():
        return Member(parts, Kind.LINK, 0o777, mtime_ns, encode(info.linkname), info)
    return Member(parts, Kind.FILE, info.mode & SAFE_MODE | 0o600, mtime_ns, b"", info)


def again(start: bytes, rest: Any) -> Any:
    """Rewind a stream whose start was read; copy one that cannot seek to a temporary file."""
    if rest.seekable():
        rest.seek(-len(start), io.SEEK_CUR)
        if rest.tell() == 0:
            return rest
    else:
        rest = _JoinedStream(start, rest)
    copy: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=SPOOL)
    shutil.copyfileobj(rest, copy)
    copy.seek(0)
    return copy


class _JoinedStream(io.RawIOBase):
    """Two streams as one, read in pieces only."""

    def __init__(self, start: bytes, rest: Any) -> None:
        self._start, self._rest = start, rest

    def read(self, size: int = -1) -> bytes:
        data, self._start = self._start, b""
        return data or bytes(self._rest.read(size))


async def place(fs: VFS, root: Path, archive: Archive) -> None:
    """Write the members below `root`; conflicts with existing files are found before anything changes."""
    members = archive.members
    owned = {member.parts for member in members if member.kind is Kind.DIR}
    for member in members:
        await _check_place(fs, root, member, owned)
    await ops.make_dirs(fs, root)
    directories = [member for member in members if member.kind is Kind.DIR]
    for member in directories:
        path = _path(root, member)
        before = await _look(fs, path)
        if before is not None and before.kind is not Kind.DIR:
            await fs.remove(path)
        await ops.make_dirs(fs, path)
    for kind in (Kind.FILE, Kind.LINK):
        for member in members:
            if member.kind is kind:
                data = archive.content(member) if kind is Kind.FILE else member.target
                await _put(fs, _path(root, member), member, data)
    for member in reversed(directories):
        await fs.setattr(_path(root, member), Attrs(mode=member.mode, mtime_ns=member.mtime_ns))


async def _check_place(fs: VFS, root: Path, member: Member, directories: set[tuple[str, ...]]) -> None:
    path = root
    for depth, name in enumerate(member.parts[:-1], start=1):
        path = path / name
        before = await _look(fs, path)
        if before is None:
            return
        if before.kind is not Kind.DIR:
            if member.parts[:depth] in directories:
                return  # the archive replaces it with a directory
            what = "symlink in parent path" if before.kind is Kind.LINK else "parent path is not a directory"
            raise UnsafeTarMemberError(member=member.name, reason=what)
    if member.kind is not Kind.DIR:
        before = await _look(fs, path / member.parts[-1])
        if before is not None and before.kind is Kind.DIR:
            raise UnsafeTarMemberError(
                member=member.name, reason=f"destination directory already exists: {member.name}"
            )


async def _put(fs: VFS, path: Path, member: Member, data: bytes) -> None:
    await ops.make_dirs(fs, path.parent)
    if await _look(fs, path) is not None:
        await fs.remove(path)
    if member.kind is Kind.LINK:
        await fs.write(path, data, How.LINK)
        return
    await fs.write(path, data, How.CREATE)
    await fs.setattr(path, Attrs(mode=member.mode, mtime_ns=member.mtime_ns))


async def _look(fs: VFS, path: Path) -> Stat | None:
    try:
        return await fs.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _path(root: Path, member: Member) -> Path:
    path = root
    for name in member.parts:
        path = path / name
    return path
