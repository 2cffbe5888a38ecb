"""The watchdog names the command that holds the event loop."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from ramet import Workspace
from ramet.commands.framework.table import COMMANDS
from ramet.concurrency.watchdog import WATCHDOG, Watchdog
from ramet.core.proc import Proc


async def hold(proc: Proc) -> int:
    """Do what a command must not do, until it is noticed."""
    end = time.monotonic() + 60
    while not any(watched.found for watched in WATCHDOG._loops.values()) and time.monotonic() < end:
        time.sleep(0.2)  # noqa: ASYNC251
    time.sleep(0.2)  # noqa: ASYNC251
    return 0


def test_a_hold_of_over_a_second_is_reported_with_the_command(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(COMMANDS, "tsort", hold)

    async def act() -> None:
        async with Workspace() as ws:
            assert (await ws.execute("tsort; echo done")).text == "done\n"
            await asyncio.sleep(0)

    before = WATCHDOG.counts["tsort"]
    with caplog.at_level(logging.WARNING, "ramet.watchdog"):
        asyncio.run(act())
    assert WATCHDOG.counts["tsort"] == before + 1
    assert any("tsort has held the event loop for" in record.getMessage() for record in caplog.records)
    found = WATCHDOG.recent[-1]
    assert found.command == "tsort" and found.seconds > 1 and "(hold)" in found.where


def test_what_waits_holds_nothing() -> None:
    async def held() -> bool:
        dog = Watchdog(patience=0.3)
        with dog.watching():
            await asyncio.sleep(0.7)
        return bool(dog.counts)

    assert not all(asyncio.run(held()) for _ in range(5)), "a machine that stands still holds a loop now and then"
