"""Gmail and Drive against emulators that others wrote: what those have, our mounts can do with it.

`emulate` has no batches, profiles, raw messages, changes or new contents; `google-drive-mock` has no terms of queries,
exports, shared drives or sessions. The fakes have those.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends.services.test_emulators import PROGRAM, running
from tests.support.descriptions import checked_ports
from tests.support.servers import free_ports, open_port, until_ready

from ramet import Workspace
from ramet.backends import GmailConfig, GmailResource, GoogleDriveConfig, GoogleDriveResource
from ramet.testing import READING, Check, run_check

NODE = shutil.which("node")
MODULES = Path(__file__).parents[4] / ".venv-emulators" / "node_modules"
with_emulate = pytest.mark.skipif(PROGRAM is None, reason="emulate is not installed; `make test-emulators` does that")
with_mock = pytest.mark.skipif(
    NODE is None or not (MODULES / "google-drive-mock").exists() or PROGRAM is None,
    reason="google-drive-mock is not installed; `make test-emulators` does that",
)


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running("google", tmp_path_factory.mktemp("google")) as port:
        yield port


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    (port,) = free_ports(1)
    log = tmp_path_factory.mktemp("mock") / "log"
    script = f"require('google-drive-mock').startServer({port}, '127.0.0.1')"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(NODE), "-e", script], cwd=MODULES.parent, stdout=out, stderr=out, env={"PATH": os.environ["PATH"]}
        )
    try:
        until_ready(lambda: open_port(port), process)  # it says nothing of it
        checked_ports[port] = None  # its versions are numbers, where the vendor's are strings
        yield port
    finally:
        checked_ports.pop(port, None)
        process.terminate()
        process.wait()


def mailbox(port: int) -> GmailResource:
    config = GmailConfig(
        access_token="ya29.test",
        base_url=f"http://127.0.0.1:{port}",
        private=True,
        writable=True,
        days=3000,
        sender="ada@example.com",
    )
    return GmailResource(config)


def drive(port: int, token: str = "ya29.test") -> GoogleDriveResource:
    return GoogleDriveResource(
        GoogleDriveConfig(access_token=token, base_url=f"http://127.0.0.1:{port}", private=True, writable=True)
    )


def shell(resource: Any, *scripts: str) -> list[str]:
    async def act() -> list[str]:
        ws = Workspace({"/g": resource})
        try:
            results = [await ws.execute(script) for script in scripts]
            return [(one.stdout + one.stderr).decode() for one in results]
        finally:
            await ws.close()

    return asyncio.run(act())


@with_emulate
@pytest.mark.parametrize("check", [one for one in READING if "contents" not in one.name], ids=lambda check: check.name)
def test_the_reading_suite_on_gmail(google: int, check: Check) -> None:
    run_check(check, lambda: mailbox(google))


@with_emulate
def test_messages_of_gmail(google: int) -> None:
    day = "/g/INBOX/2026-05-03"
    found = shell(
        mailbox(google),
        f"ls {day}",
        f"jq -r '.subject, .text, .from[0].address' {day}/Report_Q3__m1.json",
        "query /g 'from:bob needle' | jq -r .path",
        "mail send /g -s Hi -m there bob@example.com",
        "grep -rh '\"subject\"' /g/SENT --include=*.json",
        "grep -c needle /g/threads/Report*.md",
        f"rm {day}/Report*.eml; ls /g/TRASH/2026-05-03",
    )
    assert found[0].split() == ["Report_Q3__m1.eml", "Report_Q3__m1.json"]
    assert found[1] == "Report/Q3\nneedle\nbob@example.com\n" and found[2] == "ALL/2026-05-03/Report_Q3__m1.eml\n"
    assert "Hi" in found[4] and found[5] == "1\n" and "Report_Q3__m1.eml" in found[6]


@with_emulate
def test_files_of_drive(google: int) -> None:
    found = shell(
        drive(google),
        "ls '/g/My Drive'; cat '/g/My Drive/Docs/a.txt'",
        "cd '/g/My Drive'; echo new > n.txt; cat n.txt",
        "cd '/g/My Drive'; mkdir x; mv n.txt x/m.txt; ls x; cat x/m.txt",
        "cd '/g/My Drive'; rm -r x; ls",
        "tail -c 2 '/g/My Drive/Docs/a.txt'",
    )
    assert found == ["Docs\nhello", "new\n", "m.txt\nnew\n", "Docs\n", "lo"]


@with_mock
def test_files_of_the_mock(mock: int) -> None:
    found = shell(
        drive(mock, "valid-token"),
        "cd '/g/My Drive'; echo one > a.txt; cat a.txt; echo two > a.txt; cat a.txt; ls",
        "cd '/g/My Drive'; mv a.txt b.txt; ls; cat b.txt; rm b.txt; ls",
    )
    assert found[0] == "one\ntwo\na.txt\n" and found[1] == "b.txt\ntwo\n"
