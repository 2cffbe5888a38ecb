"""Line order from all keys together; sorts lists in place, at C speed where the key allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from operator import eq, neg
from typing import Any

from ramet.commands.text.sort.compare import comparer, numeric_key, version_key, version_keys
from ramet.commands.text.sort.keys import Key, KeyOf, Line, check_orderings, parse_key, region
from ramet.commands.text.sort.options import LETTERS, WORDS, SortOptions


class ReversedKey:
    """Reverses the comparison of one key among several."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: ReversedKey) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReversedKey) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Order:
    """How lines compare: `key` (None: the line itself), `reverse` of the whole, `last_resort` by bytes."""

    key: KeyOf | None
    reverse: bool
    last_resort: bool
    last_reverse: bool
    number: Callable[[list[Line]], list[str]] | None = None
    """For a single numeric key: extracts the numbers of a list of lines."""
    many: Callable[[list[Line]], list[Any]] | None = None
    """Computes the keys of a list of lines, where that is faster than one by one."""
    slow: bool = False
    """Whether keys compare in Python code."""

    @property
    def total(self) -> bool:
        """Whether lines that compare equal are the same bytes, so their order does not matter."""
        return self.key is None or self.last_resort

    def keys(self, lines: list[Line], simple: bool) -> list[Any] | None:
        """Return the keys of the lines, None if lines are keys; `simple`: lines are ASCII without odd spaces."""
        if self.key is None:
            return None
        if simple and self.number is not None and (numbers := _plain_numbers(lines, self.number)) is not None:
            return numbers
        return list(map(self.key, lines)) if self.many is None else self.many(lines)

    def sort(self, lines: list[Line], keys: list[Any] | None) -> None:
        """Sort lines in place by their keys; lines with equal keys by `last_resort`."""
        if keys is None:
            lines.sort(reverse=self.reverse)
            return
        following = iter(keys).__next__
        lines.sort(key=lambda _: following(), reverse=self.reverse)
        if not self.last_resort:
            return
        keys.sort(reverse=self.reverse)
        same = bytes(map(eq, keys, islice(keys, 1, None)))
        at = same.find(1)
        while at >= 0:
            end = same.find(0, at)
            stop = len(lines) if end < 0 else end + 1
            lines[at:stop] = sorted(lines[at:stop], reverse=self.last_reverse)
            at = same.find(1, stop)

    def merge_key(self) -> Callable[[Line], Any]:
        """Return one key function that orders as `sort` does."""
        key = self.key
        if key is None:
            return ReversedKey if self.reverse else lambda line: line
        wrap: Callable[[Any], Any] = ReversedKey if self.reverse else lambda x: x
        if not self.last_resort:
            return lambda line: wrap(key(line))
        tail: Callable[[Any], Any] = ReversedKey if self.last_reverse else lambda x: x
        return lambda line: (wrap(key(line)), tail(line))


def _plain_numbers(lines: list[Line], words: Callable[[list[Line]], list[str]]) -> list[int] | None:
    """Return the numbers of all lines if all are plain integers, else None."""
    try:
        found = words(lines)
        joined = "".join(found)
        if not (joined.isdigit() or joined.replace("-", "").isdigit()) or not joined.isascii():
            return None
        return list(map(int, found))
    except (ValueError, IndexError):
        return None


def _blank_words(field: int) -> Callable[[list[Line]], list[str]]:
    index = field - 1

    return lambda lines: [line.split(None, field)[index] for line in lines]


