"""jq's broken-down times: `[year, month from 0, day, hours, minutes, seconds, weekday, day of the year]`, in UTC."""

from __future__ import annotations

import calendar
import math
import re
from datetime import UTC, datetime, timedelta

from ramet.commands.jq.values import Json, fail, is_number, number

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def gmtime(value: Json, name: str = "gmtime") -> list[Json]:
    if not is_number(value):
        raise fail(f"{name}() requires numeric inputs")
    whole = math.floor(value)
    try:
        moment = _EPOCH + timedelta(seconds=whole)
    except OverflowError:
        raise fail("error converting number of seconds since epoch to datetime") from None
    seconds = moment.second + (value - whole)
    day_of_year = moment.timetuple().tm_yday - 1
    weekday = (moment.weekday() + 1) % 7
    return [
        moment.year, moment.month - 1, moment.day, moment.hour, moment.minute, number(float(seconds)),
        weekday, day_of_year,
    ]  # fmt: skip


def _broken(value: Json, name: str) -> list[Json]:
    if is_number(value):
        return gmtime(value)
    if not isinstance(value, list):
        raise fail(f"{name} requires parsed datetime inputs")
    if len(value) < 6 or not all(is_number(item) for item in value[:6]):
        raise fail(f"{name} requires parsed datetime inputs")
    return value


def mktime(value: Json) -> Json:
    if not isinstance(value, list):
        raise fail("mktime requires array inputs")
    if len(value) < 6 or not all(is_number(item) for item in value[:6]):
        raise fail("mktime requires parsed datetime inputs")
    year, month, day, hour, minute, second = (int(item) for item in value[:6])
    return int(calendar.timegm((year, month + 1, day, hour, minute, second)))


def strftime(value: Json, form: Json, name: str = "strftime/1") -> str:
    parts = _broken(value, name)
    if not isinstance(form, str):
        raise fail(f"{name} requires a string format")
    year, month, day, hour, minute, second = (int(item) for item in parts[:6])
    try:
        moment = datetime(year, month + 1, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        raise fail(f"{name}: unknown system failure") from None
    form = form.replace("%s", str(int(moment.timestamp()))).replace("%Z", "UTC").replace("%e", f"{day:2d}")
    return moment.strftime(form)


_FIELDS = {
    "Y": r"(?P<Y>[+-]?\d{1,4})", "m": r"(?P<m>\d{1,2})", "d": r"\s*(?P<d>\d{1,2})", "e": r"\s*(?P<d>\d{1,2})",
    "H": r"(?P<H>\d{1,2})", "M": r"(?P<M>\d{1,2})", "S": r"(?P<S>\d{1,2})", "j": r"(?P<j>\d{1,3})",
    "Z": r"(?P<Z>[A-Za-z]+)", "z": r"(?P<z>[+-]\d{2}:?\d{2}|Z)", "b": r"(?P<b>[A-Za-z]+)", "B": r"(?P<b>[A-Za-z]+)",
    "a": r"(?P<a>[A-Za-z]+)", "A": r"(?P<a>[A-Za-z]+)", "y": r"(?P<y>\d{2})", "I": r"(?P<I>\d{1,2})",
    "p": r"(?P<p>[APap][Mm])",
    "s": r"(?P<s>-?\d+)", "T": None, "D": None, "F": None, "R": None, "n": r"\s+", "t": r"\s+", "%": "%", "c": None,
    "h": r"(?P<b>[A-Za-z]+)", "u": r"(?:\d)", "w": r"(?:\d)", "U": r"(?:\d{1,2})", "V": r"(?:\d{1,2})",
    "G": r"(?:\d{4})",
}  # fmt: skip
_SHORT = {"T": "%H:%M:%S", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "c": "%a %b %e %H:%M:%S %Y"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def strptime(value: Json, form: Json) -> list[Json]:
    if not isinstance(value, str):
        raise fail("strptime/1 requires string inputs and arguments")
    if not isinstance(form, str):
        raise fail("strptime/1 requires string inputs and arguments")
    for short, long in _SHORT.items():
        form = form.replace("%" + short, long)
    pattern: list[str] = []
    at = 0
    while at < len(form):
        char = form[at]
        if char == "%" and at + 1 < len(form):
            field = _FIELDS.get(form[at + 1])
            if field is None:
                raise fail(f'date "{value}" does not match format "{form}"')
            pattern.append(field)
            at += 2
            continue
        pattern.append(r"\s*" if char.isspace() else re.escape(char))
        at += 1
    found = re.fullmatch("".join(pattern), value)
    if found is None:
        raise fail(f'date "{value}" does not match format "{form}"')
    got = {name: text for name, text in found.groupdict().items() if text is not None}
    if "s" in got:
        return gmtime(int(got["s"]))
    year = int(got.get("Y", 1900))
    if "y" in got:
        year = int(got["y"]) + (1900 if int(got["y"]) >= 69 else 2000)
    month = int(got.get("m", 1))
    if "b" in got:
        name = got["b"][:3].lower()
        if name not in _MONTHS:
            raise fail(f'date "{value}" does not match format "{form}"')
        month = _MONTHS.index(name) + 1
    day = int(got.get("d", 1))
    hour = int(got.get("H", 0))
    if "I" in got:
        hour = int(got["I"]) % 12 + (12 if got.get("p", "").lower() == "pm" else 0)
    minute, second = int(got.get("M", 0)), int(got.get("S", 0))
    if not got.keys() & {"Y", "y", "m", "b", "d", "j"}:
        # The library leaves a day alone that nothing was said of; these two values stand for no day at all.
        named = [name for name in _WEEKDAYS if got.get("a", "-").lower().startswith(name)]
        return [year, 0, 0, hour, minute, second, _WEEKDAYS.index(named[0]) if named else 8, 367]
    if "d" not in got and "j" not in got:
        eve = datetime(year, month, 1) - timedelta(days=1)
        ordinal = (datetime(year, month, 1) - datetime(year, 1, 1)).days - 1
        return [year, month - 1, 0, hour, minute, second, (eve.weekday() + 1) % 7, ordinal]
    try:
        moment = datetime(year, month, day)
    except ValueError:
        raise fail(f'date "{value}" does not match format "{form}"') from None
    if "j" in got and "m" not in got:
        moment = datetime(year, 1, 1) + timedelta(days=int(got["j"]) - 1)
    yday = moment.timetuple().tm_yday - 1
    return [moment.year, moment.month - 1, moment.day, hour, minute, second, (moment.weekday() + 1) % 7, yday]
