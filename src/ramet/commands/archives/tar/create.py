"""`tar -c`: stream files into an archive."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import IO

from ramet.commands.archives import codecs as compression
from ramet.commands.archives.tar.format import (
    BLOCK,
    DEVICE,
    DIRECTORY,
    FIFO,
    HARDLINK,
    LABEL,
    SYMLINK,
    Layout,
    Member,
    TarOutput,
    TooLong,
)
from ramet.commands.archives.tar.job import Failed, TarJob
from ramet.commands.archives.tar.names import confirmed, member_line, quoted, shown_name, stored_name
from ramet.commands.archives.tar.select import Named, is_excluded, named_files
from ramet.commands.files.cp import back_up, backups, lookup, sibling
from ramet.commands.files.listing.stat import DEVICE_NUMBERS
from ramet.commands.framework.command import quote
from ramet.commands.framework.file_modes import BadMode, change_mode, mode_of
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.concurrency.tasks import give_up
from ramet.core import ops, paths
from ramet.core.errors import reason
from ramet.core.paths import Path
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import Writer, pipe
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO, at, strftime, zone_of

_IN_MEMORY = 8 << 20


def packing_of(job: TarJob) -> compression.CompressionFormat | None:
    kind = job.o.packing
    if kind == "auto":
        name = job.o.file or ""
        table = {
            (".gz", ".tgz", ".taz"): "gzip",
            (".bz2", ".tbz", ".tbz2", ".tz2"): "bzip2",
            (".xz", ".txz"): "xz",
            (".lzma", ".tlz"): "lzma",
            (".zst", ".tzst"): "zstd",
        }
        kind = next((k for ends, k in table.items() if name.endswith(ends)), "")
    return compression.FORMATS[kind] if kind else None


def layout_of(job: TarJob) -> Layout:
    """Return how the archive is written, by the options."""
    o = job.o
    if o.format not in ("pax", "posix"):
        return Layout(o.format, job.record)
    name, whole = "%d/PaxHeaders/%f", False
    extra: dict[str, str] = {}
    shared: dict[str, str] = {}
    for option in (part for text in o.pax for part in text.split(",")):
        key, equals, given = option.partition("=")
        if not equals:
            raise Failed(f"Keyword {quoted(job, key)} unknown or not yet implemented")
        if key == "exthdr.name":
            name = given
        elif key == "delete":
            whole = whole or fnmatch("mtime", given)
        elif key.endswith(":"):
            extra[key[:-1]] = given
        elif not key.startswith(("exthdr.", "globexthdr.")):
            shared[key] = given
    return Layout(o.format, job.record, extra, name, shared, whole)


async def create_archive(job: TarJob) -> None:
    proc, o = job.proc, job.o
    names = await named_files(job)
    if not names and not o.files_from:
        raise _empty(job)
    await _read_maps(job)
    to_stdout = o.file in (None, "-")
    if to_stdout and job.index is None:
        job.listing_to = proc.stderr
    packing = packing_of(job)
    layout = layout_of(job)
    if not to_stdout:
        await _keep_old(job, proc.path(o.file or ""))
    reader, writer = pipe(1 << 20)

    async def emit(data: bytes) -> None:
        writer.write(data)
        if writer.full:
            await writer.drain()

    async def produce() -> None:
        try:
            await fill(job, names, TarOutput(emit, layout))
        finally:
            writer.close_now()

    async def blocks() -> AsyncIterator[bytes]:
        while block := await reader.read(1 << 18):
            yield block
            await proc.budget.yield_turn()

    source = blocks() if packing is None else compression.compressed(blocks(), packing, packing.default)
    task = asyncio.create_task(produce())
    try:
        if isinstance(stream := proc.stdout if to_stdout else proc.descriptor(o.file or ""), Writer):
            async for block in source:
                stream.write(block)
                if stream.full:
                    await stream.drain()
        else:
            try:
                await proc.fs.write(proc.path(o.file or ""), source)
            except OSError as error:
                raise Failed(f"{shown_name(job, o.file or '')}: Cannot open: {reason(error)}") from None
        await task
    finally:
        if not task.done():
            reader.close_now()
        await give_up((task,))


async def _keep_old(job: TarJob, path: Path) -> None:
    """Back up an existing archive if asked to."""
    o = job.o
    existing = await lookup(job.proc, path)
    if existing is not None and existing.kind is Kind.FILE and backups(o.backup, o.suffix):
        moved = await back_up(job.proc, path, o.backup, o.suffix)
        if job.verbose:
            job.say(f"Renaming {quoted(job, o.file or '')} to {quoted(job, sibling(o.file or '', moved))}")


async def _read_maps(job: TarJob) -> None:
    for word, table in ((job.o.owner_map, job.owners), (job.o.group_map, job.groups)):
        if word is None:
            continue
        try:
            text = paths.decode(await ops.read_bytes(job.proc.fs, job.proc.path(word)))
        except OSError as error:
            raise Failed(f"{shown_name(job, word)}: Cannot open: {reason(error)}") from None
        for line in text.split("\n"):
            words = line.partition("#")[0].split()
            if len(words) >= 2:
                table[words[0]] = words[1]


def _empty(job: TarJob) -> Failed:
    job.proc.complain("Cowardly refusing to create an empty archive")
    job.proc.stderr.write(b"Try 'tar --help' or 'tar --usage' for more information.\n")
    return Failed()


@dataclass
class _Filling:
    """An archive while members are added to it."""

    out: TarOutput
    archive: Path | None
    limit: int | None
    """Files older than this time (in ns) are skipped."""
    links: dict[tuple[Path, int], _Link] = field(default_factory=dict)
    mtime: int | None = None
    """The mtime of all members (--mtime), in ns."""


@dataclass
class _Link:
    """A file with hard links: its member, and the number of its names not yet archived."""

    member: str
    name: str
    left: int


async def fill(job: TarJob, names: list[Named], out: TarOutput) -> None:
    archive = job.proc.path(job.o.file) if job.o.file not in (None, "-") else None
    newer = job.o.newer or job.o.newer_content
    filling = _Filling(out, archive, await _limit(job, newer) if newer else None)
    if job.o.mtime is not None:
        filling.mtime = await _given_time(job, job.o.mtime)
        if job.verbose and not re.match(r"[./]", job.o.mtime):
            _tell_date(job, "--mtime", job.o.mtime, filling.mtime)
    await out.start()
    if job.o.label is not None and not out.size:
        await out.member(Member(job.o.label, LABEL, 0, 0, job.proc.now(), "", 0, 0, "", ""))
    for named in names:
        if not named.name:
            job.complain("Substituting `.' for empty member name", 0)
        try:
            path = job.proc.fs.named(named.name, named.cwd)
            stat = await job.proc.fs.stat(path, follow=job.o.dereference)
        except OSError as error:
            warning = "Warning: " if job.o.ignore_failed else ""
            job.complain(f"{shown_name(job, named.name)}: {warning}Cannot stat: {reason(error)}", 0 if warning else 2)
            continue
        await _add(job, filling, named.name, path, stat, named.recursive)
    await out.finish()
    if job.o.check_links:
        for link in filling.links.values():
            if link.left:
                job.proc.complain(f"Missing links to {quoted(job, link.name)}.")
    if job.o.totals:
        job.proc.stderr.write(f"Total bytes written: {out.size} ({out.size // 1024}KiB, 0B/s)\n".encode())


def _moment(job: TarJob, text: str) -> int:
    return parse_date(text, int(job.proc.now() * NANO), zone_of(job.proc))


async def _given_time(job: TarJob, text: str) -> int:
    """Return a date, or the time of a file whose name begins like one."""
    if re.match(r"[./]", text):
        try:
            return (await job.proc.fs.stat(job.path(text), follow=True)).mtime_ns or 0
        except OSError as error:
            raise Failed(f"{shown_name(job, text)}: Cannot stat: {reason(error)}") from None
    try:
        return _moment(job, text)
    except BadDate:
        raise Failed(f"Invalid date format {quote(text)}") from None


async def _limit(job: TarJob, text: str) -> int:
    if re.match(r"[./]", text):
        return await _given_time(job, text)
    try:
        found = _moment(job, text)
    except BadDate:
        job.proc.complain(f"Substituting -9223372036854775807 for unknown date format {quoted(job, text)}")
        return -(1 << 63)
    if job.verbose:
        _tell_date(job, "--after-date" if job.o.newer else "--newer-mtime", text, found)
    return found


def _tell_date(job: TarJob, option: str, text: str, found: int) -> None:
    when, _ = at(found, zone_of(job.proc))
    job.proc.complain(f"Option {option}: Treating date '{text}' as {strftime('%Y-%m-%d %H:%M:%S', when, 0)}")


async def _add(job: TarJob, filling: _Filling, name: str, path: Path, stat: Stat, recursive: bool) -> None:
    proc, o = job.proc, job.o
    if is_excluded(job, name) or _is_ignored(job, path):
        return
    entries: list[tuple[str, Stat]] = []
    kept: set[str] | None = None
    if stat.is_dir and recursive:
        entries = await ops.entries(proc.fs, path)
        kept, whole = await _tagged(job, name, path, {child for child, _ in entries})
        if not whole:
            return
        await _read_ignores(job, path, {child for child, _ in entries})
    if path == filling.archive:
        job.proc.complain(f"{shown_name(job, name)}: file is the archive; not dumped")
        return
    if filling.limit is not None and not stat.is_dir and (stat.mtime_ns or 0) < filling.limit:
        if job.verbose:
            job.proc.complain(f"{shown_name(job, name)}: file is unchanged; not dumped")
        return
    if o.interactive and not await confirmed(job, "add", name):
        return
    member = await _describe(job, name, stat, filling.mtime)
    if job.newest.get(member.name.rstrip("/"), -1) < int(member.mtime) and not await _write(
        job, filling, member, name, path, stat
    ):
        return
    if stat.is_dir and recursive:
        if o.sort != "none":
            entries.sort()
        here = proc.fs.mount_of(path)
        for child, below in entries:
            if kept is not None and child not in kept:
                continue
            if o.dereference and below.kind is Kind.LINK:
                try:
                    below = await proc.fs.stat(path / child, follow=True)
                except OSError as error:
                    job.complain(f"{shown_name(job, f'{name}/{child}')}: Cannot stat: {reason(error)}")
                    continue
            if o.one_system and proc.fs.mount_of(path / child) != here:
                continue
            await _add(
                job, filling, f"{name.rstrip('/')}/{child}" if name != "/" else f"/{child}", path / child, below, True
            )
    if o.remove:
        try:
            await proc.fs.remove(path)
        except OSError as error:
            job.complain(f"{shown_name(job, name)}: Cannot unlink: {reason(error)}")


async def _write(job: TarJob, filling: _Filling, member: Member, name: str, path: Path, stat: Stat) -> bool:
    """Write one member; return False if that failed, so that its children are skipped."""
    o, out = job.o, filling.out
    if stat.kind is Kind.FILE and stat.inode is not None and (stat.nlink or 1) > 1 and not o.hard_dereference:
        key = (job.proc.fs.mount_of(path), stat.inode)
        link = filling.links.get(key)
        if link is not None:
            member.kind, member.link, member.size = HARDLINK, link.member, 0
            link.left -= 1
        else:
            filling.links[key] = _Link(member.name, name, (stat.nlink or 1) - 1)
    if job.verbose:
        job.say(
            member_line(job, member)
            if job.verbose > 1
            else shown_name(job, member.name if o.show_names else (name.rstrip("/") + "/" if stat.is_dir else name)),
            out.size // BLOCK,
        )
    try:
        if member.is_file and stat.size is None:
            await _add_rendered(job, out, member, path)
        else:
            await out.member(member, job.proc.fs.read(path) if member.is_file else None)
        if o.atime == "replace" and member.is_file and stat.atime_ns is not None:
            # Reading changes it on mounts of host directories.
            await job.proc.fs.setattr(path, Attrs(atime_ns=stat.atime_ns))
    except TooLong as why:
        job.complain(f"{shown_name(job, member.name)}: {why}")
        return False
    except OSError as error:
        job.complain(f"{shown_name(job, name)}: Cannot open: {reason(error)}")
        return False
    return True


_CACHE = ("CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55")
_IGNORE_FILES = (".gitignore", ".cvsignore", ".bzrignore", ".hgignore")


async def _tagged(job: TarJob, name: str, path: Path, names: set[str]) -> tuple[set[str] | None, bool]:
    """Return the kept names of a tagged directory (None for all), and whether to keep the directory."""
    o = job.o
    found = [(tag, "inside") for tag in o.tags if tag in names]
    found += [(tag, "under") for tag in o.tags_under if tag in names]
    found += [(tag, "all") for tag in o.tags_all if tag in names]
    if o.caches and _CACHE[0] in names:
        head = b"".join([block async for block in job.proc.fs.read(path / _CACHE[0], 0, len(_CACHE[1]))])
        if head == _CACHE[1]:
            found.append((_CACHE[0], o.caches))
    if not found:
        return None, True
    hows = {how for _, how in found}
    what = "directory" if "all" in hows else "contents"
    if job.verbose:
        where = shown_name(job, name.rstrip("/") + "/")
        job.proc.complain(f"{where}: contains a cache directory tag {found[0][0]}; {what} not dumped")
    return {tag for tag, how in found if how == "inside"} if "under" not in hows else set(), "all" not in hows


async def _read_ignores(job: TarJob, path: Path, names: set[str]) -> None:
    o = job.o
    files = [(name, False) for name in o.ignore_files]
    files += [(name, True) for name in (*o.ignore_files_below, *(_IGNORE_FILES if o.vcs_ignores else ()))]
    for name, below in files:
        if name in names:
            text = paths.decode(await ops.read_bytes(job.proc.fs, path / name))
            patterns = (line.strip() for line in text.split("\n"))
            job.ignoring += [(path, pattern, below) for pattern in patterns if pattern and pattern[0] not in "#!"]


def _is_ignored(job: TarJob, path: Path) -> bool:
    return any(
        path != base
        and (path.parent == base or (below and path.under(base)))
        and fnmatch(path.name, pattern.strip("/"))
        for base, pattern, below in job.ignoring
    )


async def _add_rendered(job: TarJob, out: TarOutput, member: Member, path: Path) -> None:
    """Add a file of unknown size: spool it first, as a header needs the size."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        async for block in job.proc.fs.read(path):
            spool.write(block)
            job.proc.budget.spilled(spool.tell())
            await job.proc.budget.yield_turn()
        member.size = spool.tell()
        spool.seek(0)
        await out.member(member, _blocks(spool))


