"""The buffer of ed: its lines, the current one, marks, and what the addresses before a command mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ramet import patterns
from ramet.commands.framework.command import flag, value
from ramet.commands.text.ed_lines import delimited
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.patterns import Matcher, PatternError


@dataclass(frozen=True, slots=True)
class EdOptions:
    quiet: bool = flag("-s", "--script", help="suppress byte counts and the ! prompt")
    silent: bool = flag("-q", "--quiet", "--silent", help="suppress diagnostics written to stderr")
    restricted: bool = flag("-r", "--restricted", help="only files of the directory, and no commands")
    strip: bool = flag("--strip-trailing-cr", help="strip carriage returns at the ends of lines")
    prompt: str | None = value("-p", "--prompt", metavar="STRING", help="use STRING as an interactive prompt")
    extended: bool = flag("-E", "--extended-regexp", help="use extended regular expressions")
    loose: bool = flag("-l", "--loose-exit-status", help="exit with 0 status even if a command fails")
    verbose: bool = flag("-v", "--verbose", help="be verbose; equivalent to the `H' command")
    old: bool = flag("-G", "--traditional", help="run in compatibility mode")


class Trouble(Exception):
    """A command that cannot be done; its words are what `h` tells."""


@dataclass
class Buffer:
    proc: Proc
    o: EdOptions
    lines: list[bytes] = field(default_factory=list)
    dot: int = 0
    marks: dict[str, int] = field(default_factory=dict)
    pattern: Matcher | None = None
    """The last one, which an empty one stands for."""

    def addresses(self, text: str) -> tuple[list[int], str]:
        """The lines named before a command, and what is left of it."""
        found: list[int] = []
        pending: int | None = None
        while True:
            text = text.lstrip(" \t")
            number, text = self.address(text, pending is None)
            if number is not None:
                pending = number
                continue
            if text[:1] in (",", ";", "%") and not (text[:1] == "%" and pending is not None):
                mark, text = text[0], text[1:]
                if pending is None:
                    pending = 1 if mark != ";" else self.dot
                    if not found:
                        following, _ = self.address(text.lstrip(" \t"), True)
                        if following is None:
                            found, pending = [pending], len(self.lines)
                            continue
                found.append(pending)
                if mark == ";":
                    self.check(pending)
                    self.dot = pending
                pending = None
                continue
            break
        if pending is not None:
            found.append(pending)
        elif found:
            found.append(found[-1])
        return found[-2:], text

    def address(self, text: str, first: bool) -> tuple[int | None, str]:
        """One address with its offsets; None when none stands here."""
        number: int | None = None
        plain = re.match(r"\d+", text)
        if first and plain:
            number, text = int(plain[0]), text[plain.end() :]
        elif first and text[:1] == ".":
            number, text = self.dot, text[1:]
        elif first and text[:1] == "$":
            number, text = len(self.lines), text[1:]
        elif first and text[:1] == "'" and len(text) > 1:
            if text[1] not in self.marks:
                raise Trouble("Invalid address")
            number, text = self.marks[text[1]], text[2:]
        elif first and text[:1] in ("/", "?"):
            number, text = self.search(text)
        while True:
            offset = re.match(r"[ \t]*([+-]+)(\d*)|[ \t]+(\d+)", text)
            if offset is None or (offset[1] is None and number is None):
                return number, text
            base = self.dot if number is None else number
            if offset[1] is None:
                number = base + int(offset[3])
            else:
                steps = sum(1 if sign == "+" else -1 for sign in offset[1])
                last = 1 if offset[1][-1] == "+" else -1
                number = base + steps + (last * (int(offset[2]) - 1) if offset[2] else 0)
            text = text[offset.end() :]

    def search(self, text: str) -> tuple[int, str]:
        mark = text[0]
        source, rest, _ = delimited(text[1:], mark)
        matcher = self.compiled(source)
        count = len(self.lines)
        order = range(1, count + 1) if mark == "/" else range(-1, -count - 1, -1)
        for step in order:
            number = (self.dot + step - 1) % count + 1 if count else 0
            if matcher.test(self.lines[number - 1]):
                return number, rest
        raise Trouble("No match")

    def compiled(self, source: str, icase: bool = False) -> Matcher:
        if source:
            dialect = patterns.POSIX_EXTENDED if self.o.extended else patterns.POSIX_BASIC
            try:
                self.pattern = patterns.compile(
                    encode(source), dialect, icase=icase, seconds=self.proc.budget.limits.regex_seconds
                )
            except PatternError as error:
                raise Trouble(str(error)) from None
        if self.pattern is None:
            raise Trouble("No previous pattern")
        return self.pattern

    def check(self, *numbers: int, least: int = 1) -> None:
        if any(not least <= number <= len(self.lines) for number in numbers):
            raise Trouble("Invalid address")

    def one(self, given: list[int], default: int, least: int = 0) -> int:
        number = given[-1] if given else default
        self.check(number, least=least)
        return number

    def span(self, given: list[int], first: int | None = None, last: int | None = None) -> tuple[int, int]:
        start = given[0] if given else self.dot if first is None else first
        stop = given[-1] if given else self.dot if last is None else last
        if start > stop:
            raise Trouble("Invalid address")
        self.check(start, stop)
        return start, stop
