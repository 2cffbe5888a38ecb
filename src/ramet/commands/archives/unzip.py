"""unzip and zipinfo: list, test and extract zip archives; no member leaves the target directory."""

from __future__ import annotations

import calendar
import dataclasses
import io
import time
import zipfile
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ramet.commands.archives.zip import expand_lists
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, count, flag, several, value
from ramet.commands.framework.file_modes import mode_string
from ramet.core import ops
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO


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
    only_names: bool = flag("-2", help="with -Z, names, and what -h, -t and -z ask for")
    short: bool = flag("-s", help="with -Z, the short format (default)")
    medium: bool = flag("-m", help="with -Z, the short format with ratios; -l has packed sizes instead")
    header: bool = flag("-h", help="with -Z, what is known of the archive; otherwise say how the command is used")
    stamp: bool = flag("-T", help="with -Z, times as digits; otherwise date the archive as its newest file")
    update: bool = flag("-u", help="update files, create if necessary")
    freshen: bool = flag("-f", help="freshen existing files, create none")
    lower: bool = flag("-L", help="make names lowercase")
    case: bool = flag("-C", help="match filenames case-insensitively")
    text: int = count("-a", help="convert the ends of lines in text files; twice in all files")
    binary: bool = flag("-b", help="treat all files as binary: no conversion")


async def unzip(proc: Proc, o: UnzipOptions, operands: list[str]) -> int:
    if not operands and o.header:
        await proc.emit(b"Usage: unzip [-opts] file[.zip] [list] [-x xlist] [-d exdir]\n")
        return 0
    if not operands:
        raise UsageError("Usage: unzip [-opts] file[.zip] [list] [-x xlist] [-d exdir]", hint=False, status=10)
    name = operands[0]
    path = proc.path(name or ".")
    if not name or await lookup(proc, path, follow=True) is None:
        if not name or await lookup(proc, proc.path(name + ".zip"), follow=True) is None:
            own = "zipinfo" if o.names_only else "unzip"
            said = proc.stdout if o.names_only or o.test else proc.stderr
            if o.pipe:
                return 9
            said.write(encode(f"{own}:  cannot find or open {name}, {name}.zip or {name}.ZIP.\n"))
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
        comment = "\n" + archive.comment.decode("utf-8", "replace") if archive.comment else ""
        members = [
            i
            for i in archive.infolist()
            if (not wanted or any(fnmatch(i.filename, w, icase=o.case) for w in wanted))
            and not any(fnmatch(i.filename, x) for x in o.exclude)
        ]
        if o.stamp and not o.names_only:
            return await _dated(proc, o, name, path, archive)
        if o.comment and not o.names_only:
            await proc.emit(encode(f"Archive:  {name}\n") + archive.comment + (b"\n" if archive.comment else b""))
            return 0
        if o.names_only and o.one_per_line:
            await proc.emit(encode("".join(f"{i.filename}\n" for i in members)))
            return 0
        if o.names_only:
            size = (await proc.fs.stat(path, follow=True)).size or 0
            await proc.emit(encode(_info(o, name, size, archive, members, bool(wanted))))
            missing = [word for word in wanted if not any(fnmatch(i.filename, word, icase=o.case) for i in members)]
            for word in missing:
                proc.stderr.write(encode(f"caution: filename not matched:  {word}\n"))
            return 11 if missing and not members else 0
        if o.list or o.verbose:
            await _list(proc, o, name + comment, members)
            return 0 if members or not wanted else 11
        status = 0
        for pattern in wanted:
            if not any(fnmatch(i.filename, pattern, icase=o.case) for i in archive.infolist()):
                proc.stderr.write(encode(f"caution: filename not matched:  {pattern}\n"))
                status = 11
        if not (o.quiet or o.pipe):
            await proc.emit(encode(f"Archive:  {name}{comment}\n"))
        replacing = _Replacing(proc)
        for info in members:
            try:
                status = max(status, await _extract(proc, o, archive, info, replacing))
            except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
                proc.stderr.write(encode(f"{info.filename}:  {error}\n"))
                status = 3
            await proc.budget.yield_turn()
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


