"""expand: convert tabs to spaces."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, several
from ramet.commands.framework.inputs import PART, Inputs, filter_lines
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.text.layout.tab_stops import Tabs, old_tabs
from ramet.concurrency.sizes import HUGE
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks
from ramet.text.width import bounded


@dataclass(frozen=True, slots=True)
class ExpandOptions:
    initial: bool = flag("-i", "--initial", help="do not convert tabs after non blanks")
    tabs: tuple[str, ...] = several(
        "-t", "--tabs", metavar="LIST", help="tab stops: N apart, or a comma separated list"
    )


async def expand(proc: Proc, o: ExpandOptions, operands: list[str]) -> int:
    tabs = Tabs(o.tabs)

    if tabs.size and not o.initial:
        return await _expand_blocks(proc, operands, tabs)

    def change(lines: list[bytes]) -> list[bytes]:
        return [_expand(line, tabs, o.initial) for line in lines]

    return await filter_lines(proc, operands, change, complete=False)


async def _expand_blocks(proc: Proc, operands: list[str], tabs: Tabs) -> int:
    """Expand whole blocks, for equidistant tab stops."""
    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        async for block in line_blocks(reader, size=PART):
            if b"\b" in block or b"\r" in block:
                block = b"\n".join([_expand(line, tabs, False) for line in block.split(b"\n")])
            if block.count(b"\t") * tabs.size > HUGE:  # then each line may become long
                for line in block.splitlines(keepends=True):
                    await proc.emit(_expand(line, tabs, False))
                    await proc.budget.yield_turn()
                continue
            await proc.emit(block.expandtabs(bounded(tabs.size)) if b"\t" in block else block)
            await proc.budget.yield_turn()
    return inputs.status


def _expand(line: bytes, tabs: Tabs, initial: bool) -> bytes:
    if b"\t" not in line:
        return line
    out = bytearray()
    column = 0
    converting = True
    for byte in line:
        if byte == 9 and converting:
            stop = tabs.next(column)
            spaces = 1 if stop is None else bounded(stop) - column
            out += b" " * spaces
            column += spaces
            continue
        if byte == 8:
            column = max(0, column - 1)
        else:
            column += 1
        out.append(byte)
        if initial and byte not in (32, 9):
            converting = False
    return bytes(out)


COMMANDS = [
    Command(
        "expand",
        expand,
        ExpandOptions,
        summary="Convert tabs in each FILE to spaces.",
        rewrite=old_tabs,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
]
