"""What people come for, from the first click to the last: who wrote this, take it back, merge that, find it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving
from tests.apps.ui.shop import build

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link
from ramet.core.paths import parse

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

PALETTE = "document.querySelector('.palette input') === document.activeElement"


class World:
    """A server with the shop, and a browser that looks at it."""

    def __init__(self, url: str, token: str, page: Browser) -> None:
        self.url, self.token, self.page = url, token, page

    def text(self, name: str, path: str) -> str:
        headers = {"authorization": f"Bearer {self.token}"}
        place = f"{self.url}/v1/workspaces/{name}/file"
        return httpx2.get(place, params={"path": path, "revision": "head"}, headers=headers, timeout=200).text


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    build(tmp_path / "store")
    with serving(tmp_path / "store") as (url, token):
        browser = Browser(tmp_path / "browser")
        try:
            browser.send("Page.navigate", url=request_link(url, token, ""))
            browser.sees("3 workspaces")
            yield World(url, token, browser)
            assert browser.complaints == []
        finally:
            browser.close()


def go_to(page: Browser, typed: str, chosen: str) -> None:
    """Go somewhere by the palette."""
    page.press("k", 75, modifiers=2)
    page.until(PALETTE)
    page.send("Input.insertText", text=typed)
    page.until(f"document.querySelector('.palette [aria-selected=true]')?.textContent.startsWith({chosen!r})")
    page.press("Enter", 13)
    page.until("!document.querySelector('dialog')")


def test_who_wrote_a_line_and_why(world: World) -> None:
    page = world.page
    go_to(page, "sho", "shop")
    page.sees("Begin the shop")
    go_to(page, "/src/num", "/src/numbers")
    page.sees("399", ".code .text")
    page.click("Blame")
    told = page.sees("sed -i", ".blame")
    assert "carol" in told and "ann" in told and "shop-3" in told
    assert page.run("document.querySelectorAll('.blame .when time').length") == 3, "each says when"
    page.click("sed -i", ".blame a")
    told = page.sees("1 match")
    assert "r3" in told and "/docs/zeros" in told and "printf" in told
    page.click("carol", ".command dl a")
    page.sees("Agent carol")
    assert page.run("location.hash") == "#/agents/shop@shop-3?agent=carol"


def test_a_run_is_followed_by_keys_from_command_to_revision_to_line_to_agent(world: World) -> None:
    page = world.page
    go_to(page, "shop", "shop")
    page.sees("Begin the shop")
    page.shortcut("ga", "#/agents/shop")
    page.sees("Timeline")
    page.click("Runs", ".choices a")
    page.sees("r3", ".totals")
    page.run("[...document.querySelectorAll('.totals th a')].find((one) => one.innerText === 'r3').focus()")
    page.press("Enter", 13)
    told = page.sees("Run r3")
    assert "1 failure" in told and "/src/numbers" in told and "2 requests" in told
    page.until("document.querySelector('.waterfall li.revision') !== null")
    steps = page.run("[...document.querySelectorAll('.waterfall li')].map((one) => one.innerText.split('\\n')[0])")
    assert steps == ["ok", "revision", "exit 7"], "a revision comes after what it holds"
    lefts = page.run("[...document.querySelectorAll('.span')].map((one) => one.getBoundingClientRect().left)")
    assert lefts == sorted(set(lefts))
    page.press("j")
    page.until("document.activeElement === document.querySelector('.waterfall .step a')")
    page.press("Enter", 13)
    page.sees("1 match")
    page.sees("shop-3", ".command dl")
    page.click("shop-3", ".command dl a")
    page.sees("1 record by carol")
    agent = "#/agents/shop?agent=carol"
    assert page.run(f"document.querySelector('.about-revision a[href=\"{agent}\"]').innerText") == "carol"
    page.run("document.querySelector('.behind').open = true")
    page.click("sed -i", ".behind a")
    page.sees("1 match")
    page.click("/src/numbers", ".command dl a")
    page.sees("399", ".code .text")
    page.click("Blame")
    page.sees("new", ".blame")
    page.click("carol", ".blame a")
    assert "All agents" in page.sees("Agent carol")


def test_tool_calls_stand_in_the_waterfall(tmp_path: Path, world: World) -> None:
    async def act() -> None:
        async with Store(str(tmp_path / "store")).open("empty") as ws:
            with ws.recording("tool", "write_file /a", session_id="default", agent_id="eve"):
                await ws.fs.write(parse("/a"), b"a")
            await ws.execute("cat /a", agent_id="eve", meta={"usd": 0.25})
            await ws.commit("By a tool")

    asyncio.run(act())
    page = world.page
    page.go("#/agents/empty?by=principal")
    page.sees("Timeline")
    page.until("[...document.querySelectorAll('.totals th a')].every((one) => one.hash.includes('?principal='))")
    page.go("#/agents/empty?agent=eve")
    told = page.sees("By a tool")
    assert "write_file /a" in told and "usd\n0.25" in told
    classes = page.run("[...document.querySelectorAll('.waterfall .span')].map((one) => one.className)")
    assert classes == ["span other", "span good", "span revision"]


def test_what_can_be_reviewed_is_listed(world: World) -> None:
    page = world.page
    page.go("#/review/shop")
    told = page.sees("Sell in bulk", ".cards")
    assert "attempt" in told and "2 revisions" in told and "3 comments" in told
    page.press("j")
    page.press("Enter", 13)
    page.sees("What attempt proposes")
    page.click("Reject")
    page.click("Reject", "dialog button[type=submit]")
    page.until("location.hash === '#/ws/shop'")
    page.shortcut("gr", "#/review/shop")
    assert "rejected" in page.sees("Sell in bulk", ".cards")
    page.go("#/review/attempt")
    assert "shop" in page.sees("1 revision", ".cards"), "what it was forked from went on"


def test_a_run_is_taken_back(world: World) -> None:
    page = world.page
    go_to(page, "shop", "shop")
    page.sees("Begin the shop")
    go_to(page, "agents", "Agents")
    page.sees("Timeline")
    page.click("Runs", ".choices a")
    page.sees("r3")
    page.run("document.querySelector('[aria-label=\"Undo what r3 changed\"]').click()")
    page.click("Undo", "dialog button[type=submit]")
    page.sees("is the newest revision now", "#toasts")
    assert "\nnew\n" not in world.text("shop", "/src/numbers") and len(world.text("shop", "/docs/zeros")) == 500
    assert "stock=50" in world.text("shop", "/src/shop.py"), "what others changed stays"


def test_a_proposal_with_a_conflict_is_merged(world: World) -> None:
    page = world.page
    page.go("#/ws/shop")
    page.sees("Begin the shop")
    page.click("Merge")
    page.until("document.querySelector('dialog select').value = 'attempt'")
    page.click("Review", "dialog button[type=submit]")
    told = page.sees("Why so many?")
    assert "1 record by dave" in told and "Fine otherwise." in told
    assert "/src/numbers:7" in page.sees("And this one?", ".talk"), "a comment on a file that did not change"
    page.click("Approve and merge")
    page.click("Merge", "dialog button[type=submit]")
    page.sees("1 conflict to decide")
    page.sees("stock=1000", ".sides")
    page.until("document.querySelectorAll('.sidebyside').length === 2")
    page.until("[...document.querySelectorAll('.sidebyside')].every((one) => one.querySelector('mark [class^=t-]'))")
    sides = page.run("[...document.querySelectorAll('.sidebyside pre')].map((one) => one.textContent)")
    assert sides == [world.text(name, "/src/shop.py") for name in ("shop", "attempt")], "colors leave the text as it is"
    assert page.run("[...document.querySelectorAll('.conflicts .primary')][0].disabled")
    page.click("Edit by hand", ".sides button")
    page.sees("1 conflict to decide")
    marked = page.run("document.querySelector('.resolve').value")
    assert (
        "<<<<<<< shop\n" in marked and "stock=50" in marked and ">>>>>>> attempt\n" in marked and "# rest\n" in marked
    )
    page.fill(".resolve", "both\n")
    page.sees("all decided")
    page.click("Take this", ".sides button")
    page.sees("all decided")
    page.click("Merge with these choices")
    page.click("Merge", "dialog button[type=submit]")
    page.until("location.hash === '#/ws/shop'")
    assert "stock=1000" in world.text("shop", "/src/shop.py") and world.text("shop", "/src/a.ts") != ""


def test_records_are_found_by_the_server(world: World) -> None:
    page = world.page
    page.go("#/cmds/shop")
    page.sees("6 records")

    def choose(label: str, value: str, found: str) -> None:
        page.until(f"document.querySelector('select[aria-label={label}] option[value=\"{value}\"]') !== null")
        page.run(
            f"(() => {{ const one = document.querySelector('select[aria-label=\"{label}\"]'); one.value = '{value}';"
            "one.dispatchEvent(new Event('change')) })()"
        )
        page.sees(found)

    choose("Agent", "carol", "3 matches")
    choose("Status", "failed", "2 matches")
    page.click("curl", "summary")
    told = page.sees("refused.example", ".requests")
    assert "refused" in told and "secret" not in told and "GET http://127.0.0.1:1" in told
    page.click("7", ".command dl a")
    page.sees("1 match")
    assert page.run("location.hash") == "#/cmds/shop?exit=7"
    choose("Status", "", "6 records")
    choose("Agent", "carol", "3 matches")
    choose("Network", "refused", "1 match")
    choose("Network", "", "3 matches")
    choose("Agent", "", "6 records")
    choose("Session", "default", "6 matches")
    choose("Session", "", "6 records")
    choose("Time", "3600", "6 matches")
    page.fill("[aria-label='Search commands']", "WRITE")
    page.sees("No record matches")
    page.fill("[aria-label='Search commands']", "SED -i")
    page.sees("2 matches")
    page.fill("[aria-label='Only what changed this path']", "/docs")
    page.sees("1 match")
    page.go("#/cmds/shop?session=nobody")
    page.sees("No record matches")
    page.go("#/cmds/shop?principal=nobody")
    page.sees("No record matches")


def test_hands_stay_on_the_keyboard(world: World) -> None:
    page = world.page
    go_to(page, "shop", "shop")
    page.sees("Begin the shop")
    page.shortcut("gc", "#/cmds/shop")
    page.sees("6 records")
    for key in "jjk":
        page.press(key)
    page.until("document.activeElement === document.querySelectorAll('.command summary')[0]")
    page.press("Enter", 13)
    page.sees("Took")
    page.press("?")
    page.sees("go to a workspace", "dialog")
    page.press("Escape", 27)
    page.until("!document.querySelector('dialog')")
    page.press("k", 75, modifiers=2)
    page.until(PALETTE)
    page.send("Input.insertText", text="car")
    page.until("document.querySelector('.palette li')?.textContent.includes('agent in shop')")
    page.press("Enter", 13)
    page.sees("3 matches")
    page.shortcut("gw", "#/")
    page.sees("3 workspaces")


def test_the_palette_says_what_is_wrong(world: World) -> None:
    page = world.page
    go_to(page, "shop", "shop")
    page.sees("Begin the shop")
    page.press("k", 75, modifiers=2)
    page.until(PALETTE)
    page.send("Input.insertText", text="nothing at all")
    page.sees("Nothing fits", ".palette")
    page.fill(".palette input", "/nothing/x")
    page.sees("/nothing", ".palette [role=status]")
    page.fill(".palette input", "/docs/")
    page.sees("README.md", ".palette")
    page.press("ArrowDown", 40)
    page.until("document.querySelectorAll('.palette li')[1].getAttribute('aria-selected') === 'true'")
    page.press("Escape", 27)
    page.until("!document.querySelector('dialog')")
