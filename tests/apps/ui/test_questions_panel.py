"""Questions of `ask` rules in the console: a command waits, a click answers, the command goes on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx2
import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving

from ramet.apps.cli.verbs.ui import request_link

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

CONFIG = """\
name: shop
policy: {ask: [{command: rm}]}
network: {ask: ["127.0.0.1:1"]}
"""
BOT = "token-of-the-bot-0123456789"


class World:
    """A server whose workspace asks before `rm`, a browser that looks at it, and commands that run beside it."""

    def __init__(self, url: str, token: str, page: Browser) -> None:
        self.url, self.token, self.page = url, token, page
        self._threads = ThreadPoolExecutor(2)

    def begin(self, command: str, agent: str = "coder", token: str = "") -> Future[httpx2.Response]:
        headers = {"authorization": f"Bearer {token or self.token}"}
        body = {"command": command, "agent": agent}
        place = f"{self.url}/v1/workspaces/shop/exec"
        return self._threads.submit(httpx2.post, place, json=body, headers=headers, timeout=200)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("questions")
    (place / "ramet.yaml").write_text(CONFIG)
    (place / "principals").write_text(f"bot {BOT}\n")
    (place / "principals").chmod(0o600)
    options = ("--config", str(place / "ramet.yaml"), "--principals", str(place / "principals"))
    with serving(place / "store", *options) as (url, token):
        browser = Browser(tmp_path_factory.mktemp("browser"))
        try:
            browser.send("Page.navigate", url=request_link(url, token, "ws/shop/"))
            browser.sees("shop")
            yield World(url, token, browser)
            assert browser.complaints == []
        finally:
            browser.close()


def hidden(page: Browser) -> None:
    page.until("document.querySelector('#asking').hidden && document.querySelector('#questions').hidden")


def test_a_click_lets_a_command_go_on(world: World) -> None:
    page = world.page
    running = world.begin("touch '/a<b>'; rm '/a<b>' && echo gone")
    told = page.sees("coder asks to run", "#questions")
    assert "rm /a<b>" in told.replace("'", "") and "session default" in told and "Allow the host" not in told
    assert page.run("document.querySelector('#asking').innerText") == "1 question"
    assert "Agent coder asks to run: rm" in page.run("document.querySelector('#asked').textContent")
    page.click("Allow once", "#questions button")
    assert running.result(200).json()["stdout"] == "gone\n"
    hidden(page)


def test_the_badge_stays_from_view_to_view_and_keys_answer(world: World) -> None:
    page = world.page
    running = world.begin("touch /b; rm /b; ls /b")
    page.sees("coder asks to run", "#questions")
    page.go("#/cmds/shop")
    page.sees("up to", "main")
    page.run("document.querySelector('#main').focus()")
    page.press("q")
    page.until("document.activeElement.textContent === 'Allow once'")
    page.press("Escape", 27)
    page.until("document.querySelector('#questions').hidden && document.activeElement.id === 'main'")
    assert page.run("document.querySelector('#asking').hidden") is False
    page.run("document.querySelector('#asking').click()")
    page.until("document.activeElement.textContent === 'Allow once'")
    page.click("Deny", "#questions button")
    done = running.result(200).json()
    assert done["stdout"] == "/b\n" and "not given" in done["stderr"]
    hidden(page)


def test_a_host_is_allowed_for_the_session(world: World) -> None:
    page = world.page
    running = world.begin("curl -s http://127.0.0.1:1/one?key=word; curl -s http://127.0.0.1:1/two; echo done")
    told = page.sees("coder asks to reach", "#questions")
    assert "GET http://127.0.0.1:1/one" in told and "word" not in told
    page.click("Allow the host", "#questions button")
    assert running.result(200).json()["stdout"] == "done\n"
    hidden(page)


def test_nobody_answers_what_their_own_command_asks(world: World) -> None:
    page = world.page
    page.send("Page.navigate", url="about:blank")
    page.send("Page.navigate", url=request_link(world.url, BOT, "ws/shop/"))
    page.sees("shop")
    running = world.begin("touch /c; rm /c && echo gone", token=BOT)
    page.sees("asks to run", "#questions")
    page.click("Allow once", "#questions button")
    told = page.sees("own command", "#questions .problem")
    assert "Let another principal answer" in told
    assert page.run("document.querySelectorAll('#questions .buttons').length") == 0
    place = f"{world.url}/v1/workspaces/shop/questions"
    headers = {"authorization": f"Bearer {world.token}"}
    (one,) = httpx2.get(place, headers=headers, timeout=200).json()["questions"]
    httpx2.post(f"{place}/{one['number']}", json={"allow": True}, headers=headers, timeout=200)
    assert running.result(200).json()["stdout"] == "gone\n"
    hidden(page)
