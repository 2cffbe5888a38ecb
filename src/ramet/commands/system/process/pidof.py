"""pidof: find processes of the workspace by name."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, several, value
from ramet.commands.system.process.kill import running
from ramet.core.paths import encode
from ramet.core.proc import Proc


def _comm(line: str) -> str:
    return line.split(" ", 1)[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class PidofOptions:
    single: bool = flag("-s", help="only one of them, the newest")
    quiet: bool = flag("-q", help="only the exit status")
    scripts: bool = flag("-x", help="scripts as well, by the name of the shell that runs them")
    separator: str = value("-d", metavar="SEP", default=" ", help="between numbers")
    omit: tuple[str, ...] = several("-o", metavar="PID", help="leave out these; %PPID is the shell")


async def pidof(proc: Proc, o: PidofOptions, operands: list[str]) -> int:
    rows = running(proc)
    omitted = {word for text in o.omit for word in text.split(",")}
    if "%PPID" in omitted:
        omitted.add(str(rows[-1][1]))
    found: list[str] = []
    for word in operands:
        name = word.rpartition("/")[2]
        pids = sorted((pid for pid, _, line, _ in rows[:-1] if _comm(line) == name), reverse=True)
        found += [str(pid) for pid in pids if str(pid) not in omitted]
    if found and not o.quiet:
        await proc.emit(encode(o.separator.join(found[:1] if o.single else found) + "\n"))
    return 0 if found else 1


COMMANDS = [
    Command(
        "pidof",
        pidof,
        PidofOptions,
        summary="Find the process IDs of running programs of the workspace.",
        usage="[OPTION]... PROGRAM...",
        ignored=("-c", "-n", "-z"),
    ),
]
