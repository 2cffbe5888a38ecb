"""ps and kill: the jobs of the workspace as processes; no process of the host is seen or reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ramet.commands.clock import NANO, at, strftime, zone_of
from ramet.commands.declare import Command, UsageError, choose, flag, optional, quote, several, value
from ramet.commands.launch import SIGNALS, signal_number
from ramet.core.paths import encode
from ramet.core.proc import Proc


@runtime_checkable
class Jobs(Protocol):
    """What the workspace lends as `services["jobs"]`: its table of running work."""

    def processes(self) -> Iterable[tuple[int, int, str, float]]:
        """pid, parent's pid, command line and start time (seconds since the epoch)."""
        ...

    def signal(self, pid: int, number: int) -> bool:
        """Deliver a signal; False when there is no such process."""
        ...


def _jobs(proc: Proc) -> Jobs | None:
    found = proc.services.get("jobs")
    return found if isinstance(found, Jobs) else None


def _running(proc: Proc) -> list[tuple[int, int, str, float]]:
    """pid, parent, command line and start of everything that runs: the shell, its jobs, and this command."""
    jobs, now = _jobs(proc), proc.now()
    if jobs is not None:
        return list(jobs.processes())
    session = proc.services.get("session")
    top = int(getattr(session, "pid", 0) or 1)
    rows = [(top, 0, "bash", now)]
    jobs_of = getattr(getattr(session, "jobs", None), "jobs", ())
    rows += [(int(job.pid), top, str(job.text), now) for job in jobs_of if getattr(job, "running", False)]
    return [*rows, (max(row[0] for row in rows) + 1, top, " ".join(proc.argv), now)]


@dataclass(frozen=True, slots=True)
class PsOptions:
    all: bool = flag("-e", "-A", help="select all processes")
    full: bool = flag("-f", help="full-format listing")
    long: bool = flag("-l", help="long format")
    format: tuple[str, ...] = several(
        "-o", "--format", metavar="FORMAT", help="user-defined format: pid,ppid,user,comm,args,etime,stat,..."
    )
    pids: tuple[str, ...] = several("-p", "--pid", metavar="PIDLIST", help="select by process ID")
    user: tuple[str, ...] = several("-u", "-U", "--user", metavar="USERLIST", help="select by user")
    headers: bool = choose(
        {"--no-headers --noheader --noheaders": False, "--headers": True}, default=True, help="print headings, or not"
    )
    terminal: bool = flag("-a", "-x", help="processes with, or without, a terminal")
    threads: bool = flag("-L", "-T", help="show threads")
    wide: bool = flag("-w", help="wide output")
    sort: str | None = value("--sort", metavar="ORDER", help="specify sorting order")
    forest: bool = flag("-H", "--forest", help="show process hierarchy")
    command: tuple[str, ...] = several("-C", metavar="CMDLIST", help="select by command name")


def _bsd(words: list[str]) -> list[str]:
    """`ps aux` and `ps ax`."""
    if words and re.fullmatch(r"[auxwfelj]+", words[0]):
        return ["-e", "-f", *words[1:]] if "u" in words[0] else ["-e", *words[1:]]
    return words


async def ps(proc: Proc, o: PsOptions, operands: list[str]) -> int:
    rows = _running(proc)
    wanted = {int(p) for text in o.pids for p in re.split(r"[ ,]", text) if p.isdigit()}
    if o.pids:
        rows = [row for row in rows if row[0] in wanted]
    if o.command:
        names = {n for text in o.command for n in text.split(",")}
        rows = [row for row in rows if row[2].split(" ")[0] in names]
    user = proc.user.name
    columns = (
        ",".join(o.format).split(",")
        if o.format
        else ["user", "pid", "ppid", "c", "stime", "tty", "time", "args"]
        if o.full
        else ["pid", "tty", "time", "comm"]
    )
    headings = {
        "user": "USER",
        "pid": "PID",
        "ppid": "PPID",
        "c": "C",
        "stime": "STIME",
        "tty": "TTY",
        "time": "TIME",
        "args": "COMMAND",
        "comm": "COMMAND",
        "cmd": "CMD",
        "etime": "ELAPSED",
        "stat": "STAT",
        "pcpu": "%CPU",
        "%cpu": "%CPU",
        "pmem": "%MEM",
        "%mem": "%MEM",
        "uid": "UID",
        "rss": "RSS",
        "vsz": "VSZ",
        "etimes": "ELAPSED",
        "command": "COMMAND",
        "state": "S",
        "s": "S",
        "nlwp": "NLWP",
        "ni": "NI",
        "pgid": "PGID",
        "sid": "SID",
        "lstart": "STARTED",
        "start": "STARTED",
    }
    if not o.format and not o.full:
        headings["comm"] = "CMD"
    if o.full and not o.format:
        headings["args"] = "CMD"
        headings["user"] = "UID"
    titles: list[str] = []
    names_: list[str] = []
    for column in columns:
        name, equals, title = column.partition("=")
        if name not in headings:
            proc.complain(f'error: unknown user-defined format specifier "{name}"')
            return 1
        names_.append(name)
        titles.append(title if equals else headings[name])
    table = [[_field(name, row, user, proc) for name in names_] for row in rows]
    if o.headers and any(titles):
        table.insert(0, titles)
    left = {"user", "args", "comm", "cmd", "command", "tty", "stat", "state", "s", "uid"}
    widths = [max((len(line[i]) for line in table), default=0) for i in range(len(names_))]
    widths = [
        max(w, {"pid": 7, "ppid": 7, "user": 8, "time": 8, "tty": 8}.get(n, 0))
        if len(names_) > 1 or n in ("pid", "ppid")
        else w
        for w, n in zip(widths, names_, strict=True)
    ]
    out = []
    for line in table:
        cells = [c.ljust(w) if n in left else c.rjust(w) for c, w, n in zip(line, widths, names_, strict=True)]
        out.append(" ".join(cells).rstrip() if names_[-1] in left else " ".join(cells))
    await proc.emit(encode("".join(line + "\n" for line in out)))
    return 0 if rows else 1


