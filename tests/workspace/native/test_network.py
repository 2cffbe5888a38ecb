"""Native programs and the network: what the policy allows passes through the proxy of the box, nothing else leaves."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers import certificate
from tests.support.web_fake import Web, web_fake

from ramet.native.options import Native
from ramet.network.resolver import Resolver
from ramet.workspace.workspace import Workspace

SECRET = "hunter2-very-secret"
NAMES = {"fine.example": ["127.0.0.1"], "other.example": ["127.0.0.1"], "metadata.example": ["169.254.169.254"]}


async def lookup(host: str, port: int) -> list[str]:
    if host[0].isdigit():
        return [host]
    if host not in NAMES:
        raise OSError("unknown")
    return NAMES[host]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


def run(native: Native, network: Any, act: Callable[[Workspace], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        async with Workspace(native=native, network=network) as ws:
            if ws.door is not None:
                ws.door.resolver = Resolver(lookup)
            return await act(ws)

    return asyncio.run(inside())


PYTHON = (
    "python3 -c 'import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=9).read().decode())'"
)


def test_without_a_policy_nothing_answers(native: Native, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        done = await ws.execute("python3 -c 'import os, socket\nprint(os.environ.get(\"http_proxy\"))\n"
                                "print(socket.socket().connect_ex((\"127.0.0.1\", 3128)))'")  # fmt: skip
        assert done.text == "None\n111\n"

    run(native, None, act)


def test_a_program_reaches_what_is_allowed_and_nothing_else(native: Native, web: Web) -> None:
    rules = [{"host": "fine.example", "port": web.port, "private": True, "path": "/hello"}]

    async def act(ws: Workspace) -> None:
        fine = f"http://fine.example:{web.port}"
        assert (await ws.execute(f"{PYTHON} {fine}/hello", agent_id="bot")).text == "hello\n"
        before = len(web.seen)
        for url in (
            f"{fine}/nope",
            f"http://other.example:{web.port}/hello",
            "http://metadata.example/",
            "http://fine.example:1/",
        ):
            done = await ws.execute(f"{PYTHON} {url}")
            assert done.exit_code == 1 and "403" in done.error_text, url
        # What does not ask the proxy reaches nothing: the box has no way out.
        direct = f"NO_PROXY='*' no_proxy='*' {PYTHON} http://127.0.0.1:{web.port}/hello"
        assert (await ws.execute(direct)).exit_code == 1
        assert len(web.seen) == before
        log = [json.loads(row) for row in (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()]
        assert [(row["client"], row["agent_id"], row["verdict"], row["status"]) for row in log[:2]] == [
            ("native", "bot", "allow", 200), ("native", "default", "deny", 0),
        ]  # fmt: skip
        assert next(iter(ws.history)).network_requests == 1

    run(native, {"allow": rules}, act)


SMUGGLED = """
import os, socket, sys, urllib.parse
at = urllib.parse.urlsplit(os.environ["http_proxy"])
import base64
token = base64.b64encode(f"{at.username}:{at.password}".encode()).decode()
def ask(text, auth=True):
    line = socket.create_connection((at.hostname, at.port))
    if auth:
        text = text.replace("\\n\\n", f"\\nProxy-Authorization: Basic {token}\\n\\n", 1)
    line.sendall(text.replace("\\n", "\\r\\n").encode())
    line.settimeout(9)
    print(line.recv(4096).split(b"\\r\\n")[0].decode())
