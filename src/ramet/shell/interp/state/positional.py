"""What `shift` leaves of very many parameters: the same list from a later place on.

Rule: it is no list, so that nobody takes it for one, and none of what it shows changes, so that a subshell and the
function that called may keep theirs. To copy what is left each time would make a loop that shifts once for every
parameter quadratic.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

MANY: Final = 256
"""Parameters that are sooner copied."""


class Remaining:
    """The parameters from one on."""

    __slots__ = ("_all", "_first")

    def __init__(self, words: list[str], first: int) -> None:
        self._all, self._first = words, first

    def __len__(self) -> int:
        return len(self._all) - self._first

    def __iter__(self) -> Iterator[str]:
        return islice(self._all, self._first, None)

    def __getitem__(self, place: int) -> str:
        return self._all[self._first + place]

    def copy(self) -> list[str]:
        return self._all[self._first :]

    def without(self, count: int) -> Parameters:
        first = self._first + count
        return self._all[first:] if 2 * first > len(self._all) else Remaining(self._all, first)


Parameters = list[str] | Remaining


def shifted(words: Parameters, count: int) -> Parameters:
    """All but the first ones."""
    if isinstance(words, Remaining):
        return words.without(count)
    left = len(words) - count
    return words[count:] if left <= MANY or left < count else Remaining(words, count)
