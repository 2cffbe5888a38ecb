"""ionice: run a command with an I/O class, which has no effect."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    flag,
    value,
)
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class IoniceOptions:
    klass: str | None = value("-c", "--class", metavar="CLASS", help="name or number of scheduling class")
    level: str | None = value(
        "-n", "--classdata", metavar="NUM", help="priority (0..7) in the specified scheduling class"
    )
    pid: str | None = value("-p", "--pid", metavar="PID", help="act on these already running processes")
    ignore: bool = flag("-t", "--ignore", help="ignore failures")


async def ionice(proc: Proc, o: IoniceOptions, operands: list[str]) -> int:
    if not operands:
        await proc.emit(b"none: prio 0\n")
        return 0
    return await proc.run(operands)


COMMANDS = [
    Command(
        "ionice",
        ionice,
        IoniceOptions,
        summary="Run COMMAND with an I/O class, which has no effect here.",
        usage="[OPTION]... [COMMAND [ARG]...]",
        operands_first=True,
        version_letters="V",
        help_letters="h",
    ),
]
