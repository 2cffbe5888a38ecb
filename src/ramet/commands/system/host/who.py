"""who and users: logged-in users, of which a workspace has none."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.proc import Proc


async def users(proc: Proc, o: object, operands: list[str]) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class WhoOptions:
    count: bool = flag("-q", "--count", help="all login names and number of users logged on")
    heading: bool = flag("-H", "--heading", help="print line of column headings")
    all: bool = flag("-a", "--all", help="same as -b -d --login -p -r -t -T -u")
    me: bool = flag("-m", help="only hostname and user associated with stdin")


async def who(proc: Proc, o: WhoOptions, operands: list[str]) -> int:
    """A workspace has no logins."""
    if o.count:
        await proc.emit(b"\n# users=0\n")
    elif o.heading:
        await proc.emit(b"NAME     LINE         TIME             COMMENT\n")
    return 0


COMMANDS = [
    Command(
        "who",
        who,
        WhoOptions,
        summary="Print who is logged in; there are no logins here.",
        usage="[OPTION]... [FILE | ARG1 ARG2]",
        ignored=("-b", "-d", "-l", "-p", "-r", "-s", "-t", "-T -w", "-u"),
        original="GNU coreutils 9.1",
    ),
    Command(
        "users",
        users,
        summary="Print the names of logged-in users; there are none here.",
        usage="[FILE]",
        original="GNU coreutils 9.1",
    ),
]
