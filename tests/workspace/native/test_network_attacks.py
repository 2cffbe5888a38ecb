"""What a program in a box may try: other proxies, other addresses, names that change theirs, more than its limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.support.tls import TestAuthority
from tests.support.web_fake import Web, web_fake
from tests.workspace.native.conftest import need

from ramet.native.options import Native
from ramet.network.resolver import Resolver
from ramet.workspace.workspace import Workspace

HOSTS = ("fine.example", "other.example")


async def lookup(host: str, port: int) -> list[str]:
    if host in HOSTS:
        return ["127.0.0.1"]
    if host[0].isdigit():
        return [host]
    raise OSError("unknown")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(authority: TestAuthority) -> Iterator[Web]:
    with web_fake(authority.server(HOSTS)) as running:
        yield running


def run(native: Native, network: Any, act: Callable[[Workspace], Awaitable[None]], resolver: Any = None) -> None:
    need("curl")

    async def inside() -> None:
        async with Workspace(native=native, network=network) as ws:
            assert ws.door is not None
            ws.door.resolver = resolver or Resolver(lookup)
            await act(ws)

    asyncio.run(inside())


def fine(port: int, **more: Any) -> dict[str, Any]:
    return {"host": "fine.example", "port": port, "private": True, **more}


async def log_of(ws: Workspace) -> list[Any]:
    return [json.loads(row) for row in (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()]


# A line, and the host that it reaches; none for nothing.
WAYS = {
    "HTTP_PROXY=http://127.0.0.1:1 http_proxy=http://127.0.0.1:1 C http://other.example:P/hello": "",
    "http_proxy= HTTP_PROXY= C http://fine.example:P/hello": "",
    "NO_PROXY='*' no_proxy='*' C http://fine.example:P/hello": "",
    "C --noproxy '*' http://other.example:P/hello": "",
    "C --noproxy '*' http://127.0.0.1:P/hello": "",
    "C -x http://127.0.0.1:P http://other.example/hello": "",
    "C -x http://127.0.0.1:3128 http://fine.example:P/hello": "",
    "C -x http://ramet:guess@127.0.0.1:3128 http://fine.example:P/hello": "",
    "C -x $http_proxy http://other.example:P/hello": "",
    "C -x $http_proxy http://fine.example:P/hello": "fine.example",
    "C -p -x $http_proxy http://fine.example:P/hello": "fine.example",
    "C -p -x $http_proxy http://other.example:P/hello": "",
    "C -p -x $http_proxy http://fine.example:1/hello": "",
    "C -p -x $http_proxy -H 'Host: other.example' http://fine.example:P/hello": "other.example",
    "C -H 'Host: other.example' http://fine.example:P/hello": "fine.example",
    "C --proxy-header 'Host: other.example' http://fine.example:P/hello": "fine.example",
    "C --resolve other.example:P:127.0.0.1 http://other.example:P/hello": "",
    "C --resolve fine.example:P:10.0.0.1 http://fine.example:P/hello": "fine.example",
    "C --connect-to fine.example:P:other.example:P http://fine.example:P/hello": "",
    "C --connect-to other.example:P:fine.example:P http://other.example:P/hello": "other.example",
    "C --request-target http://other.example:P/hello http://fine.example:P/hello": "",
    "C --request-target /hello http://fine.example:P/echo": "",
    "C --haproxy-protocol http://fine.example:P/hello": "",
    "C --socks5-hostname ramet:guess@127.0.0.1:3128 http://fine.example:P/hello": "",
    "C --socks5 ${SOCKS_PROXY#*//} http://other.example:P/hello": "",
    "C --socks5-hostname ${SOCKS_PROXY#*//} http://other.example:P/hello": "",
    "C --socks5-hostname ${SOCKS_PROXY#*//} http://fine.example:P/hello": "fine.example",
    "C --socks4a ${SOCKS_PROXY#*//} http://fine.example:P/hello": "",
    "C --preproxy $SOCKS_PROXY -x http://other.example:P http://fine.example/hello": "",
    "C --unix-socket /tmp/none http://fine.example:P/hello": "",
    "C --doh-url http://other.example:P/ http://other.example:P/hello": "",
    "C --interface lo --noproxy '*' http://fine.example:P/hello": "",
    "printf 'noproxy = *\\n' > /tmp/.curlrc; HOME=/tmp C http://fine.example:P/hello": "",
    "printf 'proxy = 127.0.0.1:P\\n' > /tmp/.curlrc; HOME=/tmp C http://fine.example:P/hello": "",
    "C --http2-prior-knowledge http://fine.example:P/hello": "fine.example",
    "C --http2 http://fine.example:P/hello": "fine.example",
    "C telnet://fine.example:P < /dev/null": "",
    "C ftp://fine.example:P/hello": "",
    "exec 3<> /dev/tcp/127.0.0.1/P && echo GET /hello >&3": "",
}  # fmt: skip


def test_no_option_and_no_variable_leads_around(native: Native, web: Web) -> None:
    async def act(ws: Workspace) -> None:
        for line, host in WAYS.items():
            web.seen.clear()
            text = re.sub(r"(?<=[:/])P\b", str(web.port), line).replace("C ", "/usr/bin/curl -sf -m 20 ")
            done = await ws.execute(text, native=True)
            asked = [headers["Host"].partition(":")[0] for _, path, headers, _ in web.seen]
            assert asked == ([host] if host else []), (line, done)

    run(native, {"allow": [fine(web.port)]}, act)


REBINDING = ["127.0.0.1", "127.0.0.2", "10.0.0.1", "169.254.169.254", "127.0.0.1"]


@pytest.mark.parametrize("mode", ["http", "tunnel", "intercept", "SOCKS"])
def test_a_name_that_changes_its_address_is_checked_again(
    mode: str, native: Native, web: Web, secure: Web, authority: TestAuthority
) -> None:
    server = secure if mode in ("tunnel", "intercept") else web
    scheme = "https" if server is secure else "http"
    answers, now = iter(REBINDING), [0.0]

    async def rebinding(host: str, port: int) -> list[str]:
        return [next(answers)]

    async def act(ws: Workspace) -> None:
        proxy = "http_proxy= ALL_PROXY=$SOCKS_PROXY " if mode == "SOCKS" else ""
        for address in REBINDING:
            done = await ws.execute(
                f"{proxy}/usr/bin/curl -sf -m 20 {scheme}://fine.example:{server.port}/hello", native=True
            )
            assert (done.text == "hello\n") == (address == "127.0.0.1"), (address, done)
            now[0] += 61  # what was remembered is old
        assert [row["verdict"] for row in await log_of(ws)] == ["allow", "deny", "deny", "deny", "allow"]

    rules = {
        "allow": ["fine.example", "127.0.0.1/32"], "authorities": str(authority.path), "intercept": mode == "intercept",
    }  # fmt: skip
    run(native, rules, act, Resolver(rebinding, lambda: now[0]))


MODES = {
    "http": ("http", False, ""), "tunnel": ("https", False, ""), "intercept": ("https", True, ""),
    "SOCKS": ("http", False, "http_proxy= ALL_PROXY=$SOCKS_PROXY "),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_limits_hold_for_programs(mode: str, native: Native, web: Web, secure: Web, authority: TestAuthority) -> None:
    scheme, intercept, before = MODES[mode]
    server = secure if scheme == "https" else web
    url = f"{scheme}://fine.example:{server.port}"
    curl = f"{before}/usr/bin/curl -s -m 60"

    def rules(**limits: Any) -> dict[str, Any]:
        return {
            "allow": [fine(server.port)], "authorities": str(authority.path), "intercept": intercept, "limits": limits,
        }  # fmt: skip

    async def bytes_of_a_body(ws: Workspace) -> None:
        done = await ws.execute(f"{curl} {url}/file -o big; echo $?; {curl} {url}/hello", native=True)
        status, *rest = done.text.split()
        assert status != "0" and rest == ["hello"], done
        sent = await ws.execute(
            f"head -c 90000 /dev/zero | {curl} -H Expect: -T - {url}/echo -o echoed; wc -c < echoed", native=True
        )
        assert not sent.text.strip().isdecimal() or int(sent.text) < 9000, sent
        assert sum("allows 9000 bytes" in row["error"] for row in await log_of(ws)) == 2

    async def requests_in_a_minute(ws: Workspace) -> None:
        done = await ws.execute("\n".join([f"{curl} -f {url}/hello || echo no"] * 4), native=True)
        assert done.text.split() == ["hello", "hello", "no", "no"], done
        assert sorted(row["status"] for row in await log_of(ws)) == [0, 0, 200, 200]

    async def seconds(ws: Workspace) -> None:
        done = await ws.execute(f"{curl} {url}/slow; echo $?", native=True)
        assert done.text.split()[-1] != "0", done
        assert "ends a request after 0.5 seconds" in (await log_of(ws))[0]["error"]

    async def at_a_time(ws: Workspace) -> None:
        lines = [f"{curl} {url}/hello &" for _ in range(6)]
        done = await ws.execute("\n".join([*lines, "wait"]), native=True)
        assert done.text == "hello\n" * 6, "they wait for each other"

    run(native, rules(body_bytes=9000), bytes_of_a_body)
    run(native, rules(requests_per_minute=2), requests_in_a_minute)
    run(native, rules(timeout=0.5), seconds)
    run(native, rules(concurrency=1), at_a_time)


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_gives_up_frees_its_place(
    mode: str, native: Native, web: Web, secure: Web, authority: TestAuthority
) -> None:
    scheme, intercept, before = MODES[mode]
    server = secure if scheme == "https" else web
    url = f"{scheme}://fine.example:{server.port}"

    async def act(ws: Workspace) -> None:
        given_up = f"{before}/usr/bin/curl -s -o /dev/null -m 0.5 {url}/slow"
        done = await ws.execute(
            "\n".join([given_up] * 3 + [f"{before}/usr/bin/curl -s {url}/hello"]), native=True, timeout=60
        )
        assert done.text == "hello\n", done

    rules = {"allow": [fine(server.port)], "authorities": str(authority.path), "intercept": intercept}
    run(native, {**rules, "limits": {"concurrency": 1}}, act)
