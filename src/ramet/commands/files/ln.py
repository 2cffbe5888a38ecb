"""ln and link: create hard and symbolic links."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from ramet.commands.files.cp import back_up, backups, confirm, lookup, pairs, sibling
from ramet.commands.framework.command import Command, UsageError, called, choose, flag, mixed, optional, quote, value
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import fail, reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Kind


@dataclass(frozen=True, slots=True)
class LnOptions:
    backup: str = mixed(
        flag("-b", const="default", help="make a backup of each existing destination file"),
        optional("--backup", metavar="CONTROL", const="default", help="like -b, with a kind of backup"),
        default="",
    )
    how: str = choose(
        {"-f --force": "force", "-i --interactive": "ask"},
        default="",
        help={
            "-f --force": "remove existing destination files",
            "-i --interactive": "prompt whether to remove destinations",
        },
    )
    follow: bool = choose(
        {"-L --logical": True, "-P --physical": False},
        default=False,
        help={
            "-L --logical": "dereference TARGETs that are symbolic links",
            "-P --physical": "make hard links directly to symbolic links",
        },
    )
    no_deref: bool = flag(
        "-n", "--no-dereference", help="treat LINK_NAME as a normal file if it is a symbolic link to a directory"
    )
    relative: bool = flag("-r", "--relative", help="with -s, create links relative to link location")
    symbolic: bool = flag("-s", "--symbolic", help="make symbolic links instead of hard links")
    suffix: str | None = value("-S", "--suffix", metavar="SUFFIX", help="override the usual backup suffix")
    target: str | None = value(
        "-t", "--target-directory", metavar="DIRECTORY", help="specify the DIRECTORY in which to create the links"
    )
    no_target: bool = flag("-T", "--no-target-directory", help="treat LINK_NAME as a normal file always")
    verbose: bool = flag("-v", "--verbose", help="print name of each linked file")


async def ln(proc: Proc, o: LnOptions, operands: list[str]) -> int:
    if o.relative and not o.symbolic:
        raise UsageError("cannot do --relative without --symbolic", hint=False)
    if len(operands) == 1 and o.target is None and not o.no_target:
        operands = [operands[0], "."]
    no_target = o.no_target
    if o.no_deref and len(operands) == 2 and o.target is None and operands[1]:
        last = await lookup(proc, proc.path(operands[1]))
        no_target = no_target or (last is not None and last.kind is Kind.LINK)
    status = 0
    for pair in await pairs(proc, operands, o.target, no_target, False):
        try:
            good = await _link(proc, o, pair.source, pair.target)
        except OSError as error:
            kind = "symbolic link" if o.symbolic else "hard link"
            # GNU names the source too, except where the target alone explains the refusal.
            plain = o.symbolic or error.errno in (errno.EEXIST, errno.ENOSPC, errno.EROFS, errno.EDQUOT)
            source = "" if plain else f" => {quote(pair.source)}"
            proc.complain(f"failed to create {kind} {quote(pair.target)}{source}: {reason(error)}")
            good = False
        status = status if good else 1
    return status


async def _link(proc: Proc, o: LnOptions, source: str, target: str) -> bool:
    if not o.symbolic:
        try:
            src = proc.path(source)
            stat = await proc.fs.stat(src, o.follow)
            if source.endswith("/") and not stat.is_dir:
                raise fail(errno.ENOTDIR, source)
        except OSError as error:
            proc.complain(f"failed to access {quote(source)}: {reason(error)}")
            return False
        if stat.is_dir:
            proc.complain(f"{called(source)}: hard link not allowed for directory")
            return False
        if o.follow:
            src = await proc.fs.resolve(src)
    dst = proc.path(target)
    there = await lookup(proc, dst)
    kept = ""
    if there is not None:
        if there.is_dir and (o.how or backups(o.backup, o.suffix)):
            proc.complain(f"{called(target)}: cannot overwrite directory")
            return False
        if o.how == "ask" and not await confirm(proc, f"replace {quote(target)}?"):
            return True
        if o.how and (src if not o.symbolic else proc.path(source)) == dst and (o.symbolic or src == dst):
            proc.complain(f"{quote(source)} and {quote(target)} are the same file")
            return False
        if backups(o.backup, o.suffix):
            kept = f"{quote(sibling(target, await back_up(proc, dst, o.backup, o.suffix)))} ~ "
        elif o.how:
            await proc.fs.remove(dst)
    elif target.endswith("/"):
        raise fail(errno.ENOENT, target)
    if o.symbolic:
        content = source
        if o.relative:
            content = relative_to(await _resolved(proc, proc.path(source)), await _resolved(proc, dst.parent))
        if not content:
            proc.complain(f"failed to create symbolic link {quote(target)} -> '': No such file or directory")
            return False
        await proc.fs.write(dst, encode(content), How.LINK)
        if o.verbose:
            await proc.emit(encode(f"{kept}{quote(target)} -> {quote(content)}\n"))
    else:
        await proc.fs.link(src, dst)
        if o.verbose:
            await proc.emit(encode(f"{kept}{quote(target)} => {quote(source)}\n"))
    return True


async def _resolved(proc: Proc, path: Path) -> Path:
    try:
        return await proc.fs.resolve(path, missing_ok=True)
    except OSError:
        return path


def relative_to(path: Path, base: Path) -> str:
    """`path` as seen from the directory `base`."""
    a, b = path.parts, base.parts
    common = 0
    while common < len(a) and common < len(b) and a[common] == b[common]:
        common += 1
    return "/".join([".."] * (len(b) - common) + a[common:]) or "."


async def link(proc: Proc, o: object, operands: list[str]) -> int:
    try:
        await proc.fs.link(proc.path(operands[0]), proc.path(operands[1]))
    except OSError as error:
        proc.complain(f"cannot create link {quote(operands[1])} to {quote(operands[0])}: {reason(error)}")
        return 1
    return 0


COMMANDS = [
    Command(
        "ln",
        ln,
        LnOptions,
        summary="Make links between files.",
        usage="[OPTION]... TARGET... LINK_NAME",
        ignored=("-d -F --directory",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("", "error closing file: {}", directory="error closing file"),
    ),
    Command(
        "link",
        link,
        summary="Create a link named FILE2 to an existing FILE1.",
        usage="FILE1 FILE2",
        min_operands=2,
        max_operands=2,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
