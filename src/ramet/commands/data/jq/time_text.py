"""strftime and strptime of the C library on broken-down times that need not be valid dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
"""Days of a year before each month."""
_COMPOSED = {
    "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "r": "%I:%M:%S %p", "R": "%H:%M", "T": "%H:%M:%S",
    "x": "%m/%d/%y", "X": "%H:%M:%S",
}  # fmt: skip
_DIRECTIVE = re.compile(r"%([-_0^#]*)(\d*)[EO]?([A-Za-z%])", re.ASCII)


@dataclass(slots=True)
class Fields:
    """A time as `struct tm` has it, but for the year, which is the one that people say."""

    year: int = 1900
    month: int = 0
    day: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    weekday: int = 8
    yearday: int = 367
    zone: str = "UTC"


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def day_of_year(year: int, month: int, day: int) -> int:
    return _BEFORE[month] + (month > 1 and is_leap(year)) + day - 1


def days_since_epoch(year: int, month: int, day: int) -> int:
    """Days from 1970 on; months and days that are too many go on in the next year and month."""
    year, month = year + month // 12, month % 12
    past = year - 1
    return 365 * (year - 1970) + past // 4 - past // 100 + past // 400 - 477 + day_of_year(year, month, day)


def from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day count since 1970."""
    year = 1970 + days * 400 // 146_097
    while days_since_epoch(year, 0, 1) > days:
        year -= 1
    while days_since_epoch(year + 1, 0, 1) <= days:
        year += 1
    rest = days - days_since_epoch(year, 0, 1)
    month = max(at for at in range(12) if day_of_year(year, at, 1) <= rest)
    return year, month, rest - day_of_year(year, month, 1) + 1


def seconds_since_epoch(at: Fields) -> int:
    return ((days_since_epoch(at.year, at.month, at.day) * 24 + at.hour) * 60 + at.minute) * 60 + at.second


def _week(at: Fields, first: int) -> int:
    return (at.yearday - (at.weekday - first) % 7 + 7) // 7


def _iso_week(at: Fields) -> tuple[int, int]:
    """Return the year and the week of ISO 8601."""

    def days(yearday: int) -> int:
        return yearday - (yearday - at.weekday + 382) % 7 + 3

    year, passed = at.year, days(at.yearday)
    if passed < 0:
        year -= 1
        passed = days(at.yearday + 365 + is_leap(year))
    elif (next_year := days(at.yearday - 365 - is_leap(year))) >= 0:
        year, passed = year + 1, next_year
    return year, passed // 7 + 1


def _name(names: tuple[str, ...], at: int) -> str:
    return names[at] if 0 <= at < len(names) else "?"


