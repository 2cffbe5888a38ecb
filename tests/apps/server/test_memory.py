"""What a server holds does not grow with what was done: after a while, commits leave nothing behind in memory."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ramet import Store
from ramet.apps.server.app import create_app
from ramet.apps.server.settings import Bounds, ServerSettings
from ramet.store import repository
from ramet.store.gc import consolidate as joining
from ramet.store.gc import schedule as upkeep
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs import reader as packs
from ramet.workspace.record import packed_log as ring

COMMITS = 16
"""Between two measurements."""
WARM, MEASURED, WINDOW = 6, 12, 4
"""Measurements until what is bounded is full, those that count, and as many of these as the longest ebb takes."""
BLOCKS = 8
"""Small blocks of memory that a commit may leave behind: its share of what is packed now and then. Something that is
kept for each commit is dozens, without any bounds it is hundreds."""


async def ask(app: Any, method: str, path: str, body: bytes = b"") -> int:
    """One request through the whole application, as a server makes it."""
    target, _, query = path.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": target, "raw_path": target.encode(),
        "query_string": query.encode(), "headers": [(b"host", b"localhost")], "client": None,
    }  # fmt: skip
    sent: list[dict[str, Any]] = []
    given = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        message = next(given, None)
        if message is None:
            await asyncio.Event().wait()
        return message or {}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return int(sent[0]["status"])


async def commits(app: Any, first: int, number: int) -> None:
    for turn in range(first, first + number):
        if turn % 2:
            command = {"command": f"echo {turn % 8} > /f{turn % 8}; echo {turn % 4} | tr 0-9 a-j"}
            assert await ask(app, "POST", "/v1/workspaces/w/exec", json.dumps(command).encode()) == 200
        else:
            assert await ask(app, "PUT", f"/v1/workspaces/w/file?path=/c{turn % 10}", b"%d " % turn * 50) == 200


async def settled() -> None:
    """Until nothing is collected or joined any more beside what is asked for."""
    while busy := [task for task in asyncio.all_tasks() if "_collect" in getattr(task.get_coro(), "__name__", "")]:
        await asyncio.wait(busy)


def test_commits_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MANY_SMALL_PACKS", 32)  # what is bounded is full soon
    monkeypatch.setattr(upkeep, "CONSOLIDATION_PAUSE", 0.0)
    monkeypatch.setattr(repository, "LOW_MEMORY_REVISIONS", 32)
    monkeypatch.setattr(joining, "MIN_SMALL_PACKS", 16)
    monkeypatch.setattr(joining, "MIN_MERGED_PACKS", 4)
    monkeypatch.setattr(packs, "REMOVED_INDEX_BYTES", 4_000)
    monkeypatch.setattr(packs, "SMALL_PACK_OBJECTS", 64)
    monkeypatch.setattr(ring, "GROUP_ROWS", 32)

    async def act() -> list[int]:
        store = Store(DirectoryObjects(str(tmp_path / "store"), sync=False))
        app = create_app(store, ServerSettings(bounds=Bounds(events=100)))
        store.repository.packs._keep = 64_000
        found: list[int] = []
        async with app.running():
            assert await ask(app, "POST", "/v1/workspaces", b'{"name": "w"}') == 201
            for step in range(WARM + MEASURED):
                await commits(app, step * COMMITS, COMMITS)
                await settled()
                gc.collect()
                found.append(sys.getallocatedblocks())
            made = store.repository.head("w")
            assert made is not None and made.seq >= (WARM + MEASURED) * COMMITS - 5, "each of them made a revision"
        return found[WARM:]

    found = asyncio.run(act())
    # What is bounded ebbs and flows; what stays behind lifts the ebb as well.
    grown = min(found[-WINDOW:]) - min(found[:WINDOW])
    assert grown < (MEASURED - WINDOW) * COMMITS * BLOCKS, found
    assert len(list((tmp_path / "store" / "packs").iterdir())) < 200
