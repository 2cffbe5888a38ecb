"""The engine of gzip, bzip2, xz and zstd: stream blocks both ways in bounded memory."""

from __future__ import annotations

import dataclasses
import errno
import lzma
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from ramet.commands.archives import bzip2_messages as bzip2_words
from ramet.commands.archives.codecs import (
    BZIP2,
    CHUNK,
    GZIP,
    LZMA,
    XZ,
    ZSTD,
    CompressionFormat,
    Corrupt,
    compressed,
    decompressed,
    sniff,
)
from ramet.commands.archives.compressor_options import PackOptions, XzOptions, ZstdOptions
from ramet.commands.archives.gzip_list import list_gzip
from ramet.commands.archives.xz_list import list_xz, list_zstd, summary
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import (
    UsageError,
    help_text,
    version_text,
)
from ramet.commands.framework.inputs import slurp
from ramet.commands.framework.table import Lazy
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import Reader


@dataclass
class _Pack:
    proc: Proc
    o: PackOptions | ZstdOptions
    format: CompressionFormat
    mode: str
    stdout: bool
    suffix: str
    level: int
    alone: bool = True
    """Whether there is at most one file."""
    status: int = 0
    bad_tests: int = 0
    """Damaged files found by `bzip2 -t`."""
    longest: int = 0
    """Length of the longest file name."""
    given: int = 0
    done: int = 0
    gives_up: bool = False
    """Whether an error ends the run."""

    @property
    def name(self) -> str:
        """The name in messages; gunzip and zcat call themselves gzip."""
        return "gzip" if self.format is GZIP else self.proc.argv[0]

    def warn(self, message: str, status: int = 1) -> None:
        if not (self.o.quiet and status == 2):
            self.proc.stderr.write(encode(f"{self.name}: {message}\n"))
        self.status = max(self.status, status) if self.status != 1 else 1


_CATS = {"zcat", "bzcat", "xzcat", "lzcat", "zstdcat"}
_UNPACKERS = {"gunzip", "uncompress", "bunzip2", "unxz", "unlzma", "unzstd"}


_BY_NAME = {
    name: format_
    for format_, names in (
        (GZIP, "gzip gunzip zcat uncompress"),
        (BZIP2, "bzip2 bunzip2 bzcat"),
        (XZ, "xz unxz xzcat"),
        (LZMA, "lzma unlzma lzcat"),
        (ZSTD, "zstd unzstd zstdcat"),
    )
    for name in names.split()
}


_CHECKS = {"none": 0, "crc32": 1, "crc64": 4, "sha256": 10}


def _chosen(format_: CompressionFormat, o: PackOptions | ZstdOptions) -> CompressionFormat:
    """Return the format as changed by the options."""
    if isinstance(o, ZstdOptions):
        if o.kind != "zstd":
            return {"gzip": GZIP, "xz": XZ, "lzma": LZMA}[o.kind]
        return dataclasses.replace(format_, check=int(o.check))
    if isinstance(o, XzOptions):
        kind = format_.name if o.kind == "auto" else "lzma" if o.kind == "alone" else o.kind
        base = {"xz": XZ, "lzma": LZMA}[kind]
        return dataclasses.replace(base, check=_CHECKS[o.check], single=o.single)
    return format_


