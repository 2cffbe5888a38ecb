"""man: manual pages, made from the declarations of commands."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag, help_text
from ramet.core.paths import encode
from ramet.core.proc import Proc


def _command(name: str) -> Command | None:
    from ramet.commands.framework import table

    found = table.COMMANDS.get(name)
    return found.load() if isinstance(found, table.Lazy) else None


def page(command: Command) -> str:
    """Return the manual page of a command, made from its declaration."""
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
                if (c := load_command(n)) is not None and (name.lower() in n or name.lower() in c.summary.lower())
            ]
            await proc.emit(encode("".join(f"{c.name} (1) - {c.summary}\n" for c in hits)))
            if not hits:
                proc.stderr.write(encode(f"{name}: nothing appropriate.\n"))
                status = 16
            continue
        command = load_command(name)
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


def load_command(name: str) -> Command | None:
    try:
        return _command(name)
    except ImportError:
        return None


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
]
