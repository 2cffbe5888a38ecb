"""JSON texts in a stream: cut into values as they arrive, many lines at a time where each line is one value."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from ramet.commands.jq.values import Json, decoder
from ramet.patterns import PERL
from ramet.patterns import compile as compile_pattern
from ramet.patterns.emit import Lines

_SPACE = re.compile(r"[ \t\r\n\x1e\ufeff]*")
_DEEPEST = 10_000


_NAN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\bnan\b')


class ParseError(Exception):
    """The input is not JSON."""


class JsonReader:
    """Feed it bytes, take values out. `line` counts the newlines of what has been taken."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.line = 0
        self.wait = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, last: bool = False) -> None:
        more = self._decoder.decode(data, last)
        self.text = self.text[self.at :] + more if self.at < len(self.text) else more
        self.at = 0

    def take(self, last: bool) -> Iterator[Json]:
        """The values that are complete; with `last` what is left over is an error."""
        if not last and len(self.text) < self.wait:
            return
        while True:
            found = _SPACE.match(self.text, self.at)
            start = found.end() if found else self.at
            if start >= len(self.text):
                self._count(len(self.text))
                return
            try:
                value, end = decoder.raw_decode(self.text, start)
            except ValueError:
                if not last:
                    # Perhaps the rest is still to come: try again when there is much more of it.
                    self._count(start)
                    self.wait = 2 * (len(self.text) - start)
                    return
                if not self._spell_nan(start):
                    raise ParseError(complaint(self.text[start:], self.line)) from None
                continue
            except RecursionError:
                raise ParseError("Exceeds depth limit for parsing") from None
            if not last and end == len(self.text) and self.text[end - 1] not in '"]}':
                # A number or word at the very end may go on in the next block.
                self._count(start)
                return
            if end < len(self.text) and self.text[end] not in ' \t\r\n,]}[{":\x1e' and self.text[end - 1] not in '"]}':
                raise ParseError(complaint(self.text[start:], self.line))
            self._count(end)
            self.wait = 0
            yield value

    def _spell_nan(self, start: int) -> bool:
        """jq reads `nan` where the standard parser wants `NaN`; says whether there was something to change."""
        fixed = _NAN.sub(lambda found: found[0] if found[0][0] == '"' else "NaN", self.text[start:])
        if fixed == self.text[start:]:
            return False
        self._count(start)
        self.text, self.at = fixed, 0
        return True

    def _count(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    @property
    def idle(self) -> bool:
        """Whether nothing is left over from what was fed."""
        return self.at >= len(self.text)


_ODD = compile_pattern(
    rb"[0-9.][eE][-+0-9]|\.[0-9]*0[^0-9]|[^.0-9][0-9]{16}|-0[^.]|\\u[dD]|\x7f|NaN|Infinity",
    PERL,
    utf8=False,
    lines=Lines.TEXT,
)


def whole_lines(block: bytes) -> list[Json] | None:
    """The values of a block of lines, in one call, if each line is one array or object; None when care is needed.

    Numbers (and strings) that print differently here and in jq need care; so does anything that is not valid.
    """
    import msgspec

    lines = block.split(b"\n")
    if not all(line and line[0] in b"{[" and line[-1] in b"}]" for line in lines) or _ODD.search(block) is not None:
        return None
    try:
        values: list[Json] = msgspec.json.decode(b"[" + b",".join(lines) + b"]")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    # As many values as lines: no value can have begun on one line and ended on another.
    return values if len(values) == len(lines) else None


def complaint(text: str, lines_before: int = 0) -> str:
    """What jq says about a text that is not JSON."""
    stripped = text.rstrip("\n")
    line = lines_before + text.count("\n") + 1
    column = 0 if text.endswith("\n") else len(text) - text.rfind("\n") - 1
    depth = 0
    in_string = False
    escaped = False
    for char in stripped:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
    if in_string:
        return f"Unfinished string at EOF at line {line}, column {column}"
    if depth > 0:
        try:
            decoder.raw_decode(stripped.strip() + _closing(stripped))
            return f"Unfinished JSON term at EOF at line {line}, column {column}"
        except (ValueError, RecursionError):
            if re.search(r"[\[{,:]\s*\Z", stripped):
                return f"Unfinished JSON term at EOF at line {line}, column {column}"
    if re.search(r",\s*}", stripped):
        return f"Objects must consist of key:value pairs at line {line}, column {column}"
    if re.search(r",\s*\]", stripped):
        return f"Expected value before ']' at line {line}, column {column}"
    if text.endswith("\n") or lines_before:
        return f"Invalid literal at line {line}, column {column}"
    return f"Invalid numeric literal at EOF at line {line}, column {column}"


def _closing(text: str) -> str:
    closers: list[str] = []
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            closers.append("]" if char == "[" else "}")
        elif char in "]}" and closers:
            closers.pop()
    return "".join(reversed(closers))
