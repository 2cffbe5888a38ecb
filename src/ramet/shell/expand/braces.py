"""Brace expansion: one word to several, before anything else is expanded; pure, so the result may be kept.

Only Literal text is looked at: whatever is quoted or expands is opaque and stays one unit.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ramet.shell.expand.errors import Discard
from ramet.shell.syntax.nodes import Escaped, Literal, Param, Part, SingleQuoted, Word
from ramet.shell.syntax.printer import word_text

_NUMBERS = re.compile(r"([-+]?[0-9]{1,19})\.\.([-+]?[0-9]{1,19})(?:\.\.([-+]?[0-9]{1,19}))?", re.ASCII).fullmatch
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.([-+]?[0-9]{1,18}))?", re.ASCII).fullmatch

_Unit = str | Part
"""One active character, the text of a number, or one opaque part."""


_BACKTICK = Escaped("`")


class TooManyWords(Exception):
    """A brace expansion makes more words than the limit allows."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"brace expansion: more than {limit} words")
        self.limit = limit


def has_braces(word: Word) -> bool:
    """Might the word expand? A cheap test that is right when it says no."""
    opened = False
    for part in word.parts:
        if isinstance(part, Literal):
            text = part.text
            if opened or "{" in text:
                opened = True
                if "}" in text:
                    return True
    return False


def expand_braces(word: Word, limit: int | None = None) -> Iterator[Word]:
    """The words that a word stands for, one by one; the word itself when it has no braces."""
    if not has_braces(word):
        yield word
        return
    units = _units(word)
    plain = isinstance(units, str)
    for count, found in enumerate(_expand(units)):
        if limit is not None and count >= limit:
            raise TooManyWords(limit)
        if plain:
            try:
                text = "".join(found)  # type: ignore[arg-type]
            except TypeError:
                pass  # a range of letters holds characters that must be quoted
            else:
                if text:
                    # An empty word that nothing quotes is no word: `{,a}` is `a`.
                    yield Word((Literal(text),))
                continue
        if len(found) > 1 and _BACKTICK in found and (plain or _BACKTICK not in units):
            rest = word_text(_word(found[found.index(_BACKTICK) + 1 :]))
            raise Discard(f'bad substitution: no closing "`" in `{rest}')
        if found:
            yield _word(found)


def _units(word: Word) -> Sequence[_Unit]:
    """What a word is made of; just its text when it is nothing but text."""
    if all(isinstance(part, Literal) for part in word.parts):
        return "".join([part.text for part in word.parts if isinstance(part, Literal)])
    units: list[_Unit] = []
    for part in word.parts:
        if isinstance(part, Literal):
            units.extend(part.text)
        else:
            units.append(part)
    return units


def _word(units: Sequence[_Unit]) -> Word:
    """A word of its units. As in bash, where this happens to text, a name may grow: ``{$a,b}_c`` holds ``$a_c``."""
    parts: list[Part] = []
    text: list[str] = []
    for unit in units:
        if isinstance(unit, str):
            if not text and parts and isinstance(last := parts[-1], Param) and _grows(last, unit):
                parts[-1] = Param(last.name + unit, braced=False)
            else:
                text.append(unit)
        else:
            if text:
                parts.append(Literal("".join(text)))
                text.clear()
            parts.append(unit)
    if text:
        parts.append(Literal("".join(text)))
    return Word(tuple(parts))


def _grows(param: Param, unit: str) -> bool:
    return not param.braced and (unit.isalnum() or unit == "_") and unit.isascii() and param.name.isidentifier()


def count_words(word: Word) -> int:
    """How many words a word stands for (at most: empty ones vanish), known without making them."""
    return _count(_units(word))


def _count(units: Sequence[_Unit]) -> int:
    total = 1
    while (found := _first_brace(units)) is not None:
        _, end, kind = found
        total *= (
            len(kind.numbers)
            if isinstance(kind, _Range)
            else sum([_count(choice) if "{" in choice else 1 for choice in kind])
        )
        units = units[end + 1 :]
    return total


_OPAQUE = re.compile(r"[^A-Za-z0-9_./,{}=:+@%-]|[A-Z]\.\.[a-z]|[a-z]\.\.[A-Z]")
_BLOCK = 4096


def text_blocks(word: Word) -> Iterator[list[str]] | None:
    """The words of a plain word as texts, many at a time; None when something in it is more than plain text."""
    if len(word.parts) != 1 or not isinstance(part := word.parts[0], Literal) or _OPAQUE.search(part.text):
        return None
    return _blocks(part.text)


def _blocks(text: str) -> Iterator[list[str]]:
    found = _first_brace(text)
    if found is None:
        yield [text]
        return
    begin, end, kind = found
    before, after = text[:begin], text[end + 1 :]
    for block in _middles(kind):
        if before:
            block = [before + one for one in block]
        if not after:
            yield block
        elif _first_brace(after) is None:
            yield [one + after for one in block]
        else:
            for one in block:
                for tails in _blocks(after):
                    yield [one + tail for tail in tails]


