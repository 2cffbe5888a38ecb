"""zip: add files to a zip archive, update and delete its members."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import re
import zipfile
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, choose, flag, several, value
from ramet.commands.framework.file_modes import mode_of
from ramet.concurrency.sizes import LARGE
from ramet.core import ops
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO, at, zone_of


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
    output: str | None = value("-O", "--output-file", "--out", metavar="FILE", help="write to a new zip file")
    since: str | None = value("-t", "--from-date", metavar="DATE", help="only files that are not older (mmddyyyy)")
    before: str | None = value("--before-date", metavar="DATE", help="only files that are older (-tt)")
    comment: bool = flag("-z", "--archive-comment", help="read a comment for the archive from stdin")
    patterns: bool = flag("-R", "--recurse-patterns", help="files below the current directory that match")
    method: str = value(
        "-Z", "--compression-method", metavar="METHOD", default="deflate", help="store, deflate or bzip2"
    )
    suffixes: str = value("-n", "--suffixes", metavar="SUFFIXES", default="", help="don't compress these (.zip:.png)")
    sync: bool = flag("--filesync", help="delete entries that there are no files for any more (-FS)")
    must_match: bool = flag("--must-match", help="every name must be one of a file (-MM)")


def expand_lists(words: list[str]) -> list[str]:
    """Repeat -x and -i for each of their words, up to the next option."""
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
            out.append(_SPELLED.get(word, word))
    return out


_SPELLED = {
    "-sf": "--show-files",
    "-FS": "--filesync",
    "-MM": "--must-match",
    "-tt": "--before-date",
    **{f"-{word}": "--quiet-display" for word in ("db", "dc", "dd", "dg", "du", "dv", "nw", "ws", "ic", "la", "li")},
    "-TT": "--unzip-command",
    "-lf": "--logfile-path",
    "-FF": "--fixfix",
}
"""Two-letter options by their long names."""


async def zip_(proc: Proc, o: ZipOptions, operands: list[str]) -> int:
    if not operands and (o.exclude or o.include):
        await proc.emit(b"\nzip error: Invalid command arguments (nothing to select from)\n")
        return 16
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
    if not old and o.update and not o.quiet:
        await proc.emit(encode(f"\tzip warning: {name} not found or empty\n"))
    if o.delete:
        return await _delete(proc, o, name, words, old)
    if o.test and old and not words and not o.names:
        await proc.emit(encode(f"test of {name} OK\n"))
        return 0
    if not words and (o.freshen or o.update) and not o.names:
        words = [stored for stored in old if await lookup(proc, proc.path(stored), follow=True) is not None]
    piped = await proc.stdin.read_all() if "-" in words else None
    missing: list[str] = []
    try:
        found = [entry async for entry in _collect(proc, o, [word for word in words if word != "-"], missing)]
        repeated = _repeated(found)
        found = list({path: item for item in reversed(found) for path in (item[1],)}.values())[::-1]
        if repeated is not None:
            first, second, stored = repeated
            await proc.emit(
                encode(
                    f"\tzip warning:   first full name: {first}\n                      second full name: {second}\n"
                    f"                     name in zip file repeated: {stored}\n"
                    f"{'                     this may be a result of using -j' + chr(10) if o.junk else ''}"
                    "\nzip error: Invalid command arguments (cannot repeat names in zip file)\n"
                )
            )
            return 16
    except _BadDay:
        why = "invalid date entered for -t option - use mmddyyyy or yyyy-mm-dd"
        await proc.emit(encode(f"\nzip error: Invalid command arguments ({why})\n"))
        return 16
    if missing and o.must_match:
        await proc.emit(
            encode(
                "zip I/O error: No such file or directory\n"
                f"zip error: File not found or no read permission ({missing[0]})\n"
            )
        )
        return 18
    if o.sync and found and _is_current(proc, found, old):
        await proc.emit(b"Archive is current\n")
        return 0
    if o.show:
        rows = [(stored, stat.size or 0) for stored, _, stat in found] or [
            (stored, info.file_size) for stored, (info, _) in old.items()
        ]
        total = sum(size for stored, size in rows if not stored.endswith("/"))
        shown = "".join(f"  {stored}\n" for stored, _ in rows)
        head = "Would Add/Update:" if found else "Archive contains:"
        await proc.emit(encode(f"{head}\n{shown}Total {len(rows)} entries ({total} bytes)\n"))
        return 0
    if o.freshen:
        found = [item for item in found if item[0] in old and _stamp(proc, item[2]) > old[item[0]][0].date_time]
        if not found:
            return 12
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
    if o.sync:
        for stored in [stored for stored in old if stored not in {name for name, _, _ in found}]:
            del old[stored]
            if not o.quiet:
                await proc.emit(encode(f"deleting: {stored}\n"))
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


def _repeated(found: list[tuple[str, Path, Stat]]) -> tuple[str, str, str] | None:
    """Two files with the same name in the archive."""
    seen: dict[str, Path] = {}
    for stored, path, _ in found:
        if seen.setdefault(stored, path) != path:
            return str(seen[stored]), str(path), stored
    return None


def _is_current(proc: Proc, found: list[tuple[str, Path, Stat]], old: dict[str, tuple[zipfile.ZipInfo, bytes]]) -> bool:
    return {stored for stored, _, _ in found} == set(old) and all(
        _stamp(proc, stat) == old[stored][0].date_time for stored, _, stat in found
    )


def _stamp(proc: Proc, stat: Stat) -> tuple[int, int, int, int, int, int]:
    when, _ = at(stat.mtime_ns or 0, zone_of(proc))
    return (max(1980, when.year), when.month, when.day, when.hour, when.minute, when.second // 2 * 2)


def _shrinks(data: bytes, level: int) -> bool:
    """Return whether compression shrinks the data, judged by its beginning."""
    sample = data if len(data) < LARGE else data[: 1 << 16]
    return bool(level and data) and len(zlib.compress(sample, level)) - 6 < len(sample)


_NO_TEXT = bytes((*range(7), *range(14, 26), *range(28, 32)))


def _is_text(data: bytes) -> bool:
    """Return whether there is something, and no byte in it that no text has."""
    return bool(data) and len(data.translate(None, _NO_TEXT)) == len(data)


_STREAMED = 8 << 20
"""Total bytes from which on an archive is streamed, with sizes behind the data."""


class _Sink(io.RawIOBase):
    """Unseekable output of a streamed archive: a queue of blocks."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.blocks.append(bytes(data))
        return len(data)


