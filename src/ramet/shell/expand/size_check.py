"""How long a text may become: asked before it is made, wherever values multiply.

The same value may stand in an array a thousand times without taking memory; joined it would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ramet.concurrency.offload import checkpoint
from ramet.concurrency.sizes import SMALL


def within(host: Any, size: int) -> None:
    """An error if a text of so many characters is too long."""
    if size > SMALL and size > host.budget.limits.string_bytes:
        raise host.budget.exceeded("string_bytes")


def joined(host: Any, separator: str, values: Sequence[str]) -> str:
    """`separator.join`, within the limits."""
    size = sum(map(len, values)) + len(separator) * len(values)
    within(host, size)
    if size < _LONG or len(values) == 1:
        return separator.join(values)
    return separator.join(values)


_LONG: Final = 1 << 23
"""Characters that are put together at once."""


def total(values: Sequence[str | None]) -> int:
    """The characters of very many values."""
    size = 0
    for start in range(0, len(values), SMALL):
        checkpoint()
        size += sum(map(len, filter(None, values[start : start + SMALL])))
    return size
