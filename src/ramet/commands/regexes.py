"""POSIX patterns for nl, csplit, tac, expr and find: the shared engine, with usage errors in the caller's words."""

from __future__ import annotations

from ramet.commands.declare import UsageError
from ramet.core.paths import encode
from ramet.patterns import POSIX_BASIC, POSIX_EXTENDED, Dialect, Matcher, PatternError, compile


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
