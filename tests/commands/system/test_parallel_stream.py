"""parallel and xargs read no further ahead than their jobs."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace


@pytest.mark.parametrize("command", ["parallel -j 2 echo", "parallel echo {#} {}", "xargs -n 1 echo"])
def test_an_endless_input_is_worked_through_as_it_comes(command: str) -> None:
    async def act() -> str:
        async with Workspace() as ws:
            return (await ws.execute(f"yes a | {command} | head -n 3 | wc -l", timeout=60)).text

    assert asyncio.run(act()) == "3\n"


def test_what_needs_all_jobs_still_knows_them() -> None:
    async def act() -> str:
        async with Workspace() as ws:
            return (await ws.execute("seq 3 | parallel -k echo {##} {}")).text

    assert asyncio.run(act()) == "3 1\n3 2\n3 3\n"
