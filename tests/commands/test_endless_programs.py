"""Programs that would never end: they stop at the deadline or when their reader has gone, and say so."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Limits, RAMResource, Workspace

ENDLESS = [
    "echo a | sed ':a;ba'",
    "echo a | sed ':a;s/a/a/;ta'",
    "awk 'BEGIN { while (1) x++ }'",
    "awk 'BEGIN { for (;;) print }' > /dev/null",
    "awk 'function f() { while (1) x++ } BEGIN { f() }'",
    "echo 1 | awk '{ for (;;) x++ }'",
    "echo 1 | awk '{ for (i = 1; i <= NF; i++) i = 0 }'",
    "echo 1 | awk '{ for (;;) print }' > /dev/null",
    "echo 1 | awk 'function f(n) { return n ? f(n - 1) + f(n - 1) : 1 } { f(50) }'",
    "yq -n '[range(1e18)] | length'",
    "echo 'while (1) { x = 1 }' | bc",
    "jq -n 'last(repeat(1))'",
    "jq -n 'def f: f; f'",
    "jq -n '[range(1e18)] | length'",
    "jq -n 'reduce repeat(1) as $x (0; . + 1)'",
]


@pytest.mark.parametrize("script", ENDLESS)
def test_ends_at_the_deadline(script: str) -> None:
    async def act() -> int:
        workspace = Workspace({"/data": RAMResource()}, limits=Limits(wall_time=0.2))
        result = await workspace.execute(script)
        return result.exit_code

    assert asyncio.run(asyncio.wait_for(act(), 120)) == 124


@pytest.mark.parametrize("script", ENDLESS)
def test_leaves_the_loop_to_others_and_can_be_cancelled(script: str) -> None:
    async def act() -> None:
        workspace = Workspace({"/data": RAMResource()})
        running = asyncio.create_task(workspace.execute(script))
        done, _ = await asyncio.wait([running], timeout=0.05)
        if not done:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert (await workspace.execute("echo after")).text == "after\n"

    asyncio.run(asyncio.wait_for(act(), 120))


PRODUCERS = ["awk 'BEGIN { while (1) print \"y\" }'", "jq -n 'repeat(1)'", "yes | sed p", "yes | grep y", "yes | awk 1"]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_ends_without_a_reader(producer: str) -> None:
    async def act() -> tuple[bytes, int]:
        workspace = Workspace({"/data": RAMResource()}, limits=Limits(wall_time=100))
        result = await workspace.execute(f"{producer} | head -n 2 | wc -l")
        return result.stdout, result.exit_code

    assert asyncio.run(act()) == (b"2\n", 0)


def test_a_hopeless_back_reference_is_an_error() -> None:
    async def act() -> tuple[int, bytes]:
        workspace = Workspace({"/data": RAMResource()}, limits=Limits(regex_seconds=0.2))
        text = "abcdefghij" * 8 + "YZ"
        result = await workspace.execute(f"echo {text} | grep '\\(.*\\)\\(.*\\)\\(.*\\)\\(.*\\)\\1\\2\\3\\4Z'")
        return result.exit_code, result.stderr

    status, message = asyncio.run(act())
    assert status == 2
    assert b"took longer than" in message


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("jq -n 'def f: if . > 300000 then . else . + 1 | f end; 0 | f'", b"300001\n"),
        ("awk 'function f(n) { return n ? 1 + f(n - 1) : 0 } BEGIN { print f(3000) }'", b"3000\n"),
    ],
)
def test_recursion_goes_deep(script: str, out: bytes) -> None:
    async def act() -> bytes:
        workspace = Workspace({"/data": RAMResource()})
        return (await workspace.execute(script)).stdout

    assert asyncio.run(act()) == out
