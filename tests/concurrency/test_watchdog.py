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
    time.sleep(1.5)  # noqa: ASYNC251 - what a command must not do
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
    dog = Watchdog(patience=0.3)

    async def act() -> None:
        with dog.watching():
            await asyncio.sleep(0.7)

    asyncio.run(act())
    assert not dog.counts
