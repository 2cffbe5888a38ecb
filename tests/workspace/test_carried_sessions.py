"""A session goes on alike wherever its workspace is carried between two commands: by snapshot, copy, branch, store."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from tests.shell.interp.state.test_random_sessions import SHOWN, statements

from ramet import Store, Workspace
from ramet.workspace.result import IOResult

Carrier = Callable[[AsyncExitStack], AsyncIterator[Workspace]]


async def stay(stack: AsyncExitStack) -> AsyncIterator[Workspace]:
    ws = await stack.enter_async_context(Workspace())
    while True:
        yield ws


async def by_snapshot(stack: AsyncExitStack) -> AsyncIterator[Workspace]:
    ws = Workspace()
    while True:
        yield ws
        archive = io.BytesIO()
        ws.snapshot(archive)
        await ws.close()
        archive.seek(0)
        ws = Workspace.load(archive)


async def by_copy(stack: AsyncExitStack) -> AsyncIterator[Workspace]:
    ws = await stack.enter_async_context(Workspace())
    while True:
        yield ws
        ws = await stack.enter_async_context(ws.copy())


async def by_branch(stack: AsyncExitStack) -> AsyncIterator[Workspace]:
    ws = await stack.enter_async_context(Workspace())
    while True:
        yield ws
        ws = await stack.enter_async_context(ws.branch())


async def by_store(stack: AsyncExitStack) -> AsyncIterator[Workspace]:
    store = Store("memory:")
    store.create("w")
    while True:
        async with store.open("w") as ws:
            yield ws


async def by_fork(stack: AsyncExitStack) -> AsyncIterator[Workspace]:
    store, number = Store("memory:"), 0
    store.create("w0")
    while True:
        async with store.open(f"w{number}") as ws:
            yield ws
        store[f"w{number}"].fork("head", f"w{number + 1}")
        number += 1


async def told(carrier: Carrier, steps: list[str]) -> list[tuple[str, str, int]]:
    async with AsyncExitStack() as stack:
        places = carrier(stack)
        stack.push_async_callback(places.aclose)  # type: ignore[attr-defined]
        return [_plain(await (await anext(places)).execute(step)) for step in steps]


def _plain(result: IOResult) -> tuple[str, str, int]:
    return result.text, result.error_text, result.exit_code


@pytest.mark.parametrize("carrier", [by_snapshot, by_copy, by_branch, by_store, by_fork])
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_session_goes_on_wherever_it_is_carried(carrier: Carrier, seed: int) -> None:
    first, rest = SHOWN.split("\n", 1)
    steps = ["mkdir -p /tmp; cd /tmp", *statements(seed), first, rest]
    assert asyncio.run(told(carrier, steps)) == asyncio.run(told(stay, steps))


@pytest.mark.parametrize("carrier", [by_snapshot, by_copy, by_branch, by_store, by_fork])
@pytest.mark.parametrize(
    "steps",
    [
        ["exec 3<<< $'a\\nb'; read x <&3", "read y <&3; echo $x$y", "read z <&3; echo $?"],
        ["exec 3> f; echo a >&3", "echo b >&3", "cat f"],
        ["(exit 3) & wait", "echo $!; (exit 4) & wait -n", "echo $? $!; (exit 5) & wait $!; echo $? $!"],
        ["(exit 5) & p=$!; (exit 6) & wait $!", "wait $p; echo $?"],
        ["false & p=$!; (exit 6) & wait $!", "jobs; jobs", "wait $p; echo $?"],
        ["false & (exit 6) & wait %2", "wait -n; echo $?; jobs; kill %1; true & jobs -l | grep -c true; wait"],
        ["history -s x y", "echo a", "history"],
        ["echo {a,b}; history -s kept", "history", "echo c", "history"],
    ],
)
def test_what_is_left_to_read_and_what_has_ended_goes_with_a_session(carrier: Carrier, steps: list[str]) -> None:
    assert asyncio.run(told(carrier, steps)) == asyncio.run(told(stay, steps))
