"""Reading: man and help from the declarations, less and more as cat, clear and tput."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, help_text, value
from ramet.core.paths import encode
from ramet.core.proc import Proc


def _command(name: str) -> Command | None:
    from ramet.commands.framework import table

    found = table.COMMANDS.get(name)
    return found.load() if isinstance(found, table.Lazy) else None


def page(command: Command) -> str:
    """The manual page of a command, made from its declaration."""
    name = command.name.upper()
    summary = command.summary.rstrip(".")
    if summary[:1].isupper() and summary[1:2].islower():
        summary = summary[0].lower() + summary[1:]
    lines = [
        f"{name}(1)".ljust(32) + "User Commands".ljust(32) + f"{name}(1)",
        "",
        "NAME",
        f"       {command.name} - {summary}",
        "",
        "SYNOPSIS",
    ]
    lines += [f"       {command.name} {command.usage}".rstrip(), "", "DESCRIPTION"]
    body = help_text(command).split("\n")[1:]
    lines += [f"       {line}".rstrip() for line in body]
    return "\n".join(lines).rstrip() + "\n"


@dataclass(frozen=True, slots=True)
class ManOptions:
    keyword: bool = flag("-k", "--apropos", help="search the short descriptions for a keyword")
    whatis: bool = flag("-f", "--whatis", help="show a short description")
    where: bool = flag("-w", "--where", "--path", help="print the location of the page")


async def man(proc: Proc, o: ManOptions, operands: list[str]) -> int:
    from ramet.commands.framework.table import MODULES

    names = [w for w in operands if not w.isdigit()]
    if not names:
        proc.stderr.write(b"What manual page do you want?\nFor example, try 'man man'.\n")
        return 1
    status = 0
    for name in names:
        if o.keyword:
            hits = [
                c
                for n in sorted(MODULES)
                if (c := _try(n)) is not None and (name.lower() in n or name.lower() in c.summary.lower())
            ]
            await proc.emit(encode("".join(f"{c.name} (1) - {c.summary}\n" for c in hits)))
            if not hits:
                proc.stderr.write(encode(f"{name}: nothing appropriate.\n"))
                status = 16
            continue
        command = _try(name)
        if command is None:
            proc.stderr.write(encode(f"No manual entry for {name}\n"))
            status = 16
        elif o.whatis:
            await proc.emit(encode(f"{name} (1) - {command.summary}\n"))
        elif o.where:
            await proc.emit(encode(f"/usr/share/man/man1/{name}.1\n"))
        else:
            await proc.emit(encode(page(command)))
    return status


def _try(name: str) -> Command | None:
    try:
        return _command(name)
    except ImportError:
        return None


async def help_(proc: Proc, o: object, operands: list[str]) -> int:
    from ramet.commands.framework.table import MODULES

    if not operands:
        await proc.emit(encode("These commands are available; `NAME --help` and `man NAME` say more.\n\n"))
        names = sorted(n for n in MODULES if n != "[")
        width = max(map(len, names)) + 2
        per_row = 80 // width
        for i in range(0, len(names), per_row):
            await proc.emit(encode("".join(n.ljust(width) for n in names[i : i + per_row]).rstrip() + "\n"))
        return 0
    status = 0
    for name in operands:
        command = _try(name)
        if command is None:
            proc.complain(f"no help topics match '{name}'")
            status = 1
        else:
            await proc.emit(encode(help_text(command)))
    return status


@dataclass(frozen=True, slots=True)
class ClearOptions:
    terminal: str | None = value("-T", metavar="TERM", help="use this TERM instead of $TERM")


async def clear(proc: Proc, o: ClearOptions, operands: list[str]) -> int:
    terminal = o.terminal or proc.env.get("TERM")
    if not terminal:
        proc.stderr.write(b"TERM environment variable not set.\n")
        return 1
    if terminal == "dumb":
        return 1
    await proc.emit(b"\x1b[H\x1b[2J\x1b[3J")
    return 0


@dataclass(frozen=True, slots=True)
class TputOptions:
    terminal: str | None = value("-T", metavar="TERM", help="use this TERM instead of $TERM")


_TPUT = {
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "smul": "\x1b[4m",
    "rmul": "\x1b[24m",
    "rev": "\x1b[7m",
    "smso": "\x1b[7m",
    "rmso": "\x1b[27m",
    "sgr0": "\x1b(B\x1b[m",
    "clear": "\x1b[H\x1b[2J",
    "el": "\x1b[K",
    "ed": "\x1b[J",
    "civis": "\x1b[?25l",
    "cnorm": "\x1b[?25h",
    "home": "\x1b[H",
    "bel": "\a",
    "cr": "\r",
    "sc": "\x1b7",
    "rc": "\x1b8",
    "op": "\x1b[39;49m",
    "smcup": "\x1b[?1049h",
    "rmcup": "\x1b[?1049l",
    "blink": "\x1b[5m",
    "sitm": "\x1b[3m",
    "ritm": "\x1b[23m",
    "reset": "\x1bc",
    "init": "",
}


async def tput(proc: Proc, o: TputOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("usage: tput [-T term] capname [parameters]", hint=False, status=2)
    terminal = o.terminal or proc.env.get("TERM")
    if not terminal:
        proc.complain("No value for $TERM and no -T specified")
        return 2
    status, rest = 0, operands
    while rest and not status:
        name, *rest = rest
        status, rest = await _capability(proc, terminal, name, rest)
    return status


async def _capability(proc: Proc, terminal: str, name: str, rest: list[str]) -> tuple[int, list[str]]:
    """The status of one capability, and the words behind it and its parameters."""
    count = {"setaf": 1, "setab": 1, "cup": 2}.get(name, 0)
    args = [int(word) for word in rest[:count] if word.isdigit()]
    rest = rest[count:]
    if name in ("cols", "lines", "colors"):
        sizes = {
            "cols": proc.env.get("COLUMNS") or "80",
            "lines": proc.env.get("LINES") or "24",
            "colors": "256" if "256" in terminal else "-1" if terminal == "dumb" else "8",
        }
        await proc.emit(encode(sizes[name] + "\n"))
    elif name == "longname":
        await proc.emit(b"a terminal that is not there")
    elif name not in _TPUT and not count:
        proc.complain(f"unknown terminfo capability '{name}'")
        return 4, rest
    elif terminal == "dumb" or len(args) < count:
        return 1, rest
    elif name == "cup":
        await proc.emit(f"\x1b[{args[0] + 1};{args[1] + 1}H".encode())
    elif count:
        await proc.emit(_colour(args[0], 30 if name == "setaf" else 40))
    else:
        await proc.emit(_TPUT[name].encode())
    return 0, rest


def _colour(color: int, base: int) -> bytes:
    if color < 8:
        return b"\x1b[%dm" % (base + color)
    return b"\x1b[%dm" % (base + 52 + color) if color < 16 else b"\x1b[%d;5;%dm" % (base + 8, color)


COMMANDS = [
    Command(
        "man",
        man,
        ManOptions,
        summary="Show the manual page of a command, made from its declaration.",
        usage="[OPTION]... NAME...",
        version_letters="V",
        help_letters="h",
    ),
    Command("help", help_, summary="List the commands, or show the help of one.", usage="[NAME]..."),
    Command("clear", clear, ClearOptions, summary="Clear the terminal screen.", usage="", ignored=("-x", "-V")),
    Command(
        "tput",
        tput,
        TputOptions,
        summary="Print terminal control sequences.",
        usage="[-T TERM] CAPNAME [PARAMETER]...",
        version_letters="V",
    ),
]
