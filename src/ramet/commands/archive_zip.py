"""zip and unzip on archives of the tree; extraction never leaves its directory."""

from __future__ import annotations

import asyncio
import calendar
import dataclasses
import io
import re
import time
import zipfile
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from ramet.commands.clock import NANO, at, zone_of
from ramet.commands.copy import lookup
from ramet.commands.declare import Command, UsageError, choose, count, flag, several, value
from ramet.commands.globs import fnmatch
from ramet.commands.modes import mode_of, mode_string
from ramet.core import ops
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Kind, Stat


@dataclass(frozen=True, slots=True)
class ZipOptions:
    recursive: bool = flag("-r", "--recurse-paths", help="travel the directory structure recursively")
    junk: bool = flag("-j", "--junk-paths", help="store just the name of a saved file, not its path")
    quiet: bool = flag("-q", "--quiet", help="quiet mode")
    update: bool = flag("-u", "--update", help="update: only changed or new files")
    freshen: bool = flag("-f", "--freshen", help="freshen: only changed files")
    delete: bool = flag("-d", "--delete", help="delete entries in zipfile")
    move: bool = flag("-m", "--move", help="move into zipfile (delete OS files)")
    no_dirs: bool = flag("-D", "--no-dir-entries", help="do not add directory entries")
    symlinks: bool = flag("-y", "--symlinks", help="store symbolic links as the link")
    names: bool = flag("-@", "--names-stdin", help="read names from stdin")
    exclude: tuple[str, ...] = several("-x", "--exclude", metavar="PATTERN", help="exclude the following names")
    include: tuple[str, ...] = several("-i", "--include", metavar="PATTERN", help="include only the following names")
    level: int = choose({f"-{n}": n for n in range(10)}, default=6, help="compression: -0 stores, -9 compresses best")
    verbose: bool = flag("-v", "--verbose", help="verbose operation")
    test: bool = flag("-T", "--test", help="test zipfile integrity")
    grow: bool = flag("-g", "--grow", help="grow existing zip file")
    show: bool = flag("--show-files", help="list what is, or would be, in the archive (-sf)")
    output: str | None = value("-O", "--output-file", metavar="FILE", help="write to a new zip file")


def _lists(words: list[str]) -> list[str]:
    """`-x a b c` and `-i a b c` take everything up to the next option."""
    out: list[str] = []
    i = 0
    while i < len(words):
        word = words[i]
        i += 1
        if word in ("-x", "-i", "--exclude", "--include"):
            while i < len(words) and not words[i].startswith("-") and words[i] != "@":
                out += [word, words[i]]
                i += 1
            i += i < len(words) and words[i] == "@"
        else:
            out.append("--show-files" if word == "-sf" else word)
    return out


