"""paste: merge lines of files side by side, or serially."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice

from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    flag,
    value,
)
from ramet.commands.framework.inputs import PART, Inputs, split_lines
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader, line_blocks


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
    """Unpasted lines of one reader, which several columns may share (`paste - -`)."""

    def __init__(self, reader: Reader, end: bytes) -> None:
        self._blocks = line_blocks(reader, end, PART)
        self._end = end
        self.lines: list[bytes] = []
        self.turns = 0
        self.ended = False

    async def fill(self) -> None:
        """Read at least one line per turn; the last row is padded."""
        while len(self.lines) < self.turns and not self.ended:
            block = await anext(self._blocks, b"")
            self.ended = not block
            self.lines += split_lines(block, self._end)
        if self.ended and (missing := -len(self.lines) % self.turns):
            self.lines += [b""] * missing


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
        ended = False  # whether a line end is pending: a delimiter if more follows
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


COMMANDS = [
    Command(
        "paste",
        paste,
        PasteOptions,
        summary="Write lines consisting of the sequentially corresponding lines of each FILE.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
]
