"""Dates as people write them (`2 days ago`, `next friday`), for date -d, touch -d and find -newermt.

- The parser is GNU's: a text becomes tokens, tokens become items (a date, a time, a zone, a weekday, a relative amount,
  a lone number), each kind at most once except relative amounts.
- Items are combined in mktime's order: months and days first, then seconds.
- One token of lookahead decides what an item is, and an item takes as many tokens as it can: in `10:00 +3 hours` the
  number is a zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from ramet.text.strftime import CYCLE, CYCLE_YEARS, DAYS, EPOCH, MONTHS, NANO, zone

_NAMES = {name.lower(): ("month", i) for i, name in enumerate(MONTHS, 1)}
_NAMES |= {name.lower(): ("day", i) for i, name in enumerate(DAYS)}
_SHORT = {name[:3]: what for name, what in _NAMES.items()}
_NAMES |= {"sept": ("month", 9), "tues": ("day", 1), "wednes": ("day", 2), "thur": ("day", 3), "thurs": ("day", 3)}
_WORDS = {
    "dst": ("dst", 0),
    "year": ("year", 1), "month": ("month unit", 1), "fortnight": ("day unit", 14), "week": ("day unit", 7),
    "day": ("day unit", 1), "hour": ("hour", 1), "minute": ("minute", 1), "min": ("minute", 1),
    "second": ("second", 1), "sec": ("second", 1),
}  # fmt: skip
_UNITS = frozenset(("year", "month unit", "day unit", "hour", "minute", "second"))
_RELATIVE = {
    "tomorrow": ("shift", 1), "yesterday": ("shift", -1), "today": ("shift", 0), "now": ("shift", 0),
    "ago": ("ago", -1), "hence": ("ago", 1),
} | {
    name: ("ordinal", value)
    for name, value in {
        "last": -1, "this": 0, "next": 1, "first": 1, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
        "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
    }.items()
}  # fmt: skip
_ZONES = {
    "wet": 0, "art": -3, "brt": -3, "nst": -3.5, "ast": -4, "clt": -4, "est": -5, "cst": -6, "mst": -7, "pst": -8,
    "akst": -9, "hst": -10, "hast": -10, "sst": -12, "wat": 1, "cet": 1, "met": 1, "mez": 1, "eet": 2, "cat": 2,
    "sast": 2, "eat": 3, "msk": 3, "ist": 5.5, "sgt": 8, "kst": 9, "jst": 9, "gst": 10, "nzst": 12,
}  # fmt: skip
_SUMMER_ZONES = {
    "west": 0, "bst": 0, "brst": -3, "ndt": -3.5, "adt": -4, "clst": -4, "edt": -5, "cdt": -6, "mdt": -7, "pdt": -8,
    "akdt": -9, "hadt": -10, "cest": 1, "mest": 1, "mesz": 1, "eest": 2, "msd": 3, "nzdt": 12,
}  # fmt: skip
"""Daylight saving zones by their standard zones."""
_HOUR = 3600
_LAST_YEAR = 9900
"""Years within which relative amounts cannot overflow a datetime."""


class BadDate(ValueError):
    """The text is not a date."""


class _Token(NamedTuple):
    kind: str
    value: int = 0
    digits: int = 0
    nanos: int = 0
    """Nanoseconds of the fraction, added to the whole part."""


_END = _Token("")
_NUMBER = re.compile(r"([-+]\s*)?(\d+)(?:[.,](\d+))?", re.ASCII)
_WORD = re.compile(r"[A-Za-z][A-Za-z.]*")


@dataclass
class _Parts:
    """Values set by the items of a text."""

    date: tuple[int, int] | None = None
    year: tuple[int, int] | None = None
    """With the number of its digits."""
    time: tuple[int, int, int, int] = (0, 0, 0, 0)
    half: int | None = None
    zone: int = 0
    summer: bool | None = None
    weekday: tuple[int, int] = (0, 0)
    relative: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1
        if self.seen[what] > 1:
            raise BadDate(what)


def parse_date(text: str, now_ns: int, tz: tzinfo) -> int:
    """Parse a date relative to `now_ns` to nanoseconds since the epoch; raises BadDate."""
    text = text.strip()
    found = re.match(r'TZ="((?:[^"\\]|\\.)*)"\s*', text)
    if found:
        tz, text = zone(found[1]), text[found.end() :]
    if text.startswith("@"):
        return _epoch(text[1:])
    try:
        return _assemble(_Items(_tokens(text or "0", now_ns, tz)).read(), now_ns, tz)
    except (OverflowError, ValueError) as error:
        raise BadDate(str(error)) from None


def _epoch(text: str) -> int:
    found = re.fullmatch(r"\s*([-+]?\d+)(?:[.,](\d+))?\s*", text)
    if found is None:
        raise BadDate(text)
    nanos = int((found[2] or "0")[:9].ljust(9, "0"))
    whole = int(found[1]) * NANO
    return whole - nanos if found[1].startswith("-") else whole + nanos


# ------------------------------------------------------------------------------------------------------- tokens


def _tokens(text: str, now_ns: int, tz: tzinfo) -> list[_Token]:
    out: list[_Token] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif number := _NUMBER.match(text, at):
            out.append(_number(number))
            at = number.end()
        elif word := _WORD.match(text, at):
            out.append(_word(word[0].lower(), now_ns, tz))
            at = word.end()
        elif char in "+-":
            at += 1  # a sign without a number
        elif char == "(":
            at = _after_comment(text, at)
        else:
            out.append(_Token(char))
            at += 1
    return out


def _after_comment(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)


def _number(found: re.Match[str]) -> _Token:
    sign, digits, fraction = found.groups()
    value = int(digits)
    negative = sign is not None and sign[0] == "-"
    if fraction is not None:
        nanos = int(fraction[:9].ljust(9, "0"))
        total = value * NANO + nanos
        total = -total if negative else total
        return _Token("signed fraction" if sign else "fraction", total // NANO, len(digits), total % NANO)
    return _Token("signed" if sign else "number", -value if negative else value, len(digits))


def _word(word: str, now_ns: int, tz: tzinfo) -> _Token:
    if word in ("am", "a.m.", "pm", "p.m."):
        return _Token("half", 12 if word[0] == "p" else 0)
    short = len(word) == 3 or (len(word) == 4 and word[3] == ".")
    if (what := (_SHORT.get(word[:3]) if short else None) or _NAMES.get(word)) is not None:
        return _Token(*what)
    token = _named_zone(word, now_ns, tz)
    if token is not None:
        return token
    if (
        what := _WORDS.get(word) or (_WORDS.get(word[:-1]) if word[-1] == "s" and word != "dsts" else None)
    ) is not None:
        return _Token(*what)
    if (what := _RELATIVE.get(word)) is not None:
        return _Token(*what)
    if len(word) == 1 and word != "j":
        return _Token("T" if word == "t" else "zone", _military(word))
    token = _named_zone(word.replace(".", ""), now_ns, tz) if "." in word else None
    if token is None:
        raise BadDate(word)
    return token


def _named_zone(word: str, now_ns: int, tz: tzinfo) -> _Token | None:
    if word in ("gmt", "ut", "utc"):
        return _Token("zone", 0)
    if word.isalpha() and (summer := _local_names(now_ns, tz).get(word)) is not None:
        return _Token("local", summer)
    if word in _ZONES:
        return _Token("zone", int(_ZONES[word] * _HOUR))
    if word in _SUMMER_ZONES:
        return _Token("summer zone", int(_SUMMER_ZONES[word] * _HOUR) + _HOUR)
    return None


def _local_names(now_ns: int, tz: tzinfo) -> dict[str, int]:
    """Names of the zone in standard and daylight saving time, and whether each is daylight saving; -1: both."""
    names: dict[str, int] = {}
    for quarter in range(4):
        when = (EPOCH + timedelta(seconds=now_ns // NANO, days=90 * quarter)).astimezone(tz)
        name, summer = (tz.tzname(when) or "").lower(), int(bool(tz.dst(when)))
        if names.get(name, summer) != summer:
            return {name: -1}
        names[name] = summer
    return names


def _military(letter: str) -> int:
    if letter == "z":
        return 0
    if letter <= "i":
        return (ord(letter) - 96) * _HOUR
    if letter <= "m":
        return (ord(letter) - 97) * _HOUR
    return -(ord(letter) - 109) * _HOUR


# -------------------------------------------------------------------------------------------------------- items


class _Items:
    """Parser of tokens to parts, item by item."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at, self.parts = tokens, 0, _Parts()

    def read(self) -> _Parts:
        while self.at < len(self.tokens):
            self.item()
        return self.parts

    def peek(self, ahead: int = 0) -> _Token:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else _END

    def take(self, kind: str = "") -> _Token:
        token = self.peek()
        if kind and token.kind != kind:
            raise BadDate(token.kind)
        self.at += 1
        return token

    def maybe(self, kind: str) -> _Token | None:
        return self.take() if self.peek().kind == kind else None

    def item(self) -> None:
        token, parts = self.take(), self.parts
        kind = token.kind
        if kind == "number":
            self.number(token)
        elif kind == "month":
            self.month(token.value)
        elif kind == "day":
            self.maybe(",")
            self.weekday(0, token.value)
        elif kind == "ordinal" and self.peek().kind == "day":
            self.weekday(token.value, self.take().value)
        elif kind in ("ordinal", "signed") and self.peek().kind in _UNITS:
            self.relative(token.value, self.take())
        elif kind in ("fraction", "signed fraction") and self.peek().kind == "second":
            self.take()
            back = self.ago()
            self.add("second", back * token.value)
            self.add("nanos", back * token.nanos)
        elif kind in _UNITS:
            self.relative(1, token)
        elif kind == "shift":
            self.add("day unit", token.value)
        elif kind in ("zone", "T"):
            self.zone(token.value)
        elif kind == "summer zone":
            parts.count("zone")
            parts.zone = token.value
        elif kind == "local":
            parts.count("zone")
            parts.summer = None if token.value < 0 else bool(token.value)
            if self.maybe("dst"):
                parts.summer = True
        else:
            raise BadDate(kind)

    def number(self, token: _Token) -> None:
        """Parse an item that begins with a number, by the token after it."""
        kind = self.peek().kind
        if kind == ":":
            self.clock(token)
        elif kind == "/":
            self.slashed(token)
        elif kind == "month":
            month = self.take().value
            if self.peek().kind in ("number", "signed"):
                year = self.take()
                self.set_year(-year.value if year.kind == "signed" else year.value, year.digits)
            self.set_date(month, token.value)
        elif kind == "day":
            self.weekday(token.value, self.take().value)
        elif kind in _UNITS:
            self.relative(token.value, self.take())
        elif kind == "half":
            self.set_time(token.value, half=self.take().value)
        elif kind == "signed":
            self.number_and_signed(token, self.take())
        else:
            self.lone(token)

    def number_and_signed(self, token: _Token, second: _Token) -> None:
        following = self.peek()
        if following.kind == "signed":
            self.take()
            self.set_year(token.value, token.digits)
            self.set_date(-second.value, -following.value)
            if self.maybe("T"):
                hour = self.take("number")
                if self.peek().kind == ":":
                    self.clock(hour, halves=False)
                else:
                    self.offset(self.take("signed"))
                    self.set_time(hour.value)
        elif following.kind in _UNITS:
            self.lone(token)
            self.take()
            self.add(following.kind, second.value * following.value)
        else:
            self.offset(second)
            self.set_time(token.value)

    def clock(self, hour: _Token, *, halves: bool = True) -> None:
        """Parse `10:00`, `10:00:05.5`, optionally with am, pm or a zone."""
        self.take(":")
        minute = self.take("number").value
        second = nanos = 0
        if self.maybe(":"):
            token = self.take()
            if token.kind not in ("number", "fraction"):
                raise BadDate(token.kind)
            second, nanos = token.value, token.nanos
        half = self.maybe("half") if halves else None
        if half is None and self.peek().kind == "signed":
            self.offset(self.take())
        self.set_time(hour.value, minute, second, nanos, None if half is None else half.value)

    def offset(self, token: _Token) -> None:
        self.parts.count("zone")
        self.parts.zone = self.hours_and_minutes(token)

    def hours_and_minutes(self, token: _Token) -> int:
        sign, value = (-1, -token.value) if token.value < 0 else (1, token.value)
        if self.maybe(":"):
            minutes = value * 60 + self.take("number").value
        else:
            value = value * 100 if token.digits <= 2 else value
            minutes = value // 100 * 60 + value % 100
        if minutes > 24 * 60:
            raise BadDate("zone")
        return sign * minutes * 60

    def slashed(self, first: _Token) -> None:
        self.take()
        second = self.take("number")
        if not self.maybe("/"):
            self.set_date(first.value, second.value)
            return
        third = self.take("number")
        if first.digits >= 4:
            self.set_year(first.value, first.digits)
            self.set_date(second.value, third.value)
        else:
            self.set_year(third.value, third.digits)
            self.set_date(first.value, second.value)

    def month(self, month: int) -> None:
        """`Nov 15`, `November 15, 2026`, `Nov-15-2026`."""
        day = self.take()
        if day.kind == "signed":
            year = self.take("signed")
            self.set_year(-year.value, year.digits)
            self.set_date(month, -day.value)
            return
        if day.kind != "number":
            raise BadDate(day.kind)
        if self.maybe(","):
            year = self.take("number")
            self.set_year(year.value, year.digits)
        self.set_date(month, day.value)

    def lone(self, token: _Token) -> None:
        """Parse a lone number: a year after a date, a date without dashes, or hours and minutes."""
        parts, value, digits = self.parts, token.value, token.digits
        wanted = parts.date is not None and parts.year is None and not parts.relative
        if wanted and (parts.seen.get("time") or digits > 2):
            parts.year = value, digits
        elif digits > 4:
            self.set_year(value // 10000, digits - 4)
            self.set_date(value // 100 % 100, value % 100)
        elif digits <= 2:
            self.set_time(value)
        else:
            self.set_time(value // 100, value % 100)

    def zone(self, seconds: int) -> None:
        parts = self.parts
        parts.count("zone")
        parts.zone = seconds
        if self.maybe("dst"):
            parts.zone += _HOUR
        elif self.peek().kind == "signed":
            token = self.take()
            if self.peek().kind in _UNITS:
                unit = self.take()
                self.add(unit.kind, token.value * unit.value)
            else:
                parts.zone += self.hours_and_minutes(token)

    def weekday(self, ordinal: int, day: int) -> None:
        self.parts.count("weekday")
        self.parts.weekday = ordinal, day

    def relative(self, amount: int, unit: _Token) -> None:
        self.add(unit.kind, self.ago() * amount * unit.value)

    def ago(self) -> int:
        token = self.maybe("ago")
        return 1 if token is None else token.value

    def add(self, unit: str, amount: int) -> None:
        self.parts.relative[unit] = self.parts.relative.get(unit, 0) + amount

    def set_year(self, value: int, digits: int) -> None:
        self.parts.year = value, digits

    def set_date(self, month: int, day: int) -> None:
        self.parts.count("date")
        self.parts.date = month, day

    def set_time(self, hour: int, minute: int = 0, second: int = 0, nanos: int = 0, half: int | None = None) -> None:
        self.parts.count("time")
        self.parts.time, self.parts.half = (hour, minute, second, nanos), half


# ----------------------------------------------------------------------------------------------------- together


def _assemble(parts: _Parts, now_ns: int, tz: tzinfo) -> int:
    seen, relative = parts.seen, parts.relative
    seconds, nanos = divmod(now_ns, NANO)
    base = (EPOCH + timedelta(seconds=seconds)).astimezone(tz)
    month, day = parts.date or (base.month, base.day)
    year = base.year
    if parts.year is not None:
        year, digits = parts.year
        if digits == 2:
            year += 2000 if year < 69 else 1900
    if seen.get("time"):
        hour, minute, second, nanos = parts.time
        if parts.half is not None:
            if not 1 <= hour <= 12:
                raise BadDate("hour")
            hour = hour % 12 + parts.half
    elif relative and not seen.get("date") and not seen.get("weekday"):
        hour, minute, second = base.hour, base.minute, base.second
    else:
        hour = minute = second = nanos = 0
    cycles = 0
    if not 0 < year <= _LAST_YEAR:
        cycles, year = divmod(year, CYCLE_YEARS)
        cycles, year = cycles - 5, year + 5 * CYCLE_YEARS
    given = datetime(year, month, day, hour, minute, second)  # 31 February is not a date, before anything is added
    named = bool(seen.get("zone")) and parts.summer is None
    here: tzinfo = timezone(timedelta(seconds=parts.zone)) if named else tz
    fold = _fold(given, tz, parts.summer) if not named and seen else 0
    if seen.get("weekday") and not seen.get("date"):
        ordinal, wanted = parts.weekday
        ahead = (wanted - given.weekday()) % 7
        day += ahead + 7 * (ordinal - (1 if ordinal > 0 and ahead != 0 else 0))
    months = year * 12 + month - 1 + relative.get("year", 0) * 12 + relative.get("month unit", 0)
    days = day - 1 + relative.get("day unit", 0)
    local = datetime(months // 12, months % 12 + 1, 1) + timedelta(
        days=days, hours=hour, minutes=minute, seconds=second
    )
    moment = local.replace(tzinfo=here, fold=fold).astimezone(UTC)
    moment += timedelta(
        hours=relative.get("hour", 0), minutes=relative.get("minute", 0), seconds=relative.get("second", 0)
    )
    return ((moment - EPOCH) // timedelta(seconds=1) + cycles * CYCLE) * NANO + nanos + relative.get("nanos", 0)


def _fold(given: datetime, tz: tzinfo, summer: bool | None) -> int:
    """Resolve ambiguous local times when clocks go back; reject the missing hour when they go forward."""
    for fold in (0, 1):
        when = given.replace(tzinfo=tz, fold=fold).astimezone(UTC).astimezone(tz)
        if when.replace(tzinfo=None, fold=0) == given and (summer is None or bool(tz.dst(when)) == summer):
            return fold
    raise BadDate(str(given))