ODD_SPACES = (b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
"""Spaces of str.split that are not blanks of sort; data with them takes the exact path."""


def _number_words(
    key: Key | None, ordering: frozenset[str], separator: str | None
) -> Callable[[list[Line]], list[str]] | None:
    """Return a function that extracts a single numeric key from a list of lines."""
    if "n" not in ordering or ordering - {"n", "r", "b"}:
        return None
    if key is None:
        return _blank_words(1)
    if key.first_char != 1 or key.last_char != 0 or (key.last_field is not None and key.last_field < key.first_field):
        return None
    if separator is None:
        return _blank_words(key.first_field)
    find = region(key, separator)
    return lambda lines: [find(line) for line in lines]


def make_order(o: SortOptions, separator: str | None, salt: bytes) -> Order:
    """Build the order of the options."""
    letters = {letter for letter, name in LETTERS.items() if getattr(o, name)}
    if o.word:
        letters.add(WORDS[o.word])
    defaults = frozenset(letters)
    keys = [parse_key(text, defaults) for text in o.keys]
    for ordering in [key.ordering for key in keys] or [defaults]:
        check_orderings(ordering)
    if not keys:
        plain = not (defaults - {"r"})
        if plain:
            return Order(None, o.reverse, False, False)
        compare = comparer(defaults, salt)
        if words := _number_words(None, defaults, separator):
            return Order(compare, o.reverse, not o.stable and not o.unique, o.reverse, words)
        if "b" in defaults:
            compare = _without_blanks if compare is None else _then(_without_blanks, compare)
        many = version_keys if compare is version_key else None
        return Order(compare, o.reverse, not o.stable and not o.unique, o.reverse, many=many)
    keys = [_narrow(key, separator) for key in keys]
    last_resort = not o.stable and not o.unique
    parts = [_extractor(key, separator, salt) for key in keys]
    reversed_ = ["r" in key.ordering for key in keys]
    if len(parts) == 1:
        words = _number_words(keys[0], keys[0].ordering, separator)
        return Order(parts[0], reversed_[0], last_resort, o.reverse, words, _many(keys[0], separator, salt))
    slow = False
    if len(set(reversed_)) > 1:
        for index, key in enumerate(keys):
            if "r" in key.ordering:
                turn = _turn(key.ordering)
                slow = slow or turn is ReversedKey
                parts[index] = _then(parts[index], turn)
    if len(parts) == 2:
        a, b = parts
        return Order(lambda line: (a(line), b(line)), all(reversed_), last_resort, o.reverse, slow=slow)
    return Order(lambda line: tuple([f(line) for f in parts]), all(reversed_), last_resort, o.reverse, slow=slow)


def _without_blanks(line: Line) -> Line:
    return line.lstrip(" \t\n")


def _then(first: KeyOf, second: Callable[[Any], Any]) -> KeyOf:
    return lambda line: second(first(line))


def _narrow(key: Key, separator: str | None) -> Key:
    """End a numeric key at its field, if the separator cannot be part of a number."""
    open_ended = "n" in key.ordering and key.first_char == 1 and key.last_field is None
    if open_ended and separator is not None and separator not in "0123456789-. \t\n":
        return replace(key, last_field=key.first_field, last_char=0)
    return key


def _turn(ordering: frozenset[str]) -> Callable[[Any], Any]:
    """Return a function that reverses a key, into plain values where possible, which compare in C."""
    if ordering & {"n", "M"}:
        return neg
    if ordering & {"g", "h"}:
        return lambda pair: (-pair[0], -pair[1])
    return _turned_text if not ordering & {"V", "R"} else ReversedKey


_TURNED = bytes(range(255, -1, -1))


def _turned_text(text: Line) -> str:
    # The end of a text orders after every character.
    return text.encode("latin-1").translate(_TURNED).decode("latin-1") + "\u0100"


def _many(key: Key, separator: str | None, salt: bytes) -> Callable[[list[Line]], list[Any]] | None:
    if comparer(key.ordering, salt) is not version_key:
        return None
    find = region(key, separator)
    return lambda lines: version_keys([find(line) for line in lines])


def _extractor(key: Key, separator: str | None, salt: bytes) -> KeyOf:
    find, compare = region(key, separator), comparer(key.ordering, salt)
    if compare is None:
        return find
    if (
        compare is numeric_key
        and separator is None
        and key.first_char == 1
        and key.last_char == 0
        and key.first_field < 99
    ):
        return _fast_numeric(key, find)
    return _then(find, compare)


_FEW_FIELDS = 100


def _fast_numeric(key: Key, find: Callable[[Line], Line]) -> KeyOf:
    """`-n -k2`: one match per line for ordinary numbers, the exact path for the rest."""
    # Possessive quantifiers: backtracking would split the fields of a line that has too few.
    number = re.compile(rf"(?:[ \t\n]*+[^ \t\n]++){{{key.first_field - 1}}}[ \t\n]*+(-?\d{{1,15}})(?![\d.])")
    match = number.match

    def extract(line: Line) -> Any:
        found = match(line)
        return int(found[1]) if found is not None else numeric_key(find(line))

    return extract
