"""HTTPS of native programs that Ramet reads: rules about methods and paths hold, and nothing is smuggled."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.native.images import make_root
from tests.support.tls import TestAuthority
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import box_directory

from ramet import Store
from ramet.native.options import Native
from ramet.network.authority import OWN_BUNDLE
from ramet.network.resolver import Resolver
from ramet.workspace.workspace import Workspace

SECRET = "hunter2-very-secret"
NAMES = {"fine.example": ["127.0.0.1"], "other.example": ["127.0.0.1"], "bad.example": ["127.0.0.1"]}


async def lookup(host: str, port: int) -> list[str]:
    if host[0].isdigit():
        return [host]
    if host not in NAMES:
        raise OSError("unknown")
    return NAMES[host]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def web(authority: TestAuthority) -> Iterator[Web]:
    with web_fake(authority.server(["fine.example", "other.example"])) as running:
        yield running


def run(native: Native, network: Any, act: Callable[[Workspace], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        async with Workspace(native=native, network=network) as ws:
            assert ws.door is not None
            ws.door.resolver = Resolver(lookup)
            return await act(ws)

    return asyncio.run(inside())


def policy(authority: TestAuthority, port: int, **more: Any) -> dict[str, Any]:
    allow = [{"host": "fine.example", "port": port, "private": True, "methods": ["GET", "POST"], "path": "/echo"}]
    return {"allow": allow, "intercept": True, "authorities": str(authority.path), **more}


async def log_of(ws: Workspace) -> list[Any]:
    return [json.loads(row) for row in (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()]


PYTHON = """python3 -c 'import sys, urllib.request as r, urllib.error as e
for url in sys.argv[1:]:
    try:
        print(r.urlopen(url, timeout=20).read().decode())
    except e.HTTPError as error:
        print(error.code, error.read().decode(), end="")'"""


