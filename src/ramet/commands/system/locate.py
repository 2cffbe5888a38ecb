"""locate: refused, as there is no index of file names."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.proc import Proc


async def locate(proc: Proc, o: None, words: list[str]) -> int:
    proc.complain("there is no index of file names; use find or fd")
    return 1


COMMANDS = [
    Command("locate", locate, raw=True, summary="Not available: there is no index; use find.", usage="PATTERN..."),
]
