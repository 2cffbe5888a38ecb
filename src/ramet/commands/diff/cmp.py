"""cmp: compare two files byte by byte."""

from __future__ import annotations

import errno
import functools
import re
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.inputs import size_suffix
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import FileStream, Reader


@dataclass(frozen=True, slots=True)
class CmpOptions:
    print_bytes: bool = flag("-b", "-c", "--print-bytes", help="print differing bytes")
    skip: str | None = value(
        "-i", "--ignore-initial", metavar="SKIP", help="skip first SKIP bytes of both inputs, or SKIP1:SKIP2"
    )
    verbose: bool = flag("-l", "--verbose", help="output byte numbers and differing byte values")
    limit: str | None = value("-n", "--bytes", metavar="LIMIT", help="compare at most LIMIT bytes")
    silent: bool = flag("-s", "--quiet", "--silent", help="suppress all normal output")


def _amount(text: str, what: str) -> int:
    found = re.fullmatch(r"(\d+)([A-Za-z]*)", text)
    factor = size_suffix(found[2]) if found else None
    if found is None or factor is None:
        raise UsageError(f"invalid {what} value {quote(text)}")
    return int(found[1]) * factor


async def cmp(proc: Proc, o: CmpOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError(f"missing operand after {quote('cmp')}")
    if len(operands) > 4:
        raise UsageError(f"extra operand {quote(operands[4])}")
    if o.verbose and o.silent:
        raise UsageError("options -l and -s are incompatible")
    a, b = operands[0], operands[1] if len(operands) > 1 else "-"
    skips = [0, 0]
    if o.skip is not None:
        first, colon, second = o.skip.partition(":")
        skips = [_amount(first, "--ignore-initial")] * 2
        if colon:
            skips[1] = _amount(second, "--ignore-initial")
    for i, word in enumerate(operands[2:4]):
        skips[i] = _amount(word, "--ignore-initial")
    limit = None if o.limit is None else _amount(o.limit, "--bytes")
    alike = a != "-" and proc.path(a) == proc.path(b) and skips[0] == skips[1]
    if alike and await lookup(proc, proc.path(a), follow=True) is not None:
        return 0  # a directory equals itself
    readers = []
    unreadable = ""
    for word, skip in ((a, skips[0]), (b, skips[1])):
        try:
            reader = await proc.open(word)
            if skip:
                await reader.read_exactly(skip)
            readers.append(reader)
        except OSError as error:
            if error.errno == errno.EISDIR:
                # A directory opens and fails on reading, so the other file is opened first; -s reports it, too.
                unreadable = unreadable or f"{word}: {reason(error)}"
                continue
            if not o.silent:
                proc.complain(f"{word}: {reason(error)}")
            return 2
    if unreadable:
        proc.complain(unreadable)
        return 2
    digits = len(str(await _smaller(proc, (a, b), readers, skips, limit))) if o.verbose else 0
    at_byte, line, status = 1, 1, 0
    ended_line = True
    while limit is None or limit > 0:
        want = 65536 if limit is None else min(limit, 65536)
        x, y = await readers[0].read_exactly(want), await readers[1].read_exactly(want)
        if limit is not None:
            limit -= want
        if x == y:
            if not x:
                break
            at_byte += len(x)
            line += x.count(b"\n")
            ended_line = x.endswith(b"\n")
            await proc.budget.yield_turn()
            continue
        size = min(len(x), len(y))
        if x[:size] != y[:size]:
            status = 1
            if o.silent:
                return 1
            if not o.verbose:
                i = next(i for i in range(size) if x[i] != y[i])
                text = f"{a} {b} differ: byte {at_byte + i}, line {line + x[:i].count(b'%c' % 10)}"
                if o.print_bytes:
                    text += f" is {x[i]:3o} {_visible(x[i])} {y[i]:3o} {_visible(y[i])}"
                await proc.emit(encode(text + "\n"))
                return 1
            left, right = _columns(o.print_bytes)
            for start in range(0, size, _PIECE):
                pairs = enumerate(
                    zip(x[start : start + _PIECE], y[start : start + _PIECE], strict=False), at_byte + start
                )
                rows = [f"{at:>{digits}}{left[p]}{right[q]}" for at, (p, q) in pairs if p != q]
                await proc.emit(encode("".join(rows)))
                await proc.budget.yield_turn()
        if len(x) != len(y):
            if not o.silent:
                short, piece = (a, x) if len(x) < len(y) else (b, y)
                where = at_byte + size - 1
                lines = line + piece.count(b"\n") - (1 if (piece.endswith(b"\n") if piece else ended_line) else 0)
                if where == 0:
                    proc.complain(f"EOF on {short} which is empty")
                elif o.verbose:
                    proc.complain(f"EOF on {short} after byte {where}")
                else:
                    inside = "" if (piece.endswith(b"\n") if piece else ended_line) else "in "
                    proc.complain(f"EOF on {short} after byte {where}, {inside}line {lines}")
            return 1
        at_byte += size
        line += x.count(b"\n")
    for reader in readers:
        await proc.close(reader)
    return status


async def _smaller(
    proc: Proc, words: tuple[str, str], readers: list[Reader], skips: list[int], limit: int | None
) -> int:
    """Return the number of comparable bytes: it gives the width of byte numbers."""
    sizes = [] if limit is None else [limit]
    for word, reader, skip in zip(words, readers, skips, strict=True):
        if isinstance(reader, FileStream):
            found = await reader.stat()
        elif word != "-" and proc.descriptor(word) is None:
            found = await proc.fs.stat(proc.path(word), follow=True)
        else:
            continue
        if found.kind is Kind.FILE and found.size is not None:
            sizes.append(max(found.size - skip, 0))
    return min(sizes, default=_UNKNOWN)


_UNKNOWN = 2**63 - 1
"""Size of an input without a known size."""
_PIECE = 4096
"""Bytes compared between two yields."""


@functools.lru_cache(maxsize=2)
def _columns(visible: bool) -> tuple[list[str], list[str]]:
    """Format every byte for the columns of the first and second file."""
    if visible:
        return (
            [f" {byte:3o} {_visible(byte):<4}" for byte in range(256)],
            [f" {byte:3o} {_visible(byte)}\n" for byte in range(256)],
        )
    return [f" {byte:3o}" for byte in range(256)], [f" {byte:3o}\n" for byte in range(256)]


def _visible(byte: int) -> str:
    from ramet.commands.text.cat import caret

    return caret(byte)


COMMANDS = [
    Command(
        "cmp",
        cmp,
        CmpOptions,
        summary="Compare two files byte by byte.",
        usage="[OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]",
        bad_usage=2,
        original="GNU diffutils 3.8",
        version_letters="v",
        prefix_hint=True,
        write_error=("standard output: ", 2),
    )
]
