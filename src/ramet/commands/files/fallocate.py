"""fallocate: allocate or clear ranges of a file."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, value
from ramet.commands.framework.inputs import size_suffix
from ramet.core.errors import fail, reason
from ramet.core.fs import Open
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, FileStream


@dataclass(frozen=True, slots=True)
class FallocateOptions:
    dig: bool = flag("-d", "--dig-holes", help="detect zeroes and replace with holes: nothing to see of it here")
    length: str | None = value("-l", "--length", metavar="NUM", help="length for range operations, in bytes")
    keep: bool = flag("-n", "--keep-size", help="maintain the apparent size of the file")
    offset: str | None = value("-o", "--offset", metavar="NUM", help="offset for range operations, in bytes")
    punch: bool = flag("-p", "--punch-hole", help="replace a range with a hole (implies -n)")
    verbose: bool = flag("-v", "--verbose", help="verbose mode")
    zero: bool = flag("-z", "--zero-range", help="zero and ensure allocation of a range")


def _bytes(text: str, what: str, least: int) -> int:
    found = re.fullmatch(r"\s*\+?(\d+)([A-Za-z]*)", text)
    factor = size_suffix(found[2], "kmgtpezy") if found and found[2] not in ("b", "B") else None
    if found is None or factor is None or int(found[1]) < least:
        raise UsageError(f"invalid {what} value specified", hint=False)
    return int(found[1]) * factor


async def fallocate(proc: Proc, o: FallocateOptions, operands: list[str]) -> int:
    length = _bytes(o.length, "length", 1) if o.length is not None else None
    offset = _bytes(o.offset, "offset", 0) if o.offset is not None else 0
    if o.dig + o.punch + o.zero > 1:
        listed = "--collapse-range --dig-holes --punch-hole --zero-range"
        raise UsageError(f"mutually exclusive arguments: {listed}", hint=False)
    if not operands:
        raise UsageError("no filename specified", hint=False)
    if len(operands) > 1:
        raise UsageError("unexpected number of arguments", hint=False)
    if length is None and not o.dig:
        raise UsageError("no length argument specified", hint=False)
    [word] = operands
    how = Open.WRITE if o.dig or o.punch else Open.WRITE | Open.CREATE
    try:
        if word.endswith("/"):
            raise OSError(errno.EISDIR, "", word)
        stream = await proc.fs.open(proc.path(word), how)
    except OSError as error:
        raise UsageError(f"cannot open {word}: {reason(error)}", hint=False) from None
    try:
        if length is not None:
            size = (await proc.fs.stat(proc.path(word), follow=True)).size or 0
            await _allocate(proc, o, stream, size, range(offset, offset + length))
    except OSError as error:
        raise UsageError(f"fallocate failed: {reason(error)}", hint=False) from None
    finally:
        await proc.close(stream)
    if o.verbose and length is not None:
        done = "hole created" if o.punch else "zeroed" if o.zero else "allocated"
        await proc.emit(encode(f"{word}: {_amount(length)} ({length} bytes) {done}.\n"))
    return 0


async def _allocate(proc: Proc, o: FallocateOptions, stream: FileStream, size: int, part: range) -> None:
    if part.stop >= 1 << 44:
        raise fail(errno.EFBIG)
    if size < part.stop and not (o.keep or o.punch):
        await stream.truncate(part.stop)
    if o.punch or o.zero:
        stream.seek(part.start)
        left = min(part.stop, size) - part.start
        while left > 0:
            stream.write(bytes(min(left, BLOCK)))
            await stream.drain()
            await proc.budget.yield_turn()
            left -= BLOCK


def _amount(size: int) -> str:
    """As util-linux writes sizes: `1.5 KiB`."""
    power = min((size.bit_length() - 1) // 10, 6)
    tenths = size * 10 >> 10 * power
    whole = f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)
    return f"{whole} {'KMGTPE'[power - 1]}iB" if power else f"{size} B"


COMMANDS = [
    Command(
        "fallocate",
        fallocate,
        FallocateOptions,
        summary="Preallocate space to, or deallocate space from a file.",
        usage="[OPTION]... FILE",
        ignored=("-x --posix",),
        refused={
            "-c --collapse-range": "files of a tree have no ranges to take away",
            "-i --insert-range": "files of a tree have no ranges to insert",
        },
    ),
]
