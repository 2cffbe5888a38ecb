"""The page in a real browser, where one is installed: what people see and do, against a real server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import httpx2
import pytest
from tests.apps.ui.browser import PROGRAM, Browser, serving

from ramet import Store
from ramet.apps.cli.verbs.ui import request_link

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HOSTILE = "<img src=x onerror=window.taken=1>"
SCRIPTS = (
    ("first", "mkdir /src /odd /docs; seq 1 40 > /src/numbers; echo keep > /src/same"),
    ("second", "sed -i '20s/.*/twenty/' /src/numbers; mv /src/same /src/moved"),
    (HOSTILE, f"echo \"{HOSTILE}\" > \"/odd/{HOSTILE}\"; touch /odd/$'bad\\xff' '/odd/a b#c?d%41'; "
              "echo '<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>' > /odd/evil.svg; "
              "head -c 3000 /dev/zero > /odd/zeros; yes 'a line of a large file' | head -n 20000 > /odd/large; "
              "printf 'n,text\\n1,\"a, b\"\\n2,<b>\\n' > /docs/t.csv; base64 -d > /docs/dot.png; "
              "printf 'def f(x):\\n    return 1  # one\\n' > /docs/f.py; "
              "printf '# Title\\n\\n[f](f.py) [evil](javascript:x) [site](https://example.com/) ![dot](dot.png) "
              "![far](https://example.com/x.png)\\n\\n<img src=x onerror=window.taken=1>\\n' > /docs/README.md; "
              "ln -s ../src/numbers /odd/link; cp /docs/dot.png /odd/dot.png"),
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """`ramet serve --ui` on a store that has something to look at: its URL and its token."""
    place = tmp_path_factory.mktemp("ui")
    store = Store(str(place))
    store.create("proj")

    async def work() -> None:
        for number, (message, script) in enumerate(SCRIPTS):
            async with store.open("proj") as ws:
                agent = "second-agent" if number == 1 else "first-agent"
                meta: dict[str, str | int | float | bool] = {"run": "run-7", "tokens": 812} if number == 1 else {}
                result = await ws.execute(script, stdin=base64.b64encode(PIXEL), agent_id=agent, meta=meta)
                assert result.exit_code == 0, result.error_text
                await ws.commit(message, author="an agent")

    asyncio.run(work())
    store["proj"].fork("proj-1", "other")
    with serving(place) as found:
        yield found


@pytest.fixture(scope="module")
def page(server: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("browser"))
    browser.send("Page.navigate", url=request_link(*server, ""))
    browser.sees("Workspaces")
    yield browser
    browser.close()


@pytest.fixture(autouse=True)
def uncomplaining(page: Browser) -> Iterator[None]:
    yield
    assert page.complaints == []
    assert page.run("window.taken") is None


def test_the_link_is_taken_out_of_the_address(server: tuple[str, str], page: Browser) -> None:
    page.send("Page.navigate", url="about:blank")
    page.send("Page.navigate", url=request_link(*server, ""))
    page.sees("Workspaces")
    assert page.run("location.hash") == "#/"
    assert page.run("Boolean(sessionStorage.getItem('ramet-token'))")
    assert page.run("localStorage.length") == 0


def test_workspaces_and_their_newest_revision(page: Browser) -> None:
    page.go("#/")
    told = page.sees("2 workspaces")
    assert HOSTILE in told and "an agent" in told


def test_the_history_leads_to_revisions_and_their_changes(page: Browser) -> None:
    page.go("#/ws/proj")
    page.sees("proj-3")
    page.click("second")
    told = page.sees("twenty")
    assert "1 modified" in told and "1 renamed" in told and "an agent" in told
    assert page.run("location.hash") == "#/ws/proj@proj-2"
    assert page.run("document.querySelectorAll('tr.came').length") == 1


def test_two_revisions_are_chosen_and_compared(page: Browser) -> None:
    page.go("#/ws/proj")
    page.sees("proj-3")
    page.run("[...document.querySelectorAll('.row input')].slice(1).forEach((box) => box.click())")
    page.click("Compare", ".picked a")
    page.sees("twenty")
    assert page.run("location.hash") == "#/diff/proj@proj-2?against=proj-1"


@pytest.mark.parametrize(
    ("path", "where", "told"),
    [("/src/numbers", ".code .text", "twenty"), ("/odd/evil.svg", ".code .text", "<script>"),
     ("/odd/zeros", ".hex", "00000000  00 00"), ("/odd/large", ".pane .paging", "Large file"),
     ("/odd/bad%FF", ".pane", "An empty file"), ("/odd/a%20b%23c%3Fd%2541", ".pane", "An empty file"),
     ("/odd/link", ".pane", "(/src/numbers)"), ("/odd/dot.png", "figcaption", "1 × 1"),
     ("/src/numbers?blame", ".blame", "proj-2")],
)  # fmt: skip
def test_files_are_shown_as_what_they_are(path: str, where: str, told: str, page: Browser) -> None:
    page.go(f"#/ws/proj{path}")
    page.sees(told, where)


def test_source_has_colors(page: Browser) -> None:
    page.go("#/ws/proj/docs/f.py")
    page.sees("Python", ".bar.file")
    assert page.run("document.querySelector('.code .text').innerText") == "def f(x):\n    return 1  # one"
    assert page.run("[...document.querySelectorAll('.code .t-k')].map((one) => one.innerText)") == ["def", "return"]
    page.go("#/ws/proj/docs/f.py?blame")
    page.sees("def f", ".blame")
    assert page.until("document.querySelector('.blame .t-c').innerText") == "# one"


def test_markdown_is_a_document_that_loads_nothing_from_elsewhere(page: Browser) -> None:
    page.go("#/ws/proj/docs")
    page.sees("Title", ".readme")
    page.go("#/ws/proj/docs/README.md")
    page.sees("Source", ".switch")
    told = page.sees("Title", ".document")
    assert "<img src=x" in told and "image: far" in told
    page.until("document.querySelector('.document img')?.naturalWidth === 1")
    links = page.run("[...document.querySelectorAll('.document a')].map((one) => [one.getAttribute('href'), one.rel])")
    away = "noopener noreferrer nofollow"
    assert links == [
        ["#/ws/proj/docs/f.py", ""], ["https://example.com/", away], ["#/ws/proj/docs/dot.png", ""],
        ["https://example.com/x.png", away],
    ]  # fmt: skip
    page.click("Source", ".switch a")
    page.sees("# Title", ".code .text")
    page.click("Rendered", ".switch a")
    page.click("f", ".document a")
    page.sees("def f", ".code .text")


def test_values_are_a_table(page: Browser) -> None:
    page.go("#/ws/proj/docs/t.csv")
    page.sees("2 rows", ".pane")
    cells = "[...document.querySelectorAll('.sheet td')].map((one) => one.innerText)"
    assert page.run(cells) == ["1", "a, b", "2", "<b>"]


def test_a_link_to_a_line_finds_it_in_a_large_file(page: Browser) -> None:
    page.go("#/ws/proj/odd/large?line=15000")
    page.until("document.querySelector('.line-mark')?.hidden === false")
    seen = """(() => {
        const mark = document.querySelector('.line-mark').getBoundingClientRect();
        const code = document.querySelector('.code').getBoundingClientRect();
        return mark.top >= code.top && mark.bottom <= code.bottom;
    })()"""
    page.until(seen)
    height = page.run("document.querySelector('.line-mark').offsetTop / 14999")
    assert (
        abs(height - page.run("parseFloat(getComputedStyle(document.querySelector('.code .text')).lineHeight)")) < 0.01
    )


def test_names_that_want_to_be_markup_are_names(page: Browser) -> None:
    page.go("#/ws/proj/odd")
    told = page.sees("evil.svg", ".listing")
    assert HOSTILE in told and "bad\\xff" in told
    page.click(HOSTILE, ".listing a")
    page.sees(HOSTILE, ".code .text")


def test_the_commands_that_ran(page: Browser) -> None:
    page.go("#/cmds/proj")
    page.sees("3 records")
    page.click("sed -i", "summary")
    told = page.sees("proj-2")
    assert "Took" in told and "/src/numbers" in told


def test_commands_are_found_by_the_server(page: Browser) -> None:
    page.go("#/cmds/proj?agent=second-agent")
    assert "sed -i" in page.sees("1 match")
    page.go("#/cmds/proj")
    page.sees("3 records")
    page.fill("[aria-label='Search commands']", "MKDIR")
    page.sees("1 match")
    assert page.run("location.hash") == "#/cmds/proj?text=MKDIR"
    page.go("#/cmds/proj?path=/src/moved")
    assert "1 match" in page.sees("mv /src/same")
    page.go("#/cmds/proj?record=1")
    assert "1 match" in page.sees("mkdir /src /odd")


def test_agents_their_costs_and_their_line_of_time(page: Browser) -> None:
    page.go("#/agents/proj")
    told = page.sees("Timeline")
    assert "second-agent" in told and "tokens" in told and "812" in told
    assert page.run("document.querySelectorAll('.timeline rect').length") == 3
    page.click("Runs", ".choices a")
    page.sees("run-7")
    bar = "document.querySelector('.timeline rect[data-number=\"2\"]')"
    page.until(f"{bar} !== null")
    page.run(f"{bar}.dispatchEvent(new Event('click', {{bubbles: true}}))")
    page.sees("1 match")
    assert page.run("location.hash") == "#/cmds/proj?record=2"


def test_blame_names_the_agent_and_opens_the_record(page: Browser) -> None:
    page.go("#/ws/proj/src/numbers?blame")
    assert "second-agent" in page.sees("sed -i", ".blame")
    page.click("sed -i", ".blame a")
    page.sees("1 match")
    assert page.run("location.hash") == "#/cmds/proj@proj-2?record=2"


def test_a_proposal_is_reviewed_and_its_conflict_resolved(server: tuple[str, str], page: Browser) -> None:
    url, token = server
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{url}/v1", headers=headers, timeout=200) as there:

        def run(name: str, command: str, agent: str) -> None:
            done = there.post(f"/workspaces/{name}/exec", json={"command": command, "agent": agent})
            assert done.json()["exit_code"] == 0
            there.post(f"/workspaces/{name}/commit", json={"message": command[:20]})

        there.post("/workspaces", json={"name": "plan"})
        run("plan", "printf 'a\\nb\\n' > /list; echo 1 > /same", "ann")
        there.post("/workspaces/plan/fork", json={"name": "attempt"})
        run("attempt", "sed -i s/b/theirs/ /list; echo new > /added", "bob")
        run("plan", "sed -i s/b/ours/ /list", "ann")
        page.go("#/ws/plan")
        page.sees("plan-2")
        page.click("Merge")
        page.until("document.querySelector('dialog select').value = 'attempt'")
        page.click("Review", "dialog button[type=submit]")
        told = page.sees("1 added")
        assert "1 record by bob" in told and page.run("location.hash") == "#/review/plan?other=attempt"
        page.click("Approve and merge", ".bar .primary")
        page.click("Merge", "dialog button[type=submit]")
        page.sees("1 conflict to decide")
        told = page.sees("theirs", ".sides")
        assert "ours" in told
        page.click("Edit by hand")
        page.fill("textarea.resolve", "a\nboth\n")
        page.click("Merge with these choices")
        page.click("Merge", "dialog button[type=submit]")
        page.until("location.hash === '#/ws/plan'")
        found = there.get("/workspaces/plan/file", params={"path": "/list", "revision": "head"}).text
        assert found == "a\nboth\n"
        assert there.get("/workspaces/plan/file", params={"path": "/added", "revision": "head"}).text == "new\n"
        for name in ("plan", "attempt"):
            there.delete(f"/workspaces/{name}")


def test_differences_have_colors_and_a_form_that_is_remembered(page: Browser) -> None:
    page.go("#/ws/proj@3")
    page.sees("def f")
    page.until("[...document.querySelectorAll('.diff .t-k')].some((one) => one.innerText === 'def')")
    page.click("Split", ".switch button")
    page.until("document.querySelector('.diff.split .t-k') !== null")
    page.go("#/diff/proj@proj-2?against=proj-1")
    page.until("document.querySelector('.diff.split td.gone')?.innerText.trim() === '20'")
    assert page.run("document.querySelector('.diff td.came.text').innerText") == "twenty"
    page.click("Unified", ".switch button")
    page.until("document.querySelector('.diff:not(.split) tr.came') !== null")


def test_a_revision_is_discussed(server: tuple[str, str], page: Browser) -> None:
    page.go("#/ws/proj@proj-2")
    page.sees("Comments")
    page.sees("twenty", ".diff")
    page.run("[...document.querySelectorAll('.diff .came .adder')][0].click()")
    page.fill(".diff textarea", "Why in words? <b>")
    page.press("Enter", 13, modifiers=2)
    page.sees("Why in words? <b>", ".diff .note")
    page.click("Comment", ".change .say")
    page.fill(".about-file textarea", "And the name?")
    page.fill(".about-file input", "3")
    page.click("Comment", ".about-file .primary")
    page.sees("line 3", ".about-file .notes")
    page.fill(".talk textarea", "Fine otherwise")
    page.click("Comment", ".talk .primary")
    page.sees("Fine otherwise", ".talk .notes")
    headers = {"authorization": f"Bearer {server[1]}"}
    asked: dict[str, str | int] = {"revision": "proj-2", "limit": 1}
    told = httpx2.get(f"{server[0]}/v1/workspaces/proj/log", params=asked, headers=headers, timeout=200).json()
    notes = [(one["message"], one["path"], one["line"]) for one in told["revisions"][0]["notes"]]
    assert notes == [
        ("Why in words? <b>", "/src/numbers", 20), ("And the name?", "/src/moved", 3),
        ("Fine otherwise", "", 0),
    ]  # fmt: skip
    page.go("#/ws/proj")
    page.sees("3 comments")
    page.go("#/ws/proj@proj-2")
    page.sees("Why in words? <b>", ".diff .note")
    body = {"message": "from elsewhere", "revision": "proj-2"}
    httpx2.post(f"{server[0]}/v1/workspaces/proj/notes", json=body, headers=headers, timeout=200)
    page.sees("something new")
    page.click("Show it")
    page.sees("from elsewhere", ".talk")


def test_a_proposal_is_rejected_with_a_reason(server: tuple[str, str], page: Browser) -> None:
    headers = {"authorization": f"Bearer {server[1]}"}
    with httpx2.Client(base_url=f"{server[0]}/v1/workspaces", headers=headers, timeout=200) as there:
        there.post("/proj/fork", json={"name": "idea"})
        there.post("/idea/exec", json={"command": "echo bad > /bad"})
        page.go("#/review/proj?other=idea")
        page.sees("1 added")
        page.click("Reject")
        page.fill("dialog input", "not now")
        page.click("Reject", "dialog button[type=submit]")
        page.until("location.hash === '#/ws/proj'")
        notes = there.get("/idea/log", params={"limit": 1}).json()["revisions"][0]["notes"]
        assert [one["message"] for one in notes] == ["Rejected: not now"]
        page.go("#/review/proj?other=idea")
        page.sees("Rejected: not now", ".talk")
        page.click("Reject")
        page.run("document.querySelector('dialog select').value = 'remove'")
        page.click("Reject", "dialog button[type=submit]")
        page.until("location.hash === '#/ws/proj'")
        assert there.get("/idea").status_code == 404


def test_the_keyboard_leads_through_lists_and_views(page: Browser) -> None:
    page.go("#/cmds/proj")
    page.sees("3 records")
    page.press("?")
    assert "next and previous" in page.sees("Keyboard", "dialog")
    page.click("Close", "dialog button")
    page.press("j")
    page.press("j")
    page.until("document.activeElement === document.querySelectorAll('.command summary')[1]")
    page.press("/")
    page.until("document.activeElement.type === 'search'")
    page.run("document.activeElement.blur()")
    page.shortcut("ga", "#/agents/proj")
    page.sees("Timeline")


def test_what_an_agent_did_is_undone(server: tuple[str, str], page: Browser) -> None:
    url, token = server
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{url}/v1", headers=headers, timeout=200) as there:
        there.post("/workspaces", json={"name": "undone"})
        there.post("/workspaces/undone/exec", json={"command": "echo good > /good", "agent": "ann"})
        there.post("/workspaces/undone/commit", json={"message": "a"})
        there.post("/workspaces/undone/exec", json={"command": "echo bad > /bad", "agent": "eve"})
        there.post("/workspaces/undone/commit", json={"message": "b"})
        page.go("#/agents/undone")
        page.sees("eve")
        page.click("Undo", "[aria-label='Undo what eve changed']")
        page.click("Undo", "dialog button[type=submit]")
        page.sees("undone-3 is the newest revision now", "#toasts")
        assert there.get("/workspaces/undone/file", params={"path": "/bad", "revision": "head"}).status_code == 404
        assert there.get("/workspaces/undone/file", params={"path": "/good", "revision": "head"}).status_code == 200
        there.delete("/workspaces/undone")


def test_the_commands_of_a_running_sandbox_appear_as_they_end(server: tuple[str, str], page: Browser) -> None:
    url, token = server
    with httpx2.Client(base_url=f"{url}/v1", headers={"authorization": f"Bearer {token}"}, timeout=200) as there:
        box = there.post("/sandboxes", json={"image": "python"}).json()["name"]
        there.post(f"/workspaces/{box}/exec", json={"command": "echo at work"})
        page.go("#/")
        page.sees("running sandbox")
        page.click(box)
        assert "echo at work" in page.sees("since it began")
        there.post(f"/workspaces/{box}/exec", json={"command": "false # and on"})
        assert "exit 1" in page.sees("and on")
        there.post(f"/sandboxes/{box}/terminate", json={})


def test_the_terminal_runs_and_stops(page: Browser) -> None:
    page.go("#/term/proj")
    page.fill("#command", "cd /src; cat moved; printf '\\033[31mred\\033[0m\\n'; false")
    page.press("Enter", 13)
    told = page.sees("exit 1", ".screen")
    assert "keep" in told and page.run("document.querySelector('.screen .fg1').innerText") == "red"
    page.until("document.querySelector('.entry-line .prompt').innerText === '/src $'")
    page.fill("#command", "echo begun; sleep 60")
    page.press("Enter", 13)
    page.sees("begun\n", ".screen")
    page.press("c", 67, modifiers=2)
    page.sees("stopped", ".screen")
    page.press("ArrowUp", 38)
    page.until("document.querySelector('#command').value === 'echo begun; sleep 60'")


def test_a_terminal_on_the_past_changes_nothing(page: Browser) -> None:
    page.go("#/term/proj@1")
    page.sees("on its own copy of")
    page.fill("#command", "rm -r /src; ls /")
    page.press("Enter", 13)
    assert "src\n" not in page.sees(" ms", ".screen").partition("ls /")[2]
    page.go("#/ws/proj@1/src/numbers")
    page.sees("40", ".code .text")


def test_a_refusal_is_reported_where_it_was_asked_for(page: Browser) -> None:
    page.go("#/ws/other")
    page.sees("other-1")
    page.click("Fork")
    page.fill("dialog input", "proj")
    page.click("Fork", "dialog button")
    told = page.sees("exists already", "dialog .problem")
    assert "workspace_exists" in told
    page.fill("dialog input", "third")
    page.click("Fork", "dialog button")
    page.until("location.hash === '#/ws/third'")
    page.sees("fork of other-1")


def test_a_path_is_restored(page: Browser) -> None:
    page.go("#/ws/other@proj-1/src/numbers")
    page.sees("20", ".code .text")
    page.go("#/term/other")
    page.fill("#command", "rm /src/numbers")
    page.press("Enter", 13)
    page.sees(" ms", ".screen")
    page.go("#/ws/other@proj-1/src/numbers")
    page.sees("20", ".code .text")
    page.click("Restore this path")
    page.click("Restore", "dialog button")
    page.sees("reverted to proj-1")
    assert "/src/numbers" in page.sees("1 added")


def test_what_others_do_appears(server: tuple[str, str], page: Browser) -> None:
    page.go("#/ws/proj")
    page.sees("proj-3")
    body = {"command": "echo new > /new"}
    headers = {"authorization": f"Bearer {server[1]}"}
    done = httpx2.post(f"{server[0]}/v1/workspaces/proj/exec", json=body, headers=headers, timeout=200)
    assert done.status_code == 200
    page.sees("echo new > /new")


def test_without_the_token_nothing_is_shown(page: Browser, server: tuple[str, str]) -> None:
    page.run("sessionStorage.clear()")
    page.send("Page.navigate", url="about:blank")
    page.send("Page.navigate", url=f"{server[0]}/ui/#/ws/proj?link={'x' * 43}")
    told = page.sees("This page needs a token")
    assert "was used" in told and "proj" not in told
    page.fill("main input", server[1])
    page.click("Open")
    page.sees("proj-3")
