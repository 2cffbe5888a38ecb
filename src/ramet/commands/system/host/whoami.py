"""whoami and logname: the name of the user."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.paths import encode
from ramet.core.proc import Proc


async def whoami(proc: Proc, o: object, operands: list[str]) -> int:
    await proc.emit(encode(proc.user.name + "\n"))
    return 0


COMMANDS = [
    Command(
        "whoami",
        whoami,
        summary="Print the user name.",
        usage="",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "logname",
        whoami,
        summary="Print the user's login name.",
        usage="",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
