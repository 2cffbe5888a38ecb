"""Regular expressions over bytes as the GNU tools understand them; importable by every layer, and never able to hang.

`compile(pattern, dialect)` gives a `Matcher`; `PatternError` carries the GNU library's words, `MatchTimeout` says that
a limit was reached.
"""

from ramet.patterns.emit import Lines
from ramet.patterns.errors import MatchTimeout, PatternError
from ramet.patterns.matcher import FIXED, LONG, PERL, RUST, Matcher, after_char, compile, compile_any
from ramet.patterns.parse import (
    AWK,
    EXPR,
    GREP_BASIC,
    GREP_EXTENDED,
    GREP_SELECTING,
    POSIX_BASIC,
    POSIX_EXTENDED,
    SED_BASIC,
    SED_EXTENDED,
    Dialect,
)

__all__ = [
    "AWK",
    "EXPR",
    "FIXED",
    "GREP_BASIC",
    "GREP_EXTENDED",
    "GREP_SELECTING",
    "LONG",
    "PERL",
    "POSIX_BASIC",
    "POSIX_EXTENDED",
    "RUST",
    "SED_BASIC",
    "SED_EXTENDED",
    "Dialect",
    "Lines",
    "MatchTimeout",
    "Matcher",
    "PatternError",
    "after_char",
    "compile",
    "compile_any",
]
