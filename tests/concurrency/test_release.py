"""What is very large goes over some turns of the event loop, and only once nobody has it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ramet.concurrency import release as freeing
from ramet.concurrency.release import held_by, let_go, look


class Member:
    """Counts those that are alive."""

    alive = 0

    def __init__(self) -> None:
        Member.alive += 1

    def __del__(self) -> None:
        Member.alive -= 1


def row() -> list[Member]:
    return [Member() for _ in range(100_000)]


def closure() -> Callable[[], int]:
    members = row()
    return lambda: len(members)


MAKERS: dict[str, Callable[[], Any]] = {
    "a list": row,
    "a tuple within tuples": lambda: ((tuple(row()),),),
    "a dictionary": lambda: dict(enumerate(row())),
    "a closure": closure,
    "a partial call of one": lambda: partial(closure()),
}


async def settled() -> int:
    """Turns until nothing more goes."""
    turns = 0
    while freeing._rows.leaving or not turns:
        await asyncio.sleep(0)
        turns += 1
    return turns


@pytest.mark.parametrize("name", MAKERS)
def test_it_goes_a_little_at_a_time(name: str) -> None:
    async def main() -> None:
        made = MAKERS[name]()
        let_go(made)
        del made
        assert Member.alive == 100_000
        assert await settled() > 3
        assert Member.alive == 0

    asyncio.run(main())


def test_what_somebody_has_stays() -> None:
    async def main() -> None:
        made = row()
        let_go(made)
        await settled()
        assert Member.alive == len(made) == 100_000
        del made
        assert Member.alive == 100_000
        look()
        assert await settled() > 3
        assert Member.alive == 0

    asyncio.run(main())


def test_without_a_loop_nobody_is_held_up() -> None:
    made = row()
    let_go(made)
    del made
    assert Member.alive == 0


def test_small_things_and_cycles_are_nothing_to_wait_for() -> None:
    async def main() -> None:
        ring: list[Any] = []
        ring.append(ring)
        let_go(ring, 1, "a", (), [None] * 10)
        assert not freeing._rows.waiting

    asyncio.run(main())


def test_what_the_calls_had_that_an_error_came_through_is_found() -> None:
    def inner(text: str) -> None:
        raise ValueError

    def outer(row: list[int]) -> None:
        inner("x" * 10)

    given = [1, 2, 3]
    with pytest.raises(ValueError) as raised:
        outer(given)
    held = held_by(raised.value)
    assert any(one is given for one in held)
    assert "x" * 10 in held
    assert held_by(ValueError()) == []
