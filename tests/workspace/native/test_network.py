"""Native programs and the network: what the policy allows passes through the proxy of the box, nothing else leaves."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