async def pack(proc: Proc, o: PackOptions | ZstdOptions, operands: list[str]) -> int:
    name = proc.argv[0].rpartition("/")[2]
    if o.asked or getattr(o, "licence", False) or getattr(o, "long_help", False):
        own = Lazy(name).load()
        helped = o.asked or getattr(o, "long_help", False)
        await proc.emit(encode(help_text(own) if helped else version_text(own)))
        return 0
    operands = [*operands, *await _listed(proc, o)]
    format_ = _chosen(_BY_NAME[name], o)
    mode = o.mode or ("d" if name in _CATS or name in _UNPACKERS else "z")
    level = o.level if o.level is not None else format_.default
    low, high = format_.levels
    job = _Pack(
        proc,
        o,
        format_,
        mode,
        o.stdout or name in _CATS,
        o.suffix or format_.suffix,
        max(low, min(level, high)) if format_.name != "zstd" else min(level, 22 if getattr(o, "ultra", False) else 19),
    )
    job.alone = len(operands) < 2 and not o.recursive
    if getattr(o, "extreme", False) and format_.name in ("xz", "lzma"):
        job.level |= lzma.PRESET_EXTREME
    if mode == "l":
        if format_.name == "zstd":
            return await list_zstd(proc, operands)
        if isinstance(o, XzOptions) and format_.name == "xz" and not o.verbose:
            return await list_xz(proc, operands, quiet=o.quiet, robot=o.robot)
        if format_ is not GZIP:
            raise UsageError(f"such a listing is not supported for {format_.name}", hint=False)
        return await list_gzip(proc, operands, lambda word: _bare(job, word) or word, quiet=o.quiet, verbose=o.verbose)
    job.longest, job.given = max(map(len, ("(stdin)", *operands))), len(operands)
    for word in operands or ["-"]:
        job.done += 1
        if word == "-":
            await _stream(job, proc.stdin, "stdin")
        else:
            await _file(job, word)
        if job.gives_up:
            break
        await proc.budget.yield_turn()
    if job.bad_tests:
        proc.stderr.write(encode(bzip2_words.RECOVER))
    return job.status


async def _listed(proc: Proc, o: PackOptions | ZstdOptions) -> list[str]:
    """Return the names listed in files."""
    out: list[str] = []
    if isinstance(o, (XzOptions, ZstdOptions)) and o.names is not None:
        out += [decode(line) for line in (await slurp(proc, o.names)).split(b"\n") if line]
    if isinstance(o, XzOptions) and o.names0 is not None:
        out += [decode(line) for line in (await slurp(proc, o.names0)).split(b"\0") if line]
    return out


async def _blocks(proc: Proc, reader: Reader) -> AsyncIterator[bytes]:
    while block := await reader.read(CHUNK):
        yield block
        await proc.budget.yield_turn()


def _bad_bzip2(job: _Pack, name: str, text: str, output: str) -> None:
    say = job.proc.stderr.write
    if job.mode == "t":
        start = bzip2_words.tested(name, job.longest) if job.o.verbose else f"{job.name}: {name}: "
        say(encode(f"{start}{bzip2_words.test_result(text)}\n"))
        if text != "trailing garbage":
            job.bad_tests += 1
            job.status = 2
    elif text == "trailing garbage":
        say(encode(f"\n{job.name}: {name}: {bzip2_words.GARBAGE}\n"))
    elif text == "not in format":
        say(encode(f"{job.name}: {name} is not a bzip2 file.\n"))
        job.status = 2
    else:
        say(encode(bzip2_words.broken(job.name, name, output, text, (job.given, job.given - job.done))))
        job.status = 2
        job.gives_up = True


def _bad(job: _Pack, shown_name: str, corrupt: Corrupt, output: str = "") -> None:
    text = str(corrupt)
    name = job.format.name
    if name == "gzip":
        words = (
            "not in gzip format"
            if text == "not in format"
            else "decompression OK, trailing garbage ignored"
            if text == "trailing garbage"
            else text
        )
        job.proc.stderr.write(encode(f"\n{job.name}: {shown_name}: {words}\n"))
        job.status = 2 if "garbage" in words and job.status == 0 else 1
    elif name == "bzip2":
        _bad_bzip2(job, "(stdin)" if shown_name == "stdin" else shown_name, text, output)
    elif name == "zstd":
        words = (
            ("unknown header" if shown_name == "stdin" else "unsupported format")
            if text == "not in format"
            else text
            if text == "unexpected end of file"
            else "Read error (39) : premature end"
            if "end" in text
            else "Decoding error (36) : Data corruption detected"
        )
        if text == "Dictionary mismatch":
            words = f"Decoding error (36) : {text}"
        stdin_name = "/*stdin*\\" if shown_name == "stdin" else shown_name
        lead = f"{stdin_name} : " if words.startswith("Decoding") else f"zstd: {stdin_name}: "
        job.proc.stderr.write(encode(f"{lead}{words} \n"))
        job.status = 1
    else:
        words = (
            "File format not recognized"
            if text == "not in format"
            else "Unexpected end of input"
            if "end" in text
            else "Compressed data is corrupt"
        )
        job.proc.complain(f"{'(stdin)' if shown_name == 'stdin' else shown_name}: {words}")
        job.status = 1


