"""curl and wget: refused unless the workspace lends a network service."""

from __future__ import annotations

from ramet.commands.framework.command import Command
from ramet.core.proc import Exec, Proc


async def _refused(proc: Proc, o: None, words: list[str]) -> int:
    """Run the command of this name that the workspace lends as a service; otherwise the network is off."""
    lent = proc.services.get(f"command:{proc.argv[0]}")
    if callable(lent):
        run: Exec = lent
        return await run(proc)
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
