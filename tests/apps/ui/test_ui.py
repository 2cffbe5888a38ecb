"""The page for people: who gets in, what is served and what never is, and that its parts do what they say."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.apps.server.harness import TOKEN, run

from ramet import Store
from ramet.apps.cli.verbs import ui as verb
from ramet.apps.server.app import UI, create_app
from ramet.apps.server.links import LINK_SECONDS, LINKS, Links
from ramet.apps.server.settings import ServerSettings
from ramet.apps.ui.pages import TYPES, Pages, files
from ramet.core.errors import RametError

STATIC = Path(verb.__file__).parents[2] / "ui" / "static"
FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))
MODULES = [name for name in FILES if not name.startswith("vendor/")]
"""The modules that are ours."""
NODE = shutil.which("node")
node = pytest.mark.skipif(NODE is None, reason="Node is not installed")


@asynccontextmanager
async def serving(store: Store | None = None, **settings: Any) -> AsyncIterator[tuple[httpx2.AsyncClient, Pages]]:
    pages = Pages(TOKEN, ("another-token-another",))
    told = ServerSettings(**{"token": TOKEN, "hosts": frozenset({"test"}), **settings})
    app = create_app(store, told, {UI: pages})
    async with app.running():
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client, pages


# ------------------------------------------------------------------------------------------------- what is served


def test_the_page_needs_no_token_and_everything_else_does() -> None:
    async def test() -> None:
        async with serving() as (http, _):
            page = await http.get("/ui/")
            assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
            assert (await http.get("/ui")).headers["location"].endswith("/ui/")
            for path in ("/v1/workspaces", "/openapi.json", "/v1/events", "/uix", "/"):
                assert (await http.get(path)).status_code == 401, path
            assert (await http.get("/ui/", headers={"host": "evil.example"})).status_code == 421

    run(test)


def test_nothing_is_served_at_ui_unless_it_was_asked_for() -> None:
    async def test() -> None:
        app = create_app(None, ServerSettings(token=TOKEN, hosts=frozenset({"test"})))
        transport = httpx2.ASGITransport(app=app)
        async with app.running(), httpx2.AsyncClient(transport=transport, base_url="http://test") as http:
            assert (await http.get("/ui/")).status_code == 401

    run(test)


def test_every_answer_forbids_what_the_page_does_not_do() -> None:
    async def test() -> None:
        async with serving() as (http, _):
            for path in ("/ui/", "/ui/app.js", "/ui/nothing", "/ui/redeem"):
                headers = (await http.get(path)).headers
                policy = {part.split()[0]: part.split()[1:] for part in headers["content-security-policy"].split("; ")}
                assert policy["default-src"] == ["'none'"] and policy["script-src"] == ["'self'"], path
                assert policy["frame-ancestors"] == ["'none'"] and policy["trusted-types"] == ["'none'"], path
                assert not any("unsafe" in word for words in policy.values() for word in words), path
                assert headers["x-content-type-options"] == "nosniff", path
                assert headers["referrer-policy"] == "no-referrer", path

    run(test)


def test_files_are_asked_for_again_only_when_they_changed() -> None:
    async def test() -> None:
        async with serving() as (http, _):
            first = await http.get("/ui/app.js")
            assert first.headers["cache-control"] == "no-cache"
            for given in (first.headers["etag"], f'"x", W/{first.headers["etag"]}'):
                again = await http.get("/ui/app.js", headers={"if-none-match": given})
                assert (again.status_code, again.content) == (304, b"")
            assert (await http.get("/ui/app.js", headers={"if-none-match": '"x"'})).status_code == 200
            head = await http.head("/ui/app.js")
            assert head.content == b"" and head.headers["content-length"] == str(len(first.content))
            assert (await http.post("/ui/app.js")).status_code == 405

    run(test)


def test_the_page_names_all_of_its_modules_by_a_version_that_is_kept_for_ever() -> None:
    async def test() -> None:
        async with serving() as (http, _):
            page = await http.get("/ui/")
            assert page.headers["cache-control"] == "no-cache"
            linked = re.findall(r'(?:href|src)="(v-([0-9a-f]{16})(/[^"]+))"', page.text)
            modules = {name for name in files() if name.endswith(".js")}
            lazily = {"/lib/xterm.js", "/vendor/xterm.js", "/vendor/xterm-fit.js"}
            assert {name for _, _, name in linked if name.endswith(".js")} == modules - lazily
            for path, version, name in linked:
                found = await http.get(f"/ui/{path}")
                assert found.content == files()[name].content and "immutable" in found.headers["cache-control"], path
                other = await http.get(f"/ui/v-{version[::-1]}{name}")
                assert other.content == found.content and other.headers["cache-control"] == "no-cache", (
                    "another version"
                )

    run(test)


@pytest.mark.parametrize(
    "path",
    ["/ui/../pages.py", "/ui/%2e%2e/pages.py", "/ui/..%2fpages.py", "/ui//etc/passwd", "/ui/%2fetc/passwd",
     "/ui/static/app.js", "/ui/lib/", "/ui/lib", "/ui/app.js/", "/ui/app.js%00", "/ui/\\..\\pages.py", "/ui/.."],
)  # fmt: skip
def test_no_path_leads_out(path: str) -> None:
    async def test() -> None:
        async with serving() as (http, _):
            sent = httpx2.Request("GET", httpx2.URL("http://test", raw_path=path.encode()), headers={"host": "test"})
            assert (await http.send(sent)).status_code in (401, 404)

    run(test)


def test_every_file_of_the_page_has_a_type_and_is_served() -> None:
    assert {f"/{path.relative_to(STATIC).as_posix()}" for path in STATIC.rglob("*") if path.is_file()} | {"/"} == set(
        files()
    )
    assert {Path(name).suffix for name in files() if name != "/"} == set(TYPES)


def test_every_file_of_the_page_goes_into_the_package() -> None:
    top = STATIC.parents[4]
    built = tomllib.loads((top / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built == {"packages": ["src/ramet"]}  # a package is taken with all of its files that git does not ignore
    if shutil.which("git") and (top / ".git").exists():
        asked = "\n".join(str(path) for path in STATIC.rglob("*"))
        done = subprocess.run(["git", "check-ignore", "--stdin"], cwd=top, input=asked, capture_output=True, text=True)
        assert done.stdout == ""


def test_references_lead_to_files_and_never_away() -> None:
    served = files()
    page = served["/"].content.decode()
    for found in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert f"/{found}" in served
    assert "<script>" not in page and " style=" not in page and not re.search(r"\son\w+=", page)
    for name in MODULES:
        text = (STATIC / name).read_text()
        for found in re.findall(r'^(?:import|export) [^;]*? from "([^"]+)";', text, re.M):
            assert f"/{os.path.normpath(Path(name).parent / found)}" in served, (name, found)
        if name != "lib/dom.js":
            assert "http://" not in text and "https://" not in text, name
    assert "url(" not in (STATIC / "style.css").read_text() and "@import" not in (STATIC / "style.css").read_text()


@pytest.mark.parametrize("name", MODULES)
def test_no_module_makes_markup_or_code_of_text(name: str) -> None:
    text = (STATIC / name).read_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
        assert word not in text
    assert name == "lib/preferences.js" or "localStorage" not in text


EXPORTED = re.compile(r"^export (?:async )?(?:function\*? |const )(\w+)", re.MULTILINE)
COMMENT = re.compile(r"^\s*//.*$|/\*(?:.|\n)*?\*/", re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_what_it_calls(name: str) -> None:
    code = COMMENT.sub("", (STATIC / name).read_text())
    for shared in {found for module in MODULES for found in EXPORTED.findall((STATIC / module).read_text())}:
        if re.search(rf"(?<![.#\w]){shared}\(", code):
            brought = re.search(rf"(?<![.\w]){shared}\b(?!\()|(?:function\*?|^) +{shared}\(", code, re.MULTILINE)
            assert brought, f"{name} calls {shared}, which it neither imports nor defines"


# --------------------------------------------------------------------------------------------------------- links


def test_a_link_works_once_and_for_a_while() -> None:
    now = [0.0]
    links = Links(lambda: now[0])
    code = links.make("secret")
    assert "secret" not in code
    assert links.redeem(code.encode()) == "secret"
    assert links.redeem(code.encode()) is None
    late = links.make("secret")
    now[0] += LINK_SECONDS + 1
    assert links.redeem(late.encode()) is None
    first = links.make("secret")
    for _ in range(LINKS):
        links.make("secret")
    assert links.redeem(first.encode()) is None


def test_a_link_is_changed_into_the_token_that_asked_for_it() -> None:
    async def test() -> None:
        async with serving() as (http, pages):
            link = pages.link("http://test/", "ws/x")
            where, _, code = link.partition("?link=")
            assert where == "http://test/ui/#/ws/x" and TOKEN not in link
            told = await http.post("/ui/redeem", content=code)
            assert told.json() == {"token": TOKEN} and told.headers["cache-control"] == "no-store"
            again = await http.post("/ui/redeem", content=code)
            assert again.status_code == 401 and again.json()["remediation"]
            for wrong in ("", "x", "x" * 43, "é" * 43):
                assert (await http.post("/ui/redeem", content=wrong.encode())).status_code == 401
            assert (await http.post("/ui/redeem", content=b"x" * 2000)).status_code == 413
            assert (await http.get("/ui/redeem")).status_code == 405
            for token, status in ((TOKEN, 201), ("another-token-another", 201), ("wrong", 401), ("", 401)):
                made = await http.post("/ui/link", headers={"authorization": f"Bearer {token}"})
                assert made.status_code == status, token
                if status == 201:
                    got = await http.post("/ui/redeem", content=made.json()["link"])
                    assert got.json() == {"token": token}
            assert (await http.post("/ui/link")).status_code == 401

    run(test)


# ------------------------------------------------------------------------------------------- what the page asks for


def test_looking_and_forking_open_no_workspace(tmp_path: Path) -> None:
    """Whoever looks must not take the right to write from who works."""
    store = Store(str(tmp_path))

    async def test() -> None:
        store.create("p")
        async with store.open("p") as ws:
            await ws.execute("mkdir /d; echo one > /d/a; ln -s a /d/l")
            await ws.commit("first")
            w = "/v1/workspaces/p"
            async with serving(store) as (http, _):
                http.headers["authorization"] = f"Bearer {TOKEN}"
                info = (await http.get(w)).json()
                assert info["busy"] and not info["open"]
                assert [one["busy"] for one in (await http.get("/v1/workspaces")).json()["workspaces"]] == [True]
                rev = info["head"]["id"]
                for path, params in (
                    ("/log", {"limit": 200}), ("/tags", {}), ("/diff", {"newer": rev}), ("/history", {"last": 200}),
                    ("/dir", {"path": "/d", "revision": rev}), ("/blame", {"path": "/d/a", "revision": rev}),
                    ("/stat", {"path": "/d/l", "revision": rev, "follow": False}),
                    ("/file", {"path": "/d/a", "revision": rev}),
                ):  # fmt: skip
                    assert (await http.get(w + path, params=params)).status_code == 200, path
                asked = {"name": "q", "revision": rev}
                made = await http.post(f"{w}/fork", json=asked, headers={"idempotency-key": "k"})
                assert made.status_code == 201
                assert not (await http.get(w)).json()["open"]
            assert [one.message for one in store["p"].log()] == ["first"]

    run(test)


# ------------------------------------------------------------------------------------------------------- the verb


class Running:
    """`ramet ui` as a process."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "ramet.apps.cli", "ui", "--no-browser", *words]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().decode().strip()

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=200)[1].decode()


