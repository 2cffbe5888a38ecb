"""`sort --debug`: each line with its keys underlined, and warnings about keys that may not mean what was meant."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from ramet.commands.framework.inputs import char_width
from ramet.commands.text.sort.keys import Key, Line, parse_key
from ramet.commands.text.sort.options import LETTERS, WORDS, SortOptions
from ramet.core.proc import Proc

_NUMERIC = frozenset("ngh")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)")
_GENERAL = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F.]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_MONTHS = re.compile("jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE)


class Annotator:
    """Knows the keys of one sort and where each of them lies in a line."""

    def __init__(self, o: SortOptions, separator: str | None, utf8: bool) -> None:
        self.o, self.separator, self.utf8 = o, separator, utf8
        letters = {letter for letter, name in LETTERS.items() if getattr(o, name)}
        if o.word:
            letters.add(WORDS[o.word])
        self.defaults = frozenset(letters)
        self.keys = [parse_key(text, self.defaults) for text in o.keys]
        self.global_only = not self.keys and bool(self.defaults - {"r"})

    def warn(self, proc: Proc) -> None:
        locale = proc.env.get("LC_ALL") or proc.env.get("LC_COLLATE") or proc.env.get("LANG") or ""
        if locale in ("", "C", "POSIX"):
            proc.complain("text ordering performed using simple byte comparison")
        else:
            proc.complain(f"text ordering performed using \u2018{locale}\u2019 sorting rules")
        numeric = bool(self.global_only and self.defaults & _NUMERIC)
        for number, key in enumerate(self.keys, 1):
            self._warn_key(proc, number, key)
            numeric = numeric or bool(key.ordering & _NUMERIC)
        if numeric:
            proc.complain("note numbers use \u2018.\u2019 as a decimal point in this locale")
        self._warn_unused(proc)

    def _warn_key(self, proc: Proc, number: int, key: Key) -> None:
        empty = key.last_field is not None and key.last_field < key.first_field
        if empty:
            proc.complain(f"key {number} has zero width and will be ignored")
        numeric = bool(key.ordering & _NUMERIC)
        implied = numeric or "M" in key.ordering
        in_line = key.last_field == 1 and key.last_char != 0
        significant = (
            (not key.skip_start and not implied)
            or (not key.skip_start and key.first_char > 1)
            or (not key.skip_end and key.last_char != 0)
        )
        if not empty and self.separator is None and not in_line and significant:
            proc.complain(f"leading blanks are significant in key {number}; consider also specifying 'b'")
        if numeric and (key.last_field is None or key.first_field < key.last_field):
            proc.complain(f"key {number} is numeric and spans multiple fields")

    def _warn_unused(self, proc: Proc) -> None:
        """Options for all keys that no key takes up, each having its own."""
        if not self.keys:
            return
        unused = set(self.defaults)
        for key in self.keys:
            unused -= key.ordering
            if key.skip_start or key.skip_end:
                unused.discard("b")
        last_resort = not (self.o.stable or self.o.unique)
        reverse = "r" in unused
        if last_resort:
            unused.discard("r")
        if unused:
            shown = "".join(letter for letter in "bdfghiMnRrV" if letter in unused)
            one = len(shown) == 1
            proc.complain(f"option{'' if one else 's'} '-{shown}' {'is' if one else 'are'} ignored")
        if reverse and last_resort:
            proc.complain("option '-r' only applies to last-resort comparison")

    async def annotated(self, blocks: AsyncIterator[bytes], end: bytes) -> AsyncIterator[bytes]:
        async for block in blocks:
            out: list[bytes] = []
            for line in block.split(end)[: -1 if block.endswith(end) else None]:
                out.append(line.replace(b"\t", b">") + end)
                out += [self._mark(line, *span) for span in self._spans(line.decode("latin-1"))]
            yield b"".join(out)

    def _spans(self, line: Line) -> list[tuple[int, int]]:
        spans = [self._narrowed(line, *self._span(line, key), key.ordering) for key in self.keys]
        if self.global_only:
            start = len(line) - len(line.lstrip(" \t")) if "b" in self.defaults else 0
            spans.append(self._narrowed(line, start, len(line), self.defaults))
        if not spans or not (self.o.stable or self.o.unique):
            spans.append((0, len(line)))
        return spans

    def _starts(self, line: Line) -> list[tuple[int, int]]:
        """Where each field begins and ends."""
        if self.separator is None:
            return [found.span() for found in re.finditer(r"[ \t\n]*[^ \t\n]+|[ \t\n]+$", line)]
        spans, at = [], 0
        for part in line.split(self.separator):
            spans.append((at, at + len(part)))
            at += len(part) + 1
        return spans

    def _span(self, line: Line, key: Key) -> tuple[int, int]:
        fields = self._starts(line)
        start = fields[key.first_field - 1][0] if key.first_field <= len(fields) else len(line)
        if key.skip_start:
            start = _past_blanks(line, start)
        start = min(start + key.first_char - 1, len(line))
        if key.last_field is None or key.last_field > len(fields):
            return start, len(line)
        begin, stop = fields[key.last_field - 1]
        if key.last_char:
            begin = _past_blanks(line, begin) if key.skip_end else begin
            stop = min(begin + key.last_char, len(line))
        return start, max(start, stop)

    def _narrowed(self, line: Line, start: int, stop: int, ordering: frozenset[str]) -> tuple[int, int]:
        """What of a key counts: of numbers and months only what is read as one."""
        if not ordering & (_NUMERIC | {"M"}):
            return start, stop
        start = min(_past_blanks(line, start), stop)
        pattern = _MONTHS if "M" in ordering else _GENERAL if "g" in ordering else _NUMBER
        found = pattern.match(line, start, stop)
        if found is None:
            return start, start
        end = found.end()
        if "h" in ordering and line[end : end + 1] in tuple("kKMGTPEZY") and end < stop:
            end += 1
        return start, end

    def _mark(self, line: bytes, start: int, stop: int) -> bytes:
        offset, width = self._width(line[:start]), self._width(line[start:stop])
        return b" " * offset + (b"_" * width if width else b"^ no match for key") + b"\n"

    def _width(self, data: bytes) -> int:
        if not self.utf8:
            return len(data)
        return sum(1 if char == "\t" else char_width(char) for char in data.decode("utf-8", "replace"))


def _past_blanks(line: Line, at: int) -> int:
    while at < len(line) and line[at] in " \t\n":
        at += 1
    return at
