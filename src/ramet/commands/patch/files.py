"""Choose, change, back up, rename or remove the file of a patch; never outside the directory."""

from __future__ import annotations

import re
from datetime import tzinfo

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import shown
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.commands.patch.apply import Applied, Way, apply_hunks, fuzz_needed, run_ed
from ramet.commands.patch.hunks import FilePatch, Hunk, keep_lines, stripped_name
from ramet.commands.patch.job import PatchJob
from ramet.commands.patch.rejects import save_rejects
from ramet.core import ops
from ramet.core.paths import Path, decode, encode
from ramet.core.stat import Attrs
from ramet.text.strftime import NANO, zone, zone_of


async def _choose(job: PatchJob, item: FilePatch) -> str | None:
    """Choose the file of a patch: an existing one, else the one to create."""
    o = job.o
    names = [item.old_name, item.new_name]
    stripped = [stripped_name(n, o.strip) for n in names] + [stripped_name(item.index_name, o.strip)]
    existing = [n for n in stripped if n and await lookup(job.proc, job.path(n)) is not None]
    if existing:
        return min(existing, key=lambda n: (n.count("/"), len(n.rpartition("/")[2]), len(n)))
    creating = (
        item.new_file
        or (item.deleted if o.reverse else False)
        or (item.new_stamp_epoch if o.reverse else item.old_stamp_epoch)
        or (item.hunks and not (item.hunks[0].new() if o.reverse else item.hunks[0].old()))
    )
    candidates = [n for n in stripped if n]
    if creating and candidates:
        return min(candidates, key=lambda n: (n.count("/"), len(n)))
    return None


async def patch_file(job: PatchJob, item: FilePatch, named: str | None) -> None:
    proc, o = job.proc, job.o
    target = named if named is not None else await _choose(job, item)
    if target is None:
        marks = ("***", "---") if item.kind == "context" else ("---", "+++")
        old, new = item.old_name or "/dev/null", item.new_name or "/dev/null"
        if item.headers is not None:
            old, new = decode(item.headers[0]), decode(item.headers[1])
        await proc.emit(encode(f"can't find file to patch at input line {3 if item.kind != 'normal' else 1}\n"))
        await proc.emit(
            b"Perhaps you used the wrong -p or --strip option?\nThe text leading up to this was:\n"
            b"--------------------------\n"
            if o.strip is not None
            else b"Perhaps you should have used the -p or --strip option?\nThe text leading up to this was:\n"
            b"--------------------------\n"
        )
        await proc.emit(
            encode(
                f"|{marks[0]} {old}\n|{marks[1]} {new}\n"
                "--------------------------\nFile to patch: \nSkip this patch? [y] \nSkipping patch.\n"
            )
        )
        await proc.emit(
            encode(f"{len(item.hunks)} out of {len(item.hunks)} hunk{'' if len(item.hunks) == 1 else 's'} ignored\n")
        )
        job.status = 1
        return
    path = job.path(target)
    if not path.under(job.cwd) and named is None:
        proc.complain(f"Ignoring potentially dangerous file name {target}")
        job.status = 1
        return
    stat = await lookup(proc, path, follow=True)
    data = await ops.read_bytes(proc.fs, path) if stat is not None and not stat.is_dir else b""
    verb = "checking" if o.dry_run else "patching"
    out_name = f" {shown(o.output)} (read from {shown(target)})" if o.output is not None else f" {shown(target)}"
    if item.rename_to is not None and item.rename_from is not None and not o.reverse:
        destination = stripped_name("b/" + item.rename_to, o.strip) or item.rename_to
        await job.say(f"{verb} file {shown(destination)} (renamed from {shown(target)})")
    elif item.kind != "ed":
        creates = item.old_stamp_epoch and not o.reverse and not item.git
        if creates and data and item.hunks and not item.hunks[0].old():
            await job.say(
                f"The next patch would create the file {shown(target)},\nwhich already exists!  Assume -R? [n] \n"
                "Apply anyway? [n] \nSkipping patch."
            )
            await save_rejects(job, item, target, Applied([], [], item.hunks), ignored=True)
            return
        await job.say(f"{verb} file{out_name}")
    lines = keep_lines(data)
    if item.kind == "ed":
        result = Applied(run_ed(lines, item.ed_script), [], [])
    else:
        hunks = [h.reversed() for h in item.hunks] if o.reverse else item.hunks
        result = await _try(job, lines, hunks)
    for note in result.notes:
        await job.say(note)
    if result.conflicts:
        job.status = 1
    if result.already:
        await save_rejects(job, item, target, result, ignored=True)
        return
    await _store(job, item, target, path, data, result, stat is not None)
    if result.rejects:
        await save_rejects(job, item, target, result, ignored=False)


def _way(job: PatchJob) -> Way:
    return Way(job.fuzz, job.o.ignore_space, job.o.merge, job.o.ifdef, job.proc.budget.check)


async def _try(job: PatchJob, lines: list[bytes], hunks: list[Hunk]) -> Applied:
    o = job.o
    if hunks and not o.force and o.merge is None and _looks_reversed(job, lines, hunks[0]):
        word = "Unreversed patch detected!" if o.reverse else "Reversed (or previously applied) patch detected!"
        if o.forward:
            await job.proc.emit(encode(f"{word}  Skipping patch.\n"))
            return Applied(lines, [], hunks, already=True)
        if o.batch:
            await job.proc.emit(encode(f"{word}  {'Ignoring' if o.reverse else 'Assuming'} -R.\n"))
            return apply_hunks(lines, [h.reversed() for h in hunks], _way(job))
        question = "Ignore" if o.reverse else "Assume"
        await job.proc.emit(encode(f"{word}  {question} -R? [n] \nApply anyway? [n] \n"))
        await job.say("Skipping patch.")
        return Applied(lines, [], hunks, already=True)
    return apply_hunks(lines, hunks, _way(job))


