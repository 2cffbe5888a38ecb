"""`Limits`: every bound of a workspace in one value; `Budget`: what one execution has left of them.

Hitting a limit is an error with a name, never a shortened result. Long loops call `budget.check()`, which
costs a comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ramet.concurrency.scheduler import Line, give_way
from ramet.core.errors import LimitExceeded

MIB = 1024 * 1024


class TimeUp(Exception):
    """The deadline of an execution has passed; becomes exit status 124 at the top."""


class Cancelled(Exception):
    """The cancel token of an execution was set; becomes an exception for the caller."""


@dataclass(frozen=True)
class Limits:
    """High by default: a bound protects the machine from a runaway, it does not shape ordinary work."""

    wall_time: float | None = None
    """Seconds one execution may take."""
    output_bytes: int = 256 * MIB
    """Bytes of captured stdout, and of captured stderr."""
    string_bytes: int = 512 * MIB
    """Size of one string: a variable, a command substitution, a line, a value of jq. Nothing below 64 KiB is ever
    refused."""
    argument_bytes: int = MIB
    """Size of one argument of a program, not of a builtin or function. Linux takes an eighth of this default."""
    expansion_words: int = 10_000_000
    """Words that one command may expand to."""
    expression_chars: int = 8192
    """Characters of an arithmetic expression where nothing else can run meanwhile: in a subscript, a slice, an operand
    of a test. Those of commands, assignments and arithmetic expansions may be longer. All values that one expression
    finds to be expressions again may have two dozen times as many."""
    recursion: int = 10_240
    """Nested function calls, sources, evals, subshells and shells; redirections and assignments around them count as
    well, sources, evals within evals and calls within loops twice, traps ten times."""
    loop_steps: int | None = None
    """Turns of all loops of the shell in one execution; None leaves it to the wall time, as with those of awk."""
    open_files: int = 1024
    """Descriptors that a shell has open, those of process substitutions and coprocesses among them."""
    processes: int = 4096
    """Jobs and shells alive at the same time: subshells, stages of pipelines, substitutions, what programs start. An
    execution that hits this limit ends with its jobs; one that hits that of the recursion starts no further shell."""
    fan_out: int = 32
    """Concurrent operations on one remote mount."""
    sort_memory: int = 256 * MIB
    """Bytes that a sort holds before it spills."""
    spill_bytes: int = 16 * 1024 * MIB
    """Bytes that a command lays aside in temporary files: what a sort spills, or a pipe that has to be turned round."""
    regex_seconds: float = 10.0
    """Time for one match on an engine that can backtrack."""

    def with_(self, **changes: object) -> Limits:
        return replace(self, **changes)  # type: ignore[arg-type]


DEFAULT_LIMITS = Limits()
_WHOLE = ("processes", "recursion", "loop_steps")


class Budget:
    """The remaining time of one execution, and the way to stop it from outside."""

    __slots__ = ("cancelled", "clock", "deadline", "deepest", "hit", "limits", "line", "slice_end", "turns")

    SLICE = 0.0015
    """Seconds of uninterrupted work before the event loop gets a turn."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.clock = clock
        now = clock()
        self.deadline = now + limits.wall_time if limits.wall_time is not None else float("inf")
        self.slice_end = now + self.SLICE
        self.cancelled = False
        self.turns = 0
        self.line: Line | None = None
        self.deepest = limits.recursion
        """How deep a shell may be that starts another one."""
        self.hit = ""
        """The limit that ended something which only this execution as a whole can be blamed for."""

    def check(self) -> bool:
        """Raise when the time is up or the work was cancelled; True when the event loop wants a turn."""
        now = self.clock()
        if now < self.slice_end and not self.cancelled:
            return False
        if self.cancelled:
            raise Cancelled
        if now >= self.deadline:
            raise TimeUp
        return True

    async def yield_turn(self) -> None:
        """Let the event loop run when this execution has had its slice."""
        if self.check():
            await give_way(self._waiting())
            self.slice_end = self.clock() + self.SLICE

    async def yield_turn_unchecked(self) -> None:
        """The same for what is to be finished in any case: late or cancelled, it goes on."""
        if self.clock() >= self.slice_end:
            await give_way(self._waiting())
            self.slice_end = self.clock() + self.SLICE

    def _waiting(self) -> Line:
        if self.line is None:
            self.line = Line()
        return self.line

    def left(self) -> float | None:
        """Seconds until the deadline; None when there is none."""
        return None if self.deadline == float("inf") else max(0.0, self.deadline - self.clock())

    def turn(self) -> None:
        """Say that a loop has made a turn; an error where that is one too many."""
        allowed = self.limits.loop_steps
        if allowed is not None:
            self.turns += 1
            if self.turns > allowed:
                raise self.exceeded("loop_steps")

    def spilled(self, size: int) -> None:
        """Say that a command has laid so many bytes aside; an error where that is too much."""
        if size > self.limits.spill_bytes:
            raise self.exceeded("spill_bytes")

    def spend(self, limit: str) -> None:
        """Say that this execution has nested or multiplied too often: it starts no further shell.

        Where each of many branches could find the limit anew, and go on with the next branch, they would never end.
        """
        self.hit, self.deepest = limit, -1

    def recover(self) -> None:
        """What did that is over as a whole."""
        self.deepest = self.limits.recursion

    def exceeded(self, limit: str, doing: str = "") -> LimitExceeded:
        if limit in _WHOLE:
            self.spend(limit)
        return LimitExceeded(limit, getattr(self.limits, limit), doing)
