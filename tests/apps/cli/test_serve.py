"""`ramet serve`: what whoever waits for its port may rely on."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.apps.cli.runner import invoke

from ramet.apps.cli.verbs import serve as serving


def test_the_token_is_there_before_the_port_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def listen(host: str, port: int) -> socket.socket:
        seen.append((tmp_path / "store" / "server-token").exists())
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "listen", listen)
    invoke(["serve", "--store", str(tmp_path / "store"), "--port", "0"])
    assert seen == [True]
