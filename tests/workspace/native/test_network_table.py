"""Every form of a rule, through programs in a box: over HTTP, HTTPS that is read, and SOCKS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.support.network_table import NAMES, TABLE, asked, filled, resolver
from tests.support.tls import TestAuthority
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import need

from ramet.native.options import Native
from ramet.network.network import Network
from ramet.workspace.workspace import Workspace


class Client(NamedTuple):
    """A command line whose status is 0 when the answer is a success."""

    line: str
    options: dict[str, str]
    """By method."""


CURL = {"GET": "", "HEAD": "-I", "POST": "-d x", "DELETE": "-X DELETE"}
WGET = {"GET": "", "HEAD": "--spider", "POST": "--post-data x", "DELETE": "--method DELETE"}
PYTHON = """
import sys, urllib.request as r
for method, url in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        r.urlopen(r.Request(url, b"x" if method == "POST" else None, method=method), timeout=60).read()
        print(0)
    except (OSError, ValueError):
        print(1)
"""
CLIENTS = {
    "curl": Client("/usr/bin/curl -sfL -m 60 {option} '{url}'", CURL),
    "curl by SOCKS": Client("ALL_PROXY=$SOCKS_PROXY http_proxy= /usr/bin/curl -sfL -m 60 {option} '{url}'", CURL),
    "wget": Client("/usr/bin/wget -q -t 1 -T 60 -O - {option} '{url}'", WGET),
}
MODES = [
    ("curl", "http"), ("curl", "https"), ("curl by SOCKS", "http"), ("curl by SOCKS", "https"), ("wget", "http"),
    ("python3", "http"), ("python3", "https"),
]  # fmt: skip


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


def readable(client: str, url: str) -> bool:
    """Whether a client takes a URL for what Ramet takes it for."""
    return "\\" not in url and not (client in ("python3", "wget") and ("#" in url or "@" in url or not url.isascii()))


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
    need("curl", "wget", "python3")
    web = webs[scheme]
    base = {"intercept": scheme == "https" or "SOCKS" in name, "authorities": str(authority.path)}

    def script(urls: list[tuple[str, str]]) -> str:
        if name == "python3":
            return "python3 /many.py " + " ".join(f"{method} '{url}'" for method, url in urls)
        client = CLIENTS[name]
        lines = [client.line.format(option=client.options[method], url=url) for method, url in urls]
        return "\n".join(["export LC_ALL=C.UTF-8", *(f"{line} > /dev/null 2>&1; echo $?" for line in lines)])

    async def act() -> None:
        async with Workspace(native=native, network=base) as ws:
            assert ws.door is not None
            ws.door.resolver = resolver()
            await ws.dispatch("write", "/many.py", PYTHON)
            for title, row in TABLE.items():
                policy, urls = filled(row.policy, web.port), [list(asked(part, web.port)) for part in row[1:]]
                if scheme == "https":
                    policy, urls = other_scheme(policy), other_scheme(urls)
                ws.door.network = Network.of({**base, **policy})
                allowed, refused = ([one for one in part if readable(name, one[1])] for part in urls)
                allowed = [one for one in allowed if secured(scheme, one[1])]
                done = await ws.execute(script(allowed), native=True)
                assert (done.text.split(), reached(web)) == (["0"] * len(allowed), len(allowed)), (title, done, allowed)
                done = await ws.execute(script(refused), native=True)
                assert (done.text.split().count("0"), reached(web)) == (0, 0), (title, done, refused)
            log = [json.loads(one) for one in (await ws.execute("cat /.sessions/*/network.jsonl")).text.splitlines()]
            assert {one["client"] for one in log} == {"native"} and {one["verdict"] for one in log} == {"allow", "deny"}

    asyncio.run(act())
