"""yes: print a line until it is stopped."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.paths import encode
from ramet.core.proc import Proc


async def yes(proc: Proc, o: object, operands: list[str]) -> int:
    line = encode(" ".join(operands) if operands else "y") + b"\n"
    block = line * max(1, 16384 // len(line))
    while True:
        await proc.emit(block)
        await proc.budget.yield_turn()


COMMANDS = [
    Command(
        "yes",
        yes,
        summary="Repeatedly output a line with all specified STRING(s), or 'y'.",
        usage="[STRING]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