def _info(
    o: UnzipOptions, name: str, size: int, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], chosen: bool
) -> str:
    """Return what zipinfo tells of an archive; an option that asks for one part leaves out what it is not about."""
    explicit = o.short or o.medium or o.list
    whole = not chosen and not o.only_names
    out: list[str] = []
    if o.header or (whole and (explicit or not o.test)):
        comment = archive.comment.decode("utf-8", "replace") + "\n" if o.comment and archive.comment else ""
        entries = len(archive.infolist())
        out.append(f"Archive:  {name}\n{comment}Zip file size: {size} bytes, number of entries: {entries}\n")
    if o.only_names:
        out += [f"{i.filename}\n" for i in members]
    elif explicit or chosen or not (o.header or o.test):
        out += [_info_line(o, i) for i in members]
    if o.test or (whole and (explicit or not o.header)):
        total, packed = sum(i.file_size for i in members), sum(i.compress_size for i in members)
        saved = f"{(1 - packed / total) * 100:.1f}" if total else "0.0"
        plural = "" if len(members) == 1 else "s"
        out.append(f"{len(members)} file{plural}, {total} bytes uncompressed, {packed} bytes compressed:  {saved}%\n")
    return "".join(out)


def _info_line(o: UnzipOptions, i: zipfile.ZipInfo) -> str:
    mode = mode_string(Kind.DIR if i.is_dir() else Kind.FILE, i.external_attr >> 16 & 0o7777)
    version, system = divmod(i.create_version, 10), {0: "fat", 3: "unx"}.get(i.create_system, "???")
    method = {zipfile.ZIP_STORED: "stor", zipfile.ZIP_BZIP2: "bzp2"}.get(i.compress_type, "defN")
    kind = "t" if i.internal_attr & 1 else "b"
    year, month, day, hour, minute, second = i.date_time
    when = f"{year % 100:02d}-{_MONTHS[month - 1]}-{day:02d} {hour:02d}:{minute:02d}"
    if o.stamp:
        when = f"{year}{month:02d}{day:02d}.{hour:02d}{minute:02d}{second:02d}"
    extra = "x" if i.extra else "-"
    packed = f" {i.compress_size:8d}" if o.list else f" {_ratio(i.compress_size, i.file_size):2d}%" if o.medium else ""
    lead = f"{mode}  {version[0]}.{version[1]} {system} {i.file_size:8d} {kind}{extra}{packed}"
    return f"{lead} {method} {when} {i.filename}\n"


async def _dated(proc: Proc, o: UnzipOptions, name: str, path: Path, archive: zipfile.ZipFile) -> int:
    newest = max((info.date_time for info in archive.infolist()), default=(1980, 1, 1, 0, 0, 0))
    stamp = calendar.timegm(time.struct_time((*newest, 0, 0, 0))) * NANO
    await proc.fs.setattr(path, Attrs(mtime_ns=stamp))
    if not o.quiet:
        await proc.emit(encode(f"Updated time stamp for {name}.\n"))
    return 0


async def zipinfo(proc: Proc, o: UnzipOptions, operands: list[str]) -> int:
    return await unzip(proc, dataclasses.replace(o, names_only=True), operands)


def _ratio(packed: int, size: int) -> int:
    return round((1 - packed / size) * 100) if size else 0


