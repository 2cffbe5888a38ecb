"""Names made, changed and removed: rm, rmdir, mkdir, ln, touch, mktemp, truncate, chmod, chown and their like."""

from __future__ import annotations

import errno
import random
import re
from dataclasses import dataclass

from ramet.commands.clock import NANO, at, zone_of
from ramet.commands.copy import back_up, confirm, lookup, pairs
from ramet.commands.dates import BadDate, parse_date
from ramet.commands.declare import Command, UsageError, choose, flag, mixed, optional, quote, shown, typographic, value
from ramet.commands.inputs import size_suffix
from ramet.commands.modes import BadMode, change_mode
from ramet.core import ops
from ramet.core.errors import Unsupported, reason
from ramet.core.fs import Open
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat

# ----------------------------------------------------------------------------------------------------------- rm


@dataclass(frozen=True, slots=True)
class RmOptions:
    how: str = mixed(
        choose(
            {"-f --force": "force", "-i": "always", "-I": "once"},
            help={
                "-f --force": "ignore nonexistent files and arguments, never prompt",
                "-i": "prompt before every removal",
                "-I": "prompt once before removing more than three files",
            },
        ),
        optional(
            "--interactive",
            metavar="WHEN",
            const="always",
            choices=("never", "once", "always"),
            help="prompt according to WHEN",
        ),
        default="",
    )
    one_system: bool = flag("--one-file-system", help="skip any directory on another file system")
    preserve_root: bool = choose({"--no-preserve-root": False}, default=True, help="do not treat '/' specially")
    recursive: bool = flag("-r", "-R", "--recursive", help="remove directories and their contents recursively")
    dir: bool = flag("-d", "--dir", help="remove empty directories")
    verbose: bool = flag("-v", "--verbose", help="explain what is being done")


async def rm(proc: Proc, o: RmOptions, operands: list[str]) -> int:
    quiet = o.how == "force"
    if not operands:
        if quiet:
            return 0
        raise UsageError("missing operand")
    if o.how == "once" and (len(operands) > 3 or o.recursive):
        what = (
            f"remove {len(operands)} argument{'s' if len(operands) > 1 else ''}{' recursively' if o.recursive else ''}?"
        )
        if not await confirm(proc, what):
            return 0
    status = 0
    for word in operands:
        last = word.rstrip("/").rpartition("/")[2]
        if last in (".", "..") and o.recursive:
            proc.complain(f"refusing to remove '.' or '..' directory: skipping {quote(word)}")
            status = 1
            continue
        try:
            path = proc.path(word)
            stat = await proc.fs.stat(path)
        except OSError as error:
            if quiet and error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            proc.complain(f"cannot remove {quote(word)}: {reason(error)}")
            status = 1
            continue
        if o.recursive and not path.name and o.preserve_root:
            proc.complain(f"it is dangerous to operate recursively on {quote(word)}")
            proc.complain("use --no-preserve-root to override this failsafe")
            status = 1
            continue
        if word.endswith("/") and stat.kind is not Kind.DIR:
            proc.complain(f"cannot remove {quote(word)}: Not a directory")
            status = 1
            continue
        shown_word = word.rstrip("/") or "/"
        if not await _remove(proc, o, shown_word, path, stat):
            status = 1
    return status


async def _remove(proc: Proc, o: RmOptions, word: str, path: Path, stat: Stat) -> bool:
    if stat.kind is not Kind.DIR:
        what = "regular empty file" if stat.size == 0 and stat.kind is Kind.FILE else _KIND_NAMES[stat.kind]
        if o.how == "always" and not await confirm(proc, f"remove {what} {quote(word)}?"):
            return True
        return await _drop(proc, o, word, path, "removed")
    if not o.recursive:
        if not o.dir:
            proc.complain(f"cannot remove {quote(word)}: Is a directory")
            return False
        if o.how == "always" and not await confirm(proc, f"remove directory {quote(word)}?"):
            return True
        return await _drop(proc, o, word, path, "removed directory")
    entries = sorted(await ops.entries(proc.fs, path))
    if entries and o.how == "always" and not await confirm(proc, f"descend into directory {quote(word)}?"):
        return True
    good = True
    here = proc.fs.mount_of(path)
    for name, below in entries:
        if o.one_system and proc.fs.mount_of(path / name) != here:
            proc.complain(f"skipping {quote(f'{word}/{name}')}, since it's on a different device")
            good = False
            continue
        good &= await _remove(proc, o, f"{word}/{name}", path / name, below)
    await proc.budget.breathe()
    if not good:
        return False
    if o.how == "always" and not await confirm(proc, f"remove directory {quote(word)}?"):
        return True
    return await _drop(proc, o, word, path, "removed directory")


