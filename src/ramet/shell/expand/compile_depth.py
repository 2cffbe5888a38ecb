"""How deep the tree is that is being compiled, and stations on the way down for what runs later.

Every level counts itself with `level`. At some levels the way down goes over a station: what waits goes on in a task,
and with it on a stack, of its own; what does not wait gets room for its calls. So neither compiling nor running what
nests thousands of levels deep meets a limit of the host.
"""

from __future__ import annotations

import threading
from typing import Final

from ramet.concurrency.recursion import room

STATION: Final = 8
"""Levels between two stations."""
_ROOMY: Final = 32
"""Levels that there is room for in any case."""


class _Here(threading.local):
    level = 0
    line = 0


_here = _Here()


class _Level:
    __slots__ = ()

    def __enter__(self) -> bool:
        depth = _here.level = _here.level + 1
        if depth == _ROOMY:
            room.__enter__()
        return not depth % STATION

    def __exit__(self, *exception: object) -> None:
        if _here.level == _ROOMY:
            room.__exit__()
        _here.level -= 1


class At:
    """``with At(line):`` around the compiling of what is run while bash stands at that line: the end of a command
    line, the head of a loop or a function. It names that line where it runs no simple command."""

    __slots__ = ("_line", "_outer")

    def __init__(self, line: int) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._outer, _here.line = _here.line, self._line

    def __exit__(self, *exception: object) -> None:
        _here.line = self._outer


def line_around() -> int:
    """The line at which bash stands between the commands of what is being compiled; 0 if nobody said so."""
    return _here.line


level: Final = _Level()
"""``with level as station:`` around the compiling of what is one level further in; true where there is a station."""
