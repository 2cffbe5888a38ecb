"""awk's strftime and mktime."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from ramet.commands.awk.run.streams import Runtime
from ramet.commands.awk.run.values import num
from ramet.text import strftime as clock


def _zone(runtime: Runtime) -> ZoneInfo | timezone:
    name = runtime.environ.get("TZ")
    if name:
        try:
            return ZoneInfo(str(name).lstrip(":"))
        except (ValueError, OSError):
            pass
    return UTC


def strftime(runtime: Runtime, form: str | None, stamp: float | None, utc: bool) -> str:
    seconds = runtime.proc.now() if stamp is None else stamp
    zone = UTC if utc else _zone(runtime)
    try:
        moment, _ = clock.at(int(seconds) * clock.NANO, zone)
    except (OverflowError, ValueError):
        return ""
    fields = clock.fields_of(moment)
    if utc:
        fields.zone = "GMT"
    pattern = runtime.text(runtime.procinfo.get("strftime")) if form is None else form
    return clock.format_fields(pattern, fields, c_library=True)


def mktime(runtime: Runtime, spec: str, utc: bool) -> float:
    words = spec.split()
    try:
        numbers = [int(word) for word in words[:6]]
        if len(numbers) < 6:
            return -1.0
        year, month, day, hour, minute, second = numbers
        month -= 1
        year, month = year + month // 12, month % 12
        zone = UTC if utc else _zone(runtime)
        cycles = (year - 2000) // clock.CYCLE_YEARS if not 1 < year < 9999 else 0
        base = datetime(year - cycles * clock.CYCLE_YEARS, month + 1, 1, tzinfo=zone)
        moment = base + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
        # The seventh number says that the clock is an hour ahead.
        ahead = 3600 if len(words) > 6 and num(words[6]) > 0 and not moment.dst() else 0
        return float(int(moment.timestamp()) - ahead + cycles * clock.CYCLE)
    except (ValueError, OverflowError):
        return -1.0
