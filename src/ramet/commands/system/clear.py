"""clear: clear the screen of a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, value
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class ClearOptions:
    terminal: str | None = value("-T", metavar="TERM", help="use this TERM instead of $TERM")


async def clear(proc: Proc, o: ClearOptions, operands: list[str]) -> int:
    terminal = o.terminal or proc.env.get("TERM")
    if not terminal:
        proc.stderr.write(b"TERM environment variable not set.\n")
        return 1
    if terminal == "dumb":
        return 1
    await proc.emit(b"\x1b[H\x1b[2J\x1b[3J")
    return 0


COMMANDS = [
    Command("clear", clear, ClearOptions, summary="Clear the terminal screen.", usage="", ignored=("-x", "-V")),
]
