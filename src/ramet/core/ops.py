"""Conveniences over any Resource: walk, copy, remove, read whole files. No backend implements them."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence

from ramet.core.errors import Unsupported
from ramet.core.paths import Path
from ramet.core.resource import Data, How, Resource, Whole
from ramet.core.stat import Attrs, Kind, Stat


async def read_bytes(fs: Resource, path: Path) -> bytes:
    """Read the whole content, without waiting if the resource has it in memory."""
    if isinstance(fs, Whole):
        return await fs.read_bytes(path)
    blocks = [block async for block in fs.read(path)]
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


async def small_files(fs: Resource, directory: Path, names: Sequence[str]) -> list[bytes | None]:
    """Read small files of one directory in one call; None for a file that must be read on its own."""
    return await fs.small_files(directory, names) if isinstance(fs, Whole) else [None] * len(names)


async def entries(fs: Resource, path: Path) -> list[tuple[str, Stat]]:
    """List a whole directory, without waiting if the resource has it in memory."""
    if isinstance(fs, Whole):
        return await fs.entries(path)
    return [entry async for entry in fs.scan(path)]


async def write_bytes(fs: Resource, path: Path, data: bytes) -> Stat:
    return await fs.write(path, data)


async def kinds(fs: Resource, path: Path) -> list[tuple[str, Stat]]:
    """List names and kinds of a directory; other fields of the stats may be missing."""
    return await fs.kinds(path) if isinstance(fs, Whole) else await entries(fs, path)


async def exists(fs: Resource, path: Path) -> bool:
    """Return whether the path exists; errors other than absence are raised."""
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
    """Yield everything below `top` in sorted order, a directory before its content; links are not followed."""
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
    """Copy one file or link with its mode and time, on the server if possible."""
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
    """Set the mode and times of `stat` on `path`, as far as the resource supports them."""
    if stat.mode is not None or stat.mtime_ns is not None:
        try:
            await fs.setattr(path, Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns, atime_ns=stat.atime_ns))
        except Unsupported:
            return


async def keep_link_time(fs: Resource, path: Path, mtime_ns: int | None, atime_ns: int | None = None) -> None:
    """Set the times of a link itself, if the resource supports them."""
    if mtime_ns is not None:
        try:
            await fs.setattr(path, Attrs(mtime_ns=mtime_ns, follow=False, atime_ns=atime_ns))
        except Unsupported:
            return


async def copy_tree(src_fs: Resource, src: Path, dst_fs: Resource, dst: Path) -> None:
    """Copy a file or a whole directory with modes, times and links; `dst` must not exist."""
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
    """Remove a file, link or directory with everything below it; links are removed, never followed."""
    if (await fs.stat(top)).kind is not Kind.DIR:
        await fs.remove(top)
        return
    found = [(path, stat) async for path, stat in walk(fs, top)]
    for path, _ in reversed(found):
        await fs.remove(path)
    if top.name:
        await fs.remove(top)


async def one_block(data: bytes) -> AsyncIterator[bytes]:
    """Yield a constant as a stream."""
    if data:
        yield data


async def collect(data: Data) -> bytes:
    """Collect a `Data` into one bytes object."""
    if isinstance(data, bytes):
        return data
    return b"".join([block async for block in data])
