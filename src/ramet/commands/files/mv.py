"""mv: rename files, or copy and delete across mounts."""

from __future__ import annotations

import errno

from ramet.commands.files.cp import (
    Pair,
    back_up,
    backups,
    check_clobbering,
    confirm,
    destination,
    lookup,
    make_copier,
    pairs,
    sibling,
)
from ramet.commands.files.cp_options import CpOptions, MvOptions
from ramet.commands.framework.command import Command, quote
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core import ops
from ramet.core.errors import fail, reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat


async def mv(proc: Proc, o: MvOptions, operands: list[str]) -> int:
    check_clobbering(o.clobber, o.backup, o.suffix)
    status = 0
    made: set[Path] = set()
    for pair in await pairs(proc, operands, o.target, o.no_target, o.strip_slashes):
        try:
            good = await _move(proc, o, pair, made)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            proc.complain(f"cannot move {quote(pair.source)} to {quote(pair.target)}: {reason(error)}")
            good = False
        status = status if good else 1
    return status


async def _one_file(proc: Proc, src: Path, dst: Path, stat: Stat, there: Stat, kept: bool) -> bool:
    """Return whether moving would lose a file that has both names, or that the link to be moved points to."""
    if src == dst:
        return True
    if kept or stat.is_dir or stat.inode is None:
        return False
    if stat.kind is Kind.LINK and there.kind is not Kind.LINK:
        followed = await lookup(proc, src, follow=True)
        if followed is None:
            return False
        stat, src = followed, await proc.fs.resolve(src)
    return stat.inode == there.inode and proc.fs.mount_of(src) == proc.fs.mount_of(dst)


async def _move(proc: Proc, o: MvOptions, pair: Pair, made: set[Path]) -> bool:
    source, target = pair.source, pair.target
    try:
        src = proc.path(source)
        stat = await proc.fs.stat(src)
    except OSError as error:
        proc.complain(f"cannot stat {quote(source)}: {reason(error)}")
        return False
    dst = proc.path(target)
    if source.endswith("/") and not stat.is_dir:
        followed = await lookup(proc, src, follow=True)
        leads_on = followed is not None and followed.is_dir
        failed = f"move {quote(source)} to {quote(target)}" if leads_on else f"stat {quote(source)}"
        proc.complain(f"cannot {failed}: {'No such file or directory' if followed is None else 'Not a directory'}")
        return False
    try:
        there = await destination(proc, target)
    except NotADirectoryError as error:
        proc.complain(f"cannot stat {quote(target)}: {reason(error)}")
        return False
    if there is not None:
        if await _one_file(proc, src, dst, stat, there, backups(o.backup, o.suffix)):
            proc.complain(f"{quote(source)} and {quote(target)} are the same file")
            return False
        if dst in made:
            proc.complain(f"will not overwrite just-created {quote(target)} with {quote(source)}")
            return False
        if o.clobber == "never" or (o.update and (there.mtime_ns or 0) >= (stat.mtime_ns or 0)):
            return True
        if o.clobber == "ask" and not await confirm(proc, f"overwrite {quote(target)}?"):
            return True
        if stat.is_dir and not there.is_dir:
            proc.complain(f"cannot overwrite non-directory {quote(target)} with directory {quote(source)}")
            return False
        if there.is_dir and not stat.is_dir:
            proc.complain(f"cannot overwrite directory {quote(target)} with non-directory")
            return False
    elif target.endswith("/") and not stat.is_dir:
        proc.complain(f"cannot move {quote(source)} to {quote(target)}: Not a directory")
        return False
    if source.rstrip("/").rpartition("/")[2] in (".", ".."):
        raise fail(errno.EBUSY, source)
    if stat.is_dir and dst.under(src):
        proc.complain(f"cannot move {quote(source)} to a subdirectory of itself, {quote(target)}")
        return False
    note = ""
    if there is not None and backups(o.backup, o.suffix):
        note = f" (backup: {quote(sibling(target, await back_up(proc, dst, o.backup, o.suffix)))})"
    try:
        await proc.fs.rename(src, dst)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.ENOTSUP):
            raise
        await _move_across(proc, pair, src, dst, there)
    made.add(dst)
    if o.verbose:
        await proc.emit(encode(f"renamed {quote(source)} -> {quote(target)}{note}\n"))
    return True


async def _move_across(proc: Proc, pair: Pair, src: Path, dst: Path, there: Stat | None) -> None:
    """Between mounts: copy everything, then remove the source; nothing is removed when the copy failed."""
    if there is not None:
        await proc.fs.remove(dst)
    copier = make_copier(proc, CpOptions(archive=True))
    copier.verb = "move"
    if not await copier.copy(pair) or copier.status:
        raise fail(errno.EIO, dst, "the copy between mounts failed; the source was kept")
    await ops.remove_tree(proc.fs, src)


COMMANDS = [
    Command(
        "mv",
        mv,
        MvOptions,
        summary="Rename SOURCE to DEST, or move SOURCE(s) to DIRECTORY.",
        usage="[OPTION]... SOURCE... DEST",
        ignored=("-Z --context",),
        original="GNU coreutils 9.1",
        stdin_error=StdinError("", "error closing file: {}", directory="error closing file"),
    ),
]
