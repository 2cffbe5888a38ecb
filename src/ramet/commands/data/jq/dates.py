"""jq's broken-down times in UTC: `[year, month from 0, day, hours, minutes, seconds, weekday, day of year]`."""

from __future__ import annotations

import math
from datetime import datetime

from ramet.commands.data.jq.time_text import from_days, read
from ramet.commands.data.jq.values import Json, fail, is_number, number, to_double
from ramet.text import strftime as clock
from ramet.text.strftime import Fields, day_of_year, format_fields, seconds_since_epoch

_MOST = 67_768_036_191_676_799
"""The last second of the last year that an int of C can tell."""
_INT = 1 << 31


def gmtime(value: Json) -> list[Json]:
    if not is_number(value):
        raise fail("gmtime() requires numeric inputs")
    moment = to_double(value)
    if not abs(moment) <= _MOST:
        raise fail("error converting number of seconds since epoch to datetime")
    days, seconds = divmod(math.trunc(moment), 86400)
    year, month, day = from_days(days)
    return [
        year, month, day, seconds // 3600, seconds // 60 % 60,
        number(seconds % 60 + (moment - math.floor(moment))), (days + 4) % 7, day_of_year(year, month, day),
    ]  # fmt: skip


def localtime(value: Json, zone: str) -> list[Json]:
    """Return the time that clocks show in the zone that TZ says."""
    if not is_number(value):
        raise fail("localtime() requires numeric inputs")
    moment = to_double(value)
    try:
        shown, _ = clock.at(math.trunc(moment) * clock.NANO, clock.zone(zone))
    except (OverflowError, ValueError):
        raise fail("error converting number of seconds since epoch to datetime") from None
    offset = shown.utcoffset()
    return gmtime(moment + (0 if offset is None else offset.total_seconds()))


def _zone_name(zone: str) -> str:
    """Return the standard-time name of a zone; jq knows no other."""
    moments = [datetime(2024, month, 1, tzinfo=clock.zone(zone)) for month in (1, 7)]
    return next((moment.tzname() or "" for moment in moments if not moment.dst()), "UTC")


def _broken(value: Json, name: str) -> Fields:
    """Return an array as a time, all parts of which must be there."""
    if not isinstance(value, list) or len(value) < 8 or not all(map(is_number, value[:8])):
        raise fail(f"{name} requires parsed datetime inputs")
    parts = [math.trunc(min(max(part, -_INT), _INT - 1)) if part == part else -_INT for part in value[:8]]
    year, month, day, hour, minute, second, weekday, yearday = parts
    return Fields(year, month, day, hour, minute, second, weekday, yearday)


def mktime(value: Json) -> Json:
    if not isinstance(value, list):
        raise fail("mktime requires array inputs")
    seconds = seconds_since_epoch(_broken(value, "mktime"))
    if seconds == -1:  # which is how the library says that it cannot tell
        raise fail("invalid gmtime representation")
    return number(float(seconds))


def strftime(value: Json, form: Json, zone: str = "", local: bool = False) -> str:
    name = "strflocaltime/1" if local else "strftime/1"
    parts = value
    if is_number(value):
        parts = localtime(value, zone) if local else gmtime(value)
    if not isinstance(parts, list):
        raise fail(f"{name} requires parsed datetime inputs")
    if not isinstance(form, str):
        raise fail(f"{name} requires a string format")
    fields = _broken(parts, name)
    if zone and "Z" in form:
        fields.zone = _zone_name(zone)
    text = format_fields(form, fields, c_library=True)
    if not text or len(text) >= 4096:
        raise fail(f"{name}: unknown system failure")
    return text


def strptime(value: Json, form: Json) -> list[Json]:
    if not isinstance(value, str) or not isinstance(form, str):
        raise fail("strptime/1 requires string inputs and arguments")
    found = read(value, form)
    if found is None or (found[1] and not found[1][0].isspace()):
        raise fail(f'date "{value}" does not match format "{form}"')
    at, rest = found
    parts: list[Json] = [at.year, at.month, at.day, at.hour, at.minute, at.second, at.weekday, at.yearday]
    return [*parts, rest] if rest else parts
