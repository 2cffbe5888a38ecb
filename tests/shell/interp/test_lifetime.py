"""A shell that is over is gone at once: nothing of it waits for the collector."""

from __future__ import annotations

import asyncio
import gc

import pytest

from ramet import Workspace
from ramet.shell.interp.session import Session


def _sessions() -> int:
    return sum(type(one) is Session for one in gc.get_objects())


@pytest.mark.parametrize(
    "script",
    [
        "(a[1]=2)",
        "(exit 3)",
        "x=$(echo $(echo a))",
        "echo a | cat",
        "(ls) | cat | (cat; :)",
        "f() { (:); }; f",
        "bash -c :",
        "env bash -c ':; (:)'",
        "cat <(:)",
        "(echo a) > /tmp/f",
    ],
)
def test_a_shell_that_is_over_is_gone(script: str) -> None:
    async def main() -> int:
        ws = Workspace()
        await ws.execute(f"a=(1 2); {script}")
        gc.collect()
        gc.disable()
        try:
            before = _sessions()
            for _ in range(5):
                await ws.execute(script)
            return _sessions() - before
        finally:
            gc.enable()
            await ws.close()

    assert asyncio.run(main()) == 0