_NUMBERS: dict[str, tuple[Callable[[Fields], int], int, str]] = {
    "C": (lambda at: at.year // 100, 2, "0"),
    "d": (lambda at: at.day, 2, "0"),
    "e": (lambda at: at.day, 2, " "),
    "g": (lambda at: _iso_week(at)[0] % 100, 2, "0"),
    "G": (lambda at: _iso_week(at)[0], 1, "0"),
    "H": (lambda at: at.hour, 2, "0"),
    "I": (lambda at: at.hour % 12 or 12, 2, "0"),
    "j": (lambda at: at.yearday + 1, 3, "0"),
    "k": (lambda at: at.hour, 2, " "),
    "l": (lambda at: at.hour % 12 or 12, 2, " "),
    "m": (lambda at: at.month + 1, 2, "0"),
    "M": (lambda at: at.minute, 2, "0"),
    "s": (seconds_since_epoch, 1, "0"),
    "S": (lambda at: at.second, 2, "0"),
    "u": (lambda at: (at.weekday - 1) % 7 + 1, 1, "0"),
    "U": (lambda at: _week(at, 0), 2, "0"),
    "V": (lambda at: _iso_week(at)[1], 2, "0"),
    "w": (lambda at: at.weekday, 1, "0"),
    "W": (lambda at: _week(at, 1), 2, "0"),
    "y": (lambda at: at.year % 100, 2, "0"),
    "Y": (lambda at: at.year, 1, "0"),
}
_WORDS: dict[str, Callable[[Fields], str]] = {
    "a": lambda at: _name(DAYS, at.weekday)[:3],
    "A": lambda at: _name(DAYS, at.weekday),
    "b": lambda at: _name(MONTHS, at.month)[:3],
    "B": lambda at: _name(MONTHS, at.month),
    "h": lambda at: _name(MONTHS, at.month)[:3],
    "p": lambda at: "PM" if at.hour > 11 else "AM",
    "P": lambda at: "pm" if at.hour > 11 else "am",
    "z": lambda at: "+0000",
    "Z": lambda at: at.zone,
    "n": lambda at: "\n",
    "t": lambda at: "\t",
    "%": lambda at: "%",
}


def spelled(form: str, at: Fields) -> str:
    """strftime; directives that there are none of stay as they are."""

    def expand(found: re.Match[str]) -> str:
        flags, wide, letter = found[1], int(found[2] or 0), found[3]
        pad = next((flag for flag in reversed(flags) if flag in "-_0"), "")
        if letter in _NUMBERS:
            value, digits, fill = _NUMBERS[letter]
            number = value(at)
            fill = {"_": " ", "0": "0"}.get(pad, fill)
            text = str(abs(number)) if pad == "-" else str(abs(number)).rjust(max(digits, wide) - (number < 0), fill)
            return "-" + text if number < 0 else text
        if letter not in _WORDS and letter not in _COMPOSED:
            return found[0]
        text = spelled(_COMPOSED[letter], at) if letter in _COMPOSED else _WORDS[letter](at)
        if "^" in flags or ("#" in flags and letter in "aAbBh"):
            text = text.upper()
        elif "#" in flags and letter in "pZ":
            text = text.lower()
        return text.rjust(0 if pad == "-" else wide, "0" if pad == "0" else " ")

    return _DIRECTIVE.sub(expand, form)


# ---------------------------------------------------------------------------------------------------------- reading

_RANGES = {
    "d": (1, 31, 2), "e": (1, 31, 2), "H": (0, 23, 2), "k": (0, 23, 2), "I": (1, 12, 2), "l": (1, 12, 2),
    "m": (1, 12, 2), "M": (0, 59, 2), "S": (0, 61, 2), "j": (1, 366, 3), "y": (0, 99, 2), "Y": (0, 9999, 4),
    "C": (0, 99, 2), "u": (1, 7, 1), "w": (0, 6, 1), "U": (0, 53, 2), "W": (0, 53, 2), "V": (0, 53, 2), "g": (0, 99, 2),
}  # fmt: skip
"""The least and the largest number that a directive reads, and how many digits at most."""
_PATTERNS = {
    "%": re.compile("%"),
    "z": re.compile(r"\s*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"),
    "Z": re.compile(r"\s*\S*"),
    "s": re.compile("[0-9]+"),
    "G": re.compile("[0-9]+"),
}


class _Reader:
    """strptime: what the text has said so far."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.fields = Fields()
        self.said: set[str] = set()
        self.afternoon = False

    def read(self, form: str) -> bool:
        """Return whether the text goes on as the format says."""
        place = 0
        while place < len(form):
            char = form[place]
            place += 1
            if char.isspace():
                self.blanks()
            elif char != "%":
                if not self.text.startswith(char, self.at):
                    return False
                self.at += 1
            else:
                while place < len(form) and form[place] in "-_0^#EO":
                    place += 1
                if place == len(form) or not self.directive(form[place]):
                    return False
                place += 1
        return True

    def blanks(self) -> bool:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return True

    def directive(self, letter: str) -> bool:
        if letter in _COMPOSED:
            return self.read(_COMPOSED[letter])
        if letter in _RANGES:
            return self.number(letter)
        if letter in "aAbBh":
            return self.name(letter)
        if letter == "p":
            return self.half()
        if letter in "nt":
            return self.blanks()
        pattern = _PATTERNS.get(letter)
        found = None if pattern is None else pattern.match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        if letter == "s":
            self.instant(int(found[0]))
        return True

    def number(self, letter: str) -> bool:
        least, most, digits = _RANGES[letter]
        found = re.compile(rf" *([0-9]{{1,{digits}}})").match(self.text, self.at)
        if found is None or not least <= (value := int(found[1])) <= most:
            return False
        self.at = found.end()
        self.said.add({"e": "d", "k": "H", "l": "I", "u": "w"}.get(letter, letter))
        fields = self.fields
        if letter in "de":
            fields.day = value
        elif letter in "Hk":
            fields.hour = value
            self.said.discard("I")
        elif letter in "Il":
            fields.hour = value % 12
        elif letter == "m":
            fields.month = value - 1
        elif letter == "M":
            fields.minute = value
        elif letter == "S":
            fields.second = value
        elif letter == "j":
            fields.yearday = value - 1
        elif letter == "Y":
            fields.year = value
        elif letter == "y":
            fields.year = value + (1900 if value >= 69 else 2000)
        elif letter == "C":
            fields.year = value * 100
        elif letter in "uw":
            fields.weekday = value % 7
        return True

    def name(self, letter: str) -> bool:
        names = DAYS if letter in "aA" else MONTHS
        rest = self.text[self.at :].lower()
        for place, name in enumerate(names):
            known = next((one for one in (name, name[:3]) if rest.startswith(one.lower())), None)
            if known is not None:
                self.at += len(known)
                if names is DAYS:
                    self.fields.weekday = place
                    self.said.add("w")
                else:
                    self.fields.month = place
                    self.said.add("m")
                return True
        return False

    def half(self) -> bool:
        word = self.text[self.at : self.at + 2].lower()
        self.afternoon = word == "pm"
        self.at += 2
        return word in ("am", "pm")

    def instant(self, seconds: int) -> None:
        days, rest = divmod(seconds, 86400)
        year, month, day = from_days(days)
        self.fields = Fields(
            year, month, day, rest // 3600, rest // 60 % 60, rest % 60, (days + 4) % 7, day_of_year(year, month, day)
        )
        self.said |= {"w", "j", "m", "d"}

    def complete(self) -> Fields:
        """Return the fields, with the day of the week and of the year where a day was spoken of."""
        fields, said = self.fields, self.said
        if "I" in said and self.afternoon:
            fields.hour += 12
        if not said & set("YymdC"):
            return fields
        if "w" not in said:
            if "j" in said and not ("m" in said and "d" in said):
                _, month, day = from_days(days_since_epoch(fields.year, 0, fields.yearday + 1))
                fields.month = fields.month if "m" in said else month
                fields.day = fields.day if "d" in said else day
            fields.weekday = (days_since_epoch(fields.year, fields.month, fields.day) + 4) % 7
        if "j" not in said:
            fields.yearday = day_of_year(fields.year, fields.month, fields.day)
        return fields


def read(text: str, form: str) -> tuple[Fields, str] | None:
    """strptime: the fields and what follows them in the text, or nothing where it does not fit the format."""
    reader = _Reader(text)
    return (reader.complete(), text[reader.at :]) if reader.read(form) else None
