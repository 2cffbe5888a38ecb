"""cut takes the same of a very long line, which it goes through by parts, as of any other."""

from __future__ import annotations

import random

import pytest

from ramet.commands.text import cut


def test_the_parts_of_long_lines_are_those_of_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    for _ in range(5000):
        line = bytes(rng.choices(b"a,b", k=rng.randint(1, 12)))
        low = rng.randint(1, 5)
        high = rng.choice([low, low + rng.randint(0, 4), cut.END])
        ranges = [(low, high), *([(high + 2, rng.choice([high + 3, cut.END]))] if high != cut.END else [])]
        changes = [
            cut._cut_fields([(low, high)], b",", rng.choice([b",", b";"]), rng.random() < 0.3, b"\n"),
            cut._cut_bytes(ranges, None),
        ]
        expected = [change([line]) for change in changes]
        with monkeypatch.context() as patch:
            patch.setattr(cut, "LONG", 0)
            assert [change([line]) for change in changes] == expected, (line, ranges)
