"""mknod: create named pipes; devices are refused."""

from __future__ import annotations

import re

from ramet.commands.files.mkfifo import MkfifoOptions
from ramet.commands.files.touch import quiet_setattr
from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    quote,
)
from ramet.commands.framework.file_modes import BadMode, change_mode
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


async def mknod(proc: Proc, o: MkfifoOptions, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError(f"missing operand after {quote(operands[-1])}" if operands else "missing operand")
    name, kind, *numbers = operands
    if kind != "p":
        if len(numbers) < 2:
            told = "\nSpecial files require major and minor device numbers."
            raise UsageError(f"missing operand after {quote(operands[-1])}{told if not numbers else ''}")
        if len(numbers) > 2:
            raise UsageError(f"extra operand {quote(numbers[2])}")
        if kind not in "bcu":
            raise UsageError(f"invalid device type {quote(kind)}")
        for number, which in zip(numbers, ("major", "minor"), strict=True):
            if not re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", number):
                raise UsageError(f"invalid {which} device number {quote(number)}", hint=False)
        proc.complain(f"{called(name)}: Operation not permitted")
        return 1
    if numbers:
        told = "\nFifos do not have major and minor device numbers." if len(numbers) == 2 else ""
        raise UsageError(f"extra operand {quote(numbers[0])}{told}")
    try:
        path = proc.path(name)
        await proc.fs.mkfifo(path)
        mode = 0o666 & ~proc.umask if o.mode is None else change_mode(o.mode, 0o666, False, proc.umask)
        await quiet_setattr(proc, path, Attrs(mode=mode))
    except BadMode:
        raise UsageError("invalid mode", hint=False) from None
    except OSError as error:
        proc.complain(f"{called(name)}: {reason(error)}")
        return 1
    return 0


COMMANDS = [
    Command(
        "mknod",
        mknod,
        MkfifoOptions,
        summary="Create the special file NAME of the given TYPE: p, a FIFO; devices are not permitted.",
        usage="[OPTION]... NAME TYPE [MAJOR MINOR]",
        ignored=("-Z --context[=",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
