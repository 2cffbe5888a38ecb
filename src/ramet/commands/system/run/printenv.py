"""printenv: the values of environment variables."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class PrintenvOptions:
    zero: bool = flag("-0", "--null", help="end each output line with NUL, not newline")


async def printenv(proc: Proc, o: PrintenvOptions, operands: list[str]) -> int:
    end = "\0" if o.zero else "\n"
    if not operands:
        await proc.emit_texts(part for name, text in proc.env.items() for part in (name, "=", text, end))
        return 0
    found = [proc.env[name] for name in operands if name in proc.env and "=" not in name]
    await proc.emit_texts(part for text in found for part in (text, end))
    return 0 if len(found) == len(operands) else 1


COMMANDS = [
    Command(
        "printenv",
        printenv,
        PrintenvOptions,
        summary="Print the values of the specified environment VARIABLE(s).",
        usage="[OPTION]... [VARIABLE]...",
        bad_usage=2,
        original="GNU coreutils 9.1",
        write_error=("write error: ", 2),
    ),
]
