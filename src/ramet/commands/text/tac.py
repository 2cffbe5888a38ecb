"""tac: print lines in reverse; a file is read from its end in blocks, a pipe is spooled first."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import IO

from ramet.commands.framework.command import Command, flag, quote, value
from ramet.commands.framework.inputs import Inputs
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload_large
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import FileStream, Reader

_BLOCK = 128 * 1024
_IN_MEMORY = 8 << 20
"""Bytes of a pipe kept in memory; more go to a temporary file of the host."""

ReadAt = Callable[[int, int], Awaitable[bytes]]
"""Bytes by offset and size."""


@dataclass(frozen=True, slots=True)
class TacOptions:
    before: bool = flag("-b", "--before", help="attach the separator before instead of after")
    regex: bool = flag("-r", "--regex", help="interpret the separator as a regular expression")
    separator: str = value("-s", "--separator", metavar="STRING", default="\n", help="use STRING as the separator")


async def tac(proc: Proc, o: TacOptions, operands: list[str]) -> int:
    inputs = Inputs(
        proc, operands, form="failed to open {} for reading: {}", directory="{}: read error: {}", name=quote
    )
    separator = encode(o.separator) or b"\0"
    async for _, reader in inputs.each():
        if o.regex or len(separator) > 1:
            # Where such a separator begins depends on the text before it, so all of it is read.
            data = await reader.read_all()
            if o.regex:
                turned = await offload_long(proc, (o.separator, data), lambda: _turned(_records(data, o)))  # noqa: B023
            else:
                turned = await offload_large(proc.budget, len(data), partial(_backward, data, separator, o.before))
            await proc.emit(turned)
        elif isinstance(reader, FileStream) and (size := (await reader.stat()).size):
            await _backwards(proc, _stream_part(reader), reader.tell(), size, separator, o.before)
            reader.seek(size)
        else:
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
                size = await _spool(proc, reader, spool)
                await _backwards(proc, _file_part(spool), 0, size, separator, o.before)
    return inputs.status


def _turned(records: list[bytes]) -> bytes:
    records.reverse()
    return b"".join(records)


def _records(data: bytes, o: TacOptions) -> list[bytes]:
    from ramet.commands.framework.posix_regex import bre_bytes

    spans = [span for span in bre_bytes(_basic(o.separator)).finditer(data) if span[1] > span[0]]
    marks = [start if o.before else stop for start, stop in spans]
    return [data[a:b] for a, b in itertools.pairwise(sorted({0, len(data), *marks}))]


def _basic(pattern: str) -> str:
    """Translate a separator of tac, where `+` and `?` need no backslash, to a basic regular expression."""
    parts = re.findall(r"\\.|\[\^?\]?[^]]*\]|.", pattern, re.DOTALL)
    return "".join({"+": "\\+", "?": "\\?", "\\+": "+", "\\?": "?"}.get(part, part) for part in parts)


def _backward(data: bytes, separator: bytes, before: bool) -> bytes:
    """Reverse the records of a text."""
    pieces = data.split(separator)
    pieces.reverse()
    if before:
        first = pieces.pop()
        return b"".join((separator, separator.join(pieces), first)) if pieces else first
    unfinished, pieces = pieces[0], pieces[1:]
    return b"".join((unfinished, separator.join(pieces), separator)) if pieces else unfinished


async def _backwards(proc: Proc, read: ReadAt, start: int, stop: int, separator: bytes, before: bool) -> None:
    """Print the records of [start, stop) in reverse; `separator` is one byte."""
    async for data in _whole_records(read, start, stop, separator, before):
        await proc.emit(await offload_large(proc.budget, len(data), partial(_backward, data, separator, before)))
        await proc.budget.yield_turn()


async def _whole_records(read: ReadAt, start: int, stop: int, separator: bytes, before: bool) -> AsyncIterator[bytes]:
    """Yield blocks of whole records from the end to the beginning."""
    held: list[bytes] = []
    """Parts of a record that begins in a block not read yet, last part first."""
    while stop > start:
        at = max(start, stop - _BLOCK)
        block = await read(at, stop - at)
        stop = at
        cut = 0 if at == start else block.find(separator) + (0 if before else 1)
        if at > start and separator not in block:
            held.append(block)
            continue
        held.append(block[cut:])
        held.reverse()
        yield b"".join(held)
        held = [block[:cut]] if cut else []


def _stream_part(stream: FileStream) -> ReadAt:
    async def read(at: int, size: int) -> bytes:
        stream.seek(at)
        return await stream.read_exactly(size)

    return read


def _file_part(file: IO[bytes]) -> ReadAt:
    async def read(at: int, size: int) -> bytes:
        file.seek(at)
        return file.read(size)

    return read


async def _spool(proc: Proc, reader: Reader, file: IO[bytes]) -> int:
    size = 0
    while block := await reader.read():
        size += file.write(block)
        proc.budget.spilled(size)
    return size


COMMANDS = [
    Command(
        "tac",
        tac,
        TacOptions,
        summary="Write each FILE to standard output, last line first.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("'standard input': read error: {}", "-: {}"),
    ),
]
