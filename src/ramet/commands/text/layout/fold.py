"""fold: wrap lines at a width."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, value
from ramet.commands.framework.inputs import PART, Inputs, parse_count
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class FoldOptions:
    bytes: bool = flag("-b", "--bytes", help="count bytes rather than columns")
    spaces: bool = flag("-s", "--spaces", help="break at spaces")
    width: str = value(
        "-w", "--width", metavar="WIDTH", default="80", digits=True, help="use WIDTH columns instead of 80"
    )


async def fold(proc: Proc, o: FoldOptions, operands: list[str]) -> int:
    width = parse_count(o.width, "number of columns", 1)

    def change(lines: list[bytes], plain: bool) -> list[bytes]:
        out: list[bytes] = []
        plain = plain or o.bytes
        for line in lines:
            if not plain and not _PLAIN.fullmatch(line):
                out += _fold(line, width, o.bytes, o.spaces)
            elif len(line) <= width:
                out.append(line)
            elif not o.spaces:
                out += [line[i : i + width] for i in range(0, len(line), width)]
            elif plain and not o.bytes:
                out += _fold_plain(line, width)
            else:
                out += _fold(line, width, o.bytes, o.spaces)
        return out

    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        rest = b""
        while block := await reader.read(PART):
            text = rest + block
            plain = not (b"\t" in text or b"\b" in text or b"\r" in text)
            lines = text.split(b"\n")
            # The rest of an unfinished line is one row that may continue.
            *begun, rest = change([lines.pop()], plain)
            rows = change(lines, plain) + begun
            await proc.emit(b"\n".join(rows) + b"\n" if rows else b"")
            await proc.budget.yield_turn()
        await proc.emit(rest)
    return inputs.status


_PLAIN = re.compile(rb"[^\t\b\r]*")


def _fold_plain(line: bytes, width: int) -> list[bytes]:
    """Wrap a line of one-column bytes after blanks."""
    out: list[bytes] = []
    at, end, find = 0, len(line), line.rfind
    while end - at > width:
        cut = find(b" ", at, at + width) + 1 or at + width
        out.append(line[at:cut])
        at = cut
    out.append(line[at:])
    return out


def _fold(line: bytes, width: int, by_bytes: bool, spaces: bool) -> list[bytes]:
    out: list[bytes] = []
    if (by_bytes and b"\t" not in line) or _PLAIN.fullmatch(line):
        return _fold_plain(line, width)
    start, column, i = 0, 0, 0
    while i < len(line):
        byte = line[i]
        after = _column(byte, column, by_bytes)
        if after > width and i > start:
            cut = i
            if spaces:
                blank = max(line.rfind(b" ", start, i), line.rfind(b"\t", start, i))
                if blank >= start:
                    cut = blank + 1
            out.append(line[start:cut])
            start = cut
            column = 0
            for byte in line[start:i]:
                column = _column(byte, column, by_bytes)
            continue
        column = after
        i += 1
    out.append(line[start:])
    return out


def _column(byte: int, column: int, by_bytes: bool) -> int:
    if by_bytes:
        return column + 1
    if byte == 8:
        return max(0, column - 1)
    if byte == 13:
        return 0
    return column + 8 - column % 8 if byte == 9 else column + 1


COMMANDS = [
    Command(
        "fold",
        fold,
        FoldOptions,
        summary="Wrap input lines in each FILE, writing to standard output.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
]