def _field(name: str, row: tuple[int, int, str, float], user: str, proc: Proc) -> str:
    pid, parent, line, start = row
    elapsed = max(0, int(proc.now() - start))
    when, _ = at(int(start * NANO), zone_of(proc))
    table = {
        "user": user,
        "uid": str(proc.user.uid),
        "pid": str(pid),
        "ppid": str(parent),
        "c": "0",
        "stime": strftime("%H:%M", when),
        "tty": "?",
        "time": "00:00:00",
        "args": line,
        "cmd": line,
        "command": line,
        "comm": line.split(" ")[0].rpartition("/")[2],
        "stat": "S",
        "state": "S",
        "s": "S",
        "etime": f"{elapsed // 60:02d}:{elapsed % 60:02d}",
        "etimes": str(elapsed),
        "pcpu": "0.0",
        "%cpu": "0.0",
        "pmem": "0.0",
        "%mem": "0.0",
        "rss": "0",
        "vsz": "0",
        "nlwp": "1",
        "ni": "0",
        "pgid": str(pid),
        "sid": "1",
        "lstart": strftime("%c", when),
        "start": strftime("%T", when),
    }
    return table[name]


@dataclass(frozen=True, slots=True)
class KillOptions:
    signal: str = value("-s", "--signal", metavar="SIGNAL", default="TERM", help="specify the signal to be sent")
    list: str | None = optional(
        "-l",
        "-L",
        "--list",
        "--table",
        metavar="SIGNAL",
        const="",
        help="list signal names, or convert to/from a number",
    )


def _kill_words(words: list[str]) -> list[str]:
    """`kill -9 PID`, `kill -TERM PID`."""
    if words and re.fullmatch(r"-(\d+|[A-Z][A-Z0-9]+|[a-z]{3,})", words[0]) and signal_number(words[0][1:]) is not None:
        return ["-s", words[0][1:], "--", *words[1:]]
    return words


async def kill(proc: Proc, o: KillOptions, operands: list[str]) -> int:
    if o.list is not None:
        wanted = ([o.list] if o.list else []) + operands
        if not wanted:
            await proc.emit(encode("\n".join(SIGNALS) + "\n"))
            return 0
        for word in wanted:
            number = signal_number(word)
            if number is None:
                raise UsageError(f"unknown signal name {word}", hint=False)
            names = {v: k for k, v in SIGNALS.items()}
            await proc.emit(encode(f"{names.get(number % 128, number) if word.isdigit() else number}\n"))
        return 0
    number = signal_number(o.signal)
    if number is None:
        raise UsageError(f"unknown signal name {o.signal}", hint=False)
    if not operands:
        raise UsageError("not enough arguments", hint=False)
    jobs = _jobs(proc)
    status = 0
    for word in operands:
        if not re.fullmatch(r"-?\d+", word):
            proc.complain(f"cannot find process {quote(word)}")
            status = 1
        elif jobs is None or not jobs.signal(int(word), number):
            proc.complain(f"sending signal to {word} failed: No such process")
            status = 1
    return status


COMMANDS = [
    Command("ps", ps, PsOptions, summary="Report the processes of the workspace.", usage="[OPTION]...", rewrite=_bsd),
    Command(
        "kill",
        kill,
        KillOptions,
        summary="Send a signal to a process of the workspace.",
        usage="[-s SIGNAL | -SIGNAL] PID...",
        rewrite=_kill_words,
    ),
]
