"""touch: set the times of files, and create missing ones."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, replace

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.core.errors import Unsupported, reason
from ramet.core.fs import Open
from ramet.core.paths import Path
from ramet.core.proc import Proc
from ramet.core.stat import Attrs, Stat
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
                    if len(operands) > 1:  # several files get the same time
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
                # Without an access time the mtime is shown instead, which must not change.
                shown = (int(proc.now() * NANO) if there is None else there.mtime_ns) if _unknown(there) else None
                attrs = Attrs(mtime_ns=modification, follow=not o.no_deref, atime_ns=shown)
            else:
                both = dated or not _unknown(there)
                attrs = Attrs(mtime_ns=modification, follow=not o.no_deref, atime_ns=access if both else None)
            if dated or attrs.mtime_ns is None:
                await proc.fs.setattr(target, attrs)
            else:  # a mount without times may ignore this
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
    """Return the times of access and of modification to set."""
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
]
