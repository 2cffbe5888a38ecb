"""POSIX patterns for nl, csplit, tac, expr and find: the shared engine, with usage errors in the caller's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ramet.commands.framework.command import UsageError
from ramet.concurrency.offload import offload
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.patterns import LONG, POSIX_BASIC, POSIX_EXTENDED, Dialect, Matcher, PatternError, compile

T = TypeVar("T")


async def patiently(proc: Proc, sources: Iterable[str | bytes], work: Callable[[], T]) -> T:
    """What `work` makes of some texts that have patterns in them; if they are long, while others run."""
    return work() if sum(map(len, sources)) <= LONG else await offload(proc.budget, work)


def bre_bytes(pattern: str, *, icase: bool = False) -> Matcher:
    """A basic regular expression over bytes."""
    return posix(pattern, POSIX_BASIC, icase=icase)


def ere_bytes(pattern: str, *, icase: bool = False) -> Matcher:
    return posix(pattern, POSIX_EXTENDED, icase=icase)


def posix(pattern: str, dialect: Dialect, *, icase: bool = False) -> Matcher:
    try:
        return compile(encode(pattern), dialect, icase=icase)
    except PatternError as error:
        raise UsageError(str(error), hint=False) from None
