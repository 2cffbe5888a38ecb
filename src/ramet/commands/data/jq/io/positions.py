"""File and line of jq's inputs, computed on demand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ramet.commands.data.jq.io.reader import JsonReader
from ramet.commands.data.jq.values import Json


@dataclass(slots=True)
class InputPlace:
    """Inputs that were read together: how many, the file, and how many lines there were before them."""

    count: int
    name: str | None = None
    start: int = 0
    lines: bytes | None = None
    """The lines they stand on, when these are not as many as the inputs."""
    exact: tuple[int, ...] = ()
    """The line of each, where they do not simply stand on one line each."""

    def line(self, index: int) -> int:
        if self.lines is not None:
            # Computed once: a program that fails for one input may fail for many.
            self.exact, self.lines = tuple(self.start + line for line in _ends(self.lines)), None
        if self.exact:
            return self.exact[min(index, len(self.exact) - 1)]
        return self.start + index + 1


def _ends(text: bytes) -> Iterator[int]:
    """Yield the lines on which the values of a text end."""
    reader = JsonReader()
    reader.feed(text + b"\n", True)
    for _ in reader.take(True):
        yield reader.line + reader.ends_later()


class Places:
    """The inputs that a program has or may ask for, and which of them it is at."""

    def __init__(self) -> None:
        self.index = 0
        self._places: list[InputPlace] = []
        self._ends: list[int] = []

    def only(self, place: InputPlace) -> None:
        self.index = 0
        self._places, self._ends = [place], [place.count]

    def add(self, place: InputPlace) -> None:
        self._places.append(place)
        self._ends.append((self._ends[-1] if self._ends else 0) + place.count)

    def counted(self, values: Iterable[Json]) -> Iterator[Json]:
        """Yield the inputs, of which the one that was taken last is the current one."""
        self.index = -1
        for value in values:
            self.index += 1
            yield value

    def _current(self) -> tuple[InputPlace | None, int]:
        if not self._places or self.index < 0:
            return None, 0
        at = min(bisect_right(self._ends, self.index), len(self._places) - 1)
        return self._places[at], self.index - (self._ends[at - 1] if at else 0)

    @property
    def any(self) -> bool:
        """Whether an input has been taken at all."""
        return self._current()[0] is not None

    @property
    def line(self) -> int:
        place, index = self._current()
        return place.line(index) if place is not None else 0

    @property
    def name(self) -> str | None:
        place, _ = self._current()
        return place.name if place is not None else None