async def zip_(proc: Proc, o: ZipOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("Usage: zip [-options] archive.zip files", hint=False, status=16)
    name = operands[0]
    if name != "-" and "." not in name.rpartition("/")[2]:
        name += ".zip"
    words = operands[1:]
    if o.names:
        words += [decode(line) for line in (await proc.stdin.read_all()).split(b"\n") if line]
    old: dict[str, tuple[zipfile.ZipInfo, bytes]] = {}
    existing = await lookup(proc, proc.path(name), follow=True) if name != "-" else None
    if existing is not None and existing.size:
        try:
            with zipfile.ZipFile(io.BytesIO(await ops.read_bytes(proc.fs, proc.path(name)))) as archive:
                old = {info.filename: (info, archive.read(info)) for info in archive.infolist()}
        except zipfile.BadZipFile:
            proc.stderr.write(encode(f"zip error: Zip file structure invalid ({name})\n"))
            return 3
    if not old and (o.delete or o.freshen):
        await proc.emit(encode(f"\tzip warning: {name} not found or empty\n"))
        if o.delete:
            await proc.emit(encode(f"\nzip error: Nothing to do! ({name})\n"))
        return 12
    if o.delete:
        return await _delete(proc, o, name, words, old)
    piped = await proc.stdin.read_all() if "-" in words else None
    found = [entry async for entry in _collect(proc, o, [word for word in words if word != "-"])]
    if o.show:
        rows = [(stored, stat.size or 0) for stored, _, stat in found] or [
            (stored, info.file_size) for stored, (info, _) in old.items()
        ]
        total = sum(size for stored, size in rows if not stored.endswith("/"))
        shown = "".join(f"  {stored}\n" for stored, _ in rows)
        head = "Would Add/Update:" if found else "Archive contains:"
        await proc.emit(encode(f"{head}\n{shown}Total {len(rows)} entries ({total} bytes)\n"))
        return 0
    if (
        o.update
        and found
        and all(stored in old and _stamp(proc, stat) <= old[stored][0].date_time for stored, _, stat in found)
    ):
        return 12
    if not found and piped is None:
        await proc.emit(encode(f"\nzip error: Nothing to do! ({name})\n"))
        return 12
    job = _Zip(proc, o, sum(stat.size or 0 for _, _, stat in found) > _STREAMED, to_stdout=name == "-")
    job.piped = piped
    made = job.make(found, old)
    if name == "-":
        async for block in made:
            await proc.emit(block)
    else:
        await proc.fs.write(proc.path(o.output or name), made)
    if o.verbose:
        await proc.emit(job.summary())
    if o.test and name != "-":
        await proc.emit(encode(f"test of {name} OK\n"))
    if o.move:
        for _, path, _ in reversed(found):
            await proc.fs.remove(path)
    return 0


def _stamp(proc: Proc, stat: Stat) -> tuple[int, int, int, int, int, int]:
    when, _ = at(stat.mtime_ns or 0, zone_of(proc))
    return (max(1980, when.year), when.month, when.day, when.hour, when.minute, when.second // 2 * 2)


_LONG = 1 << 18
"""Bytes from which on packing is done beside the event loop."""


def _shrinks(data: bytes, level: int) -> bool:
    """Whether packing is worth it; the beginning of something long tells."""
    sample = data if len(data) < _LONG else data[: 1 << 16]
    return bool(level and data) and len(zlib.compress(sample, level)) - 6 < len(sample)


_STREAMED = 8 << 20
"""Bytes of members from which on an archive is written as it is made, each member before its size is known."""


class _Sink(io.RawIOBase):
    """Where a streamed archive goes: blocks that wait to be taken, and no way back."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.blocks.append(bytes(data))
        return len(data)


class _Zip:
    """One archive in the making."""

    def __init__(self, proc: Proc, o: ZipOptions, streamed: bool, *, to_stdout: bool) -> None:
        self.proc, self.o, self.to_stdout = proc, o, to_stdout
        self.sink = _Sink() if streamed else None
        self.buffer = io.BytesIO()
        self.total = self.packed = 0
        self.piped: bytes | None = None
        """What becomes the member `-`."""

    def summary(self) -> bytes:
        saved = round((1 - self.packed / self.total) * 100) if self.total else 0
        return f"total bytes={self.total}, compressed={self.packed} -> {saved}% savings\n".encode()

    async def make(
        self, found: list[tuple[str, Path, Stat]], old: dict[str, tuple[zipfile.ZipInfo, bytes]]
    ) -> AsyncIterator[bytes]:
        o, proc = self.o, self.proc
        kind = zipfile.ZIP_DEFLATED if o.level else zipfile.ZIP_STORED
        target: Any = self.sink or self.buffer
        with zipfile.ZipFile(target, "w", kind, compresslevel=o.level or None) as archive:
            names = {stored for stored, _, _ in found}
            for stored, (info, data) in old.items():
                if stored not in names or o.freshen:
                    archive.writestr(info, data)
            for stored, path, stat in found:
                if (o.update or o.freshen) and stored in old and _stamp(proc, stat) <= old[stored][0].date_time:
                    archive.writestr(*old[stored])
                    continue
                if o.freshen and stored not in old:
                    continue
                async for block in self._member(archive, stored, path, stat, stored in old):
                    yield block
                await proc.budget.breathe()
            if self.piped is not None:
                when, _ = at(int(proc.now() * NANO), zone_of(proc))
                info = zipfile.ZipInfo("-", (when.year, when.month, when.day, when.hour, when.minute, when.second))
                info.compress_type, info.external_attr = kind, 0o10600 << 16
                archive.writestr(info, self.piped, compresslevel=o.level or None)
                if not o.quiet:
                    await self._told("-", info, "-" in old)
        for block in self._taken():
            yield block
        if self.sink is None:
            yield self.buffer.getvalue()

    def _taken(self) -> list[bytes]:
        if self.sink is None:
            return []
        blocks, self.sink.blocks = self.sink.blocks, []
        return blocks

    async def _member(
        self, archive: zipfile.ZipFile, stored: str, path: Path, stat: Stat, replaced: bool
    ) -> AsyncIterator[bytes]:
        proc, o = self.proc, self.o
        info = zipfile.ZipInfo(stored, _stamp(proc, stat))
        kind = 0o120000 if stat.kind is Kind.LINK else 0o040000 if stat.is_dir else 0o100000
        info.external_attr = (kind | mode_of(stat)) << 16 | (0x10 if stat.is_dir else 0)
        info.create_system = 3
        size = 0
        if stat.is_dir:
            archive.writestr(info, b"")
        else:
            data = b""
            if stat.kind is Kind.LINK:
                data = encode(stat.target or "")
            elif (stat.size or 0) < _LONG:
                data = await ops.read_bytes(proc.fs, path)
            info.compress_type = zipfile.ZIP_DEFLATED if o.level else zipfile.ZIP_STORED
            if data or not stat.size:
                if not _shrinks(data, o.level):
                    info.compress_type = zipfile.ZIP_STORED
                archive.writestr(info, data, compresslevel=o.level or None)
                size = len(data)
            else:
                async for block in self._long(archive, info, path, stat):
                    yield block
                size = info.file_size
        for block in self._taken():
            yield block
        self.total, self.packed = self.total + size, self.packed + (info.compress_size if size else 0)
        if not o.quiet:
            await self._told(stored, info, replaced)

    async def _told(self, stored: str, info: zipfile.ZipInfo, replaced: bool) -> None:
        packed = info.compress_type != zipfile.ZIP_STORED and info.file_size
        note = f"(deflated {round((1 - info.compress_size / info.file_size) * 100)}%)" if packed else "(stored 0%)"
        text = encode(f"{'updating' if replaced else '  adding'}: {stored} {note}\n")
        if self.to_stdout:
            self.proc.stderr.write(text)
        else:
            await self.proc.emit(text)

    async def _long(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, stat: Stat
    ) -> AsyncIterator[bytes]:
        """A member that is packed beside the event loop, block by block."""
        member: Any = None
        try:
            async for block in self.proc.fs.read(path):
                if member is None:
                    if not _shrinks(block[: 1 << 16], self.o.level):
                        info.compress_type = zipfile.ZIP_STORED
                    info._compresslevel = self.o.level or None  # type: ignore[attr-defined]
                    member = archive.open(info, "w", force_zip64=(stat.size or 0) > 1 << 31)
                await asyncio.to_thread(member.write, block)
                for made in self._taken():
                    yield made
        finally:
            if member is not None:
                member.close()


async def _collect(proc: Proc, o: ZipOptions, words: list[str]) -> AsyncIterator[tuple[str, Path, Stat]]:
    for word in words:
        path = proc.path(word)
        stat = await lookup(proc, path, follow=not o.symlinks)
        if stat is None:
            await proc.emit(encode(f"\tzip warning: name not matched: {word}\n"))
            continue
        async for item in _walk(proc, o, word, path, stat):
            yield item


async def _walk(proc: Proc, o: ZipOptions, word: str, path: Path, stat: Stat) -> AsyncIterator[tuple[str, Path, Stat]]:
    stored = word.rpartition("/")[2] if o.junk else re.sub(r"^(\./|/)+", "", word)
    if stat.is_dir:
        directory = stored.rstrip("/") + "/"
        if not o.no_dirs and not o.junk and directory not in ("/", "./") and _wanted(o, directory):
            yield directory, path, stat
        if o.recursive:
            for name, below in sorted([entry async for entry in proc.fs.scan(path)]):
                if below.kind is Kind.LINK and not o.symlinks:
                    below = await lookup(proc, path / name, follow=True) or below
                async for item in _walk(proc, o, f"{word.rstrip('/')}/{name}", path / name, below):
                    yield item
    elif _wanted(o, stored):
        yield stored, path, stat


def _wanted(o: ZipOptions, name: str) -> bool:
    if any(fnmatch(name, p) or fnmatch(name.rstrip("/"), p) for p in o.exclude):
        return False
    return not o.include or any(fnmatch(name, p) for p in o.include)


async def _delete(
    proc: Proc, o: ZipOptions, name: str, words: list[str], old: dict[str, tuple[zipfile.ZipInfo, bytes]]
) -> int:
    gone = [n for n in old if any(fnmatch(n, w) for w in words)]
    if not gone:
        proc.stderr.write(encode(f"\nzip error: Nothing to do! ({name})\n"))
        return 12
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for stored, (info, data) in old.items():
            if stored not in gone:
                archive.writestr(info, data)
    for stored in gone:
        if not o.quiet:
            await proc.emit(encode(f"deleting: {stored}\n"))
    if len(gone) == len(old):
        await proc.fs.remove(proc.path(name))
    else:
        await proc.fs.write(proc.path(name), buffer.getvalue())
    return 0


# -------------------------------------------------------------------------------------------------------- unzip


@dataclass(frozen=True, slots=True)
class UnzipOptions:
    list: bool = flag("-l", help="list files (short format)")
    verbose: bool = flag("-v", help="list verbosely")
    test: bool = flag("-t", help="test compressed archive data")
    pipe: bool = flag("-p", help="extract files to pipe, no messages")
    to_stdout: bool = flag("-c", help="extract files to stdout, with names")
    directory: str | None = value("-d", metavar="EXDIR", help="extract files into EXDIR")
    overwrite: bool = flag("-o", help="overwrite files without prompting")
    never: bool = flag("-n", help="never overwrite existing files")
    junk: bool = flag("-j", help="junk paths (do not make directories)")
    quiet: int = count("-q", help="quiet mode; twice for quieter")
    comment: bool = flag("-z", help="display only the archive comment")
    exclude: tuple[str, ...] = several("-x", metavar="PATTERN", help="exclude files that follow")
    names_only: bool = flag("-Z", help="list names like zipinfo")
    one_per_line: bool = flag("-1", help="with -Z, names only")
    update: bool = flag("-u", help="update files, create if necessary")
    freshen: bool = flag("-f", help="freshen existing files, create none")
    lower: bool = flag("-L", help="make names lowercase")
    case: bool = flag("-C", help="match filenames case-insensitively")


async def unzip(proc: Proc, o: UnzipOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("Usage: unzip [-opts] file[.zip] [list] [-x xlist] [-d exdir]", hint=False, status=10)
    name = operands[0]
    path = proc.path(name)
    if await lookup(proc, path, follow=True) is None:
        if await lookup(proc, proc.path(name + ".zip"), follow=True) is None:
            proc.stderr.write(encode(f"unzip:  cannot find or open {name}, {name}.zip or {name}.ZIP.\n"))
            return 9
        name, path = name + ".zip", proc.path(name + ".zip")
    try:
        archive = zipfile.ZipFile(io.BytesIO(await ops.read_bytes(proc.fs, path)))
    except zipfile.BadZipFile:
        if not o.names_only:
            await proc.emit(encode(f"Archive:  {name}\n"))
        proc.stderr.write(
            encode(
                "  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it "
                "constitutes one disk of a multi-part archive.  In the\n  latter case the central directory and "
                "zipfile comment will be found on\n  the last disk(s) of this archive.\nunzip:  cannot find zipfile "
                f"directory in one of {name} or\n        {name}.zip, and cannot find {name}.ZIP, period.\n"
            )
        )
        return 9
    with archive:
        wanted = operands[1:]
        members = [
            i
            for i in archive.infolist()
            if (not wanted or any(fnmatch(i.filename, w, icase=o.case) for w in wanted))
            and not any(fnmatch(i.filename, x) for x in o.exclude)
        ]
        if o.comment:
            await proc.emit(encode(f"Archive:  {name}\n") + archive.comment + (b"\n" if archive.comment else b""))
            return 0
        if o.names_only and o.one_per_line:
            await proc.emit(encode("".join(f"{i.filename}\n" for i in members)))
            return 0
        if o.names_only:
            size = (await proc.fs.stat(path, follow=True)).size or 0
            await proc.emit(encode(_info(name, size, members, len(archive.infolist()))))
            return 0
        if o.list or o.verbose:
            await _list(proc, o, name, members)
            return 0 if members or not wanted else 11
        status = 0
        for pattern in wanted:
            if not any(fnmatch(i.filename, pattern, icase=o.case) for i in archive.infolist()):
                proc.stderr.write(encode(f"caution: filename not matched:  {pattern}\n"))
                status = 11
        if not (o.quiet or o.pipe):
            await proc.emit(encode(f"Archive:  {name}\n"))
        for info in members:
            try:
                status = max(status, await _extract(proc, o, archive, info))
            except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
                proc.stderr.write(encode(f"{info.filename}:  {error}\n"))
                status = 3
            await proc.budget.breathe()
        if o.test and not status and o.quiet < 2:
            await proc.emit(encode(f"No errors detected in compressed data of {name}.\n"))
        return status


def _when(info: zipfile.ZipInfo) -> str:
    year, month, day, hour, minute, _ = info.date_time
    return f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}"


async def _list(proc: Proc, o: UnzipOptions, name: str, members: list[zipfile.ZipInfo]) -> None:
    total, packed = sum(i.file_size for i in members), sum(i.compress_size for i in members)
    count = f"{len(members)} file{'' if len(members) == 1 else 's'}"
    out = [] if o.quiet else [f"Archive:  {name}\n"]
    if o.verbose:
        head = (
            " Length   Method    Size  Cmpr    Date    Time   CRC-32   Name\n--------  ------  ------- ---- "
            "---------- ----- --------  ----\n"
        )
        out += [head] if o.quiet < 2 else []
        for i in members:
            method = "Stored" if i.compress_type == 0 else "Defl:N"
            out.append(
                f"{i.file_size:8d}  {method} {i.compress_size:8d} {_ratio(i.compress_size, i.file_size):3d}% "
                f"{_when(i)} {i.CRC:08x}  {i.filename}\n"
            )
        if o.quiet < 2:
            out.append(
                f"--------          -------  ---                            -------\n{total:8d}         {packed:8d} "
                f"{_ratio(packed, total):3d}%                            {count}\n"
            )
    else:
        if o.quiet < 2:
            out.append("  Length      Date    Time    Name\n---------  ---------- -----   ----\n")
        out += [f"{i.file_size:9d}  {_when(i)}   {i.filename}\n" for i in members]
        if o.quiet < 2:
            out.append(f"---------                     -------\n{total:9d}                     {count}\n")
    await proc.emit(encode("".join(out)))


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _info(name: str, size: int, members: list[zipfile.ZipInfo], entries: int) -> str:
    """What zipinfo tells of an archive."""
    out = [f"Archive:  {name}\nZip file size: {size} bytes, number of entries: {entries}\n"]
    for i in members:
        mode = mode_string(Kind.DIR if i.is_dir() else Kind.FILE, i.external_attr >> 16 & 0o7777)
        version, system = divmod(i.create_version, 10), {0: "fat", 3: "unx"}.get(i.create_system, "???")
        method = "stor" if i.compress_type == zipfile.ZIP_STORED else "defN"
        kind = "b" if i.is_dir() else "t"
        year, month, day, hour, minute, _ = i.date_time
        when = f"{year % 100:02d}-{_MONTHS[month - 1]}-{day:02d} {hour:02d}:{minute:02d}"
        extra = "x" if i.extra else "-"
        out.append(
            f"{mode}  {version[0]}.{version[1]} {system} {i.file_size:8d} {kind}{extra} {method} {when} {i.filename}\n"
        )
    total, packed = sum(i.file_size for i in members), sum(i.compress_size for i in members)
    saved = f"{(1 - packed / total) * 100:.1f}" if total else "0.0"
    plural = "" if len(members) == 1 else "s"
    out.append(f"{len(members)} file{plural}, {total} bytes uncompressed, {packed} bytes compressed:  {saved}%\n")
    return "".join(out)


async def zipinfo(proc: Proc, o: UnzipOptions, operands: list[str]) -> int:
    return await unzip(proc, dataclasses.replace(o, names_only=True), operands)


def _ratio(packed: int, size: int) -> int:
    return round((1 - packed / size) * 100) if size else 0


async def _extract(proc: Proc, o: UnzipOptions, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    name = info.filename
    if o.test:
        archive.read(info)
        if not o.quiet:
            await proc.emit(encode(f"    testing: {name:<22}   OK\n"))
        return 0
    if o.pipe or o.to_stdout:
        if info.is_dir():
            return 0
        if o.to_stdout and not o.quiet:
            how = " extracting" if info.compress_type == zipfile.ZIP_STORED else "  inflating"
            await proc.emit(encode(f"{how}: {name:<22}  \n"))
        with archive.open(info) as source:
            while block := source.read(1 << 18):
                await proc.emit(block)
        if o.to_stdout and not o.quiet:
            await proc.emit(b"\n")
        return 0
    name = name.lower() if o.lower else name
    parts = [p for p in name.replace("\\", "/").split("/") if p not in ("", ".", "..")]
    if len(parts) != len([p for p in name.split("/") if p not in ("", ".")]) or name.startswith("/"):
        proc.stderr.write(
            encode(
                f'warning:  skipped "../" path component(s) in {name}\n'
                if ".." in name
                else f"warning:  stripped absolute path spec from {name}\n"
            )
        )
    if not parts:
        return 0
    target = parts[-1] if o.junk else "/".join(parts)
    base = o.directory or ""
    word = f"{base.rstrip('/')}/{target}" if base else target
    path = proc.path(word)
    if info.is_dir():
        if not o.junk and not await ops.exists(proc.fs, path):
            await ops.make_dirs(proc.fs, path)
            if not o.quiet:
                await proc.emit(encode(f"   creating: {word}/\n"))
        return 0
    if not await _inside(proc, path, proc.path(base or ".")):
        proc.stderr.write(encode(f"{name}:  a link in the path leads out of the directory, skipped\n"))
        return 2
    existing = await lookup(proc, path)
    if existing is not None:
        stamped = calendar.timegm(time.struct_time((*info.date_time, 0, 0, 0))) * NANO
        if o.never or ((o.update or o.freshen) and (existing.mtime_ns or 0) >= stamped):
            return 0
        if not o.overwrite:
            proc.stderr.write(encode(f"replace {word}? [y]es, [n]o, [A]ll, [N]one, [r]ename: "))
            if (await proc.stdin.readline())[:1] not in (b"y", b"Y", b"A"):
                return 0
        await proc.fs.remove(path)
    elif o.freshen:
        return 0
    await ops.make_dirs(proc.fs, path.parent)
    mode = info.external_attr >> 16
    if mode & 0o170000 == 0o120000:
        await proc.fs.write(path, archive.read(info), How.LINK)
        return 0

    async def blocks() -> AsyncIterator[bytes]:
        with archive.open(info) as source:
            while block := source.read(1 << 18):
                yield block

    await proc.fs.write(path, blocks())
    stamp = time.struct_time((*info.date_time, 0, 0, 0))
    await ops.keep_attrs(
        proc.fs, path, Stat(Kind.FILE, mode=(mode & 0o777) or 0o644, mtime_ns=calendar.timegm(stamp) * NANO)
    )
    if not o.quiet:
        verb = " extracting" if info.compress_type == 0 else "  inflating"
        await proc.emit(encode(f"{verb}: {word:<22}  \n"))
    return 0


async def _inside(proc: Proc, path: Path, base: Path) -> bool:
    top = await proc.fs.resolve(base, missing_ok=True)
    parent = path.parent
    while parent.under(base) and parent != base:
        if await lookup(proc, parent) is not None:
            return (await proc.fs.resolve(parent)).under(top)
        parent = parent.parent
    return True


COMMANDS = [
    Command(
        "zip",
        zip_,
        ZipOptions,
        summary="Package and compress (archive) files.",
        usage="[-options] archive.zip FILE...",
        rewrite=_lists,
        bad_usage=16,
        refused={
            "-e --encrypt": "encryption is not supported",
            "-P= --password=": "encryption is not supported",
            "-s= --split-size=": "split archives are not supported",
        },
        ignored=("-X --strip-extra", "-o --latest-time", "-S", "-A", "-b=", "-ll -l"),
    ),
    Command(
        "unzip",
        unzip,
        UnzipOptions,
        summary="List, test and extract compressed files in a ZIP archive.",
        usage="[-options] file[.zip] [list] [-x xlist] [-d exdir]",
        rewrite=_lists,
        bad_usage=10,
        refused={"-P=": "encrypted archives are not supported"},
        ignored=("-a", "-b", "-X", "-K", "-B", "-s", "-W", "-DD -D"),
    ),
    Command(
        "zipinfo",
        zipinfo,
        UnzipOptions,
        summary="List what is known about a ZIP archive.",
        usage="[-1] file[.zip] [list] [-x xlist]",
        rewrite=_lists,
        bad_usage=10,
    ),
]
