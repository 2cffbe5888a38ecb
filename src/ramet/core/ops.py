"""Conveniences over any Resource; no backend implements them."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence

from ramet.core.errors import Unsupported
from ramet.core.paths import Path
from ramet.core.resource import Data, How, Resource, Whole
from ramet.core.stat import Attrs, Kind, Stat


async def read_bytes(fs: Resource, path: Path) -> bytes:
    """The whole content; at once where the resource has it at hand."""
    if isinstance(fs, Whole):
        return await fs.read_bytes(path)
    blocks = [block async for block in fs.read(path)]
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


async def small_files(fs: Resource, directory: Path, names: Sequence[str]) -> list[bytes | None]:
    """Contents of files of one directory, as many as can be had at once; None stands for one to read by itself."""
    return await fs.small_files(directory, names) if isinstance(fs, Whole) else [None] * len(names)


async def entries(fs: Resource, path: Path) -> list[tuple[str, Stat]]:
    """The whole directory; at once where the resource has it at hand."""
    if isinstance(fs, Whole):
        return await fs.entries(path)
    return [entry async for entry in fs.scan(path)]


async def write_bytes(fs: Resource, path: Path, data: bytes) -> Stat:
    return await fs.write(path, data)


async def kinds(fs: Resource, path: Path) -> list[tuple[str, Stat]]:
    """The names of a directory with their kinds; whatever else the stats say may be missing."""
    return await fs.kinds(path) if isinstance(fs, Whole) else await entries(fs, path)


async def exists(fs: Resource, path: Path) -> bool:
    """Whether something is there; errors other than absence are errors."""
    try:
        await fs.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise
    return True


async def scan_sorted(fs: Resource, path: Path) -> list[tuple[str, Stat]]:
    return sorted(await entries(fs, path))


async def walk(fs: Resource, top: Path) -> AsyncIterator[tuple[Path, Stat]]:
    """Everything below `top` in sorted order, a directory before its content; links are not followed."""
    pending: list[tuple[Path, Stat]] = []
    for name, stat in reversed(await scan_sorted(fs, top)):
        pending.append((top / name, stat))
    while pending:
        path, stat = pending.pop()
        yield path, stat
        if stat.kind is Kind.DIR:
            for name, below in reversed(await scan_sorted(fs, path)):
                pending.append((path / name, below))


async def make_dirs(fs: Resource, path: Path) -> None:
    """Create the directory and its parents where they are missing."""
    missing: list[Path] = []
    while path.name and not await exists(fs, path):
        missing.append(path)
        path = path.parent
    for absent in reversed(missing):
        try:
            await fs.mkdir(absent)
        except FileExistsError:
            if not (await fs.stat(absent)).is_dir:
                raise


async def copy_file(src_fs: Resource, src: Path, dst_fs: Resource, dst: Path, stat: Stat) -> None:
    """One file or link with its mode and time; server side where that is possible."""
    if stat.kind is Kind.LINK:
        await dst_fs.write(dst, (stat.target or "").encode("utf-8", "surrogateescape"), How.LINK)
        return
    data: Data = src_fs.read(src)
    if src_fs is dst_fs:
        try:
            await dst_fs.copy(src, dst)
        except Unsupported:
            await dst_fs.write(dst, data)
    else:
        await dst_fs.write(dst, data)
    await keep_attrs(dst_fs, dst, stat)


async def keep_attrs(fs: Resource, path: Path, stat: Stat) -> None:
    """Give `path` the mode and times of `stat` as far as the resource can hold them."""
    if stat.mode is not None or stat.mtime_ns is not None:
        try:
            await fs.setattr(path, Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns, atime_ns=stat.atime_ns))
        except Unsupported:
            return


async def keep_link_time(fs: Resource, path: Path, mtime_ns: int | None, atime_ns: int | None = None) -> None:
    """Give a link itself its times, as far as the resource can hold them."""
    if mtime_ns is not None:
        try:
            await fs.setattr(path, Attrs(mtime_ns=mtime_ns, follow=False, atime_ns=atime_ns))
        except Unsupported:
            return


async def copy_tree(src_fs: Resource, src: Path, dst_fs: Resource, dst: Path) -> None:
    """A file or a whole directory, with modes, times and links; `dst` must not exist."""
    stat = await src_fs.stat(src)
    if stat.kind is not Kind.DIR:
        await copy_file(src_fs, src, dst_fs, dst, stat)
        return
    await dst_fs.mkdir(dst)
    directories = [(dst, stat)]
    async for path, below in walk(src_fs, src):
        target = path.below(src).onto(dst)
        if below.kind is Kind.DIR:
            await dst_fs.mkdir(target)
            directories.append((target, below))
        else:
            await copy_file(src_fs, path, dst_fs, target, below)
    for target, attrs in reversed(directories):
        await keep_attrs(dst_fs, target, attrs)


async def remove_tree(fs: Resource, top: Path) -> None:
    """The file, link or directory and everything below it; links are removed, never followed."""
    if (await fs.stat(top)).kind is not Kind.DIR:
        await fs.remove(top)
        return
    found = [(path, stat) async for path, stat in walk(fs, top)]
    for path, _ in reversed(found):
        await fs.remove(path)
    if top.name:
        await fs.remove(top)


async def one_block(data: bytes) -> AsyncIterator[bytes]:
    """A constant as a stream."""
    if data:
        yield data


async def collect(data: Data) -> bytes:
    """Everything of a `Data` in one piece."""
    if isinstance(data, bytes):
        return data
    return b"".join([block async for block in data])
