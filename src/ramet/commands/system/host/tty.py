"""tty: the terminal of standard input, of which there is none."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class TtyOptions:
    silent: bool = flag("-s", "--silent", "--quiet", help="print nothing, only return an exit status")


async def tty(proc: Proc, o: TtyOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0])}", 2)
    if not o.silent:
        await proc.emit(b"not a tty\n")
    return 1


COMMANDS = [
    Command(
        "tty",
        tty,
        TtyOptions,
        summary="Print the file name of the terminal connected to standard input.",
        usage="[OPTION]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