async def _stream(job: _Pack, reader: Reader, shown_name: str, name: str = "", stat: Stat | None = None) -> None:
    """Convert a reader to stdout."""
    proc = job.proc
    if job.mode == "z":
        mtime = (stat.mtime_ns or 0) // 10**9 if stat is not None and not job.o.no_name else 0
        saved = b"" if job.o.no_name else encode(name.rpartition("/")[2])
        size = stat.size if stat is not None and stat.is_file else None
        taken = given = 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal taken
            async for block in _blocks(proc, reader):
                taken += len(block)
                yield block

        async for block in compressed(counted(), job.format, job.level, saved, mtime, size):
            given += len(block)
            await proc.emit(block)
        if job.format is GZIP and job.o.verbose:
            _tell(job, name, "stdout", taken, given - (_frame(job, name) if saved else _BARE))
        return
    try:
        first = await reader.read(CHUNK)
        if not first:
            if job.o.force and job.stdout and job.mode != "t" and job.format in (GZIP, XZ):
                return  # other data is passed on, and there is none
            raise Corrupt("not in format" if job.format.name == "xz" else "unexpected end of file")
        actual = _actual(job, first)
        if actual is None and (job.stdout or shown_name == "stdin") and job.o.force:
            await proc.emit(first)
            async for block in _blocks(proc, reader):
                await proc.emit(block)
            return
        size = 0
        async for block in decompressed(reader, actual or job.format, first):
            size += len(block)
            if job.mode != "t":
                await proc.emit(block)
            await proc.budget.yield_turn()
        if job.mode == "t" and isinstance(job.o, ZstdOptions) and not job.o.quiet and job.alone:
            proc.stderr.write(encode(summary(name or "/*stdin*\\", "", 0, size, job.mode)))
    except Corrupt as corrupt:
        _bad(job, shown_name, corrupt)


def _actual(job: _Pack, head: bytes) -> CompressionFormat | None:
    """Return the format of the data if this program reads it: xz reads .lzma too."""
    found = sniff(head)
    if found is None and job.format.name in ("xz", "lzma") and _alone(head):
        found = LZMA
    if found in (XZ, LZMA) and job.format.name in ("xz", "lzma"):
        return dataclasses.replace(found, single=job.format.single)
    if job.format.name == "zstd":
        return job.format if found is ZSTD else found
    return found if found is job.format else None


def _alone(head: bytes) -> bool:
    """Return whether data begins with an .lzma header."""
    if len(head) < 13 or head[0] >= 225:
        return False
    size = int.from_bytes(head[1:5], "little")
    return bin(size).count("1") in (1, 2) and (size & (size - 1) == 0 or "11" in bin(size))


async def _file(job: _Pack, word: str) -> None:
    proc = job.proc
    try:
        path = proc.path(word)
        stat = await lookup(proc, path, follow=True)
        if stat is None and job.mode != "z" and not word.endswith(job.suffix):
            alternative = await lookup(proc, proc.path(word + job.suffix), follow=True)
            if alternative is not None:
                word, path, stat = word + job.suffix, proc.path(word + job.suffix), alternative
        if stat is None:
            missing = (
                word + job.suffix if job.format is GZIP and job.mode != "z" and not word.endswith(job.suffix) else word
            )
            raise FileNotFoundError(errno.ENOENT, "", missing)
    except OSError as error:
        job.warn(_missing(job, str(error.filename or word), error))
        return
    if stat.is_dir:
        await _directory(job, word, path)
        return
    try:
        reader = await proc.open(word)
    except OSError as error:
        job.warn(_missing(job, word, error))
        return
    try:
        if job.stdout or job.mode == "t":
            bad_before = job.bad_tests
            await _stream(job, reader, word, word, stat)
            good = job.bad_tests == bad_before if job.format is BZIP2 else not job.status
            if job.mode == "t" and good and job.o.verbose and not isinstance(job.o, ZstdOptions):
                told = f"{bzip2_words.tested(word, job.longest)}ok\n" if job.format is BZIP2 else f"{word}:\t OK\n"
                proc.stderr.write(encode(told))
            return
        await _convert(job, word, reader, stat)
    finally:
        await proc.close(reader)


