"""watch: run a command periodically and print its output when it changes."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    optional,
    value,
)
from ramet.commands.system.run.sleep import sleep
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class WatchOptions:
    beep: bool = flag("-b", "--beep", help="beep if command has a non-zero exit")
    differences: str | None = optional(
        "-d", "--differences", metavar="permanent", const="", help="highlight changes between updates"
    )
    errexit: bool = flag("-e", "--errexit", help="exit if command has a non-zero exit")
    change: bool = flag("-g", "--chgexit", help="exit when output from command changes")
    interval: str = value("-n", "--interval", metavar="SECS", default="2", help="seconds to wait between updates")
    equal: str | None = value(
        "-q", "--equexit", metavar="CYCLES", help="exit when output from command does not change in CYCLES"
    )
    no_title: bool = flag("-t", "--no-title", help="turn off header")
    exec: bool = flag("-x", "--exec", help='pass command to exec instead of "sh -c"')
    color: bool = flag("-c", "--color", help="interpret ANSI color and style sequences")


async def watch(proc: Proc, o: WatchOptions, operands: list[str]) -> int:
    from ramet.core.streams import Capture

    if not operands:
        raise UsageError("missing command")
    if not (o.change or o.equal or o.errexit) and proc.budget.left() is None:
        proc.complain("would never end: give -g, -q or -e, or limit the time of the execution")
        return 1
    words = operands if o.exec else ["bash", "-c", " ".join(operands)]
    before: bytes | None = None
    same = 0
    while True:
        captured = Capture(proc.budget.limits.output_bytes)
        status = await proc.run(words, stdout=captured)
        output = captured.getvalue()
        if output != before:
            await proc.emit(output)
        if status and o.errexit:
            return 8
        if before is not None and o.change and output != before:
            return 0
        same = same + 1 if output == before else 0
        if o.equal and same >= int(o.equal):
            return 0
        before = output
        await sleep(proc, None, [o.interval])


COMMANDS = [
    Command(
        "watch",
        watch,
        WatchOptions,
        summary="Execute a program periodically, printing its output when it changes.",
        usage="[OPTION]... COMMAND",
        operands_first=True,
        version_letters="v",
        help_letters="h",
    ),
]
