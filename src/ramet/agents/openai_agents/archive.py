"""A tree as the SDK's portable tar and back: members are relative to the workspace, and nothing leads out of it.

Reading an archive is two steps, so that a bad member is found before the first file is touched.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tarfile

from ramet.core import ops
from ramet.core.paths import Path, encode
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat, default_mode
from ramet.vfs.table import MAX_LINKS, VFS
from ramet.workspace.tar import TarWriter

BAD_ARCHIVE = (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError)
"""What a damaged stream raises, by compression."""


class Member(NamedTuple):
    """One entry of a validated archive."""

    parts: tuple[str, ...]
    kind: Kind
    mode: int
    mtime_ns: int
    data: bytes
    """Content of a file, target of a link."""

    @property
    def name(self) -> str:
        return "/".join(self.parts)


# ------------------------------------------------------------------------------------------------- writing


async def pack(fs: VFS, root: Path, skip: Iterable[str]) -> tuple[io.BytesIO, list[str]]:
    """The tree at `root` as a tar, and the links that were left out because they lead outside."""
    out, left_out = io.BytesIO(), []
    skipped = set(skip)
    tar = TarWriter(out)
    tar.directory(".", mode=_mode(top := await fs.stat(root)), mtime_ns=top.mtime_ns or 0)
    pending = [(root / name, stat) for name, stat in reversed(await ops.scan_sorted(fs, root))]
    while pending:
        path, stat = pending.pop()
        name = path.below(root)[1:]
        if name in skipped:
            continue
        shown, mtime_ns = "./" + name, stat.mtime_ns or 0
        if stat.kind is Kind.DIR:
            tar.directory(shown, mode=_mode(stat), mtime_ns=mtime_ns)
            pending.extend((path / below, found) for below, found in reversed(await ops.scan_sorted(fs, path)))
        elif stat.kind is Kind.FILE:
            data = await ops.read_bytes(fs, path)
            tar.file(shown, len(data), iter((data,)), mode=_mode(stat), mtime_ns=mtime_ns)
        elif stat.kind is Kind.LINK:
            raw = stat.target or ""
            target = portable_target(raw, name, root, sure=".." in raw and await _stays_inside(fs, root, raw))
            if target is None:
                left_out.append(name)
                continue
            tar.link(shown, target, mtime_ns=mtime_ns)
    tar.close()
    out.seek(0)
    return out, left_out


def _mode(stat: Stat) -> int:
    return default_mode(stat.kind) if stat.mode is None else stat.mode


def portable_target(target: str, name: str, root: Path, *, sure: bool = False) -> str | None:
    """The target of link `name` as one relative to it; None when it leads out of the workspace, or may do so.

    An absolute target that goes up behind other links must be known to stay inside (`sure`): it looks as if it did.
    """
    depth = name.count("/")
    if target.startswith("/"):
        prefix = root if root != "/" else ""
        target = "/" + target.lstrip("/")
        if target != prefix and not target.startswith(prefix + "/"):
            return None
        # Only the root is exchanged: `..` behind another link must stay where it is.
        rest = target[len(prefix) :].lstrip("/")
        if ".." in rest.split("/") and not sure:
            return None
        target = "/".join([*[".."] * depth, *([rest] if rest else [])]) or "."
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    return None if reached == ".." or reached.startswith("../") else target


async def _stays_inside(fs: VFS, root: Path, target: str) -> bool:
    """Whether every step of an absolute target is there, and none is outside or through an absolute link."""
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


def unpack(raw: bytes) -> list[Member]:
    """Every member of the archive with its content, or an error about the first bad one."""
    found: list[Member] = []
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:*") as tar:
        validate_tarfile(tar, allow_external_symlink_targets=False)
        for member in tar.getmembers():
            parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
            if not parts:
                continue
            mtime_ns = int(member.mtime * 1_000_000_000)
            if member.isdir():
                found.append(Member(parts, Kind.DIR, member.mode & 0o777 | 0o700, mtime_ns, b""))
            elif member.issym():
                found.append(Member(parts, Kind.LINK, 0o777, mtime_ns, encode(member.linkname)))
            else:
                content = tar.extractfile(member)
                data = b"" if content is None else content.read()
                found.append(Member(parts, Kind.FILE, member.mode & 0o777 | 0o600, mtime_ns, data))
    return found


async def place(fs: VFS, root: Path, members: list[Member]) -> None:
    """Put the members below `root`; what is there already and in the way is found before anything changes."""
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
                await _put(fs, _path(root, member), member)
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
                return  # the archive puts a directory of its own there
            what = "symlink in parent path" if before.kind is Kind.LINK else "parent path is not a directory"
            raise UnsafeTarMemberError(member=member.name, reason=what)
    if member.kind is not Kind.DIR:
        before = await _look(fs, path / member.parts[-1])
        if before is not None and before.kind is Kind.DIR:
            raise UnsafeTarMemberError(
                member=member.name, reason=f"destination directory already exists: {member.name}"
            )


async def _put(fs: VFS, path: Path, member: Member) -> None:
    await ops.make_dirs(fs, path.parent)
    if await _look(fs, path) is not None:
        await fs.remove(path)
    if member.kind is Kind.LINK:
        await fs.write(path, member.data, How.LINK)
        return
    await fs.write(path, member.data, How.CREATE)
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
