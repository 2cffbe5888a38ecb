"""The conformance suite for read-only resources, on a tree that has content.

A check gets a resource with at least one file somewhere in it, and raises AssertionError when a promise is broken.
"""

from __future__ import annotations

import asyncio
import errno

from ramet.core import ops
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap, How, Resource
from ramet.core.stat import Attrs, Kind, Stat
from ramet.layers.emulate import Emulate
from ramet.testing.resource_suite import Check, refused

MOST = 60
"""Entries that a check looks at."""


async def _some(fs: Resource) -> list[tuple[Path, Stat]]:
    found: list[tuple[Path, Stat]] = []
    async for entry in ops.walk(fs, ROOT):
        found.append(entry)
        if len(found) >= MOST:
            break
    assert any(stat.kind is Kind.FILE for _, stat in found), "the tree holds no file"
    return found


async def what_is_listed_is_there(fs: Resource) -> None:
    assert (await fs.stat(ROOT)).kind is Kind.DIR
    for path, listed in await _some(fs):
        stat = await fs.stat(path)
        assert stat.kind is listed.kind, path
        assert None in (stat.version, listed.version) or stat.version == listed.version, path
        assert None in (stat.size, listed.size) or stat.size == listed.size, path


async def names_are_names(fs: Resource) -> None:
    for path, stat in [(ROOT, Stat(Kind.DIR)), *await _some(fs)]:
        if stat.kind is Kind.DIR:
            names = [name async for name, _ in fs.scan(path)]
            assert len(set(names)) == len(names), f"{path} lists a name twice"
            for name in names:
                assert name and name not in (".", "..") and "/" not in name and "\0" not in name, (path, name)
                assert len(name.encode("utf-8", "surrogateescape")) <= 255, (path, name)


async def sizes_are_those_of_contents(fs: Resource) -> None:
    for path, listed in await _some(fs):
        if listed.kind is Kind.FILE:
            data = await ops.read_bytes(fs, path)
            assert listed.size in (None, len(data)) and (await fs.stat(path)).size in (None, len(data)), path


async def ranges_are_parts_of_contents(fs: Resource) -> None:
    whole = fs if Cap.RANGES in fs.caps else Emulate(fs)
    for path, listed in await _some(fs):
        if listed.kind is not Kind.FILE:
            continue
        data = await ops.read_bytes(fs, path)
        middle = len(data) // 2
        for start, stop in ((0, 1), (0, 0), (middle, None), (1, middle), (middle, len(data) + 9), (len(data), None)):
            got = b"".join([block async for block in whole.read(path, start, stop)])
            assert got == data[start:stop], (path, start, stop)


async def a_reader_may_stop_and_another_begin(fs: Resource) -> None:
    for path, listed in await _some(fs):
        if listed.kind is Kind.FILE:
            data = await ops.read_bytes(fs, path)
            source = fs.read(path)
            async for block in source:
                assert data.startswith(block)
                break
            await source.aclose()  # type: ignore[attr-defined]
            assert await ops.read_bytes(fs, path) == data, path


async def many_may_read_at_once(fs: Resource) -> None:
    files = [path for path, stat in await _some(fs) if stat.kind is Kind.FILE][:12]
    alone = [await ops.read_bytes(fs, path) for path in files]
    assert await asyncio.gather(*(ops.read_bytes(fs, path) for path in files)) == alone


async def what_is_not_there_is_missing(fs: Resource) -> None:
    absent = "no such entry"
    for path, stat in [(ROOT, Stat(Kind.DIR)), *await _some(fs)]:
        numbers = (errno.ENOENT,) if stat.kind is Kind.DIR else (errno.ENOTDIR, errno.ENOENT)
        if stat.kind is Kind.LINK:
            numbers = (errno.ELOOP,)
        with refused(*numbers):
            await fs.stat(path / absent)
        with refused(*numbers):
            await ops.read_bytes(fs, path / absent)
        with refused(*numbers):
            await ops.entries(fs, path / absent)


async def a_file_is_no_directory_and_a_directory_no_file(fs: Resource) -> None:
    for path, stat in [(ROOT, Stat(Kind.DIR)), *await _some(fs)]:
        if stat.kind is Kind.DIR:
            with refused(errno.EISDIR):
                await ops.read_bytes(fs, path)
        elif stat.kind is Kind.FILE:
            with refused(errno.ENOTDIR):
                await ops.entries(fs, path)


async def what_cannot_be_written_says_so(fs: Resource) -> None:
    if Cap.WRITE in fs.caps:
        return
    numbers = (errno.EROFS, errno.ENOTSUP)
    files = [path for path, stat in await _some(fs) if stat.kind is Kind.FILE]
    before = await ops.read_bytes(fs, files[0])
    for how in How:
        with refused(*numbers, errno.EEXIST, errno.EPERM):
            await fs.write(files[0], b"x", how)
    for call in (
        fs.mkdir(ROOT / "new"), fs.remove(files[0]), fs.rename(files[0], ROOT / "new"), fs.copy(files[0], ROOT / "new"),
        fs.setattr(files[0], Attrs(mode=0o600)),
    ):  # fmt: skip
        with refused(*numbers):
            await call
    assert await ops.read_bytes(fs, files[0]) == before


READING: list[Check] = [
    Check(body.__name__, Cap.READ, body)
    for body in (
        what_is_listed_is_there, names_are_names, sizes_are_those_of_contents, ranges_are_parts_of_contents,
        a_reader_may_stop_and_another_begin, many_may_read_at_once, what_is_not_there_is_missing,
        a_file_is_no_directory_and_a_directory_no_file, what_cannot_be_written_says_so,
    )
]  # fmt: skip
