"""comm: compare two sorted files line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from operator import add, gt

from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    choose,
    flag,
    ordered,
    value,
)
from ramet.commands.framework.inputs import PART, split_lines
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader, line_blocks


@dataclass(frozen=True, slots=True)
class CommOptions:
    hide1: bool = flag("-1", help="suppress column 1 (lines unique to FILE1)")
    hide2: bool = flag("-2", help="suppress column 2 (lines unique to FILE2)")
    hide3: bool = flag("-3", help="suppress column 3 (lines that appear in both files)")
    check: str = choose(
        {"--check-order": "yes", "--nocheck-order": "no"},
        default="auto",
        help="check (or not) that the input is correctly sorted",
    )
    output: str | None = value("--output-delimiter", metavar="STR", help="separate columns with STR")
    total: bool = flag("--total", help="output a summary")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")
    order: tuple[tuple[str, object], ...] = ordered()


class Sorted:
    """A sorted file being merged: the current line, a block of lines, and whether these are in order."""

    def __init__(self, reader: Reader, delim: bytes) -> None:
        self._source = _pieces(reader, delim)
        self.batch: list[bytes] = []
        self.at = -1
        self.line: bytes | None = b""
        self.in_order = True

    async def advance(self) -> bytes | None:
        self.at += 1
        if self.at >= len(self.batch):
            self.batch = await anext(self._source, [])
            self.at = 0
            self.in_order = not any(map(gt, self.batch, self.batch[1:]))
            if not self.batch:
                self.line = None
                return None
        self.line = self.batch[self.at]
        return self.line


async def _pieces(reader: Reader, delim: bytes) -> AsyncIterator[list[bytes]]:
    async for block in line_blocks(reader, delim, PART):
        yield split_lines(block, delim)


def _merge(left: Sorted, right: Sorted, leads: tuple[bytes | None, ...], out: list[bytes]) -> tuple[int, int, int]:
    """Merge up to the last line of either block; return the number of lines of each of the three columns.

    `leads` are the prefixes of the columns; a column without one is hidden.
    """
    ours, theirs, i, j, both = left.batch, right.batch, left.at, right.at, 0
    lead1, lead2, lead3 = leads
    most, mosts, show = len(ours) - 1, len(theirs) - 1, out.append
    while i < most and j < mosts:
        a, b = ours[i], theirs[j]
        if a == b:
            both += 1
            if lead3 is not None:
                show(lead3 + a)
            i += 1
            j += 1
        elif a < b:
            if lead1 is not None:
                show(a)
            i += 1
        else:
            if lead2 is not None:
                show(lead2 + b)
            j += 1
    counts = i - left.at - both, j - right.at - both, both
    left.at, right.at, left.line, right.line = i, j, ours[i], theirs[j]
    return counts


def _end_rows(rows: list[bytes], end: bytes) -> bytes:
    return end.join(rows) + end if rows else b""


async def comm(proc: Proc, o: CommOptions, operands: list[str]) -> int:
    end = b"\0" if o.zero else b"\n"
    if len({stored for name, stored in o.order if name == "output"}) > 1:
        raise UsageError("multiple output delimiters specified", hint=False)
    sep = b"\t" if o.output is None else encode(o.output) or b"\0"
    readers: list[Reader] = []
    for word in operands:
        try:
            readers.append(await proc.open(word))
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            return 1
    left, right = Sorted(readers[0], end), Sorted(readers[1], end)
    counts = [0, 0, 0]
    lead2 = b"" if o.hide1 else sep
    lead3 = (b"" if o.hide1 else sep) + (b"" if o.hide2 else sep)
    leads = (None if o.hide1 else b"", None if o.hide2 else lead2, None if o.hide3 else lead3)
    warned, suspect, told = [False, False], [False, False], [False, False]
    unpaired = False
    a, b = await left.advance(), await right.advance()
    out: list[bytes] = []

    async def step(side: Sorted, index: int) -> bytes | None:
        before = side.line
        after = await side.advance()
        if o.check == "no" or before is None:
            return after
        if after is not None:
            suspect[index] = after < before
        # At the end of the file the last two lines are compared once more.
        if suspect[index] and (o.check == "yes" or unpaired):
            warned[index] = True
        return after

    while a is not None or b is not None:
        quick = o.check == "no" or (left.in_order and right.in_order)
        if b is not None and a is not None and quick:
            found = _merge(left, right, leads, out)
            counts = list(map(add, counts, found))
            unpaired = unpaired or found[0] + found[1] > 0
            # A line in order clears the suspicion against the line before it.
            suspect[0] = suspect[0] and not found[0] + found[2]
            suspect[1] = suspect[1] and not found[1] + found[2]
            a, b = left.batch[left.at], right.batch[right.at]
        if b is None or (a is not None and a < b):
            assert a is not None
            counts[0] += 1
            unpaired = True
            if not o.hide1:
                out.append(a)
            a = await step(left, 0)
        elif a is None or b < a:
            counts[1] += 1
            unpaired = True
            if not o.hide2:
                out.append(lead2 + b)
            b = await step(right, 1)
        else:
            counts[2] += 1
            if not o.hide3:
                out.append(lead3 + a)
            a, b = await step(left, 0), await step(right, 1)
        for index, bad in enumerate(warned):
            if bad and not told[index]:
                told[index] = True
                await proc.emit(_end_rows(out, end))
                out.clear()
                proc.complain(f"file {index + 1} is not in sorted order")
                if o.check == "yes":
                    return 1
        if len(out) > 1000:
            await proc.emit(_end_rows(out, end))
            out.clear()
        await proc.budget.yield_turn()
    await proc.emit(_end_rows(out, end))
    if o.total:
        between = b"" if o.output == "" else sep
        await proc.emit(between.join([b"%d" % n for n in counts] + [b"total"]) + end)
    for reader in readers:
        await proc.close(reader)
    if any(warned):
        proc.complain("input is not in sorted order")
        return 1
    return 0


COMMANDS = [
    Command(
        "comm",
        comm,
        CommOptions,
        summary="Compare sorted files FILE1 and FILE2 line by line.",
        usage="[OPTION]... FILE1 FILE2",
        min_operands=2,
        max_operands=2,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
