"""Every form of a rule, through programs in a box: over HTTP, HTTPS that is read, and SOCKS."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from tests.support.network_table import NAMES, TABLE, asked, filled, resolver
from tests.support.proxied_node import node_mount
from tests.support.tls import TestAuthority
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import need

from ramet.backends import RAMResource
from ramet.native.options import Native
from ramet.network.network import Network
from ramet.workspace.workspace import Workspace

Requests = Sequence[tuple[str, str]]
"""Method and URL."""


class Client(NamedTuple):
    program: str
    script: Callable[[Requests], str]
    """A command line that asks for all, and prints 0 for each whose answer is a success."""
    prints: bool = True
    """False where the client wants more than the server of the test has: then only what arrives counts."""
    only_get: bool = False


PYTHON = """
import sys, urllib.request as r
for method, url in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        r.urlopen(r.Request(url, b"x" if method == "POST" else None, method=method), timeout=60).read()
        print(0)
    except (OSError, ValueError):
        print(1)
"""
FETCH = """
(async () => {
  for (let i = 2; i < process.argv.length; i += 2) {
    const method = process.argv[i], body = method === "POST" ? "x" : undefined
    await fetch(process.argv[i + 1], {method, body}).then(
      async answer => { await answer.arrayBuffer(); console.log(answer.ok ? 0 : 1) }, () => console.log(1))
  }
})()
"""
SMUGGLE = """
const http = require("http"), proxy = new URL(process.env.http_proxy), asked = process.argv.slice(2)
const auth = "Basic " + Buffer.from(proxy.username + ":" + proxy.password).toString("base64")
const next = () => {
  if (!asked.length) return
  const [method, path] = asked.splice(0, 2), headers = {"Proxy-Authorization": auth, Host: "fine.example"}
  const one = http.request({host: proxy.hostname, port: proxy.port, method, path, headers}, answer => {
    console.log(answer.statusCode < 400 ? 0 : 1)
    answer.resume().on("end", next)
  })
  one.on("error", () => { console.log(1); next() }).end(method === "POST" ? "x" : undefined)
}
next()
"""
FILES = {"/many.py": PYTHON, "/fetch.js": FETCH, "/smuggle.js": SMUGGLE}


def curl(requests: Requests, before: str = "") -> str:
    options = {"GET": "", "HEAD": "-I", "POST": "-d x", "DELETE": "-X DELETE"}
    one = f"{before}/usr/bin/curl -sfL -m 60 {{}} {{}} > /dev/null 2>&1; echo $?"
    return "\n".join(["export LC_ALL=C.UTF-8", *(one.format(options[how], shlex.quote(url)) for how, url in requests)])


def curl_by_socks(requests: Requests) -> str:
    return curl(requests, "ALL_PROXY=$SOCKS_PROXY http_proxy= ")


def wget(requests: Requests) -> str:
    options = {"GET": "", "HEAD": "--spider", "POST": "--post-data x", "DELETE": "--method DELETE"}
    one = "/usr/bin/wget -q -t 1 -T 60 -O - {} {} > /dev/null 2>&1; echo $?"
    return "\n".join(["export LC_ALL=C.UTF-8", *(one.format(options[how], shlex.quote(url)) for how, url in requests)])


def listed(program: str) -> Callable[[Requests], str]:
    return lambda requests: f"{program} {shlex.join(word for request in requests for word in request)}"


def git(requests: Requests) -> str:
    return "\n".join(["export LC_ALL=C.UTF-8", *(f"git ls-remote -q {shlex.quote(url)}" for _, url in requests), ":"])


def pip(requests: Requests) -> str:
    """All are asked for a package by one pip: each start takes a second."""
    if not requests:
        return ""
    hosts = sorted({urlsplit(url).hostname or "" for _, url in requests})
    trusted = " ".join(f"--trusted-host {shlex.quote(f'[{host}]' if ':' in host else host)}" for host in hosts)
    urls = " ".join(f"--extra-index-url {shlex.quote(url)}" for _, url in requests[1:])
    return (
        "{ test -d /v || python3 -m venv /v; } && /v/bin/pip download -q --no-deps --retries 0 --no-cache-dir "
        f"--disable-pip-version-check {trusted} --index-url {shlex.quote(requests[0][1])} {urls} demo"
    )


CLIENTS = {
    "curl": Client("curl", curl),
    "curl by SOCKS": Client("curl", curl_by_socks),
    "wget": Client("wget", wget),
    "python3": Client("python3", listed("python3 /many.py")),
    "fetch": Client("", listed("NODE /fetch.js")),
    "a Host of its own": Client("node", listed("node /smuggle.js"), prints=False),
    "git": Client("git", git, prints=False, only_get=True),
    "pip": Client("python3", pip, prints=False, only_get=True),
}
MODES = [
    ("curl", "http"), ("curl", "https"), ("curl by SOCKS", "http"), ("curl by SOCKS", "https"), ("wget", "http"),
    ("python3", "http"), ("python3", "https"), ("fetch", "http"), ("fetch", "https"), ("a Host of its own", "http"),
    ("git", "http"), ("git", "https"), ("pip", "http"),
]  # fmt: skip
ASCII = ("python3", "wget", "pip", "a Host of its own")
"""They take URLs of ASCII alone."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def webs(authority: TestAuthority) -> Iterator[dict[str, Web]]:
    names = [name for name in NAMES if name != "localhost"]
    with web_fake() as plain, web_fake(authority.server(names)) as secure:
        yield {"http": plain, "https": secure}