def _missing(job: _Pack, word: str, error: OSError) -> str:
    if job.format is BZIP2:
        return f"Can't open input file {word}: {reason(error)}."
    if job.format.name == "zstd":
        return f"can't stat {word} : {reason(error)} -- ignored "
    return f"{word}: {reason(error)}"


async def _directory(job: _Pack, word: str, path: Any) -> None:
    if not job.o.recursive if isinstance(job.o, (PackOptions, ZstdOptions)) else True:
        words = {
            "gzip": f"{word} is a directory -- ignored",
            "bzip2": f"Input file {word} is a directory.",
            "zstd": f"{word} is a directory -- ignored ",
        }
        status = 1 if job.format.name in ("bzip2", "zstd") else 2
        job.warn(words.get(job.format.name, f"{word}: Is a directory, skipping"), status)
        return
    async for name, _ in job.proc.fs.scan(path):
        child = f"{word.rstrip('/')}/{name}"
        if job.mode == "z" and name.endswith(job.suffix):
            continue
        await _file(job, child)


async def _convert(job: _Pack, word: str, reader: Reader, stat: Stat) -> None:
    """Convert a file to its sibling; remove the original when the new one is complete."""
    proc = job.proc
    target = job.o.output
    if target is None:
        if job.mode == "d" and job.format.name in ("xz", "lzma") and _bare(job, word) is None:
            # The format counts before the suffix.
            reader.unread(head := await reader.read(CHUNK))
            if _actual(job, head) is None:
                job.warn(f"{word}: File format not recognized")
                return
        target = _target(job, word)
        if target is None:
            return
        if isinstance(job.o, ZstdOptions) and job.o.into is not None:
            target = f"{job.o.into.rstrip('/')}/{target.rpartition('/')[2]}"
        if isinstance(job.o, ZstdOptions) and job.o.mirror is not None:
            target = f"{job.o.mirror.rstrip('/')}/{re.sub(r'^(/|[.]/+)+', '', target)}"
            await _ancestors(proc, proc.path(target).parent)
    existing = await lookup(proc, proc.path(target))
    if existing is not None and not job.o.force:
        if job.format is GZIP:
            proc.stderr.write(encode(f"{job.name}: {target} already exists;"))
            answer = await proc.stdin.readline()
            if answer[:1] not in (b"y", b"Y"):
                proc.stderr.write(b"\tnot overwritten\n")
                job.status = 2
                return
        elif job.format is BZIP2:
            job.warn(f"Output file {target} already exists.")
            return
        elif job.format.name == "zstd" and job.o.quiet:
            proc.stderr.write(encode(f"zstd: {target} already exists; not overwritten  \n"))
            job.status = 1
            return
        elif job.format.name == "zstd":
            proc.stderr.write(encode(f"zstd: {target} already exists; overwrite (y/n) ? "))
            if (await proc.stdin.readline())[:1] not in (b"y", b"Y"):
                proc.stderr.write(b"Not overwritten  \n")
                job.status = 1
                return
        else:
            job.warn(f"{target}: File exists")
            return
    size_in, size_out = stat.size or 0, 0

    async def produce() -> AsyncIterator[bytes]:
        nonlocal size_out
        if job.mode == "z":
            mtime = 0 if job.o.no_name else (stat.mtime_ns or 0) // 10**9
            name = b"" if job.o.no_name else encode(word.rpartition("/")[2])
            made = compressed(
                _blocks(proc, reader), job.format, job.level, name, mtime, stat.size if stat.is_file else None
            )
        else:
            first = await reader.read(CHUNK)
            made = decompressed(reader, _actual(job, first) or job.format, first)
        async for block in made:
            size_out += len(block)
            yield block
            await proc.budget.yield_turn()

    try:
        await proc.fs.write(proc.path(target), produce())
    except Corrupt as corrupt:
        _bad(job, word, corrupt, target)
        if job.status == 1 or "garbage" not in str(corrupt):
            if existing is None and await lookup(proc, proc.path(target)) is not None:
                await proc.fs.remove(proc.path(target))
            return
    except OSError as error:
        job.warn(f"{target}: {reason(error)}")
        return
    await proc.fs.setattr(proc.path(target), Attrs(mode=stat.mode, mtime_ns=stat.mtime_ns))
    if not job.o.keep:
        await proc.fs.remove(proc.path(word))
    if isinstance(job.o, ZstdOptions):
        if not job.o.quiet and job.alone:
            proc.stderr.write(encode(summary(word, target, size_in, size_out, job.mode)))
    elif job.o.verbose:
        whole, packed = (size_in, size_out) if job.mode == "z" else (size_out, size_in)
        if job.format == GZIP:
            packed -= _frame(job, target if job.mode == "z" else word)
        _tell(job, word, target, whole, packed)


