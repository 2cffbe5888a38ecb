"""What listens in a workspace, in a browser: it opens at an origin of its own, far from that of the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving
from tests.workspace.native.conftest import missing, need

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
    pytest.mark.skipif(bool(missing()), reason=f"no native programs here: {missing()}"),
]

PAGE = """<!doctype html><title>app</title><p id=said>the app</p><script>
localStorage.setItem("mine", "kept"); document.cookie = "theirs=1";
</script>"""
FRAME = """new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => {
    try {
      done(frame.contentDocument === null ? "closed" : "open");
    } catch {
      done("closed");
    }
  };
  frame.src = URL;
  document.body.append(frame);
})"""
TALK = """new Promise((done) => {
  const talk = new WebSocket(`ws://${location.host}/ws`);
  talk.onopen = () => talk.send("hello");
  talk.onmessage = (event) => done(event.data);
  talk.onerror = () => done("error");
})"""
ECHO = (Path(__file__).parents[2] / "support" / "echo_program.py").read_bytes()
LISTEN = "cd /site; python3 -m http.server 8000 --bind 127.0.0.1 > /log 2>&1 &"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    need("python3")
    Store(str(tmp_path)).create("app", native=True)
    with serving(tmp_path, "--native") as found:
        yield found


@pytest.fixture
def page(server: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("browser"))
    try:
        browser.send("Page.navigate", url=request_link(*server, "ports/app"))
        yield browser
    finally:
        browser.close()


def test_a_program_opens_at_an_origin_of_its_own(server: tuple[str, str], page: Browser) -> None:
    url, token = server
    page.sees("Nothing listens")
    with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        http.post("/v1/workspaces/app/exec", json={"command": "mkdir /site"}).raise_for_status()
        http.put("/v1/workspaces/app/file?path=/site/index.html", content=PAGE.encode()).raise_for_status()
        http.post("/v1/workspaces/app/exec", json={"command": LISTEN}).raise_for_status()
    assert "http.server 8000" in page.sees("8000")
    page.run("window.open = (...given) => { window.opened = given }")
    page.click("Open")
    there, target, features = page.until("window.opened")
    assert target == "_blank" and "noopener" in features and token not in there
    assert page.complaints == []
    page.send("Page.navigate", url=there)
    page.sees("the app", "#said")
    assert page.run("location.hostname").endswith(".localhost") and page.run("location.pathname") == "/"
    assert page.run("document.cookie") == "theirs=1", "the key of the origin is not for scripts"
    assert page.run("sessionStorage.length + Object.keys(localStorage).length") == 1, "nothing of the console"
    asked = f"fetch('{url}/v1/workspaces', {{credentials: 'include'}}).then(() => 'read', () => 'refused')"
    assert page.run(asked) == "refused"
    assert page.run(FRAME.replace("URL", f"'{url}/ui/'")) == "closed"
    page.send("Page.navigate", url=there)
    page.sees("not let in", "h1")  # the link works once
    page.send("Page.navigate", url=there.partition("/.ramet")[0])
    page.sees("the app", "#said")


def test_pages_of_a_program_talk_to_it(server: tuple[str, str], page: Browser) -> None:
    url, token = server
    with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        http.put("/v1/workspaces/app/file?path=/echo.py", content=ECHO).raise_for_status()
        command = "python3 /echo.py 8001 > /log 2>&1 & until curl -s localhost:8001 > /dev/null; do :; done"
        http.post("/v1/workspaces/app/exec", json={"command": command}).raise_for_status()
        there = http.post("/v1/workspaces/app/ports", json={"port": 8001}).json()["url"]
    page.send("Page.navigate", url=there)
    page.until("location.pathname === '/' && document.body.innerText.includes('localhost:8001')")
    assert page.run(TALK) == "hello"
    asked = "fetch('/to?/moved', {method: 'POST', body: 'abc'}).then((answer) => answer.json())"
    told = page.run(asked)
    assert (told["method"], told["path"], told["size"]) == ("POST", "/moved", 3)
    assert token not in str(told) and "ramet-port" not in str(told)
