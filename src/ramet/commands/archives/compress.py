"""`compress`: files become .Z files and back; what would not get smaller stays as it is unless that is forced."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ramet.commands.archives.codecs import CHUNK, COMPRESS, Corrupt, compressed, decompressed
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, flag, help_text, value, version_text
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs
from ramet.core.streams import Reader


@dataclass(frozen=True, slots=True)
class OldOptions:
    unpack: bool = flag("-d", help="decompress")
    stdout: bool = flag("-c", help="write on standard output, keep the files")
    force: bool = flag("-f", help="write the file even if it exists, and even if nothing is saved")
    verbose: bool = flag("-v", help="say how much was saved")
    recursive: bool = flag("-r", help="descend into directories")
    bits: str | None = value("-b", metavar="BITS", help="at most so many bits per code (9 to 16)")
    plain: bool = flag("-C", help="accepted: the codes are cleared when that saves something")
    version: bool = flag("-V", help="tell the version")
    asked: bool = flag("-h", help="say how the command is used")


@dataclass
class _Job:
    proc: Proc
    o: OldOptions
    bits: int
    status: int = 0

    def say(self, message: str, status: int) -> None:
        self.proc.stderr.write(encode(f"{message}\n"))
        self.status = max(self.status, status)


async def compress(proc: Proc, o: OldOptions, operands: list[str]) -> int:
    if o.asked or o.version:
        await proc.emit(encode(help_text(COMMANDS[0]) if o.asked else version_text(COMMANDS[0])))
        return 0
    if o.bits is not None and not o.bits.isdecimal():
        raise UsageError(f"the number of bits is not one: {o.bits}")
    job = _Job(proc, o, min(max(int(o.bits or 16), 9), 16))
    if not operands:
        await _to_stdout(job, proc.stdin, "stdin")
    for word in operands:
        await _one(job, word)
    return job.status


async def _one(job: _Job, word: str) -> None:
    proc, o = job.proc, job.o
    if o.unpack and not word.endswith(".Z"):
        word += ".Z"
    found = await lookup(proc, proc.path(word), follow=True)
    if found is None:
        job.say(f"{word}: {reason(OSError(errno.ENOENT, ''))}", 1)
        return
    if found.is_dir:
        if not o.recursive:
            job.status = max(job.status, 1)
            return
        for name in sorted([name async for name, _ in proc.fs.scan(proc.path(word))]):
            if name.endswith(".Z") == o.unpack:
                await _one(job, f"{word.rstrip('/')}/{name}")
        return
    if not o.unpack and word.endswith(".Z") and not o.stdout:
        job.say(f"{word}: already has .Z suffix -- no change", 1)
        return
    try:
        reader = await proc.open(word, dash=False)
    except OSError as error:
        job.say(f"{word}: {reason(error)}", 1)
        return
    try:
        if o.stdout:
            await _to_stdout(job, reader, word)
        else:
            await _convert(job, word, reader, found.size or 0)
    finally:
        await proc.close(reader)


async def _blocks(job: _Job, reader: Reader) -> AsyncIterator[bytes]:
    while block := await reader.read(CHUNK):
        yield block
        await job.proc.budget.yield_turn()


def _made(job: _Job, reader: Reader) -> AsyncIterator[bytes]:
    return decompressed(reader, COMPRESS) if job.o.unpack else compressed(_blocks(job, reader), COMPRESS, job.bits)


async def _to_stdout(job: _Job, reader: Reader, name: str) -> None:
    try:
        async for block in _made(job, reader):
            await job.proc.emit(block)
            await job.proc.budget.yield_turn()
    except Corrupt as corrupt:
        _complain(job, name, corrupt)


def _complain(job: _Job, name: str, corrupt: Corrupt) -> None:
    if str(corrupt) == "not in format" or "end" in str(corrupt):
        job.say(f"{name}: not in compressed format", 2)
    else:
        job.say("uncompress: corrupt input", 1)


async def _convert(job: _Job, word: str, reader: Reader, size: int) -> None:
    proc, o = job.proc, job.o
    target = word.removesuffix(".Z") if o.unpack else f"{word}.Z"
    if await lookup(proc, proc.path(target)) is not None and not o.force:
        job.say(f"{target} already exists.", 0)
        job.say(f"{target} not overwritten", 1)
        return
    given = 0

    async def produce() -> AsyncIterator[bytes]:
        nonlocal given
        async for block in _made(job, reader):
            given += len(block)
            yield block

    stat = await proc.fs.stat(proc.path(word), follow=True)
    try:
        await proc.fs.write(proc.path(target), produce())
    except Corrupt as corrupt:
        _complain(job, word, corrupt)
        if await lookup(proc, proc.path(target)) is not None:
            await proc.fs.remove(proc.path(target))
        return
    except OSError as error:
        job.say(f"{target}: {reason(error)}", 1)
        return
    if not o.unpack and given >= size and not o.force:
        await proc.fs.remove(proc.path(target))
        if o.verbose:
            job.say(f"{word}: No compression -- {word} unchanged", 2)
        job.status = max(job.status, 2)
        return
    await proc.fs.setattr(proc.path(target), Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns))
    await proc.fs.remove(proc.path(word))
    if o.verbose:
        hundredths = (size - given) * 10_000 // size if size else 10_000
        saved = "" if o.unpack else f" Compression: {hundredths // 100}.{hundredths % 100:02d}%"
        job.say(f"{word}:  -- replaced with {target}{saved}", 0)


COMMANDS = [
    Command(
        "compress",
        compress,
        OldOptions,
        summary="Compress FILEs into .Z files, or decompress them.",
        examples=(("compress -c file > file.Z", "what old programs can read"),),
    )
]
