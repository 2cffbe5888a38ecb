"""`examples/triage.py` against the fakes: what it does in its branch, and what it sends once that is approved."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from tests.support import github_fake, slack_fake
from tests.support.drive_fake import DriveFake
from tests.support.github_fake import GitHubFake
from tests.support.gmail_fake import GmailFake
from tests.support.slack_fake import SlackFake

from ramet import Workspace
from ramet.backends import (
    GitHubConfig,
    GitHubResource,
    GmailConfig,
    GmailResource,
    GoogleDriveConfig,
    GoogleDriveResource,
    SlackConfig,
    SlackResource,
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "triage.py"
Servers = tuple[GmailFake, DriveFake, GitHubFake, SlackFake]


@pytest.fixture
def example() -> Any:
    found = importlib.util.spec_from_file_location("triage", EXAMPLE)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        gmail, drive = stack.enter_context(GmailFake()), stack.enter_context(DriveFake())
        hub, slack = stack.enter_context(GitHubFake()), stack.enter_context(SlackFake())
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = "Logins", "bob@example.com", "ada@example.com"
        mail.set_content("The numbers are in login-errors.csv, see issue #1.\n")
        gmail.add(mail, NOW)
        reports = drive.folder("Reports")
        drive.add("login-errors.csv", b"safari,3\nfirefox,17\nchrome,5\n", reports, "text/csv")
        hub.add("Login fails", labels=["question"])
        yield gmail, drive, hub, slack


NOW = 1_800_000_000.0


def workspace(servers: Servers) -> Workspace:
    gmail, drive, hub, slack = servers
    near: dict[str, Any] = {"private": True}
    return Workspace({
        "/mail": GmailResource(GmailConfig(base_url=gmail.base, access_token=gmail.token, days=36500, **near)),
        "/drive": GoogleDriveResource(GoogleDriveConfig(base_url=drive.base, access_token=drive.token, **near)),
        "/gh": GitHubResource(GitHubConfig(base_url=hub.base, token=github_fake.TOKEN, owner="octocat", repo="hello",
                                           writable=True, **near)),
        "/slack": SlackResource(SlackConfig(base_url=slack.base, token=slack_fake.TOKEN, writable=True, **near)),
    })  # fmt: skip


@pytest.mark.parametrize("approved", [False, True])
def test_nothing_leaves_before_the_review(example: Any, servers: Servers, approved: bool) -> None:
    _, _, hub, slack = servers
    seen: list[tuple[Sequence[str], int]] = []

    def sent() -> int:
        return hub.count("PATCH") + hub.count("POST") + slack.count("POST", "/chat.postMessage")

    def approve(changes: Sequence[str]) -> bool:
        seen.append((changes, sent()))
        return approved

    async def act() -> bool:
        async with workspace(servers) as ws:
            result: bool = await example.triage(ws, approve)
            return result

    assert asyncio.run(act()) is approved
    changes = ["posted /gh/issues/1", "posted /slack/channels/ops__C024", "modified /gh/issues/1/issue.md"]
    assert [(sorted(found), count) for found, count in seen] == [(sorted(changes), 0)]
    if not approved:
        assert sent() == 0
        return
    words = "login-errors.csv on Drive: the worst is firefox,17."
    assert [one["body"] for one in hub.comments[1]] == [words]
    assert hub.issues[1]["labels"] == ["bug"]
    assert slack.messages["C024"][-1]["text"] == f"Issue #1: {words}"
    assert sent() == 3
