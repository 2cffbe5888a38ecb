"""Going through an archive: its members are listed, compared or handed on for extraction, in one pass."""

from __future__ import annotations

from ramet.commands import compression
from ramet.commands.clock import NANO
from ramet.commands.copy import lookup
from ramet.commands.declare import quote, shown
from ramet.commands.modes import mode_of
from ramet.commands.tar.extracting import extract_member, restore_attributes
from ramet.commands.tar.format import LABEL, SYMLINK, BadArchive, Member, Members
from ramet.commands.tar.job import Failed, Job
from ramet.commands.tar.names import is_excluded, member_line, named_files, safe_name, shown_name, wanted_match
from ramet.core import ops, paths
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.stat import Kind
from ramet.core.streams import IteratorReader, Reader


async def opened_archive(job: Job) -> tuple[Reader, Members]:
    proc, o = job.proc, job.o
    try:
        raw = proc.stdin if o.file in (None, "-") else await proc.open(o.file or "")
    except OSError as error:
        raise Failed(f"{shown(o.file or '')}: Cannot open: {reason(error)}") from None
    first = await raw.read(1 << 18)
    found = compression.sniff(first)
    if o.packing and o.packing != "auto" and found is not compression.FORMATS[o.packing] and first:
        job.proc.stderr.write(b"\ngzip: stdin: not in gzip format\n" if o.packing == "gzip" else b"")
        job.proc.complain("Child returned status 1")
        raise _unrecoverable(job)
    if found is None:
        raw.unread(first)
        return raw, Members(raw, past_zeros=o.past_zeros)
    unpacked = IteratorReader(compression.decompressed(raw, found, first))
    return raw, Members(unpacked, past_zeros=o.past_zeros)


async def tell_label(job: Job, wanted: list[str]) -> int:
    """The label of an archive; with operands, whether it is one of them."""
    raw, members = await opened_archive(job)
    try:
        member = await members.next()
    except BadArchive as bad:
        bad_archive(job, str(bad))
        return 2
    await job.proc.close(raw)
    if member is None or member.kind != LABEL:
        return 1 if wanted else 0
    if not wanted or job.verbose:
        job.say(member.name)
    return 0 if not wanted or member.name in wanted else 1


def _unrecoverable(job: Job) -> Failed:
    job.proc.complain("Error is not recoverable: exiting now")
    return Failed()


async def read_archive(job: Job, operands: list[str]) -> None:
    proc, o = job.proc, job.o
    wanted = [name.rstrip("/") for _, name in await named_files(job, operands)]
    for word in o.directory:
        job.cwd = paths.parse(word, job.cwd)
    if o.directory and not await ops.exists(proc.fs, job.cwd):
        raise Failed(f"{shown(o.directory[-1])}: Cannot open: No such file or directory")
    if not o.strip.isdigit():
        raise Failed(f"Invalid number of elements: {quote(o.strip)}")
    if o.to_stdout and job.index is None:
        job.listing_to = proc.stderr
    raw, members = await opened_archive(job)
    seen: set[str] = set()
    starting = o.starting.rstrip("/") if o.starting is not None else None
    wanted_turn = int(o.occurrence) if o.occurrence is not None and o.occurrence.isdecimal() else None
    turns: dict[str, int] = {}
    later: list[tuple[Path, Member]] = []
    try:
        while (member := await members.next()) is not None:
            await proc.budget.breathe()
            match = wanted_match(job, member.name, wanted)
            if wanted and match is None:
                continue
            if match is not None:
                seen.add(match)
            if is_excluded(job, member.name):
                continue
            if starting is not None:
                if member.name.rstrip("/") != starting:
                    continue
                starting = None
            if wanted_turn is not None:
                turns[member.name] = turns.get(member.name, 0) + 1
                if turns[member.name] != wanted_turn:
                    continue
            if o.mode == "t":
                job.say(
                    member_line(job, member)
                    if job.verbose
                    else shown_name(
                        job, member.name if job.rename is None or not o.show_names else job.rename(member.name, "r")
                    )
                )
                if proc.stdout.full:
                    await proc.stdout.drain()
            elif member.kind == LABEL:
                continue
            elif o.mode == "d":
                await compare_member(job, member, members)
            else:
                await extract_member(job, member, members, later)
    except BadArchive as bad:
        bad_archive(job, str(bad))
    except compression.Corrupt as corrupt:
        proc.stderr.write(encode(f"\ngzip: stdin: {corrupt}\n"))
        job.proc.complain("Child returned status 1")
        raise _unrecoverable(job) from None
    # Directories get their modes and times last: what is extracted into them would change them.
    for path, member in reversed(later):
        await restore_attributes(job, path, member)
    for name in wanted:
        if name not in seen:
            job.complain(f"{shown(name)}: Not found in archive")
    await proc.close(raw)


def bad_archive(job: Job, text: str) -> None:
    if text in ("empty", "short"):
        job.proc.complain("This does not look like a tar archive")
        raise _exit(job)
    job.proc.complain(text)
    if text.startswith("This does not"):
        job.proc.complain("Skipping to next header")
        job.status = 2
        return
    raise _unrecoverable(job)


def _exit(job: Job) -> Failed:
    job.proc.complain("Exiting with failure status due to previous errors")
    return Failed()


async def compare_member(job: Job, member: Member, members: Members) -> None:
    name = safe_name(job, member.name, "r")
    if name is None:
        return
    if job.verbose:
        job.say(member.name)
    stat = await lookup(job.proc, job.path(name))
    differences: list[str] = []
    if stat is None:
        job.proc.complain(f"{shown(name)}: Warning: Cannot stat: No such file or directory")
        job.status = max(job.status, 1)
        return
    if member.is_dir != stat.is_dir:
        differences.append("File type differs")
    else:
        if mode_of(stat) != member.mode and stat.kind is not Kind.LINK:
            differences.append("Mode differs")
        if member.is_file:
            if int((stat.mtime_ns or 0) // NANO) != int(member.mtime):
                differences.append("Mod time differs")
            if stat.size != member.size:
                differences.append("Size differs")
            else:
                content = b"".join([block async for block in members.content()])
                if content != await ops.read_bytes(job.proc.fs, job.path(name)):
                    differences.append("Contents differ")
        elif member.kind == SYMLINK and stat.target != member.link:
            differences.append("Symlink differs")
    for text in differences:
        await job.proc.emit(encode(f"{member.name.rstrip('/') if member.is_dir else member.name}: {text}\n"))
        job.status = max(job.status, 1)
