"""Terminals over WebSocket: who gets one, what runs in it, and that it ends with its client."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.apps.server.harness import TOKEN, run
from tests.apps.ui.browser import serving as process
from tests.workspace.native.conftest import missing

from ramet import Store
from ramet.apps.server.app import App, create_app
from ramet.apps.server.settings import Bounds, ServerSettings
from ramet.apps.server.terminals import BEARER, KEYS, PROTOCOL, WINDOW

BOB = "token-of-bob-0123456789"
native = pytest.mark.skipif(bool(missing()), reason=f"no native programs here: {missing()}")


def bearer(token: str) -> str:
    return BEARER + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


class Talk:
    """A client of a terminal, over ASGI."""

    def __init__(self, app: App, path: str, token: str, headers: dict[str, str]) -> None:
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._out: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.shown = b""
        self.acknowledges = True
        raw, _, query = path.partition("?")
        scope = {
            "type": "websocket", "path": raw, "raw_path": raw.encode(), "query_string": query.encode(),
            "headers": [(b"host", b"test"), *((name.encode(), value.encode()) for name, value in headers.items())],
            "subprotocols": [PROTOCOL, *([bearer(token)] if token else [])], "client": ("127.0.0.1", 1),
            "extensions": {"websocket.http.response": {}},
        }  # fmt: skip
        self._in.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.ensure_future(app(scope, self._in.get, self._put))

    async def _put(self, message: Any) -> None:
        self._out.put_nowait(message)

    def say(self, **frame: Any) -> None:
        self._in.put_nowait({"type": "websocket.receive", "text": json.dumps(frame)})

    def type(self, keys: bytes) -> None:
        self._in.put_nowait({"type": "websocket.receive", "bytes": keys})

    def run(self, command: str) -> None:
        self.shown = b""
        self.say(type="run", command=command)

    async def leave(self) -> None:
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await self.task

    async def heard(self) -> dict[str, Any]:
        """The next frame, or the next event of the connection; output is collected and acknowledged."""
        while True:
            event = await self._out.get()
            if event["type"] != "websocket.send":
                return event
            if (data := event.get("bytes")) is None:
                found: dict[str, Any] = json.loads(event["text"])
                return found
            self.shown += data
            if self.acknowledges:
                self.say(type="shown", bytes=len(data))

    async def until(self, kind: str) -> dict[str, Any]:
        while (found := await self.heard())["type"] != kind:
            assert found["type"] in ("raw", "websocket.accept"), found
        return found

    async def result(self, command: str) -> dict[str, Any]:
        self.run(command)
        return await self.until("ended")

    async def shows(self, text: bytes) -> None:
        while text not in self.shown:
            event = await self._out.get()
            self.shown += event.get("bytes") or b""


Open = Callable[..., Talk]


@asynccontextmanager
async def serving(place: Path, *, is_native: bool = False, **settings: Any) -> AsyncIterator[tuple[App, Open]]:
    store = Store(str(place))
    if "p" not in store:
        store.create("p", native=is_native)
    app = create_app(store, ServerSettings(token=TOKEN, hosts=frozenset({"test"}), native=is_native, **settings))
    talks: list[Talk] = []

    def connect(path: str = "/v1/workspaces/p/terminal", token: str = TOKEN, **headers: str) -> Talk:
        talks.append(Talk(app, path, token, headers))
        return talks[-1]

    async with app.running():
        yield app, connect
        for talk in talks:
            await talk.leave()


def check(place: Path, test: Callable[[App, Open], Awaitable[None]], **options: Any) -> None:
    async def act() -> None:
        async with serving(place, **options) as (app, connect):
            await test(app, connect)

    run(act, 60)


# ------------------------------------------------------------------------------------------------ who gets in


def test_who_gets_no_terminal(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        wrong: list[tuple[int, str, str, dict[str, str]]] = [
            (401, "/v1/workspaces/p/terminal", "", {}),
            (401, "/v1/workspaces/p/terminal", "wrong-token-wrong-token", {}),
            (401, "/v1/workspaces/p/terminal", "", {"authorization": "Bearer wrong"}),
            (403, "/v1/workspaces/p/terminal", TOKEN, {"origin": "http://evil.example"}),
            (403, "/v1/workspaces/p/terminal", TOKEN, {"origin": "http://test:81"}),
            (403, "/v1/workspaces/p/terminal", TOKEN, {"origin": "null"}),
            (404, "/v1/workspaces/p/exec", TOKEN, {}),
            (404, "/ui/", TOKEN, {}),
        ]
        for status, path, token, headers in wrong:
            found = await connect(path, token, **headers).heard()
            assert (found["type"], found.get("status")) == ("websocket.http.response.start", status), (path, headers)

    check(tmp_path, test)


def test_who_gets_one(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        for token, headers in (
            (TOKEN, {"origin": "http://test"}), (TOKEN, {}), ("", {"authorization": f"Bearer {TOKEN}"}),
        ):  # fmt: skip
            talk = connect(token=token, **headers)
            accepted = await talk.heard()
            assert accepted == {"type": "websocket.accept", "subprotocol": PROTOCOL}, "never the token"
            assert (await talk.heard())["type"] == "ready"

    check(tmp_path, test)


def test_a_sandbox_has_terminals_for_its_owner_only(tmp_path: Path) -> None:
    ann = "token-of-ann-0123456789"

    async def test(app: App, connect: Open) -> None:
        headers = {"authorization": f"Bearer {ann}"}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as http:
            made = (await http.post("/v1/sandboxes", json={"workspace": "p"})).json()
            path = f"/v1/workspaces/{made['name']}/terminal"
            assert (await connect(path, token=BOB).until("problem"))["code"] == "workspace_not_found"
            talk = connect(path, token=ann)
            await talk.until("ready")
            assert (await talk.result("true"))["exit_code"] == 0
            await talk.leave()
            await http.post(f"/v1/sandboxes/{made['name']}/terminate", json={})

    check(tmp_path, test, principals={BOB: "bob", ann: "ann"})


def test_grants_hold(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        repository = app.workspaces.need_store().repository
        refused = connect(token=BOB)
        assert (await refused.until("problem"))["code"] == "workspace_not_found"
        assert (await refused.heard())["type"] == "websocket.close"
        repository.grants.put("p", {"ann": "readwrite", "bob": "readonly"}, "@server")
        assert (await connect(token=BOB).until("problem"))["code"] == "permission_denied"
        repository.grants.put("p", {"bob": "readwrite"}, "@server")
        talk = connect(token=BOB)
        await talk.until("ready")
        assert (await talk.result("echo hi"))["exit_code"] == 0
        record = list(app.workspaces.opened()[0].ws.history)[-1]
        assert (record.command, record.principal) == ("echo hi", "bob")
        repository.grants.put("p", {"ann": "readwrite"}, "@server")
        talk.run("echo again")
        assert (await talk.until("problem"))["code"] == "workspace_not_found", "a grant that ends is felt at once"

    store = Store(str(tmp_path))
    store.create("p")
    store.repository.grants.put("p", {"ann": "readwrite"}, "@server")
    check(tmp_path, test, principals={BOB: "bob"})


def test_their_number_is_limited(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        first, second = connect(), connect()
        await first.until("ready")
        assert (await second.until("problem"))["code"] == "limit_exceeded"
        await first.leave()
        await second.leave()
        assert app.api.terminals == 0
        await connect().until("ready")

    check(tmp_path, test, bounds=Bounds(terminals=1))


# --------------------------------------------------------------------------------------------------- commands


def test_commands_share_a_session_and_are_committed(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect("/v1/workspaces/p/terminal?session=me")
        assert await talk.until("ready") == {"type": "ready", "cwd": None, "native": False}
        ended = await talk.result("mkdir /src; cd /src; echo one > f; X=1")
        assert (ended["exit_code"], ended["cwd"]) == (0, "/src")
        assert (await talk.result("cat f; echo $X $TERM; false"))["exit_code"] == 1
        assert talk.shown == b"one\n1 xterm-256color\n"
        assert app.workspaces.need_store()["p"].head is not None
        assert (await connect("/v1/workspaces/p/terminal?session=me").until("ready"))["cwd"] == "/src"
        hosted = app.workspaces.find("p")
        assert hosted is not None and not hosted.users, "between commands others can open it"

    check(tmp_path, test)


def test_a_command_that_goes_on_runs_when_it_is_whole(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        talk.run("for x in 1 2; do")
        await talk.until("ready")
        assert await talk.heard() == {"type": "incomplete"}
        await talk.result("for x in 1 2; do\necho $x\ndone")
        assert talk.shown == b"1\n2\n"

    check(tmp_path, test)


def test_commands_of_ours_read_lines_until_the_end(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        talk.run("read x; echo got $x; cat")
        talk.type(b"one\n")
        await talk.until("ready")
        await talk.shows(b"got one\n")
        talk.type(b"two\n")
        await talk.shows(b"two\n")
        talk.say(type="end")
        assert (await talk.until("ended"))["exit_code"] == 0

    check(tmp_path, test)


def test_stop_ends_a_command(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk.run("echo begun; sleep 1000")
        await talk.shows(b"begun")
        talk.say(type="stop")
        assert (await talk.until("ended"))["exit_code"] == 130
        assert (await talk.result("echo next"))["exit_code"] == 0

    check(tmp_path, test)


def test_a_client_that_leaves_ends_its_command(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk.run("echo begun; sleep 1000")
        await talk.shows(b"begun")
        await talk.leave()
        hosted = app.workspaces.find("p")
        assert hosted is not None and not hosted.users
        assert list(hosted.ws.history)[-1].cancelled

    check(tmp_path, test)


def test_output_waits_for_a_client_that_draws_nothing(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk.acknowledges = False
        talk.run("yes")
        came = 0
        while came < WINDOW:
            came += len((await talk._out.get()).get("bytes") or b"")
        for _ in range(200):
            await asyncio.sleep(0)
        came += sum(len(talk._out.get_nowait().get("bytes") or b"") for _ in range(talk._out.qsize()))
        assert came <= 2 * WINDOW
        talk.say(type="shown", bytes=came)
        assert (await talk._out.get())["bytes"]
        talk.say(type="stop")
        await talk.until("ended")

    check(tmp_path, test)


def test_nothing_typed_for_a_while_closes_it(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk.run("sleep 1000")
        await talk.until("ended")
        closed = await talk.heard()
        assert "nothing was typed" in closed["reason"]
        hosted = app.workspaces.find("p")
        assert hosted is None or not hosted.users

    check(tmp_path, test, bounds=Bounds(terminal_idle_seconds=0.2))


@pytest.mark.parametrize(
    "frame", ["{", "[]", '{"type": "dance"}', '{"type": "run"}', '{"type": "resize", "rows": 0, "columns": 1}']
)
def test_what_is_no_frame_closes_it(frame: str, tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk._in.put_nowait({"type": "websocket.receive", "text": frame})
        assert (await talk.heard())["code"] == 1008

    check(tmp_path, test)


def test_keys_that_nothing_reads_close_it(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk.run("sleep 1000")
        for _ in range(2):
            talk.type(bytes(KEYS // 2 + 1))
        assert (await talk.heard())["code"] == 1009

    check(tmp_path, test)


def test_a_workspace_that_is_missing(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect("/v1/workspaces/none/terminal")
        assert (await talk.until("problem"))["code"] == "workspace_not_found"
        assert (await talk.heard())["type"] == "websocket.close"

    check(tmp_path, test)


@native
def test_ctrl_c_is_a_key_of_the_terminal_of_a_program(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        talk.run("python3 -c 'import time; print(1); time.sleep(1000)'")
        assert (await talk.until("ready"))["native"]
        assert await talk.heard() == {"type": "raw", "on": True}
        await talk.shows(b"1\r\n")
        talk.type(b"\x03")
        assert await talk.heard() == {"type": "raw", "on": False}
        assert (await talk.heard())["exit_code"] == 130
        assert b"KeyboardInterrupt" in talk.shown

    check(tmp_path, test, is_native=True)


@native
def test_the_window_of_a_program_changes(tmp_path: Path) -> None:
    async def test(app: App, connect: Open) -> None:
        talk = connect()
        await talk.until("ready")
        talk.say(type="run", command="python3 -q", rows=30, columns=100)
        await talk.shows(b">>> ")
        talk.say(type="resize", rows=41, columns=121)
        talk.type(b"import os; os.get_terminal_size(), os.isatty(0)\r")
        await talk.shows(b"(os.terminal_size(columns=121, lines=41), True)")
        talk.shown = talk.shown.partition(b"True)")[2]
        await talk.shows(b">>> ")  # until its prompt, the kernel takes the key for a line's and readline never sees it
        talk.type(b"\x04")
        assert (await talk.until("ended"))["exit_code"] == 0

    check(tmp_path, test, is_native=True)


def test_over_a_real_connection(tmp_path: Path) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    Store(str(tmp_path)).create("p")
    with process(tmp_path) as (url, token):
        place = f"ws{url.removeprefix('http')}/v1/workspaces/p/terminal"
        with pytest.raises(InvalidStatus) as refused, connect(place):
            pass
        assert refused.value.response.status_code == 401
        headers = {"authorization": f"Bearer {token}"}
        offered = [Subprotocol(PROTOCOL), Subprotocol(bearer(token))]
        with connect(place, subprotocols=offered, compression=None) as socket:
            assert socket.subprotocol == PROTOCOL
            assert json.loads(socket.recv())["type"] == "ready"
            socket.send(json.dumps({"type": "run", "command": "echo hi"}))
            assert socket.recv() == b"hi\n"
            assert json.loads(socket.recv())["exit_code"] == 0
            socket.send("x" * (2 << 20))
            with pytest.raises(Exception, match="1009"):
                socket.recv()
        with httpx2.Client(headers=headers, timeout=200) as http:
            status = http.get(f"{url}/v1/status").json()
        assert status["connections"]["open"] == 1, "the WebSocket is no longer counted"
