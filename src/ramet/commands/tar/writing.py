"""Creating an archive: files become members in a stream that is never held whole."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from typing import IO

from ramet.commands import compression
from ramet.commands.clock import NANO, zone_of
from ramet.commands.copy import lookup
from ramet.commands.dates import BadDate, parse_date
from ramet.commands.declare import quote, shown
from ramet.commands.globs import fnmatch
from ramet.commands.modes import BadMode, change_mode, mode_of
from ramet.commands.tar.format import DIRECTORY, FIFO, HARDLINK, LABEL, SYMLINK, Member, Output
from ramet.commands.tar.job import Failed, Job
from ramet.commands.tar.names import is_excluded, member_line, named_files, shown_name, stored_name
from ramet.core import ops, paths
from ramet.core.errors import reason
from ramet.core.paths import Path
from ramet.core.stat import Kind, Stat
from ramet.core.streams import pipe

_IN_MEMORY = 8 << 20


def packing_of(job: Job) -> compression.Format | None:
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


async def create_archive(job: Job, operands: list[str]) -> None:
    proc, o = job.proc, job.o
    names = await named_files(job, operands)
    if not names and not o.files_from:
        raise _empty(job)
    to_stdout = o.file in (None, "-")
    if to_stdout and job.index is None:
        job.listing_to = proc.stderr
    packing = packing_of(job)
    reader, writer = pipe(1 << 20)

    async def emit(data: bytes) -> None:
        writer.write(data)
        if writer.full:
            await writer.drain()

    async def produce() -> None:
        try:
            await fill(job, names, Output(emit, pax=o.format in ("pax", "posix")))
        finally:
            writer.close_now()

    async def blocks() -> AsyncIterator[bytes]:
        while block := await reader.read(1 << 18):
            yield block
            await proc.budget.breathe()

    source = blocks() if packing is None else compression.compressed(blocks(), packing, packing.default)
    task = asyncio.create_task(produce())
    try:
        if to_stdout:
            async for block in source:
                await proc.emit(block)
        else:
            try:
                await proc.fs.write(proc.path(o.file or ""), source)
            except OSError as error:
                raise Failed(f"{shown(o.file or '')}: Cannot open: {reason(error)}") from None
        await task
    finally:
        if not task.done():
            task.cancel()
            reader.close_now()


def _empty(job: Job) -> Failed:
    job.proc.complain("Cowardly refusing to create an empty archive")
    job.proc.stderr.write(b"Try 'tar --help' or 'tar --usage' for more information.\n")
    return Failed()


async def fill(job: Job, names: list[tuple[Path, str]], out: Output) -> None:
    seen: dict[tuple[Path, int], str] = {}
    archive = job.proc.path(job.o.file) if job.o.file not in (None, "-") else None
    limit = _moment(job, job.o.newer) if job.o.newer else None
    if job.o.label is not None and not out.size:
        await out.member(Member(job.o.label, LABEL, 0, 0, job.proc.now(), "", 0, 0, "", ""))
    for cwd, name in names:
        path = paths.parse(name, cwd)
        try:
            stat = await job.proc.fs.stat(path, follow=job.o.dereference)
        except OSError as error:
            job.complain(f"{shown(name)}: Cannot stat: {reason(error)}", 0 if job.o.ignore_failed else 2)
            continue
        await _add(job, out, name, path, stat, seen, archive, limit, top=True)
    await out.finish()
    if job.o.totals:
        job.proc.stderr.write(f"Total bytes written: {out.size} ({out.size // 1024}KiB, 0B/s)\n".encode())


def _moment(job: Job, text: str) -> int:
    try:
        return parse_date(text, int(job.proc.now() * NANO), zone_of(job.proc))
    except BadDate:
        raise Failed(f"Invalid date format {quote(text)}") from None


async def _add(
    job: Job,
    out: Output,
    name: str,
    path: Path,
    stat: Stat,
    seen: dict[tuple[Path, int], str],
    archive: Path | None,
    limit: int | None,
    *,
    top: bool = False,
) -> None:
    proc, o = job.proc, job.o
    if is_excluded(job, name) or _is_ignored(job, path):
        return
    entries: list[tuple[str, Stat]] = []
    kept: set[str] | None = None
    if stat.is_dir and not o.no_recursion:
        entries = [entry async for entry in proc.fs.scan(path)]
        kept, whole = await _tagged(job, path, {child for child, _ in entries})
        if not whole:
            return
        await _read_ignores(job, path, {child for child, _ in entries})
    if archive is not None and path == archive:
        job.proc.complain(f"{shown(name)}: file is the archive; not dumped")
        return
    if limit is not None and not stat.is_dir and (stat.mtime_ns or 0) < limit:
        if top:
            job.proc.complain(f"{shown(name)}: file is unchanged; not dumped")
        return
    member = await _describe(job, name, stat)
    if stat.kind is Kind.FILE and stat.inode is not None and (stat.nlink or 1) > 1:
        key = (proc.fs.mount_of(path), stat.inode)
        if key in seen:
            member.kind, member.link, member.size = HARDLINK, seen[key], 0
        else:
            seen[key] = member.name
    if job.verbose:
        job.say(
            member_line(job, member)
            if job.verbose > 1
            else shown_name(job, member.name if o.show_names else (name.rstrip("/") + "/" if stat.is_dir else name))
        )
    try:
        if member.is_file and stat.size is None:
            await _add_rendered(job, out, member, path)
        else:
            await out.member(member, proc.fs.read(path) if member.is_file else None)
    except OSError as error:
        job.complain(f"{shown(name)}: Cannot open: {reason(error)}")
        return
    if stat.is_dir and not o.no_recursion:
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
                    job.complain(f"{shown(name)}/{child}: Cannot stat: {reason(error)}")
                    continue
            if o.one_system and proc.fs.mount_of(path / child) != here:
                continue
            await _add(
                job,
                out,
                f"{name.rstrip('/')}/{child}" if name.rstrip("/") else f"/{child}",
                path / child,
                below,
                seen,
                archive,
                limit,
            )
    if o.remove:
        try:
            await proc.fs.remove(path)
        except OSError as error:
            job.complain(f"{shown(name)}: Cannot unlink: {reason(error)}")


_CACHE = ("CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55")
_IGNORE_FILES = (".gitignore", ".cvsignore", ".bzrignore", ".hgignore")


async def _tagged(job: Job, path: Path, names: set[str]) -> tuple[set[str] | None, bool]:
    """What is kept of a directory that a file in it marks (None for all of it), and whether the directory itself is."""
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
    return {tag for tag, how in found if how == "inside"} if "under" not in hows else set(), "all" not in hows


async def _read_ignores(job: Job, path: Path, names: set[str]) -> None:
    o = job.o
    files = [(name, False) for name in o.ignore_files]
    files += [(name, True) for name in (*o.ignore_files_below, *(_IGNORE_FILES if o.vcs_ignores else ()))]
    for name, below in files:
        if name in names:
            text = paths.decode(await ops.read_bytes(job.proc.fs, path / name))
            patterns = (line.strip() for line in text.split("\n"))
            job.ignoring += [(path, pattern, below) for pattern in patterns if pattern and pattern[0] not in "#!"]


def _is_ignored(job: Job, path: Path) -> bool:
    return any(
        path != base
        and (path.parent == base or (below and path.under(base)))
        and fnmatch(path.name, pattern.strip("/"))
        for base, pattern, below in job.ignoring
    )


async def _add_rendered(job: Job, out: Output, member: Member, path: Path) -> None:
    """A file whose size is known when it has been read: a member says its size before its content."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as aside:
        async for block in job.proc.fs.read(path):
            aside.write(block)
            await job.proc.budget.breathe()
        member.size = aside.tell()
        aside.seek(0)
        await out.member(member, _blocks(aside))


