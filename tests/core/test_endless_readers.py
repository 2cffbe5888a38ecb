"""Readers of sources that never suspend: others get their turns, and what is held is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ramet.core.errors import LimitExceeded
from ramet.core.limits import Budget, Limits, TimeUp
from ramet.core.streams import IteratorReader, Reader
from ramet.vfs.open_files import DeviceStream


async def empty_blocks() -> AsyncIterator[bytes]:
    while True:
        yield b""


async def blocks() -> AsyncIterator[bytes]:
    while True:
        yield b"a" * 1000


def sources() -> list[Reader]:
    return [DeviceStream("zero"), IteratorReader(blocks()), IteratorReader(empty_blocks())]


@pytest.mark.parametrize("number", range(3))
def test_a_reader_without_a_budget_yields_the_loop(number: int) -> None:
    async def act() -> None:
        reader, turns = sources()[number], 0

        async def drain() -> None:
            while await reader.read():
                pass

        running = asyncio.create_task(drain())
        while turns < 5:
            turns += 1
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(act())


@pytest.mark.parametrize("number", range(3))
def test_a_reader_checks_the_deadline(number: int) -> None:
    async def act() -> None:
        reader = sources()[number]
        reader.budget = Budget(Limits(wall_time=0.01))
        with pytest.raises(TimeUp):
            while True:
                await reader.read()

    asyncio.run(act())


@pytest.mark.parametrize("number", range(2))
def test_what_is_held_as_a_whole_is_bounded(number: int) -> None:
    async def act() -> None:
        for read in ("read_all", "read_exactly"):
            reader = sources()[number]
            reader.budget = Budget(Limits(whole_bytes=1 << 20))
            with pytest.raises(LimitExceeded, match="whole_bytes"):
                await (reader.read_all() if read == "read_all" else reader.read_exactly(1 << 40))

    asyncio.run(act())
