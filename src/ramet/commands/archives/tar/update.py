"""`tar -r`, `-u`, `-A` and `--delete`: change an uncompressed archive in place."""

from __future__ import annotations

from ramet.commands.archives import codecs as compression
from ramet.commands.archives.tar.create import fill, layout_of, packing_of
from ramet.commands.archives.tar.format import BadArchive, Member, Members, TarOutput
from ramet.commands.archives.tar.job import Failed, TarJob
from ramet.commands.archives.tar.names import shown_name
from ramet.commands.archives.tar.read import bad_archive, opened_archive
from ramet.commands.archives.tar.select import complain_missing, named_files, wanted_match
from ramet.commands.files.cp import lookup
from ramet.core.errors import reason
from ramet.core.resource import How
from ramet.core.stat import Attrs
from ramet.core.streams import Capture


async def append_members(job: TarJob) -> None:
    proc, o = job.proc, job.o
    if o.file in (None, "-"):
        raise Failed("Refusing to append to standard output")
    if packing_of(job) is not None:
        raise Failed("Cannot update compressed archives")
    names = await named_files(job)
    path = proc.path(o.file or "")
    end = 0
    existing = await lookup(proc, path, follow=True)
    if existing is not None and existing.size:
        reader = await proc.open(o.file or "")
        first = await reader.read(8)
        if compression.sniff(first) is not None:
            raise Failed("Cannot update compressed archives")
        reader.unread(first)
        members = Members(reader)
        try:
            while (member := await members.next()) is not None:
                if o.mode == "u":
                    job.newest[member.name.rstrip("/")] = int(member.mtime)
                await members.skip()
                end = members.at
        except BadArchive as bad:
            raise Failed(str(bad)) from None
        await proc.close(reader)
    captured = Capture()

    async def emit(data: bytes) -> None:
        captured.write(data)

    await fill(job, names, TarOutput(emit, layout_of(job), at=end))
    if end == 0:
        await proc.fs.write(path, captured.getvalue())
        return
    await proc.fs.setattr(await proc.fs.resolve(path), Attrs(size=end))
    await proc.fs.write(path, captured.getvalue(), How.APPEND)


_MOST_ZEROS = 64 << 20


def _check_holes(job: TarJob, member: Member) -> None:
    """Refuse large holes: a changed archive is held in memory, with holes filled."""
    if member.map is not None and member.size - sum(count for _, count in member.map) > _MOST_ZEROS:
        raise Failed(f"{shown_name(job, member.name)}: Cannot rewrite: its holes are too large")


async def append_archives(job: TarJob) -> None:
    """`tar -A`: append the members of other archives."""
    proc, o = job.proc, job.o
    if o.file in (None, "-"):
        raise Failed("Refusing to append to standard output")
    captured = Capture()

    async def emit(data: bytes) -> None:
        captured.write(data)

    out = TarOutput(emit, layout_of(job))
    for name in (o.file or "", *(str(word) for kind, word in o.order if not kind)):
        try:
            reader = await proc.open(name)
        except OSError as error:
            raise Failed(f"{shown_name(job, name)}: Cannot open: {reason(error)}") from None
        first = await reader.read(8)
        if compression.sniff(first) is not None:
            raise Failed("Cannot update compressed archives")
        reader.unread(first)
        members = Members(reader)
        try:
            while (member := await members.next()) is not None:
                _check_holes(job, member)
                await out.member(member, members.content())
                await proc.budget.yield_turn()
        except BadArchive as bad:
            bad_archive(job, str(bad))
            return
        await proc.close(reader)
    await out.finish()
    await proc.fs.write(proc.path(o.file or ""), captured.getvalue())


async def delete_members(job: TarJob) -> None:
    proc, o = job.proc, job.o
    wanted = await named_files(job)
    raw, members = await opened_archive(job)
    if members.reader is not raw:
        raise Failed("Cannot update compressed archives")
    captured = Capture()

    async def emit(data: bytes) -> None:
        captured.write(data)

    out = TarOutput(emit, layout_of(job))
    seen: set[str] = set()
    try:
        while (member := await members.next()) is not None:
            match = wanted_match(job, member.name, wanted)
            if match is not None:
                seen.add(match.name)
                continue
            _check_holes(job, member)
            await out.member(member, members.content())
    except BadArchive as bad:
        bad_archive(job, str(bad))
        return
    await out.finish()
    await proc.close(raw)
    await proc.fs.write(proc.path(o.file or ""), captured.getvalue())
    complain_missing(job, wanted, seen)