async def _blocks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while block := file.read(1 << 20):
        yield block


_KINDS = {Kind.DIR: DIRECTORY, Kind.LINK: SYMLINK, Kind.FIFO: FIFO, Kind.DEVICE: DEVICE}


async def _describe(job: TarJob, name: str, stat: Stat, given: int | None) -> Member:
    o, user = job.o, job.proc.user
    stored = stored_name(job, name)
    kind = _KINDS.get(stat.kind, b"0")
    mode = mode_of(stat)
    if o.mode_text is not None:
        try:
            mode = change_mode(o.mode_text, mode, stat.is_dir, 0)
        except BadMode:
            raise Failed("Invalid mode given on option") from None
    mtime = (stat.mtime_ns or 0) / NANO
    if given is not None:
        mtime = min(mtime, given / NANO) if o.clamp else given / NANO
    owner, uid = _who(_mapped(job.owners, user.name, user.uid) or o.owner, user.name, user.uid)
    group, gid = _who(_mapped(job.groups, user.group, user.gid) or o.group, user.group, user.gid)
    if stat.is_dir and not stored.endswith("/"):
        stored += "/"
    link = stat.target or "" if kind == SYMLINK else ""
    if link and job.rename is not None:
        link = job.rename(link, "s")
    return Member(
        stored,
        kind,
        mode,
        (stat.size or 0) if kind == b"0" else 0,
        mtime,
        link,
        uid,
        gid,
        "" if o.numeric else owner,
        "" if o.numeric else group,
        numbers=DEVICE_NUMBERS.get(name.rpartition("/")[2], (0, 0)) if kind == DEVICE else (0, 0),
    )


def _mapped(table: dict[str, str], name: str, number: int) -> str | None:
    return table.get(name) or table.get(f"+{number}")


def _who(text: str | None, name: str, number: int) -> tuple[str, int]:
    if text is None:
        return name, number
    label, colon, digits = text.partition(":")
    if colon and digits.lstrip("+").isdigit():
        return label, int(digits)
    if text.lstrip("+").isdigit():
        return ("root" if int(text) == 0 else ""), int(text)
    return text, 0 if text == "root" else number
