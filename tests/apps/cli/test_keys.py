"""Encrypted stores from a terminal and over HTTP: the key is named, never told."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest
from tests.apps.cli.runner import invoke
from tests.apps.server.harness import Process

import ramet
from ramet import Store
from ramet.apps.client.client import RemoteStore
from ramet.store.crypto.wrapping_keys import new_key_file


class Terminal:
    """The `ramet` command with one store and one key."""

    def __init__(self, home: Path, key: str | None) -> None:
        self.env = {"RAMET_HOME": str(home), "RAMET_KEY": key}

    def __call__(self, *words: str) -> str:
        result = invoke(list(words), env=self.env)
        assert result.exit_code == 0, result.output
        return result.output

    def refused(self, *words: str) -> str:
        result = invoke(list(words), env=self.env)
        assert result.exit_code, result.output
        return result.output


def test_the_life_of_a_key(tmp_path: Path) -> None:
    first, second, home = tmp_path / "first", tmp_path / "second", tmp_path / "home"
    nobody = Terminal(home, None)
    assert nobody("keys", "new", str(first)).startswith("local-") and first.stat().st_mode & 0o777 == 0o600
    assert "never overwritten" in nobody.refused("keys", "new", str(first))
    ramet = Terminal(home, f"file:{first}")
    assert ramet("keys", "init").startswith("local-")
    ramet("create", "w")
    ramet("exec", "w", "echo hidden > /f")
    ramet("fork", "w", "v")
    assert "no key was given" in nobody.refused("ls")
    rows = json.loads(ramet("keys", "show", "--json"))
    assert [(row["workspace"], row["state"], row["keys"]) for row in rows] == [("v", "exists", 2), ("w", "exists", 1)]
    nobody("keys", "new", str(second))
    secret = base64.b64encode(bytes(32)).decode()
    refusal = ramet.refused("keys", "rotate", "--to", secret)
    assert "does not name a key" in refusal and secret not in refusal, "a key on the command line is not taken"
    assert "keyrings written" in ramet("keys", "rotate", "--to", f"file:{second}")
    assert "wrapped by local-" in ramet.refused("ls")
    ramet = Terminal(home, second.read_text().strip())
    assert ramet("show", "w:/f") == "hidden\n"
    assert "cannot be undone" in ramet.refused("keys", "shred", "w")
    done = json.loads(ramet("keys", "shred", "w", "--yes", "--json"))
    assert done["kept_by"] == {"v": 1} and done["workspace"] == "w"
    assert "v still has" in ramet("keys", "shred", "w", "--yes")
    assert ramet("keys", "shred", "w", "--yes").startswith("0 keys destroyed, 0 objects removed")
    assert ramet("show", "v:/f") == "hidden\n"
    assert "no workspace" in ramet.refused("keys", "shred", "nothing", "--yes")
    plain = Terminal(tmp_path / "plain", None)
    plain("create", "w")
    assert "not encrypted" in plain.refused("keys", "show")


def test_a_server_of_an_encrypted_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    new_key_file(str(key))
    monkeypatch.setenv("RAMET_KEY", f"file:{key}")
    server = Process(tmp_path)

    async def work(store: RemoteStore) -> None:
        async with store.open("planted-workspace") as ws:
            done = await ws.execute("echo planted-content > /planted-name; env; cat /proc/self/environ")
            assert "RAMET_KEY" not in done.text and str(key) not in done.text
            await ws.commit("planted-message")

    try:
        with ramet.connect(f"unix:{server.socket}") as store:
            store.create("planted-workspace")
            asyncio.run(work(store))
            handle = store["planted-workspace"]
            assert b"".join(handle.show("/planted-name")) == b"planted-content\n"
            handle.fork(None, "copy")
            secret = key.read_bytes().strip()
            assert secret not in Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    finally:
        server.process.kill()
        server.process.wait()
    for top, _, names in os.walk(tmp_path / "store"):
        for name in names:
            data = Path(top, name).read_bytes()
            assert b"planted" not in data and "planted" not in f"{top}/{name}" and secret not in data
    assert Store(str(tmp_path / "store"), key=f"file:{key}").verify().ok
