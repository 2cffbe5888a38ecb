"""What `shift` leaves of very many parameters: the same list from a later place on.

Rule: none of them changes, so a subshell and the function that called may keep theirs. To copy what is left each time
would make a loop that shifts once for every parameter quadratic.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

MANY: Final = 256
"""Parameters that are sooner copied."""


class Remaining(list[str]):
    """The parameters from one on. The list that it is by its type stays empty: it is a view of another."""

    __slots__ = ("_all", "_first")

    def __init__(self, words: list[str], first: int) -> None:
        super().__init__()
        self._all, self._first = words, first

    def __len__(self) -> int:
        return len(self._all) - self._first

    def __iter__(self) -> Iterator[str]:
        return islice(self._all, self._first, None)

    def __reversed__(self) -> Iterator[str]:
        return islice(reversed(self._all), len(self))

    def __contains__(self, word: object) -> bool:
        return any(word == own for own in self)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step != 1:
                return list(self)[place]
            return self._all[start + self._first : max(start, stop) + self._first]
        return self._all[place + self._first if place >= 0 else place]

    def copy(self) -> list[str]:
        return self._all[self._first :]

    def without(self, count: int) -> list[str]:
        first = self._first + count
        return self._all[first:] if 2 * first > len(self._all) else Remaining(self._all, first)


def shifted(words: list[str], count: int) -> list[str]:
    """All but the first ones."""
    if type(words) is Remaining:
        return words.without(count)
    left = len(words) - count
    return words[count:] if left <= MANY or left < count else Remaining(words, count)
