"""Tasks that are given up leave no exception that was never retrieved."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from ramet import Workspace
from ramet.concurrency.tasks import give_up, wait_out
from ramet.layers.cache import _close
from ramet.store.verbs.upload import _in_thread


def complaints(act: Callable[[], Awaitable[None]]) -> list[str]:
    """Run, and return what asyncio reports of tasks that were dropped."""
    found: list[str] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(str(context)))
        await act()
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)

    asyncio.run(run())
    return found


async def fails() -> None:
    raise OSError("late")


async def fails_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("late")


async def given_up() -> None:
    done = asyncio.ensure_future(fails())
    await asyncio.wait({done})
    running = asyncio.ensure_future(fails_when_cancelled())
    await asyncio.sleep(0)
    await give_up((done, running))
    assert done.done() and running.done()


async def waited_out_by_a_cancelled_caller() -> None:
    go = asyncio.Event()

    async def work() -> None:
        await go.wait()
        raise OSError("late")

    task = asyncio.ensure_future(work())
    caller = asyncio.ensure_future(wait_out((task,)))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait({caller})
    assert caller.cancelled() and not task.done()
    go.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert task.done()


async def an_execution_that_fails_before_its_reader_leaves() -> None:
    cancel = asyncio.Event()
    async with Workspace() as ws:
        execution = ws.execute("echo one; sleep 60", cancel=cancel)
        pieces: Any = execution.__aiter__()
        await anext(pieces)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        cancel.set()
        await asyncio.wait(others)
        await pieces.aclose()
        del execution, pieces, others


async def a_thread_that_fails_after_its_caller_was_cancelled() -> None:
    go = threading.Event()

    def work() -> None:
        go.wait(60)
        raise OSError("late")

    caller = asyncio.ensure_future(_in_thread(work))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.wait({caller})
    assert caller.cancelled()


async def a_source_that_fails_when_it_is_closed() -> None:
    async def blocks() -> AsyncIterator[bytes]:
        try:
            yield b"one"
            yield b"two"
        finally:
            raise OSError("the connection is gone")

    source = blocks()
    await anext(source)
    task = asyncio.ensure_future(_close(source))
    await asyncio.wait({task})
    del task


async def a_timeout_whose_command_fails_when_it_is_cancelled() -> None:
    from ramet.commands.system.run.timeout import _ends_in_time

    async def command() -> int:
        await fails_when_cancelled()
        return 0

    waiting = asyncio.ensure_future(_ends_in_time(asyncio.ensure_future(command()), None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()


@pytest.mark.parametrize("act", [
    given_up, waited_out_by_a_cancelled_caller, an_execution_that_fails_before_its_reader_leaves,
    a_thread_that_fails_after_its_caller_was_cancelled, a_source_that_fails_when_it_is_closed,
    a_timeout_whose_command_fails_when_it_is_cancelled,
])  # fmt: skip
def test_no_exception_is_left(act: Callable[[], Awaitable[None]]) -> None:
    assert complaints(act) == []
