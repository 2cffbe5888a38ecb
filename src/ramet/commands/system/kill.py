"""kill, and what runs: the jobs of the workspace as processes; no process of the host is seen or reached."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, optional, quote, value
from ramet.commands.system.env import SIGNALS, signal_number
from ramet.core.paths import encode
from ramet.core.proc import Proc


def running(proc: Proc) -> list[tuple[int, int, str, float]]:
    """pid, parent, command line and start of everything that runs: the shell, its jobs, and this command."""
    jobs = proc.services.jobs
    if jobs is None:
        return [(1, 0, " ".join(proc.argv), proc.now())]
    rows = list(jobs.processes())
    return [*rows, (jobs.next_pid(), jobs.own_pid(), " ".join(proc.argv), proc.now())]


def send(proc: Proc, pid: int, number: int) -> bool:
    """Signal a process of the workspace; False when there is none of that number."""
    jobs = proc.services.jobs
    return jobs is not None and jobs.signal(pid, number)


@dataclass(frozen=True, slots=True)
class KillOptions:
    signal: str = value("-s", "--signal", metavar="SIGNAL", default="TERM", help="specify the signal to be sent")
    list: str | None = optional(
        "-l", "--list", metavar="SIGNAL", const="", help="list signal names, or convert to/from a number"
    )
    table: bool = flag("-L", "--table", help="list signal names and numbers in a table")


def _kill_words(words: list[str]) -> list[str]:
    """`kill -9 PID`, `kill -TERM PID`."""
    if words and re.fullmatch(r"-(\d+|[A-Z][A-Z0-9]+|[a-z]{3,})", words[0]) and signal_number(words[0][1:]) is not None:
        return ["-s", words[0][1:], "--", *words[1:]]
    return words


def listed() -> str:
    """The names of all signals, in two lines."""
    plain = [name for name, number in SIGNALS.items() if number <= 31]
    return "\n".join(" ".join(plain[at : at + 16]) for at in range(0, len(plain), 16)) + "\n"


def _names(wanted: list[str]) -> str:
    """All names, or the other form of each of these."""
    if not wanted:
        return listed()
    names = {number: name for name, number in SIGNALS.items()}
    lines = []
    for word in wanted:
        number = signal_number(word)
        if number is None:
            raise UsageError(f"unknown signal name {word}", hint=False)
        lines.append(f"{names.get(number % 128, number) if word.isdigit() else number}\n")
    return "".join(lines)


def _table() -> str:
    """Number and name of every signal, seven a line."""
    cells = [f"{number:2d} {name:<7} " for name, number in SIGNALS.items() if number <= 31]
    rows = ["".join(cells[at : at + 7]) for at in range(0, len(cells), 7)]
    return "\n".join([*(row.rstrip() for row in rows[:-1]), rows[-1]]) + "\n"


async def kill(proc: Proc, o: KillOptions, operands: list[str]) -> int:
    if o.table or o.list is not None:
        await proc.emit(encode(_table() if o.table else _names(([o.list] if o.list else []) + operands)))
        return 0
    number = signal_number(o.signal)
    if number is None:
        raise UsageError(f"unknown signal name {o.signal}", hint=False)
    if not operands:
        raise UsageError("not enough arguments", hint=False)
    jobs = proc.services.jobs
    status = 0
    for word in operands:
        if not re.fullmatch(r"-?\d+", word):
            proc.complain(f"failed to parse argument: {quote(word)}")
            status = 1
        elif jobs is None or not jobs.signal(int(word), number):
            proc.complain(f"({word}): No such process")
            status = 1
    return status


COMMANDS = [
    Command(
        "kill",
        kill,
        KillOptions,
        summary="Send a signal to a process of the workspace.",
        usage="[-s SIGNAL | -SIGNAL] PID...",
        rewrite=_kill_words,
    ),
]
