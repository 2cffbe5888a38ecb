"""Reading: man and help from the declarations, less and more as cat, clear and tput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramet.commands.declare import Command, UsageError, flag, help_text, value
from ramet.commands.inputs import Inputs
from ramet.core.paths import encode
from ramet.core.proc import Proc


def _command(name: str) -> Command | None:
    from ramet.commands import table

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
    from ramet.commands.table import MODULES

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
    from ramet.commands.table import MODULES

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
class PagerOptions:
    number: bool = flag("-N", "--LINE-NUMBERS", help="show a line number at the beginning of each line")
    squeeze: bool = flag("-s", "--squeeze-blank-lines", help="squeeze several blank lines into one")


async def pager(proc: Proc, o: PagerOptions, operands: list[str]) -> int:
    """Without a terminal there is nothing to page: the files are passed through."""
    operands = [w for w in operands if not w.startswith("+")]
    inputs = Inputs(proc, operands)
    if len(operands) > 1 and proc.argv[0].endswith("more"):
        for i, word in enumerate(operands):
            one = Inputs(proc, [word])
            await proc.emit(encode(f"{chr(10) if i else ''}::::::::::::::\n{word}\n::::::::::::::\n"))
            async for block in one.blocks():
                await proc.emit(block)
            inputs.status |= one.status
        return inputs.status
    number = 0
    blank = False
    async for block in inputs.joined_lines() if o.number or o.squeeze else inputs.blocks():
        if o.number or o.squeeze:
            out: list[bytes] = []
            for line in block.splitlines(keepends=True):
                if o.squeeze and blank and line == b"\n":
                    continue
                blank = line == b"\n"
                number += 1
                out.append((b"%7d " % number if o.number else b"") + line)
            block = b"".join(out)
        await proc.emit(block)
    return inputs.status


async def clear(proc: Proc, o: object, operands: list[str]) -> int:
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


_PARAMETERS: Final = 9
"""How many a capability can have."""


async def tput(proc: Proc, o: TputOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("usage: tput [-T term] capname [parameters]", hint=False, status=2)
    name, args = operands[0], [int(a) for a in operands[1 : 1 + _PARAMETERS] if a.isdigit()]
    if name in ("cols", "lines", "colors"):
        sizes = {
            "cols": proc.env.get("COLUMNS") or "80",
            "lines": proc.env.get("LINES") or "24",
            "colors": "256" if "256" in (o.terminal or proc.env.get("TERM", "")) else "8",
        }
        await proc.emit(encode(sizes[name] + "\n"))
    elif name in ("setaf", "setab") and args:
        color, base = args[0], 30 if name == "setaf" else 40
        await proc.emit(
            (
                f"\x1b[{base + color}m"
                if color < 8
                else f"\x1b[{base + 52 + color}m"
                if color < 16
                else f"\x1b[{base + 8};5;{color}m"
            ).encode()
        )
    elif name == "cup" and len(args) == 2:
        await proc.emit(f"\x1b[{args[0] + 1};{args[1] + 1}H".encode())
    elif name in _TPUT:
        await proc.emit(_TPUT[name].encode())
    elif name == "longname":
        await proc.emit(b"a terminal that is not there")
    else:
        proc.complain(f"unknown terminfo capability '{name}'")
        return 4
    return 0


_IGNORED = (
    "-R --RAW-CONTROL-CHARS",
    "-r --raw-control-chars",
    "-S --chop-long-lines",
    "-F --quit-if-one-screen",
    "-X --no-init",
    "-i --ignore-case",
    "-I --IGNORE-CASE",
    "-e --quit-at-eof",
    "-E --QUIT-AT-EOF",
    "-M --LONG-PROMPT",
    "-m --long-prompt",
    "-n --line-numbers",
    "-q --quiet",
    "-K --quit-on-intr",
    "-f --force",
    "-c",
    "-d",
    "-l",
    "-p",
    "-u",
    "-x= --tabs=",
    "-P= --prompt=",
)
COMMANDS = [
    Command(
        "man",
        man,
        ManOptions,
        summary="Show the manual page of a command, made from its declaration.",
        usage="[OPTION]... NAME...",
    ),
    Command("help", help_, summary="List the commands, or show the help of one.", usage="[NAME]..."),
    Command(
        "less", pager, PagerOptions, summary="Show files; without a terminal they are passed through.", ignored=_IGNORED
    ),
    Command(
        "more", pager, PagerOptions, summary="Show files; without a terminal they are passed through.", ignored=_IGNORED
    ),
    Command("clear", clear, summary="Clear the terminal screen.", usage="", ignored=("-x", "-V", "-T=")),
    Command(
        "tput", tput, TputOptions, summary="Print terminal control sequences.", usage="[-T TERM] CAPNAME [PARAMETER]..."
    ),
]
