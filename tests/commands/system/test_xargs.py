"""`xargs` ends when nothing reads its output any more."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace


@pytest.mark.parametrize("options", ("-n 1", "-n 1 -P 2"))
def test_a_reader_that_ends_ends_it(options: str) -> None:
    async def act() -> None:
        async with Workspace() as ws:
            result = await ws.execute(f"yes | xargs {options} echo | head -1; echo ${{PIPESTATUS[1]}}", timeout=100)
            assert result.text == "y\n125\n" and "xargs: echo: terminated by signal 13\n" in result.error_text

    asyncio.run(act())


def test_a_command_that_exits_with_141_did_not_die_of_a_signal() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            assert (await ws.execute("echo a b | xargs -n 1 sh -c 'exit 141'")).exit_code == 123

    asyncio.run(act())