class _Zip:
    """The state of one zip run."""

    def __init__(self, proc: Proc, o: ZipOptions, streamed: bool, *, to_stdout: bool) -> None:
        self.proc, self.o, self.to_stdout = proc, o, to_stdout
        self.sink = _Sink() if streamed else None
        self.buffer = io.BytesIO()
        self.total = self.packed = 0
        self.piped: bytes | None = None
        """The content of the member `-`."""

    def summary(self) -> bytes:
        saved = round((1 - self.packed / self.total) * 100) if self.total else 0
        return f"total bytes={self.total}, compressed={self.packed} -> {saved}% savings\n".encode()

    async def make(
        self, found: list[tuple[str, Path, Stat]], old: dict[str, tuple[zipfile.ZipInfo, bytes]]
    ) -> AsyncIterator[bytes]:
        o, proc = self.o, self.proc
        kind = self.method("")
        target: Any = self.sink or self.buffer
        with zipfile.ZipFile(target, "w", kind, compresslevel=o.level or None) as archive:
            names = {item[0]: item for item in found}
            # Existing members keep their order; new ones follow.
            places = [*old, *(stored for stored in names if stored not in old)]
            for stored in places:
                if stored not in names:
                    archive.writestr(*old[stored])
                    continue
                _, path, stat = names[stored]
                if (o.update or o.sync) and stored in old and _stamp(proc, stat) <= old[stored][0].date_time:
                    archive.writestr(*old[stored])
                    continue
                async for block in self._member(archive, stored, path, stat, stored in old):
                    yield block
                await proc.budget.yield_turn()
            if self.piped is not None:
                when, _ = at(int(proc.now() * NANO), zone_of(proc))
                info = zipfile.ZipInfo("-", (when.year, when.month, when.day, when.hour, when.minute, when.second))
                info.compress_type, info.external_attr = kind, 0o10600 << 16
                archive.writestr(info, self.piped, compresslevel=o.level or None)
                if not o.quiet:
                    await self._report("-", info, "-" in old)
            if o.comment:
                if not o.quiet:
                    await proc.emit(b"enter new zip file comment (end with .):\n")
                lines = (await proc.stdin.read_all()).split(b"\n")
                text = lines[: lines.index(b".")] if b"." in lines else lines
                archive.comment = b"\r\n".join(text).rstrip(b"\r\n")
        for block in self._taken():
            yield block
        if self.sink is None:
            yield self.buffer.getvalue()

    def method(self, stored: str) -> int:
        """Return how a member is packed."""
        o = self.o
        suffixes = [suffix for suffix in o.suffixes.replace(",", ":").split(":") if suffix]
        if not o.level or o.method == "store" or any(stored.endswith(suffix) for suffix in suffixes):
            return zipfile.ZIP_STORED
        return zipfile.ZIP_BZIP2 if o.method == "bzip2" else zipfile.ZIP_DEFLATED

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
        info.create_system, info.create_version = 3, 30
        size = 0
        if stat.is_dir:
            archive.writestr(info, b"")
        else:
            data = b""
            if stat.kind is Kind.LINK:
                data = encode(stat.target or "")
            elif (stat.size or 0) < LARGE:
                data = await ops.read_bytes(proc.fs, path)
            info.compress_type = self.method(stored)
            info.internal_attr = int(_is_text(data))
            if data or not stat.size:
                if info.compress_type and not _shrinks(data, o.level):
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
            await self._report(stored, info, replaced)

    async def _report(self, stored: str, info: zipfile.ZipInfo, replaced: bool) -> None:
        packed = info.compress_type != zipfile.ZIP_STORED and info.file_size
        how = "bzipped" if info.compress_type == zipfile.ZIP_BZIP2 else "deflated"
        note = f"({how} {round((1 - info.compress_size / info.file_size) * 100)}%)" if packed else "(stored 0%)"
        what = "freshening" if self.o.freshen else "updating" if replaced else "  adding"
        text = encode(f"{what}: {stored} {note}\n")
        if self.to_stdout:
            self.proc.stderr.write(text)
        else:
            await self.proc.emit(text)

    async def _long(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, stat: Stat
    ) -> AsyncIterator[bytes]:
        """Compress a member block by block in a thread; yield the archive so far."""
        member: Any = None
        try:
            async for block in self.proc.fs.read(path):
                if member is None:
                    info.internal_attr = int(_is_text(block[: 1 << 16]))
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


