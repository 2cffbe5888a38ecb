"""help: list the commands, or show the help of one."""

from __future__ import annotations

from ramet.commands.framework.command import Command, help_text
from ramet.commands.system.man import load_command
from ramet.core.paths import encode
from ramet.core.proc import Proc


async def help_(proc: Proc, o: object, operands: list[str]) -> int:
    from ramet.commands.framework.table import MODULES

    if not operands:
        await proc.emit(encode("These commands are available; `NAME --help` and `man NAME` say more.\n\n"))
        names = sorted(n for n in MODULES if n != "[")
        width = max(map(len, names)) + 2
        per_row = 80 // width
        for i in range(0, len(names), per_row):
            await proc.emit(encode("".join(n.ljust(width) for n in names[i : i + per_row]).rstrip() + "\n"))
        return 0
    status = 0
    for name in operands:
        command = load_command(name)
        if command is None:
            proc.complain(f"no help topics match '{name}'")
            status = 1
        else:
            await proc.emit(encode(help_text(command)))
    return status


COMMANDS = [
    Command("help", help_, summary="List the commands, or show the help of one.", usage="[NAME]..."),
]
