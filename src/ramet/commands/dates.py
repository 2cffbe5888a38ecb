"""GNU's human dates (`2 days ago`, `next friday`, `2026-01-31 10:00 +0200`) for date -d, touch -d, find -newermt.

A text is cut into tokens, each group of tokens sets one kind of thing (date, time, zone, weekday, relative), and the
parts are put together in the order the C library's mktime would: months and days first, then seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from ramet.commands.clock import CYCLE, CYCLE_YEARS, EPOCH, NANO, zone

MONTHS = {
    m: i
    for i, m in enumerate(
        [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ],
        1,
    )
}
MONTHS |= {m[:3]: i for m, i in list(MONTHS.items())} | {"sept": 9}
WEEKDAYS = {d: i for i, d in enumerate(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])}
WEEKDAYS |= {d[:3]: i for d, i in list(WEEKDAYS.items())} | {"tues": 1, "wednes": 2, "thur": 3, "thurs": 3}
UNITS = {
    "year": "year",
    "month": "month",
    "fortnight": "fortnight",
    "week": "week",
    "day": "day",
    "hour": "hour",
    "minute": "minute",
    "min": "minute",
    "second": "second",
    "sec": "second",
}
ORDINALS = {
    "last": -1,
    "this": 0,
    "next": 1,
    "first": 1,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "eleventh": 11,
    "twelfth": 12,
}
ZONES = {
    "utc": 0,
    "gmt": 0,
    "ut": 0,
    "z": 0,
    "wet": 0,
    "west": 1,
    "bst": 1,
    "cet": 1,
    "met": 1,
    "cest": 2,
    "mest": 2,
    "eet": 2,
    "eest": 3,
    "msk": 3,
    "ist": 5.5,
    "jst": 9,
    "nzst": 12,
    "nzdt": 13,
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "akst": -9,
    "akdt": -8,
    "hst": -10,
    "ast": -4,
    "adt": -3,
    "brt": -3,
    "art": -3,
    "sst": -12,
    "sgt": 8,
}

_TOKEN = re.compile(
    r"\s+|,"
    r"|(?P<isodt>\d{4,}-\d{1,2}-\d{1,2})"
    r"|(?P<us>\d{1,2}/\d{1,2}(?:/\d{1,4})?(?!\d))|(?P<ymd>\d{4}/\d{1,2}/\d{1,2})"
    r"|(?P<dmy>\d{1,2}[- ]?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?(?:[- ]\d{2,4}(?![\d:]))?)"
    r"|(?P<short2>\d{2}-\d{1,2}-\d{1,2})"
    r"|(?P<time>\d{1,2}:\d{1,2}(?::\d{1,2}(?:[.,]\d+)?)?)"
    r"|(?P<zone>[-+]\d{1,2}:\d{2})"
    r"|(?P<number>[-+]?\s*\d+(?:\.\d+)?)"
    r"|(?P<word>[a-z]+\.?)"
    r"|(?P<paren>\([^)]*\))",
    re.I,
)


_LAST_YEAR = 9900
"""Years that leave a datetime room for what is added."""


class BadDate(ValueError):
    """The text is not a date."""


@dataclass
class _Parts:
    date: tuple[int | None, int, int] | None = None
    time: tuple[int, int, int, int] | None = None
    offset: int | None = None
    weekday: tuple[int, int] | None = None
    relative: dict[str, int] = field(default_factory=dict)
    nanos: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def once(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        if self.counts[what] > 1:
            raise BadDate(what)


def parse_date(text: str, now_ns: int, tz: tzinfo) -> int:
    """Nanoseconds since the epoch of what the text means at `now_ns`; BadDate when it means nothing."""
    text = text.strip()
    found = re.match(r'TZ="((?:[^"\\]|\\.)*)"\s*', text)
    if found:
        tz, text = zone(found[1]), text[found.end() :]
    if text.startswith("@"):
        return _epoch(text[1:])
    if re.fullmatch(r"\d{4}-\d{1,2}", text):
        raise BadDate(text)  # A year and a month are no date.
    parts = _Parts()
    if not text:
        parts.time = (0, 0, 0, 0)
    _scan(text, parts)
    try:
        return _assemble(parts, now_ns, tz)
    except (OverflowError, ValueError) as error:
        raise BadDate(str(error)) from None


def _epoch(text: str) -> int:
    found = re.fullmatch(r"\s*([-+]?\d+)(?:[.,](\d+))?\s*", text)
    if found is None:
        raise BadDate(text)
    nanos = int((found[2] or "0")[:9].ljust(9, "0"))
    whole = int(found[1]) * NANO
    return whole - nanos if found[1].startswith("-") else whole + nanos


Token = tuple[str, str]


def _tokens(text: str) -> list[Token]:
    out: list[Token] = []
    at = 0
    # In `2026-01-02T10:00` the T only separates; in `20260102T1000` it is a zone, the one seven hours behind.
    text = re.sub(r"(\d-\d{1,2})[Tt](\d{1,2})(?=[+-]\d)", r"\1 \2:00", text)
    text = re.sub(r"(\d-\d{1,2})[Tt](?=\d{1,2}:)", r"\1 ", text)
    if re.search(r"\d-\d{1,2}[Tt]\d", text):
        raise BadDate(text)
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise BadDate(text)
        if found.lastgroup and found.lastgroup != "paren":
            out.append((found.lastgroup, found[0].lower()))
        at = found.end()
    return out


def _scan(text: str, parts: _Parts) -> None:
    tokens = _tokens(text)
    i = 0
    while i < len(tokens):
        kind, word = tokens[i]
        if kind in ("isodt", "ymd"):
            year, month, day = (int(x) for x in re.split("[-/]", word))
            _date(parts, year, month, day)
        elif kind == "us":
            pieces = [int(x) for x in word.split("/")]
            year_ = _year(word.split("/")[2]) if len(pieces) > 2 else None
            _date(parts, year_, pieces[0], pieces[1])
        elif kind == "short2":
            pieces_ = word.split("-")
            _date(parts, _year(pieces_[0]), int(pieces_[1]), int(pieces_[2]))
        elif kind == "dmy":
            found = re.fullmatch(r"(\d+)[- ]?([a-z]+)\.?(?:[- ](\d+))?", word)
            if found is None or found[2] not in MONTHS:
                raise BadDate(word)
            year_ = _year(found[3]) if found[3] else None
            if year_ is None and i + 1 < len(tokens) and _is_year(tokens[i + 1]):
                i += 1
                year_ = int(tokens[i][1])
            _date(parts, year_, MONTHS[found[2]], int(found[1]))
        elif kind == "time":
            i = _time(tokens, i, parts)
        elif kind == "number":
            i = _number(tokens, i, parts)
        else:
            i = _word(tokens, i, parts)
        i += 1


def _is_year(token: Token) -> bool:
    return token[0] == "number" and re.fullmatch(r"\d{4}", token[1]) is not None


def _year(text: str) -> int:
    number = int(text)
    if len(text) <= 2:
        return number + (2000 if number < 69 else 1900)
    return number


def _date(parts: _Parts, year: int | None, month: int, day: int) -> None:
    parts.once("date")
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        raise BadDate("date")
    parts.date = (year, month, day)


def _time(tokens: list[Token], i: int, parts: _Parts) -> int:
    pieces = tokens[i][1].replace(",", ".").split(":")
    hour, minute = int(pieces[0]), int(pieces[1])
    second, nanos = 0, 0
    if len(pieces) > 2:
        whole, _, fraction = pieces[2].partition(".")
        second, nanos = int(whole), int((fraction or "0")[:9].ljust(9, "0"))
    if i + 1 < len(tokens) and (half := _half(tokens[i + 1])) is not None:
        hour = _twelve(hour, half)
        i += 1
    elif i + 1 < len(tokens) and tokens[i + 1][0] == "zone":
        parts.offset = _offset(tokens[i + 1][1].replace(":", ""), None)
        i += 1
        parts.once("zone")
    elif i + 1 < len(tokens) and tokens[i + 1][0] == "number" and tokens[i + 1][1][0] in "+-":
        # A signed number right behind a time is its zone, even where a person meant days.
        parts.offset = _offset(tokens[i + 1][1], tokens[i + 2] if i + 2 < len(tokens) else None)
        i += 1
        parts.once("zone")
    elif i + 1 < len(tokens) and tokens[i + 1][0] == "time":
        raise BadDate("time")
    _set_time(parts, hour, minute, second, nanos)
    return i


def _set_time(parts: _Parts, hour: int, minute: int, second: int, nanos: int = 0) -> None:
    parts.once("time")
    if hour > 23 or minute > 59 or second > 60:
        raise BadDate("time")
    parts.time = (hour, minute, second, nanos)


def _half(token: Token) -> int | None:
    word = token[1].replace(".", "")
    return {"am": 0, "pm": 12}.get(word) if token[0] == "word" else None


def _twelve(hour: int, half: int) -> int:
    if not 1 <= hour <= 12:
        raise BadDate("hour")
    return hour % 12 + half


def _offset(text: str, following: Token | None) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text[1:].strip()
    if "." in digits:
        raise BadDate(text)
    if len(digits) <= 2:
        hours, minutes = int(digits), 0
    else:
        hours, minutes = int(digits[:-2]), int(digits[-2:])
    if hours > 24 or minutes > 59:
        raise BadDate(text)
    return sign * (hours * 3600 + minutes * 60)


def _number(tokens: list[Token], i: int, parts: _Parts) -> int:
    word = tokens[i][1].replace(" ", "")
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if following is not None and following[0] == "word":
        unit = _unit(following[1])
        if unit is not None:
            return _relative(tokens, i + 1, parts, word, unit)
        half = _half(following)
        if half is not None and word.isdigit():
            _set_time(parts, _twelve(int(word), half), 0, 0)
            return i + 1
        if following[1].rstrip(".") in WEEKDAYS and re.fullmatch(r"[-+]?\d+", word):
            parts.once("weekday")
            parts.weekday = (int(word), WEEKDAYS[following[1].rstrip(".")])
            return i + 1
        if following[1].rstrip(".") in MONTHS and word.isdigit():
            year = None
            j = i + 1
            if j + 1 < len(tokens) and tokens[j + 1][0] == "number" and tokens[j + 1][1].isdigit():
                year, j = _year(tokens[j + 1][1]), j + 1
            _date(parts, year, MONTHS[following[1].rstrip(".")], int(word))
            return j
    if word[0] in "+-":
        if parts.time is not None and parts.offset is None:
            parts.offset = _offset(word, following)
            return i
        raise BadDate(word)
    if "." in word:
        raise BadDate(word)
    # A lone number: a year behind a date, a compact date, or an hour with minutes.
    if (parts.date is not None and parts.date[0] is None and parts.time is not None and len(word) > 2) or (
        parts.date is not None and parts.date[0] is None and len(word) == 4 and int(word) > 2400
    ):
        parts.date = (int(word), parts.date[1], parts.date[2])
    elif len(word) > 4:
        if len(word) in (10, 12, 14) and parts.date is None and len(word) > 8:
            raise BadDate(word)
        _date(parts, int(word[:-4]) if len(word) > 6 else _year(word[:-4]), int(word[-4:-2]), int(word[-2:]))
    elif len(word) <= 2:
        _set_time(parts, int(word), 0, 0)
    else:
        _set_time(parts, int(word[:-2]), int(word[-2:]), 0)
    return i


def _unit(word: str) -> str | None:
    word = word.rstrip(".")
    if word in UNITS:
        return UNITS[word]
    return UNITS.get(word[:-1]) if word.endswith("s") else None


def _relative(tokens: list[Token], i: int, parts: _Parts, count: str, unit: str) -> int:
    """`3 days`, `-2 weeks`, `1.5 seconds`, and `ago` behind any of them."""
    back = 1
    if i + 1 < len(tokens) and tokens[i + 1][1] == "ago":
        back, i = -1, i + 1
    if "." in count:
        if unit != "second":
            raise BadDate(count)
        parts.nanos += back * _epoch(count)
        return i
    parts.relative[unit] = parts.relative.get(unit, 0) + back * int(count)
    return i


def _word(tokens: list[Token], i: int, parts: _Parts) -> int:
    word = tokens[i][1].rstrip(".")
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if word in ("now", "today"):
        parts.relative.setdefault("day", 0)
    elif word in ("yesterday", "tomorrow"):
        parts.relative["day"] = parts.relative.get("day", 0) + (1 if word == "tomorrow" else -1)
    elif word in ("noon", "midnight"):
        raise BadDate(word)
    elif word in ORDINALS and following is not None and following[0] == "word":
        name = following[1].rstrip(".")
        if (unit := _unit(name)) is not None:
            return _relative(tokens, i + 1, parts, str(ORDINALS[word]), unit)
        if name not in WEEKDAYS:
            raise BadDate(word)
        parts.once("weekday")
        parts.weekday = (ORDINALS[word], WEEKDAYS[name])
        return i + 1
    elif (unit := _unit(word)) is not None:
        return _relative(tokens, i, parts, "1", unit)
    elif word in WEEKDAYS:
        parts.once("weekday")
        parts.weekday = (0, WEEKDAYS[word])
    elif word in MONTHS:
        return _month(tokens, i, parts, MONTHS[word])
    elif word in ZONES:
        return _zone(tokens, i, parts, int(ZONES[word] * 3600))
    elif word == "dst" and parts.offset is not None:
        parts.offset += 3600
    elif len(word) == 1 and word.isalpha() and word != "j":
        parts.once("zone")
        parts.offset = _military(word)
    else:
        raise BadDate(word)
    return i


def _month(tokens: list[Token], i: int, parts: _Parts, month: int) -> int:
    """`Nov 15`, `November 15, 2026`, `Nov-15-2026`."""
    if i + 1 < len(tokens) and tokens[i + 1][0] == "number" and tokens[i + 1][1].lstrip("-").isdigit():
        day = int(tokens[i + 1][1].lstrip("-"))
        year = None
        i += 1
        if i + 1 < len(tokens) and tokens[i + 1][0] == "number" and re.fullmatch(r"-?\d{4}", tokens[i + 1][1]):
            year, i = int(tokens[i + 1][1].lstrip("-")), i + 1
        elif day > 31:
            year, day = day, 1
        _date(parts, year, month, day)
        return i
    raise BadDate("month")


def _zone(tokens: list[Token], i: int, parts: _Parts, seconds: int) -> int:
    parts.once("zone")
    parts.offset = seconds
    if i + 1 < len(tokens) and tokens[i + 1][0] == "number" and tokens[i + 1][1][0] in "+-":
        nxt = tokens[i + 2] if i + 2 < len(tokens) else None
        if nxt is None or nxt[0] != "word" or _unit(nxt[1]) is None:
            parts.offset += _offset(tokens[i + 1][1], nxt)
            return i + 1
    return i


def _military(letter: str) -> int:
    if letter == "z":
        return 0
    if letter <= "i":
        return (ord(letter) - 96) * 3600
    if letter <= "m":
        return (ord(letter) - 97) * 3600
    return -(ord(letter) - 109) * 3600


def _assemble(parts: _Parts, now_ns: int, tz: tzinfo) -> int:
    here: tzinfo = tz if parts.offset is None else timezone(timedelta(seconds=parts.offset))
    seconds, nanos = divmod(now_ns, NANO)
    base = (EPOCH + timedelta(seconds=seconds)).astimezone(here)
    year, month, day = base.year, base.month, base.day
    cycles = 0
    if parts.date is not None:
        month, day = parts.date[1], parts.date[2]
        year = base.year if parts.date[0] is None else parts.date[0]
        if year > _LAST_YEAR:
            cycles, year = divmod(year, CYCLE_YEARS)
            cycles, year = cycles - 5, year + 5 * CYCLE_YEARS
        datetime(year, month, day)  # 31 February is not a date, before anything relative is added
    relative = parts.relative
    if parts.time is not None:
        hour, minute, second, nanos = parts.time
    elif parts.date is not None or parts.weekday is not None or (parts.offset is not None and not relative):
        hour = minute = second = nanos = 0
    else:
        hour, minute, second = base.hour, base.minute, base.second
    if parts.weekday is not None and parts.date is None:
        ordinal, wanted = parts.weekday
        ahead = (wanted - base.weekday()) % 7
        day += ahead + 7 * (ordinal - (1 if ordinal > 0 and ahead != 0 else 0))
    if parts.offset is None and (parts.date is not None or parts.time is not None):
        given = datetime(year, month, 1) + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
        if given.replace(tzinfo=here).astimezone(UTC).astimezone(here).replace(tzinfo=None) != given:
            # Clocks that are put forward skip this hour.
            raise BadDate(str(given))
    months = year * 12 + month - 1 + relative.get("year", 0) * 12 + relative.get("month", 0)
    first = datetime(months // 12, months % 12 + 1, 1)
    days = day - 1 + relative.get("day", 0) + 7 * relative.get("week", 0) + 14 * relative.get("fortnight", 0)
    local = first + timedelta(days=days, hours=hour, minutes=minute, seconds=second)
    moment = local.replace(tzinfo=here).astimezone(UTC)
    moment += timedelta(
        hours=relative.get("hour", 0), minutes=relative.get("minute", 0), seconds=relative.get("second", 0)
    )
    return ((moment - EPOCH) // timedelta(seconds=1) + cycles * CYCLE) * NANO + nanos + parts.nanos
