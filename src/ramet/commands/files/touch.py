"""touch, truncate and fallocate: times and sizes of files set, made when missing unless told not to."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, replace

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.commands.framework.inputs import size_suffix
from ramet.core.errors import Unsupported, fail, reason
from ramet.core.fs import Open
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import BLOCK, FileStream
from ramet.text.strftime import NANO, at, zone_of


@dataclass(frozen=True, slots=True)
class TouchOptions:
    access: bool = flag("-a", help="change only the access time")
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
        choices=("atime", "access", "use", "mtime", "modify"),
        help="change the specified time",
    )


async def touch(proc: Proc, o: TouchOptions, operands: list[str]) -> int:
    if o.stamp is not None and (o.date is not None or o.reference is not None):
        _touch_time(proc, replace(o, date=None), int(proc.now() * NANO))
        raise UsageError("cannot specify times from more than one source")
    if not operands:
        raise UsageError("missing file operand")
    access, modification = await _touch_times(proc, o)
    asked = {"a"} if o.access or o.which in ("access", "atime", "use") else set()
    asked |= {"m"} if o.modification or o.which in ("mtime", "modify") else set()
    dated = bool(o.date or o.reference or o.stamp)
    status = 0
    for word in operands:
        if word == "-":
            continue
        await proc.budget.yield_turn()
        try:
            path = proc.path(word)
            there = await lookup(proc, path, follow=not o.no_deref)
            if there is None:
                if o.no_create:
                    continue
                if word.endswith("/") or o.no_deref:
                    proc.complain(f"setting times of {quote(word)}: No such file or directory")
                    status = 1
                    continue
                stream = await proc.fs.open(path, Open.WRITE | Open.CREATE)
                await stream.close()
                if proc.umask & 0o666 != 0o022:
                    await quiet_setattr(proc, path, Attrs(mode=0o666 & ~proc.umask))
                if not dated:
                    if len(operands) > 1:  # which are all touched at once, by the clock of a file system
                        await quiet_setattr(proc, path, Attrs(mtime_ns=modification))
                    continue
            elif word.endswith("/") and not there.is_dir:
                proc.complain(f"setting times of {quote(word)}: Not a directory")
                status = 1
                continue
            target = path if o.no_deref else await proc.fs.resolve(path)
            if asked == {"a"}:
                attrs = Attrs(atime_ns=access, follow=not o.no_deref)
            elif asked == {"m"}:
                # Where no time of access is known, that of the last change is shown: it must not move along.
                shown = (int(proc.now() * NANO) if there is None else there.mtime_ns) if _unknown(there) else None
                attrs = Attrs(mtime_ns=modification, follow=not o.no_deref, atime_ns=shown)
            else:
                both = dated or not _unknown(there)
                attrs = Attrs(mtime_ns=modification, follow=not o.no_deref, atime_ns=access if both else None)
            if dated or attrs.mtime_ns is None:
                await proc.fs.setattr(target, attrs)
            else:  # a mount that keeps no times is asked for nothing that it could tell apart later
                await quiet_setattr(proc, target, attrs)
        except OSError as error:
            what = "setting times of" if error.errno in (errno.EPERM, errno.ENOTSUP) else "cannot touch"
            proc.complain(f"{what} {quote(word)}: {reason(error)}")
            status = 1
    return status


async def quiet_setattr(proc: Proc, path: Path, attrs: Attrs) -> None:
    try:
        await proc.fs.setattr(path, attrs)
    except Unsupported:
        return


def _unknown(there: Stat | None) -> bool:
    return there is None or there.atime_ns is None


async def _touch_times(proc: Proc, o: TouchOptions) -> tuple[int, int]:
    """The times of access and of modification to set."""
    now = int(proc.now() * NANO)
    if o.reference is None:
        when = _touch_time(proc, o, now)
        return when, when
    try:
        stat = await proc.fs.stat(proc.path(o.reference), follow=not o.no_deref)
    except OSError as error:
        raise UsageError(f"failed to get attributes of {quote(o.reference)}: {reason(error)}", hint=False) from None
    return _touch_time(proc, o, stat.accessed_ns or 0), _touch_time(proc, o, stat.mtime_ns or 0)


def _touch_time(proc: Proc, o: TouchOptions, now: int) -> int:
    tz = zone_of(proc)
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
            if second is not None and int(second) > 60:
                raise ValueError
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


@dataclass(frozen=True, slots=True)
class TruncateOptions:
    no_create: bool = flag("-c", "--no-create", help="do not create any files")
    blocks: bool = flag("-o", "--io-blocks", help="treat SIZE as number of IO blocks instead of bytes")
    reference: str | None = value("-r", "--reference", metavar="RFILE", help="base size on RFILE")
    size: str | None = value("-s", "--size", metavar="SIZE", help="set or adjust the file size by SIZE bytes")


async def truncate(proc: Proc, o: TruncateOptions, operands: list[str]) -> int:
    if o.size is None and o.reference is None:
        raise UsageError("you must specify either '--size' or '--reference'")
    if o.blocks and o.size is None:
        raise UsageError("'--io-blocks' was specified but '--size' was not")
    op, amount = "", 0
    if o.size is not None:
        if re.match(r"\s*[<>/%]\s*[+-]", o.size):
            raise UsageError("multiple relative modifiers specified")
        found = re.fullmatch(r"\s*([+\-<>/%]?)\s*(\d+)([A-Za-z]*)", o.size)
        factor = size_suffix(found[3], "gkmt") if found else None
        if found is None or factor is None:
            raise UsageError(f"Invalid number: {quote(o.size)}", hint=False)
        if int(found[2]) * factor >= 1 << 63:
            words = "Value too large for defined data type"
            raise UsageError(f"Invalid number: {quote(o.size)}: {words}", hint=False)
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
        try:
            path = proc.path(word)
            there = await lookup(proc, path, follow=True)
            if there is None:
                if o.no_create:
                    continue
                await proc.close(await proc.create(word))
            elif there.is_dir or word.endswith("/"):
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
            if new >= 1 << 44:
                proc.complain(f"failed to truncate {quote(word)} at {new} bytes: File too large")
                status = 1
                continue
            await proc.fs.setattr(await proc.fs.resolve(path), Attrs(size=new))
        except OSError as error:
            proc.complain(f"cannot open {quote(word)} for writing: {reason(error)}")
            status = 1
    return status


@dataclass(frozen=True, slots=True)
class FallocateOptions:
    dig: bool = flag("-d", "--dig-holes", help="detect zeroes and replace with holes: nothing to see of it here")
    length: str | None = value("-l", "--length", metavar="NUM", help="length for range operations, in bytes")
    keep: bool = flag("-n", "--keep-size", help="maintain the apparent size of the file")
    offset: str | None = value("-o", "--offset", metavar="NUM", help="offset for range operations, in bytes")
    punch: bool = flag("-p", "--punch-hole", help="replace a range with a hole (implies -n)")
    verbose: bool = flag("-v", "--verbose", help="verbose mode")
    zero: bool = flag("-z", "--zero-range", help="zero and ensure allocation of a range")


def _bytes(text: str, what: str, least: int) -> int:
    found = re.fullmatch(r"\s*\+?(\d+)([A-Za-z]*)", text)
    factor = size_suffix(found[2], "kmgtpezy") if found and found[2] not in ("b", "B") else None
    if found is None or factor is None or int(found[1]) < least:
        raise UsageError(f"invalid {what} value specified", hint=False)
    return int(found[1]) * factor


async def fallocate(proc: Proc, o: FallocateOptions, operands: list[str]) -> int:
    length = _bytes(o.length, "length", 1) if o.length is not None else None
    offset = _bytes(o.offset, "offset", 0) if o.offset is not None else 0
    if o.dig + o.punch + o.zero > 1:
        listed = "--collapse-range --dig-holes --punch-hole --zero-range"
        raise UsageError(f"mutually exclusive arguments: {listed}", hint=False)
    if not operands:
        raise UsageError("no filename specified", hint=False)
    if len(operands) > 1:
        raise UsageError("unexpected number of arguments", hint=False)
    if length is None and not o.dig:
        raise UsageError("no length argument specified", hint=False)
    [word] = operands
    how = Open.WRITE if o.dig or o.punch else Open.WRITE | Open.CREATE
    try:
        if word.endswith("/"):
            raise OSError(errno.EISDIR, "", word)
        stream = await proc.fs.open(proc.path(word), how)
    except OSError as error:
        raise UsageError(f"cannot open {word}: {reason(error)}", hint=False) from None
    try:
        if length is not None:
            size = (await proc.fs.stat(proc.path(word), follow=True)).size or 0
            await _allocate(proc, o, stream, size, range(offset, offset + length))
    except OSError as error:
        raise UsageError(f"fallocate failed: {reason(error)}", hint=False) from None
    finally:
        await proc.close(stream)
    if o.verbose and length is not None:
        done = "hole created" if o.punch else "zeroed" if o.zero else "allocated"
        await proc.emit(encode(f"{word}: {_amount(length)} ({length} bytes) {done}.\n"))
    return 0


async def _allocate(proc: Proc, o: FallocateOptions, stream: FileStream, size: int, part: range) -> None:
    if part.stop >= 1 << 44:
        raise fail(errno.EFBIG)
    if size < part.stop and not (o.keep or o.punch):
        await stream.truncate(part.stop)
    if o.punch or o.zero:
        stream.seek(part.start)
        left = min(part.stop, size) - part.start
        while left > 0:
            stream.write(bytes(min(left, BLOCK)))
            await stream.drain()
            await proc.budget.yield_turn()
            left -= BLOCK


def _amount(size: int) -> str:
    """As util-linux writes sizes: `1.5 KiB`."""
    power = min((size.bit_length() - 1) // 10, 6)
    tenths = size * 10 >> 10 * power
    whole = f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)
    return f"{whole} {'KMGTPE'[power - 1]}iB" if power else f"{size} B"


COMMANDS = [
    Command(
        "touch",
        touch,
        TouchOptions,
        summary="Update the access and modification times of each FILE to the current time.",
        ignored=("-f",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "truncate",
        truncate,
        TruncateOptions,
        summary="Shrink or extend the size of each FILE to the specified size.",
        usage="OPTION... FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "fallocate",
        fallocate,
        FallocateOptions,
        summary="Preallocate space to, or deallocate space from a file.",
        usage="[OPTION]... FILE",
        ignored=("-x --posix",),
        refused={
            "-c --collapse-range": "files of a tree have no ranges to take away",
            "-i --insert-range": "files of a tree have no ranges to insert",
        },
    ),
]
