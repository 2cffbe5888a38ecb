"""dd: copy and convert blocks of bytes."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from typing import Final

from ramet.commands.framework.command import Command, UsageError, called, quote, typographic
from ramet.commands.framework.inputs import only_opens, size_suffix
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import fail, reason
from ramet.core.fs import Open
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, FileStream, Reader, Writer


def _dd_number(text: str) -> int:
    total = 1
    for piece in text.lower().split("x") if not text.lower().startswith("0x") else [text]:
        found = re.fullmatch(r"(\d+)([a-zA-Z]*)", piece)
        factor: int | None = None
        if found:
            suffix = found[2]
            factor = (
                {"c": 1, "w": 2, "b": 512}.get(suffix)
                if suffix in ("c", "w", "b")
                else size_suffix(suffix[:1].upper() + suffix[1:] if suffix else "")
            )
            if factor is None and suffix.endswith(("b", "ib")):
                factor = size_suffix(suffix[:-1].upper().replace("I", "i") + "B")
        if found is None or factor is None:
            raise UsageError(f"invalid number: {quote(text)}", hint=False)
        total *= int(found[1]) * factor
    return total


_CONVERSIONS: Final = (
    "ascii",
    "ebcdic",
    "ibm",
    "block",
    "unblock",
    "lcase",
    "ucase",
    "sparse",
    "swab",
    "sync",
    "excl",
    "nocreat",
    "notrunc",
    "noerror",
    "fdatasync",
    "fsync",
)
_FLAGS: Final = (
    "append",
    "direct",
    "directory",
    "dsync",
    "sync",
    "fullblock",
    "nonblock",
    "noatime",
    "nocache",
    "noctty",
    "nofollow",
    "count_bytes",
    "skip_bytes",
    "seek_bytes",
)
_APART: Final = (
    ("ascii", "ebcdic", "ibm"),
    ("block", "unblock"),
    ("lcase", "ucase"),
    ("excl", "nocreat"),
)
"""Conversions of which there can be only one."""


@dataclass
class _Dd:
    proc: Proc
    options: dict[str, str] = field(default_factory=dict)
    conv: set[str] = field(default_factory=set)
    iflag: set[str] = field(default_factory=set)
    oflag: set[str] = field(default_factory=set)
    full_in: int = 0
    part_in: int = 0
    full_out: int = 0
    part_out: int = 0
    copied: int = 0

    def number(self, name: str, default: int) -> int:
        return _dd_number(self.options[name]) if name in self.options else default


async def dd(proc: Proc, o: None, words: list[str]) -> int:
    job = _Dd(proc)
    known = {
        "bs",
        "cbs",
        "conv",
        "count",
        "ibs",
        "if",
        "iflag",
        "obs",
        "of",
        "oflag",
        "seek",
        "skip",
        "status",
        "iseek",
        "oseek",
    }
    for word in words:
        if word == "--":
            continue
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise UsageError(f"unrecognized operand {quote(word)}")
        if name in ("conv", "iflag", "oflag"):
            for piece in text.split(","):
                if name == "conv" and piece not in _CONVERSIONS:
                    raise UsageError(f"invalid conversion: {quote(piece)}")
                if name != "conv" and (piece not in _FLAGS or word == "oflag=fullblock"):
                    raise UsageError(f"invalid {'in' if name == 'iflag' else 'out'}put flag: {quote(piece)}")
                getattr(job, name).add(piece)
        else:
            job.options[{"iseek": "skip", "oseek": "seek"}.get(name, name)] = text
    status = job.options.get("status", "")
    if status not in ("", "none", "noxfer", "progress"):
        raise UsageError(f"invalid status level: {quote(status)}")
    _check_combined(job)
    try:
        return await _dd_run(job, status)
    except OSError as error:
        if error.errno == 32:
            raise
        if "if" not in job.options and only_opens(error):
            proc.complain(typographic(proc, f"error reading 'standard input': {reason(error)}"))
            return 1
        name = error.filename or job.options.get("of", job.options.get("if", ""))
        proc.complain(f"failed to open {quote(str(name))}: {reason(error)}")
        return 1


def _check_combined(job: _Dd) -> None:
    for group in _APART:
        both = [name for name in group if name in job.conv]
        if len(both) > 1 and (group[0] != "block" or "cbs" in job.options):  # Without a size there are no blocks.
            names = f"any two of {{{','.join(group)}}}" if len(group) > 2 else " and ".join(group)
            raise UsageError(f"cannot combine {names}", hint=False)
    if {"direct", "nocache"} <= job.iflag or {"direct", "nocache"} <= job.oflag:
        raise UsageError("cannot combine direct and nocache", hint=False)
    if "append" in job.oflag and "notrunc" not in job.conv and "of" in job.options:
        job.proc.complain("you probably want conv=notrunc with oflag=append")


async def _dd_run(job: _Dd, status: str) -> int:
    import asyncio

    proc = job.proc
    loop = asyncio.get_running_loop()
    start = loop.time()
    bs = job.number("bs", 0)
    if "bs" in job.options and bs == 0:
        raise UsageError(f"invalid number: {quote(job.options['bs'])}", hint=False)
    ibs, obs = bs or job.number("ibs", 512), bs or job.number("obs", 512)
    if ibs == 0 or obs == 0 or job.number("cbs", 1) == 0:
        raise UsageError("invalid number: '0'", hint=False)
    for name, room in (("input", ibs), ("output", obs), ("conversion", job.number("cbs", 0))):
        if room > proc.budget.limits.whole:
            raise proc.budget.exceeded("whole_bytes", f"{name} buffer of {room} bytes")
    skip, seek, count = job.number("skip", 0), job.number("seek", 0), job.number("count", -1)
    try:
        reader: Reader = proc.stdin if "if" not in job.options else await proc.open(job.options["if"], dash=False)
    except OSError as error:
        proc.complain(f"failed to open {quote(job.options['if'])}: {reason(error)}")
        return 1
    skip_bytes = skip if "skip_bytes" in job.iflag else skip * ibs
    if skip_bytes:
        if isinstance(reader, FileStream):
            size = (await reader.stat()).size
            told = job.options.get("status") != "none"
            if told and size is not None and reader.tell() + skip_bytes > size:
                name = called(job.options["if"]) if "if" in job.options else "'standard input'"
                proc.complain(f"{name}: cannot skip to specified offset")
            reader.seek(reader.tell() + skip_bytes)
        else:
            while skip_bytes > 0 and (block := await reader.read(min(skip_bytes, BLOCK))):
                skip_bytes -= len(block)
    try:
        writer = await _dd_output(job, seek if "seek_bytes" in job.oflag else seek * obs)
    except OSError as error:
        proc.complain(f"failed to open {quote(job.options['of'])}: {reason(error)}")
        return 1
    if seek and "of" not in job.options and not isinstance(writer, FileStream):
        proc.complain("'standard output': cannot seek: Illegal seek")
        if job.options.get("status") != "none":
            proc.stderr.write(b"0+0 records in\n0+0 records out\n")
            proc.stderr.write(b"0 bytes copied, 0 s, 0.0 kB/s\n")
        return 1
    limit = count if "count_bytes" in job.iflag and count >= 0 else None
    pending = b""
    blocks = 0
    while count != 0 and (limit is None or job.copied < limit) and (limit is not None or count < 0 or blocks < count):
        want = ibs if limit is None else min(ibs, limit - blocks * ibs)
        if want <= 0:
            break
        data = await reader.read_exactly(want)
        if not data:
            break
        blocks += 1
        if len(data) == ibs:
            job.full_in += 1
        else:
            job.part_in += 1
            if "sync" in job.conv:
                data = data.ljust(ibs, b" " if "block" in job.conv or "unblock" in job.conv else b"\0")
        data = _dd_convert(job, data)
        pending = pending + data if pending else data
        if len(pending) == obs:
            _dd_write(job, writer, pending, obs)
            pending = b""
        at = 0
        while len(pending) - at >= obs:
            _dd_write(job, writer, pending[at : at + obs], obs)
            at += obs
        pending = pending[at:] if at else pending
        if writer.full:
            await writer.drain()
        await proc.budget.yield_turn()
    if pending:
        _dd_write(job, writer, pending, obs)
    await proc.close(reader)
    await proc.close(writer)
    if status != "none":
        text = f"{job.full_in}+{job.part_in} records in\n{job.full_out}+{job.part_out} records out\n"
        if status != "noxfer":
            seconds = max(loop.time() - start, 1e-9)
            text += _dd_summary(job.copied, seconds)
        proc.stderr.write(text.encode())
    return 0


def _dd_write(job: _Dd, writer: Writer, data: bytes, obs: int) -> None:
    writer.write(data)
    job.copied += len(data)
    if len(data) == obs:
        job.full_out += 1
    else:
        job.part_out += 1


def _dd_convert(job: _Dd, data: bytes) -> bytes:
    if "swab" in job.conv:
        even = len(data) & ~1
        swapped = bytearray(data)
        swapped[0:even:2], swapped[1:even:2] = data[1:even:2], data[0:even:2]
        data = bytes(swapped)
    if "ucase" in job.conv:
        data = data.upper()
    if "lcase" in job.conv:
        data = data.lower()
    if "ebcdic" in job.conv or "ibm" in job.conv:
        data = data.decode("latin-1").encode("cp037", "replace")
    if "ascii" in job.conv:
        data = data.decode("cp037").encode("latin-1", "replace")
    cbs = job.number("cbs", 0)
    if cbs and "block" in job.conv:
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if len(lines) * cbs > job.proc.budget.limits.whole:
            raise job.proc.budget.exceeded("whole_bytes")
        data = b"".join(line[:cbs].ljust(cbs) for line in lines)
    elif cbs and "unblock" in job.conv:
        data = b"".join(data[i : i + cbs].rstrip(b" ") + b"\n" for i in range(0, len(data), cbs))
    return data


async def _dd_output(job: _Dd, offset: int) -> Writer:
    proc = job.proc
    if "of" not in job.options:
        return proc.stdout
    word = job.options["of"]
    found = proc.descriptor(word)
    if isinstance(found, Writer):
        return found
    if word.endswith("/"):
        raise fail(errno.EISDIR, word)
    path = proc.path(word)
    how = Open.WRITE
    if "nocreat" not in job.conv:
        how |= Open.CREATE
    if "excl" in job.conv:
        how |= Open.EXCLUSIVE
    if "append" in job.oflag:
        how |= Open.APPEND
    if "notrunc" not in job.conv and not offset:
        how |= Open.TRUNCATE
    stream = await proc.fs.open(path, how)
    if offset:
        if "notrunc" not in job.conv:
            await stream.truncate(offset)
        stream.seek(offset)
    return stream


def _dd_summary(size: int, seconds: float) -> str:
    text = f"{size} byte{'' if size == 1 else 's'}"
    if size >= 1000:
        text += f" ({_scaled(size, 1000, 'kMGTPE', 10)}"
        text += f", {_scaled(size, 1024, 'KMGTPE', 10)})" if size >= 1024 else ")"
    return f"{text} copied, {seconds:.6g} s, {_scaled(size / seconds, 1000, 'kMGTPE', 100)}/s\n"


def _scaled(number: float, base: int, letters: str, whole: int) -> str:
    """Return a number of bytes with a letter, at least the first one; from `whole` on without a fraction."""
    number /= base
    power = 1
    while number >= base and power < len(letters):
        number /= base
        power += 1
    digits = f"{number:.1f}" if round(number, 1) < whole else f"{number:.0f}"
    return f"{digits} {letters[power - 1]}{'i' if base == 1024 else ''}B"


COMMANDS = [
    Command(
        "dd",
        dd,
        raw=True,
        summary="Copy a file, converting and formatting according to the operands.",
        usage="[OPERAND]...",
        details="Operands: if= of= bs= ibs= obs= count= skip= seek= conv=\n"
        "(lcase ucase swab sync notrunc block unblock ascii ebcdic excl nocreat ...) iflag= oflag= status=.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="closing input file 'standard input': {}"),
    ),
]
