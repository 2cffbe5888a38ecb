"""`tar -x`: extract members; no name or link leads out of the target directory."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

from ramet.commands.archives.tar.format import BLOCK, CONTINUED, FIFO, HARDLINK, SYMLINK, Member, Members
from ramet.commands.archives.tar.job import TarJob, environment
from ramet.commands.archives.tar.names import listed_name, member_line, quoted, safe_name, shown_name, within
from ramet.commands.files.cp import back_up, backups, lookup, sibling
from ramet.core import ops
from ramet.core.errors import Unsupported, reason
from ramet.core.paths import Path, encode
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import IteratorReader
from ramet.text.strftime import NANO


async def extract_member(job: TarJob, member: Member, members: Members, later: list[tuple[Path, Member]]) -> None:
    proc, o = job.proc, job.o
    name = safe_name(job, member.name, "r")
    if name is None:
        return
    if job.verbose:
        job.say(
            member_line(job, member) if job.verbose > 1 else shown_name(job, listed_name(job, member)),
            member.offset // BLOCK + 1,
        )
        if proc.stdout.full and not o.to_stdout:
            await proc.stdout.drain()
    if o.to_stdout:
        if member.is_file:
            async for block in _fairly(job, members):
                await proc.emit(block)
        return
    if o.to_command is not None:
        if member.is_file:
            content = IteratorReader(_fairly(job, members))
            status = await proc.run(["sh", "-c", o.to_command], stdin=content, env=_member_environ(job, member, name))
            if status and not o.ignore_command_error:
                job.complain(f"{shown_name(job, name)}: Child returned status {status}")
        return
    if member.kind == CONTINUED:
        job.complain(f"{shown_name(job, name)}: Cannot extract -- file is continued from another volume")
        return
    path = job.path(name)
    if not await within(job, path):
        job.complain(f"{shown_name(job, name)}: Cannot open: a link in the path leads out of the directory")
        return
    try:
        await _place(job, member, members, name, path, later)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        job.complain(f"{shown_name(job, name)}: Cannot {'mkdir' if member.is_dir else 'open'}: {reason(error)}")


async def _fairly(job: TarJob, members: Members) -> AsyncIterator[bytes]:
    """Yield the content of a member and yield the event loop: holes may be of any size."""
    async for block in members.content():
        yield block
        await job.proc.budget.yield_turn()


async def _place(
    job: TarJob, member: Member, members: Members, name: str, path: Path, later: list[tuple[Path, Member]]
) -> None:
    proc, o = job.proc, job.o
    existing = await lookup(proc, path)
    if member.is_dir:
        if existing is None:
            await ops.make_dirs(proc.fs, path)
        elif not existing.is_dir:
            followed = await lookup(proc, path, follow=True) if o.keep_links else None
            if followed is None or not followed.is_dir:
                await proc.fs.remove(path)
                await proc.fs.mkdir(path)
        elif o.overwrite == "unlink":
            try:
                await proc.fs.remove(path)
                await proc.fs.mkdir(path)
            except OSError as error:
                job.complain(f"{shown_name(job, name.rstrip('/'))}: Cannot unlink: {reason(error)}")
                return
        elif o.overwrite == "skip" and job.verbose:
            proc.complain(f"{shown_name(job, name.rstrip('/'))}: skipping existing file")
        if existing is None or o.overwrite_dir:
            later.append((path, member))
        return
    if existing is not None:
        if o.overwrite == "keep":
            await _tell_kept(job, member, name, existing)
            return
        if o.overwrite == "skip":
            if job.verbose:
                proc.complain(f"{shown_name(job, name)}: skipping existing file")
            return
        if o.overwrite == "newer" and (existing.mtime_ns or 0) >= member.mtime * NANO:
            job.proc.complain(f"Current {quoted(job, name)} is newer or same age")
            return
        await _make_room(job, name, path, existing)
    else:
        await ops.make_dirs(proc.fs, path.parent)
    if member.kind == SYMLINK:
        target = member.link if job.rename is None else job.rename(member.link, "s")
        await proc.fs.write(path, encode(target), How.LINK)
        if not o.touch:
            await ops.keep_link_time(proc.fs, path, int(member.mtime * NANO))
        return
    if member.kind == HARDLINK:
        linked = safe_name(job, member.link, "h")
        if linked is None:
            return
        source = job.path(linked)
        if not await within(job, source) or ((await proc.fs.stat(source)).kind is Kind.LINK and not o.absolute):
            job.complain(
                f"{shown_name(job, name)}: Cannot hard link to {quoted(job, linked)}: it is not inside the directory"
            )
            return
        try:
            await proc.fs.link(source, path)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOTSUP):
                raise
            await proc.fs.write(path, proc.fs.read(source))
        return
    if member.kind == FIFO:
        await proc.fs.mkfifo(path)
        await restore_attributes(job, path, member)
        return
    if not member.is_file:
        job.complain(f"{shown_name(job, name)}: Cannot mknod: device files are not supported here")
        return
    await proc.fs.write(path, _fairly(job, members))
    await restore_attributes(job, path, member)


async def _tell_kept(job: TarJob, member: Member, name: str, existing: Stat) -> None:
    """Report an existing file that is kept; an identical hard link is silent."""
    doing = "open"
    if member.kind == SYMLINK:
        doing = f"create symlink to {quoted(job, member.link)}"
    elif member.kind == FIFO:
        doing = "mkfifo"
    elif member.kind == HARDLINK:
        linked = await lookup(job.proc, job.path(member.link))
        if linked is not None and linked.inode is not None and linked.inode == existing.inode:
            return
        doing = f"hard link to {quoted(job, member.link)}"
    job.complain(f"{shown_name(job, name)}: Cannot {doing}: File exists")


async def _make_room(job: TarJob, name: str, path: Path, existing: Stat) -> None:
    """Back up or remove an existing file; a directory only if it is or may be emptied."""
    proc, o = job.proc, job.o
    if existing.is_dir:
        if o.recursive_unlink:
            await ops.remove_tree(proc.fs, path)
            return
        try:
            await proc.fs.remove(path)
        except OSError:
            raise OSError(errno.EEXIST, "", name) from None
    elif backups(o.backup, o.suffix):
        moved = await back_up(proc, path, o.backup, o.suffix)
        if job.verbose:
            job.say(f"Renaming {quoted(job, name)} to {quoted(job, sibling(name, moved))}")
    else:
        await proc.fs.remove(path)


def _member_environ(job: TarJob, member: Member, name: str) -> dict[str, str]:
    """Return the environment of a command that gets the content of a member."""
    return {
        **job.proc.env,
        **environment(job),
        "TAR_FILETYPE": "f",
        "TAR_MODE": f"{member.mode:04o}",
        "TAR_FILENAME": name,
        "TAR_REALNAME": member.name,
        "TAR_UNAME": member.owner,
        "TAR_GNAME": member.group,
        "TAR_MTIME": str(int(member.mtime)),
        "TAR_SIZE": str(member.size),
        "TAR_UID": str(member.uid),
        "TAR_GID": str(member.gid),
    }


async def restore_attributes(job: TarJob, path: Path, member: Member) -> None:
    mode = member.mode if job.o.preserve else member.mode & ~job.proc.umask
    try:
        await job.proc.fs.setattr(
            path, Attrs(mode=mode & 0o7777, mtime_ns=None if job.o.touch else int(member.mtime * NANO))
        )
    except Unsupported:
        return
