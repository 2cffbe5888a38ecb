"""Ports of the box: what listens inside is reached from outside; the loopback of the machine is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.support.web_fake import Web, web_fake

from ramet.core.errors import RametError
from ramet.native.options import Native
from ramet.native.ports import Ports, read_note
from ramet.network.network import Network
from ramet.network.resolver import Resolver
from ramet.workspace.workspace import Workspace

SERVER = """
import http.server, os, socket, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path == "/to":
            self.reply(302, b"", Location=sys.argv[2])
        elif self.path == "/big":
            self.reply(200, b"x" * (20 << 20))
        elif self.path == "/die":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"abc")
            self.wfile.flush()
            os._exit(1)
        else:
            self.reply(200, (self.path + " " + self.headers["Host"] + "\\n").encode())
    def do_POST(self):
        size, left = 0, int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 65536)))
            size += 1
        self.reply(200, b"%d\\n" % size)
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1].rpartition(":")[0] else socket.AF_INET
host, _, port = sys.argv[1].rpartition(":")
Server((host, int(port)), Answer).serve_forever()
"""


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


async def lookup(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def run(native: Native | None, network: Any, act: Callable[[Workspace], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        async with Workspace(native=native, network=network) as ws:
            if ws.door is not None:
                ws.door.resolver = Resolver(lookup)
            await ws.dispatch("write", "/server.py", SERVER)
            return await asyncio.wait_for(act(ws), 60)

    return asyncio.run(inside())


async def start(ws: Workspace, place: str = "127.0.0.1:8000", to: str = "") -> None:
    """Start the server in the background, and wait until it listens."""
    await ws.execute(f"python3 /server.py '{place}' '{to}' > /log 2>&1 &")
    port = int(place.rpartition(":")[2])
    async with asyncio.timeout(20):
        while port not in [one.port for one in ws.ports()]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def ask(ws: Workspace, port: int, text: bytes = b"GET /x HTTP/1.0\r\nHost: h\r\n\r\n") -> bytes:
    reader, writer = await ws.connect_port(port)
    writer.write(text)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_a_program_that_listens_is_listed_and_reached(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        assert ws.ports() == []
        for place, address in (("127.0.0.1:8000", "127.0.0.1"), ("0.0.0.0:8001", "0.0.0.0"), ("::1:8002", "::1"),
                               (":::8003", "::")):  # fmt: skip
            await start(ws, place)
            port = int(place.rpartition(":")[2])
            assert (port, address) in [one[:2] for one in ws.ports()]
            assert (await ask(ws, port)).endswith(b"/x h\n")
        assert [one.port for one in ws.ports()] == [8000, 8001, 8002, 8003]

    run(native, None, act)


def test_what_does_not_listen_is_refused(native: Native, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        for port in (8000, web.port):
            with pytest.raises(ConnectionRefusedError, match=f"nothing listens at port {port} "):
                await ws.connect_port(port)
        for wrong in (0, 65536, -1, True, "80"):
            with pytest.raises(RametError, match="is not a port"):
                await ws.connect_port(wrong)  # type: ignore[arg-type]
        before = len(web.seen)
        assert (await ws.execute(f"curl -s {web.url}/hello")).exit_code == 7
        assert len(web.seen) == before

    run(native, None, act)


def test_the_proxy_of_ramet_is_no_port_of_the_workspace(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        assert ws.ports() == []
        with pytest.raises(ConnectionRefusedError):
            await ws.connect_port(3128)
        assert (await ws.execute("curl -s localhost:3128")).exit_code == 7

    run(native, {"allow": ["example.org"]}, act)


def test_without_native_programs_there_are_no_ports(web: Web) -> None:
    async def act(ws: Workspace) -> None:
        assert ws.ports() == []
        with pytest.raises(RametError, match="real programs are off"):
            await ws.connect_port(8000)
        assert (await ws.execute(f"curl -s {web.url}/hello")).exit_code == 6

    run(None, None, act)


def test_many_connections_at_once(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        answers = await asyncio.gather(*(ask(ws, 8000) for _ in range(40)))
        assert all(answer.endswith(b"/x h\n") for answer in answers)

    run(native, None, act)


def test_a_box_that_died_has_no_ports_and_the_next_one_has(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        await ask(ws, 8000)
        assert ws.programs is not None
        box = ws.programs._runtime._box
        assert box is not None
        box.kill()
        assert ws.ports() == []
        with pytest.raises((ConnectionRefusedError, RametError)):
            await ws.connect_port(8000)
        await start(ws)
        assert (await ask(ws, 8000)).endswith(b"/x h\n")

    run(native, None, act)


def test_another_process_of_the_user_finds_the_box(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        assert ws.programs is not None
        root = ws.programs._runtime.layout.root
        ports = Ports(lambda: read_note(root))
        assert [one.port for one in ports.listening()] == [8000]
        (await ports.connect(8000)).close()
        ws.programs.end()
        assert read_note(root) is None and ports.listening() == []
        with pytest.raises(ConnectionRefusedError):
            await ports.connect(8000)
        ports.close()

    run(native, None, act)


# ------------------------------------------------------------------------------------------ in-process commands


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1", "2130706433", "[::1]", "127.0.0.9"])
def test_curl_and_wget_reach_the_box_by_every_name_of_loopback(host: str, native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        for line in (f"curl -sS http://{host}:8000/a", f"wget -q -O - http://{host}:8000/a"):
            done = await ws.execute(line)
            assert done.text.startswith("/a ") and done.exit_code == 0, (line, done)
        assert not next(iter(ws.history)).network, "it is no request to the network"

    run(native, None, act)


def test_a_program_of_the_box_gets_the_host_that_curl_names(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        for network in (None, Network.of({"allow": ["*"]})):
            assert ws.door is not None
            ws.door.network = network
            done = await ws.execute("curl -sv -H 'Host: app.test' -H 'X: 1' localhost:8000/a")
            assert done.text == "/a app.test\n" and "> Host: app.test\r\n" in done.error_text, done
            assert (await ws.execute("curl -s -H 'Host:' localhost:8000/a")).text == "/a localhost:8000\n"

    run(native, None, act)


@pytest.mark.parametrize("to", ["http://10.0.0.1/", "http://169.254.169.254/", "http://other.example/", "//10.0.0.1"])
def test_a_redirect_out_of_the_box_is_decided(to: str, native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws, to=to)
        done = await ws.execute("curl -sSL localhost:8000/to")
        assert done.exit_code == 7 and "the network policy refuses" in done.error_text
        (row,) = (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()
        assert json.loads(row)["verdict"] == "deny"

    run(native, {"allow": ["fine.example"]}, act)


def test_a_rule_that_names_the_loopback_of_the_machine_leads_there(native: Native, web: Web) -> None:
    rules: dict[str, list[Any]] = {
        "127.0.0.1": [f"127.0.0.1:{web.port}"], "localhost": [f"localhost:{web.port}"], "[::1]": [], "127.0.0.2": [],
    }  # fmt: skip

    async def act(ws: Workspace) -> None:
        await start(ws, f"127.0.0.1:{web.port}")
        for host, named in rules.items():
            wanted = "hello" if named else "/hello"
            assert (await ws.execute(f"curl -s {host}:{web.port}/hello")).text.split()[0] == wanted, host

    run(native, {"allow": [rule for row in rules.values() for rule in row]}, act)


def test_a_wildcard_does_not_name_the_loopback_of_the_machine(native: Native, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws, f"127.0.0.1:{web.port}")
        for host in ("localhost", "127.0.0.1"):
            assert (await ws.execute(f"curl -s {host}:{web.port}/hello")).text.startswith("/hello")

    run(native, {"allow": ["*"]}, act)


def test_large_bodies_pass_in_both_directions(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        assert (await ws.execute("curl -s localhost:8000/big | wc -c")).text.strip() == str(20 << 20)
        sent = "head -c 20000000 /dev/zero | curl -s -H 'Expect:' --data-binary @- localhost:8000/"
        assert (await ws.execute(sent)).text == f"{-(-20_000_000 // 65536)}\n"

    run(native, {"allow": ["example.org"], "limits": {"body_bytes": 1000}}, act)


def test_a_program_that_dies_in_its_answer_is_an_error(native: Native) -> None:
    async def act(ws: Workspace) -> None:
        await start(ws)
        done = await ws.execute("curl -s localhost:8000/die")
        assert (done.text, done.exit_code) == ("abc", 18)

    run(native, None, act)
