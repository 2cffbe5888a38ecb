"""Compile POSIX patterns for nl, csplit, tac, expr and find, with usage errors in the caller's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ramet.commands.framework.command import UsageError
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.patterns import POSIX_BASIC, POSIX_EXTENDED, Dialect, Matcher, PatternError, compile

T = TypeVar("T")


async def offload_long(proc: Proc, sources: Iterable[str | bytes], work: Callable[[], T]) -> T:
    """Compile patterns by `work`: in a thread when their sources are long."""
    return await offload_large(proc.budget, sum(map(len, sources)), work, LONG_SCRIPT)


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
