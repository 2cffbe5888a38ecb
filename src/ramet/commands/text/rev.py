"""rev: reverse the characters of every line."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.commands.framework.inputs import PART, Inputs, is_utf8
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks


@dataclass(frozen=True, slots=True)
class RevOptions:
    zero: bool = flag("-0", "--zero", help="use the byte zero as line separator")


async def rev(proc: Proc, o: RevOptions, operands: list[str]) -> int:
    utf8, end = is_utf8(proc), b"\0" if o.zero else b"\n"
    inputs = Inputs(proc, operands, form="cannot open {}: {}", dash=False, name=str)
    async for _, reader in inputs.each():
        async for block in line_blocks(reader, end, PART):
            if not utf8 or block.isascii():
                lines = [line[::-1] for line in block.removesuffix(end).split(end)]
            else:
                lines = [encode(decode(line)[::-1]) for line in block.removesuffix(end).split(end)]
            await proc.emit(end.join(lines) + end if block.endswith(end) else end.join(lines))
            await proc.budget.yield_turn()
    return inputs.status


COMMANDS = [
    Command(
        "rev",
        rev,
        RevOptions,
        summary="Reverse the characters of every line.",
        version_letters="V",
        help_letters="h",
        stdin_error=StdinError("stdin: 0: {}"),
    ),
]
