"""nohup: run a command that ignores hangups."""

from __future__ import annotations

from ramet.commands.framework.command import (
    Command,
)
from ramet.core.proc import Proc


async def nohup(proc: Proc, o: object, operands: list[str]) -> int:
    return await proc.run(operands, signals={"HUP": True})


COMMANDS = [
    Command(
        "nohup",
        nohup,
        summary="Run COMMAND, ignoring hangup signals.",
        usage="COMMAND [ARG]...",
        operands_first=True,
        bad_usage=125,
        min_operands=1,
        original="GNU coreutils 9.1",
    ),
]
