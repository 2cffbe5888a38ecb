"""Line and group formats of diff: both files merged into one text by templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ramet.commands.diff.changes import Change
from ramet.commands.diff.output import Side
from ramet.commands.framework.command import UsageError, quote
from ramet.core.paths import encode
from ramet.text.width import number_of

_NUMBER = re.compile(r"%(-?)(\d*)(?:\.(\d*))?([doxX])([EFLMNeflmn])")
_CHARACTER = re.compile(r"%c'(?:\\([0-7]{1,3})|([^\\']))'", re.DOTALL)
_LINE_DEFAULT = "%l\n"


@dataclass(frozen=True)
class Span:
    """Lines `start` to `stop` of a file."""

    side: Side
    start: int
    stop: int

    def number(self, letter: str) -> int:
        first, last = self.start + 1, self.stop
        return {"f": first, "l": last, "n": self.stop - self.start, "e": first - 1, "m": last + 1}[letter]


@dataclass(frozen=True)
class Formats:
    """The templates: for lines (old, new, unchanged) and for groups (old, new, unchanged, changed)."""

    lines: tuple[str, str, str]
    groups: tuple[str, str, str, str]

    @classmethod
    def of(cls, lines: Sequence[str | None], groups: Sequence[str | None]) -> Formats:
        changed = groups[3]
        old = groups[0] if groups[0] is not None else "%<" if changed is None else changed
        new = groups[1] if groups[1] is not None else "%>" if changed is None else changed
        same = "%=" if groups[2] is None else groups[2]
        changed = old + new if changed is None else changed
        chosen = [_LINE_DEFAULT if text is None else text for text in lines]
        return cls((chosen[0], chosen[1], chosen[2]), (old, new, same, changed))

    def merged(self, a: Side, b: Side, found: list[Change]) -> Iterator[bytes]:
        at_a = at_b = 0
        for change in found:
            if change.a > at_a:
                yield from self._group(2, Span(a, at_a, change.a), Span(b, at_b, change.c))
            kind = 1 if change.a == change.b else 0 if change.c == change.d else 3
            yield from self._group(kind, Span(a, change.a, change.b), Span(b, change.c, change.d))
            at_a, at_b = change.b, change.d
        if at_a < len(a.lines):
            yield from self._group(2, Span(a, at_a, len(a.lines)), Span(b, at_b, len(b.lines)))

    def _group(self, kind: int, old: Span, new: Span) -> Iterator[bytes]:
        yield from self._expand(self.groups[kind], old, new)

    def _expand(self, form: str, old: Span, new: Span) -> Iterator[bytes]:
        pos = 0
        while pos < len(form):
            mark = form.find("%", pos)
            if mark < 0:
                yield encode(form[pos:])
                return
            yield encode(form[pos:mark])
            if form.startswith(("%<", "%>", "%="), mark):
                span, place = {"<": (old, 0), ">": (new, 1), "=": (old, 2)}[form[mark + 1]]
                for index in range(span.start, span.stop):
                    yield _line(self.lines[place], span.side, index)
                pos = mark + 2
            elif form.startswith("%(", mark):
                chosen, pos = _condition(form, mark, old, new)
                yield from self._expand(chosen, old, new)
            else:
                piece, pos = _directive(form, mark, lambda letter: _group_number(letter, old, new))
                yield piece


def _group_number(letter: str, old: Span, new: Span) -> int:
    return new.number(letter.lower()) if letter.isupper() else old.number(letter)


def _condition(form: str, mark: int, old: Span, new: Span) -> tuple[str, int]:
    """Expand `%(A=B?T:E)`; return the branch and the position after it."""
    found = re.compile(r"%\((\d+|[EFLMNeflmn])=(\d+|[EFLMNeflmn])\?").match(form, mark)
    if found is None:
        raise UsageError(f"invalid format {quote(form)}", hint=False)
    sides = [int(word) if word.isdigit() else _group_number(word, old, new) for word in (found[1], found[2])]
    parts, depth, start, pos = list[str](), 0, found.end(), found.end()
    while pos < len(form):
        char = form[pos]
        if form.startswith("%(", pos):
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif char == ")" or (char == ":" and not depth and not parts):
            parts.append(form[start:pos])
            start = pos + 1
            if char == ")":
                break
        pos += 1
    yes, no = (*parts, "", "")[:2]
    return (yes if sides[0] == sides[1] else no), pos + 1


def _directive(form: str, mark: int, number: Callable[[str], int]) -> tuple[bytes, int]:
    """Expand any other `%`; return the text and the position after it."""
    if form.startswith("%%", mark):
        return b"%", mark + 2
    found = _NUMBER.match(form, mark)
    if found is not None:
        digits = format(number(found[5]), found[4])
        digits = digits.rjust(number_of(found[3] or ""), "0")
        width = number_of(found[2] or "")
        filled = digits.ljust(width) if found[1] else digits.rjust(width, "0" if found[2][:1] == "0" else " ")
        return filled.encode(), found.end()
    char = _CHARACTER.match(form, mark)
    if char is not None:
        return (bytes((int(char[1], 8) & 0xFF,)) if char[1] else encode(char[2])), char.end()
    return b"%", mark + 1


def _line(form: str, side: Side, index: int) -> bytes:
    text = side.lines[index]
    whole = text if index == len(side.lines) - 1 and not side.ended else text + b"\n"
    if form == "%L":
        return whole
    out: list[bytes] = []
    pos = 0
    while pos < len(form):
        mark = form.find("%", pos)
        if mark < 0:
            break
        out.append(encode(form[pos:mark]))
        kind = form[mark + 1 : mark + 2]
        if kind == "l":
            out.append(text)
            pos = mark + 2
        elif kind == "L":
            out.append(whole)
            pos = mark + 2
        else:
            piece, pos = _directive(form, mark, lambda letter: index + 1)
            out.append(piece)
    out.append(encode(form[pos:]) if pos < len(form) else b"")
    return b"".join(out)
