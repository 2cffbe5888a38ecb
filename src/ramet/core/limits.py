"""`Limits`: every bound of a workspace in one value; `Budget`: what one execution has left of them.

- Reaching a limit is an error with a name, never a shortened result.
- Long loops call `budget.check()`, which costs a comparison, or `await budget.yield_turn()`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as HostPath
from typing import Final

from ramet.concurrency.scheduler import Line, give_way
from ramet.core.errors import LimitExceeded

MIB = 1024 * 1024


class TimeUp(Exception):
    """The deadline of an execution has passed; becomes exit status 124."""


class Cancelled(Exception):
    """The cancel token of an execution was set; becomes an exception for the caller."""


_SHARE_MOST: Final = 2048 * MIB
_CGROUP: Final = (HostPath("/sys/fs/cgroup/memory.max"), HostPath("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where version 2 and version 1 of control groups tell the memory that this process may have."""


@cache
def memory_share() -> int:
    """Return the bytes that one thing may take by default: 2 GiB, or a quarter of this process's memory if less."""
    return min(_SHARE_MOST, *(size // 4 for size in _memory_sizes()))


def _memory_sizes() -> list[int]:
    """Return the memory of the machine, of the control group and of the process, as far as each is known."""
    found: list[int] = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        found.append(4 * _SHARE_MOST)  # Windows
    for file in _CGROUP:
        try:
            text = file.read_text().strip()
        except OSError:
            continue  # no control group of this version
        if text.isdecimal():
            found.append(int(text))
    try:
        import resource
    except ImportError:
        return found  # Windows
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return found if allowed == resource.RLIM_INFINITY else [*found, allowed]


@dataclass(frozen=True)
class Limits:
    """Every bound of a workspace. High by default: a limit stops a runaway, it does not shape ordinary work."""

    wall_time: float | None = None
    """Seconds one execution may take."""
    output_bytes: int = 256 * MIB
    """Bytes of captured stdout, and of captured stderr."""
    string_bytes: int = 512 * MIB
    """Size of one string: a variable, a command substitution, a line, a jq value. Below 64 KiB nothing is refused."""
    variable_bytes: int = 512 * MIB
    """Memory of all variables, positional parameters and aliases of a session, with its subshells and jobs. Counted
    whenever a quarter of this has been assigned. Below 64 KiB nothing is refused."""
    whole_bytes: int = field(default_factory=memory_share)
    """Bytes of a file, device or stream that a command may hold as a whole. By default 2 GiB, or a quarter of the
    memory if that is less; never more than four times `string_bytes`."""
    width_chars: int = 16 * MIB
    """Characters of one width, precision or padding: `printf %1000d`, `nl -w 1000`, `expand -t 1000`."""
    argument_bytes: int = MIB
    """Size of one argument of a program, not of a builtin or function. Linux allows an eighth of this default."""
    expansion_words: int = 10_000_000
    """Words that one command may expand to."""
    expression_chars: int = 8192
    """Characters of an arithmetic expression in a subscript, a slice or an operand of a test. Arithmetic commands,
    assignments and expansions may be longer. Variables that are expressions again count 24 times this in all."""
    recursion: int = 10_240
    """Nested function calls, sources, evals, subshells and shells. Redirections and assignments around them count too;
    sources, nested evals and calls in loops count twice, traps ten times."""
    loop_steps: int | None = None
    """Iterations of all shell loops in one execution; None leaves it to the wall time."""
    open_files: int = 1024
    """Open descriptors of a shell, including process substitutions and coprocesses."""
    processes: int = 4096
    """Jobs and shells alive at once: subshells, pipeline stages, substitutions, children of programs. Reaching this
    ends the execution and its jobs."""
    fan_out: int = 32
    """Concurrent operations on one remote mount."""
    sort_memory: int = 256 * MIB
    """Bytes that a sort holds before it spills."""
    spill_bytes: int = 16 * 1024 * MIB
    """Bytes that a command may spill to temporary files: runs of a sort, or a pipe that `tac` reverses."""
    regex_seconds: float = 10.0
    """Seconds for one match on an engine that can backtrack."""

    @property
    def whole(self) -> int:
        """The most bytes that a command may hold of one input."""
        return min(self.whole_bytes, self.string_bytes * _WHOLE_STRINGS)


_WHOLE_STRINGS: Final = 4
"""Factor of `Limits.string_bytes` that an input held as a whole may have."""
DEFAULT_LIMITS = Limits()
_WHOLE = ("processes", "recursion", "loop_steps")


class Budget:
    """What one execution has left of its limits, and the switch that cancels it."""

    __slots__ = ("cancelled", "clock", "deadline", "deepest", "hit", "limits", "line", "owner", "slice_end", "turns")

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
        self.owner: object = None
        """The workspace, whose share of threads this execution uses."""
        self.deepest = limits.recursion
        """Nesting depth at which no further shell starts."""
        self.hit = ""
        """The limit that this execution as a whole has reached; empty if none."""

    def check(self) -> bool:
        """Raise if the deadline has passed or the work was cancelled; return True when a turn is due."""
        now = self.clock()
        if now < self.slice_end and not self.cancelled:
            return False
        if self.cancelled:
            raise Cancelled
        if now >= self.deadline:
            raise TimeUp
        return True

    async def yield_turn(self) -> None:
        """Check the limits, and yield the event loop if this execution has used its slice."""
        if self.check():
            await give_way(self._waiting())
            self.slice_end = self.clock() + self.SLICE

    async def yield_turn_unchecked(self) -> None:
        """Yield without checking: for work that must finish even when late or cancelled."""
        if self.clock() >= self.slice_end:
            await give_way(self._waiting())
            self.slice_end = self.clock() + self.SLICE

    def _waiting(self) -> Line:
        if self.line is None:
            self.line = Line()
        return self.line

    def left(self) -> float | None:
        """Return the seconds until the deadline; None if there is none."""
        return None if self.deadline == float("inf") else max(0.0, self.deadline - self.clock())

    def turn(self) -> None:
        """Count one iteration of a loop; raise beyond `loop_steps`."""
        allowed = self.limits.loop_steps
        if allowed is not None:
            self.turns += 1
            if self.turns > allowed:
                raise self.exceeded("loop_steps")

    def spilled(self, size: int) -> None:
        """Count bytes in temporary files; raise beyond `spill_bytes`."""
        if size > self.limits.spill_bytes:
            raise self.exceeded("spill_bytes")

    def spend(self, limit: str) -> None:
        """Record that this execution has reached a limit of depth or number: it starts no further shell.

        Otherwise each branch of a recursion would reach the limit, fail, and let the next branch try again.
        """
        self.hit, self.deepest = limit, -1

    def recover(self) -> None:
        """Allow new shells again, once the command that reached the limit has ended."""
        self.deepest = self.limits.recursion

    def exceeded(self, limit: str, doing: str = "") -> LimitExceeded:
        if limit in _WHOLE:
            self.spend(limit)
        return LimitExceeded(limit, getattr(self.limits, limit), doing)