async def _drop(proc: Proc, o: RmOptions, word: str, path: Path, what: str) -> bool:
    try:
        await proc.fs.remove(path)
    except OSError as error:
        proc.complain(f"cannot remove {quote(word)}: {reason(error)}")
        return False
    if o.verbose:
        await proc.emit(encode(f"{what} {quote(word)}\n"))
    return True


_KIND_NAMES = {
    Kind.FILE: "regular file",
    Kind.LINK: "symbolic link",
    Kind.DIR: "directory",
    Kind.FIFO: "fifo",
    Kind.SOCKET: "socket",
    Kind.DEVICE: "character special file",
}


@dataclass(frozen=True, slots=True)
class RmdirOptions:
    tolerant: bool = flag(
        "--ignore-fail-on-non-empty", help="ignore each failure that is solely because a directory is non-empty"
    )
    parents: bool = flag("-p", "--parents", help="remove DIRECTORY and its ancestors")
    verbose: bool = flag("-v", "--verbose", help="output a diagnostic for every directory processed")


async def rmdir(proc: Proc, o: RmdirOptions, operands: list[str]) -> int:
    status = 0
    for word in operands:
        names = [word]
        if o.parents:
            rest = word.rstrip("/")
            while "/" in rest.strip("/"):
                rest = rest.rpartition("/")[0].rstrip("/")
                names.append(rest)
        for i, name in enumerate(names):
            if o.verbose:
                await proc.emit(encode(f"rmdir: removing directory, {quote(name)}\n"))
            try:
                path = proc.path(name)
                stat = await proc.fs.stat(path)
                if stat.kind is not Kind.DIR:
                    raise OSError(errno.ENOTDIR, "", name)
                await proc.fs.remove(path)
            except OSError as error:
                if o.tolerant and error.errno == errno.ENOTEMPTY:
                    break
                what = "failed to remove directory" if i else "failed to remove"
                proc.complain(f"{what} {quote(name)}: {reason(error)}")
                status = 1
                break
    return status


async def unlink(proc: Proc, o: object, operands: list[str]) -> int:
    word = operands[0]
    try:
        path = proc.path(word)
        if (await proc.fs.stat(path)).is_dir:
            raise OSError(errno.EISDIR, "", word)
        await proc.fs.remove(path)
    except OSError as error:
        proc.complain(f"cannot unlink {quote(word)}: {reason(error)}")
        return 1
    return 0


# -------------------------------------------------------------------------------------------------------- mkdir


@dataclass(frozen=True, slots=True)
class MkdirOptions:
    mode: str | None = value("-m", "--mode", metavar="MODE", help="set file mode (as in chmod), not a=rwx - umask")
    parents: bool = flag("-p", "--parents", help="no error if existing, make parent directories as needed")
    verbose: bool = flag("-v", "--verbose", help="print a message for each created directory")


async def mkdir(proc: Proc, o: MkdirOptions, operands: list[str]) -> int:
    mode = 0o777 & ~proc.umask
    if o.mode is not None:
        try:
            mode = change_mode(o.mode, 0o777, False, proc.umask)
        except BadMode:
            raise UsageError(f"invalid mode {quote(o.mode)}", hint=False) from None
    status = 0
    for word in operands:
        try:
            await _make_directory(proc, o, word, mode)
        except OSError as error:
            at_ = getattr(error, "filename", None)
            name = at_ if o.parents and isinstance(at_, str) and not isinstance(at_, Path) and at_ else word
            proc.complain(typographic(proc, f"cannot create directory {quote(name)}: {reason(error)}"))
            status = 1
    return status


