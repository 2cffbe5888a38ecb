"""How long a text may become: asked before it is made, wherever values multiply.

The same value may stand in an array a thousand times without taking memory; joined it would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramet.core.limits import NOTABLE


def within(host: Any, size: int) -> None:
    """An error if a text of so many characters is too long."""
    if size > NOTABLE and size > host.budget.limits.string_bytes:
        raise host.budget.exceeded("string_bytes")


def joined(host: Any, separator: str, values: Sequence[str]) -> str:
    """`separator.join`, within the limits."""
    within(host, sum(map(len, values)) + len(separator) * len(values))
    return separator.join(values)