def test_the_verb_prints_a_link_that_lets_in(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.create("proj")
    running = Running("proj", "--store", str(tmp_path))
    try:
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/ui/#/ws/proj\?link=([\w-]{43})", running.link)
        assert found, running.link
        with httpx2.Client(base_url=found[1], timeout=200) as http:
            for _ in range(4_000):
                try:
                    http.get("/v1/health")
                    break
                except httpx2.TransportError:
                    time.sleep(0.05)
            assert http.get("/v1/workspaces").status_code == 401
            token = http.post("/ui/redeem", content=found[2]).json()["token"]
            names = http.get("/v1/workspaces", headers={"authorization": f"Bearer {token}"}).json()["workspaces"]
            assert [one["name"] for one in names] == ["proj"]
            assert token not in running.link
    finally:
        told = running.stop()
    assert token not in told and found[2] not in told
    assert not (tmp_path / "server-token").exists()  # a token of one run is written nowhere


@pytest.mark.parametrize(
    ("name", "place"),
    [(None, ""), ("proj", "ws/proj"), ("proj@3", "ws/proj@3"), ("proj@v1:/a b/c", "ws/proj@v1/a%20b/c"),
     ("proj:/", "ws/proj/")],
)  # fmt: skip
def test_the_verb_takes_the_addresses_that_all_verbs_take(name: str | None, place: str) -> None:
    assert verb.place_of(name) == place


def test_a_workspace_that_is_not_there_is_refused_before_anything_listens(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ramet.apps.cli", "ui", "nothing", "--store", str(tmp_path), "--no-browser"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (3, "") and "no workspace 'nothing'" in done.stderr


class _Answered(io.BytesIO):
    pass


def test_a_server_that_runs_is_asked_for_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def opened(request: Any, timeout: float) -> _Answered:
        asked.append(request)
        return _Answered(json.dumps({"link": "code"}).encode())

    monkeypatch.setattr("urllib.request.urlopen", opened)
    assert verb.request_link("http://h:1", TOKEN, "ws/x") == "http://h:1/ui/#/ws/x?link=code"
    assert asked[0].full_url == "http://h:1/ui/link" and asked[0].get_header("Authorization") == f"Bearer {TOKEN}"


def test_a_server_that_cannot_be_reached_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(RametError, match="cannot reach"):
        verb.request_link(f"http://127.0.0.1:{port}", TOKEN, "")


def test_where_the_token_of_a_server_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAMET_TOKEN", raising=False)
    with pytest.raises(RametError, match="no token"):
        verb.token_of(None, str(tmp_path))
    assert not list(tmp_path.iterdir())
    for name in ("server-token", "mine"):
        (tmp_path / name).write_text(f"{name}-{TOKEN}")
        (tmp_path / name).chmod(0o600)
    assert verb.token_of(None, str(tmp_path)) == f"server-token-{TOKEN}"
    monkeypatch.setenv("RAMET_TOKEN", "told")
    assert verb.token_of(None, str(tmp_path)) == "told"
    assert verb.token_of(str(tmp_path / "mine"), str(tmp_path)) == f"mine-{TOKEN}"


def test_serve_has_the_page_with_the_option(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ramet.apps.cli", "serve", "--store", str(tmp_path), "--port", "0", "--ui"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = re.search(r"http://\S+:\d+", process.stderr.readline())
            assert url
            for _ in range(4_000):
                try:
                    assert httpx2.get(f"{url[0]}/ui/", timeout=200).status_code == 200
                    break
                except httpx2.TransportError:
                    time.sleep(0.05)
            link = verb.request_link(url[0], (tmp_path / "server-token").read_text().strip(), "")
            told = httpx2.post(f"{url[0]}/ui/redeem", content=link.partition("?link=")[2], timeout=200).json()
            assert told["token"] == (tmp_path / "server-token").read_text().strip()
            with pytest.raises(RametError, match="rejects the token"):
                verb.request_link(url[0], "x" * 20, "")
        finally:
            process.terminate()
            process.wait(200)


@pytest.mark.parametrize(
    ("env", "seen"),
    [({"DISPLAY": ":0"}, True), ({"WAYLAND_DISPLAY": "w"}, True), ({}, False)],
)
def test_a_browser_is_opened_on_a_display(
    env: dict[str, str], seen: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    verb.show_link("http://x/", True)
    verb.show_link("http://y/", False)
    assert opened == (["http://x/"] if seen else [])
    assert capsys.readouterr().out == "http://x/\nhttp://y/\n"


# ----------------------------------------------------------------------------------------------------- its parts


@node
@pytest.mark.parametrize("name", FILES)
def test_modules_are_javascript(name: str) -> None:
    assert NODE
    done = subprocess.run(
        [NODE, "--input-type=module", "--check"], input=(STATIC / name).read_bytes(), capture_output=True, timeout=200
    )
    assert done.returncode == 0, done.stderr.decode()


@node
def test_what_the_modules_compute(tmp_path: Path) -> None:
    assert NODE
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copytree(STATIC / "lib", tmp_path / "lib")
    shutil.copy(Path(__file__).parent / "parts.test.js", tmp_path)
    env = {**os.environ, "NODE_NO_WARNINGS": "1"}
    done = subprocess.run([NODE, "--test", "parts.test.js"], cwd=tmp_path, capture_output=True, timeout=200, env=env)
    assert done.returncode == 0, done.stdout.decode()[-6000:]
