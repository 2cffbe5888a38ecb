"""The history of hundreds of revisions: pages of it, and what is drawn again when more arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

REVISIONS = 320
ROWS = "document.querySelectorAll('.graph .row').length"


def fill(place: Path) -> None:
    store = Store(str(place))
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            for number in range(1, REVISIONS + 1):
                await ws.execute(f"echo {number} > /f", agent_id=f"agent-{number % 2}")
                await ws.commit(f"Step {number}")

    asyncio.run(act())


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Browser, httpx2.Client]]:
    fill(tmp_path / "store")
    with serving(tmp_path / "store") as (url, token):
        page = Browser(tmp_path / "browser")
        try:
            page.send("Page.navigate", url=request_link(url, token, "ws/w"))
            page.sees(f"Step {REVISIONS}")
            headers = {"authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=f"{url}/v1/workspaces/w", headers=headers, timeout=200) as http:
                yield page, http
            assert page.complaints == []
        finally:
            page.close()


def test_older_and_newer_revisions_join_the_rows_that_are_there(opened: tuple[Browser, httpx2.Client]) -> None:
    page, http = opened
    assert page.run(ROWS) == 100 and "The newest 100 revisions" in page.sees("Show 100 more")
    page.run("window.kept = [...document.querySelectorAll('.row')].slice(1, 99)")
    page.run("document.querySelectorAll('.row input')[4].click()")
    page.click("Show 100 more")
    page.until(f"{ROWS} === 200")
    page.until("location.hash === '#/ws/w?limit=200'")
    assert page.run("window.kept.every((one) => one.isConnected)"), "rows that stay the same are left alone"
    assert page.run("[...document.querySelectorAll('.lanes')].at(99).querySelectorAll('path').length") == 2, "joined"
    http.post("/exec", json={"command": "echo new > /g"}).raise_for_status()
    page.until(f"{ROWS} === 201")
    assert page.run("window.kept.every((one) => one.isConnected)")
    assert page.run("document.querySelectorAll('.row input')[5].checked"), "the choice of what to compare stays"
    heads = "[...document.querySelectorAll('.row .badge.on')].filter((one) => one.textContent === 'head')"
    assert page.run(f"{heads}.length") == 1
    page.click("Show 100 more")
    page.until(f"{ROWS} === 301")
    page.send("Page.reload")
    page.until(f"{ROWS} === 301")
    names = page.run("[...document.querySelectorAll('.row .rev')].map((one) => one.textContent)")
    assert names == [f"w-{number}" for number in range(REVISIONS + 1, REVISIONS - 300, -1)]


def test_an_agent_with_many_records_shows_the_revisions_that_hold_them(opened: tuple[Browser, httpx2.Client]) -> None:
    page, _ = opened
    page.go("#/agents/w?agent=agent-1")
    page.until("document.querySelectorAll('.waterfall li').length === 320")
    told = page.run("[...document.querySelectorAll('.waterfall li.revision a')].map((one) => one.textContent)")
    assert told == [f"w-{number}" for number in range(1, REVISIONS, 2)], "each after its record"