port = sys.argv[1]
ask(f"GET http://fine.example:{port}/hello HTTP/1.1\\nHost: x\\n\\n", auth=False)
ask(f"GET http://fine.example:{port}/echo HTTP/1.1\\nHost: other.example\\n\\n")
ask(f"GET /hello HTTP/1.1\\nHost: fine.example:{port}\\n\\n")
ask(f"GET http://fine.example:{port}@other.example/ HTTP/1.1\\nHost: x\\n\\n")
ask(f"GET http://2130706433:{port}/hello HTTP/1.1\\nHost: x\\n\\n")
ask("CONNECT fine.example:22 HTTP/1.1\\nHost: x\\n\\n")
ask(f"CONNECT other.example:{port} HTTP/1.1\\nHost: x\\n\\n")
ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\\nHost: x\\n\\n")
ask("CONNECT fine.example HTTP/1.1\\nHost: x\\n\\n")
ask(f"CONNECT fine.example:{port} HTTP/1.1\\nHost: x\\n\\n")
ask("nonsense\\n\\n")
"""


def test_a_client_that_tries_everything_reaches_one_host(native: Native, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/try.py", SMUGGLED)
        before = len(web.seen)
        done = await ws.execute(f"python3 /try.py {web.port}")
        assert [line.split(" ")[1] for line in done.text.splitlines()] == [
            "407", "200", "400", "403", "502", "403", "403", "502", "400", "200", "400",
        ], done  # loopback is that of the box, where nothing listens  # fmt: skip
        assert [(path, headers["Host"]) for _, path, headers, _ in web.seen[before:]] == [
            ("/echo", f"fine.example:{web.port}")
        ]
        assert "Proxy-Authorization" not in web.seen[before][2]

    run(native, {"allow": [{"host": "fine.example", "port": web.port, "private": True}]}, act)


def test_plain_http_gets_the_credential_outside(native: Native, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    network = {
        "allow": [{"host": "fine.example", "private": True}],
        "credentials": {"fine.example": {"header": "X-Key", "from": "env:TOKEN"}},
    }

    async def act(ws: Workspace) -> None:
        done = await ws.execute(f"{PYTHON} http://fine.example:{web.port}/echo; env")
        assert web.seen[-1][2]["X-Key"] == SECRET
        assert '"X-Key": "' + "*" * len(SECRET) in done.text and SECRET not in done.text
        assert "TOKEN=ramet-secret:fine.example\n" in done.text

    run(native, network, act)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A web server with a package for pip and a repository for git."""
    top = tmp_path_factory.mktemp("packages")
    wheel = top / "simple" / "demo" / "demo-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    info = {"METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}  # fmt: skip
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("demo.py", "x = 42\n")
        for name, text in info.items():
            made.writestr(f"demo-1.0.dist-info/{name}", text)
        made.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\n")
    script = "git init -q -b main . && echo hi > f && git add f && git -c user.name=a -c user.email=b@c commit -qm m"
    (top / "w").mkdir()
    subprocess.run(["sh", "-c", script], cwd=top / "w", check=True)
    subprocess.run(["git", "clone", "-q", "--bare", "w", "r.git"], cwd=top, check=True)
    subprocess.run(["git", "update-server-info"], cwd=top / "r.git", check=True)
    handler = functools.partial(_Files, directory=str(top))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Silence."""


CLIENTS = {
    "curl": ("/usr/./bin/curl -sSf http://HOST/w/f", "hi\n"),
    "wget": ("/usr/./bin/wget -q -O- http://HOST/w/f", "hi\n"),
    "git": ("git clone -q http://HOST/r.git r && cat r/f", "hi\n"),
    "pip": (
        "{ test -d /v || python3 -m venv /v; } && /v/bin/pip install -q --retries 0 --force-reinstall "
        "--disable-pip-version-check --trusted-host NAME "
        "--index-url http://HOST/simple/ demo && /v/bin/python -c 'import demo; print(demo.x)'", "42\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_usual_clients_pass_through_the_proxy(client: str, native: Native, packages: int) -> None:
    if shutil.which("python3" if client == "pip" else client, path="/usr/bin") is None:
        pytest.skip(f"{client} is not installed")
    text, wanted = CLIENTS[client]

    async def act(ws: Workspace) -> None:
        done = await ws.execute(text.replace("HOST", f"fine.example:{packages}").replace("NAME", "fine.example"))
        if client == "pip" and "ensurepip is not available" in done.text:
            pytest.skip("the machine's python3 has no venv")
        assert done.text == wanted, done
        refused = await ws.execute(text.replace("HOST", f"other.example:{packages}").replace("NAME", "other.example"))
        assert refused.exit_code and refused.text.partition("\n")[0] != wanted.strip()

    run(native, {"allow": [{"host": "fine.example", "port": packages, "private": True}]}, act)


class _Secure(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"over TLS\n")

    def log_message(self, *_: Any) -> None:
        """Silence."""


def test_https_goes_through_a_tunnel(native: Native, tmp_path: Path) -> None:
    cert = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, cert.with_suffix(".key"))

    async def act(ws: Workspace) -> None:
        await ws.dispatch("write", "/ca.pem", cert.read_bytes())
        code = ("import ssl, urllib.request as r; c = ssl.create_default_context(cafile='/ca.pem'); "
                "c.check_hostname = False; "
                f"print(r.urlopen('https://fine.example:{port}/', context=c).read().decode(), end='')")  # fmt: skip
        done = await ws.execute(f'python3 -c "{code}"')
        assert done.text == "over TLS\n", done
        refused = await ws.execute(f'python3 -c "{code.replace("fine.", "other.")}"')
        assert refused.exit_code == 1 and "403" in refused.error_text
        (row, _) = [json.loads(one) for one in (await ws.execute("cat /.sessions/*/network.jsonl")).text.splitlines()]
        assert (row["method"], row["host"], row["path"], row["status"]) == ("CONNECT", "fine.example", "", 200)
        assert row["bytes_received"] > 0

    with ThreadingHTTPServer(("127.0.0.1", 0), _Secure) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        run(native, {"allow": [{"host": "fine.example", "port": port, "private": True}]}, act)
        server.shutdown()
        thread.join()
