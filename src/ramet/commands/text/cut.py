"""Columns and fields: cut, paste, join, comm. Fields are found by splitting whole lines, never byte by byte."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from itertools import cycle, islice
from operator import add, gt

from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    choose,
    flag,
    mixed,
    ordered,
    quote,
    several,
    value,
)
from ramet.commands.framework.inputs import PART, Inputs, filter_lines
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader, line_blocks

# ---------------------------------------------------------------------------------------------------------- cut


@dataclass(frozen=True, slots=True)
class CutOptions:
    lists: tuple[tuple[str, str], ...] = mixed(
        several("-b", "--bytes", metavar="LIST", convert=lambda t: ("b", t), help="select only these bytes"),
        several("-c", "--characters", metavar="LIST", convert=lambda t: ("c", t), help="select only these characters"),
        several("-f", "--fields", metavar="LIST", convert=lambda t: ("f", t), help="select only these fields"),
        default=(),
    )
    delimiter: str | None = value(
        "-d", "--delimiter", metavar="DELIM", help="use DELIM instead of TAB for field delimiter"
    )
    complement: bool = flag("--complement", help="complement the set of selected bytes, characters or fields")
    only: bool = flag("-s", "--only-delimited", help="do not print lines not containing delimiters")
    output: str | None = value("--output-delimiter", metavar="STRING", help="use STRING as the output delimiter")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


END = 1 << 62


def parse_ranges(text: str, what: str) -> list[tuple[int, int]]:
    """`1,3-5,7-` as sorted, merged, 1-based inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for part in re.split(r"[, \t]", text):
        found = re.fullmatch(r"(\d*)(-?)(\d*)", part)
        if found is None:
            if re.fullmatch(r"[\d-]*", part):
                raise UsageError("invalid field range" if what == "f" else "invalid byte or character range")
            bad = re.sub(r"^[-\d, \t]*", "", text)
            what_ = "field value" if what == "f" else "byte/character position"
            raise UsageError(f"invalid {what_} {quote(bad)}")
        first, dash, last = found.groups()
        if not first and not last:
            if dash:
                raise UsageError("invalid range with no endpoint: -")
            raise UsageError(
                "fields are numbered from 1" if what == "f" else "byte/character positions are numbered from 1"
            )
        for digits in (first, last):
            if digits and int(digits) >= (1 << 64) - 1:
                what_ = "field number" if what == "f" else "byte/character offset"
                raise UsageError(f"{what_} {quote(digits)} is too large")
        low = int(first) if first else 1
        high = low if not dash else (int(last) if last else END)
        if low == 0 or (dash and last and int(last) == 0 and not first):
            raise UsageError(
                "fields are numbered from 1" if what == "f" else "byte/character positions are numbered from 1"
            )
        if high < low:
            raise UsageError("invalid decreasing range")
        ranges.append((low, high))
    ranges.sort()
    merged: list[tuple[int, int]] = []
    for low, high in ranges:
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def complement(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    at = 1
    for low, high in ranges:
        if low > at:
            out.append((at, low - 1))
        at = high + 1
    if at <= END:
        out.append((at, END))
    return out


def join_adjacent(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for low, high in ranges:
        if out and low == out[-1][1] + 1:
            out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return out


async def cut(proc: Proc, o: CutOptions, operands: list[str]) -> int:
    if not o.lists:
        raise UsageError("you must specify a list of bytes, characters, or fields")
    if len(o.lists) > 1:
        raise UsageError("only one list may be specified")
    unit, text = o.lists[0]
    if unit != "f" and o.delimiter is not None:
        raise UsageError("an input delimiter may be specified only when operating on fields")
    if unit != "f" and o.only:
        raise UsageError("suppressing non-delimited lines makes sense\n\tonly when operating on fields")
    ranges = parse_ranges(text, unit if unit == "f" else "b")
    if o.complement:
        ranges = complement(ranges)
    if unit != "f":
        change = _cut_bytes(ranges, None if o.output is None else encode(o.output) or b"\0")
    else:
        delimiter = b"\t" if o.delimiter is None else encode(o.delimiter) or b"\0"
        if len(delimiter) > 1:
            raise UsageError("the delimiter must be a single character")
        glue = delimiter if o.output is None else encode(o.output) or b"\0"
        if delimiter == (b"\0" if o.zero else b"\n"):
            return await _cut_lines(proc, operands, ranges, delimiter, glue, o.only)
        change = _cut_fields(ranges, delimiter, glue, o.only, b"\0" if o.zero else b"\n")
    return await filter_lines(proc, operands, change, b"\0" if o.zero else b"\n")


async def _cut_lines(
    proc: Proc, operands: list[str], ranges: list[tuple[int, int]], delimiter: bytes, glue: bytes, only: bool
) -> int:
    """Fields that are the lines themselves: each file is one record."""
    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        data = await reader.read_all()
        lines = data.removesuffix(delimiter).split(delimiter)
        chosen = [line for low, high in ranges for line in lines[low - 1 : high]]
        if data and len(lines) == 1:
            # One line is a field where a delimiter follows it, and else a record that has no fields.
            if only and not (chosen and data.endswith(delimiter)):
                continue
            chosen = lines if not data.endswith(delimiter) else chosen
        if data:
            await proc.emit(glue.join(chosen) + delimiter)
    return inputs.status


Change = Callable[[list[bytes]], list[bytes]]


def _cut_bytes(ranges: list[tuple[int, int]], output: bytes | None) -> Change:
    if output is None:
        ranges = join_adjacent(ranges)
    slices = [slice(low - 1, high) for low, high in ranges]
    if len(slices) == 1:
        only = slices[0]
        return lambda lines: [line[only] for line in lines]
    glue = output or b""
    if not glue:
        return lambda lines: [b"".join([line[s] for s in slices]) for line in lines]
    return lambda lines: [glue.join([part for s in slices if (part := line[s])]) for line in lines]


def _cut_fields(ranges: list[tuple[int, int]], delim: bytes, glue: bytes, only: bool, end: bytes) -> Change:
    highest = ranges[-1][1] if ranges else 0
    limit = highest if highest < END else -1
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and not only:
        index = ranges[0][0] - 1

        def single(lines: list[bytes]) -> list[bytes]:
            if index == 0:
                return [line.partition(delim)[0] for line in lines]
            try:
                return [line.split(delim, limit)[index] for line in lines]
            except IndexError:
                pass  # some line has fewer fields: look at each
            out: list[bytes] = []
            add = out.append
            for line in lines:
                parts = line.split(delim, limit)
                if len(parts) > index:
                    add(parts[index])
                else:
                    add(b"" if len(parts) > 1 else line)
            return out

        return single
    spans = [(low - 1, high) for low, high in ranges]
    if len(spans) == 1 and limit < 0 and glue == delim:
        limit = max(1, spans[0][0])  # the rest of a line is taken as it is

    def many(lines: list[bytes]) -> list[bytes]:
        if len(spans) > 1 and (rows := table(lines)) is not None:
            return rows
        out: list[bytes] = []
        for line in lines:
            parts = line.split(delim, limit)
            if len(parts) == 1:
                if not only:
                    out.append(line)
                continue
            if len(spans) == 1:
                out.append(glue.join(parts[spans[0][0] : spans[0][1]]))
                continue
            picked: list[bytes] = []
            for low, high in spans:
                picked += parts[low:high]
            out.append(glue.join(picked))
        return out

    def table(lines: list[bytes]) -> list[bytes] | None:
        """Lines that all have as many fields, cut as columns; None when they do not, or have far more than it takes."""
        width = lines[0].count(delim) + 1
        if width == 1 or 0 <= 2 * limit < width:
            return None
        # Between the fields of two lines stands one that no line can have.
        cells = (delim + end + delim).join(lines).split(delim)
        if len(cells) != len(lines) * (width + 1) - 1 or cells[width :: width + 1].count(end) != len(lines) - 1:
            return None
        chosen = [index for low, high in spans for index in range(low, min(high, width))]
        if not chosen:
            return [b""] * len(lines)
        out = [*([b"", glue] * len(chosen))[:-1], end]
        out *= len(lines)
        for place, index in enumerate(chosen):
            out[2 * place :: 2 * len(chosen)] = cells[index :: width + 1]
        out.pop()
        return [b"".join(out)]

    return many


# -------------------------------------------------------------------------------------------------------- paste


@dataclass(frozen=True, slots=True)
class PasteOptions:
    delimiters: str = value(
        "-d", "--delimiters", metavar="LIST", default="\t", help="reuse characters from LIST instead of TABs"
    )
    serial: bool = flag("-s", "--serial", help="paste one file at a time instead of in parallel")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


_PASTE_ESCAPES = {"0": b"", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\"}


def _delimiters(text: str) -> list[bytes]:
    out: list[bytes] = []
    i = 0
    while i < len(text):
        if text[i] == "\\":
            if i + 1 >= len(text):
                raise UsageError(f"delimiter list ends with an unescaped backslash: {text}", hint=False)
            out.append(_PASTE_ESCAPES.get(text[i + 1], encode(text[i + 1])))
            i += 2
        else:
            out += [bytes([b]) for b in encode(text[i])]
            i += 1
    return out or [b""]


async def paste(proc: Proc, o: PasteOptions, operands: list[str]) -> int:
    delims = _delimiters(o.delimiters)
    end = b"\0" if o.zero else b"\n"
    if o.serial:
        return await _paste_serial(proc, operands, delims, end)
    readers: list[Reader] = []
    for word in operands or ["-"]:
        try:
            readers.append(await proc.open(word))
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            return 1
    if len(readers) == 1:
        async for block in line_blocks(readers[0], end):
            await proc.emit(block)
            if not block.endswith(end):
                await proc.emit(end)
        return 0
    await _paste_parallel(proc, readers, delims, end)
    for reader in readers:
        await proc.close(reader)
    return 0


class _Column:
    """The lines of a reader that are still to be pasted; several columns may take turns at one reader."""

    def __init__(self, reader: Reader, end: bytes) -> None:
        self._blocks = line_blocks(reader, end, PART)
        self._end = end
        self.lines: list[bytes] = []
        self.turns = 0
        self.ended = False

    async def fill(self) -> None:
        """At least one line for each turn, while there are any; the last row is filled up."""
        while len(self.lines) < self.turns and not self.ended:
            block = await anext(self._blocks, b"")
            self.ended = not block
            self.lines += _lines_of(block, self._end)
        if self.ended and (missing := -len(self.lines) % self.turns):
            self.lines += [b""] * missing


def _lines_of(block: bytes, end: bytes) -> list[bytes]:
    lines = block.split(end)
    if not lines[-1]:
        lines.pop()
    return lines


async def _paste_parallel(proc: Proc, readers: list[Reader], delims: list[bytes], end: bytes) -> None:
    sources = {reader: _Column(reader, end) for reader in readers}
    places: list[tuple[_Column, int]] = []
    for reader in readers:
        places.append((sources[reader], sources[reader].turns))
        sources[reader].turns += 1
    row: list[bytes] = []
    for index in range(len(places)):
        row += (b"", delims[index % len(delims)])
    row[-1] = end
    while True:
        for source in sources.values():
            await source.fill()
        live = [source for source in sources.values() if source.lines]
        if not live:
            return
        count = min(len(source.lines) // source.turns for source in live)
        out = row * count
        for index, (source, turn) in enumerate(places):
            if source.lines:
                out[2 * index :: len(row)] = source.lines[turn : count * source.turns : source.turns]
        for source in live:
            del source.lines[: count * source.turns]
        await proc.emit(b"".join(out))
        await proc.budget.yield_turn()


async def _paste_serial(proc: Proc, operands: list[str], delims: list[bytes], end: bytes) -> int:
    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        between = cycle(delims)
        ended = False  # whether a line end was met that is a delimiter if anything follows
        while block := await reader.read(4 * PART):
            pieces = block.split(end)
            if ended:
                pieces.insert(0, b"")
            ended = not pieces[-1]
            if ended:
                pieces.pop()
            if len(delims) == 1:
                data = delims[0].join(pieces)
            else:
                data = pieces[0] + b"".join([next(between) + piece for piece in islice(pieces, 1, None)])
            await proc.emit(data)
            await proc.budget.yield_turn()
        await proc.emit(end)
    return inputs.status


# --------------------------------------------------------------------------------------------------------- comm


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
        yield _lines_of(block, delim)


def _merge(left: Sorted, right: Sorted, leads: tuple[bytes | None, ...], out: list[bytes]) -> tuple[int, int, int]:
    """Go on to the last line of one of the blocks at hand; how many lines of each of the three kinds there were.

    `leads` stand before the lines of each kind; those without one are not shown.
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


def _ended(rows: list[bytes], end: bytes) -> bytes:
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
        # The last two lines are looked at once more when the file ends.
        if suspect[index] and (o.check == "yes" or unpaired):
            warned[index] = True
        return after

    while a is not None or b is not None:
        quick = o.check == "no" or (left.in_order and right.in_order)
        if b is not None and a is not None and quick:
            found = _merge(left, right, leads, out)
            counts = list(map(add, counts, found))
            unpaired = unpaired or found[0] + found[1] > 0
            # A line in order takes away the doubt that the one before it left.
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
                await proc.emit(_ended(out, end))
                out.clear()
                proc.complain(f"file {index + 1} is not in sorted order")
                if o.check == "yes":
                    return 1
        if len(out) > 1000:
            await proc.emit(_ended(out, end))
            out.clear()
        await proc.budget.yield_turn()
    await proc.emit(_ended(out, end))
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
        "cut",
        cut,
        CutOptions,
        summary="Print selected parts of lines from each FILE to standard output.",
        usage="OPTION... [FILE]...",
        ignored=("-n",),
        examples=[("cut -d: -f1,3 FILE", "the first and third field"), ("cut -c1-10 FILE", "the first ten bytes")],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
    Command(
        "paste",
        paste,
        PasteOptions,
        summary="Write lines consisting of the sequentially corresponding lines of each FILE.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
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
