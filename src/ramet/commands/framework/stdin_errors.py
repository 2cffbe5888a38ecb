"""Errors of a standard input that is closed or a directory: the message and exit status of each command.

- Most commands need no code for it: they get a reader that reports the error on the first read.
- After the report the reader is at its end or, where the original gives up, ends the command.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ramet.commands.framework.messages import typographic
from ramet.core.errors import fail, strerror
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader


@dataclass(frozen=True, slots=True)
class StdinError:
    """Messages and status for an unreadable standard input; `{}` is the reason, `{last}` the last word of argv."""

    reading: str | None = None
    """Message of the first read; empty: none. None: reading raises, and the command reports it."""
    closing: str = ""
    """Message at exit for a closed input, which cannot be closed again."""
    status: int = 1
    fatal: bool = False
    """Whether the first read ends the command; otherwise the input is empty."""
    directory: str | None = None
    """Message instead of `reading` for a directory."""
    named: bool = True
    """Whether messages begin with the command as typed."""


class _Ended(Exception):
    """Ends the command after a fatal read error."""


class _Unreadable(Reader):
    __slots__ = ("asked", "curly", "proc", "refusal", "rule")

    def __init__(self, proc: Proc, rule: StdinError, curly: bool) -> None:
        super().__init__()
        self.proc, self.rule, self.curly, self.refusal, self.asked = proc, rule, curly, proc.stdin.refused, False

    @property
    def refused(self) -> int:  # type: ignore[override]
        if self.rule.reading is not None:
            return 0
        self.asked = True
        return self.refusal

    async def _fill(self) -> bytes:
        said = self.rule.reading
        if said is None:
            self.asked = True
            raise fail(self.refusal, "-")
        if not self.asked:
            self.asked = True
            rule = self.rule
            directory = rule.directory if self.refusal == errno.EISDIR else None
            self.say(said if directory is None else directory)
        if self.rule.fatal:
            raise _Ended
        return b""

    def say(self, form: str) -> None:
        if not form:
            return
        proc = self.proc
        message = form.format(strerror(self.refusal), last=proc.argv[-1])
        if self.curly:
            message = typographic(proc, message)
        proc.stderr.write(encode(f"{proc.argv[0]}: {message}\n" if self.rule.named else f"{message}\n"))


async def without_input(proc: Proc, rule: StdinError, curly: bool, run: Callable[[Proc], Awaitable[int]]) -> int:
    """Run a command whose standard input cannot be read."""
    reader = _Unreadable(proc, rule, curly)
    proc.stdin = reader
    try:
        status = await run(proc)
    except _Ended:
        status = rule.status
    if not reader.asked:
        return status
    if reader.refusal == errno.EBADF and rule.closing:
        reader.say(rule.closing)
        return status or 1
    return status or rule.status