def test_methods_paths_and_credentials_hold_over_https(
    native: Native, authority: TestAuthority, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    keys = {"fine.example": {"header": "Authorization", "prefix": "Bearer ", "from": "env:TOKEN"}}

    async def act(ws: Workspace) -> None:
        fine = f"https://fine.example:{web.port}"
        before = len(web.seen)
        done = await ws.execute(f"{PYTHON} {fine}/echo?q=1 {fine}/hello https://other.example:{web.port}/echo; env")
        assert '"Authorization": "Bearer ' + "*" * len(SECRET) in done.text and SECRET not in done.text, done
        refused = [line for line in done.text.splitlines() if line.startswith("403")]
        assert len(refused) == 2 and all("the network policy refuses" in line for line in refused)
        assert "ask its owner" in refused[0] and f"{fine}/hello" in refused[0]
        ((_, path, headers, _),) = web.seen[before:]
        assert (path, headers["Authorization"]) == ("/echo?q=1", f"Bearer {SECRET}")
        rows = await log_of(ws)
        assert [(row["scheme"], row["method"], row["host"], row["path"], row["verdict"]) for row in rows] == [
            ("https", "GET", "fine.example", "/echo", "allow"), ("https", "GET", "fine.example", "/hello", "deny"),
            ("https", "GET", "other.example", "/echo", "deny"),
        ]  # fmt: skip
        (record, *_) = ws.history
        assert record.network_requests == 3 and SECRET not in json.dumps([one.as_dict() for one in ws.history])

    run(native, policy(authority, web.port, credentials=keys), act)


def test_it_works_on_the_loop_of_a_server(native: Native, authority: TestAuthority, web: Web) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def act() -> None:
        async with Workspace(native=native, network=policy(authority, web.port)) as ws:
            assert ws.door is not None
            ws.door.resolver = Resolver(lookup)
            fine = f"https://fine.example:{web.port}"
            done = await ws.execute(f"{PYTHON} {fine}/echo {fine}/hello")
            assert '"path": "/echo"' in done.text and "403 ramet: the network policy refuses" in done.text, done

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(act())


def test_the_loopback_of_the_machine_is_the_one_that_a_rule_names(
    native: Native, authority: TestAuthority, web: Web
) -> None:
    """A rule about one path of an address makes it the machine's, and is held; other ports are those of the box."""
    rules = {"allow": [f"GET http://127.0.0.1:{web.port}/hello"], "intercept": True}
    code = f"""
import urllib.request as r
for url in ("http://127.0.0.1:{web.port}/hello", "http://127.0.0.1:{web.port}/echo", "http://127.0.0.1:1/"):
    try:
        r.urlopen(url, timeout=20)
    except OSError as error:
        print(error.code, error.read().decode(), end="")
"""

    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/try.py", code)
        done = await ws.execute("python3 /try.py")
        first, second, third = done.text.splitlines()
        assert first.startswith("502") and second.startswith("403") and third.startswith("502"), done
        log = [(row["path"], row["verdict"], row["error"]) for row in await log_of(ws)]
        assert [row[:2] for row in log] == [("/hello", "allow"), ("/echo", "deny")], log  # the server speaks TLS

    run(native, rules, act)


def test_a_body_streams_both_ways(native: Native, authority: TestAuthority, web: Web) -> None:
    code = """
import http.client, os, ssl, sys, urllib.parse, base64
at = urllib.parse.urlsplit(os.environ["https_proxy"])
line = http.client.HTTPSConnection(at.hostname, at.port, timeout=20)
token = base64.b64encode(f"{at.username}:{at.password}".encode()).decode()
line.set_tunnel("fine.example", int(sys.argv[1]), {"Proxy-Authorization": f"Basic {token}"})
for at in range(3):
    line.request("POST", "/echo", iter([b"x" * 100_000] * 5), {"X-At": str(at)}, encode_chunked=True)
    answer = line.getresponse()
    print(answer.status, answer.read().count(b"x"))
"""

    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/try.py", code)
        done = await ws.execute(f"python3 /try.py {web.port}")
        assert done.text == "200 500000\n" * 3, done  # one connection, three requests
        assert len([row for row in await log_of(ws) if row["bytes_sent"] == 500_000]) == 3

    run(native, policy(authority, web.port), act)


def test_a_host_that_is_not_listed_gets_a_tunnel(native: Native, authority: TestAuthority, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        done = await ws.execute(f"{PYTHON} https://fine.example:{web.port}/hello")
        assert done.text == "hello\n\n", done  # the box trusts the same authorities
        assert [row["method"] for row in await log_of(ws)] == ["CONNECT"]

    rules = {
        "allow": [{"host": "fine.example", "private": True}], "intercept": ["other.example"],
        "authorities": str(authority.path),
    }  # fmt: skip
    run(native, rules, act)


def test_a_certificate_that_nobody_vouches_for_is_an_error(
    native: Native, authority: TestAuthority, web: Web, tmp_path: Path
) -> None:
    stranger = TestAuthority(tmp_path)

    async def act(ws: Workspace) -> None:
        line = f"/usr/./bin/curl -sS https://fine.example:{unknown.port}/echo https://bad.example:{web.port}/echo"
        done = await ws.execute(line)
        first, second = done.text.splitlines()
        assert first == (
            "ramet: the certificate of fine.example cannot be verified: unable to get local issuer certificate"
        ), done
        assert "the certificate of bad.example cannot be verified: Hostname mismatch" in second
        assert [row["status"] for row in await log_of(ws)] == [0, 0] and not unknown.seen

    hosts = [{"host": host, "private": True} for host in ("fine.example", "bad.example")]
    with web_fake(stranger.server(["fine.example"])) as unknown:
        run(native, {"allow": hosts, "intercept": True, "authorities": str(authority.path)}, act)


CLIENT = """
import base64, os, socket, ssl, sys, urllib.parse
at = urllib.parse.urlsplit(os.environ["https_proxy"])
token = base64.b64encode(f"{at.username}:{at.password}".encode()).decode()
port = sys.argv[1]

def connected(name):
    raw = socket.create_connection((at.hostname, at.port), timeout=20)
    auth = f"Proxy-Authorization: Basic {token}\\r\\n"
    raw.sendall(f"CONNECT {name}:{port} HTTP/1.1\\r\\nHost: x\\r\\n{auth}\\r\\n".encode())
    head = raw.recv(4096)
    assert head.startswith(b"HTTP/1.1 200"), head
    return raw

def line(name="fine.example", sni="fine.example"):
    raw = connected(name)
    context = ssl.create_default_context()
    context.check_hostname = sni is not None
    context.set_alpn_protocols(["h2", "http/1.1"])
    made = context.wrap_socket(raw, server_hostname=sni)
    assert made.selected_alpn_protocol() == "http/1.1"
    return made
"""
SMUGGLED = (
    CLIENT
    + """
def ask(text):
    made = line()
    made.sendall(text.replace("PORT", port).encode())
    got = b""
    while block := made.recv(65536):
        got += block
    print(got.split(b"\\r\\n")[0].decode(), got.count(b"HTTP/1.1 "))

HOST = "Host: fine.example:PORT\\r\\n"
GET = "GET /echo HTTP/1.1\\r\\n" + HOST
END = "Connection: close\\r\\n\\r\\n"
POST = "POST /echo HTTP/1.1\\r\\n" + HOST
INNER = "GET /hello HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
for text in (
    GET + END,
    "GET /echo HTTP/1.1\\r\\nHost: other.example:PORT\\r\\n" + END,
    "GET /echo HTTP/1.1\\r\\nHost: fine.example\\r\\n" + END,
    "GET /echo HTTP/1.1\\r\\n" + HOST + HOST + END,
    "GET /echo HTTP/1.1\\r\\n" + END,
    "GET https://other.example:PORT/echo HTTP/1.1\\r\\n" + HOST + END,
    "GET http://fine.example:PORT/echo HTTP/1.1\\r\\n" + HOST + END,
    "GET https://fine.example:PORT/echo HTTP/1.1\\r\\n" + HOST + END,
    POST + f"Content-Length: {len(INNER)}\\r\\nTransfer-Encoding: chunked\\r\\n" + END + "0\\r\\n\\r\\n" + INNER,
    POST + "Content-Length: 5\\r\\nContent-Length: 5\\r\\n" + END + "hello",
    POST + "Content-Length: 5, 5\\r\\n" + END + "hello",
    POST + "Content-Length: +5\\r\\n" + END + "hello",
    POST + "Transfer-Encoding: chunked\\r\\nTransfer-Encoding: chunked\\r\\n" + END + "0\\r\\n\\r\\n",
    POST + "Transfer-Encoding: xchunked\\r\\n" + END + "0\\r\\n\\r\\n",
    POST + "Transfer-Encoding : chunked\\r\\n" + END + "0\\r\\n\\r\\n",
    "POST /echo HTTP/1.0\\r\\n" + HOST + "Transfer-Encoding: chunked\\r\\n" + END + "0\\r\\n\\r\\n",
    GET + "X: a\\r\\n b\\r\\n" + END,
    GET + "X: a\\rY: b\\r\\n" + END,
    GET + "X: a\\nHost: other.example\\r\\n" + END,
    GET.replace("\\r\\n", "\\n") + END,
    "GET //other.example/echo HTTP/1.1\\r\\n" + HOST + END,
    "GET /echo\\\\..\\\\hello HTTP/1.1\\r\\n" + HOST + END,
    "GET /echo/../hello HTTP/1.1\\r\\n" + HOST + END,
    "GET /echo/%2e%2e/hello HTTP/1.1\\r\\n" + HOST + END,
    "CONNECT fine.example:PORT HTTP/1.1\\r\\n" + HOST + END,
    "OPTIONS * HTTP/1.1\\r\\n" + HOST + END,
    "PUT /echo HTTP/1.1\\r\\n" + HOST + END,
    "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n",
):
    ask(text)
try:
    line(sni="other.example")
    print("SNI passed")
except ssl.SSLError as error:
    print("no SNI")
for text in (
    "GET /echo HTTP/1.1\\r\\n" + HOST + END,
    "GET /hello HTTP/1.1\\r\\n" + HOST + END,
    "GET /echo HTTP/1.1\\r\\nHost: other.example:PORT\\r\\n" + END,
    "SSH-2.0-client\\r\\n",
):
    raw = connected("fine.example")
    raw.sendall(text.replace("PORT", port).encode())
    print(raw.recv(4096).split(b"\\r\\n")[0])
"""
)


def test_what_can_be_read_in_two_ways_is_refused(native: Native, authority: TestAuthority, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/try.py", SMUGGLED)
        before = len(web.seen)
        done = await ws.execute(f"python3 /try.py {web.port}")
        *rows, sni, echo, hello, other, ssh = done.text.splitlines()
        assert done.exit_code == 0, done
        assert [row.split(" ")[1] for row in rows] == [
            "200", "421", "421", "400", "400", "421", "421", "200", "400", "400", "400", "400", "400", "400", "400",
            "400", "400", "400", "400", "400", "403", "421", "403", "403", "421", "421", "403", "400",
        ], done  # fmt: skip
        assert all(row.endswith(" 1") for row in rows), "one request has one answer"
        assert sni == "no SNI"
        assert ("502" in echo, "403" in hello, "421" in other, "400" in ssh) == (True,) * 4  # the server speaks TLS
        assert [path for _, path, _, _ in web.seen[before:]] == ["/echo", "/echo"]
        refused = [row["error"] for row in await log_of(ws) if row["verdict"] == "deny"]
        for why in ("for another host", "a certificate of another host", "neither TLS nor HTTP"):
            assert any(why in error for error in refused), (why, refused)

    run(native, policy(authority, web.port), act)


def test_a_machine_without_the_usual_bundle(
    native: Native, authority: TestAuthority, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ramet.network.authority.SYSTEM_BUNDLE", "/etc/ssl/there-is-none")

    async def act(ws: Workspace) -> None:
        done = await ws.execute(f"{PYTHON} https://fine.example:{web.port}/echo; /usr/./bin/env | grep CERT_FILE")
        assert '"method": "GET"' in done.text and f"={OWN_BUNDLE}\n" in done.text, done
        curl = await ws.execute(f"/usr/./bin/curl -sS https://fine.example:{web.port}/echo")
        assert '"method": "GET"' in curl.text, curl

    run(native, policy(authority, web.port), act)


def files_with(folder: Path, text: str) -> list[Path]:
    found = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return [file for file in found if text.encode() in file.read_bytes()]


def test_the_key_is_nowhere_and_the_certificate_only_inside(
    native: Native, authority: TestAuthority, web: Web, tmp_path: Path
) -> None:
    async def act() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("w")
        with box_directory() as place:
            options = Native(directory=place)
            async with store.open("w", native=options, network=policy(authority, web.port)) as ws:
                assert ws.door is not None
                ws.door.resolver = Resolver(lookup)
                fine = await ws.execute(f"{PYTHON} https://fine.example:{web.port}/echo")
                assert '"method": "GET"' in fine.text, fine
                code = "import os; print(open(os.environ['SSL_CERT_FILE']).read())"
                inside = (await ws.execute(f'python3 -c "{code}"')).text
                assert authority.path.read_text() in inside and "PRIVATE KEY" not in inside
                ours = inside.rstrip().rpartition("-----BEGIN")[2]
                assert (
                    await ws.execute('python3 -c \'import os; open(os.environ["SSL_CERT_FILE"], "a")\'')
                ).exit_code == 1
                await ws.commit()
                ws.snapshot(str(tmp_path / "w.tar"))
                assert not files_with(Path(place), "PRIVATE KEY")
        assert not files_with(tmp_path, "PRIVATE KEY") and not files_with(tmp_path, ours)

    asyncio.run(act())


def test_programs_of_an_image_trust_it_too(native: Native, authority: TestAuthority) -> None:
    if shutil.which("ldd") is None:
        pytest.skip("ldd is not installed")
    with box_directory() as place:
        os.chmod(place, 0o755)
        image = str(make_root(Path(place, "root")))

        async def act(ws: Workspace) -> None:
            found = await ws.execute('cat "$SSL_CERT_FILE"', native=True)
            assert authority.path.read_text() in found.text, found

        run(replace(native, image=image), policy(authority, 1), act)


BY_SOCKS = """
import os, socket, ssl, sys, urllib.parse
at, port = urllib.parse.urlsplit(os.environ["SOCKS_PROXY"]), int(sys.argv[1])
user, word, name = at.username.encode(), at.password.encode(), b"fine.example"

def ask(path, secure=True):
    made = socket.create_connection((at.hostname, at.port), timeout=20)
    made.sendall(b"\\x05\\x01\\x02")
    made.recv(2)
    made.sendall(bytes([1, len(user)]) + user + bytes([len(word)]) + word)
    made.recv(2)
    made.sendall(bytes([5, 1, 0, 3, len(name)]) + name + port.to_bytes(2, "big"))
    print(made.recv(10)[1], end=" ")
    if secure:
        made = ssl.create_default_context().wrap_socket(made, server_hostname="fine.example")
    made.sendall(f"GET {path} HTTP/1.1\\r\\nHost: fine.example:{port}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    print(made.recv(4096).split(b"\\r\\n")[0].decode())

ask("/echo")
ask("/hello")
ask("/hello", secure=False)
"""


def test_socks_is_no_way_around(native: Native, authority: TestAuthority, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/try.py", BY_SOCKS)
        before = len(web.seen)
        done = await ws.execute(f"python3 /try.py {web.port}")
        wanted = ["0 HTTP/1.1 200 OK", "0 HTTP/1.1 403 Forbidden", "0 HTTP/1.1 403 Forbidden"]
        assert done.text.splitlines() == wanted, done
        assert [path for _, path, _, _ in web.seen[before:]] == ["/echo"]

    run(native, policy(authority, web.port), act)


SOCKET = (
    CLIENT
    + """
ASK = "Host: fine.example:PORT\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n"

def begin(path, upgrade):
    made = line()
    text = f"GET {path} HTTP/1.1\\r\\n{ASK}Connection: keep-alive, Upgrade\\r\\nUpgrade: {upgrade}\\r\\n\\r\\n"
    made.sendall(text.replace("PORT", port).encode())
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        head += made.recv(65536)
    head, _, rest = head.partition(b"\\r\\n\\r\\n")
    print(head.split(b"\\r\\n")[0].decode())
    return made, rest

def frame(made, rest):
    while len(rest) < 2 or len(rest) < 2 + rest[1]:
        rest += made.recv(65536)
    size = 2 + rest[1]
    print(rest[2:size].decode())
    return rest[size:]

made, rest = begin("/echo", "websocket")
rest = frame(made, rest)
for text in (b"one", b"two"):
    made.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
    rest = frame(made, rest)
made.close()
begin("/hello", "websocket")
begin("/echo", "h2c")
"""
)


def test_a_websocket_passes_and_no_other_protocol(
    native: Native, authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = pytest.importorskip("websockets.sync.server")
    monkeypatch.setenv("TOKEN", SECRET)
    seen: list[str | None] = []

    def answer(connection: Any) -> None:
        seen.append(connection.request.headers.get("Authorization"))
        connection.send(f"your key is {SECRET}")
        for said in connection:
            connection.send(said.decode().upper() if isinstance(said, bytes) else said.upper())

    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/try.py", SOCKET)
        done = await ws.execute(f"python3 /try.py {port}")
        assert done.text.splitlines() == [
            "HTTP/1.1 101 Switching Protocols", f"your key is {'*' * len(SECRET)}", "ONE", "TWO",
            "HTTP/1.1 403 Forbidden", "HTTP/1.1 426 Upgrade Required",
        ], done  # fmt: skip
        assert seen == [f"Bearer {SECRET}"]
        log = await log_of(ws)
        assert [(row["path"], row["status"], row["verdict"]) for row in log] == [
            ("/echo", 101, "allow"), ("/hello", 0, "deny"), ("/echo", 426, "allow"),
        ]  # fmt: skip
        assert log[0]["bytes_sent"] > 10 and log[0]["bytes_received"] > 10 and not log[0]["error"]

    keys = {"fine.example": {"header": "Authorization", "prefix": "Bearer ", "from": "env:TOKEN"}}
    with sync.serve(answer, "127.0.0.1", 0, ssl=authority.server(["fine.example"])) as server:
        port = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        run(native, policy(authority, port, credentials=keys), act)
        server.shutdown()
        thread.join()
