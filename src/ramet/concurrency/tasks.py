"""Tasks whose outcome is not needed: cancel them, wait for them, take their exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any


async def give_up(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await wait_out(tasks)


async def wait_out(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Wait for the end of tasks; a cancellation of the caller does not reach them.

    Their exceptions are taken, so that asyncio does not log them as never retrieved.
    """
    for task in tasks:
        task.add_done_callback(_take)
    if tasks:
        await asyncio.wait(tasks)


def _take(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
