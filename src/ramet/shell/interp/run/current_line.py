"""The line that bash names between the commands of what is being compiled.

Between simple commands bash names the end of a command line, or the head of a loop or function.
"""

from __future__ import annotations

import threading


class _Current(threading.local):
    line = 0


_current = _Current()


class AtLine:
    """``with AtLine(line):`` around the compiling of what runs while bash names that line."""

    __slots__ = ("_line", "_outer")

    def __init__(self, line: int) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._outer, _current.line = _current.line, self._line

    def __exit__(self, *exception: object) -> None:
        _current.line = self._outer


def current_line() -> int:
    """Return the line around what is being compiled; 0 outside of `AtLine`."""
    return _current.line
