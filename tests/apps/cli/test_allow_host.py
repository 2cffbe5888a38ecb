"""`--allow-host` and `network:`: what the command line, a configuration file and a server let commands reach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.web_fake import Web, web_fake

from ramet import Store
from ramet.apps.server.events import Events
from ramet.apps.server.open_workspaces import OpenWorkspaces
from ramet.apps.server.settings import ServerSettings
from ramet.network.network import Network
from ramet.workspace.config import load_config


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> str:
    place = str(tmp_path / "store")
    Store(place).create("w")
    return place


def test_a_host_of_the_command_line_is_reached_and_no_other(ramet, web: Web) -> None:  # type: ignore[no-untyped-def]
    line = f"curl -s {web.url}/hello"
    ramet("create", "w")
    assert "the network is off" in ramet("exec", "w", line, status=6)
    refused = ramet("exec", "w", line, "--allow-host", "example.org", status=7)
    assert "the network policy refuses" in refused
    assert ramet("exec", "w", line, "--allow-host", f"127.0.0.1:{web.port}") == "hello\n"


def test_a_host_that_cannot_be_read_is_named(ramet) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "w")
    shown = ramet("exec", "w", "true", "--allow-host", "ftp://x", status=1)
    assert "cannot read the network rule 'ftp://x'" in shown


CONFIG = """
name: w
network:
  allow:
    - {{host: 127.0.0.1, port: {port}, methods: [GET], path: /echo}}
  limits: {{body_bytes: 1MB}}
  credentials:
    127.0.0.1: {{header: X-Key, from: env:NETWORK_TEST_KEY, name: key}}
"""


def test_a_configuration_opens_the_network(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWORK_TEST_KEY", "not-for-agents")
    file = tmp_path / "ramet.yaml"
    file.write_text(CONFIG.format(port=web.port))

    async def act() -> None:
        ws = load_config(file).workspace()
        done = await ws.execute(f"echo $NETWORK_TEST_KEY; curl -s {web.url}/echo; curl -s {web.url}/hello")
        assert done.exit_code == 7 and done.text.startswith("ramet-secret:key\n") and "not-for-agents" not in done.text
        assert web.seen[-1][2]["X-Key"] == "not-for-agents"
        assert ws.network is not None and ws.network.limits.body_bytes == 1_000_000
        await ws.close()

    asyncio.run(act())


@pytest.mark.parametrize(("part", "words"), [
    ("allow: [api.example.org:99999]", "is not a port"), ("alow: []", "alow"), ("default: maybe", "maybe"),
    ("credentials: {a.example: {header: A}}", "from"),
    ("credentials: {a.example: {from: env:X, header: 'A: b'}}", "A: b"),
    ("limits: {bodies: 1}", "bodies"), ("allow: [{port: 80}]", "host"),
])  # fmt: skip
def test_a_configuration_that_is_wrong_says_where(part: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "ramet.yaml"
    file.write_text(f"network:\n  {part}\n")
    with pytest.raises(Exception, match=r"(?s)network") as caught:
        load_config(file)
    assert words in str(caught.value) and str(file) in str(caught.value)


def test_a_server_gives_its_workspaces_a_policy(web: Web, store: str) -> None:
    async def act() -> None:
        settings = ServerSettings(network=Network.with_hosts(None, [f"127.0.0.1:{web.port}"]))
        held = OpenWorkspaces(Store(store), settings, Events(settings.bounds.events))
        memory = await held.add_memory("m")
        assert (await memory.ws.execute(f"curl -s {web.url}/hello")).text == "hello\n"
        await held.close()

    asyncio.run(act())
