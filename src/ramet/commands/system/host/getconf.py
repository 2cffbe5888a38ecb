"""getconf: configuration variables of the system."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc

_CONF = {
    "PAGE_SIZE": "4096",
    "PAGESIZE": "4096",
    "ARG_MAX": "2097152",
    "NAME_MAX": "255",
    "PATH_MAX": "4096",
    "LONG_BIT": "64",
    "_NPROCESSORS_ONLN": "",
    "_NPROCESSORS_CONF": "",
    "OPEN_MAX": "1024",
    "CHAR_BIT": "8",
    "INT_MAX": "2147483647",
    "UINT_MAX": "4294967295",
    "LINE_MAX": "2048",
    "HOST_NAME_MAX": "64",
    "PATH": "/bin:/usr/bin",
    "CLK_TCK": "100",
    "LOGIN_NAME_MAX": "256",
    "PIPE_BUF": "4096",
    "NGROUPS_MAX": "65536",
    "CHILD_MAX": "4096",
    "POSIX_VERSION": "200809",
    "_POSIX_VERSION": "200809",
    "WORD_BIT": "32",
}


_OF_PATHS = frozenset(("NAME_MAX", "PATH_MAX", "PIPE_BUF"))
"""Variables that depend on a path."""


@dataclass(frozen=True, slots=True)
class GetconfOptions:
    all: bool = flag("-a", help="print all variables")


def _conf(proc: Proc) -> dict[str, str]:
    """Return every variable; programs of the machine may have more than one processor."""
    programs = proc.services.programs
    count = "1" if programs is None else str(programs.processors)
    return {name: text or count for name, text in _CONF.items()}


async def getconf(proc: Proc, o: GetconfOptions, operands: list[str]) -> int:
    if o.all:
        await proc.emit(encode("".join(f"{name:<34} {text}\n" for name, text in _conf(proc).items())))
        return 0
    name, *rest = operands or [""]
    if not name or len(rest) > 1 or (name in _OF_PATHS and not rest):
        usage = "Usage: getconf [-v specification] variable_name [pathname]\n       getconf -a [pathname]\n"
        proc.stderr.write(usage.encode())
        return 2
    if name not in _CONF:
        proc.stderr.write(encode(f"getconf: Unrecognized variable `{name}'\n"))
        return 2
    if name in _OF_PATHS:
        try:
            await proc.fs.stat(proc.path(rest[0]), follow=True)
        except OSError as error:
            proc.stderr.write(encode(f"getconf: pathconf: {rest[0]}: {reason(error)}\n"))
            return 3
    await proc.emit(encode(_conf(proc)[operands[0]] + "\n"))
    return 0


COMMANDS = [
    Command("getconf", getconf, GetconfOptions, summary="Query system configuration variables.", usage="NAME [PATH]"),
]
