"""Every way to a proposal in Review: `ramet try --keep`, a branch of Python, a fork; merged, rejected, resolved."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving
from tests.workspace.native.conftest import missing

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

CODE = "class Shop:\n    def __init__(self) -> None:\n        self.stock = 100\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def page(store: Path, tmp_path: Path) -> Iterator[Browser]:
    """The console of the store; the test fills the store meanwhile."""
    Store(store)
    with serving(store) as (url, token):
        browser = Browser(tmp_path / "browser")
        try:
            browser.send("Page.navigate", url=request_link(url, token, ""))
            browser.sees("Workspaces")
            yield browser
            assert browser.complaints == []
        finally:
            browser.close()


def text(store: Path, path: str) -> str:
    return b"".join(Store(store)["shop"].show(path)).decode()


def confirm(page: Browser, button: str, answer: str) -> None:
    page.click(button)
    page.click(answer, "dialog button[type=submit]")


def test_attempts_that_try_kept(store: Path, page: Browser, tmp_path: Path) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    project = tmp_path / "shop"
    project.mkdir()
    (project / "shop.py").write_text(CODE)

    def attempt(name: str, agent: str, script: str) -> None:
        words = [sys.executable, "-m", "ramet.apps.cli", "try", "--store", str(store), "--keep", name, "--"]
        environ = {**os.environ, "RAMET_AGENT": agent}
        subprocess.run([*words, "sh", "-c", script], cwd=project, env=environ, capture_output=True, check=True)

    attempt("many", "ann", "sed -i s/100/1000/ shop.py; echo '# Many' > README.md")
    attempt("few", "bob", "sed -i s/100/10/ shop.py")
    attempt("none", "carol", "rm shop.py")
    page.go("#/review/shop")
    told = page.sees("many", ".cards")
    page.sees("few", ".cards")
    page.sees("none", ".cards")
    assert "ann" in told and "bob" in told and "carol" in told and "sh -c 'sed -i" in told
    page.click("many", ".cards a")
    page.sees("What many proposes")
    told = page.sees("stock = 1000")
    assert "1 record by ann" in told and "# Many" in told
    page.until("document.querySelectorAll('.diff [class^=t-]').length > 0")
    page.click("Split")
    page.until("document.querySelector('.diff.split') !== null")
    confirm(page, "Approve and merge", "Merge")
    page.until("location.hash === '#/ws/shop'")
    assert "stock = 1000" in text(store, "/shop.py") and (project / "shop.py").read_text() == CODE

    page.go("#/review/few")
    page.click("Review what it proposes there")
    page.sees("What few proposes")
    confirm(page, "Approve and merge", "Merge")
    page.sees("1 conflict to decide")
    sides = page.sees("stock = 10\n", ".sides")
    assert "stock = 1000" in sides and "shop (ours)" in sides and "few (theirs)" in sides
    page.click("Take this", ".sides button")
    page.sees("all decided")
    confirm(page, "Merge with these choices", "Merge")
    page.until("location.hash === '#/ws/shop'")
    assert "stock = 10\n" in text(store, "/shop.py")

    page.go("#/review/shop?other=none")
    page.sees("What none proposes")
    page.click("Reject")
    page.until("document.querySelector('dialog select').value = 'remove'")
    page.fill("dialog input[name=why]", "We need a shop")
    page.click("Reject", "dialog button[type=submit]")
    page.sees("none is rejected and removed", "#toasts")
    page.go("#/review/shop")
    page.sees("No other workspace has changes")
    page.go("#/ws/shop@head/shop.py")
    page.sees("stock = 10", ".code .text")
    page.click("Blame")
    page.sees("bob", ".blame")


def test_branches_of_python_and_a_fork(store: Path, page: Browser) -> None:
    made = Store(store)
    made.create("shop")

    async def steps() -> None:
        async with made.open("shop") as ws:
            await ws.execute("cat > /shop.py", stdin=CODE.encode(), agent_id="ada")
            async with ws.speculate(3) as tries:
                for number, one in enumerate(tries):
                    await one.execute(f"echo {number} > /attempt", agent_id=f"agent-{number}")
                await ws.propose(tries[0], "first", "The first attempt")
                await ws.propose(tries[1], "second", "The second attempt")
            branch = ws.branch()
            await branch.execute("echo note > /note", agent_id="dave")
            await ws.propose(branch, "note")
            await branch.close()
        made["shop"].fork(None, "fork")
        async with made.open("fork") as ws:
            await ws.execute("sed -i s/100/5/ /shop.py", agent_id="eve")

    asyncio.run(steps())
    page.go("#/review/shop")
    told = page.sees("fork", ".cards")
    for who in ("agent-0", "agent-1", "dave", "eve", "The first attempt", "The second attempt"):
        assert who in told
    assert "agent-2" not in told, "what is not proposed leaves nothing"
    page.go("#/review/shop?other=second")
    page.sees("1 record by agent-1")
    page.run("document.querySelector('.behind').open = true")
    page.sees("echo 1 > /attempt", ".behind")
    confirm(page, "Approve and merge", "Merge")
    page.until("location.hash === '#/ws/shop'")
    page.go("#/review/shop?other=first")
    page.sees("What first proposes")
    confirm(page, "Approve and merge", "Merge")
    page.sees("1 conflict to decide")
    page.click("Keep this", ".sides button")
    page.sees("all decided")
    confirm(page, "Merge with these choices", "Merge")
    page.until("location.hash === '#/ws/shop'")
    assert text(store, "/attempt") == "1\n"
    for name in ("note", "fork"):
        page.go(f"#/review/shop?other={name}")
        page.sees(f"What {name} proposes")
        confirm(page, "Approve and merge", "Merge")
        page.until("location.hash === '#/ws/shop'")
    assert text(store, "/note") == "note\n" and "stock = 5\n" in text(store, "/shop.py")
    page.go("#/review/shop")
    page.sees("No other workspace has changes")
