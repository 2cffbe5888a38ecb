"""GNU strftime with flags, widths and nanoseconds, and the time zones of TZ."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

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
        return Named("UTC", 0)
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


def _iso_year(when: datetime) -> int:
    return when.isocalendar()[0] + year_of(when) - when.year


def _seconds(when: datetime) -> int:
    return (when - EPOCH) // timedelta(seconds=1) + (CYCLE * when.cycles if isinstance(when, Far) else 0)


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


def iso_offset(when: datetime, colons: int) -> str:
    offset = when.utcoffset() or timedelta(0)
    total = int(offset.total_seconds())
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


def week_of_year(when: datetime, first: int) -> int:
    """Weeks that begin on Sunday (first=0) or Monday (first=1)."""
    yday = when.timetuple().tm_yday - 1
    wday = (when.weekday() + 1) % 7
    return (yday + 7 - ((wday - first) % 7)) // 7


_FIELDS: dict[str, Callable[[datetime, int], tuple[str, int, str]]] = {
    "C": lambda t, n: (str(year_of(t) // 100), 2, "0"),
    "d": lambda t, n: (str(t.day), 2, "0"),
    "e": lambda t, n: (str(t.day), 2, " "),
    "g": lambda t, n: (str(_iso_year(t) % 100), 2, "0"),
    "G": lambda t, n: (str(_iso_year(t)), 4, "0"),
    "H": lambda t, n: (str(t.hour), 2, "0"),
    "I": lambda t, n: (str(t.hour % 12 or 12), 2, "0"),
    "j": lambda t, n: (str(t.timetuple().tm_yday), 3, "0"),
    "k": lambda t, n: (str(t.hour), 2, " "),
    "l": lambda t, n: (str(t.hour % 12 or 12), 2, " "),
    "m": lambda t, n: (str(t.month), 2, "0"),
    "M": lambda t, n: (str(t.minute), 2, "0"),
    "q": lambda t, n: (str((t.month + 2) // 3), 1, "0"),
    "s": lambda t, n: (str(_seconds(t)), 1, "0"),
    "S": lambda t, n: (str(t.second), 2, "0"),
    "u": lambda t, n: (str(t.isoweekday()), 1, "0"),
    "U": lambda t, n: (str(week_of_year(t, 0)), 2, "0"),
    "V": lambda t, n: (str(t.isocalendar()[1]), 2, "0"),
    "w": lambda t, n: (str(t.isoweekday() % 7), 1, "0"),
    "W": lambda t, n: (str(week_of_year(t, 1)), 2, "0"),
    "y": lambda t, n: (str(year_of(t) % 100), 2, "0"),
    "Y": lambda t, n: (str(year_of(t)), 4, "0"),
}
_TEXTS: dict[str, Callable[[datetime], str]] = {
    "a": lambda t: DAYS[t.weekday()][:3],
    "A": lambda t: DAYS[t.weekday()],
    "b": lambda t: MONTHS[t.month - 1][:3],
    "B": lambda t: MONTHS[t.month - 1],
    "h": lambda t: MONTHS[t.month - 1][:3],
    "p": lambda t: "AM" if t.hour < 12 else "PM",
    "P": lambda t: "am" if t.hour < 12 else "pm",
    "Z": lambda t: t.tzname() or "",
    "n": lambda t: "\n",
    "t": lambda t: "\t",
    "%": lambda t: "%",
}
_COMPOSED = {
    "c": "%a %b %e %H:%M:%S %-Y",
    "D": "%m/%d/%y",
    "F": "%+4Y-%m-%d",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
}
_DIRECTIVE = re.compile(r"%([-_0+^#]*)(\d*)([EO]?)(:{0,3}z|[A-Za-z]|(?<=%)%|(?=%))", re.S)
_UNKNOWN = {"E": frozenset("aAbBdDeGgHhIjMmSUuVWw"), "O": frozenset("aACcDXxY")}
"""Directives that E and O do not modify."""


def strftime(pattern: str, when: datetime, nanos: int = 0) -> str:
    """GNU's strftime; what it does not know is left as it stands."""

    def expand(found: re.Match[str]) -> str:
        flags, width, modifier, letter = found.groups()
        if not letter:
            return found[0].rjust(number_of(width))  # what follows begins another one
        if modifier and letter in _UNKNOWN[modifier]:
            return found[0]
        pad = next((f for f in reversed(flags) if f in "-_0+"), "")
        wide = number_of(width)
        if letter in _FIELDS:
            text, digits, fill = _FIELDS[letter](when, nanos)
            if pad == "-":
                digits = wide = 0
            fill = " " if pad == "_" else "0" if pad in ("0", "+") else fill
            if pad == "+" and letter in "CGY" and max(len(text), wide) > digits:
                text = "+" + text.rjust(wide - 1, "0")  # more digits than a reader expects are marked
            text = _padded(text, max(wide, digits), fill)
        elif letter == "N":
            text = f"{nanos:09d}"
            if wide:
                text = text[:wide].ljust(wide, "0")
            if pad == "_" or (pad == "-" and wide):
                text = (text.rstrip("0") or "0").ljust(len(text) if pad == "_" else 0)
        elif letter.endswith("z"):
            text = iso_offset(when, len(letter) - 1)
            if pad == "-":
                text = re.sub(r"^([-+])0+(?=\d)", r"\1", text)
            elif pad == "_":
                text = re.sub(r"^([-+])0+(?=\d)", r"\1", text).rjust(max(wide, len(text)))
            elif len(text) < wide:
                text = text[0] + text[1:].rjust(wide - 1, "0")
        elif letter in _COMPOSED:
            text = strftime(_COMPOSED[letter], when, nanos)
            text = text.rjust(wide, "0" if pad in ("0", "+") else " ") if pad != "-" else text
        elif letter in _TEXTS:
            text = _TEXTS[letter](when)
            text = text.rjust(wide, "0" if pad in ("0", "+") else " ") if pad != "-" else text
        else:
            return found[0]
        if "^" in flags:
            return text.upper()
        if "#" in flags:
            return text.lower() if letter in "pZ" else text.upper() if letter in "aAbBh" else text
        return text

    return _DIRECTIVE.sub(expand, pattern)


def _padded(text: str, wide: int, fill: str) -> str:
    if text.startswith("-") and fill == "0":
        return "-" + text[1:].rjust(wide - 1, "0")
    return text.rjust(wide, fill)