async def _make_directory(proc: Proc, o: MkdirOptions, word: str, mode: int) -> None:
    path = proc.path(word)
    if not o.parents:
        await _mkdir_one(proc, o, word, path, mode)
        return
    existing = await lookup(proc, path, follow=True) if await lookup(proc, path) is not None else None
    if existing is not None:
        if not existing.is_dir:
            raise OSError(errno.EEXIST, "", word)
        return
    # Walk the word so that messages name the parts as they were typed.
    pieces = [p for p in word.split("/") if p]
    walked = "/" if word.startswith("/") else ""
    for i, piece in enumerate(pieces):
        walked += piece
        here = proc.path(walked)
        stat = await lookup(proc, here, follow=True)
        if stat is None:
            last = i == len(pieces) - 1
            await _mkdir_one(proc, o, walked, here, mode if last else (0o777 & ~proc.umask) | 0o300)
        elif not stat.is_dir:
            raise OSError(errno.ENOTDIR, "", str(walked))
        walked += "/"


async def _mkdir_one(proc: Proc, o: MkdirOptions, word: str, path: Path, mode: int) -> None:
    await proc.fs.mkdir(path)
    if mode != 0o755:
        try:
            await proc.fs.setattr(path, Attrs(mode=mode))
        except Unsupported:
            pass
    if o.verbose:
        await proc.emit(encode(f"mkdir: created directory {quote(word)}\n"))


# ----------------------------------------------------------------------------------------------------------- ln


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
    if o.no_deref and len(operands) == 2 and o.target is None:
        last = await lookup(proc, proc.path(operands[1]))
        no_target = no_target or (last is not None and last.kind is Kind.LINK)
    status = 0
    for pair in await pairs(proc, operands, o.target, no_target, False):
        try:
            good = await _link(proc, o, pair.source, pair.target)
        except OSError as error:
            kind = "symbolic link" if o.symbolic else "hard link"
            proc.complain(f"failed to create {kind} {quote(pair.target)}: {reason(error)}")
            good = False
        status = status if good else 1
    return status


async def _link(proc: Proc, o: LnOptions, source: str, target: str) -> bool:
    dst = proc.path(target)
    if not o.symbolic:
        src = proc.path(source)
        try:
            stat = await proc.fs.stat(src, o.follow)
        except OSError as error:
            proc.complain(f"failed to access {quote(source)}: {reason(error)}")
            return False
        if stat.is_dir:
            proc.complain(f"{shown(source)}: hard link not allowed for directory")
            return False
        if o.follow:
            src = await proc.fs.resolve(src)
    there = await lookup(proc, dst)
    note = ""
    if there is not None:
        if there.is_dir and (o.how or o.backup):
            proc.complain(f"{shown(target)}: cannot overwrite directory")
            return False
        if o.how == "ask" and not await confirm(proc, f"replace {quote(target)}?"):
            return True
        if not o.symbolic and src == dst and o.how:
            proc.complain(f"{quote(source)} and {quote(target)} are the same file")
            return False
        if o.backup and o.backup not in ("none", "off"):
            note = f" ~ {quote((await back_up(proc, dst, o.backup, o.suffix)).name)}"
        elif o.how:
            await proc.fs.remove(dst)
    if o.symbolic:
        content = source
        if o.relative:
            content = relative_to(await _resolved(proc, proc.path(source)), await _resolved(proc, dst.parent))
        if not content:
            raise OSError(errno.ENOENT, "", source)
        await proc.fs.write(dst, encode(content), How.LINK)
        if o.verbose:
            await proc.emit(encode(f"{quote(target)} -> {quote(content)}{note}\n"))
    else:
        await proc.fs.link(src, dst)
        if o.verbose:
            await proc.emit(encode(f"{quote(target)} => {quote(source)}{note}\n"))
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


# -------------------------------------------------------------------------------------------------------- touch


@dataclass(frozen=True, slots=True)
class TouchOptions:
    access: bool = flag("-a", help="change only the access time (accepted; access times are not kept here)")
    no_create: bool = flag("-c", "--no-create", help="do not create any files")
    date: str | None = value("-d", "--date", metavar="STRING", help="parse STRING and use it instead of current time")
    no_deref: bool = flag("-h", "--no-dereference", help="affect each symbolic link instead of any referenced file")
    modification: bool = flag("-m", help="change only the modification time")
    reference: str | None = value(
        "-r", "--reference", metavar="FILE", help="use this file's times instead of current time"
    )
    stamp: str | None = value("-t", metavar="STAMP", help="use [[CC]YY]MMDDhhmm[.ss] instead of current time")
    which: str | None = value(
        "--time",
        metavar="WORD",
        choices=("access", "atime", "use", "modify", "mtime"),
        help="change the specified time",
    )


