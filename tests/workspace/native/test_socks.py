"""SOCKS in the box: the same rules for programs that speak no HTTP, and the right answer for everything else."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import need

from ramet.native.options import Native
from ramet.network.resolver import Resolver
from ramet.workspace.workspace import Workspace

NAMES = {"fine.example": ["127.0.0.1"], "private.example": ["10.0.0.1"], "six.example": ["::1"]}


async def lookup(host: str, port: int) -> list[str]:
    if host[0].isdigit() or ":" in host:
        return [host]
    if host not in NAMES:
        raise OSError("unknown")
    return NAMES[host]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


@contextmanager
def greeter() -> Iterator[int]:
    """A server that speaks first, as ssh does, and then repeats one line."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                line.sendall(b"SSH-2.0-test\r\n")
                line.sendall(line.recv(100).upper())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def run(native: Native, network: Any, line: str, files: dict[str, str] | None = None) -> tuple[Any, list[Any]]:
    async def inside() -> tuple[Any, list[Any]]:
        async with Workspace(native=native, network=network) as ws:
            assert ws.door is not None
            ws.door.resolver = Resolver(lookup)
            for path, text in (files or {}).items():
                await ws.dispatch("write", path, text)
            done = await ws.execute(line)
            log = (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()
            return done, [json.loads(row) for row in log]

    return asyncio.run(inside())


CLIENT = """
import os, socket, sys, urllib.parse
at = urllib.parse.urlsplit(os.environ["SOCKS_PROXY"])
USER, WORD = at.username.encode(), at.password.encode()

def exactly(line, count):
    got = b""
    while len(got) < count:
        try:
            block = line.recv(count - len(got))
        except ConnectionResetError:
            return got
        if not block:
            return got
        got += block
    return got

def admitted(user=USER, word=WORD, methods=b"\\x02"):
    line = socket.create_connection((at.hostname, at.port), timeout=20)
    line.sendall(bytes([5, len(methods)]) + methods)
    if exactly(line, 2) != b"\\x05\\x02":
        return None
    line.sendall(bytes([1, len(user)]) + user + bytes([len(word)]) + word)
    return line if exactly(line, 2) == b"\\x01\\x00" else None

def ask(kind, address, port, command=1):
    line = admitted()
    line.sendall(bytes([5, command, 0, kind]) + address + port.to_bytes(2, "big"))
    return line, (exactly(line, 10) + b"??")[1]

def name(text):
    return bytes([len(text)]) + text.encode()
"""
TABLE = (
    CLIENT
    + """
port = int(sys.argv[1])
print("no password", admitted(methods=b"\\x00"))
print("another token", admitted(word=b"0" * 32))
print("another user", admitted(user=b"root"))
four, six = socket.inet_aton("127.0.0.1"), socket.inet_pton(socket.AF_INET6, "::ffff:10.0.0.1")
for said, asked in {
    "allowed": (3, name("fine.example"), port),
    "upper case": (3, name("FINE.example."), port),
    "another port": (3, name("fine.example"), 1),
    "another host": (3, name("other.example"), port),
    "not allowed address": (1, socket.inet_aton("10.0.0.1"), port),
    "wrapped": (4, six, port),
    "private name": (3, name("private.example"), port),
    "six": (4, socket.inet_pton(socket.AF_INET6, "::2"), port),
    "unknown": (3, name("unknown.example"), port),
    "refused there": (3, name("closed.example"), 1),
    "bind": (3, name("fine.example"), port, 2),
    "udp": (3, name("fine.example"), port, 3),
    "odd kind": (9, name("fine.example"), port),
    "no port": (3, name("fine.example"), 0),
    "odd name": (3, name("fine.example\\x00.evil"), port),
    "userinfo": (3, name("fine.example@evil"), port),
    "decimal": (3, name("167772161"), port),
}.items():
    line, code = ask(*asked)
    print(said, code)
"""
)


def test_every_request_gets_its_code(native: Native, web: Web) -> None:
    NAMES["closed.example"] = ["127.0.0.1"]
    rules = [
        {"host": "fine.example", "port": web.port, "private": True}, f"private.example:{web.port}",
        f"unknown.example:{web.port}", {"host": "closed.example", "port": 1, "private": True},
    ]  # fmt: skip
    done, log = run(native, {"allow": rules}, f"python3 /try.py {web.port}", {"/try.py": TABLE})
    assert dict(row.rsplit(" ", 1) for row in done.text.splitlines()) == {
        "no password": "None", "another token": "None", "another user": "None", "allowed": "0", "upper case": "0",
        "another port": "2", "another host": "2", "not allowed address": "2", "wrapped": "2", "private name": "2",
        "six": "2", "unknown": "4", "refused there": "5", "bind": "7", "udp": "7", "odd kind": "8", "no port": "4",
        "odd name": "4", "userinfo": "4", "decimal": "2",
    }, done  # fmt: skip
    assert sum(row["verdict"] == "deny" for row in log) == 7
    assert {row["method"] for row in log} == {"CONNECT"} and {row["client"] for row in log} == {"native"}


ONE = (
    CLIENT
    + """
line, code = ask(3, name("fine.example"), int(sys.argv[1]))
print(code, exactly(line, 14))
line.sendall(b"hello")
line.shutdown(socket.SHUT_WR)
print(exactly(line, 9))
"""
)


def test_a_server_that_speaks_first(native: Native) -> None:
    with greeter() as port:
        rules = [{"host": "fine.example", "port": port, "private": True}]
        done, log = run(native, {"allow": rules}, f"python3 /try.py {port}", {"/try.py": ONE})
    assert done.text == "0 b'SSH-2.0-test\\r\\n'\nb'HELLO'\n", done
    assert [(row["bytes_sent"], row["bytes_received"], row["error"]) for row in log] == [(5, 19, "")]


def test_curl_by_socks(native: Native, web: Web) -> None:
    need("curl")
    rules = [{"host": "fine.example", "port": web.port, "private": True}]
    ask = '/usr/bin/curl -sS --noproxy "" -x "$SOCKS_PROXY"'
    line = (
        f"/usr/./bin/bash -c '{ask} http://fine.example:{web.port}/hello; {ask} http://other.example:{web.port}/hello'"
    )
    done, log = run(native, {"allow": rules}, line)
    assert done.text == "hello\n" and done.exit_code == 97 and "(2)" in done.error_text, done
    assert [row["verdict"] for row in log] == ["allow", "deny"]


def test_a_six_address(native: Native) -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        port = server.getsockname()[1]
        code = CLIENT + f'print(ask(3, name("six.example"), {port})[1], ask(4, bytes(15) + b"\\x02", {port})[1])'
        done, _ = run(native, {"allow": [f"[::1]:{port}", "six.example"]}, "python3 /try.py", {"/try.py": code})
        assert done.text == "0 2\n", done


def test_a_connection_ends_with_its_command(native: Native) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            CLIENT
            + f"""
line, code = ask(3, name("fine.example"), {port})
if not os.fork():
    os.setsid()
    os.close(1)
    os.close(2)
    line.recv(1)
    os._exit(0)
print(code)
"""
        )
        rules = [{"host": "fine.example", "port": port, "private": True}]
        done, log = run(native, {"allow": rules}, "python3 /try.py", {"/try.py": code})
        assert done.text == "0\n", done
        line, _ = server.accept()
        with line:
            line.settimeout(20)
            assert line.recv(1) == b"", "the program that was left behind still has the network"
        assert [(row["status"], row["error"]) for row in log] == [(200, "")]


def test_too_many_connections_are_closed(native: Native) -> None:
    code = (
        CLIENT
        + """
lines = []
for _ in range(300):
    line = socket.create_connection((at.hostname, at.port), timeout=20)
    line.sendall(b"\\x05\\x01\\x02")
    lines.append(line)
print(sum(exactly(line, 2) == b"\\x05\\x02" for line in lines))
"""
    )
    before = len(os.listdir("/proc/self/fd"))
    done, _ = run(native, {"allow": ["fine.example"]}, "python3 /try.py", {"/try.py": code})
    assert done.text == "256\n", done
    assert len(os.listdir("/proc/self/fd")) <= before + 5
