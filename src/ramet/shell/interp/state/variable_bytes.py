"""`VariableBytes`: the memory of all variables of a session, bounded by `Limits.variable_bytes`.

- Assignments add to `estimate`, and nothing is subtracted; values are counted only when it passes `mark`.
- A session is bounded as a whole: its subshells, jobs and child shells share one `VariableBytes`.
- A value that several shells or names share counts once; an array counts for each shell that has changed it.
- A plain name counts `SHORT` characters once, so that a shorter text replaces another one without being counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sys import getsizeof, maxsize
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from ramet.concurrency.sizes import SMALL
from ramet.core.errors import LimitExceeded
from ramet.core.limits import DEFAULT_LIMITS
from ramet.shell.expand.values import Assoc, Indexed

if TYPE_CHECKING:
    from ramet.shell.interp.state.variables import Variables

SHORT: Final = 4096
"""Characters of a text that may replace another one without being counted."""
REFERENCE: Final = 8
"""Bytes of an element of a list besides its text."""
ENTRY: Final = 100
"""Bytes of an element of a dict besides its text, about, and of the head of a text."""


class VariableBytes:
    __slots__ = ("_shells", "estimate", "limit", "mark")

    def __init__(self) -> None:
        self.estimate = 0
        self.limit = self.mark = DEFAULT_LIMITS.variable_bytes
        self._shells: list[ref[Variables]] = []
        """The variables of shells that were charged. Another one holds what the shell that waits for it holds as well,
        but for short texts."""

    def allow(self, limit: int) -> None:
        """Set the limit. Below `SMALL` nothing is refused."""
        limit = max(limit, SMALL)
        if limit != self.limit:
            self.limit = self.mark = limit

    def invalidate(self) -> None:
        """Count at the next assignment, after values have come by another way."""
        self.estimate = maxsize

    def enter(self, variables: Variables) -> None:
        """Count the variables of this shell from now on."""
        self._shells.append(ref(variables))

    def recount(self, coming: int) -> None:
        """Count what the session holds; raise if `coming` bytes more exceed the limit."""
        found = self.estimate = self._count()
        # The next count is due when a quarter of the limit has been assigned: a full session counts rarely as well.
        self.mark = max(self.limit, found + self.limit // 4)
        if found + coming > self.limit:
            raise LimitExceeded("variable_bytes", self.limit)
        self.estimate += coming

    def _count(self) -> int:
        self._shells = [shell for shell in self._shells if shell() is not None]
        seen: set[int] = set()
        return sum(_size(values, seen) for shell in self._live() for values in _held(shell))

    def _live(self) -> Iterator[Variables]:
        """The variables of every shell: those that were charged, their parents, and the jobs."""
        known: set[int] = set()
        waiting = [found for shell in self._shells if (found := shell()) is not None]
        while waiting:
            found = waiting.pop()
            if id(found) in known or found.bytes_held is not self:
                continue
            known.add(id(found))
            yield found
            host: Any = found.host
            if host is not None:
                waiting += (process.session.variables for process in host.shell.processes.values())
                if host.parent is not None:
                    waiting.append(host.parent.variables)


def _held(variables: Variables) -> Iterator[Iterable[Any]]:
    """What one shell holds: its values, those that functions hide, positional parameters and aliases."""
    yield variables.values.values()
    for scope in list(variables.scopes):
        yield (value for value, _ in list(scope.values()))
    host: Any = variables.host
    if host is not None:
        yield host.aliases.values()
        yield (host.params, *(frame.params for frame in list(host.frames)))


def _size(values: Iterable[Any], seen: set[int]) -> int:
    """Return the bytes of values that were not seen before."""
    found = 0
    for value in list(values):
        if id(value) in seen:
            continue
        seen.add(id(value))
        found += ENTRY
        kind = type(value)
        if kind is str:
            found += getsizeof(value)
        elif kind is Indexed:
            found += _list_size(value.stored())
        elif kind is Assoc:
            found += sum(map(getsizeof, value.items)) + _list_size(list(value.items.values())) + ENTRY * len(value)
        elif kind is list:
            found += _list_size(value)
    return found


def _list_size(items: list[Any]) -> int:
    return sum(map(getsizeof, items)) + REFERENCE * len(items)


def charge_of(items: Sequence[str]) -> int:
    """Return about the bytes of a list of texts, in a fifth of the time that counting takes."""
    return len(items[0]) + ENTRY if len(items) == 1 else sum(map(len, items)) + ENTRY * len(items)
