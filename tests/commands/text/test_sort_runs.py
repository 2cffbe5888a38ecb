"""Runs that are merged give what one sort of everything gives, whatever the order and however small the memory."""

from __future__ import annotations

import asyncio
import random
from itertools import product

import pytest

from ramet.commands.text.sort import merge as merging
from ramet.commands.text.sort import runs, tally
from ramet.commands.text.sort.options import SortOptions
from ramet.commands.text.sort.order import Order, make_order
from ramet.commands.text.sort.runs import Runs
from ramet.commands.text.sort.tally import Tally
from ramet.core.limits import Budget

LINES = [f"{n % 7} {n * 7919 % 101} word{n % 13}" for n in range(3000)]
random.Random(5).shuffle(LINES)
ORDERS = {
    "lines": SortOptions(),
    "reversed": SortOptions(reverse=True),
    "number": SortOptions(numeric=True),
    "number, stable": SortOptions(numeric=True, stable=True),
    "number, stable, reversed": SortOptions(numeric=True, stable=True, reverse=True),
    "field": SortOptions(keys=("2n",)),
    "field, reversed": SortOptions(keys=("2n",), reverse=True),
    "field, only the key reversed": SortOptions(keys=("1,1nr",)),
    "two fields": SortOptions(keys=("3,3", "1,1n")),
    "two fields, one reversed": SortOptions(keys=("3,3r", "1,1n")),
    "version": SortOptions(keys=("3,3V",), stable=True),
}


def plainly(order: Order, lines: list[str]) -> list[str]:
    return sorted(lines, key=order.merge_key())


def pack(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything so small that a short input takes every way."""
    for module, name, value in [
        (merging, "_SLICE", 64),
        (runs, "_LINES", 90),
        (runs, "_CHUNK", 200),
        (runs, "_FAN_IN", 7),
        (tally, "_BATCH", 50),
    ]:
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("name", "memory"), list(product(ORDERS, [0, 9000, 1 << 20])))
def test_runs_merge_to_the_order(name: str, memory: int) -> None:
    order = make_order(ORDERS[name], None, b"")

    async def act() -> list[str]:
        budget, made = Budget(), Runs(order, b"\n", memory)
        for at in range(0, len(LINES), 250):
            await made.add(pack(LINES[at : at + 250]), budget)
        out = [line async for batch in made.merged(budget) for line in batch]
        made.close()
        return out

    assert asyncio.run(act()) == plainly(order, LINES)


@pytest.mark.usefixtures("tiny")
def test_a_line_longer_than_a_chunk_stays_whole() -> None:
    order = make_order(SortOptions(), None, b"")
    lines = [letter * 900 for letter in "zyxwvutsrq"]

    async def act() -> list[str]:
        budget, made = Budget(), Runs(order, b"\n", 2000)
        for line in lines:
            await made.add(pack([line]), budget)
        out = [line async for batch in made.merged(budget) for line in batch]
        made.close()
        return out

    assert asyncio.run(act()) == sorted(lines)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", [name for name in ORDERS if "stable" not in name and name != "version"])
def test_a_tally_of_repeated_lines_gives_them_all_back_in_order(name: str) -> None:
    order = make_order(ORDERS[name], None, b"")
    repeated = LINES[:300] * 5

    async def act() -> bytes:
        counted = Tally(order, b"\n", 1 << 20)
        assert order.total
        for at in range(0, len(repeated), 200):
            assert await counted.add(pack(repeated[at : at + 200]), Budget())
        return b"".join([block async for block in counted.sorted(Budget())])

    assert asyncio.run(act()) == pack(plainly(order, repeated))


def test_a_tally_counts_and_gives_back_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_PART", 3)
    monkeypatch.setattr(tally, "_BLOCK", 4)
    order = make_order(SortOptions(), None, b"")
    lines = ["b", "", "", "", "aaaaaaaaa", "b", "b", "b", "b", "b", "b", "", "c", "aaaaaaaaa", ""]

    async def act() -> list[bytes]:
        counted = Tally(order, b"\n", 1 << 20)
        await counted.add(pack(lines), Budget())
        return [block async for block in counted.sorted(Budget())]

    blocks = asyncio.run(act())
    assert b"".join(blocks) == pack(sorted(lines))
    assert max(map(len, blocks)) < 30


@pytest.mark.usefixtures("tiny")
def test_a_tally_gives_up_where_lines_are_new_and_returns_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_TRIAL", 500)
    counted = Tally(make_order(SortOptions(), None, b""), b"\n", 1 << 20)
    lines = [str(n) for n in range(600)]
    assert asyncio.run(counted.add(pack(lines[:300] + lines[:1]), Budget()))
    assert not asyncio.run(counted.add(pack(lines[300:]), Budget()))
    assert sorted(b"".join(counted.pieces(unique=False)).split()) == sorted(pack([*lines, "0"]).split())
    assert b"".join(counted.pieces(unique=True)) == pack(lines)


def test_a_tally_gives_up_when_it_grows_too_large() -> None:
    counted = Tally(make_order(SortOptions(), None, b""), b"\n", 1000)
    assert not asyncio.run(counted.add(pack([str(n) for n in range(100)]), Budget()))
