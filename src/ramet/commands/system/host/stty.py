"""stty: settings of a terminal, of which there is none."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, value
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class SttyOptions:
    all: bool = flag("-a", "--all", help="print all current settings in human-readable form")
    save: bool = flag("-g", "--save", help="print all current settings in a stty-readable form")
    file: str | None = value("-F", "--file", metavar="DEVICE", help="open and use the specified DEVICE")


async def stty(proc: Proc, o: SttyOptions, operands: list[str]) -> int:
    proc.complain("'standard input': Inappropriate ioctl for device")
    return 1


COMMANDS = [
    Command(
        "stty",
        stty,
        SttyOptions,
        summary="Change or print terminal line settings; there is no terminal.",
        usage="[SETTING]...",
        original="GNU coreutils 9.1",
    ),
]
