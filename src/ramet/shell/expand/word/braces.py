"""Brace expansion: one word to several, before anything else is expanded; pure, so the result may be kept.

Only Literal text is looked at: whatever is quoted or expands is opaque and stays one unit.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ramet.shell.expand.errors import LineError
from ramet.shell.expand.word.brace_quotes import bare_units, bared, reread
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
    return bared(word.parts)


def expand_braces(word: Word, limit: int | None = None) -> Iterator[Word]:
    """The words that a word stands for, one by one; the word itself when it has no braces."""
    if not has_braces(word):
        yield word
        return
    units = _units(word)
    plain = isinstance(units, str)
    if not plain and bared(word.parts):
        yield from _expand_text(word, limit)
        return
    row = _tree(units)
    if plain and row is None and _first_brace(units) is None:
        yield word
        return
    for count, found in enumerate(_expand(units) if row is None else _walk(row)):
        if limit is not None and count >= limit:
            raise TooManyWords(limit)
        if plain:
            try:
                text = "".join(found)  # type: ignore[arg-type]
            except TypeError:
                pass  # a range of letters holds characters that must be quoted
            else:
                if text:
                    # An empty unquoted word vanishes: `{,a}` is `a`.
                    yield Word((Literal(text),))
                continue
        if _BACKTICK in found[:-1] and (plain or _BACKTICK not in units):
            rest = word_text(_word(found[found.index(_BACKTICK) + 1 :]))
            raise LineError(f'bad substitution: no closing "`" in `{rest}')
        if found:
            yield _word(found)


def _expand_text(word: Word, limit: int | None) -> Iterator[Word]:
    """The words of one whose quotes mean something else to braces than to everything else."""
    for count, found in enumerate(_expand(_units(word))):
        if limit is not None and count >= limit:
            raise TooManyWords(limit)
        made = reread(found)
        if made is not None:
            yield made


def _units(word: Word) -> Sequence[_Unit]:
    """What a word is made of; just its text when it is nothing but text."""
    if bared(word.parts):
        return bare_units(word_text(word))
    if all(isinstance(part, Literal) for part in word.parts):
        return "".join([part.text for part in word.parts if isinstance(part, Literal)])
    units: list[_Unit] = []
    opened = 0
    for part in word.parts:
        if isinstance(part, Literal):
            text = part.text
            if opened:
                closed = _find_close(text, opened)
                units.append(Literal(text[:closed]))
                opened, text = max(0, opened + _open_count(units[-1])), text[closed:]
            units.extend(text)
        else:
            units.append(part)
            opened += _open_count(part)
    return units


def _find_close(text: str, opened: int) -> int:
    """Return where `opened` braces are closed; the length of the text when they are not."""
    for place, char in enumerate(text):
        opened += (char == "{") - (char == "}")
        if not opened:
            return place + 1
    return len(text)


def _open_count(part: _Unit) -> int:
    """How many braces an operand leaves open (`${u:-{}`): what follows is within them."""
    if isinstance(part, Literal):
        return part.text.count("{") - part.text.count("}")
    if isinstance(part, Param):
        return sum(_open_count(inner) for word in part.args for inner in word.parts)
    return 0


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
    units = _units(word)
    row = _tree(units)
    return _count(units) if row is None else _row_count(row)


def _count(units: Sequence[_Unit]) -> int:
    total = 1
    while (found := _first_brace(units)) is not None:
        _, end, kind = found
        if isinstance(kind, _Range):
            total *= len(kind.numbers)
        elif not isinstance(kind, _Itself):
            total *= sum([_count(choice) if "{" in choice else 1 for choice in kind])
        units = units[end + 1 :]
    return total


_OPAQUE = re.compile(r"[^A-Za-z0-9_./,{}=:+@%-]|[A-Z]\.\.[a-z]|[a-z]\.\.[A-Z]")
_BLOCK = 4096


def text_blocks(word: Word) -> Iterator[list[str]] | None:
    """The words of a plain word as texts, many at a time; None when something in it is more than plain text."""
    if len(word.parts) != 1 or not isinstance(part := word.parts[0], Literal) or _OPAQUE.search(part.text):
        return None
    row = _tree(part.text)
    return _blocks(part.text) if row is None else _tree_blocks(row)


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


def _middles(kind: _Kind) -> Iterator[list[str]]:
    if isinstance(kind, _Itself):
        yield ["".join(kind.units)]  # type: ignore[arg-type]
        return
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
    alternatives = (one for choice in kind for one in _expand(choice)) if isinstance(kind, list) else kind.texts()
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


# ------------------------------------------------------------------------ what has many braces


class _Choices:
    """A brace with commas: rows to choose from, and how many words they stand for."""

    __slots__ = ("count", "rows")

    def __init__(self, rows: list[_Row]) -> None:
        self.rows = _flat(rows)
        self.count = sum(map(_row_count, rows))


_MANY = 16
"""Braces from which on a word is read in one go, so that no depth of them costs more than their number."""


def _row_count(row: _Row) -> int:
    total = 1
    for one in row:
        if isinstance(one, _Choices):
            total *= one.count
        elif isinstance(one, _Range):
            total *= len(one.numbers)
    return total


def _tree(units: Sequence[_Unit]) -> _Row | None:
    """A word of many braces as a tree; None for any other, and for one with a brace that neither chooses nor counts,
    for it may be closed by what closes another."""
    if units.count("{") <= _MANY:
        return None
    row: _Row = []
    rows = [row]
    around: list[list[_Row]] = []
    for unit in _WHOLE.findall(units) if isinstance(units, str) else units:
        if unit == "{":
            around.append(rows)
            row = []
            rows = [row]
        elif unit == "," and around:
            row = []
            rows.append(row)
        elif unit == "}" and around:
            found: _Choices | _Range | None
            if len(rows) > 1:
                found = _Choices(rows)
            elif any(isinstance(one, _Choices | _Range) for one in row):
                return None
            else:
                found = _sequence("".join(row) if all(isinstance(one, str) for one in row) else row)  # type: ignore[arg-type]
            if found is None:
                return None
            rows = around.pop()
            row = rows[-1]
            row.append(found)
        else:
            row.append(unit)
    while around:  # what nothing closes is text
        inner, rows = rows, around.pop()
        row = rows[-1]
        for place, one_row in enumerate(inner):
            row.append("," if place else "{")
            row += one_row
    return row


def _flat(rows: list[_Row]) -> list[_Row]:
    """A choice that is nothing but a choice again is as good as its rows."""
    out: list[_Row] = []
    for row in rows:
        if len(row) == 1 and isinstance(one := row[0], _Choices):
            out += one.rows
        else:
            out.append(row)
    return out


def _walk(row: _Row) -> Iterator[list[_Unit]]:
    """All combinations, as `_expand` has them. What is still to be done is kept in a list, not in calls."""
    waiting: list[tuple[_Before, _Rest, Iterator[Iterable[_Element]]]] = []
    before: _Before = None
    rest: _Rest = (row, 0, None)
    while True:
        while rest is not None:
            here, place, after = rest
            if place == len(here):
                rest = after
                continue
            one = here[place]
            rest = (here, place + 1, after)
            if isinstance(one, _Choices | _Range):
                waiting.append((before, rest, iter(one.rows) if isinstance(one, _Choices) else one.texts()))
                break
            before = (before, one)
        else:
            yield _units_before(before)
        while waiting:
            before, rest, choices = waiting[-1]
            chosen = next(choices, None)
            if chosen is not None:
                rest = (chosen, 0, rest)  # type: ignore[assignment]
                break
            waiting.pop()
        else:
            return


def _units_before(before: _Before) -> list[_Unit]:
    """The characters and parts that were gone past."""
    units: list[_Unit] = []
    while before is not None:
        before, one = before
        units += reversed(one) if isinstance(one, str) else (one,)
    units.reverse()
    return units


def _tree_blocks(row: _Row) -> Iterator[list[str]]:
    words, many = _walk(row), max(64, _BLOCK // (1 + len(row)))
    while block := ["".join(found) for found in itertools.islice(words, many)]:  # type: ignore[arg-type]
        yield block


class _Range(NamedTuple):
    """What a sequence stands for."""

    numbers: range
    width: int
    letters: bool

    def texts(self) -> Iterator[list[_Unit]]:
        for number in self.numbers:
            yield _letter(number) if self.letters else [_padded(number, self.width)]


class _Itself(NamedTuple):
    """A brace with neither choices nor a sequence in it."""

    units: Sequence[_Unit]

    def texts(self) -> Iterator[list[_Unit]]:
        yield list(self.units)


_Element = _Unit | _Range | _Choices
_Row = list[_Element]
_Before = tuple["_Before", _Unit] | None
"""What a word begins with, the last of it first."""
_Rest = tuple[_Row, int, "_Rest"] | None
"""What is still to come: the place in a row, and what comes behind the row."""
_WHOLE = re.compile(r"[{},]|[^{},]+")
_Kind = _Range | _Itself | list[Sequence[_Unit]]


def _first_brace(units: Sequence[_Unit]) -> tuple[int, int, _Kind] | None:
    """The first brace that is closed: where it begins and ends, and what it stands for. None when nothing expands."""
    begin = -1
    tries = 0
    while True:
        begin = _next(units, "{", begin + 1)
        if begin < 0:
            return None
        if not begin and (len(units) == 1 or units[1] == "}"):
            continue  # `{}` and `{` are words of their own
        tries += 1
        end = _closer(units, begin)
        if end >= 0:
            break
        if tries * len(units) > _WORK or _next(units, "}", begin + 1) < 0:
            return None
    if 0 <= _next(units, ",", begin + 1) < end:
        return begin, end, _choices(units[begin + 1 : end])
    numbers = _sequence(units[begin + 1 : end]) if end - begin <= _LONGEST_RANGE else None
    if numbers is not None:
        return begin, end, numbers
    # It stands for itself, and what follows it is looked at alone.
    return (begin, end, _Itself(units[begin : end + 1])) if end + 1 < len(units) else None


_LONGEST_RANGE = 61
"""Characters between braces that still may be two numbers and a step."""
_WORK = 100_000
"""Characters that are looked at for the ends of braces that are not closed before a word is taken as it is."""


def _next(units: Sequence[_Unit], wanted: str, start: int) -> int:
    if isinstance(units, str):
        return units.find(wanted, start)
    return next((place for place in range(start, len(units)) if units[place] == wanted), -1)


def _closer(units: Sequence[_Unit], begin: int) -> int:
    """Where a brace is closed: by the first closing one after a comma or `..` that is not deeper; -1 for nowhere."""
    level = commas = 0
    if isinstance(units, str):
        end = units.find("}", begin + 1)
        if end < 0:
            return -1
        if units.find("{", begin + 1, end) < 0 and units.find(",", begin + 1, end) >= 0:
            return end
        found = _active(units, begin + 1)
    else:
        found = ((place, units[place]) for place in range(begin + 1, len(units)))  # type: ignore[misc]
    for place, unit in found:
        if unit == "}":
            if level:
                level -= 1
            elif commas:
                return place
        elif unit == "{":
            level += 1
        elif level:
            continue
        elif unit == "," or (
            unit == "." and place + 2 < len(units) and units[place + 1] == "." and units[place + 2] != "}"
        ):
            commas += 1
    return -1


def _active(text: str, start: int) -> Iterator[tuple[int, str]]:
    for found in _ACTIVE(text, start):
        yield found.start(), found[0]


_ACTIVE = re.compile(r"[{},.]").finditer


def _choices(units: Sequence[_Unit]) -> list[Sequence[_Unit]]:
    """What stands between the commas that are not in deeper braces."""
    if isinstance(units, str) and "{" not in units:
        return list[Sequence[_Unit]](units.split(","))
    commas, level = [-1], 0
    for place, unit in enumerate(units):
        if unit == "{":
            level += 1
        elif unit == "}" and level:
            level -= 1
        elif unit == "," and not level:
            commas.append(place)
    return [units[a + 1 : b] for a, b in itertools.pairwise([*commas, len(units)])]


def _sequence(units: Sequence[_Unit]) -> _Range | None:
    if len(units) >= _LONGEST_RANGE or not all(isinstance(unit, str) for unit in units):
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
