"""nproc: the number of processors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class NprocOptions:
    all: bool = flag("--all", help="print the number of installed processors")
    ignore: str = value("--ignore", metavar="N", default="0", help="if possible, exclude N processing units")


async def nproc(proc: Proc, o: NprocOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0])}")
    if not re.fullmatch(r"\s*\+?\d+", o.ignore):
        raise UsageError(f"invalid number: {quote(o.ignore)}", hint=False)
    threads = proc.env.get("OMP_NUM_THREADS", "")
    programs = proc.services.programs
    here = 1 if programs is None else programs.processors
    count = int(threads) if threads.isdigit() and int(threads) and not o.all else here
    await proc.emit(f"{max(1, count - int(o.ignore))}\n".encode())
    return 0


COMMANDS = [
    Command(
        "nproc",
        nproc,
        NprocOptions,
        summary="Print the number of processing units available.",
        usage="[OPTION]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
