"""Read an archive in one pass: list, compare or extract its members."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ramet.commands.archives import codecs as compression
from ramet.commands.archives.tar.extract import extract_member, restore_attributes
from ramet.commands.archives.tar.format import BLOCK, LABEL, SYMLINK, BadArchive, Member, Members
from ramet.commands.archives.tar.job import Failed, TarJob
from ramet.commands.archives.tar.names import (
    confirmed,
    listed_name,
    member_line,
    quoted,
    safe_name,
    shown_name,
    warn_of_lead,
)
from ramet.commands.archives.tar.select import Named, complain_missing, is_excluded, named_files, wanted_match
from ramet.commands.files.cp import lookup
from ramet.commands.framework.file_modes import mode_of
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.stat import Kind
from ramet.core.streams import IteratorReader, Reader
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO


async def opened_archive(job: TarJob) -> tuple[Reader, Members]:
    proc, o = job.proc, job.o
    try:
        raw = proc.stdin if o.file in (None, "-") else await proc.open(o.file or "")
    except OSError as error:
        raise Failed(f"{shown_name(job, o.file or '')}: Cannot open: {reason(error)}") from None
    first = await raw.read(1 << 18)
    found = compression.sniff(first)
    if o.packing and o.packing != "auto" and found is not compression.FORMATS[o.packing] and first:
        words, status = _REFUSALS[o.packing]
        job.proc.stderr.write(encode(words))
        job.proc.complain(f"Child returned status {status}")
        raise _unrecoverable(job)
    if found is not None and o.packing in ("", "auto") and raw is proc.stdin:
        # A pipe cannot be read twice: the user has to name its format.
        raise Failed(f"Archive is compressed. Use {_LETTERS[found.name]} option")
    if found is None:
        raw.unread(first)
        return raw, Members(raw, past_zeros=o.past_zeros)
    unpacked = IteratorReader(compression.decompressed(raw, found, first))
    return raw, Members(unpacked, past_zeros=o.past_zeros)


_LETTERS = {
    "gzip": "-z", "bzip2": "-j", "xz": "-J", "lzma": "--lzma", "zstd": "--zstd",
}  # fmt: skip
_REFUSALS = {
    "gzip": ("\ngzip: stdin: not in gzip format\n", 1),
    "bzip2": ("bzip2: (stdin) is not a bzip2 file.\n", 2),
    "xz": ("xz: (stdin): File format not recognized\n", 1),
    "lzma": ("xz: (stdin): File format not recognized\n", 1),
    "zstd": ("zstd: /*stdin*\\: unsupported format \n", 1),
}
"""Message and status of each decompressor for data of another format."""


async def tell_label(job: TarJob) -> None:
    """Print the label of an archive; with operands, test whether it is one of them."""
    wanted = [word for kind, word in job.o.order if not kind]
    raw, members = await opened_archive(job)
    try:
        member = await members.next()
    except BadArchive as bad:
        bad_archive(job, str(bad))
        return
    await job.proc.close(raw)
    if member is None or member.kind != LABEL:
        job.status = 1 if wanted else 0
        return
    if not wanted or job.verbose:
        job.say(member.name)
    job.status = 0 if not wanted or member.name in wanted else 1


def _check_label(job: TarJob, member: Member) -> None:
    """Check the label of the archive against -V."""
    pattern = job.o.label
    if pattern is None:
        return
    if member.kind != LABEL:
        raise Failed(f"Archive not labeled to match {quoted(job, pattern)}")
    if not fnmatch(member.name, pattern) and not fnmatch(member.name, f"{pattern} Volume [1-9]*"):
        raise Failed(f"Volume {quoted(job, member.name)} does not match {quoted(job, pattern)}")


def _unrecoverable(job: TarJob) -> Failed:
    job.proc.complain("Error is not recoverable: exiting now")
    return Failed()


async def read_archive(job: TarJob) -> None:
    proc, o = job.proc, job.o
    wanted = await named_files(job)
    if not wanted:
        # Without names, all -C options apply; otherwise each applies to the names behind it.
        for word in o.directory:
            job.cwd = job.proc.fs.named(word, job.cwd)
    if o.to_stdout and job.index is None:
        job.listing_to = proc.stderr
    raw, members = await opened_archive(job)
    choice = _Choice(job, wanted)
    later: list[tuple[Path, Member]] = []
    first = True
    try:
        while (member := await members.next()) is not None:
            await proc.budget.yield_turn()
            if first:
                _check_label(job, member)
                first = False
            if not choice.takes(member):
                continue
            if members.unknown:
                where = shown_name(job, member.name)
                proc.complain(f"{where}: Unknown file type '{members.unknown}', extracted as normal file")
                members.unknown = ""
            if o.mode == "t":
                await _list(job, member)
            elif member.kind == LABEL:
                continue
            elif o.mode == "d":
                await compare_member(job, member, members)
            elif not o.interactive or await confirmed(job, "extract", member.name.rstrip("/")):
                await extract_member(job, member, members, later)
        if members.reader is not raw:
            # Truncated compressed data shows only at its end.
            while await members.reader.read(1 << 18):
                await proc.budget.yield_turn()
    except BadArchive as bad:
        if o.mode == "x" and members.left:
            proc.complain(str(bad))  # once for the member, and once for the archive
        bad_archive(job, str(bad))
    except compression.Corrupt as corrupt:
        proc.stderr.write(encode(f"\ngzip: stdin: {corrupt}\n"))
        job.proc.complain("Child returned status 1")
        raise _unrecoverable(job) from None
    if o.block_number and members.ended is not None:
        job.say("** Block of NULs **", members.ended // BLOCK)
    # Directories get their modes and times last, as extraction changes them.
    for path, member in reversed(later):
        await restore_attributes(job, path, member)
    complain_missing(job, wanted, choice.seen)
    if o.totals:
        size = -(-members.at // job.record) * job.record
        proc.stderr.write(f"Total bytes read: {size} ({size // 1024}KiB, 0B/s)\n".encode())
    await proc.close(raw)


class _Choice:
    """Select the members of an archive, one after the other."""

    def __init__(self, job: TarJob, wanted: list[Named]) -> None:
        o = job.o
        self.job, self.wanted = job, wanted
        self.seen: set[str] = set()
        self.starting = o.starting.rstrip("/") if o.starting is not None else None
        self.turn = int(o.occurrence) if o.occurrence is not None and o.occurrence.isdecimal() else None
        self.turns: dict[str, int] = {}

    def takes(self, member: Member) -> bool:
        job, name = self.job, member.name
        match = wanted_match(job, name, self.wanted)
        if self.wanted and match is None:
            if job.o.show_omitted and member.is_dir:
                job.proc.complain(f"{shown_name(job, name.rstrip('/'))}: Omitting")
            return False
        if match is not None:
            if self.turn is None:
                self.seen.add(match.name)
            job.cwd = match.cwd
        if is_excluded(job, name):
            return False
        if self.starting is not None:
            if name.rstrip("/") != self.starting:
                return False
            self.starting = None
        if self.turn is not None:
            self.turns[name] = self.turns.get(name, 0) + 1
            if self.turns[name] != self.turn:
                return False
            if match is not None:
                self.seen.add(match.name)
        return True


async def _list(job: TarJob, member: Member) -> None:
    if not job.o.absolute:
        warn_of_lead(job, member.name)
    name = listed_name(job, member)
    job.say(member_line(job, member) if job.verbose else shown_name(job, name), member.offset // BLOCK)
    if job.proc.stdout.full:
        await job.proc.stdout.drain()


async def verify_archive(job: TarJob) -> None:
    """Compare the new archive with its files."""
    raw, members = await opened_archive(job)
    while (member := await members.next()) is not None:
        if member.kind != LABEL:
            await compare_member(job, member, members)
        await job.proc.budget.yield_turn()
    await job.proc.close(raw)


def bad_archive(job: TarJob, text: str) -> None:
    if text in ("empty", "short"):
        job.proc.complain("This does not look like a tar archive")
        raise _exit(job)
    job.proc.complain(text)
    if text.startswith("This does not"):
        job.proc.complain("Skipping to next header")
        job.status = 2
        return
    raise _unrecoverable(job)


def _exit(job: TarJob) -> Failed:
    job.proc.complain("Exiting with failure status due to previous errors")
    return Failed()


async def _same(job: TarJob, left: AsyncIterator[bytes], right: AsyncIterator[bytes]) -> bool:
    """Return whether two streams have the same content."""
    a = b = b""
    while True:
        await job.proc.budget.yield_turn()
        a = a or await anext(left, b"")
        b = b or await anext(right, b"")
        if not a or not b:
            return a == b
        size = min(len(a), len(b))
        if a[:size] != b[:size]:
            return False
        a, b = a[size:], b[size:]


async def compare_member(job: TarJob, member: Member, members: Members) -> None:
    name = safe_name(job, member.name, "r")
    if name is None:
        return
    if job.verbose:
        job.say(("Verify " if job.o.verify else "") + shown_name(job, member.name))
    stat = await lookup(job.proc, job.path(name))
    differences: list[str] = []
    if stat is None:
        verb = "readlink" if member.kind == SYMLINK else "stat"
        where = shown_name(job, name.rstrip("/"))
        job.proc.complain(f"{where}: Warning: Cannot {verb}: No such file or directory")
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
                if not await _same(job, members.content(), job.proc.fs.read(job.path(name))):
                    differences.append("Contents differ")
        elif member.kind == SYMLINK and stat.target != member.link:
            differences.append("Symlink differs")
    for text in differences:
        await job.proc.emit(encode(f"{member.name.rstrip('/') if member.is_dir else member.name}: {text}\n"))
        job.status = max(job.status, 1)