async def touch(proc: Proc, o: TouchOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing file operand")
    when = await _touch_time(proc, o)
    only_access = (o.access or o.which in ("access", "atime", "use")) and not o.modification
    status = 0
    for word in operands:
        if word == "-":
            continue
        try:
            path = proc.path(word)
            there = await lookup(proc, path, follow=not o.no_deref)
            if there is None:
                if o.no_create:
                    continue
                if word.endswith("/"):
                    raise OSError(errno.ENOENT, "", word)
                stream = await proc.fs.open(path, Open.WRITE | Open.CREATE)
                await stream.close()
                if proc.umask & 0o666 != 0o022:
                    await _quiet_setattr(proc, path, Attrs(mode=0o666 & ~proc.umask))
                if not (o.date or o.reference or o.stamp):
                    continue
            if only_access or (o.no_deref and there is not None and there.kind is Kind.LINK):
                continue  # a link has no time of its own here
            target = path if o.no_deref else await proc.fs.resolve(path)
            await _quiet_setattr(proc, target, Attrs(mtime_ns=when))
        except OSError as error:
            what = "cannot touch" if error.errno != errno.EPERM else "setting times of"
            proc.complain(f"{what} {quote(word)}: {reason(error)}")
            status = 1
    return status


async def _quiet_setattr(proc: Proc, path: Path, attrs: Attrs) -> None:
    try:
        await proc.fs.setattr(path, attrs)
    except Unsupported:
        return


async def _touch_time(proc: Proc, o: TouchOptions) -> int:
    tz = zone_of(proc)
    now = int(proc.now() * NANO)
    if o.reference is not None:
        try:
            stat = await proc.fs.stat(proc.path(o.reference), follow=not o.no_deref)
        except OSError as error:
            raise UsageError(f"failed to get attributes of {quote(o.reference)}: {reason(error)}", hint=False) from None
        now = stat.mtime_ns or 0
    if o.date is not None:
        try:
            return parse_date(o.date, now, tz)
        except BadDate:
            raise UsageError(f"invalid date format {quote(o.date)}", hint=False) from None
    if o.stamp is not None:
        from datetime import UTC, datetime, timedelta

        found = re.fullmatch(r"(\d{2})?(\d{2})?(\d{2})(\d{2})(\d{2})(\d{2})(?:\.(\d{2}))?", o.stamp)
        try:
            if found is None:
                raise ValueError
            century, year, month, day, hour, minute, second = found.groups()
            if century is not None and year is None:
                century, year = None, century
            full = (
                at(now, tz)[0].year
                if year is None
                else int(century + year)
                if century
                else int(year) + (2000 if int(year) < 69 else 1900)
            )
            local = datetime(full, int(month), int(day), int(hour), int(minute), tzinfo=tz) + timedelta(
                seconds=int(second or 0)
            )
            return int((local.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)) * NANO
        except ValueError:
            raise UsageError(f"invalid date format {quote(o.stamp)}", hint=False) from None
    return now


# ------------------------------------------------------------------------------------------------------- mktemp


@dataclass(frozen=True, slots=True)
class MktempOptions:
    directory: bool = flag("-d", "--directory", help="create a directory, not a file")
    dry_run: bool = flag("-u", "--dry-run", help="do not create anything; merely print a name")
    quiet: bool = flag("-q", "--quiet", help="suppress diagnostics about file/dir-creation failure")
    suffix: str | None = value("--suffix", metavar="SUFF", help="append SUFF to TEMPLATE")
    tmpdir: str | None = mixed(
        optional(
            "--tmpdir", metavar="DIR", const="", help="interpret TEMPLATE relative to DIR, else $TMPDIR, else /tmp"
        ),
        value("-p", metavar="DIR", help="interpret TEMPLATE relative to DIR"),
        default=None,
    )
    in_tmp: bool = flag("-t", help="interpret TEMPLATE as a single file name component, relative to $TMPDIR")


async def mktemp(proc: Proc, o: MktempOptions, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError("too many templates")
    template = operands[0] if operands else "tmp.XXXXXXXXXX"
    suffix = o.suffix or ""
    if o.suffix is not None and not template.endswith("X"):
        raise UsageError(f"with --suffix, template {quote(template)} must end in X", hint=False)
    if o.suffix is None and "X" in template:
        end = template.rindex("X") + 1
        template, suffix = template[:end], template[end:]
    if "/" in suffix:
        raise UsageError(f"invalid suffix {quote(suffix)}, contains directory separator", hint=False)
    found = re.search(r"X*\Z", template)
    run = len(found[0]) if found else 0
    if run < 3:
        raise UsageError(f"too few X's in template {quote(operands[0] if operands else template)}", hint=False)
    base: str | None = None
    tmp = proc.env.get("TMPDIR") or "/tmp"
    if o.in_tmp:
        if "/" in template:
            raise UsageError(f"invalid template, {quote(template)}, contains directory separator", hint=False)
        base = proc.env.get("TMPDIR") or o.tmpdir or "/tmp"
    elif o.tmpdir is not None:
        base = o.tmpdir or tmp
        if template.startswith("/"):
            raise UsageError(f"invalid template, {quote(template)}; with --tmpdir, it may not be absolute", hint=False)
    elif not operands:
        base = tmp
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    chooser = random.SystemRandom()
    for _ in range(100):
        name = template[:-run] + "".join(chooser.choices(letters, k=run)) + suffix
        full = name if base is None else f"{base.rstrip('/')}/{name}"
        try:
            path = proc.path(full)
            if o.dry_run:
                if await lookup(proc, path) is not None:
                    continue
            elif o.directory:
                await proc.fs.mkdir(path)
                await _quiet_setattr(proc, path, Attrs(mode=0o700))
            else:
                await proc.fs.write(path, b"", How.CREATE)
                await _quiet_setattr(proc, path, Attrs(mode=0o600))
        except FileExistsError:
            continue
        except OSError as error:
            if not o.quiet:
                shape = f"{base.rstrip('/')}/{template}{suffix}" if base is not None else template + suffix
                proc.complain(
                    f"failed to create {'directory' if o.directory else 'file'} via template {quote(shape)}: "
                    f"{reason(error)}"
                )
            return 1
        await proc.emit(encode(full + "\n"))
        return 0
    proc.complain("failed to find an unused name")
    return 1


# ----------------------------------------------------------------------------------------------------- truncate


@dataclass(frozen=True, slots=True)
class TruncateOptions:
    no_create: bool = flag("-c", "--no-create", help="do not create any files")
    blocks: bool = flag("-o", "--io-blocks", help="treat SIZE as number of IO blocks instead of bytes")
    reference: str | None = value("-r", "--reference", metavar="RFILE", help="base size on RFILE")
    size: str | None = value("-s", "--size", metavar="SIZE", help="set or adjust the file size by SIZE bytes")


async def truncate(proc: Proc, o: TruncateOptions, operands: list[str]) -> int:
    if o.size is None and o.reference is None:
        raise UsageError("you must specify either '--size' or '--reference'")
    op, amount = "", 0
    if o.size is not None:
        found = re.fullmatch(r"\s*([+\-<>/%]?)\s*(\d+)([A-Za-z]*)", o.size)
        factor = size_suffix(found[3]) if found else None
        if found is None or factor is None:
            raise UsageError(f"Invalid number: {quote(o.size)}", hint=False)
        op, amount = found[1], int(found[2]) * factor * (4096 if o.blocks else 1)
        if op in ("/", "%") and amount == 0:
            raise UsageError("division by zero", hint=False)
        if o.reference is not None and not op:
            raise UsageError("you must specify a relative '--size' with '--reference'")
    if not operands:
        raise UsageError("missing file operand")
    base: int | None = None
    if o.reference is not None:
        try:
            base = (await proc.fs.stat(proc.path(o.reference), follow=True)).size or 0
        except OSError as error:
            raise UsageError(f"cannot stat {quote(o.reference)}: {reason(error)}", hint=False) from None
    status = 0
    for word in operands:
        path = proc.path(word)
        try:
            there = await lookup(proc, path, follow=True)
            if there is None:
                if o.no_create:
                    continue
                await proc.fs.write(path, b"", How.CREATE)
            elif there.is_dir:
                raise OSError(errno.EISDIR, "", word)
            current = base if base is not None else ((there.size or 0) if there is not None else 0)
            new = {
                "": amount,
                "+": current + amount,
                "-": max(0, current - amount),
                "<": min(current, amount),
                ">": max(current, amount),
                "/": current // amount * amount if op == "/" else 0,
                "%": -(-current // amount) * amount if op == "%" else 0,
            }[op]
            if base is not None and o.size is None:
                new = base
            await proc.fs.setattr(await proc.fs.resolve(path), Attrs(size=new))
        except OSError as error:
            proc.complain(f"cannot open {quote(word)} for writing: {reason(error)}")
            status = 1
    return status


# -------------------------------------------------------------------------------------------------------- shred


@dataclass(frozen=True, slots=True)
class ShredOptions:
    force: bool = flag("-f", "--force", help="change permissions to allow writing if necessary")
    iterations: str = value(
        "-n", "--iterations", metavar="N", default="3", help="overwrite N times instead of the default (3)"
    )
    size: str | None = value("-s", "--size", metavar="N", help="shred this many bytes")
    remove: bool = mixed(
        flag("-u", help="deallocate and remove file after overwriting"),
        optional("--remove", metavar="HOW", const=True, help="like -u"),
        default=False,
    )
    verbose: bool = flag("-v", "--verbose", help="show progress")
    exact: bool = flag("-x", "--exact", help="do not round file sizes up to the next full block")
    zero: bool = flag("-z", "--zero", help="add a final overwrite with zeros to hide shredding")


async def shred(proc: Proc, o: ShredOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing file operand")
    import os

    status = 0
    for word in operands:
        path = proc.path(word)
        try:
            size = (await proc.fs.stat(path, follow=True)).size or 0
            await proc.fs.write(path, b"\0" * size if o.zero else os.urandom(size))
            if o.remove:
                await proc.fs.remove(path)
        except OSError as error:
            proc.complain(f"{shown(word)}: failed to open for writing: {reason(error)}")
            status = 1
    return status


async def mkfifo(proc: Proc, o: object, operands: list[str]) -> int:
    for word in operands:
        proc.complain(
            f"cannot create fifo {quote(word)}: named pipes are not supported in this workspace; use a pipeline "
            "or process substitution"
        )
    return 1


@dataclass(frozen=True, slots=True)
class MkfifoOptions:
    mode: str | None = value("-m", "--mode", metavar="MODE", help="set file permission bits to MODE")


COMMANDS = [
    Command(
        "rm",
        rm,
        RmOptions,
        summary="Remove (unlink) the FILE(s).",
        ignored=("--preserve-root[=",),
        usage="[OPTION]... [FILE]...",
    ),
    Command(
        "rmdir",
        rmdir,
        RmdirOptions,
        summary="Remove the DIRECTORY(ies), if they are empty.",
        usage="[OPTION]... DIRECTORY...",
        min_operands=1,
    ),
    Command("unlink", unlink, summary="Remove the specified FILE.", usage="FILE", min_operands=1, max_operands=1),
    Command(
        "mkdir",
        mkdir,
        MkdirOptions,
        summary="Create the DIRECTORY(ies), if they do not already exist.",
        usage="[OPTION]... DIRECTORY...",
        min_operands=1,
        ignored=("-Z --context[=",),
    ),
    Command(
        "ln",
        ln,
        LnOptions,
        summary="Make links between files.",
        usage="[OPTION]... TARGET... LINK_NAME",
        ignored=("-d -F --directory",),
    ),
    Command(
        "link",
        link,
        summary="Create a link named FILE2 to an existing FILE1.",
        usage="FILE1 FILE2",
        min_operands=2,
        max_operands=2,
    ),
    Command(
        "touch",
        touch,
        TouchOptions,
        summary="Update the modification times of each FILE to the current time.",
        ignored=("-f",),
    ),
    Command(
        "mktemp",
        mktemp,
        MktempOptions,
        summary="Create a temporary file or directory, safely, and print its name.",
        usage="[OPTION]... [TEMPLATE]",
    ),
    Command(
        "truncate",
        truncate,
        TruncateOptions,
        summary="Shrink or extend the size of each FILE to the specified size.",
        usage="OPTION... FILE...",
    ),
    Command(
        "shred",
        shred,
        ShredOptions,
        summary="Overwrite the specified FILE(s) to hide their contents.",
        ignored=("--random-source=",),
    ),
    Command(
        "mkfifo",
        mkfifo,
        MkfifoOptions,
        summary="Named pipes are not supported here; says so.",
        usage="[OPTION]... NAME...",
        min_operands=1,
    ),
]
