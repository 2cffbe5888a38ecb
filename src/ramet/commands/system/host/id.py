"""id: the numbers and names of the user and group."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, flag, quote, typographic
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class IdOptions:
    context: bool = flag("-Z", "--context", help="print only the security context of the process")
    group: bool = flag("-g", "--group", help="print only the effective group ID")
    groups: bool = flag("-G", "--groups", help="print all group IDs")
    name: bool = flag("-n", "--name", help="print a name instead of a number, for -ugG")
    real: bool = flag("-r", "--real", help="print the real ID instead of the effective ID, with -ugG")
    user: bool = flag("-u", "--user", help="print only the effective user ID")
    zero: bool = flag("-z", "--zero", help="delimit entries with NUL characters, not whitespace")


async def id_(proc: Proc, o: IdOptions, operands: list[str]) -> int:
    user = proc.user
    if sum((o.group, o.groups, o.user, o.context)) > 1:
        raise UsageError('cannot print "only" of more than one choice')
    if (o.name or o.real) and not (o.group or o.groups or o.user):
        raise UsageError("cannot print only names or real IDs in default format")
    if o.context:
        raise UsageError("--context (-Z) works only on an SELinux-enabled kernel", hint=False)
    status = 0
    for word in operands or [user.name]:
        await proc.budget.yield_turn()
        if word not in (user.name, str(user.uid)):
            proc.complain(typographic(proc, f"{quote(word)}: no such user"))
            status = 1
            continue
        end = "\0" if o.zero else "\n"
        if o.user:
            text = user.name if o.name else str(user.uid)
        elif o.group or o.groups:
            text = user.group if o.name else str(user.gid)
        else:
            text = f"uid={user.uid}({user.name}) gid={user.gid}({user.group}) groups={user.gid}({user.group})"
        await proc.emit(encode(text + end))
    return status


async def groups(proc: Proc, o: object, operands: list[str]) -> int:
    user = proc.user
    if not operands:
        await proc.emit(encode(user.group + "\n"))
        return 0
    status = 0
    for word in operands:
        await proc.budget.yield_turn()
        if word == user.name:
            await proc.emit(encode(f"{word} : {user.group}\n"))
        else:
            proc.complain(typographic(proc, f"{quote(word)}: no such user"))
            status = 1
    return status


COMMANDS = [
    Command(
        "id",
        id_,
        IdOptions,
        summary="Print user and group information.",
        usage="[OPTION]... [USER]...",
        ignored=("-a",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
