"""ps: list processes of the workspace in procps' columns; unknown figures are zero."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ramet.commands.framework.command import Command, UsageError, choose, count, flag, several, value
from ramet.commands.system.process.kill import running
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.strftime import NANO, at, strftime, zone_of


@dataclass(frozen=True, slots=True)
class PsOptions:
    all: bool = flag("-e", "-A", help="select all processes")
    full: bool = flag("-f", help="full-format listing")
    extra: bool = flag("-F", help="extra full-format listing")
    long: bool = flag("-l", help="long format")
    jobs: bool = flag("-j", help="jobs format")
    format: tuple[str, ...] = several(
        "-o", "--format", metavar="FORMAT", help="user-defined format: pid,ppid,user,comm,args,etime,stat,..."
    )
    style: str = value("--style", metavar="NAME", default="", help="a BSD listing by name, as `ps aux` asks for it")
    pids: tuple[str, ...] = several("-p", "-q", "--pid", "--quick-pid", metavar="PIDLIST", help="select by process ID")
    parents: tuple[str, ...] = several("--ppid", metavar="PIDLIST", help="select by parent process ID")
    user: tuple[str, ...] = several("-u", "-U", "--user", "--User", metavar="USERLIST", help="select by user")
    command: tuple[str, ...] = several("-C", metavar="CMDLIST", help="select by command name")
    deselect: bool = flag("-N", "--deselect", help="select what the other options leave out")
    headers: bool = choose(
        {"--no-headers --noheader --noheaders --no-heading": False, "--headers": True},
        default=True,
        help="print headings, or not",
    )
    terminal: bool = flag("-a", "-d", "-x", help="processes with, or without, a terminal: none has one here")
    threads: bool = flag("-L", "-T", "-m", help="threads as well: every process has one")
    wide: int = count("-w", help="wide output: nothing is ever cut here")
    sort: tuple[str, ...] = several("--sort", metavar="ORDER", help="sort by columns, -NAME from the largest")
    forest: bool = flag("--forest", help="draw the tree of processes")
    indent: bool = flag("-H", help="indent the tree of processes")


class Process(NamedTuple):
    pid: int
    parent: int
    line: str
    start: float
    depth: int = 0


class Column(NamedTuple):
    heading: str
    width: int
    cell: Callable[[Process, Proc], str]
    left: bool = False


def _comm(row: Process) -> str:
    return row.line.split(" ", 1)[0].rpartition("/")[2]


def _is_self(row: Process, proc: Proc) -> bool:
    return row.line == " ".join(proc.argv)


def _elapsed(row: Process, proc: Proc) -> int:
    return max(0, int(proc.now() - row.start))


def _etime(row: Process, proc: Proc) -> str:
    minutes, seconds = divmod(_elapsed(row, proc), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"


def _when(form: str) -> Callable[[Process, Proc], str]:
    def cell(row: Process, proc: Proc) -> str:
        return strftime(form, at(int(row.start * NANO), zone_of(proc))[0])

    return cell


def _state(row: Process, proc: Proc) -> str:
    return "R" if _is_self(row, proc) else "S"


def _always(text: str) -> Callable[[Process, Proc], str]:
    return lambda row, proc: text


def _pid(row: Process, proc: Proc) -> str:
    return str(row.pid)


def _user(row: Process, proc: Proc) -> str:
    return proc.user.name


_COLUMNS: dict[str, Column] = {
    "%cpu pcpu": Column("%CPU", 4, _always("0.0")),
    "%mem pmem": Column("%MEM", 4, _always("0.0")),
    "addr_sz": Column("ADDR SZ", 7, _always("-     0")),
    "args command": Column("COMMAND", 27, lambda row, proc: row.line, left=True),
    "bsdstart": Column("START", 6, _when("%H:%M")),
    "bsdtime": Column("TIME", 6, _always("0:00")),
    "c": Column("C", 2, _always("0")),
    "cls class policy": Column("CLS", 3, _always("TS")),
    "cmd": Column("CMD", 27, lambda row, proc: row.line, left=True),
    "comm": Column("COMMAND", 15, lambda row, proc: _comm(row), left=True),
    "etime": Column("ELAPSED", 11, _etime),
    "etimes": Column("ELAPSED", 7, lambda row, proc: str(_elapsed(row, proc))),
    "f flag flags": Column("F", 1, _always("0")),
    "fname": Column("COMMAND", 8, lambda row, proc: _comm(row)[:8], left=True),
    "gid egid": Column("GID", 5, lambda row, proc: str(proc.user.gid)),
    "rgid": Column("RGID", 5, lambda row, proc: str(proc.user.gid)),
    "group egroup": Column("GROUP", 8, lambda row, proc: proc.user.name, left=True),
    "lstart": Column("STARTED", 24, _when("%a %b %e %T %Y")),
    "majflt maj_flt": Column("MAJFL", 6, _always("0")),
    "minflt min_flt": Column("MINFL", 6, _always("0")),
    "ni nice": Column("NI", 3, _always("0")),
    "nlwp thcount": Column("NLWP", 4, _always("1")),
    "pgid pgrp": Column("PGID", 7, _pid),
    "pid": Column("PID", 7, _pid),
    "ppid": Column("PPID", 7, lambda row, proc: str(row.parent)),
    "pri": Column("PRI", 3, _always("19")),
    "psr": Column("PSR", 3, _always("0")),
    "rss rssize rsz": Column("RSS", 5, _always("0")),
    "ruser": Column("RUSER", 8, _user, left=True),
    "euser": Column("EUSER", 8, _user, left=True),
    "ruid": Column("RUID", 5, lambda row, proc: str(proc.user.uid)),
    "s state": Column("S", 1, _state, left=True),
    "sid sess session": Column("SID", 7, lambda row, proc: str(row.parent or row.pid)),
    "spid tid": Column("TID", 7, _pid),
    "lwp": Column("LWP", 7, _pid),
    "start": Column("STARTED", 8, _when("%T")),
    "start_time": Column("START", 5, _when("%H:%M")),
    "stat": Column("STAT", 4, _state, left=True),
    "stime": Column("STIME", 5, _when("%H:%M")),
    "sz": Column("SZ", 5, _always("0")),
    "time cputime": Column("TIME", 8, _always("00:00:00")),
    "times cputimes": Column("TIME", 8, _always("0")),
    "tname": Column("TTY", 8, _always("?"), left=True),
    "tpgid": Column("TPGID", 7, _always("-1")),
    "tty tt": Column("TT", 8, _always("?"), left=True),
    "ucmd ucomm": Column("CMD", 15, lambda row, proc: _comm(row), left=True),
    "uid euid": Column("UID", 5, lambda row, proc: str(proc.user.uid)),
    "user uname": Column("USER", 8, _user, left=True),
    "vsz vsize": Column("VSZ", 6, _always("0")),
    "wchan": Column("WCHAN", 6, _always("-"), left=True),
}
_BY_NAME = {name: column for names, column in _COLUMNS.items() for name in names.split()}

# Listings by their options; `NAME=HEADING` as in -o.
_STYLES = {
    "": "pid,tname,time,ucmd",
    "f": "user=UID,pid,ppid,c,stime,tname,time,cmd",
    "F": "user=UID,pid,ppid,c,sz,rss,psr,stime,tname,time,cmd",
    "j": "pid,pgid,sid,tname,time,ucmd",
    "l": "f,s,uid,pid,ppid,c,pri,ni,addr_sz,wchan,tname,time,ucmd",
    "fl": "f,s,user=UID,pid,ppid,c,pri,ni,addr_sz,wchan,stime,tname,time,cmd",
    "bsd": "pid,tname,stat,bsdtime,args",
    "bsd-u": "user,pid,%cpu,%mem,vsz,rss,tname,stat,start_time,bsdtime,args",
    "bsd-j": "ppid,pid,pgid,sid,tname,tpgid,stat,uid,bsdtime,args",
    "bsd-l": "f,uid,pid,ppid,pri,ni,vsz,rss,wchan,stat,tname,bsdtime,args",
}


def _bsd(words: list[str]) -> list[str]:
    """`ps aux`, `ps axo pid,comm`, `ps 42`: options without a dash, as procps also takes them."""
    out: list[str] = []
    rest = iter(words)
    for word in rest:
        if _TAKES_WORD.fullmatch(word):
            out += [word, *itertools.islice(rest, 1)]
        elif re.fullmatch(r"\d+(,\d+)*", word):
            out += ["-p", word, "--style", "bsd"]
        elif re.fullmatch(r"[a-zA-Z]+", word):
            out += _bsd_letters(word, rest)
        else:
            out.append(word)
    return out


_TAKES_WORD = re.compile(r"-[a-zA-Z]*[opquUC]|--(format|pid|quick-pid|ppid|user|User|sort|style)")


def _bsd_letters(word: str, rest: Iterator[str]) -> list[str]:
    out: list[str] = []
    style = "bsd"
    for at_, letter in enumerate(word):
        if letter in "ujl":
            style = "bsd-" + letter
        elif letter == "f":
            out.append("--forest")
        elif letter == "h":
            out.append("--no-headers")
        elif letter in "opk":
            attached = word[at_ + 1 :] or next(rest, None)
            if attached is None:
                raise _wrong("option requires an argument")
            out += [{"o": "-o", "p": "-p", "k": "--sort"}[letter], attached]
            break
        elif letter not in "aAxegrTwcnNSmHtU":
            raise _wrong("unsupported option (BSD syntax)")
    return [*out, "--style", style]


def _wrong(text: str) -> UsageError:
    return UsageError(f"error: {text}", hint=False)


def _columns(words: Iterable[str]) -> list[tuple[str, Column]]:
    """Return a -o list with its own headings (`pid=`, `comm=NAME`) and widths (`user:20`)."""
    found = []
    for word in words:
        for spec in re.split(r"[ ,]+", word.strip(" ,")):
            given, equals, title = spec.partition("=")
            name, _, width = given.partition(":")
            column = _BY_NAME.get(name)
            if column is None or (width and not width.isdigit()):
                raise _wrong(f'unknown user-defined format specifier "{name}"')
            if width:
                column = column._replace(width=int(width))
            if equals:
                column = column._replace(heading=title, width=max(column.width, len(title)))
            found.append((name, column))
    return found


def _listing(o: PsOptions) -> list[tuple[str, Column]]:
    if o.format:
        return _columns(o.format)
    style = o.style or ("F" if o.extra else "f" * o.full + "l" * o.long or "j" * o.jobs)
    if style not in _STYLES:
        raise UsageError(f"unknown style {style}", hint=False)
    return _columns(_STYLES[style].split(","))


def _numbers(texts: Iterable[str]) -> set[int]:
    words = [word for text in texts for word in re.split(r"[ ,]+", text)]
    if not all(word.isdigit() for word in words):
        raise _wrong("process ID list syntax error")
    return {int(word) for word in words}


def _selected(rows: list[Process], o: PsOptions, proc: Proc) -> list[Process]:
    choices: list[Callable[[Process], bool]] = []
    if o.pids:
        pids = _numbers(o.pids)
        choices.append(lambda row: row.pid in pids)
    if o.parents:
        parents = _numbers(o.parents)
        choices.append(lambda row: row.parent in parents)
    if o.command:
        names = {name for text in o.command for name in text.split(",")}
        choices.append(lambda row: _comm(row) in names)
    if o.user:
        mine = {name for text in o.user for name in text.split(",")} & {proc.user.name, str(proc.user.uid)}
        choices.append(lambda row: bool(mine))
    if not choices:
        return [] if o.deselect else rows
    return [row for row in rows if any(choice(row) for choice in choices) is not o.deselect]


def _sorted(rows: list[Process], o: PsOptions, proc: Proc) -> list[Process]:
    keys = [key for text in o.sort for key in text.split(",") if key]
    for key in reversed(keys):
        column = _BY_NAME.get(key.lstrip("+-"))
        if column is None:
            raise _wrong("unknown sort specifier")

        def order(row: Process, column: Column = column) -> tuple[bool, float, str]:
            cell = column.cell(row, proc)
            number = re.fullmatch(r"\d+(\.\d+)?", cell)
            return (number is None, float(cell) if number else 0.0, cell)

        rows = sorted(rows, key=order, reverse=key.startswith("-"))
    return rows


def _as_tree(rows: list[Process]) -> list[Process]:
    """Children under their parents, each with its depth."""
    there = {row.pid for row in rows}
    below: dict[int, list[Process]] = {}
    for row in rows:
        below.setdefault(row.parent if row.parent in there and row.parent != row.pid else 0, []).append(row)
    out: list[Process] = []
    pending = [(row, 0) for row in reversed(below.get(0, []))]
    while pending:
        row, depth = pending.pop()
        out.append(row._replace(depth=depth))
        pending += [(child, depth + 1) for child in reversed(below.get(row.pid, []))]
    return out


def _branch(row: Process, o: PsOptions) -> str:
    """Return what stands before the command of a process within the tree."""
    if not row.depth:
        return ""
    return "  " * row.depth if o.indent else "    " * (row.depth - 1) + " \\_ "


_COMMAND_CELLS = frozenset({"args", "command", "cmd", "comm", "ucmd", "ucomm"})


async def ps(proc: Proc, o: PsOptions, operands: list[str]) -> int:
    columns = _listing(o)
    rows = _sorted(_selected([Process(*row) for row in running(proc)], o, proc), o, proc)
    tree = o.forest or o.indent
    table = []
    if o.headers and any(column.heading for _, column in columns):
        table.append([column.heading for _, column in columns])
    for row in _as_tree(rows) if tree else rows:
        cells = [column.cell(row, proc) for _, column in columns]
        branch = _branch(row, o)
        table.append([branch * (name in _COMMAND_CELLS) + cell for (name, _), cell in zip(columns, cells, strict=True)])
    await proc.emit(encode("".join(_line(cells, columns) for cells in table)))
    return 0 if rows else 1


def _line(cells: list[str], columns: list[tuple[str, Column]]) -> str:
    out = []
    last = len(columns) - 1
    for at_, (cell, (_, column)) in enumerate(zip(cells, columns, strict=True)):
        if not column.left:
            out.append(cell.rjust(column.width))
        else:
            out.append(cell if at_ == last else cell.ljust(column.width))
    return " ".join(out) + "\n"


COMMANDS = [
    Command("ps", ps, PsOptions, summary="Report the processes of the workspace.", usage="[OPTION]...", rewrite=_bsd),
]
