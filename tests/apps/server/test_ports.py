"""Ports of workspaces over HTTP: who reaches a program, that bodies stream, and that nothing of the server leaks."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.apps.server.harness import TOKEN, Process, run
from tests.apps.server.harness import serving as in_process
from tests.apps.ui.browser import serving
from tests.workspace.native.conftest import missing, need
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import ramet
from ramet import Store
from ramet.core.errors import RametError

PROGRAM = (Path(__file__).parents[2] / "support" / "echo_program.py").read_bytes()
W = "/v1/workspaces/app"
P = f"{W}/ports/8000"
SECONDS = 60.0
BIG = 30 << 20


class Running(NamedTuple):
    """A server whose workspace `app` runs the program at port 8000."""

    url: str
    token: str
    http: httpx2.Client

    @property
    def place(self) -> str:
        return self.url.removeprefix("http://")

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.http.get(f"{P}{path}", headers=headers)

    def told(self, path: str = "/", **headers: str) -> Any:
        return self.get(path, **headers).json()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    need("python3")
    place = tmp_path_factory.mktemp("server")
    Store(str(place)).create("app", native=True)
    with serving(place, "--native") as (url, token):
        headers = {"authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=SECONDS) as http:
            http.put(f"{W}/file?path=/echo.py", content=PROGRAM).raise_for_status()
            http.post(f"{W}/exec", json={"command": "python3 /echo.py 8000 > /log 2>&1 &"}).raise_for_status()
            command = "until curl -s localhost:8000 > /dev/null; do sleep 0.05; done"
            http.post(f"{W}/exec", json={"command": command}).raise_for_status()
            yield Running(url, token, http)


def test_what_listens_is_listed(server: Running) -> None:
    (found,) = server.http.get(f"{W}/ports").json()["ports"]
    assert (found["port"], found["address"]) == (8000, "127.0.0.1") and "echo.py 8000" in found["program"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_every_method_and_path_passes(server: Running, method: str) -> None:
    answer = server.http.request(method, f"{server.url}{P}/a%2Fb/%C3%A4?x=%20&y", content=b"abc")
    assert answer.status_code == 200 and answer.headers["content-security-policy"].startswith("sandbox ")
    told = answer.json()
    assert (told["method"], told["path"], told["size"]) == (method, "/a%2Fb/%C3%A4?x=%20&y", 3)


def test_nothing_of_the_server_reaches_the_program(server: Running) -> None:
    told = server.told("/", cookie="c=secret", referer=f"{server.url}/ui/", origin=server.url)
    assert server.token not in json.dumps(told) and "secret" not in json.dumps(told)
    names = {name for name, _ in told["headers"]}
    assert names.isdisjoint({"authorization", "cookie", "referer", "origin"})
    assert dict(told["headers"])["host"] == "localhost:8000"


def test_a_program_does_not_speak_for_the_origin(server: Running) -> None:
    answer = server.get("/bad")
    assert answer.headers["x-own"] == "kept" and answer.headers["cache-control"] == "no-store"
    policies = answer.headers.get_list("content-security-policy")
    assert any(one.startswith("sandbox ") and "same-origin" not in one for one in policies)
    gone = ("set-cookie", "clear-site-data", "access-control-allow-origin", "alt-svc", "strict-transport-security",
            "service-worker-allowed", "www-authenticate", "x-hop")  # fmt: skip
    assert not [name for name in gone if name in answer.headers]
    assert server.get("/sw.js", **{"service-worker": "script"}).status_code == 403


def test_redirects_stay_below_the_port(server: Running) -> None:
    for there in (f"{server.url}/v1/workspaces/app/exec", "/../../../exec", "http://localhost:8000/x"):
        location = server.get(f"/to?{there}").headers["location"]
        assert location.startswith(f"{P}/"), location
    bare = server.http.get(P, params={"x": "1"})
    assert (bare.status_code, bare.headers["location"]) == (308, f"{P}/?x=1")


def test_bodies_stream_in_both_directions(server: Running) -> None:
    def blocks() -> Iterator[bytes]:
        for _ in range(BIG >> 16):
            yield bytes(1 << 16)

    assert server.http.post(f"{P}/up", content=blocks()).json()["size"] == BIG
    with server.http.stream("GET", f"{P}/endless") as answer:
        events = answer.iter_raw()
        assert next(events).startswith(b"data: 0\n") and answer.headers["content-type"] == "text/event-stream"
    command = "until [ -e /ended ]; do sleep 0.05; done; cat /ended"
    done = server.http.post(f"{W}/exec", json={"command": command, "timeout_ms": int(SECONDS * 1000)}).json()
    assert done["stdout"] == "ended", "a client that goes ends the program's side"


def test_a_program_that_fails(server: Running) -> None:
    with pytest.raises(httpx2.TransportError):
        server.get("/cut")
    for path, told in (("/garbage", "gave no HTTP answer"),):
        answer = server.get(path)
        assert answer.status_code == 502 and told in answer.json()["cause"]
    answer = server.http.post(f"{P}/early", content=bytes(BIG))
    assert (answer.status_code, answer.content) == (413, b"too much")
    for port, status in (("9", 502), ("0", 400), ("65536", 400), ("x", 404)):
        answer = server.http.get(f"{W}/ports/{port}/")
        assert answer.status_code == status and answer.json()["code"], port


def test_who_may_not_pass(server: Running) -> None:
    for headers in ({}, {"authorization": "Bearer wrong-token-wrong-token"}):
        for method, path in (("GET", f"{P}/"), ("GET", f"{W}/ports"), ("POST", f"{W}/ports")):
            assert httpx2.request(method, f"{server.url}{path}", headers=headers).status_code == 401
    assert server.http.get("/v1/workspaces/none/ports/8000/").status_code == 404
    assert server.http.get("/v1/workspaces/none/ports").status_code == 404
    assert server.http.get(f"{P}/", headers={"host": "evil.example"}).status_code == 421


# ------------------------------------------------------------------------------------------------------ WebSockets


def socket_of(server: Running, path: str, *, offered: Any = None, **headers: str) -> Any:
    url = f"{server.url.replace('http', 'ws', 1)}{path}"
    given = {"authorization": f"Bearer {server.token}", **headers}
    return connect(url, additional_headers=given, subprotocols=offered, compression=None, open_timeout=SECONDS)


def test_a_websocket_of_a_program(server: Running) -> None:
    with socket_of(server, f"{P}/ws?x=1", offered=["chat", "ramet.bearer.eA"], cookie="c=secret") as talk:
        assert talk.subprotocol == "chat" and "set-cookie" not in talk.response.headers
        for data in ("text", b"bytes", b"x" * 40_000):
            talk.send(data)
            assert talk.recv(SECONDS) == data
        talk.send("headers")
        shown = talk.recv(SECONDS)
        assert server.token not in shown and "secret" not in shown and "ramet." not in shown
        talk.send("break off")
        with pytest.raises(ConnectionClosed):
            talk.recv(SECONDS)


def test_which_websockets_are_refused(server: Running) -> None:
    wrong = [
        (401, f"{P}/ws", {"authorization": "Bearer wrong-token-wrong-token"}),
        (403, f"{P}/ws", {"origin": "http://evil.example"}),
        (502, f"{W}/ports/9/ws", {}),
        (404, "/v1/workspaces/none/ports/8000/ws", {}),
        (400, P, {}),
    ]
    for status, path, headers in wrong:
        with pytest.raises(InvalidStatus) as refused, socket_of(server, path, **headers):
            pass
        assert refused.value.response.status_code == status, path


# -------------------------------------------------------------------------------------------------------- clients


def test_the_client_connects_and_forwards(server: Running) -> None:
    with ramet.connect(server.url, server.token) as store:
        ref = store["app"]
        assert [one.port for one in ref.ports()] == [8000]

        async def test() -> None:
            async with store.open("app") as ws:
                assert await ws.ports() == ref.ports()
                reader, writer = await ws.connect_port(8000)
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                writer.write_eof()
                assert (await reader.read()).startswith(b"HTTP/1.1 200")
                writer.close()
                with pytest.raises(ConnectionRefusedError, match="nothing listens at port 9 "):
                    await ws.connect_port(9)
                with pytest.raises(RametError, match="is not a port"):
                    await ws.connect_port(0)
            failures: list[Exception] = []
            async with ref.forward(8000) as forward, ref.forward(9, failed=failures.append) as dead:
                answers = await asyncio.gather(*(asyncio.to_thread(asked, forward.port) for _ in range(8)))
                assert answers == [BIG] * 8
                with pytest.raises(httpx2.TransportError):
                    await asyncio.to_thread(asked, dead.port)
            assert "nothing listens at port 9 " in str(failures[0])

        run(test)


def asked(port: int) -> int:
    """Send much, and return how much has arrived."""
    found: int = httpx2.post(f"http://127.0.0.1:{port}/up", content=bytes(BIG), timeout=SECONDS).json()["size"]
    return found


# --------------------------------------------------------------------------------------- an origin of its own


def test_a_browser_is_let_in_once_at_an_origin_of_its_own(server: Running) -> None:
    url = server.http.post(f"{W}/ports", json={"port": 8000}).json()["url"]
    host = url.split("/")[2]
    assert host.endswith(f".localhost:{server.place.rpartition(':')[2]}")

    def visit(path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{server.url}{path}", headers={"host": host, **headers}, timeout=SECONDS)

    assert visit("/").status_code == 401
    opened = visit(url.partition(host)[2])
    cookie = opened.headers["set-cookie"]
    assert opened.status_code == 303 and opened.headers["location"] == "/"
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Domain" not in cookie
    assert visit(url.partition(host)[2]).status_code == 401, "the link works once"
    key = cookie.partition(";")[0]
    told = visit("/v1/status?x", cookie=f"{key}; theirs=1").json()
    headers = dict(told["headers"])
    assert told["path"] == "/v1/status?x", "no route of the server is there"
    assert headers["cookie"] == "theirs=1" and key.partition("=")[2] not in json.dumps(told)
    bad = visit("/bad", cookie=key)
    assert bad.headers.get_list("set-cookie") == ["a=b; Path=/"] and "sandbox" not in str(bad.headers)
    assert visit("/", cookie=f"{key}x").status_code == 401
    assert visit("/", cookie=key, host=f"p{'0' * 24}.localhost").status_code == 401, "another origin"
    assert visit("/", authorization=f"Bearer {server.token}").status_code == 401, "the token opens no origin"
    port = int(server.place.rpartition(":")[2])
    for origin, fine in ((f"http://{host}", True), ("http://evil.example", False), (server.url, False)):
        link = socket.create_connection(("127.0.0.1", port), SECONDS)
        try:
            with connect(f"ws://{host}/ws", sock=link, origin=origin, additional_headers={"cookie": key}) as talk:  # type: ignore[arg-type]
                talk.send("headers")
                assert '"http://localhost:8000"' in str(talk.recv(SECONDS)) and fine
        except InvalidStatus as refused:
            assert refused.response.status_code == 403 and not fine


def test_no_link_is_kept(server: Running) -> None:
    key = {"idempotency-key": "once"}
    made = [server.http.post(f"{W}/ports", json={"port": 8000}, headers=key).json()["url"] for _ in range(2)]
    assert made[0] != made[1]


def test_no_origin_for_what_does_not_listen(server: Running) -> None:
    assert server.http.post(f"{W}/ports", json={"port": 9}).status_code == 502
    assert server.http.post(f"{W}/ports", json={"port": 70000}).status_code == 400


# ------------------------------------------------------------------------------------------------------- grants

ANN, EVE = "token-of-ann-0123456789", "token-of-eve-0123456789"


def test_grants_decide_who_reaches_ports(tmp_path: Path) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")

    async def test() -> None:
        store = Store(str(tmp_path))
        store.create("app", native=True)
        store.repository.grants.put("app", {"ann": "readwrite", "eve": "readonly"}, "@server")
        principals = {ANN: "ann", EVE: "eve"}
        hosts = frozenset({"test", "localhost"})
        async with in_process(store, principals=principals, native=True, hosts=hosts) as (http, app):

            async def ask(token: str, method: str = "GET", path: str = f"{P}/", **options: Any) -> httpx2.Response:
                headers = {"authorization": f"Bearer {token}", **options.pop("headers", {})}
                return await http.request(method, path, headers=headers, **options)

            assert "not open" in (await ask(ANN)).json()["cause"], "a request opens no workspace"
            await ask(ANN, "PUT", f"{W}/file?path=/echo.py", content=PROGRAM)
            await ask(ANN, "POST", f"{W}/exec", json={"command": "python3 /echo.py 8000 > /log 2>&1 &"})
            hosted = app.workspaces.find("app")
            assert hosted is not None
            async with asyncio.timeout(SECONDS):
                while not hosted.ws.ports():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert not hosted.late(0.0), "a program listens"
            assert (await ask(ANN)).status_code == 200
            assert (await ask(EVE)).status_code == 403
            assert (await ask(EVE, path=f"{W}/ports")).status_code == 200
            assert (await ask(EVE, "POST", f"{W}/ports", json={"port": 8000})).status_code == 403
            assert (await ask(TOKEN)).status_code in (200, 404)
            made = await ask(ANN, "POST", f"{W}/ports", json={"port": 8000}, headers={"host": "localhost:8750"})
            host = made.json()["url"].split("/")[2]
            opened = await http.get(made.json()["url"].partition(host)[2], headers={"host": host})
            cookie = {"host": host, "cookie": opened.headers["set-cookie"].partition(";")[0]}
            assert (await http.get("/", headers=cookie)).status_code == 200
            far = await ask(ANN, "POST", f"{W}/ports", json={"port": 8000})
            assert (far.status_code, far.json()["code"]) == (400, "unsupported"), "not reached by loopback"
            store.repository.grants.put("app", {"eve": "readwrite"}, "@server")
            assert (await ask(ANN)).status_code == 404
            assert (await http.get("/", headers=cookie)).status_code == 404, "a grant that ends is felt at once"
            assert (await ask(EVE)).status_code == 200

    run(test)


def test_a_server_at_a_unix_socket_makes_no_links(tmp_path: Path) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    Store(str(tmp_path / "store")).create("app", native=True)
    running = Process(tmp_path, "--native")
    try:
        with running.client() as http:
            http.put(f"{W}/file?path=/echo.py", content=PROGRAM).raise_for_status()
            command = "python3 /echo.py 8000 > /log 2>&1 & until curl -s localhost:8000 > /dev/null; do :; done"
            http.post(f"{W}/exec", json={"command": command}).raise_for_status()
            refused = http.post(f"{W}/ports", json={"port": 8000})
            assert (refused.status_code, refused.json()["code"]) == (400, "unsupported")
            assert http.get(f"{P}/x").json()["path"] == "/x"
            head = http.head(f"{P}/x")
            assert head.status_code == 200 and int(head.headers["content-length"]) > 0 and head.content == b""
        with ramet.connect(f"unix:{running.socket}") as store:

            async def test() -> None:
                async with store["app"].forward(8000) as forward:
                    assert await asyncio.to_thread(asked, forward.port) == BIG

            run(test)
    finally:
        running.stop()


def test_a_workspace_without_real_programs(tmp_path: Path) -> None:
    async def test() -> None:
        async with in_process(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "app"})
            await http.post(f"{W}/exec", json={"command": "true"})
            assert (await http.get(f"{W}/ports")).json() == {"ports": []}
            answer = await http.get(f"{P}/")
            assert (answer.status_code, answer.json()["code"]) == (400, "native_unavailable")

    run(test)


def test_a_sandbox_is_its_owners(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(str(tmp_path))
        store.create("app")
        async with in_process(store, principals={ANN: "ann", EVE: "eve"}) as (http, _):
            ann, eve = ({"authorization": f"Bearer {token}"} for token in (ANN, EVE))
            made = (await http.post("/v1/sandboxes", json={"workspace": "app"}, headers=ann)).json()
            url = f"/v1/workspaces/{made['name']}/ports"
            assert (await http.get(url, headers=ann)).status_code == 200
            assert (await http.get(url, headers=eve)).status_code == 404
            assert (await http.get(f"{url}/8000/", headers=eve)).status_code == 404
            assert (await http.get(f"{url}/8000/", headers=ann)).json()["code"] == "native_unavailable"
            await http.post(f"/v1/sandboxes/{made['name']}/terminate", json={}, headers=ann)

    run(test)


def test_many_connections_at_once(server: Running) -> None:
    found: list[int] = []

    def ask() -> None:
        found.append(httpx2.get(f"{server.url}{P}/", headers=dict(server.http.headers), timeout=SECONDS).status_code)

    threads = [threading.Thread(target=ask) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 32
