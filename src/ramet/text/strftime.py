"""strftime with flags, widths and nanoseconds, and the time zones of TZ.

- `date` and its kin use gnulib's strftime; bash, awk and jq use the C library's (`c_library=True`), which has no `%N`,
  `%q`, `%:z` or flag `+`, and no least width for years.
- `Fields` need not be a valid date: jq formats whatever its arrays hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, partial

from ramet.concurrency.sizes import SMALL
from ramet.core.proc import Proc
from ramet.text.width import number_of

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
NANO = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone_of(proc: Proc) -> tzinfo:
    """The time zone of a command: what TZ says, else UTC."""
    return zone(proc.env.get("TZ", ""))


class Named(tzinfo):
    """A fixed offset with the name a POSIX TZ string gives it."""

    def __init__(self, name: str, offset: int) -> None:
        self._name, self._offset = name, timedelta(seconds=offset)

    def utcoffset(self, when: datetime | None) -> timedelta:
        return self._offset

    def dst(self, when: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, when: datetime | None) -> str:
        return self._name


_POSIX = re.compile(
    r"(?:<([A-Za-z0-9+-]+)>|([A-Za-z]{3,}))([-+]?\d{1,3}(?::\d{2}(?::\d{2})?)?)"
    r"(?:(?:<[A-Za-z0-9+-]+>|[A-Za-z]{3,}).*)?"
)
_DST_ZONES = {
    "EST5EDT": "America/New_York",
    "CST6CDT": "America/Chicago",
    "MST7MDT": "America/Denver",
    "PST8PDT": "America/Los_Angeles",
}


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """The zone of a TZ value; an unknown one is UTC by that name, as with the C library."""
    from zoneinfo import ZoneInfo

    name = name.lstrip(":")
    if name in ("", "UTC", "UTC0", "Universal", "Zulu"):
        return UTC
    if name in ("GMT", "GMT0"):
        return Named("GMT", 0)
    if name.split(",")[0] in _DST_ZONES:
        name = _DST_ZONES[name.split(",")[0]]
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        found = _POSIX.fullmatch(name)
        if found is None:
            letters = re.match("[A-Za-z]{3,}", name)
            return Named(letters[0] if letters else "", 0)
        sign = -1 if not found[3].startswith("-") else 1
        hours, _, rest = found[3].lstrip("+-").partition(":")
        minutes, _, seconds = rest.partition(":")
        offset = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        return Named(found[1] or found[2], sign * min(offset, 86_399))  # no more than a day, as datetime has it


CYCLE_YEARS = 400
CYCLE = 146_097 * 86_400
"""Seconds of 400 years, after which the calendar repeats itself, days of the week included."""
_MOST_CYCLES = (1 << 31) // CYCLE_YEARS


class Far(datetime):
    """A time beyond the years that a datetime can hold: some cycles of 400 years away from what it says."""

    cycles = 0


def year_of(when: datetime) -> int:
    return when.year + CYCLE_YEARS * when.cycles if isinstance(when, Far) else when.year


def at(nanoseconds: int, tz: tzinfo) -> tuple[datetime, int]:
    """The local time of a moment, and the nanoseconds within its second. OverflowError where no calendar reaches."""
    seconds, nanos = divmod(nanoseconds, NANO)
    try:
        return (EPOCH + timedelta(seconds=seconds)).astimezone(tz), nanos
    except OverflowError:
        cycles, rest = divmod(seconds, CYCLE)
        if abs(cycles) > _MOST_CYCLES:
            raise
        near = (EPOCH + timedelta(seconds=rest)).astimezone(tz)
        far = Far.combine(near.date(), near.timetz())
        far.cycles = cycles
        return far, nanos


def shown_at(pattern: str, nanoseconds: int, tz: tzinfo) -> str:
    """A moment as text; its seconds where no calendar reaches."""
    try:
        return strftime(pattern, *at(nanoseconds, tz))
    except (OverflowError, ValueError):
        return str(nanoseconds // NANO)


# ------------------------------------------------------------------------------------------- broken-down times


@dataclass(slots=True)
class Fields:
    """A time as `struct tm` has it, but for the year, which is written in full."""

    year: int = 1900
    month: int = 0
    day: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    weekday: int = 8
    """From Sunday, 0; the default is that of an unknown day."""
    yearday: int = 367
    zone: str = "UTC"
    offset: int = 0
    """Seconds east of UTC."""


def fields_of(when: datetime) -> Fields:
    offset = when.utcoffset()
    return Fields(
        year_of(when),
        when.month - 1,
        when.day,
        when.hour,
        when.minute,
        when.second,
        when.isoweekday() % 7,
        day_of_year(when.year, when.month - 1, when.day),
        when.tzname() or "",
        0 if offset is None else int(offset.total_seconds()),
    )


_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
"""Days of a year before each month."""


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def day_of_year(year: int, month: int, day: int) -> int:
    return _BEFORE[month] + (month > 1 and is_leap(year)) + day - 1


def days_since_epoch(year: int, month: int, day: int) -> int:
    """Days from 1970 on; months and days that are too many go on in the next year and month."""
    year, month = year + month // 12, month % 12
    past = year - 1
    return 365 * (year - 1970) + past // 4 - past // 100 + past // 400 - 477 + day_of_year(year, month, day)


def seconds_since_epoch(t: Fields) -> int:
    days = days_since_epoch(t.year, t.month, t.day)
    return ((days * 24 + t.hour) * 60 + t.minute) * 60 + t.second - t.offset


def iso_offset(total: int, colons: int) -> str:
    """Return an offset from UTC in seconds as `+hhmm`, or with colons; three leave out what is zero."""
    sign = "-" if total < 0 else "+"
    hours, rest = divmod(abs(total), 3600)
    minutes, seconds = divmod(rest, 60)
    if colons == 0:
        return f"{sign}{hours:02d}{minutes:02d}"
    if colons == 1:
        return f"{sign}{hours:02d}:{minutes:02d}"
    if colons == 2:
        return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}"
    if seconds:
        return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}"
    return f"{sign}{hours:02d}:{minutes:02d}" if minutes else f"{sign}{hours:02d}"


def _week(t: Fields, first: int) -> int:
    """Weeks that begin on Sunday (first=0) or Monday (first=1)."""
    return (t.yearday - (t.weekday - first) % 7 + 7) // 7


def _iso_week(t: Fields) -> tuple[int, int]:
    """Return the year and the week of ISO 8601."""

    def days(yearday: int) -> int:
        return yearday - (yearday - t.weekday + 382) % 7 + 3

    year, passed = t.year, days(t.yearday)
    if passed < 0:
        year -= 1
        passed = days(t.yearday + 365 + is_leap(year))
    elif (next_year := days(t.yearday - 365 - is_leap(year))) >= 0:
        year, passed = year + 1, next_year
    return year, passed // 7 + 1


def _name(names: tuple[str, ...], place: int) -> str:
    return names[place] if 0 <= place < len(names) else "?"


def _day_name(t: Fields) -> str:
    return _name(DAYS, (t.weekday - 1) % 7) if 0 <= t.weekday < 7 else "?"


# -------------------------------------------------------------------------------------------------- directives

_NUMBERS: dict[str, tuple[Callable[[Fields], int], int, str]] = {
    "C": (lambda t: t.year // 100, 2, "0"),
    "d": (lambda t: t.day, 2, "0"),
    "e": (lambda t: t.day, 2, " "),
    "g": (lambda t: _iso_week(t)[0] % 100, 2, "0"),
    "G": (lambda t: _iso_week(t)[0], 4, "0"),
    "H": (lambda t: t.hour, 2, "0"),
    "I": (lambda t: t.hour % 12 or 12, 2, "0"),
    "j": (lambda t: t.yearday + 1, 3, "0"),
    "k": (lambda t: t.hour, 2, " "),
    "l": (lambda t: t.hour % 12 or 12, 2, " "),
    "m": (lambda t: t.month + 1, 2, "0"),
    "M": (lambda t: t.minute, 2, "0"),
    "q": (lambda t: t.month // 3 + 1, 1, "0"),
    "s": (seconds_since_epoch, 1, "0"),
    "S": (lambda t: t.second, 2, "0"),
    "u": (lambda t: (t.weekday - 1) % 7 + 1, 1, "0"),
    "U": (lambda t: _week(t, 0), 2, "0"),
    "V": (lambda t: _iso_week(t)[1], 2, "0"),
    "w": (lambda t: t.weekday, 1, "0"),
    "W": (lambda t: _week(t, 1), 2, "0"),
    "y": (lambda t: t.year % 100, 2, "0"),
    "Y": (lambda t: t.year, 4, "0"),
}
"""Value, least digits and fill of each directive that is a number."""
_WORDS: dict[str, Callable[[Fields], str]] = {
    "a": lambda t: _day_name(t)[:3],
    "A": _day_name,
    "b": lambda t: _name(MONTHS, t.month)[:3],
    "B": lambda t: _name(MONTHS, t.month),
    "h": lambda t: _name(MONTHS, t.month)[:3],
    "p": lambda t: "AM" if t.hour < 12 else "PM",
    "P": lambda t: "am" if t.hour < 12 else "pm",
    "Z": lambda t: t.zone,
    "n": lambda t: "\n",
    "t": lambda t: "\t",
    "%": lambda t: "%",
}
COMPOSED = {
    "c": "%a %b %e %H:%M:%S %-Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
}
_GNULIB = re.compile(r"%([-_0+^#]*)(\d*)([EO]?)(:{0,3}z|[A-Za-z]|(?<=%)%|(?=%))", re.ASCII)
_C_LIBRARY = re.compile(r"%([-_0^#]*)(\d*)([EO]?)(.?)", re.ASCII | re.DOTALL)
_UNKNOWN = {"E": frozenset("aAbBdDeGgHhIjMmSUuVWw"), "O": frozenset("aACcDXxY")}
"""Directives that E and O do not modify."""


def strftime(pattern: str, when: datetime, nanos: int = 0, *, c_library: bool = False) -> str:
    """Format a time; unknown directives stay as they are."""
    return format_fields(pattern, fields_of(when), nanos, c_library=c_library)


def format_fields(pattern: str, t: Fields, nanos: int = 0, *, c_library: bool = False) -> str:
    """Format a broken-down time; unknown directives stay as they are."""
    cached = len(pattern) <= SMALL and not _WIDE(pattern)  # each execution has its bound on widths
    parse = _parse if cached else _parse.__wrapped__
    return "".join([part if isinstance(part, str) else part(t, nanos) for part in parse(pattern, c_library)])


_WIDE = re.compile(r"%[-_0+^#]*\d{4}").search
_Part = str | Callable[[Fields, int], str]
"""Literal text, or what formats one directive, given the nanoseconds of the second."""


@lru_cache(maxsize=256)
def _parse(pattern: str, c_library: bool) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    pos = 0
    for found in (_C_LIBRARY if c_library else _GNULIB).finditer(pattern):
        parts += (pattern[pos : found.start()], _directive(found, c_library))
        pos = found.end()
    return (*parts, pattern[pos:])


def _directive(found: re.Match[str], c_library: bool) -> _Part:
    """Compile one directive."""
    flags, width, modifier, letter = found.groups()
    pad = next((f for f in reversed(flags) if f in "-_0+"), "")
    wide = number_of(width)
    if not letter:
        return found[0].rjust(wide)  # what follows begins another one
    known = letter in _NUMBERS or letter in _WORDS or letter in COMPOSED or letter[-1] in "zN"
    if not known or (modifier and letter in _UNKNOWN[modifier]) or (c_library and letter in "Nq"):
        # The C library pads even what it does not know.
        return found[0].rjust(wide, "0" if pad == "0" else " ") if c_library and pad != "-" else found[0]
    if letter in _NUMBERS:
        return _number(letter, pad, wide, c_library)
    if letter == "N":
        return lambda t, nanos: _fraction(nanos, pad, wide)
    if letter[-1] == "z":
        return lambda t, nanos: _offset(t, len(letter) - 1, pad, wide)
    if letter in _WORDS:
        word = _WORDS[letter]
        if not flags and not wide:
            return lambda t, nanos: word(t)
    else:
        composed = "%+4Y-%m-%d" if letter == "F" and not c_library else COMPOSED[letter]
        word = partial(format_fields, composed, c_library=c_library)
    fill = "0" if pad in ("0", "+") else " "

    def text(t: Fields, nanos: int) -> str:
        shown = word(t).rjust(0 if pad == "-" else wide, fill)
        if "^" in flags:
            return shown.upper()
        if "#" in flags:
            return shown.lower() if letter in "pZ" else shown.upper() if letter in "aAbBh" else shown
        return shown

    return text


def _number(letter: str, pad: str, wide: int, c_library: bool) -> Callable[[Fields, int], str]:
    value, digits, fill = _NUMBERS[letter]
    if pad == "-":
        digits = wide = 0
    elif c_library and letter in "GY":
        digits = 1
    fill = " " if pad == "_" else "0" if pad in ("0", "+") else fill
    least = max(wide, digits)

    def text(t: Fields, nanos: int) -> str:
        shown = str(value(t))
        if pad == "+" and letter in "CGY" and max(len(shown), wide) > digits:
            shown = "+" + shown.rjust(wide - 1, "0")  # more digits than a reader expects are marked
        return _padded(shown, least, fill)

    return text


def _fraction(nanos: int, pad: str, wide: int) -> str:
    text = f"{nanos:09d}"
    if wide:
        text = text[:wide].ljust(wide, "0")
    if pad == "_" or (pad == "-" and wide):
        text = (text.rstrip("0") or "0").ljust(len(text) if pad == "_" else 0)
    return text


def _offset(t: Fields, colons: int, pad: str, wide: int) -> str:
    text = iso_offset(t.offset, colons)
    if pad == "-":
        return re.sub(r"^([-+])0+(?=\d)", r"\1", text)
    if pad == "_":
        return re.sub(r"^([-+])0+(?=\d)", r"\1", text).rjust(max(wide, len(text)))
    return text[0] + text[1:].rjust(wide - 1, "0") if len(text) < wide else text


def _padded(text: str, wide: int, fill: str) -> str:
    if text.startswith("-") and fill == "0":
        return "-" + text[1:].rjust(wide - 1, "0")
    return text.rjust(wide, fill)
