"""true: succeed."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.proc import Proc


async def true(proc: Proc, o: None, words: list[str]) -> int:
    return 0


COMMANDS = [
    Command(
        "true",
        true,
        raw=True,
        summary="Exit with a status code indicating success.",
        usage="",
        original="GNU coreutils 9.1",
        literal_help=True,
    ),
]
