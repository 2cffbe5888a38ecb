"""strptime of the C library: texts to broken-down times that need not be valid dates."""

from __future__ import annotations

import re

from ramet.text.strftime import COMPOSED, DAYS, MONTHS, Fields, day_of_year, days_since_epoch


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
        if letter in COMPOSED:
            return self.read(COMPOSED[letter])
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
                    self.fields.weekday = (place + 1) % 7
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
