"""false: fail."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.proc import Proc


async def false(proc: Proc, o: None, words: list[str]) -> int:
    return 1


COMMANDS = [
    Command(
        "false",
        false,
        raw=True,
        summary="Exit with a status code indicating failure.",
        usage="",
        original="GNU coreutils 9.1",
        literal_help=True,
    ),
]
