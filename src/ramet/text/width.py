"""Width: the bound on padding, precision and repetition, checked before memory is taken.

Every width that a user may choose passes `bounded`, or one of the functions that pad by it. `Limits.width_chars` sets
the bound.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Final

from ramet.core.errors import LimitExceeded
from ramet.core.limits import DEFAULT_LIMITS

WIDEST: ContextVar[int] = ContextVar("widest", default=DEFAULT_LIMITS.width_chars)
"""`Limits.width_chars` of the running execution."""
_NUMBERS: Final = re.compile(r"\d+").findall


def bounded(number: int) -> int:
    """Return a width or precision, positive or negative; raise if it is over the bound."""
    if -1024 <= number <= 1024:
        return number
    most = WIDEST.get()
    if abs(number) > most:
        raise LimitExceeded("width_chars", most)
    return number


def number_of(digits: str) -> int:
    """Return the width that a text of digits names; raise if it is over the bound, however many digits it has."""
    return bounded(int(digits.lstrip("0")[:20] or "0"))  # twenty digits are over any bound


def bounded_spec(spec: str) -> str:
    """Return the flags, width and precision of a conversion (`-08.3`), of which no number is over the bound."""
    for digits in _NUMBERS(spec):
        number_of(digits)
    return spec
