"""Names of awk's built-in functions, by result type and by dialect."""

from __future__ import annotations

from typing import Final

_NUMBERS: Final = frozenset([
    "length", "index", "split", "sub", "gsub", "match", "sin", "cos", "atan2", "exp", "log", "sqrt", "int", "rand",
    "srand", "system", "close", "fflush",
])  # fmt: skip
_TEXTS: Final = frozenset(["substr", "sprintf", "tolower", "toupper"])
_GNU_NUMBERS: Final = frozenset([
    "systime", "mktime", "strtonum", "and", "or", "xor", "compl", "lshift", "rshift", "asort", "asorti", "patsplit",
    "isarray", "mkbool", "intdiv",
])  # fmt: skip
_GNU_TEXTS: Final = frozenset(["gensub", "strftime", "typeof", "dcgettext", "dcngettext", "bindtextdomain"])

NUMBER_BUILTINS: Final = _NUMBERS | _GNU_NUMBERS
TEXT_BUILTINS: Final = _TEXTS | _GNU_TEXTS
BUILTINS: Final = NUMBER_BUILTINS | TEXT_BUILTINS
EXTENSIONS: Final = _GNU_NUMBERS | _GNU_TEXTS | {"switch", "case", "default", "BEGINFILE", "ENDFILE"}
"""Words that are ordinary names where there are no extensions."""
