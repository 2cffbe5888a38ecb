"""cal and ncal: months as weeks in rows or in columns; Gregorian from September 1752 on, Julian before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, choose, flag, value
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.strftime import DAYS, MONTHS, NANO, at, zone_of


@dataclass(frozen=True, slots=True)
class CalOptions:
    one: bool = flag("-1", help="show only a single month (the default)")
    three: bool = flag("-3", help="show the month before and the one after as well")
    after: str | None = value("-A", metavar="NUMBER", help="show NUMBER months after")
    before: str | None = value("-B", metavar="NUMBER", help="show NUMBER months before")
    current: str | None = value("-d", metavar="YYYY-MM", help="take YYYY-MM for the current month")
    plain: bool = flag("-h", help="do not highlight today, which is never done here")
    yeardays: bool = flag("-j", help="number the days from the beginning of the year")
    month: str | None = value("-m", metavar="MONTH", help="show MONTH; with f or p behind, of the year next or before")
    year: bool = flag("-y", help="show a whole year")


@dataclass(frozen=True, slots=True)
class NcalOptions(CalOptions):
    rows: bool = choose({"-b -C": True, "-N": False}, default=False, help="weeks in rows, as cal has them, or columns")
    julian: bool = flag("-J", help="the Julian calendar; with -e, the Julian date of Easter")
    weeks: bool = flag("-w", help="the number of the week below each, or before it")
    monday: bool = choose({"-M": True, "-S": False}, default=False, help="weeks begin on Monday, or on Sunday")
    easter: str = choose({"-e": "western", "-o": "orthodox"}, default="", help="the date of Easter")
    country: str | None = value("-s", metavar="CODE", help="accepted where the change of calendars was that of CODE")
    marked: str | None = value("-H", metavar="YYYY-MM-DD", help="take that day for today")


def _julian_number(year: int, month: int, day: int, julian: bool) -> int:
    """Days since the beginning of all counting, so that dates of both calendars compare."""
    a = (14 - month) // 12
    y, m = year + 4800 - a, month + 12 * a - 3
    count = day + (153 * m + 2) // 5 + 365 * y + y // 4
    return count - 32083 if julian else count - y // 100 + y // 400 - 32045


_CHANGE = (1752, 9, 3)
"""The first day that was skipped."""


def _is_julian(year: int, month: int, day: int, always: bool) -> bool:
    return always or (year, month, day) < _CHANGE


def _days(year: int, month: int, always: bool) -> Iterator[tuple[int, int, int]]:
    """The days of a month: which of the month, which of all, and which of its year."""
    first = _julian_number(year, 1, 1, _is_julian(year, 1, 1, always))
    leap = year % 4 == 0 and (_is_julian(year, 2, 29, always) or year % 100 != 0 or year % 400 == 0)
    length = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
    for day in range(1, length + 1):
        if not always and _CHANGE <= (year, month, day) < (1752, 9, 14):
            continue
        number = _julian_number(year, month, day, _is_julian(year, month, day, always))
        yield day, number, number - first + 1


@dataclass(frozen=True)
class _Style:
    rows: bool
    yeardays: bool
    weeks: bool
    monday: bool
    julian: bool

    @property
    def cell(self) -> int:
        return 3 if self.yeardays else 2

    def grid(self, year: int, month: int) -> tuple[list[list[str]], list[str]]:
        """Six weeks of seven days, and the numbers of the weeks."""
        found = list(_days(year, month, self.julian))
        start = found[0][1]
        offset = (start - (0 if self.monday else -1)) % 7
        grid = [[" " * self.cell] * 7 for _ in range(6)]
        weeks = ["  "] * 6
        for place, (day, number, yearday) in enumerate(found, offset):
            grid[place // 7][place % 7] = f"{yearday if self.yeardays else day:{self.cell}d}"
            monday = number - (number % 7 if self.monday else (number + 1) % 7 - 1)
            weeks[place // 7] = f"{_week(monday):2d}"
        return grid, weeks

    def names(self) -> list[str]:
        first = 0 if self.monday else 6
        return [DAYS[(first + i) % 7][:2] for i in range(7)]

    # ------------------------------------------------------------------ weeks in rows

    def block(self, year: int, month: int, title: str) -> list[str]:
        grid, weeks = self.grid(year, month)
        wide = 7 * self.cell + 6
        lead = " w| " if self.weeks else ""
        full = wide + (5 if self.weeks else 0)
        head = [" " * ((full - len(title)) // 2) + title, lead + " ".join(n.rjust(self.cell) for n in self.names())]
        rows = [
            (f"{number}| " if self.weeks and number.strip() else " " * len(lead)) + " ".join(week)
            for number, week in zip(weeks, grid, strict=True)
        ]
        return [line.ljust(full) for line in (*head, *rows)]

    # ------------------------------------------------------------------ weeks in columns

    def columns(self, months: list[tuple[int, int, str]]) -> list[str]:
        wide = 6 * (self.cell + 1)
        head = "    " + "".join(f"{title:<{wide}}" for _, _, title in months)
        grids = [self.grid(year, month) for year, month, _ in months]
        lines = [head]
        for place, name in enumerate(self.names()):
            lines.append(name + "".join(" " + week[place] for grid, _ in grids for week in grid))
        if self.weeks:
            lines.append("  " + "".join(" " + number.rjust(self.cell) for _, weeks in grids for number in weeks))
        return lines


def _week(monday: int) -> int:
    """The ISO number of the week that begins on a Monday."""
    thursday = monday + 3
    # Years are found by trying: a week is of the year of its Thursday.
    year = (thursday - 1721060) * 400 // 146097
    while _julian_number(year + 1, 1, 1, False) <= thursday:
        year += 1
    while _julian_number(year, 1, 1, False) > thursday:
        year -= 1
    return (thursday - _julian_number(year, 1, 1, False)) // 7 + 1


def _year(text: str) -> int:
    if not text.isdigit():
        raise UsageError(f"not a valid year {text}", hint=False)
    if not 1 <= int(text) <= 9999:
        raise UsageError(f"year `{text}' not in range 1..9999", hint=False)
    return int(text)


def _month(text: str) -> int:
    if text.isdigit() and 1 <= int(text) <= 12:
        return int(text)
    for number, name in enumerate(MONTHS, 1):
        if len(text) >= 3 and name.lower().startswith(text.lower()):
            return number
    raise UsageError(f"{text} is neither a month number (1..12) nor a name", hint=False)


def _shift(year: int, month: int, by: int) -> tuple[int, int]:
    total = year * 12 + month - 1 + by
    return total // 12, total % 12 + 1


def _count(text: str | None) -> int:
    if text is None:
        return 0
    if not re.fullmatch(r"-?\d+", text):
        raise UsageError(f"argument to -A or -B must be a number: {text}", hint=False)
    return int(text)


async def cal(proc: Proc, o: CalOptions, operands: list[str]) -> int:
    ncal = isinstance(o, NcalOptions)
    style = _Style(
        rows=not isinstance(o, NcalOptions) or o.rows,
        yeardays=o.yeardays,
        weeks=isinstance(o, NcalOptions) and o.weeks,
        monday=isinstance(o, NcalOptions) and o.monday,
        julian=isinstance(o, NcalOptions) and o.julian,
    )
    year, month = _now(proc, o)
    if len(operands) > 2:
        raise UsageError("too many operands")
    if len(operands) == 2:
        month = _month(operands[0])
    if operands:
        year = _year(operands[-1])
    if isinstance(o, NcalOptions) and o.easter:
        await proc.emit(encode(_easter(year, o.easter == "orthodox")))
        return 0
    whole = o.year or (len(operands) == 1 and o.month is None)
    if o.month is not None:
        later = {"f": 1, "p": -1}.get(o.month[-1:], 0)
        month = _month(o.month[:-1] if later and o.month[:-1].isdigit() else o.month)
        year += later if later and o.month[:-1].isdigit() else 0
    before, after = _count(o.before), _count(o.after)
    if o.three:
        if whole and not o.year:
            said = "-3 together with a given year but no given month is not supported."
            raise UsageError(said, hint=False)
        before, after = 1, 1
    if whole:
        month, before, after = 1, 0, 11
    wanted = [_shift(year, month, by) for by in range(-before, after + 1)]
    titled = len(wanted) > 1 and style.rows and len({y for y, _ in wanted}) == 1
    out = _laid_out(style, wanted, titled or whole, ncal and not style.rows)
    await proc.emit(encode(out))
    return 0


def _now(proc: Proc, o: CalOptions) -> tuple[int, int]:
    if o.current is None:
        today = at(int(proc.now() * NANO), zone_of(proc))[0]
        return today.year, today.month
    found = re.fullmatch(r"(\d+)-(\d+)", o.current)
    if found is None:
        raise UsageError("bad usage")
    return _shift(int(found[1]), 1, int(found[2]) - 1)


def _laid_out(style: _Style, wanted: list[tuple[int, int]], titled: bool, in_columns: bool) -> str:
    """Months side by side as many as fit; one year for all of them is told once."""
    beside = (3 if style.yeardays else 4) if in_columns else (2 if style.yeardays else 3)
    wide = (24 if style.yeardays else 18) if in_columns else (27 if style.yeardays else 20) + 5 * style.weeks
    parts: list[str] = []
    if titled:
        year = str(wanted[0][0])
        parts.append(" " * ((wide * min(beside, len(wanted) if not in_columns else beside) - len(year)) // 2) + year)
    for first in range(0, len(wanted), beside):
        if first:
            parts.append("")
        group = [(y, m, MONTHS[m - 1] + ("" if titled else f" {y}")) for y, m in wanted[first : first + beside]]
        if in_columns:
            parts += style.columns(group)
        else:
            blocks = [style.block(*item) for item in group]
            parts += ["  ".join(lines) + "  " for lines in zip(*blocks, strict=True)]
    return "".join(part + "\n" for part in parts)


def _easter(year: int, orthodox: bool) -> str:
    """The Sunday after the first full moon of spring."""
    if orthodox:
        moon = (19 * (year % 19) + 15) % 30
        day = moon + (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7 + 114
        number = _julian_number(year, day // 31, day % 31 + 1, True)
    else:
        golden, century = year % 19, year // 100
        moon = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
        rest = (32 + 2 * (century % 4) + 2 * (year % 100 // 4) - moon - year % 4) % 7
        shift = (golden + 11 * moon + 22 * rest) // 451
        day = moon + rest - 7 * shift + 114
        return f"{day // 31:02d}/{day % 31 + 1:02d}/{year % 100:02d}\n"
    for month in (3, 4, 5):
        for date, count, _ in _days(year, month, False):
            if count == number:
                return f"{month:02d}/{date:02d}/{year % 100:02d}\n"
    raise UsageError(f"no date of Easter is known for {year}", hint=False)


COMMANDS = [
    Command("cal", cal, CalOptions, summary="Display a calendar.", usage="[OPTION]... [[MONTH] YEAR]", bad_usage=64),
    Command(
        "ncal",
        cal,
        NcalOptions,
        summary="Display a calendar with the weeks in columns, or the date of Easter.",
        usage="[OPTION]... [[MONTH] YEAR]",
        bad_usage=64,
        refused={"-p": "the dates at which countries changed calendars are not known", "-W=": "weeks are those of ISO"},
    ),
]
