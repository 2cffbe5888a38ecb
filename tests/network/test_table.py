"""Every form of a rule, through every client in process: what is allowed works, all else is refused and recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.support.network_table import TABLE, asked, filled, resolver
from tests.support.web_fake import Web, web_fake

from ramet.backends.remote.http_client import HTTPClient
from ramet.core.paths import parse
from ramet.network.resolver import Resolver
from ramet.network.rules import NetworkRule, NetworkVerdict
from ramet.workspace.workspace import Workspace

CLIENTS = {
    "curl": "curl -sSL -m 9 {method} '{url}'",
    "wget": "wget -nv -t 1 -T 9 -O - {method} '{url}'",
}
METHODS = {
    "curl": {"GET": "", "HEAD": "-I", "POST": "-d x", "DELETE": "-X DELETE"},
    "wget": {"GET": "", "HEAD": "--spider", "POST": "--post-data x", "DELETE": "--method DELETE"},
}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


def reached(web: Web, before: int) -> list[str]:
    """What arrived at the server, but for the redirects that the test itself asked for."""
    return [path for _, path, _, _ in web.seen[before:] if not path.startswith("/to?")]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", TABLE)
def test_rules_hold_for_commands(name: str, client: str, web: Web) -> None:
    row, line, methods = TABLE[name], CLIENTS[client], METHODS[client]

    async def act() -> None:
        async with Workspace(network=filled(row.policy, web.port)) as ws:
            assert ws.door is not None
            ws.door.resolver = resolver()
            for method, url in asked(row.allowed, web.port):
                before = len(web.seen)
                done = await ws.execute(line.format(method=methods[method], url=url))
                assert done.exit_code == 0, (url, done)
                assert len(reached(web, before)) == 1 and (method != "GET" or done.text == "hello\n"), (url, done)
            unread = 0
            for method, url in asked(row.refused, web.port):
                before = len(web.seen)
                done = await ws.execute(line.format(method=methods[method], url=url))
                assert done.exit_code and "hello\n" not in done.text and not reached(web, before), (url, done)
                if "the network policy refuses" not in done.error_text:
                    unread += 1
                    assert any(odd in url for odd in "\\%ß"), (url, done)  # no URL at all
            log = (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()
            assert sum(json.loads(one)["verdict"] == "deny" for one in log) == len(row.refused) - unread

    asyncio.run(act())


MOUNTED = [name for name, row in TABLE.items() if set(row.policy) == {"allow"} and "session" not in name
           and "agent" not in name]  # fmt: skip


@pytest.mark.parametrize("name", MOUNTED)
def test_rules_hold_for_mounts(name: str, web: Web) -> None:
    """A mount names its hosts; whether their addresses may be private, it says once for all of them."""
    row, place = TABLE[name], parse("/x")
    rules = filled(row.policy, web.port)["allow"]
    plain = [rule["host"] if isinstance(rule, dict) else rule for rule in rules]
    private = any(isinstance(rule, dict) for rule in rules)

    async def ask(client: HTTPClient, method: str, url: str) -> bytes:
        async with client.ask(method, url, path=place) as response:
            return await client.body(response, place, 100)

    async def act() -> None:
        client = HTTPClient(plain, private=private)
        client.resolver = resolver()
        try:
            for method, url in asked(row.allowed if private else (), web.port):
                assert await ask(client, method, url) == (b"" if method == "HEAD" else b"hello\n"), url
            for method, url in asked(row.refused, web.port):
                if "port" in name:  # a mount names a port in the host
                    continue
                before = len(web.seen)
                with pytest.raises(PermissionError):
                    await ask(client, method, url)
                assert not reached(web, before), url
        finally:
            await client.close()

    asyncio.run(act())


def test_a_name_that_changes_its_address_is_checked_again(web: Web) -> None:
    """The resolver answers differently each time; every request goes to the address that was checked for it."""
    answers = ["127.0.0.1", "127.0.0.2", "10.0.0.1", "127.0.0.1", "169.254.169.254"]
    asked_for: list[str] = []
    now = [0.0]

    async def rebinding(host: str, port: int) -> list[str]:
        asked_for.append(host)
        return [answers[(len(asked_for) - 1) % len(answers)]]

    async def act() -> list[tuple[str, str, int]]:
        async with Workspace(network={"allow": ["fine.example", f"127.0.0.1:{web.port}"]}) as ws:
            assert ws.door is not None
            ws.door.resolver = Resolver(rebinding, lambda: now[0])
            for _ in answers:
                await ws.execute(f"curl -s http://fine.example:{web.port}/hello")
                now[0] += 61  # what was remembered is old
            log = [json.loads(one) for one in (await ws.execute("cat /.sessions/*/network.jsonl")).text.splitlines()]
            return [(one["verdict"], one["address"], one["status"]) for one in log]

    good, bad = ("allow", "127.0.0.1", 200), ("deny", "", 0)
    assert asyncio.run(act()) == [good, bad, bad, good, bad]
    assert len(asked_for) == len(answers), "one look for each request"


def test_the_table_has_every_part_of_a_rule() -> None:
    rules = [
        NetworkRule.parse(NetworkVerdict(verdict), filled(rule, 80))
        for row in TABLE.values() for verdict, found in row.policy.items() for rule in found
    ]  # fmt: skip
    for part in ("network", "port", "scheme", "methods", "session", "agent", "private"):
        assert any(getattr(rule, part) for rule in rules), part
    assert any(rule.path != "/" for rule in rules) and {rule.verdict for rule in rules} == set(NetworkVerdict)