class _Replacing:
    """Prompt before replacing files; some answers apply to all that follow."""

    def __init__(self, proc: Proc) -> None:
        self.proc = proc
        self.always: bool | None = None
        self.ended = False
        """Whether the prompt had no answer: then nothing is replaced, with a warning."""

    async def name(self, word: str, target: str) -> str | None:
        """Ask for the name to use instead of the existing `target`: the same replaces it, None skips it."""
        if self.always is not None:
            return target if self.always else None
        proc = self.proc
        while True:
            proc.stderr.write(encode(f"replace {word}? [y]es, [n]o, [A]ll, [N]one, [r]ename: "))
            line = decode(await proc.stdin.readline())
            answer = line[:1]
            if not answer:
                proc.stderr.write(b' NULL\n(EOF or read error, treating as "[N]one" ...)\n')
                self.always, self.ended = False, True
                return None
            if answer in "AN":
                self.always = answer == "A"
            if answer in "yYA":
                return target
            if answer in "nN":
                return None
            if answer in "rR":
                proc.stderr.write(b"new name: ")
                return decode(await proc.stdin.readline()).rstrip("\n") or None
            said = "error:  invalid response [{}]\n".format(line.rstrip("\n") or "{ENTER}")
            proc.stderr.write(encode(said))


async def _extract(
    proc: Proc, o: UnzipOptions, archive: zipfile.ZipFile, info: zipfile.ZipInfo, replacing: _Replacing
) -> int:
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
        async for block in _content(archive, info, o):
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
    while True:
        if not await _inside(proc, path, proc.path(base or ".")):
            proc.stderr.write(encode(f"{name}:  a link in the path leads out of the directory, skipped\n"))
            return 2
        existing = await lookup(proc, path)
        if existing is None:
            if o.freshen:
                return 0
            break
        stamped = calendar.timegm(time.struct_time((*info.date_time, 0, 0, 0))) * NANO
        if o.never or ((o.update or o.freshen) and (existing.mtime_ns or 0) >= stamped):
            return 0
        wanted = target if o.overwrite else await replacing.name(word, target)
        if wanted is None:
            return int(replacing.ended)
        if wanted == target:
            await proc.fs.remove(path)
            break
        target = wanted
        word = f"{base.rstrip('/')}/{target}" if base else target
        path = proc.path(word)
    await ops.make_dirs(proc.fs, path.parent)
    mode = info.external_attr >> 16
    if mode & 0o170000 == 0o120000:
        await proc.fs.write(path, archive.read(info), How.LINK)
        return 0

    await proc.fs.write(path, _content(archive, info, o))
    stamp = time.struct_time((*info.date_time, 0, 0, 0))
    await ops.keep_attrs(
        proc.fs, path, Stat(Kind.FILE, mode=(mode & 0o777) or 0o644, mtime_ns=calendar.timegm(stamp) * NANO)
    )
    if not o.quiet:
        verb = " extracting" if info.compress_type == 0 else "  inflating"
        await proc.emit(encode(f"{verb}: {word:<22}  \n"))
    return 0


async def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, o: UnzipOptions) -> AsyncIterator[bytes]:
    """Yield what a member holds; the lines of a text end with a newline alone if that was asked for."""
    converts = not o.binary and (o.text > 1 or (o.text == 1 and info.internal_attr & 1))
    held = b""
    with archive.open(info) as source:
        while block := source.read(1 << 18):
            if converts:
                block = held + block
                held = b"\r" if block.endswith(b"\r") else b""
                block = block[: len(block) - len(held)].replace(b"\r\n", b"\n")
            yield block
    if held:
        yield held


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
        "unzip",
        unzip,
        UnzipOptions,
        summary="List, test and extract compressed files in a ZIP archive.",
        usage="[-options] file[.zip] [list] [-x xlist] [-d exdir]",
        rewrite=expand_lists,
        bad_usage=10,
        refused={"-P=": "encrypted archives are not supported"},
        ignored=("-X", "-K", "-B", "-W", "-DD -D", "-M", "-O=", "-U", "-UU", "-: -^"),
    ),
    Command(
        "zipinfo",
        zipinfo,
        UnzipOptions,
        summary="List what is known about a ZIP archive.",
        usage="[-1] file[.zip] [list] [-x xlist]",
        rewrite=expand_lists,
        bad_usage=10,
    ),
]
