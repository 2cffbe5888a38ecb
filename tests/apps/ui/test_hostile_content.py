"""Content that wants to be markup, in every place where the console shows something of a workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link
from ramet.core.paths import parse

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

NAME = "<img src=x onerror=window.taken=1>"
TAG = "<script>window.taken=1</script>"
EVIL = NAME + TAG
DOCUMENT = f"""# {EVIL}
[a](javascript:window.taken=1) [b](JaVaScRiPt:window.taken=1) [c](data:text/html,{EVIL}) [d](vbscript:window.taken=1)
[e](<java\tscript:window.taken=1>) [f](java&#x73;cript:window.taken=1) [g](#x" onclick="window.taken=1) [h](blob:null/1)
![{EVIL}](javascript:window.taken=1) ![p](x.svg) ![p](x" onerror="window.taken=1) <javascript:window.taken=1>
<iframe src="javascript:window.taken=1"></iframe> <svg onload=window.taken=1> <a href="javascript:window.taken=1">x</a>

<style>body {{ display: none }}</style>

```{EVIL}
{EVIL}
```

| {EVIL} | [x](javascript:window.taken=1) |
|---|---|
| {EVIL} | b |
"""
FILES = {
    f"/{NAME}": EVIL, f"/{NAME}.py": f"x = '{EVIL}'  # </span>{EVIL}\n", "/README.md": DOCUMENT,
    "/x.csv": f'a,"{NAME}",=cmd()\n{EVIL},javascript:window.taken=1,"x"\n', "/x.html": EVIL,
    "/x.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='window.taken=1'>{EVIL}</svg>",
}  # fmt: skip
ESCAPES = (
    r"printf '\033]8;;javascript:window.taken=1\033\\click\033]8;;\033\\ \033]0;title\007\033]52;c;aGFjaw==\007\033[2J"
    rf"\033P+q\033\\\033[31m%s\033[0m\n' '{EVIL}'"
)
VIEWS = {
    "#/": "hostile", "#/ws/hostile": "2 comments", "#/ws/hostile?forks": "of forks", "#/ws/hostile@1": "Comments",
    "#/ws/hostile/": "README.md", f"#/ws/hostile/{NAME}": "window.taken", f"#/ws/hostile/{NAME}.py": "span",
    f"#/ws/hostile/{NAME}.py?blame": "span", "#/ws/hostile/README.md": "window.taken", "#/ws/hostile/x.csv": "=cmd()",
    "#/ws/hostile/x.html": "window.taken", "#/ws/hostile/x.svg": "svg", "#/ws/hostile/link": "A link to",
    "#/agents/hostile": "Timeline", "#/agents/hostile?by=run": "Timeline", f"#/agents/hostile?agent={EVIL}": "pauses",
    f"#/agents/hostile?agent={EVIL}none": "No record", "#/cmds/hostile": "records",
    f"#/cmds/hostile?run={EVIL}": "match",
    "#/cmds/hostile?network=any": "1 match", f"#/cmds/hostile?text={EVIL}": "match", "#/diff/hostile": "modified",
    f"#/diff/hostile@head?against={EVIL}": "no revision", "#/review/hostile": "proposal",
    "#/review/hostile?other=proposal": "proposes", f"#/review/hostile?other={EVIL}": "Cannot show",
    "#/term/hostile@1": "its own copy", f"#/{EVIL}": "no such page", f"#/ws/{EVIL}": "Cannot show",
}  # fmt: skip
MARKUP = """[...document.querySelectorAll(
  "main :is(script, iframe, object, embed, style, base, form[action], img[src='x'], [onload], [onerror], [onclick])")]
  .concat([...document.querySelectorAll("[href]")].filter((one) => /^\\s*(javascript|data|vbscript):/i.test(one.href)))
  .map((one) => one.outerHTML)"""


def build(place: Path) -> None:
    store = Store(str(place))
    store.create("hostile")

    async def work(name: str, script: str, message: str) -> None:
        async with store.open(name, network={"allow": ["GET http://127.0.0.1:1"]}) as ws:
            if message.endswith("first"):
                for path, text in FILES.items():
                    await ws.fs.write(parse(path), text.encode())
                await ws.execute(f"ln -s '{NAME}' /link")
            await ws.execute(script, agent_id=EVIL, meta={"run": EVIL, EVIL: 1, "said": EVIL})
            await ws.commit(message, author=EVIL)

    asyncio.run(work("hostile", f"{ESCAPES}; curl -s 'http://127.0.0.1:1/{TAG}'", f"{EVIL}\n\n{EVIL} first"))
    store["hostile"].note(EVIL, author=EVIL)
    store["hostile"].note(EVIL, path=f"/{NAME}.py", line=1, author=EVIL)
    store["hostile"].tag("v1", message=EVIL)
    store["hostile"].fork("head", "proposal")
    asyncio.run(work("proposal", f"echo '{EVIL} theirs' > '/{NAME}'", EVIL))
    asyncio.run(work("hostile", f"echo '{EVIL} ours' > '/{NAME}'", EVIL))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, str, str]]:
    place = tmp_path_factory.mktemp("hostile")
    build(place / "store")
    (place / "ramet.yaml").write_text("name: guarded\npolicy: {ask: [{command: rm}]}\n")
    with serving(place / "store", "--config", str(place / "ramet.yaml")) as (url, token):
        browser = Browser(tmp_path_factory.mktemp("browser"))
        try:
            browser.send("Page.navigate", url=request_link(url, token, ""))
            browser.sees("hostile")
            yield browser, url, token
        finally:
            browser.close()


def harmless(page: Browser) -> None:
    page.until("!document.querySelector('.waiting')")
    assert page.run("window.taken ?? null") is None and page.run(MARKUP) == [] and page.complaints == []
    assert page.run("getComputedStyle(document.body).display") != "none"


@pytest.mark.parametrize("where", VIEWS)
def test_no_view_turns_content_into_markup(where: str, world: tuple[Browser, str, str]) -> None:
    page, _, _ = world
    page.go("#/nowhere")
    page.sees("no such page")
    page.go(where)
    page.sees(VIEWS[where])
    page.run("document.querySelectorAll('main details').forEach((one) => (one.open = true))")
    harmless(page)


def test_conflicts_are_text(world: tuple[Browser, str, str]) -> None:
    page, _, _ = world
    page.go("#/review/hostile?other=proposal")
    page.click("Approve and merge")
    page.click("Merge", "dialog button[type=submit]")
    assert EVIL in page.sees("theirs", ".sides")
    harmless(page)


def test_links_in_documents_lead_only_to_the_same_revision_or_away(world: tuple[Browser, str, str]) -> None:
    page, _, _ = world
    page.go("#/ws/hostile/README.md")
    page.sees("window.taken", ".document")
    links = page.run("[...document.querySelectorAll('.document a')].map((one) => one.getAttribute('href'))")
    assert links and all(one.startswith("#/ws/hostile") for one in links)
    for at in range(len(links)):
        page.run(f"document.querySelectorAll('.document a')[{at}]?.click()")
        page.go("#/ws/hostile/README.md")
        page.sees("window.taken", ".document")
    harmless(page)


def test_output_and_what_is_typed_is_text(world: tuple[Browser, str, str]) -> None:
    page, _, _ = world
    page.go("#/term/hostile@1")
    page.sees("its own copy")
    page.fill("#command", f"{ESCAPES}; cat /README.md; echo over")
    page.press("Enter", 13)
    told = page.sees("over\n", ".screen .out")
    assert EVIL in told and "click" in told and "\x1b" not in told
    assert page.run("document.querySelector('.screen .fg1').innerText") == EVIL
    page.run("document.getElementById('main').focus()")
    page.press("k", 75, modifiers=2)
    page.until("document.querySelector('.palette li') !== null")
    page.press("Escape", 27)
    harmless(page)


def test_questions_are_text(world: tuple[Browser, str, str]) -> None:
    page, url, token = world
    headers = {"authorization": f"Bearer {token}"}
    page.go("#/ws/guarded")
    page.sees("No revisions yet")
    with ThreadPoolExecutor(1) as threads:
        body = {"command": f"rm '{EVIL}'", "agent": "coder"}
        place = f"{url}/v1/workspaces/guarded/exec"
        running = threads.submit(httpx2.post, place, json=body, headers=headers, timeout=200)
        assert EVIL in page.sees("asks to run", "#questions")
        assert page.run("document.querySelector('#questions img, #questions script')") is None
        harmless(page)
        page.click("Deny", "#questions button")
        assert running.result(200).status_code == 200


def test_a_foreign_page_reaches_nothing(world: tuple[Browser, str, str]) -> None:
    """Neither a frame, nor a request, nor a WebSocket of another origin, not even with the token."""
    _, url, token = world
    page = httpx2.get(f"{url}/ui/", timeout=200)
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "trusted-types 'none'" in policy and page.headers["x-content-type-options"] == "nosniff"
    foreign = {"origin": "http://evil.example", "authorization": f"Bearer {token}"}
    answer = httpx2.get(f"{url}/v1/workspaces", headers=foreign, timeout=200)
    assert "access-control-allow-origin" not in answer.headers
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    where = f"{url.replace('http', 'ws')}/v1/workspaces/hostile/terminal?session=default"
    with pytest.raises(InvalidStatus) as refused, connect(where, additional_headers=foreign):
        pass
    assert refused.value.response.status_code == 403
