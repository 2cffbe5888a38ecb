"""Usual clients through the proxy of the box: over HTTP, over HTTPS by a tunnel, and over HTTPS that Ramet reads."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import io
import json
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.support.proxied_node import node_mount
from tests.support.tls import TestAuthority
from tests.support.web_fake import Server
from tests.workspace.native.conftest import need

from ramet.backends import RAMResource
from ramet.native.options import Native
from ramet.network.network import Network
from ramet.network.resolver import Resolver
from ramet.workspace.policy import Policy, Request
from ramet.workspace.workspace import Workspace

HOSTS = ("fine.example", "other.example")


async def lookup(host: str, port: int) -> list[str]:
    if host not in HOSTS:
        raise OSError("unknown")
    return ["127.0.0.1"]


class _Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Silence."""


@contextmanager
def served(folder: Path, tls: Any) -> Iterator[int]:
    with Server(("127.0.0.1", 0), functools.partial(_Files, directory=str(folder))) as server:
        server.tls = tls
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory, authority: TestAuthority) -> Iterator[dict[str, int]]:
    """A package for pip, one for npm, and a repository for git, over HTTP and over HTTPS."""
    top = tmp_path_factory.mktemp("packages")
    _make_wheel(top / "simple" / "demo" / "demo-1.0-py3-none-any.whl")
    script = "git init -q -b main . && echo hi > f && git add f && git -c user.name=a -c user.email=b@c commit -qm m"
    (top / "w").mkdir()
    subprocess.run(["sh", "-c", script], cwd=top / "w", check=True)
    subprocess.run(["git", "clone", "-q", "--bare", "w", "r.git"], cwd=top, check=True)
    subprocess.run(["git", "update-server-info"], cwd=top / "r.git", check=True)
    with served(top, None) as plain, served(top, authority.server(HOSTS)) as secure:
        for scheme, port in (("http", plain), ("https", secure)):
            for host in HOSTS:
                _make_package(top / "npm" / f"{scheme}-{host}", f"{scheme}://{host}:{port}/npm/{scheme}-{host}")
        yield {"http": plain, "https": secure}