def _tell(job: _Pack, word: str, target: str, whole: int, packed: int) -> None:
    """Print the `-v` line of one file."""
    ratio = (1 - packed / whole) * 100 if whole else 0.0
    action = "created" if job.o.keep and target != "stdout" else "replaced with"
    line = f"{word}:\t{ratio:5.1f}% -- {action} {target}" if word else f"{ratio:5.1f}%"
    job.proc.stderr.write(encode(line + "\n"))


async def _ancestors(proc: Proc, path: Path) -> None:
    """Create a directory and its missing parents."""
    missing: list[Path] = []
    while path.name and await lookup(proc, path, follow=True) is None:
        missing.append(path)
        path = path.parent
    for absent in reversed(missing):
        await proc.fs.mkdir(absent)


def _bare(job: _Pack, word: str) -> str | None:
    """Return a name without the suffix of the format; None when it has none."""
    endings = {
        "gzip": {".gz": "", "-gz": "", ".z": "", "-z": "", "_z": "", ".tgz": ".tar", ".taz": ".tar"},
        "bzip2": {".bz2": "", ".bz": "", ".tbz2": ".tar", ".tbz": ".tar"},
        "xz": {".xz": "", ".txz": ".tar", ".lzma": "", ".tlz": ".tar"},
        "lzma": {".lzma": "", ".tlz": ".tar", ".xz": ""},
        "zstd": {".zst": "", ".tzst": ".tar", ".gz": "", ".tgz": ".tar", ".lzma": "", ".xz": "", ".txz": ".tar"},
    }
    table = {job.suffix: "", **endings[job.format.name]}
    for ending, replacement in table.items():
        if word.endswith(ending) and len(word) > len(ending):
            return word[: -len(ending)] + replacement
    return None


def _target(job: _Pack, word: str) -> str | None:
    if job.mode == "z":
        endings = (job.suffix, ".txz") if job.format.name == "xz" else (job.suffix,)
        ending = next((ending for ending in endings if ending and word.endswith(ending)), None)
        if ending is not None and not job.o.force:
            if job.format is BZIP2:
                job.warn(f"Input file {word} already has {job.suffix} suffix.")
            elif job.format is GZIP:
                job.warn(f"{word} already has {job.suffix} suffix -- unchanged", 2)
            else:
                job.warn(f"{word}: File already has `{ending}' suffix, skipping", 2)
            return None
        return word + job.suffix
    found = _bare(job, word)
    if found is not None:
        return found
    if job.format is GZIP:
        job.warn(f"{word}: unknown suffix -- ignored", 2)
    elif job.format is BZIP2:
        job.proc.complain(f"Can't guess original name for {word} -- using {word}.out")
        return word + ".out"
    elif job.format.name == "zstd":
        job.warn(
            f"{word}: unknown suffix (.zst/.tzst/.gz/.tgz/.lzma/.xz/.txz/.lz4/.tlz4 expected). Can't derive the output "
            "file name. Specify it with -o dstFileName. Ignoring."
        )
    else:
        job.warn(f"{word}: Filename has an unknown suffix, skipping", 2)
    return None


_BARE: Final = 18
"""Bytes of a gzip member around its data, without a name."""


def _frame(job: _Pack, word: str) -> int:
    """Return the size of header, name and trailer, which ratios leave out."""
    name = word.rpartition("/")[2]
    return _BARE + 1 + len(encode(_bare(job, name) or name))
