"""The two ways in which diff finds the middle of a box: from step to step, and from the pairs of equal lines."""

from __future__ import annotations

import random

import pytest

from ramet.commands.diff import myers as diff_search
from ramet.commands.diff.myers import MyersSearch


def _found(xs: list[int], ys: list[int], expensive: int, minimal: bool) -> tuple[list[int], list[int]]:
    search = MyersSearch(xs, ys, None)
    search.expensive = expensive
    search.run(minimal)
    return sorted(search.deleted), sorted(search.inserted)


def _pair(chance: random.Random) -> tuple[list[int], list[int]]:
    kinds = chance.choice((2, 5, 20, 100))
    xs = [chance.randrange(kinds) for _ in range(chance.randrange(1, 80))]
    match chance.randrange(3):
        case 0:
            ys = [chance.randrange(kinds) for _ in range(chance.randrange(1, 80))]
        case 1:
            ys = sorted(xs)
        case _:
            ys = [x for x in xs if chance.random() < 0.8] + [chance.randrange(kinds)]
    return xs, ys


@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize("expensive", [2, 5, 20, 4096])
def test_pairs_tell_what_steps_find(monkeypatch: pytest.MonkeyPatch, expensive: int, minimal: bool) -> None:
    chance = random.Random(expensive)
    for _ in range(25):
        xs, ys = _pair(chance)
        monkeypatch.setattr(diff_search, "_LEAST", 1 << 30)
        by_steps = _found(xs, ys, expensive, minimal)
        monkeypatch.setattr(diff_search, "_LEAST", 1)
        monkeypatch.setattr(diff_search, "isqrt", lambda _: 1)
        assert _found(xs, ys, expensive, minimal) == by_steps
        monkeypatch.undo()


def test_what_takes_too_long_gets_a_longer_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    xs, ys = [chance.randrange(3) for _ in range(900)], [chance.randrange(3) for _ in range(900)]
    best = _found(xs, ys, 4096, False)
    monkeypatch.setattr(diff_search, "_PATIENCE", 0)
    monkeypatch.setattr(diff_search, "_CONTENT", 20)
    deleted, inserted = _found(xs, ys, 4096, False)
    assert len(deleted) > len(best[0])
    kept = [x for at, x in enumerate(xs) if at not in set(deleted)]
    assert kept == [y for at, y in enumerate(ys) if at not in set(inserted)]
