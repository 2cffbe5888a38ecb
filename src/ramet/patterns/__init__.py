"""Regular expressions over bytes in the dialects of the GNU tools; matching can never hang.

- `compile(pattern, dialect)` returns a `Matcher`; `PatternError` has the GNU library's message, `MatchTimeout` means
  that a limit was reached.
- Submodules are imported on first use. Commands are imported in threads: if one thread imported the package and another
  a submodule, Python could hand out a module that is not ready.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramet.patterns.emit import Lines as Lines
    from ramet.patterns.errors import MatchTimeout as MatchTimeout
    from ramet.patterns.errors import PatternError as PatternError
    from ramet.patterns.matcher import FIXED as FIXED
    from ramet.patterns.matcher import PERL as PERL
    from ramet.patterns.matcher import RUST as RUST
    from ramet.patterns.matcher import Matcher as Matcher
    from ramet.patterns.matcher import after_char as after_char
    from ramet.patterns.matcher import compile as compile
    from ramet.patterns.matcher import compile_any as compile_any
    from ramet.patterns.parse import AWK as AWK
    from ramet.patterns.parse import EXPR as EXPR
    from ramet.patterns.parse import GREP_BASIC as GREP_BASIC
    from ramet.patterns.parse import GREP_EXTENDED as GREP_EXTENDED
    from ramet.patterns.parse import GREP_SELECTING as GREP_SELECTING
    from ramet.patterns.parse import POSIX_BASIC as POSIX_BASIC
    from ramet.patterns.parse import POSIX_EXTENDED as POSIX_EXTENDED
    from ramet.patterns.parse import SED_BASIC as SED_BASIC
    from ramet.patterns.parse import SED_EXTENDED as SED_EXTENDED
    from ramet.patterns.parse import Dialect as Dialect

_PLACES = {
    name: part
    for part, names in {
        "emit": "Lines",
        "errors": "MatchTimeout PatternError",
        "matcher": "FIXED PERL RUST Matcher after_char compile compile_any",
        "parse": "AWK EXPR GREP_BASIC GREP_EXTENDED GREP_SELECTING POSIX_BASIC POSIX_EXTENDED SED_BASIC SED_EXTENDED"
        " Dialect",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    part = _PLACES.get(name)
    if part is None:
        raise AttributeError(f"module 'ramet.patterns' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"ramet.patterns.{part}"), name)
    return value