async def _collect(
    proc: Proc, o: ZipOptions, words: list[str], missing: list[str]
) -> AsyncIterator[tuple[str, Path, Stat]]:
    since, before = _day(o.since), _day(o.before)

    def fits(stat: Stat) -> bool:
        day = _stamp(proc, stat)[:3]
        return (since is None or day >= since) and (before is None or day < before)

    if o.patterns:
        below = dataclasses.replace(o, recursive=True, no_dirs=True, include=(*o.include, *words))
        async for item in _walk(proc, below, ".", proc.cwd, await proc.fs.stat(proc.cwd)):
            if fits(item[2]):
                yield item
        return
    for word in words:
        path = proc.path(word or ".")
        stat = await lookup(proc, path, follow=not o.symlinks) if word else None
        if stat is None:
            if not o.quiet:
                await proc.emit(encode(f"\tzip warning: name not matched: {word}\n"))
            missing.append(word)
            continue
        async for item in _walk(proc, o, word, path, stat):
            if fits(item[2]):
                yield item


class _BadDay(Exception):
    """The argument is not a date."""


def _day(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(?P<m>\d\d)(?P<d>\d\d)(?P<y>\d{4})|(?P<y2>\d{4})-(?P<m2>\d\d)-(?P<d2>\d\d)", text)
    if found is None:
        raise _BadDay
    return tuple(int(found[part] or found[part + "2"]) for part in "ymd")


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
    for word in words:
        if not o.quiet and not any(fnmatch(n, word) for n in old):
            await proc.emit(encode(f"\tzip warning: name not matched: {word}\n"))
    if not gone:
        await proc.emit(encode(f"\nzip error: Nothing to do! ({name})\n"))
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
        if not o.quiet:
            await proc.emit(b"\tzip warning: zip file empty\n")
        await proc.fs.remove(proc.path(name))
    else:
        await proc.fs.write(proc.path(name), buffer.getvalue())
    return 0


COMMANDS = [
    Command(
        "zip",
        zip_,
        ZipOptions,
        summary="Package and compress (archive) files.",
        usage="[-options] archive.zip FILE...",
        rewrite=expand_lists,
        bad_usage=16,
        refused={
            "-e --encrypt": "encryption is not supported",
            "-P= --password=": "encryption is not supported",
            "-s= --split-size=": "split archives are not supported",
            "-c --entry-comments": "members have no comments here",
            "-U --copy-entries --copy": "copying members is not supported",
            "-F --fix": "repair is not supported",
            "--fixfix": "repair is not supported",
            "-J --junk-sfx": "repair is not supported",
        },
        ignored=(
            "-X --strip-extra",
            "-o --latest-time",
            "-S",
            "-A",
            "-b=",
            "-ll -l",
            "--quiet-display",
            "--no-wild",
            "--wild-stop-dirs",
            "--ignore-case",
            "--unzip-command=",
            "--logfile-path=",
        ),
    ),
]