def _make_wheel(place: Path) -> None:
    place.parent.mkdir(parents=True)
    info = {"METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}  # fmt: skip
    with zipfile.ZipFile(place, "w") as made:
        made.writestr("demo.py", "x = 42\n")
        for name, text in info.items():
            made.writestr(f"demo-1.0.dist-info/{name}", text)
        made.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\n")


def _make_package(place: Path, url: str) -> None:
    """A registry of one package for npm."""
    place.mkdir(parents=True)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as made:
        for name, text in {
            "package.json": '{"name": "demo", "version": "1.0.0"}',
            "index.js": "exports.x = 42",
        }.items():
            row = tarfile.TarInfo(f"package/{name}")
            row.size = len(text)
            made.addfile(row, io.BytesIO(text.encode()))
    (place / "demo.tgz").write_bytes(packed.getvalue())
    proof = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    version = {"name": "demo", "version": "1.0.0", "dist": {"tarball": f"{url}/demo.tgz", "integrity": proof}}
    described = {"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    (place / "demo").write_text(json.dumps(described))


URLLIB = 'import sys, urllib.request as r; print(r.urlopen("{}/w/f", timeout=20).read().decode(), end="")'
FETCH = 'fetch("{}/w/f").then(async a => console.log(a.status, (await a.text()).trim()), e => console.log(e.cause))'
CLIENTS = {
    "curl": ("/usr/./bin/curl -sSf URL/w/f", "hi\n"),
    "wget": ("/usr/./bin/wget -q -O- URL/w/f", "hi\n"),
    "python3": (f"python3 -c '{URLLIB.format('URL')}'", "hi\n"),
    "git": ("rm -rf r; git clone -q URL/r.git r && cat r/f", "hi\n"),
    "pip": (
        "{ test -d /v || python3 -m venv /v; } && /v/bin/pip install -q --retries 0 --force-reinstall "
        "--disable-pip-version-check --no-cache-dir TRUST--index-url URL/simple/ demo && "
        "/v/bin/python -c 'import demo; print(demo.x)'", "42\n",
    ),
    "npm": (
        "rm -rf /app; mkdir /app && cd /app && npm install --silent --no-audit --no-fund --fetch-retries 0 --registry "
        "URL/npm/SCHEME-HOST demo && node -p 'require(\"demo\").x'", "42\n",
    ),
    "fetch": (f"NODE -e '{FETCH.format('URL')}'", "200 hi\n"),
}  # fmt: skip
MODES = {"http": False, "http, intercepted": True, "tunnel": False, "intercept": True}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("client", CLIENTS)
def test_usual_clients(client: str, mode: str, native: Native, ports: dict[str, int], authority: TestAuthority) -> None:
    mounts = node_mount() if client == "fetch" else {}
    if client != "fetch":
        need({"pip": "python3"}.get(client, client))
    scheme = "http" if mode.startswith("http") else "https"
    port = ports[scheme]
    line, wanted = CLIENTS[client]

    def asked(host: str) -> str:
        trust = f"--trusted-host {host} " if scheme == "http" else ""
        text = (
            line.replace("NODE", "/node/bin/node" if mounts else "node")
            .replace("URL", f"{scheme}://{host}:{port}")
            .replace("SCHEME", scheme)
        )
        return text.replace("HOST", host).replace("TRUST", trust)

    async def act() -> None:
        rules = {
            "allow": [{"host": "fine.example", "port": port, "private": True}], "intercept": MODES[mode],
            "authorities": str(authority.path),
        }  # fmt: skip
        async with Workspace({"/": RAMResource(), **mounts}, native=native, network=rules) as ws:
            assert ws.door is not None
            ws.door.resolver = Resolver(lookup)
            done = await ws.execute(asked("fine.example"))
            if client == "pip" and "ensurepip is not available" in done.text:
                pytest.skip("the machine's python3 has no venv")
            assert done.text == wanted, done
            refused = await ws.execute(asked("other.example"))
            assert wanted not in refused.text and (refused.exit_code or client == "fetch"), refused
            log = [json.loads(row) for row in (await ws.execute("cat /.sessions/*/network.jsonl")).text.splitlines()]
            assert {(row["host"], row["verdict"]) for row in log} == {
                ("fine.example", "allow"),
                ("other.example", "deny"),
            }
            tunnels = mode == "tunnel" or (client == "fetch" and mode == "http")  # fetch of Node knows nothing else
            methods = {"CONNECT"} if tunnels else {"GET"}
            assert {row["method"] for row in log} == methods
            assert [(row["status"], row["error"]) for row in log if not row["status"] or row["error"]] == [
                (row["status"], row["error"]) for row in log if row["host"] == "other.example"
            ]

    asyncio.run(act())


PATHS = ("/w/", "/r.git/", "/simple/", "/npm/")
HERE = {"host": "fine.example", "private": True}
FORMS: dict[str, tuple[dict[str, list[Any]], bool]] = {
    "a suffix": ({"allow": [{**HERE, "host": "*.example"}]}, True),
    "another suffix": ({"allow": [{**HERE, "host": "*.fine.example"}]}, False),
    "another port": ({"allow": [{**HERE, "port": 1}]}, False),
    "a scheme": ({"allow": [{**HERE, "scheme": "http"}]}, True),
    "another scheme": ({"allow": [{**HERE, "scheme": "https"}]}, False),
    "a method": ({"allow": [{**HERE, "methods": "GET"}]}, True),
    "another method": ({"allow": [{**HERE, "methods": "POST"}]}, False),
    "a path": ({"allow": [{**HERE, "path": path} for path in PATHS]}, True),
    "another path": ({"allow": [{**HERE, "path": "/other/"}]}, False),
    "a network": ({"allow": ["fine.example", "127.0.0.0/8"]}, True),
    "no word about private addresses": ({"allow": ["fine.example"]}, False),
    "a denial": ({"allow": [HERE], "deny": ["fine.example"]}, False),
    "a denied path": ({"allow": [HERE], "deny": [f"http://fine.example:*{path}" for path in PATHS]}, False),
    "a question": ({"ask": [HERE]}, True),
    "another session": ({"allow": [{**HERE, "session": "web-*"}]}, False),
    "this agent": ({"allow": [{**HERE, "agent": "b?t"}]}, True),
    "another agent": ({"allow": [{**HERE, "agent": "human"}]}, False),
}  # fmt: skip


UNCACHED = {
    "npm": (f"rm -rf ~/.npm; {CLIENTS['npm'][0]}", CLIENTS["npm"][1]),
    "pip": (
        "{ test -d /v || python3 -m venv /v; } && cd /v && rm -f *.whl; /v/bin/pip download -q --retries 0 --no-deps "
        "--disable-pip-version-check --no-cache-dir TRUST--index-url URL/simple/ demo && ls *.whl",
        "demo-1.0-py3-none-any.whl\n",
    ),
}


@pytest.mark.parametrize("client", ["git", "pip", "npm"])
def test_every_form_of_a_rule(client: str, native: Native, ports: dict[str, int]) -> None:
    """Policies take turns in one box; a question is answered for its host."""
    need({"pip": "python3"}.get(client, client))
    line, wanted = {**CLIENTS, **UNCACHED}[client]
    for text, word in {
        "URL": f"http://fine.example:{ports['http']}", "SCHEME": "http", "HOST": "fine.example",
        "TRUST": "--trusted-host fine.example ",
    }.items():  # fmt: skip
        line = line.replace(text, word)

    async def act() -> None:
        async with Workspace(native=native, network={"ask": ["*"]}, policy=Policy(answer=answered)) as ws:
            assert ws.door is not None
            ws.door.resolver = Resolver(lookup)
            for title, (rules, fine) in FORMS.items():
                ws.door.network = Network.of(rules)
                done = await ws.execute(line, agent_id="bot")
                if client == "pip" and "ensurepip is not available" in done.text:
                    pytest.skip("the machine's python3 has no venv")
                assert (done.text.endswith(wanted), not done.exit_code) == (fine, fine), (title, done)

    async def answered(request: Request) -> bool | Literal["host"]:
        return "host" if request.kind == "network" else False

    asyncio.run(act())
