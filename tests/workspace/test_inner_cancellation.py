"""Cancellations inside of a backend, by a timeout or a cancel scope of its client, end nothing of the shell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import pytest

from ramet import Workspace
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.layers.readonly import Immutable


async def by_timeout() -> None:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        return


async def by_scope() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
        await anyio.sleep_forever()


class Impatient(Immutable):
    """Two files; the first listing is cancelled inside, as the first connection of an HTTP client is."""

    caps = Cap(0)
    kind = "impatient"

    def __init__(self, wait: Callable[[], Awaitable[None]]) -> None:
        self.wait: Callable[[], Awaitable[None]] | None = wait

    async def stat(self, path: Path) -> Stat:
        return Stat(Kind.DIR) if path == ROOT else Stat(Kind.FILE, 0)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        wait, self.wait = self.wait, None
        if wait is not None:
            await wait()
        for name in ("dev", "ops"):
            yield name, Stat(Kind.FILE, 0)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        yield b""

    async def close(self) -> None:
        return None


@pytest.mark.parametrize("wait", [by_timeout, by_scope])
def test_the_script_goes_on_with_pipelines(wait: Callable[[], Awaitable[None]]) -> None:
    async def act() -> None:
        ws = Workspace({"/m": Impatient(wait)})
        result = await ws.execute("ls /m > /dev/null; ls /m | grep -c ops; echo done | cat", timeout=20)
        assert (result.stdout, result.exit_code) == (b"1\ndone\n", 0)
        await ws.close()

    asyncio.run(act())