async def _blocks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while block := file.read(1 << 20):
        yield block


async def _describe(job: Job, name: str, stat: Stat) -> Member:
    o, user = job.o, job.proc.user
    stored = stored_name(job, name)
    kind = DIRECTORY if stat.is_dir else SYMLINK if stat.kind is Kind.LINK else FIFO if stat.kind is Kind.FIFO else b"0"
    mode = mode_of(stat)
    if o.mode_text is not None:
        try:
            mode = change_mode(o.mode_text, mode, stat.is_dir, 0)
        except BadMode:
            raise Failed("Invalid mode given on option") from None
    mtime = (stat.mtime_ns or 0) / NANO
    if o.mtime is not None:
        reference = await lookup(job.proc, job.path(o.mtime), follow=True) if re.match(r"[./]", o.mtime) else None
        given = ((reference.mtime_ns or 0) if reference is not None else _moment(job, o.mtime)) / NANO
        mtime = min(mtime, given) if o.clamp else given
    owner, uid = _who(o.owner, user.name, user.uid)
    group, gid = _who(o.group, user.group, user.gid)
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
    )


def _who(text: str | None, name: str, number: int) -> tuple[str, int]:
    if text is None:
        return name, number
    label, colon, digits = text.partition(":")
    if colon and digits.lstrip("+").isdigit():
        return label, int(digits)
    if text.lstrip("+").isdigit():
        return ("root" if int(text) == 0 else ""), int(text)
    return text, 0 if text == "root" else number
