"""curl and wget: refuse with a clear message, because the network is off."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.proc import Proc


async def _refused(proc: Proc, o: None, words: list[str]) -> int:
    name = proc.argv[0].rpartition("/")[2]
    proc.complain("the network is off in this workspace; ask its owner to allow hosts by policy")
    return 6 if name == "curl" else 4


COMMANDS = [
    Command(
        "curl",
        _refused,
        raw=True,
        summary="Transfer a URL; only where a network policy allows it.",
        usage="[OPTION]... URL...",
    ),
    Command(
        "wget",
        _refused,
        raw=True,
        summary="Download files; only where a network policy allows it.",
        usage="[OPTION]... URL...",
    ),
]
