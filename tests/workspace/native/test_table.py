"""Every form of a rule, through programs that read URLs in their own ways: only what is allowed arrives."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from tests.support.network_table import TABLE, asked, filled, resolver
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import need

from ramet.native.options import Native
from ramet.workspace.workspace import Workspace

PYTHON = """
import sys, urllib.request as r
for line in sys.stdin:
    method, url = line.split()
    try:
        body = b"x" if method == "POST" else None
        print(r.urlopen(r.Request(url, body, method=method), timeout=20).read().decode(), end="")
    except Exception as error:
        print(error, file=sys.stderr)
"""
NODE = """
const http = require("http"), proxy = new URL(process.env.http_proxy)
const lines = require("fs").readFileSync(0, "utf8").trim().split("\\n")
const next = () => {
  if (!lines.length) return
  const [method, url] = lines.shift().split(" ")
  const auth = "Basic " + Buffer.from(proxy.username + ":" + proxy.password).toString("base64")
  const headers = {"Proxy-Authorization": auth, Host: "fine.example"}
  const asked = http.request({host: proxy.hostname, port: proxy.port, method, path: url, headers}, answer => {
    answer.on("data", block => answer.statusCode < 300 && process.stdout.write(block)).on("end", next)
  })
  asked.on("error", next).end(method === "POST" ? "x" : undefined)
}
next()
"""
EVERY = {"NO_PROXY": "", "no_proxy": ""}
"""Loopback, too, is asked for at the proxy."""


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


def line_of(client: str, rows: list[tuple[str, str]]) -> str:
    """One command that asks for all, one after the other."""
    env = "/usr/./bin/env " + " ".join(f"{name}={text}" for name, text in EVERY.items())
    if client == "curl":
        options = {"GET": "", "HEAD": "-I", "POST": "-d x", "DELETE": "-X DELETE"}
        one = "/usr/bin/curl -sL -m 20 -w '%{http_code}\\n' --path-as-is"
        return "; ".join(f"{env} {one} {options[method]} {shlex.quote(url)}" for method, url in rows)
    if client == "git":
        return "; ".join(f"{env} /usr/bin/git ls-remote -q {shlex.quote(url)}" for _, url in rows)
    if client == "pip":
        hosts = {urlsplit(url).hostname for _, url in rows}
        trusted = " ".join(f"--trusted-host {shlex.quote(host)}" for host in sorted(filter(None, hosts)))
        urls = [f"--extra-index-url {shlex.quote(url)}" for _, url in rows[1:]]
        first = f"--index-url {shlex.quote(rows[0][1])}"
        return (f"{env} /usr/bin/python3 -m pip download -q --no-deps --retries 0 --timeout 20 --no-cache-dir "
                f"--disable-pip-version-check {trusted} {first} {' '.join(urls)} demo")  # fmt: skip
    program = {"python3": "/usr/bin/python3 /try.py", "node": "/usr/bin/node /try.js"}[client]
    given = "".join(f"{method} {url}\n" for method, url in rows)
    return f"printf %s {shlex.quote(given)} | {env} {program}"


def usable(client: str, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What a client can ask for: git and pip have one method, and programs in the locale C want ASCII."""
    found = [row for row in rows if row[1].isascii()]
    if client in ("curl", "git"):  # to them, what is before a backslash is the user
        found = [row for row in found if "\\" not in row[1]]
    return [row for row in found if row[0] == "GET"] if client in ("git", "pip") else found


def arrived(web: Web, before: int) -> list[str]:
    return [f"{headers['Host']} {path}" for _, path, headers, _ in web.seen[before:] if not path.startswith("/to?")]


@pytest.mark.parametrize("client", ["curl", "python3", "node", "git", "pip"])
def test_rules_hold_for_programs(client: str, native: Native, web: Web) -> None:
    need("python3" if client == "pip" else client)

    async def act() -> None:
        for name, row in TABLE.items():
            async with Workspace(native=native, network=filled(row.policy, web.port)) as ws:
                assert ws.door is not None
                ws.door.resolver = resolver()
                await ws.dispatch("write", "/try.py", PYTHON)
                await ws.dispatch("write", "/try.js", NODE)
                allowed = usable(client, list(asked(row.allowed, web.port)))
                for one in allowed[:1] if client == "pip" else allowed:  # each takes it half a second
                    before = len(web.seen)
                    done = await ws.execute(line_of(client, [one]))
                    if client == "pip" and "No module named pip" in done.error_text:
                        pytest.skip("the machine's python3 has no pip")
                    assert arrived(web, before), (name, one, done)
                refused = usable(client, list(asked(row.refused, web.port)))
                if refused:
                    before = len(web.seen)
                    done = await ws.execute(line_of(client, refused))
                    assert not arrived(web, before) and "hello" not in done.text.splitlines(), (name, refused, done)

    asyncio.run(act())
