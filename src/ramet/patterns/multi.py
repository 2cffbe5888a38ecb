"""Search for thousands of patterns at once: plain texts by prefix, the rest in small groups.

One automaton for everything would outgrow the memory that keeps it fast; each part here is bounded.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import AnyStr, Final

from ramet.concurrency.offload import checkpoint
from ramet.patterns.alternations import in_order
from ramet.patterns.emit import Lines
from ramet.patterns.engines import NO_SPAN, MatchEngine, Re2Engine, Span
from ramet.patterns.errors import MatchTimeout

_NODES: Final = 16_000
"""States that the automaton of all beginnings may have."""
_BEGINNING: Final = 64
_GROUP: Final = 8 * 1024
"""Bytes of patterns that share one automaton."""
PLAIN: Final = re.compile(rb"[\w @,:;/<>=!%&~'\"#\x80-\xff-]+")
"""Patterns that every dialect takes for the text that they are."""


def groups(patterns: Sequence[AnyStr]) -> list[tuple[AnyStr, ...]]:
    """The patterns in runs of bounded size."""
    found: list[list[AnyStr]] = []
    size = _GROUP
    for pattern in patterns:
        if size >= _GROUP:
            found.append([])
            size = 0
        found[-1].append(pattern)
        size += len(pattern) + 1
    return [tuple(group) for group in found]


class TextsEngine:
    """The leftmost, then longest, of many texts; `whole` asks that it be a `line` or a `word`.

    An automaton of beginnings finds where one of the texts may be; the sorted list of all says which it is.
    """

    __slots__ = ("_begin", "_fits", "_fold", "_known", "_longest", "_parents", "_seconds", "_texts")

    def __init__(
        self, texts: Sequence[bytes], *, fold: bool, whole: str, lines: Lines, utf8: bool, seconds: float
    ) -> None:
        self._fold, self._seconds = fold, seconds
        self._texts = in_order(list({text.lower() for text in texts} if fold else set(texts)), bytes)
        self._parents = _parents(self._texts)
        self._longest = max(map(len, self._texts))
        self._fits = _fitting(whole, lines, utf8)
        source = "|".join(map(_escape, _beginnings(self._texts)))
        if whole == "line":
            source = ("\\A" if lines is Lines.TEXT else "(?m:^)") + f"(?:{source})"
        self._begin: MatchEngine = Re2Engine(source, False, utf8=False, longest=False)
        self._known: tuple[bytes, bytes] = (b"", b"")

    def search(self, data: bytes, pos: int) -> Span | None:
        if self._fold:
            known, lower = self._known
            if known is not data:
                lower = data.lower()
                self._known = (data, lower)
            data = lower
        begin, at, tries, deadline = self._begin.search, self._at, 0, 0.0
        while (found := begin(data, pos)) is not None:
            pos = found[0]
            stop = at(data, pos)
            if stop >= 0:
                return pos, stop
            pos += 1
            tries += 1
            if not tries & 4095:
                checkpoint()
                now = time.monotonic()
                deadline = deadline or now + self._seconds
                if now > deadline:
                    raise MatchTimeout(f"the match took longer than {self._seconds:g} seconds")
        return None

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self.search(data, pos)
        return None if found is None else [found]

    def _at(self, data: bytes, pos: int) -> int:
        """Where the longest text that begins at `pos` ends; -1 when none does."""
        texts, fits = self._texts, self._fits
        # Whatever begins here sorts before the data, and is a beginning of the last text that does.
        index = bisect_right(texts, data[pos : pos + self._longest]) - 1
        while index >= 0:
            text = texts[index]
            if data.startswith(text, pos):
                stop = pos + len(text)
                if fits is None or fits(data, pos, stop):
                    return stop
            index = self._parents[index]
        return -1


class UnionEngine:
    """The leftmost, then longest, match of several engines, each of which searches a block only once.

    Where they have groups, `numbers` says which each of them has; `first` asks for what the first engine finds instead
    of what is longest.
    """

    __slots__ = ("_engines", "_first", "_groups", "_known", "_numbers")

    def __init__(
        self,
        engines: Sequence[MatchEngine],
        groups: int = 0,
        numbers: Sequence[Sequence[int]] = (),
        *,
        first: bool = False,
    ) -> None:
        self._engines = tuple(engines)
        self._groups, self._numbers, self._first = groups, numbers, first
        self._known: tuple[bytes, list[tuple[int, Span | None]]] = (b"", [])

    def search(self, data: bytes, pos: int) -> Span | None:
        known, ahead = self._known
        if known is not data or not ahead:
            ahead = [(-1, None)] * len(self._engines)
            self._known = (data, ahead)
        best: Span | None = None
        checkpoint()
        for index, engine in enumerate(self._engines):
            origin, found = ahead[index]
            if not 0 <= origin <= pos or (found is not None and found[0] < pos):
                found = engine.search(data, pos)
                ahead[index] = (pos, found)
            if found is None:
                continue
            if best is None or found[0] < best[0] or (found[0] == best[0] and found[1] > best[1] and not self._first):
                best = found
        return best

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self.search(data, pos)
        if found is None or not self._groups:
            return None if found is None else [found]
        every = [
            self._all_groups(self._engines[index].spans(data, pos), self._numbers[index])
            for index, (_, ahead) in enumerate(self._known[1])
            if ahead == found
        ]
        # Of several ways, the one whose groups begin first and are longest, one after the other.
        return min(every, key=lambda spans: [(start < 0, start, -stop) for start, stop in spans])

    def _all_groups(self, given: list[Span] | None, numbers: Sequence[int]) -> list[Span]:
        spans = [NO_SPAN] * (self._groups + 1)
        for number, span in zip((0, *numbers), given or (), strict=False):
            spans[number] = span
        return spans


class Grouped:
    """An engine without groups, each of whose matches is also that of some groups."""

    __slots__ = ("_count", "_engine", "search")

    def __init__(self, engine: MatchEngine, count: int) -> None:
        self._engine, self._count, self.search = engine, count, engine.search

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self._engine.search(data, pos)
        return None if found is None else [found] * (1 + self._count)


def _parents(texts: Sequence[bytes]) -> list[int]:
    """For each of the sorted texts, which is the longest other one that it begins with; -1 for none."""
    parents: list[int] = []
    above: list[int] = []
    for index, text in enumerate(texts):
        while above and not text.startswith(texts[above[-1]]):
            above.pop()
        parents.append(above[-1] if above else -1)
        above.append(index)
    return parents


def _beginnings(texts: Sequence[bytes]) -> list[bytes]:
    """How the texts begin, in as many bytes as the automaton has room for."""
    found = {text[:1] for text in texts}
    nodes = len(found)
    for size in range(2, _BEGINNING):
        longer = {text[:size] for text in texts}
        nodes += len(longer)
        if nodes > _NODES:
            break
        found = longer
    return sorted(found)


def _escape(text: bytes) -> str:
    return "".join(chr(byte) if chr(byte).isalnum() and byte < 0x80 else f"\\x{byte:02x}" for byte in text)


def _is_line(data: bytes, start: int, stop: int) -> bool:
    return stop == len(data) or data[stop] == 10


def _is_text(data: bytes, start: int, stop: int) -> bool:
    return stop == len(data)


def _is_word(data: bytes, start: int, stop: int) -> bool:
    before = data[max(0, start - 4) : start].decode("utf-8", "ignore")[-1:]
    after = data[stop : stop + 4].decode("utf-8", "ignore")[:1]
    return not (before == "_" or before.isalnum() or after == "_" or after.isalnum())


def _is_word_of_bytes(data: bytes, start: int, stop: int) -> bool:
    before, after = data[start - 1 : start] if start else b"", data[stop : stop + 1]
    return not (before == b"_" or before.isalnum() or after == b"_" or after.isalnum())


def _fitting(whole: str, lines: Lines, utf8: bool) -> Callable[[bytes, int, int], bool] | None:
    """What has to hold around a text for it to count."""
    if whole == "line":
        return _is_text if lines is Lines.TEXT else _is_line
    return (_is_word if utf8 else _is_word_of_bytes) if whole else None
