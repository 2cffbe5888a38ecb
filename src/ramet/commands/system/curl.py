"""curl, wget and locate: refuse with a clear message. A network policy puts others in their place."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.proc import Proc


async def _refused(proc: Proc, o: None, words: list[str]) -> int:
    name = proc.argv[0].rpartition("/")[2]
    proc.complain("the network is off in this workspace; ask its owner to allow hosts by policy")
    return 6 if name == "curl" else 4


async def locate(proc: Proc, o: None, words: list[str]) -> int:
    proc.complain("there is no index of file names; use find or fd")
    return 1


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
    Command("locate", locate, raw=True, summary="Not available: there is no index; use find.", usage="PATTERN..."),
]