def _looks_reversed(job: PatchJob, lines: list[bytes], hunk: Hunk) -> bool:
    """Return whether the first hunk applies in reverse with less fuzz than forward."""
    forth = fuzz_needed(lines, hunk, _way(job))
    if forth == 0:
        return False
    back = fuzz_needed(lines, hunk.reversed(), _way(job))
    return back is not None and (forth is None or back < forth)


async def _backup_name(job: PatchJob, target: str) -> str:
    """Return the backup name: numbered by -V, else from prefixes and suffix."""
    o = job.o
    env = job.proc.env
    how = o.version_control or env.get("PATCH_VERSION_CONTROL") or env.get("VERSION_CONTROL") or "existing"
    named = o.prefix or o.base_prefix or o.suffix is not None
    if not named and how in ("numbered", "t", "existing", "nil"):
        number = 0
        async for name, _ in job.proc.fs.scan(job.path(target).parent):
            found = re.fullmatch(re.escape(target.rpartition("/")[2]) + r"\.~(\d+)~", name)
            number = max(number, int(found[1]) if found else 0)
        if number or how in ("numbered", "t"):
            return f"{target}.~{number + 1}~"
    where, slash, base = target.rpartition("/")
    suffix = o.suffix if o.suffix is not None else "" if o.prefix or o.base_prefix else ".orig"
    return f"{o.prefix}{where}{slash}{o.base_prefix}{base}{suffix}"


def _stamp(header: bytes, tz: tzinfo) -> int | None:
    """Parse the time in a header of a patch."""
    found = re.search(rb"\t(\d{4}-.*|[A-Z][a-z]{2} .*)$", header.rstrip(b"\n"))
    if found is None:
        return None
    try:
        return parse_date(found[1].decode("ascii", "replace"), 0, tz)
    except BadDate:
        return None


async def _set_time(
    job: PatchJob, item: FilePatch, target: str, destination: Path, before: int, result: Applied
) -> None:
    """Set the time of the patch header (-T, -Z), if the old time and content match."""
    if not (job.o.set_time or job.o.set_utc) or item.headers is None:
        return
    tz = zone("UTC0") if job.o.set_utc else zone_of(job.proc)
    old, new = (_stamp(header, tz) for header in (reversed(item.headers) if job.o.reverse else item.headers))
    if new is None:
        return
    if not job.o.force and (old is None or old // NANO != before // NANO):
        await job.say(f"Not setting time of file {shown(target)} (time mismatch)")
    elif not job.o.force and (result.mismatched or result.rejects):
        await job.say(f"Not setting time of file {shown(target)} (contents mismatch)")
    else:
        await job.proc.fs.setattr(destination, Attrs(mtime_ns=new))


async def _store(
    job: PatchJob, item: FilePatch, target: str, path: Path, data: bytes, result: Applied, existed: bool
) -> None:
    proc, o = job.proc, job.o
    content = b"".join(result.lines)
    if o.dry_run:
        return
    if o.output is not None:
        if o.output == "-" or proc.descriptor(o.output) is proc.stdout:
            await proc.emit(content)
        else:
            await proc.fs.write(job.path(o.output), content)
        return
    if (o.backup or (result.mismatched and not o.no_backup_mismatch and not o.posix)) and (existed or o.backup):
        backup = job.path(await _backup_name(job, target))
        await ops.make_dirs(proc.fs, backup.parent)
        await proc.fs.write(backup, data)
    gone = (
        item.new_file
        if o.reverse
        else (
            item.deleted
            or (item.new_name is None and item.old_name is not None and bool(item.hunks))
            or item.new_stamp_epoch
        )
    )
    if o.reverse and ((item.old_name is None and item.new_name is not None) or item.old_stamp_epoch):
        gone = True
    if not content and (gone or o.remove_empty) and not result.rejects:
        if existed:
            await proc.fs.remove(path)
            parent = path.parent
            while parent != job.cwd and parent.under(job.cwd):
                try:
                    await proc.fs.remove(parent)
                except OSError:
                    break
                parent = parent.parent
        return
    if gone and content and not result.rejects:
        await proc.emit(encode(f"Not deleting file {shown(target)} as content differs from patch\n"))
        job.status = 1
    stat = await lookup(proc, path, follow=True)
    await ops.make_dirs(proc.fs, path.parent)
    destination = path
    if item.rename_to is not None and item.rename_from is not None and not o.reverse:
        destination = job.path(stripped_name("b/" + item.rename_to, o.strip) or item.rename_to)
        await ops.make_dirs(proc.fs, destination.parent)
        await proc.fs.remove(path)
    if content != data or not existed or destination != path:
        await proc.fs.write(destination, content)
    mode = item.mode if item.mode is not None else stat.mode if stat is not None else None
    if mode is not None:
        await proc.fs.setattr(destination, Attrs(mode=mode))
    await _set_time(job, item, target, destination, (stat.mtime_ns if stat is not None else None) or 0, result)
