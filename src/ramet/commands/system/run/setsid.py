"""setsid: run a command in a new session."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
)
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class SetsidOptions:
    ctty: bool = flag("-c", "--ctty", help="set the controlling terminal to the current one")
    fork: bool = flag("-f", "--fork", help="always fork")
    wait: bool = flag("-w", "--wait", help="wait program to exit, and use the same return")


async def setsid(proc: Proc, o: SetsidOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("no command specified")
    return await proc.run(operands)


COMMANDS = [
    Command(
        "setsid",
        setsid,
        SetsidOptions,
        summary="Run a program in a new session.",
        usage="[OPTION]... COMMAND [ARG]...",
        operands_first=True,
        version_letters="V",
        help_letters="h",
    ),
]
