"""echo: print its arguments."""

from __future__ import annotations

import re

from ramet.commands.framework.command import Command
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text import escapes


async def echo(proc: Proc, o: None, words: list[str]) -> int:
    newline, decode = True, False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        for letter in words[0][1:]:
            newline = newline and letter != "n"
            decode = (decode or letter == "e") and letter != "E"
        words = words[1:]
    raw = encode(" ".join(words))
    if decode:
        raw, stopped = escapes.decode(escapes.GNU_ECHO, raw)
        newline = newline and not stopped
    await proc.emit(raw + b"\n" if newline else raw)
    return 0


COMMANDS = [
    Command(
        "echo",
        echo,
        raw=True,
        summary="Print the STRING(s) to standard output.",
        usage="[-neE] [STRING]...",
        details="-n  no newline at the end\n-e  interpret backslash escapes\n-E  do not (the default)",
        original="GNU coreutils 9.1",
        literal_help=True,
    ),
]
