"""mkfifo: create named pipes."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.files.touch import quiet_setattr
from ramet.commands.framework.command import (
    Command,
    UsageError,
    quote,
    value,
)
from ramet.commands.framework.file_modes import BadMode, change_mode
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class MkfifoOptions:
    mode: str | None = value("-m", "--mode", metavar="MODE", help="set file permission bits to MODE, not a=rw - umask")


async def mkfifo(proc: Proc, o: MkfifoOptions, operands: list[str]) -> int:
    mode = 0o666 & ~proc.umask
    if o.mode is not None:
        try:
            mode = change_mode(o.mode, 0o666, False, proc.umask)
        except BadMode:
            raise UsageError("invalid mode", hint=False) from None
        if mode & ~0o777:
            raise UsageError("mode must specify only file permission bits", hint=False)
    status = 0
    for word in operands:
        try:
            path = proc.path(word)
            await proc.fs.mkfifo(path)
            await quiet_setattr(proc, path, Attrs(mode=mode))
        except OSError as error:
            proc.complain(f"cannot create fifo {quote(word)}: {reason(error)}")
            status = 1
    return status


COMMANDS = [
    Command(
        "mkfifo",
        mkfifo,
        MkfifoOptions,
        summary="Create named pipes (FIFOs) with the given NAMEs.",
        usage="[OPTION]... NAME...",
        min_operands=1,
        ignored=("-Z --context[=",),
        original="GNU coreutils 9.1",
    ),
]
