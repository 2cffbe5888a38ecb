"""split: split a file into pieces by lines, bytes or number of chunks."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO

from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    flag,
    mixed,
    optional,
    ordered,
    quote,
    value,
)
from ramet.commands.framework.inputs import parse_count, parse_size
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import BLOCK, Capture, FileStream, IteratorReader, Reader, Writer, line_blocks
from ramet.text.width import bounded

_IN_MEMORY = 8 << 20
"""Bytes of a pipe kept in memory until its size is known; more go to a temporary file of the host."""


@dataclass(frozen=True, slots=True)
class SplitOptions:
    suffix_length: str | None = value(
        "-a", "--suffix-length", metavar="N", help="generate suffixes of length N (default 2)"
    )
    extra_suffix: str = value(
        "--additional-suffix", metavar="SUFFIX", default="", help="append an additional SUFFIX to file names"
    )
    how: tuple[str, str] | None = mixed(
        value("-b", "--bytes", metavar="SIZE", convert=lambda t: ("bytes", t), help="put SIZE bytes per output file"),
        value(
            "-C",
            "--line-bytes",
            metavar="SIZE",
            convert=lambda t: ("line-bytes", t),
            help="put at most SIZE bytes of records per output file",
        ),
        value(
            "-l",
            "--lines",
            metavar="NUMBER",
            convert=lambda t: ("lines", t),
            digits=True,
            help="put NUMBER lines/records per output file",
        ),
        value(
            "-n",
            "--number",
            metavar="CHUNKS",
            convert=lambda t: ("number", t),
            help="generate CHUNKS output files: N, K/N, l/N, l/K/N, r/N, r/K/N",
        ),
        default=("lines", "1000"),
    )
    numeric: tuple[str, str] | None = mixed(
        flag("-d", const=("d", "0"), help="use numeric suffixes starting at 0, not alphabetic"),
        flag("-x", const=("x", "0"), help="use hex suffixes starting at 0, not alphabetic"),
        optional(
            "--numeric-suffixes", metavar="FROM", const=("d", "0"), help="same as -d, but allow setting the start value"
        ),
        optional(
            "--hex-suffixes", metavar="FROM", const=("x", "0"), help="same as -x, but allow setting the start value"
        ),
        default=None,
    )
    elide: bool = flag("-e", "--elide-empty-files", help="do not generate empty output files with '-n'")
    filter: str | None = value("--filter", metavar="COMMAND", help="write to shell COMMAND; file name is $FILE")
    separator: str | None = value(
        "-t", "--separator", metavar="SEP", help="use SEP instead of newline as the record separator"
    )
    unbuffered: bool = flag("-u", "--unbuffered", help="immediately copy input to output with '-n r/...'")
    verbose: bool = flag("--verbose", help="print a diagnostic just before each output file is opened")
    order: tuple[tuple[str, object], ...] = ordered()


class _Output:
    """The files being written: names in sequence, one open at a time."""

    def __init__(self, proc: Proc, o: SplitOptions, prefix: str, chunks: int) -> None:
        self.proc, self.o, self.prefix = proc, o, prefix
        kind, start = (
            ("a", "0")
            if o.numeric is None
            else o.numeric
            if isinstance(o.numeric, tuple)
            else ("d" if "--num" in " ".join(proc.argv) else "x", o.numeric)
        )
        if start == "0" and isinstance(o.numeric, tuple):
            # A short option keeps the start that an earlier option has set.
            earlier = [str(given) for name, given in o.order if name == "numeric" and isinstance(given, str)]
            start = earlier[-1] if earlier else start
        if not re.fullmatch(r"[0-9a-fA-F]+" if kind == "x" else r"\d+", start):
            raise UsageError(
                f"{quote(start)}: invalid start value for {'numerical' if kind == 'd' else 'hexadecimal'} suffix",
                hint=False,
            )
        self.alphabet = {"a": "abcdefghijklmnopqrstuvwxyz", "d": "0123456789", "x": "0123456789abcdef"}[kind]
        self.index = int(start, 16 if kind == "x" else 10) if kind != "a" else 0
        base = len(self.alphabet)
        length = parse_count(o.suffix_length, "suffix length") if o.suffix_length is not None else 0
        self.grows = length == 0 and start == "0" and not chunks
        needed = 1
        while chunks and base**needed < chunks + (self.index if kind != "a" else 0):
            needed += 1
        self.length = bounded(length) or max(2, needed)
        if length and chunks and length < 64 and base**length < chunks:
            raise UsageError(f"the suffix length needs to be at least {needed}", hint=False)
        self.lead = ""
        self.source: int | None = None
        """The inode of the input, which no output may be."""
        self.writer: Writer | None = None
        self.capture: Capture | None = None
        self.name = ""

    def _suffix(self) -> str:
        base = len(self.alphabet)
        number, text = self.index, ""
        while number and len(text) < self.length:
            number, digit = divmod(number, base)
            text = self.alphabet[digit] + text
        text = text.rjust(self.length, self.alphabet[0])
        last = self.alphabet[-1]
        if self.grows and self.index == base**self.length - base ** (self.length - 1):
            # The last first letter is kept to mark names that grew: zaaa follows yz.
            self.lead += last
            self.length += 1
            self.index = 0
            return self._suffix()
        if number:
            raise UsageError("output file suffixes exhausted", hint=False)
        return self.lead + text

    async def next(self) -> Writer:
        await self.close()
        self.name = self.prefix + self._suffix() + self.o.extra_suffix
        self.index += 1
        if self.o.filter is not None:
            self.capture = Capture(self.proc.budget.limits.string_bytes, "string_bytes")
            self.writer = self.capture
            if self.o.verbose:
                await self.proc.emit(encode(f"executing with FILE={quote(self.name)}\n"))
            return self.capture
        if self.o.verbose:
            await self.proc.emit(encode(f"creating file {quote(self.name)}\n"))
        try:
            if self.source is not None and await self._is_source(self.name):
                raise UsageError(f"{quote(self.name)} would overwrite input; aborting", hint=False)
            self.writer = await self.proc.create(self.name)
        except OSError as error:
            raise UsageError(f"{called(self.name)}: {reason(error)}", hint=False) from None
        return self.writer

    async def _is_source(self, name: str) -> bool:
        try:
            return (await self.proc.fs.stat(self.proc.path(name), follow=True)).inode == self.source
        except FileNotFoundError:
            return False

    async def close(self) -> None:
        if self.capture is not None:
            from ramet.core.streams import BytesReader

            env = {**self.proc.env, "FILE": self.name}
            data, self.capture, self.writer = self.capture.getvalue(), None, None
            status = await self.proc.run(["bash", "-c", self.o.filter or ""], stdin=BytesReader(data), env=env)
            if status:
                raise UsageError(f"with FILE={self.name}, exit {status} from command: {self.o.filter}", hint=False)
        elif self.writer is not None:
            await self.proc.close(self.writer)
            self.writer = None


async def split(proc: Proc, o: SplitOptions, operands: list[str]) -> int:
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote(operands[2])}")
    if sum(name == "how" for name, _ in o.order) > 1:
        raise UsageError("cannot split in more than one way")
    if "/" in o.extra_suffix:
        raise UsageError(f"invalid suffix {quote(o.extra_suffix)}, contains directory separator")
    if sum(name == "how" for name, _ in o.order) > 1:
        raise UsageError("cannot split in more than one way")
    word = operands[0] if operands else "-"
    prefix = operands[1] if len(operands) > 1 else "x"
    separator = b"\n"
    if o.separator is not None:
        raw = b"\0" if o.separator == "\\0" else encode(o.separator)
        if not raw:
            raise UsageError("empty record separator", hint=False)
        if len(raw) > 1:
            raise UsageError(f"multi-character separator {quote(o.separator)}")
        separator = raw
    assert o.how is not None
    kind, text = o.how
    try:
        reader = await proc.open(word)
    except OSError as error:
        proc.complain(f"cannot open {quote(word)} for reading: {reason(error)}")
        return 1
    if kind == "number":
        return await _chunks(proc, o, word, reader, text, prefix, separator)
    what = {"bytes": "number of bytes", "line-bytes": "number of bytes", "lines": "number of lines"}[kind]
    amount = parse_size(text, what)
    if amount == 0:
        raise UsageError(f"invalid {what}: {quote(text)}: Numerical result out of range", hint=False)
    output = _Output(proc, o, prefix, 0)
    output.source = await _inode(reader)
    pieces = {
        "bytes": _by_bytes(reader, amount),
        "lines": _by_lines(reader, amount, separator),
        "line-bytes": _by_line_bytes(reader, amount, separator),
    }[kind]
    writer: Writer | None = None
    async for fresh, data in pieces:
        if fresh or writer is None:
            writer = await output.next()
        writer.write(data)
        if writer.full:
            await writer.drain()
        await proc.budget.yield_turn()
    await output.close()
    await proc.close(reader)
    return 0


Pieces = AsyncIterator[tuple[bool, bytes]]


async def _by_bytes(reader: Reader, amount: int) -> Pieces:
    left = 0
    while block := await reader.read():
        at = 0
        while at < len(block):
            fresh = left == 0
            if fresh:
                left = amount
            part = block[at : at + left]
            at += len(part)
            left -= len(part)
            yield fresh, part


async def _by_lines(reader: Reader, amount: int, separator: bytes) -> Pieces:
    left = 0
    while block := await reader.read():
        at = 0
        while at < len(block):
            fresh = left == 0
            if fresh:
                left = amount
            have = block.count(separator, at)
            if have < left:
                left -= have
                # An unfinished line keeps its file open.
                yield fresh, block[at:]
                break
            end = at
            for _ in range(left):
                end = block.index(separator, end) + 1
            yield fresh, block[at:end]
            at, left = end, 0


async def _by_line_bytes(reader: Reader, amount: int, separator: bytes) -> Pieces:
    used = 0
    rest: list[bytes] = []
    held = 0
    cutting = False  # whether the start of the current line already filled files
    while block := await reader.read():
        end = block.rfind(separator) + 1
        rest.append(block[:end] if end else block)
        held += len(rest[-1])
        if not end:
            if held > amount:
                whole = b"".join(rest)
                full = (held - 1) // amount * amount
                for at in range(0, full, amount):
                    yield True, whole[at : at + amount]
                rest, held, cutting = [whole[full:]], held - full, True
            else:
                reader.hold(held)
            continue
        whole = b"".join(rest)
        *lines, _ = whole.split(separator)
        rest, held = ([block[end:]], len(block) - end) if end < len(block) else ([], 0)
        for line in lines:
            line += separator
            if cutting or len(line) > amount:
                cutting = False
                for at in range(0, len(line), amount):
                    part = line[at : at + amount]
                    yield True, part
                    used = len(part)
                continue
            if used and used + len(line) > amount:
                used = 0
            yield used == 0, line
            used += len(line)
    whole = b"".join(rest)
    for at in range(0, held, amount):
        # A last line without a newline is counted with one.
        yield cutting or used == 0 or used + held + 1 > amount, whole[at : at + amount]


async def _chunks(
    proc: Proc, o: SplitOptions, word: str, reader: Reader, text: str, prefix: str, separator: bytes
) -> int:
    found = re.fullmatch(r"(?:([lr])/)?(?:(\d+)/)?(\d+)", text)
    if found is not None and int(found[3]) == 0:
        raise UsageError(f"invalid number of chunks: {quote(found[3])}: Numerical result out of range", hint=False)
    if found is None:
        raise UsageError(f"invalid number of chunks: {quote(text.rpartition('/')[2])}", hint=False)
    mode, only, count = found[1] or "", int(found[2]) if found[2] else 0, int(found[3])
    if o.filter is not None and only:
        raise UsageError("--filter does not process a chunk extracted to stdout")
    if found[2] and not 1 <= only <= count:
        raise UsageError(f"invalid chunk number: {quote(found[2])}", hint=False)
    if mode == "r":
        return await _round_robin(proc, o, reader, only, count, prefix, separator)
    device = isinstance(reader, FileStream) and (await reader.stat()).kind is Kind.DEVICE
    if device and await reader.read(1):  # An empty device has a known size.
        proc.complain(f"{called(word)}: cannot determine file size: Value too large for defined data type")
        return 1
    source, size = await _sized(proc, reader)
    step = size // count
    parts = _by_bounds(source, count, step, separator if mode == "l" else None)
    if only:
        async for index, part in parts:
            if index == only - 1:
                await proc.emit(part)
            await proc.budget.yield_turn()
        return 0
    output = _Output(proc, o, prefix, count)
    output.source = await _inode(reader)
    writer: Writer | None = None
    made = 0
    async for index, part in parts:
        if writer is None or index >= made:
            made = index if o.elide else made
            while made <= index:
                writer = await output.next()
                made += 1
        assert writer is not None
        writer.write(part)
        if writer.full:
            await writer.drain()
        await proc.budget.yield_turn()
    for _ in range(0 if o.elide else count - made):
        await output.next()
        await proc.budget.yield_turn()
    await output.close()
    return 0


async def _inode(reader: Reader) -> int | None:
    return (await reader.stat()).inode if isinstance(reader, FileStream) else None


async def _sized(proc: Proc, reader: Reader) -> tuple[Reader, int]:
    """The input and its size; an input of unknown size is spooled to a temporary file first."""
    if isinstance(reader, FileStream) and (size := (await reader.stat()).size):
        return reader, max(0, size - reader.tell())
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)
    size = 0
    try:
        while block := await reader.read():
            size += spool.write(block)
            proc.budget.spilled(size)
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return IteratorReader(_spooled(spool)), size


async def _spooled(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block


async def _by_bounds(
    reader: Reader, count: int, step: int, separator: bytes | None
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield pieces with their chunk number; a chunk ends at its bound or, with `separator`, at the next line end."""
    index, pos, last = 0, 0, count - 1
    moved = 0  # where the bound of this chunk is at least
    while block := await reader.read():
        at = 0
        while at < len(block):
            # A line may have reached beyond the bounds of chunks that then stay empty.
            if index < last and max(moved, (index + 1) * step) <= pos:
                index, moved = min(last, pos // step if step else last), 0
            left = max(moved, (index + 1) * step) - pos
            if index == last:
                end = len(block)
            elif separator is None:
                end = min(len(block), at + left)
            else:
                end = block.find(separator, at + left - 1) + 1
            if end == 0:
                # The line at the bound goes on: the bound moves with it.
                end = len(block)
                moved = pos + end - at + 1
            yield index, block[at:end]
            pos += end - at
            at = end


async def _round_robin(
    proc: Proc, o: SplitOptions, reader: Reader, only: int, count: int, prefix: str, separator: bytes
) -> int:
    buckets: defaultdict[int, list[bytes]] = defaultdict(list)
    at = held = 0
    async for block in line_blocks(reader, separator):
        pieces = block.split(separator)
        tail = pieces.pop()
        lines = [p + separator for p in pieces] + ([tail] if tail else [])
        held += len(block)
        if held > proc.budget.limits.whole:
            raise proc.budget.exceeded("whole_bytes")
        for line in lines:
            buckets[at % count].append(line)
            at += 1
    if only:
        await proc.emit(b"".join(buckets[only - 1]))
        return 0
    output = _Output(proc, o, prefix, count)
    for index in range(min(count, at) if o.elide else count):
        (await output.next()).write(b"".join(buckets.pop(index, ())))
        await proc.budget.yield_turn()
    await output.close()
    return 0


COMMANDS = [
    Command(
        "split",
        split,
        SplitOptions,
        summary="Output pieces of FILE to PREFIXaa, PREFIXab, ...",
        usage="[OPTION]... [FILE [PREFIX]]",
        examples=[
            ("split -l 100 FILE part-", "a hundred lines each"),
            ("split -n 4 FILE", "four pieces of equal size"),
        ],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", fatal=True),
    ),
]