def _middles(kind: _Range | list[Sequence[_Unit]]) -> Iterator[list[str]]:
    if not isinstance(kind, _Range):
        row: list[str] = []
        for choice in kind:
            if "{" not in choice:
                row.append("".join(choice))  # type: ignore[arg-type]
                if len(row) < _BLOCK:
                    continue
            if row:
                yield row
                row = []
            if "{" in choice:
                yield from _blocks("".join(choice))  # type: ignore[arg-type]
        if row:
            yield row
        return
    for at in range(0, len(kind.numbers), _BLOCK):
        some = kind.numbers[at : at + _BLOCK]
        if kind.letters:
            yield list(map(chr, some))
        else:
            yield [_padded(number, kind.width) for number in some] if kind.width else list(map(str, some))


def _expand(units: Sequence[_Unit]) -> Iterator[list[_Unit]]:
    """All combinations, the leftmost brace varying slowest."""
    found = _first_brace(units)
    if found is None:
        yield list(units)
        return
    begin, end, kind = found
    alternatives = kind.shown() if isinstance(kind, _Range) else (one for choice in kind for one in _expand(choice))
    before, after = list(units[:begin]), units[end + 1 :]
    if not after:
        for middle in alternatives:
            yield before + middle
        return
    if _first_brace(after) is None:
        tail = list(after)
        for middle in alternatives:
            yield before + middle + tail
        return
    for middle in alternatives:
        for tail in _expand(after):
            yield before + middle + tail


class _Range(NamedTuple):
    """What a sequence stands for."""

    numbers: range
    width: int
    letters: bool

    def shown(self) -> Iterator[list[_Unit]]:
        for number in self.numbers:
            yield _letter(number) if self.letters else [_padded(number, self.width)]


def _first_brace(units: Sequence[_Unit]) -> tuple[int, int, _Range | list[Sequence[_Unit]]] | None:
    """The first brace that expands: where it begins and ends, and its range or choices."""
    if "{" not in units:
        return None
    closers = _closers(units)
    for begin, end in sorted(closers.items()):
        if isinstance(units, str) and units.find("{", begin + 1, end) < 0:
            inner = units[begin + 1 : end]
            if "," in inner:
                return begin, end, list[Sequence[_Unit]](inner.split(","))
            numbers = _sequence(inner)
            if numbers is not None:
                return begin, end, numbers
            continue
        commas = _commas(units, begin, end, closers)
        if commas:
            return begin, end, [units[a + 1 : b] for a, b in itertools.pairwise([begin, *commas, end])]
        numbers = _sequence(units[begin + 1 : end])
        if numbers is not None:
            return begin, end, numbers
    return None


def _closers(units: Sequence[_Unit]) -> dict[int, int]:
    """Each opening brace that is closed, with its closer."""
    stack: list[int] = []
    closers: dict[int, int] = {}
    found = ((m.start(), m[0]) for m in _BRACE(units)) if isinstance(units, str) else enumerate(units)
    for place, unit in found:
        if unit == "{":
            stack.append(place)
        elif unit == "}" and stack:
            closers[stack.pop()] = place
    return closers


_BRACE = re.compile(r"[{}]").finditer


def _commas(units: Sequence[_Unit], begin: int, end: int, closers: dict[int, int]) -> list[int]:
    commas = []
    place = begin + 1
    while place < end:
        unit = units[place]
        if unit == "{" and place in closers:
            place = closers[place]
        elif unit == ",":
            commas.append(place)
        place += 1
    return commas


def _sequence(units: Sequence[_Unit]) -> _Range | None:
    if len(units) > 60 or not all(isinstance(unit, str) for unit in units):
        return None
    text = "".join(units)  # type: ignore[arg-type]
    if ".." not in text:
        return None
    if m := _NUMBERS(text):
        width = 0
        for number in m.group(1, 2):
            digits = number.lstrip("+-")
            if len(digits) > 1 and digits[0] == "0":
                width = max(len(one) for one in m.group(1, 2))
        ends = int(m[1]), int(m[2]), int(m[3] or 0)
        if any(not -(1 << 63) <= number < 1 << 63 for number in ends):
            return None
        return _Range(_numbers(*ends), width, False)
    if m := _LETTERS(text):
        return _Range(_numbers(ord(m[1]), ord(m[2]), int(m[3] or 0)), 0, True)
    return None


def _letter(code: int) -> list[_Unit]:
    """A character between the letters; a backslash quotes nothing and vanishes, a backtick is itself."""
    char = chr(code)
    return [SingleQuoted("")] if char == "\\" else [Escaped(char)] if char == "`" else [char]


def _padded(number: int, width: int) -> str:
    return f"{number:0{width}d}" if width else str(number)


def _numbers(first: int, last: int, step: int) -> range:
    step = abs(step) or 1
    return range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
