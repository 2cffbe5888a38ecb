"""pgrep and pkill: find or signal processes of the workspace by pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from ramet import patterns
from ramet.commands.framework.command import Command, UsageError, choose, flag, value
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.system.process.kill import running, send
from ramet.commands.system.process.signal_numbers import signal_number
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.patterns import Matcher, PatternError


@dataclass(frozen=True, slots=True)
class PgrepOptions:
    full: bool = flag("-f", "--full", help="match the whole command line")
    exact: bool = flag("-x", "--exact", help="match names exactly")
    invert: bool = flag("-v", "--inverse", help="those that do not match")
    icase: bool = flag("-i", "--ignore-case", help="ignore case")
    which: str = choose({"-n --newest": "newest", "-o --oldest": "oldest"}, default="", help="only one of them")
    list_name: bool = flag("-l", "--list-name", help="names as well as numbers")
    list_full: bool = flag("-a", "--list-full", help="command lines as well as numbers")
    delimiter: str = value("-d", "--delimiter", metavar="STRING", default="\n", help="between numbers")
    parent: str | None = value("-P", "--parent", metavar="PPID,...", help="only children of these")
    user: str | None = value("-u", "--euid", metavar="USER,...", help="only of these users")
    real_user: str | None = value("-U", "--uid", metavar="USER,...", help="only of these users")
    counts: bool = flag("-c", "--count", help="only how many there are")
    signal: str = value("--signal", metavar="SIGNAL", default="TERM", help="the signal that pkill sends")
    echo: bool = flag("-e", "--echo", help="tell what was killed")


def _signals(words: list[str]) -> list[str]:
    """`pkill -9 NAME`, `pkill -TERM NAME`."""
    for place, word in enumerate(words):
        if re.fullmatch(r"-(\d+|[A-Z][A-Z0-9]+)", word) and signal_number(word[1:]) is not None:
            return [*words[:place], f"--signal={word[1:]}", *words[place + 1 :]]
    return words


def _found(proc: Proc, o: PgrepOptions, operands: list[str]) -> list[tuple[int, str]]:
    if len(operands) > 1:
        raise UsageError("only one pattern can be provided", 2)
    limited = o.parent is not None or o.user is not None or o.real_user is not None
    if not operands and not limited:
        raise UsageError("no matching criteria specified", 2)
    matcher = _matcher(operands[0], o, proc) if operands else None
    users = {name for text in (o.user, o.real_user) if text is not None for name in text.split(",")}
    known = {proc.user.name, str(proc.user.uid)}
    rows: list[tuple[int, str]] = []
    # The last one is this command.
    for pid, parent, line, _ in running(proc)[:-1]:
        if o.parent is not None and str(parent) not in o.parent.split(","):
            continue
        if users and not users & known:
            continue
        text = line if o.full else line.split(" ", 1)[0].rpartition("/")[2]
        if (matcher is None or matcher.test(encode(text))) != o.invert:
            rows.append((pid, line))
    if o.which and rows:
        return [max(rows) if o.which == "newest" else min(rows)]
    return rows


def _matcher(pattern: str, o: PgrepOptions, proc: Proc) -> Matcher:
    source = f"^({pattern})$" if o.exact else pattern
    try:
        seconds = proc.budget.limits.regex_seconds
        return patterns.compile(encode(source), patterns.POSIX_EXTENDED, icase=o.icase, seconds=seconds)
    except PatternError as error:
        raise UsageError(str(error), 2, hint=False) from None


async def pgrep(proc: Proc, o: PgrepOptions, operands: list[str]) -> int:
    rows = await offload_long(proc, operands, partial(_found, proc, o, operands))
    if o.counts:
        await proc.emit(b"%d\n" % len(rows))
    elif rows:
        shown = [
            f"{pid} {line}" if o.list_full else f"{pid} {line.split(' ', 1)[0]}" if o.list_name else str(pid)
            for pid, line in rows
        ]
        await proc.emit(encode(o.delimiter.join(shown) + "\n"))
    return 0 if rows else 1


async def pkill(proc: Proc, o: PgrepOptions, operands: list[str]) -> int:
    number = signal_number(o.signal)
    if number is None:
        raise UsageError(f"unknown signal name {o.signal}", 2, hint=False)
    rows = await offload_long(proc, operands, partial(_found, proc, o, operands))
    # Never signal the shell that runs this command.
    killed = [(pid, line) for pid, line in rows if pid != running(proc)[0][0] and send(proc, pid, number)]
    if o.counts:
        await proc.emit(b"%d\n" % len(killed))
    elif o.echo:
        await proc.emit(encode("".join(f"{line.split(' ', 1)[0]} killed (pid {pid})\n" for pid, line in killed)))
    return 0 if killed else 1


COMMANDS = [
    Command(
        "pgrep",
        pgrep,
        PgrepOptions,
        summary="Look up processes of the workspace by name.",
        usage="[OPTION]... PATTERN",
        bad_usage=2,
        examples=[("pgrep -fa sleep", "with their command lines")],
        version_letters="V",
        help_letters="h",
        hint="`{} --help'",
    ),
    Command(
        "pkill",
        pkill,
        PgrepOptions,
        summary="Signal processes of the workspace by name.",
        usage="[-SIGNAL] [OPTION]... PATTERN",
        bad_usage=2,
        rewrite=_signals,
        examples=[("pkill -f 'sleep 100'", "end a job by its command line")],
        version_letters="V",
        help_letters="h",
        hint="`{} --help'",
    ),
]
