"""Tab stops of expand and unexpand, and their historical spellings."""

from __future__ import annotations

import re

from ramet.commands.framework.command import UsageError, quote


class Tabs:
    """Tab stops: a fixed size, or a list with perhaps `/N` or `+N` behind it."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.stops: list[int] = []
        self.size, self.extend, self.increment = 0, 0, 0
        for text in texts:
            self._read(text)
        if self.extend and self.increment:
            raise UsageError("'/' specifier is mutually exclusive with '+'", hint=False)
        if 0 in self.stops:
            raise UsageError("tab size cannot be 0", hint=False)
        if any(b <= a for a, b in zip(self.stops, self.stops[1:], strict=False)):
            raise UsageError("tab sizes must be ascending", hint=False)
        if len(self.stops) == 1 and not self.extend and not self.increment:
            self.size = self.stops[0]
        if not self.stops:
            self.size = self.extend or self.increment or 8

    def _read(self, text: str) -> None:
        """Parse one list of stops; `/` and `+` apply to all numbers after them."""
        kind, at = "", 0
        while at < len(text):
            found = re.compile(r"[, \t]+|[/+]|\d+").match(text, at)
            if found is None:
                raise UsageError(f"tab size contains invalid character(s): {quote(text[at:])}", hint=False)
            if found[0] in "/+":
                if at and text[at - 1].isdigit():
                    raise UsageError(f"'{found[0]}' specifier not at start of number: {quote(text[at:])}", hint=False)
                kind = found[0]
            elif found[0][0].isdigit():
                if int(found[0]) >= 1 << 64:
                    raise UsageError(f"tab stop is too large {quote(found[0])}", hint=False)
                self._add(kind, int(found[0]))
            at = found.end()

    def _add(self, kind: str, number: int) -> None:
        if (kind == "/" and self.extend) or (kind == "+" and self.increment):
            raise UsageError(f"'{kind}' specifier only allowed with the last value", hint=False)
        if kind == "/":
            self.extend = number
        elif kind == "+":
            self.increment = number
        else:
            self.stops.append(number)

    def next(self, column: int) -> int | None:
        """Return the first stop after `column`; None after the last one."""
        if self.size:
            return column + self.size - column % self.size
        for stop in self.stops:
            if stop > column:
                return stop
        if self.extend:
            return column + self.extend - column % self.extend
        if self.increment:
            last = self.stops[-1]
            return column + self.increment - (column - last) % self.increment
        return None


def old_tabs(words: list[str]) -> list[str]:
    """`-4` and `-4,8`."""
    for word in words:
        if re.fullmatch(r"-\d[\d,]*", word) and any(int(n or 0) >= 1 << 64 for n in word[1:].split(",")):
            raise UsageError("tab stop value is too large", hint=False)
    return [f"-t{w[1:]}" if re.fullmatch(r"-\d[\d,]*", w) else w for w in words]
