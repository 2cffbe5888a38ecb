"""chown and chgrp: everything belongs to the workspace's user, other owners are refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.files.chmod import named_files
from ramet.commands.framework.command import Command, UsageError, choose, flag, quote, value
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class ChownOptions:
    changes: bool = flag("-c", "--changes", help="like verbose but report only when a change is made")
    quiet: bool = flag("-f", "--silent", "--quiet", help="suppress most error messages")
    verbose: bool = flag("-v", "--verbose", help="output a diagnostic for every file processed")
    deref: bool = choose(
        {"-h --no-dereference": False, "--dereference": True}, default=True, help="affect links, or what they point to"
    )
    from_: str | None = value(
        "--from", metavar="CURRENT_OWNER:CURRENT_GROUP", help="change only if the current owner matches"
    )
    root: bool = choose(
        {"--no-preserve-root": False, "--preserve-root": True}, default=False, help="treat '/' specially, or not"
    )
    reference: str | None = value("--reference", metavar="RFILE", help="use RFILE's owner and group")
    recursive: bool = flag("-R", "--recursive", help="operate on files and directories recursively")
    traverse: str = choose(
        {"-H": "H", "-L": "L", "-P": "P"}, default="P", help="how links to directories are traversed"
    )


async def chown(proc: Proc, o: ChownOptions, operands: list[str]) -> int:
    """All files belong to the workspace's user: that owner is accepted, others are refused."""
    is_group = proc.argv[0].endswith("chgrp")
    files = operands
    user, group = proc.user, None
    if o.reference is None:
        if not operands:
            raise UsageError("missing operand")
        if len(operands) == 1:
            raise UsageError(f"missing operand after {quote(operands[0])}")
        spec, files = operands[0], operands[1:]
        owner, _sep, group = (
            (("", ":", spec) if is_group else spec.partition(":")) if ":" in spec or is_group else (spec, "", "")
        )
        if owner and owner not in (user.name, str(user.uid)):
            if not re.fullmatch(r"\d+", owner) and owner not in ("root", "nobody"):
                raise UsageError(f"invalid user: {quote(spec)}", hint=False)
            return await _refuse_owner(proc, o, files, "ownership" if not is_group else "group")
        if group and group not in (user.group, str(user.gid)):
            if not re.fullmatch(r"\d+", group) and group not in ("root", "nogroup"):
                raise UsageError(f"invalid group: {quote(spec)}", hint=False)
            return await _refuse_owner(proc, o, files, "group" if is_group else "ownership")
    status = 0
    async for word, path, _ in named_files(proc, files, o.recursive, o.quiet, "cannot access"):
        if path is None:
            status = 1
        elif o.verbose:
            name = (
                f"group of {quote(word)} retained as {user.group}"
                if is_group
                else f"ownership of {quote(word)} retained as {user.name}"
            )
            await proc.emit(encode(f"{name}{':' + user.group if group and not is_group else ''}\n"))
    return status


async def _refuse_owner(proc: Proc, o: ChownOptions, files: list[str], what: str) -> int:
    async for word, path, _ in named_files(proc, files, o.recursive, o.quiet, "cannot access"):
        if path is not None and not o.quiet:
            proc.complain(f"changing {what} of {quote(word)}: Operation not permitted")
    return 1


COMMANDS = [
    Command(
        "chown",
        chown,
        ChownOptions,
        summary="Change the owner and/or group of each FILE.",
        usage="[OPTION]... [OWNER][:[GROUP]] FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "chgrp",
        chown,
        ChownOptions,
        summary="Change the group of each FILE to GROUP.",
        usage="[OPTION]... GROUP FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
