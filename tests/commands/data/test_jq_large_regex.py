"""Patterns of very many alternatives in jq: they match what one pattern of all of them does, and can be abandoned."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ramet.commands.data.jq import regex as matching
from ramet.commands.data.jq.large_regex import Parted, alternatives
from ramet.concurrency.offload import Abandoned, _worker
from ramet.patterns import multi as many

ATOMS = ["a", "b", "c", ".", "a*", "b?", "\\b", "^", "$", "\\.", "\\|"]


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    matching._compiled.cache_clear()
    yield
    matching._compiled.cache_clear()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a|b\\|c||d.*", ["a", "b\\|c", "", "d.*"]),
        ("a|", ["a", ""]),
        ("a|(b|c)", ["a|(b|c)"]),
        ("a|[|]", ["a|[|]"]),
        ("a|\\Qb|c\\E", ["a|\\Qb|c\\E"]),
        ("a|b\\", ["a|b\\"]),
    ],
)
def test_only_what_is_surely_an_alternative_is_one(source: str, found: list[str]) -> None:
    assert alternatives(source) == found


@pytest.mark.parametrize("seed", range(40))
def test_parts_match_as_the_whole_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(many, "_GROUP", 6)
    for _ in range(25):
        source = "|".join("".join(rng.choices(ATOMS, k=rng.randint(0, 4))) for _ in range(rng.randint(2, 9)))
        flags = rng.choice(["", "g", "gi", "gn", "gl", "l"])
        text = "".join(rng.choices("abcABC.|\n é", k=rng.randint(0, 12)))
        assert spans(text, source, flags, 0, monkeypatch) == spans(text, source, flags, 1 << 30, monkeypatch)


def spans(text: str, source: str, flags: str, long: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(matching, "LONG", long)
    matching._compiled.cache_clear()
    return [match.span() for match in matching._matches(text, source, flags, False, 5)]


def test_a_long_pattern_can_be_abandoned() -> None:
    source = "|".join(f"word{number}" for number in range(3000))
    assert isinstance(matching._compiled(source, ""), Parted)
    matching._compiled.cache_clear()
    _worker.stop = threading.Event()
    _worker.stop.set()
    try:
        with pytest.raises(Abandoned):
            matching._compiled(source, "")
    finally:
        _worker.stop = None
