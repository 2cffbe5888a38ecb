"""stdbuf: run a command with other buffering of its streams."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    value,
)
from ramet.commands.framework.inputs import parse_size
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class StdbufOptions:
    input: str | None = value("-i", "--input", metavar="MODE", help="adjust standard input stream buffering")
    output: str | None = value("-o", "--output", metavar="MODE", help="adjust standard output stream buffering")
    error: str | None = value("-e", "--error", metavar="MODE", help="adjust standard error stream buffering")


async def stdbuf(proc: Proc, o: StdbufOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if o.input is None and o.output is None and o.error is None:
        raise UsageError("you must specify a buffering mode option")
    if o.input == "L":
        raise UsageError("line buffering stdin is meaningless")
    for mode in (o.input, o.output, o.error):
        if mode is not None and mode != "L":
            try:
                parse_size(mode, "mode")
            except UsageError as error:
                raise UsageError(str(error).replace("mode:", "mode"), status=125, hint=False) from None
    modes = {"_STDBUF_I": o.input, "_STDBUF_O": o.output, "_STDBUF_E": o.error}
    asked = {name: mode for name, mode in modes.items() if mode is not None}
    return await proc.run(operands, env={**proc.env, **asked})


COMMANDS = [
    Command(
        "stdbuf",
        stdbuf,
        StdbufOptions,
        summary="Run COMMAND with modified buffering, which has no effect here.",
        usage="OPTION... COMMAND",
        operands_first=True,
        bad_usage=125,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
