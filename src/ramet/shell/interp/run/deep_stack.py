"""Stations on the way down into nested commands, where one that has come far goes on in a task, and on a stack, of its
own: however deep a script nests, no stack of ours does."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

from ramet.shell.interp.run.functions import HOP, hop
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.state.shell_state import ShellState

_WEIGHT: Final = 5
"""What the levels between two stations count for beside calls of functions."""


def stationed(run: Run) -> Run:
    """A command that nests so many levels deep that there is a station before it."""

    def enter(sh: ShellState) -> Result:
        if sh.stack >= HOP:
            return drive(hop(sh, lambda: _awaited(sh, run)))
        sh.stack += _WEIGHT
        try:
            result = run(sh)
        except BaseException:
            sh.stack -= _WEIGHT
            raise
        if type(result) is not int:
            return _left(sh, result)  # type: ignore[arg-type]
        sh.stack -= _WEIGHT
        return result

    return enter


async def _left(sh: ShellState, pending: Awaitable[int]) -> int:
    try:
        return await pending
    finally:
        sh.stack -= _WEIGHT


async def _awaited(sh: ShellState, run: Run) -> int:
    result: Any = run(sh)
    return int(result if type(result) is int else await result)
