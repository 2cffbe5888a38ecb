"""Sorting by parts gives what `sorted` gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ramet.concurrency import sorting
from ramet.concurrency.sorting import in_order


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("key", [None, lambda pair: pair[0], lambda pair: -pair[1], lambda pair: 0])
@pytest.mark.parametrize("values", [5, 1000, 1_000_000])
def test_many_items(
    monkeypatch: pytest.MonkeyPatch, values: int, key: Callable[[tuple[int, int]], Any] | None, reverse: bool
) -> None:
    monkeypatch.setattr(sorting, "RUN", 100)
    rng = random.Random(values)
    for count in (0, 1, 99, 100, 101, 5000):
        items = [(rng.randrange(values), place) for place in range(count)]
        assert in_order(items, key, reverse) == sorted(items, key=key, reverse=reverse)  # equal ones stay as they were


def test_few_are_sorted_at_once() -> None:
    assert len(list(sorting.sorting(list(range(300_000, 0, -1))))) > 100