def other_scheme(value: Any) -> Any:
    """A policy or URLs for HTTPS instead of HTTP, and the other way round."""
    return json.loads(
        json.dumps(value).replace("http://", "\0").replace("https://", "http://").replace("\0", "https://")
    )


def readable(name: str, method: str, url: str) -> bool:
    """Whether a client takes a URL for what Ramet takes it for."""
    if "\\" in url or (CLIENTS[name].only_get and method != "GET") or (name in ASCII and not url.isascii()):
        return False
    if name == "fetch":
        return "user:pw@" not in url
    if name == "pip":  # it asks once for what it takes for one place
        return not any(other in url for other in ("/../", "user:pw@"))
    return not (name in ("python3", "wget") and ("#" in url or "@" in url))


def secured(scheme: str, url: str) -> bool:
    """Whether the certificate of the server is for the host as it stands in the URL."""
    return scheme == "http" or (url.split("/")[2].lower().partition(":")[0] in NAMES and "localhost" not in url)


def reached(web: Web) -> int:
    """How many requests arrived, but for the redirects that the test itself asked for."""
    found = sum(not path.startswith("/to?") for _, path, _, _ in web.seen)
    web.seen.clear()
    return found


@pytest.mark.parametrize(("name", "scheme"), MODES)
def test_rules_hold_for_programs(
    name: str, scheme: str, native: Native, webs: dict[str, Web], authority: TestAuthority
) -> None:
    client, web = CLIENTS[name], webs[scheme]
    mounts = {} if client.program else node_mount()
    need(*filter(None, [client.program]))
    tunnels = scheme == "https" or name in ("curl by SOCKS", "fetch")
    base = {"intercept": tunnels, "authorities": str(authority.path)}

    async def act() -> None:
        async with Workspace({"/": RAMResource(), **mounts}, native=native, network=base) as ws:
            assert ws.door is not None
            ws.door.resolver = resolver()
            for path, text in FILES.items():
                await ws.dispatch("write", path, text)

            async def ask(requests: Requests) -> tuple[list[str], int, str]:
                line = client.script(requests).replace("NODE", "/node/bin/node" if mounts else "node")
                done = await ws.execute(line, native=True)
                if "ensurepip is not available" in f"{done.text}{done.error_text}":
                    pytest.skip("the machine's python3 has no venv")
                return done.text.split() if client.prints else [], reached(web), f"{done.text}{done.error_text}"

            for title, row in TABLE.items():
                policy, urls = filled(row.policy, web.port), [list(asked(part, web.port)) for part in row[1:]]
                if scheme == "https":
                    policy, urls = other_scheme(policy), other_scheme(urls)
                ws.door.network = Network.of({**base, **policy})
                allowed, refused = ([one for one in part if readable(name, *one)] for part in urls)
                allowed = [one for one in allowed if secured(scheme, one[1])]
                printed, arrived, said = await ask(allowed)
                assert printed == (["0"] * len(allowed) if client.prints else []), (title, said, allowed)
                assert arrived == len(allowed), (title, said, allowed)
                printed, arrived, said = await ask(refused)
                assert (printed.count("0"), arrived) == (0, 0), (title, said, refused)
            log = [json.loads(one) for one in (await ws.execute("cat /.sessions/*/network.jsonl")).text.splitlines()]
            assert {one["client"] for one in log} == {"native"} and {one["verdict"] for one in log} == {"allow", "deny"}

    asyncio.run(act())
