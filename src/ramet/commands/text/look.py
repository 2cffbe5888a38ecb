"""look: print the lines of a sorted file that begin with a string."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, value
from ramet.commands.framework.inputs import read_lines
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class LookOptions:
    dictionary: bool = flag("-d", "--alphanum", help="compare only blanks and alphanumeric characters")
    fold: bool = flag("-f", "--ignore-case", help="ignore case differences")
    terminate: str | None = value("-t", "--terminate", metavar="CHAR", help="define the string-termination character")
    alternative: bool = flag("-a", "--alternative", help="use the alternative dictionary")


async def look(proc: Proc, o: LookOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("bad usage")
    prefix = encode(operands[0])
    if o.terminate:
        prefix = prefix.partition(encode(o.terminate))[0] + (
            encode(o.terminate)[:1] if encode(o.terminate) in prefix else b""
        )
    name = operands[1] if len(operands) > 1 else "/usr/share/dict/words"
    plain = len(operands) == 1

    def key(line: bytes) -> bytes:
        if o.dictionary or plain:
            line = re.sub(rb"[^A-Za-z0-9 \t]", b"", line)
        return line.lower() if o.fold or plain else line

    try:
        lines = await read_lines(proc, name)
    except OSError as error:
        proc.complain(f"{name}: {reason(error)}")
        return 1
    wanted = key(prefix)
    at = bisect_left(lines, wanted, key=key)
    out: list[bytes] = []
    while at < len(lines) and key(lines[at]).startswith(wanted):
        out.append(lines[at] + b"\n")
        at += 1
    await proc.emit(b"".join(out))
    return 0 if out else 1


COMMANDS = [
    Command(
        "look",
        look,
        LookOptions,
        summary="Display lines beginning with a given string.",
        usage="[OPTION]... STRING [FILE]",
        version_letters="V",
        help_letters="h",
    ),
]
