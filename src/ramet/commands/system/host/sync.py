"""sync: check operands; writes are durable when acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote
from ramet.core.errors import reason
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class SyncOptions:
    data: bool = flag("-d", "--data", help="sync only file data, no unneeded metadata")
    system: bool = flag("-f", "--file-system", help="sync the file systems that contain the files")


async def sync(proc: Proc, o: SyncOptions, operands: list[str]) -> int:
    """Check the operands; acknowledged writes are durable already."""
    if o.data and o.system:
        raise UsageError("cannot specify both --data and --file-system", hint=False)
    if o.data and not operands:
        raise UsageError("--data needs at least one argument", hint=False)
    status = 0
    for word in operands:
        try:
            await proc.fs.stat(proc.path(word), follow=True)
        except OSError as error:
            proc.complain(f"error opening {quote(word)}: {reason(error)}")
            status = 1
    return status


COMMANDS = [
    Command(
        "sync",
        sync,
        SyncOptions,
        summary="Everything acknowledged is durable already; checks its operands only.",
        usage="[OPTION] [FILE]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
