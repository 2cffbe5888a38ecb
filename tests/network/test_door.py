"""The door, through curl and wget: what is allowed works, all else is refused, recorded, and leaks nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.tls import TestAuthority
from tests.support.web_fake import Web, web_fake

from ramet import RecordFilter, Store, Workspace
from ramet.core.errors import RametError
from ramet.network.resolver import Resolver
from ramet.network.transport import MOST_POOLS
from ramet.workspace.policy import Policy

SECRET = "hunter2-very-secret"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


def run(network: dict[str, Any] | None, act: Callable[[Workspace], Awaitable[Any]], **more: Any) -> Any:
    async def inside() -> Any:
        async with Workspace(network=network, **more) as ws:
            return await act(ws)

    return asyncio.run(inside())


def execute(network: dict[str, Any] | None, *lines: str, **more: Any) -> list[Any]:
    async def act(ws: Workspace) -> list[Any]:
        return [await ws.execute(line) for line in lines]

    return list(run(network, act, **more))


@pytest.mark.parametrize(("client", "status"), [("curl", 7), ("wget", 4)])
def test_a_command_line_without_options_is_refused_too(client: str, status: int, web: Web) -> None:
    refused, allowed = execute(
        {"allow": [f"127.0.0.1:{web.port}"]}, f"{client} http://127.0.0.1:1/", f"{client} {web.url}/hello; cat hello"
    )  # fmt: skip
    assert refused.exit_code == status and "the network policy refuses" in refused.error_text
    assert allowed.text.startswith("hello\n")


def test_urls_without_options_are_all_transferred(web: Web) -> None:
    (done,) = execute({"allow": ["127.0.0.1"]}, f"curl {web.url}/hello {web.url}/hello")
    assert (done.text, done.error_text, done.exit_code) == ("hello\nhello\n", "", 0)


def test_a_missing_client_is_named(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    (done,) = execute({"allow": ["127.0.0.1"]}, f"curl -s {web.url}/hello")
    assert done.exit_code == 7 and "pip install 'ramet[http]'" in done.error_text


def test_without_a_policy_nothing_leaves(web: Web) -> None:
    curl, wget = execute(None, f"curl {web.url}/hello", f"wget {web.url}/hello")
    assert (curl.exit_code, wget.exit_code) == (6, 4)
    assert "the network is off in this workspace" in curl.error_text and "--allow-host" in wget.error_text


def test_a_host_header_of_the_client_is_not_sent(web: Web) -> None:
    before = len(web.seen)
    done = execute(
        {"allow": [f"127.0.0.1:{web.port}"]},
        f"curl -s -H 'Host: evil.example' -H 'X: a' {web.url}/echo",
        f"wget -q -O- --header 'Host: evil.example' {web.url}/echo",
        f"curl -s -H $'X: a\\r\\nHost: evil.example' {web.url}/echo",
        f"curl -s -X $'GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\nGET' {web.url}/echo",
    )
    assert [one.exit_code for one in done] == [0, 0, 0, 7]
    assert [headers["Host"] for _, _, headers, _ in web.seen[before:]] == [f"127.0.0.1:{web.port}"] * 3


def test_proxies_of_the_environment_are_ignored(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (done,) = execute(
        {"allow": [f"127.0.0.1:{web.port}"]}, f"http_proxy=http://127.0.0.1:1 curl -s {web.url}/hello"
    )  # fmt: skip
    assert done.text == "hello\n"


def test_a_rule_for_a_session_and_an_agent(web: Web) -> None:
    network = {"allow": [{"host": "127.0.0.1", "session": "web", "agent": "bot"}]}

    async def act(ws: Workspace) -> list[int]:
        ws.create_session("web")
        line = f"curl -s {web.url}/hello"
        calls = [("web", "bot"), ("default", "bot"), ("web", "other")]
        return [(await ws.execute(line, session, agent_id=agent)).exit_code for session, agent in calls]

    assert run(network, act) == [0, 7, 7]


# ----------------------------------------------------------------------------------------------------- credentials


CREDENTIALS: dict[str, tuple[dict[str, str], str, str]] = {
    "a header": ({"header": "Authorization", "prefix": "Bearer "}, "", f'"Bearer {"*" * len(SECRET)}"'),
    "another header": ({"header": "X-Key"}, "", f'"X-Key": "{"*" * len(SECRET)}"'),
    "a parameter": ({"query": "key"}, "", f'"path": "/echo?key={"*" * len(SECRET)}"'),
    "a placeholder": ({}, "-H \"Authorization: token $TOKEN\"", f'"Authorization": "token {"*" * len(SECRET)}"'),
    "a placeholder of the query": ({}, "-G --data-urlencode \"k=$TOKEN\"", f'"path": "/echo?k={"*" * len(SECRET)}"'),
}  # fmt: skip


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_reaches_its_host_and_nothing_shows_it(
    name: str, web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    row, option, wanted = CREDENTIALS[name]
    monkeypatch.setenv("TOKEN", SECRET)
    network = {
        "allow": [f"127.0.0.1:{web.port}", f"localhost:{web.port}"],
        "credentials": {f"127.0.0.1:{web.port}": {**row, "from": "env:TOKEN"}},
    }
    other = f"http://localhost:{web.port}"

    async def act() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("w")
        async with store.open("w", network=network) as ws:
            done = await ws.execute(f"curl -v {option} {web.url}/echo > /out; cat /out")
            assert wanted in done.text, done
            _, path, headers, _ = web.seen[-1]
            assert SECRET in path + str(headers)
            await ws.execute(f"curl -sL {option} '{web.url}/to?url={other}/echo'; curl -s {option} {other}/echo")
            for _, path, headers, _ in web.seen[-2:]:
                assert SECRET not in path + str(headers), "another host got it"
            everything = await ws.execute("env; set; cat /.sessions/*/*.jsonl; history; declare -p")
            records = json.dumps([record.as_dict() for record in ws.history])
            assert SECRET not in done.text + done.error_text + everything.text + records
            ws.snapshot(str(tmp_path / "w.tar"))
        found = [file for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
        assert found == []

    asyncio.run(act())


def test_basic_authentication_from_outside(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    network = {"allow": ["127.0.0.1"], "credentials": {"127.0.0.1": {"basic": "me", "from": "env:TOKEN"}}}
    (done,) = execute(network, f"curl -s -u someone:else {web.url}/echo")
    assert web.seen[-1][2]["Authorization"] == "Basic bWU6aHVudGVyMi12ZXJ5LXNlY3JldA=="
    assert "aHVudGVy" not in done.text and SECRET not in done.text


SEVERAL: dict[str, Any] = {
    "of one host": {"127.0.0.1": [{"header": "X-A", "from": "env:A"}, {"from": "env:AB"}]},
    "in lists": {"127.0.0.1": [{"from": "env:A"}], "127.0.0.0/8": [{"from": "env:AB"}]},
    "one of two hosts": {
        "127.0.0.1": {"from": "env:AB"}, "b.example": {"from": "env:AB"}, "127.0.0.0/8": {"from": "env:A"},
    },
    "with names": {"127.0.0.1": [{"from": "env:A", "name": "x"}, {"from": "env:AB", "name": "xy"}]},
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_several_secrets_have_different_placeholders(name: str, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "first-secret")
    monkeypatch.setenv("AB", "second-secret")
    network = {"allow": ["127.0.0.1"], "credentials": SEVERAL[name]}
    execute(network, f'curl -s -H "X-A: $A" -H "X-B: $AB" {web.url}/echo')
    headers = web.seen[-1][2]
    assert (headers["X-A"], headers["X-B"]) == ("first-secret", "second-secret")


def test_a_session_that_was_saved_without_the_policy_has_its_placeholders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)

    async def act() -> list[str]:
        store = Store(str(tmp_path))
        store.create("w")
        found = []
        for name in ("", "first", "second"):
            row = {"header": "X", "from": "env:TOKEN", "name": name}
            network = {"allow": ["a.example"], "credentials": {"a.example": row}} if name else None
            async with store.open("w", network=network, secrets={"OTHER": "other-secret"}) as ws:
                await ws.execute("touch /a; MINE=1")
                found.append((await ws.execute("env | grep -E '^(TOKEN|OTHER)=' | sort; echo $MINE")).text)
        return found

    other = "OTHER=other-secret\n"
    tokens = ["", "TOKEN=ramet-secret:first\n", "TOKEN=ramet-secret:second\n"]
    assert asyncio.run(act()) == [f"{other}{token}1\n" for token in tokens]


@pytest.mark.parametrize(("scheme", "sent"), [("", False), ("http://", True), ("https://", False)])
def test_a_secret_does_not_cross_the_internet_in_clear_text(
    scheme: str, sent: bool, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setattr("ramet.network.door.is_public", lambda address: True)
    host = f"{scheme}127.0.0.1:{web.port}"
    network = {"allow": ["127.0.0.1"], "credentials": {host: {"header": "X-Key", "from": "env:TOKEN"}}}
    execute(network, f"curl -s {web.url}/echo", f'curl -s -H "X-Mine: $TOKEN" {web.url}/echo')
    (_, _, first, _), (_, _, second, _) = web.seen[-2:]
    assert first.get("X-Key") == (SECRET if sent else None)
    assert second["X-Mine"] == (SECRET if sent else f"ramet-secret:{host}")


def test_a_secret_that_cannot_be_had_is_a_refusal_that_says_so(web: Web) -> None:
    network = {"allow": ["127.0.0.1"], "credentials": {"127.0.0.1": {"header": "X", "from": "env:NOT_SET_ANYWHERE"}}}
    before = len(web.seen)
    curl, wget, log = execute(network, f"curl -s {web.url}/hello", f"wget -q {web.url}/hello", "cat /.sessions/*/n*")
    assert (curl.exit_code, wget.exit_code, len(web.seen)) == (7, 4, before)
    assert "$NOT_SET_ANYWHERE is empty outside" in curl.error_text
    assert [json.loads(row)["verdict"] for row in log.text.splitlines()] == ["deny", "deny"]


REFLECTED = ("-H 'X: 1'", '-u "$TOKEN:"', '-u "x:$TOKEN"', '-H "Authorization: token $TOKEN"', '-H "X-Key: $TOKEN"')


@pytest.mark.parametrize("row", [{"header": "X-Key"}, {"basic": "me"}, {}], ids=str)
def test_a_secret_is_covered_wherever_a_server_shows_it(
    row: dict[str, str], web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = 'hunter2/very+secret"value'
    monkeypatch.setenv("TOKEN", secret)
    network = {"allow": ["127.0.0.1"], "credentials": {"127.0.0.1": {**row, "from": "env:TOKEN"}}}
    url = f"{web.url}/reflect"
    lines = [f"curl -sv -c - {option} {url}" for option in REFLECTED]
    lines += [f"wget -S -O- --auth-no-challenge --user=$TOKEN --password=x {url}"]
    before = len(web.seen)
    inner = [base64.b64encode(b"?" * at + secret.encode())[4:28].decode() for at in range(3)]
    for line, done in zip(lines, execute(network, *lines), strict=True):
        assert done.exit_code == 0, done
        for form in (secret, json.dumps(secret)[1:-1], "very\\/", "very%2B", *inner):
            assert form not in done.text + done.error_text, (line, form)
    sent = [headers.get("Authorization", "") + headers.get("X-Key", "") for _, _, headers, _ in web.seen[before:]]
    assert sum(secret in one or any(form in one for form in inner) for one in sent) >= len(lines) - 1


def test_a_secret_is_covered_also_where_it_is_written_for_a_url(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "pass & word/1")
    network = {"allow": ["127.0.0.1"], "credentials": {"127.0.0.1": {"query": "key", "from": "env:TOKEN"}}}
    (done,) = execute(network, f"curl -s --compressed {web.url}/echo")
    assert web.seen[-1][1] == "/echo?key=pass%20%26%20word%2F1" and "word" not in done.text, done
    assert web.seen[-1][2]["Accept-Encoding"] == "identity", "a compressed answer could not be read for the secret"


def test_authorities_of_the_policy_are_trusted(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path)
    rules = {"allow": ["localhost"]}
    with web_fake(authority.server(["localhost"])) as secure:
        url = f"https://localhost:{secure.port}/hello"
        lines = (f"curl -sS {url}", f"wget -q -O- {url}")
        unknown = execute(rules, *lines)
        known = execute({**rules, "authorities": str(authority.path)}, *lines)
    assert [one.exit_code for one in unknown] == [60, 5]
    assert [one.text for one in known] == ["hello\n", "hello\n"]
    for wrong in (str(tmp_path / "none.pem"), "/dev/null", 7):
        with pytest.raises(RametError, match="authorities"):
            Workspace(network={**rules, "authorities": wrong})
    odd: list[Any] = ["fine.example", [7], ["GET fine.example"], ["http://fine.example"], ["https://fine.example/x"]]
    for given in odd:
        with pytest.raises(RametError, match="network"):
            Workspace(network={**rules, "intercept": given})


def test_connections_to_many_hosts_do_not_pile_up(web: Web) -> None:
    async def act(ws: Workspace) -> None:
        assert ws.door is not None

        async def here(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        ws.door.resolver = Resolver(here)
        line = f'curl -s "http://h[1-{MOST_POOLS + 20}].example:{web.port}/hello"'
        assert (await ws.execute(line)).text == "hello\n" * (MOST_POOLS + 20)
        assert len(ws.door._transport._pools) <= MOST_POOLS

    run({"allow": [{"host": "*.example", "private": True}]}, act)


def test_a_credential_that_is_missing_is_an_error_without_its_value(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    network = {"allow": ["127.0.0.1"], "credentials": {"127.0.0.1": {"header": "A", "from": "env:TOKEN"}}}
    (done,) = execute(network, f"curl -s {web.url}/echo")
    assert done.exit_code and "$TOKEN is empty outside" in done.error_text


# ------------------------------------------------------------------------------------------------ log and questions


def test_the_log_names_who_what_and_why(web: Web) -> None:
    network = {"allow": [f"GET http://127.0.0.1:{web.port}"]}

    async def act(ws: Workspace) -> None:
        line = f"curl -s '{web.url}/hello?token=abc'; curl -s -d secret {web.url}/hello; curl -s http://no.example/"
        await ws.execute(line, agent_id="bot")
        rows = [json.loads(row) for row in (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()]
        names = ("client", "agent_id", "method", "host", "path", "verdict", "status")
        shown = [tuple(row[name] for name in names) for row in rows]
        assert shown == [
            ("curl", "bot", "GET", "127.0.0.1", "/hello", "allow", 200),
            ("curl", "bot", "POST", "127.0.0.1", "/hello", "deny", 0),
            ("curl", "bot", "GET", "no.example", "/", "deny", 0),
        ]
        assert rows[0]["rule"] == network["allow"][0] and rows[0]["bytes_received"] == 6
        record = next(iter(ws.history))
        assert (record.network_requests, record.network_bytes, len(record.network)) == (3, 6, 3)
        assert record.as_dict()["network"][0]["path"] == "/hello"

    run(network, act)


def test_the_log_and_the_costs_last(web: Web, tmp_path: Any) -> None:
    async def act() -> None:
        store = Store(str(tmp_path))
        store.create("w")
        async with store.open("w", network={"allow": ["127.0.0.1"]}) as ws:
            await ws.execute(f"curl -s {web.url}/hello")
            await ws.execute("curl -s http://no.example/else")
        async with store.open("w") as ws:
            rows = (await ws.execute("cat /.sessions/default/network.jsonl")).text.splitlines()
            assert [json.loads(row)["path"] for row in rows] == ["/hello", "/else"]
            assert (await ws.execute(f"curl -s {web.url}/hello")).exit_code == 6
        for where, found in (
            (RecordFilter(network="any"), [1, 2]), (RecordFilter(network="refused"), [2]),
            (RecordFilter(exit_code=6), [4]),
        ):  # fmt: skip
            assert [one.number for one in store["w"].history(where=where)] == found
        (row,) = store["w"].costs()
        assert (row.network_requests, row.network_bytes) == (2, 6)

    asyncio.run(act())


@pytest.mark.parametrize(("answer", "asked", "codes"), [(True, 2, [0, 0]), ("host", 1, [0, 0]), (False, 2, [7, 7])])
def test_a_question_is_answered_once_or_for_the_host(answer: Any, asked: int, codes: list[int], web: Web) -> None:
    questions: list[tuple[str, str, str]] = []

    async def ask(request: Any) -> Any:
        questions.append((request.kind, request.name, request.subject))
        return answer

    line = f"curl -s '{web.url}/hello?q=secret'"
    done = execute({"ask": ["127.0.0.1"]}, line, line, policy=Policy(answer=ask))
    assert [one.exit_code for one in done] == codes
    assert questions == [("network", "GET", f"{web.url}/hello")] * asked


def test_a_question_waits_for_decide(web: Web) -> None:
    async def act(ws: Workspace) -> None:
        assert ws.policy is not None
        ws.policy.interactive = True
        call = asyncio.ensure_future(ws.execute(f"curl -s {web.url}/hello"))
        while not ws.policy.pending:  # noqa: ASYNC110
            await asyncio.sleep(0)
        (number,) = ws.policy.pending
        ws.policy.decide(number, "host")
        assert (await call).text == "hello\n"

    run({"ask": ["127.0.0.1"]}, act)


def test_limits_are_loud(web: Web) -> None:
    network = {"allow": ["127.0.0.1"], "limits": {"body_bytes": 1000}}
    big, sent = execute(network, f"curl -s {web.url}/file", f"head -c 2000 /dev/zero | curl -s -T - {web.url}/echo")
    assert big.exit_code == sent.exit_code == 63 and "allows 1000 bytes" in big.error_text
    network = {"allow": ["127.0.0.1"], "limits": {"requests_per_minute": 2}}
    assert [one.exit_code for one in execute(network, *[f"curl -s {web.url}/hello"] * 3)] == [0, 0, 63]
    network = {"allow": ["127.0.0.1"], "limits": {"timeout": 0.2}}
    (slow,) = execute(network, f"curl -s {web.url}/slow")
    assert slow.exit_code == 28 and "ends a request after 0.2 seconds" in slow.error_text


def test_branches_and_copies_have_the_same_policy(web: Web) -> None:
    async def act(ws: Workspace) -> list[int]:
        line = f"curl -s {web.url}/hello"
        async with ws.branch() as branch, ws.copy() as twin:
            return [(await one.execute(line)).exit_code for one in (branch, twin)]

    assert run({"allow": ["127.0.0.1"]}, act) == [0, 0]


def test_a_wrong_policy_is_refused_where_it_is_given() -> None:
    wrong: list[Any] = [{"alow": []}, 7, {"allow": ["a b"]}]
    for network in wrong:
        with pytest.raises(RametError, match="network"):
            Workspace(network=network)
