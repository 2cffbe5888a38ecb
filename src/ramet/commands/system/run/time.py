"""time: run a command and report how long it took."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    flag,
    value,
)
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class TimeOptions:
    posix: bool = flag("-p", "--portability", help="print POSIX 1003.2 conformant output")
    format: str | None = value("-f", "--format", metavar="FORMAT", help="use FORMAT instead of the default")
    output: str | None = value("-o", "--output", metavar="FILE", help="write the statistics to FILE")
    append: bool = flag("-a", "--append", help="with -o, append instead of overwriting")
    verbose: bool = flag("-v", "--verbose", help="give all the available information")
    quiet: bool = flag("-q", "--quiet", help="do not report abnormal exits")


async def time(proc: Proc, o: TimeOptions, operands: list[str]) -> int:
    loop = asyncio.get_running_loop()
    start = loop.time()
    status = await proc.run(operands) & 255 if operands else 0
    real = loop.time() - start
    if o.posix:
        text = f"real {real:.2f}\nuser {real:.2f}\nsys 0.00\n"
    else:
        minutes = f"{int(real // 60)}:{real % 60:05.2f}"
        shape = (
            o.format
            or "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n"
            "%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps"
        )
        table = {
            "e": f"{real:.2f}",
            "E": minutes,
            "U": f"{real:.2f}",
            "S": "0.00",
            "P": "99%",
            "x": str(status),
            "C": " ".join(operands),
            "%": "%",
        }
        text = re.sub(r"%(.)", lambda m: table.get(m[1], "0"), shape).replace("\\n", "\n").replace("\\t", "\t") + "\n"
    out = await proc.create(o.output, append=o.append) if o.output is not None else proc.stderr
    out.write(encode(text))
    await proc.close(out)
    return status


COMMANDS = [
    Command(
        "time",
        time,
        TimeOptions,
        summary="Run COMMAND and report the time it took.",
        usage="[OPTION]... COMMAND [ARG]...",
        operands_first=True,
    ),
]
