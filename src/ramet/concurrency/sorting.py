"""Sorting very many items by parts, none of which holds up others for long. A sample says where the parts begin."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from ramet.concurrency.offload import checkpoint

T = TypeVar("T")

RUN: Final = 4096
"""Items that are sorted at once."""
_SAMPLED: Final = 64


def in_order(items: list[T], key: Callable[[T], Any] | None = None, reverse: bool = False) -> list[T]:
    """What `sorted` gives, for who works aside."""
    steps = sorting(items, key, reverse)
    while True:
        checkpoint()
        try:
            next(steps)
        except StopIteration as end:
            found: list[T] = end.value
            return found


def sorting(
    items: list[T], key: Callable[[T], Any] | None = None, reverse: bool = False
) -> Generator[None, None, list[T]]:
    """The same step by step."""
    if len(items) <= RUN:
        return sorted(items, key=key, reverse=reverse)  # type: ignore[type-var, arg-type]
    keys: list[Any] = []
    for start in range(0, len(items), RUN):
        some = items[start : start + RUN]
        keys += some if key is None else map(key, some)
        yield
    sample = sorted(keys[:: max(_SAMPLED, len(keys) // RUN)])
    borders = sample[:: max(1, len(sample) * RUN // (2 * len(keys)))]
    parts: list[list[int]] = [[] for _ in range(len(borders) + 1)]
    for start in range(0, len(keys), RUN):
        for place, one in enumerate(keys[start : start + RUN], start):
            parts[bisect_left(borders, one)].append(place)
        yield
    found: list[T] = []
    for part in reversed(parts) if reverse else parts:
        part.sort(key=keys.__getitem__, reverse=reverse)
        found += [items[place] for place in part]
        part.clear()
        yield
    while keys:  # what there are very many of goes some at a time
        del keys[-RUN:]
        yield
    return found
