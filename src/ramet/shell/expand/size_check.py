"""The limit on the length of a text, checked before values are joined or multiplied.

An array may hold the same value a thousand times in the memory of one; joined it would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramet.concurrency.sizes import SMALL


def within(host: Any, size: int) -> None:
    """Raise if a text of `size` characters exceeds the limit `string_bytes`."""
    if size > SMALL and size > host.budget.limits.string_bytes:
        raise host.budget.exceeded("string_bytes")


def joined(host: Any, separator: str, values: Sequence[str]) -> str:
    """`separator.join`, within the limit."""
    within(host, sum(map(len, values)) + len(separator) * len(values))
    return separator.join(values)


def total(values: Sequence[str | None]) -> int:
    """Return the number of characters of all values."""
    return sum(map(len, filter(None, values)))
