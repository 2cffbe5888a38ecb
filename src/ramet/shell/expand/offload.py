"""What is so long that work on it is done aside (see `concurrency.offload`), and that work in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from ramet.concurrency import offload as abandoned
from ramet.concurrency.offload import checkpoint, here, watched

__all__ = ["LARGE", "LONG_SOURCE", "WINDOW", "apart", "aside", "checkpoint", "gathered", "watched", "windows"]

T = TypeVar("T")

LONG_SOURCE: Final = 4096
"""Characters of a command from which on it is parsed and compiled aside."""
LARGE: Final = 1 << 18
"""Characters from which on work on a text is done aside."""


def gathered(items: Iterable[T]) -> list[T]:
    """A list of very many items. Where the work on them is abandoned, those that there are go some at a time."""
    found: list[T] = []
    try:
        for item in watched(items):
            found.append(item)  # noqa: PERF402 - it is needed where the items end too soon
    except BaseException:
        while found:
            del found[-_TOGETHER:]
        raise
    return found


_TOGETHER: Final = 64


def apart() -> bool:
    """Is this a thread of `aside`, where nobody is held up?"""
    return here.stop is not None


_EXTENDED: Final = 2048


def long_match(pattern: str, size: int) -> bool:
    """Whether so many characters take a while to match: groups look at each of them again and again."""
    return len(pattern) > LONG_SOURCE or size > (_EXTENDED if "(" in pattern else LARGE)


WINDOW: Final = 1 << 16
"""Characters, or values, that are worked on between two chances for others to run."""


def windows(text: str) -> Iterator[str]:
    """A long text in parts."""
    for start in range(0, len(text), WINDOW):
        checkpoint()
        yield text[start : start + WINDOW]


async def aside(host: Any, work: Callable[[], T]) -> T:
    """What `work` gives, done while others run."""
    return await abandoned.aside(host.budget, work)
