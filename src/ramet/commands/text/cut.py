"""cut: select bytes, characters or fields of every line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    mixed,
    quote,
    several,
    value,
)
from ramet.commands.framework.inputs import Inputs, filter_lines
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import encode
from ramet.core.proc import Proc


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
    """Parse `1,3-5,7-` to sorted, merged, 1-based inclusive ranges."""
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
    """Cut lines as fields (`-d $'\\n'`): each file is one record."""
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
        """Cut lines with equally many fields as columns; None if they differ or have far more fields than needed."""
        width = lines[0].count(delim) + 1
        if width == 1 or 0 <= 2 * limit < width:
            return None
        # The separator between two lines is a field that no line can contain.
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
]
