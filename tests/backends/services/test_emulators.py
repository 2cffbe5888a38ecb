"""Services against `emulate`, an emulator that others wrote: what it has, our mounts can do with it.

It has no diffs, tarballs, ETags, limits, searches of Slack or refusals of tokens; the fakes have those.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.descriptions import checked_ports
from tests.support.servers import free_ports, open_port, until_ready

from ramet import Workspace
from ramet.backends import GitHubConfig, GitHubResource, SlackConfig, SlackResource, TelegramConfig, TelegramResource
from ramet.testing import READING, Check, run_check

PROGRAM = shutil.which("emulate")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="emulate is not installed; `make test-emulators` does that")
SEED: dict[str, Any] = {
    "tokens": {"ghp_test": {"login": "octocat", "scopes": ["repo", "user"]}},
    "github": {
        "users": [{"login": "octocat", "name": "The Octocat", "email": "octocat@github.com"}],
        "repos": [{"owner": "octocat", "name": "hello-world", "auto_init": True}],
    },
    "google": {
        "users": [{"email": "ada@example.com", "name": "Ada"}],
        "messages": [
            {
                "id": "m1", "user_email": "ada@example.com", "from": "Bob <bob@example.com>", "to": "ada@example.com",
                "subject": "Report/Q3", "body_text": "needle", "label_ids": ["INBOX", "UNREAD"],
                "date": "2026-05-03T10:00:00.000Z",
            }
        ],
        "drive_items": [
            {
                "id": "drv_docs", "user_email": "ada@example.com", "name": "Docs", "parent_ids": ["root"],
                "mime_type": "application/vnd.google-apps.folder",
            },
            {
                "id": "drv_a", "user_email": "ada@example.com", "name": "a.txt", "mime_type": "text/plain",
                "parent_ids": ["drv_docs"], "data": "hello",
            },
        ],
    },
    "slack": {
        "team": {"name": "W", "domain": "w"},
        "users": [{"name": "dev", "email": "dev@example.com"}],
        "channels": [{"name": "general"}],
        "tokens": [{"token": "xoxb-test", "user": "dev", "scopes": ["chat:write", "channels:history", "files:write"]}],
    },
}  # fmt: skip


@contextmanager
def running(service: str, folder: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    seed, log = folder / "seed.yaml", folder / "log"
    seed.write_text(json.dumps(SEED))
    words = [
        str(PROGRAM),
        "start",
        "--service",
        service,
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--seed",
        str(seed),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, env={"PATH": os.environ["PATH"]})
    try:
        until_ready(lambda: b"Ready." in log.read_bytes() and open_port(port), process)
        checked_ports[port] = None  # its answers have fields that the vendor's have not
        yield port
    finally:
        checked_ports.pop(port, None)
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running("github", tmp_path_factory.mktemp("github")) as port:
        yield port


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running("slack", tmp_path_factory.mktemp("slack")) as port:
        yield port


def repository(port: int) -> GitHubResource:
    config = GitHubConfig(
        token="ghp_test", owner="octocat", repo="hello-world", base_url=f"http://127.0.0.1:{port}", private=True,
        writable=True,
    )  # fmt: skip
    return GitHubResource(config)


def team(port: int) -> SlackResource:
    config = SlackConfig(
        token="xoxb-test", base_url=f"http://127.0.0.1:{port}/api", private=True, writable=True, allow=("localhost",)
    )
    return SlackResource(config)


def shell(resource: GitHubResource | SlackResource | TelegramResource, *scripts: str) -> list[str]:
    async def act() -> list[str]:
        ws = Workspace({"/s": resource})
        try:
            results = [await ws.execute(script) for script in scripts]
            return [(one.stdout + one.stderr).decode() for one in results]
        finally:
            await ws.close()

    return asyncio.run(act())


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite_on_slack(slack: int, check: Check) -> None:
    run_check(check, lambda: team(slack))


def test_issues_of_github(github: int) -> None:
    found = shell(
        repository(github), "post /s/issues -t 'Bug one' -m 'It breaks'", "ls /s/issues",
        "sed -i 's/^state: open/state: closed/' /s/issues/1/issue.md", "grep ^state /s/issues/1/issue.md",
        "post /s/issues/1 -m Fixed", "jq -r .body /s/issues/1/comments.jsonl", "jq -r .title /s/issues.jsonl",
        "query /s 'GET /search/issues?q=repo:{owner}/{repo}+Bug' | jq -r .title",
    )  # fmt: skip
    assert found[1:4] == ["1__Bug one\n", "", "state: closed\n"] and found[5:] == ["Fixed\n", "Bug one\n", "Bug one\n"]


def test_files_of_github(github: int) -> None:
    found = shell(
        repository(github), "ls /s/code", "echo hi > /s/code/new.txt", "ls /s/code", "echo hello > /s/code/new.txt",
        "stat -c %s /s/code/new.txt", "query /s 'GET /repos/{owner}/{repo}/contents/new.txt' | jq -r .content",
        "head -1 /s/commits.jsonl | jq -r .commit.message",
    )  # fmt: skip
    # It has no raw blobs, so the content is asked for in another way than the mount does.
    assert found[:5] == ["README.md\n", "", "README.md\nnew.txt\n", "", "6\n"]
    assert found[5:] == ["aGVsbG8K\n", "Write new.txt\n"]


def test_channels_of_slack(slack: int) -> None:
    found = shell(
        team(slack), "ls /s/channels | sed 's/__.*//'", "post /s/channels/general__* -m 'hello <world>'",
        "cat /s/channels/general__*/*/chat.md | sed 's/^..:..//'", "jq -r .name /s/users.jsonl",
        "echo data > /tmp/f.txt; post /s/channels/general__* -m File -a /tmp/f.txt",
        "cat /s/channels/general__*/*/files/*",
    )  # fmt: skip
    assert found[0] == "general\nrandom\n" and found[2] == " dev: hello <world>\n"
    assert found[3].split() == ["admin", "dev"] and found[5] == "data\n"


# ---------------------------------------------------------------------------------------------------- telegram

TELEGRAM = """
const Server = require('telegram-test-api');
const server = new Server({port: Number(process.argv[2]), host: '127.0.0.1', protocol: 'http', storage: 'RAM'});
server.start().then(() => console.log('Ready.'));
"""
BOT = "123456:AAhunter2"


@pytest.fixture(scope="module")
def telegram(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    modules = Path(str(PROGRAM)).resolve().parents[1]
    while modules.name != "node_modules":
        modules = modules.parent
    if not (modules / "telegram-test-api").exists():
        pytest.skip("telegram-test-api is not installed; `make test-emulators` does that")
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("telegram")
    script, log = folder / "server.js", folder / "log"
    script.write_text(TELEGRAM)
    with log.open("wb") as out:
        words = ["node", str(script), str(port)]
        given = {"PATH": os.environ["PATH"], "NODE_PATH": str(modules)}
        process = subprocess.Popen(words, stdout=out, stderr=out, env=given)
    try:
        until_ready(lambda: b"Ready." in log.read_bytes() and open_port(port), process)
        checked_ports[port] = None  # its dates are in milliseconds
        yield port
    finally:
        checked_ports.pop(port, None)
        process.terminate()
        process.wait()


def test_the_inbox_of_a_telegram_bot(telegram: int) -> None:
    base = f"http://127.0.0.1:{telegram}"
    message = {
        "botToken": BOT, "from": {"id": 1, "first_name": "Ada", "username": "ada", "is_bot": False},
        "chat": {"id": 1, "first_name": "Ada", "username": "ada", "type": "private"}, "date": 1777799642,
        "text": "deploy failed",
    }  # fmt: skip
    assert httpx2.post(f"{base}/sendMessage", json=message).status_code == 200
    config = TelegramConfig(token=BOT, base_url=base, private=True, writable=True)
    found = shell(
        TelegramResource(config), "ls /s/private", "jq -r .text /s/private/*/*/chat.jsonl",
        "query /s getMe | jq -r type", "post /s/private/ada__1 -m 'On it.'",
    )  # fmt: skip
    assert found[0] == "ada__1\n" and found[1] == "deploy failed\n" and found[2] == "object\n"
    assert found[3].startswith("posted 1 ")
