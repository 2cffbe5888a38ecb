"""Sessions with all services in one workspace, as a user types them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support import github_fake, linear_fake, notion_fake, slack_fake
from tests.support.github_fake import WHEN, GitHubFake
from tests.support.linear_fake import LinearFake
from tests.support.notion_fake import NotionFake
from tests.support.service_fake import Fake
from tests.support.slack_fake import SlackFake

from ramet import Workspace
from ramet.backends import (
    GitHubCIConfig,
    GitHubCIResource,
    GitHubConfig,
    GitHubResource,
    LinearConfig,
    LinearResource,
    NotionConfig,
    NotionResource,
    SlackConfig,
    SlackResource,
)
from ramet.backends.services import chat_days
from ramet.backends.services.chat_days import start_of

AT = start_of("2026-05-03") + 9 * 3600 + 14 * 60 + 2


@pytest.fixture
def fakes() -> list[Fake]:
    """The servers behind the mounts."""
    return []


@pytest.fixture
def mounts(fakes: list[Fake], monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    if linear_fake.schema() is None:
        pytest.skip("Linear's schema is not there: make descriptions")
    clock = datetime(2026, 5, 4, 12, tzinfo=UTC).timestamp()
    monkeypatch.setattr(chat_days.ChatDays.__init__, "__defaults__", (lambda: clock,))
    with ExitStack() as stack:
        hub, slack = stack.enter_context(GitHubFake()), stack.enter_context(SlackFake())
        linear, notion = stack.enter_context(LinearFake()), stack.enter_context(NotionFake())
        fakes += [hub, slack, linear, notion]
        for number in range(41):
            hub.add(f"Issue {number}")
        hub.add("Login fails")
        run = hub.sample("workflow-run", id=9876, name="CI", head_branch="main", status="completed",
                         conclusion="failure", created_at=WHEN, updated_at=WHEN)  # fmt: skip
        job = hub.sample("job", id=1, name="test", status="completed", conclusion="failure", completed_at=WHEN,
                         started_at=WHEN)  # fmt: skip
        hub.runs.append(run)
        hub.jobs[9876], hub.logs[1] = [job], b"AssertionError: 1 != 2\n"
        slack.say("C024", f"{AT:.6f}", "deploy failed, rollback", reply_count=1)
        slack.replies[f"{AT:.6f}"] = [slack.messages["C024"][0], {"ts": f"{AT + 5:.6f}", "user": "U2B", "text": "ok"}]
        roadmap = notion.add("Roadmap", "A race condition in the *cache*.")
        notion.add("Q3", "Third quarter.", roadmap["id"])
        tasks = notion.add_source("Tasks", Status="status")
        notion.add("Fix", "x", tasks, Status={"id": "s", "type": "status", "status": {"name": "Open"}})
        near: dict[str, Any] = {"private": True, "writable": True}
        repository: dict[str, Any] = {
            "token": github_fake.TOKEN, "owner": "octocat", "repo": "hello", "base_url": hub.base,
            "allow": ("127.0.0.2",), **near,
        }  # fmt: skip
        yield {
            "/gh": GitHubResource(GitHubConfig(**repository)),
            "/ci": GitHubCIResource(GitHubCIConfig(**repository)),
            "/slack": SlackResource(SlackConfig(token=slack_fake.TOKEN, search_token=slack_fake.SEARCH,
                                                base_url=slack.base, allow=("127.0.0.2",), **near)),
            "/linear": LinearResource(LinearConfig(api_key=linear_fake.KEY, base_url=f"{linear.base}/graphql", **near)),
            "/notion": NotionResource(NotionConfig(api_key=notion_fake.KEY, base_url=f"{notion.base}/v1",
                                                   requests_per_second=None, **near)),
        }  # fmt: skip


SESSIONS = [
    ("ls /gh", "README.md branches.jsonl code commits.jsonl issues issues.jsonl pulls pulls.jsonl releases"),
    ("grep -rn TODO /gh/code/src | head", "/gh/code/src/main.py:1:print('hi') # TODO"),
    ("cat /gh/issues/42__Login*/issue.md | head -3", "--- number: 42 title: Login fails"),
    ("sed -i 's/^state: open/state: closed/' /gh/issues/42*/issue.md ; post /gh/issues/42* -m 'Fixed in #57'",
     "posted"),
    ("jq -r 'select(.state==\"open\") | \"\\(.number) \\(.title)\"' /gh/issues.jsonl | tail -1", "1 Issue 0"),
    ("query -n 1 /gh 'GET /repos/{owner}/{repo}/issues' | jq -r .number", "42"),
    ("ls /ci/runs | head -3", "9876__CI__main__failure"),
    ("cat /ci/runs/9876*/failed.log | tail -50", "==> test (failure) <== AssertionError: 1 != 2"),
    ("ls /ci/runs/9876*/", "annotations.jsonl artifacts failed.log jobs jobs.jsonl run.json"),
    ("cat /slack/channels/ops__C024/2026-05-03/chat.md", "09:14 ada: deploy failed, rollback (1 replies -> threads/"),
    ("jq -r .text /slack/channels/ops__C024/2026-05-*/chat.jsonl", "deploy failed, rollback"),
    ("grep -rh rollback /slack/channels/ops__C024 --include=chat.md", "09:14 ada: deploy failed, rollback"),
    ("post /slack/channels/ops__C024 -m 'Rolled back.'", "posted C024"),
    ("post /slack/channels/ops__C024/2026-05-03/threads/09-14-02__* -m '+1'", "posted C024"),
    ("query -n 20 /slack 'deploy failed in:#ops after:2026-05-01' | jq -r .path",
     "channels/ops__C024/2026-05-03/chat.md"),
    ("head -3 /linear/teams/ENG/issues/ENG-42/issue.md", "--- identifier: ENG-42 title: Flaky test"),
    ("jq -r 'select(.state==\"Todo\").identifier' /linear/teams/ENG/issues.jsonl", "ENG-42"),
    ("sed -i 's/^state: .*/state: Done/' /linear/teams/ENG/issues/ENG-42/issue.md", ""),
    ("post /linear/teams/ENG/issues/ENG-42 -m 'Shipped'", "posted https://linear.app/acme/issue/ENG-42"),
    ("echo 'It fails' > /tmp/body.md; post /linear/teams/ENG/issues -t 'Flaky test' < /tmp/body.md", "posted"),
    ("grep -ril 'race condition' /linear/teams/ENG --include=*.md", "/linear/teams/ENG/issues/ENG-42/issue.md"),
    ("tail -1 /notion/pages/Roadmap__*/page.md", "A race condition in the *cache*."),
    ("ls /notion/pages/Roadmap__* | sed 's/__.*//'", "Q3 comments.jsonl page.json page.md"),
    ("jq -r 'select(.Status==\"Open\").Name' /notion/databases/Tasks__*/rows.jsonl", "Fix"),
    ("cd /notion/pages/Roadmap__*; echo 'An idea' | cat > Idea.md ; post . -m 'Looks good'", "posted"),
    ("query /notion/databases/Tasks__* '{\"property\":\"Status\",\"status\":{\"equals\":\"Open\"}}' | jq -r .Name",
     "Fix"),
    # Across services, and out of them.
    ("diff <(tail -1 /notion/pages/Roadmap__*/page.md) <(tail -1 /linear/teams/ENG/issues/ENG-42/issue.md)", ""),
    ("diff /gh/issues/42/issue.md /linear/teams/ENG/issues/ENG-42/issue.md | grep '^[<>] title'",
     "< title: Login fails > title: Flaky test"),
    ("cp -r /gh/code /tmp/c && cp /notion/pages/Roadmap__*/page.md /slack/users.jsonl /tmp && wc -l < /tmp/users.jsonl",
     "2"),
    ("ls -l /linear/teams/ENG/documents | tail -1", "Design__"),
    ("find /ci/runs -name '*.log' | wc -l", "2"),
    ("for s in gh ci slack linear notion; do head -1 /$s/README.md; done", "# octocat/hello on GitHub"),
]  # fmt: skip


REFUSED = [
    ("post /slack/channels/C0OLD -m x", "the channel is archived"),
    ("ls /slack/channels/C9NONE", "No such file"),
    ("post /slack/channels/ops__C024 -m x -a /tmp/big", "big is larger than 16 MiB; nothing was posted"),
    ("post /slack/channels/ops__C024 < /tmp/big", "the text is larger than 16 MiB; nothing was posted"),
    ("post /gh/issues/42 < /tmp/big", "the text is larger than 16 MiB; nothing was posted"),
    ("cp /tmp/big /gh/code/big", "at most 16 MiB can be sent; nothing was changed"),
    ("cp /tmp/big /gh/issues/42/issue.md", "at most 16 MiB can be sent; nothing was changed"),
    ("cp /tmp/big /linear/teams/ENG/issues/ENG-42/issue.md", "at most 16 MiB can be sent; nothing was changed"),
    ("cp /tmp/big $(echo /notion/pages/Roadmap__*)/page.md", "at most 16 MiB can be sent; nothing was changed"),
    ("cp /tmp/big $(echo /notion/pages/Roadmap__*)/New.md", "at most 16 MiB can be sent; nothing was changed"),
    ("sed -i 's/^title: .*/title:/' /gh/issues/42/issue.md", "title"),
    ("sed -i 's/^state: .*/state: shut/' /gh/issues/42/issue.md", "state is"),
    ("sed -i 's/^number: .*/number: 43/' /gh/issues/42/issue.md", "number is read-only"),
    ("sed -i 's/^state: .*/state: Nowhere/' /linear/teams/ENG/issues/ENG-42/issue.md", "there are: "),
    ("echo hi >> /gh/issues/42/comments.jsonl", "use post"),
    ("echo hi >> /slack/channels/ops__C024/2026-05-03/chat.jsonl", "use post"),
    ("echo hi >> /linear/teams/ENG/issues/ENG-42/comments.jsonl", "use post"),
    ("echo hi >> $(echo /notion/pages/Roadmap__*)/comments.jsonl", "use post"),
    ("echo hi > /ci/runs/9876/run.json", "Read-only file system"),
    ("rm /gh/issues/42/issue.md", "Operation not permitted"),
    ("rmdir /slack/channels/ops__C024/2026-05-03", "Operation not permitted"),
    ("mv /linear/teams/ENG/issues/ENG-42 /linear/teams/ENG/issues/ENG-43", "Operation not permitted"),
    ("query /gh 'POST /repos/{owner}/{repo}/issues' '{\"title\": \"x\"}'", "that takes -w"),
    ("query /slack 'chat.postMessage channel=C024 text=x'", "that takes -w"),
    ("query /linear 'mutation { issueArchive(id: \"x\") { success } }'", "that takes -w"),
    ("query /notion 'PATCH /pages/x' '{}'", "that takes -w"),
]


def test_bad_input_names_what_to_do_and_changes_nothing(mounts: dict[str, Any], fakes: list[Fake]) -> None:
    async def act() -> list[tuple[str, str, int]]:
        ws = Workspace(mounts)
        try:
            await ws.execute("head -c 20000000 /dev/zero | tr '\\0' a > /tmp/big")
            wrong = []
            for script, words in REFUSED:
                result = await ws.execute(script)
                said = result.stderr.decode()
                if words not in said or result.exit_code == 0:
                    wrong.append((script, said, result.exit_code))
            return wrong
        finally:
            await ws.close()

    assert asyncio.run(act()) == []
    changed = [
        (call.method, call.path, call.body[:200]) for fake in fakes for call in fake.calls
        if call.method in ("PUT", "PATCH", "DELETE") or ("comments" in call.path and call.method == "POST")
        or (call.path == "/chat.postMessage" and call.form["channel"] != "C0OLD") or b"mutation" in call.body
    ]  # fmt: skip
    assert changed == []


@pytest.mark.parametrize("name", ["gh/issues", "ci/runs", "slack/channels", "linear/teams", "notion/pages"])
def test_a_wrong_token_is_named(mounts: dict[str, Any], name: str) -> None:
    prefix = f"/{name.partition('/')[0]}"
    resource = mounts[prefix]
    secret = type(resource.config).secrets[0]
    wrong = type(resource)(dataclasses.replace(resource.config, **{secret: "wrong-hunter9"}))

    async def act() -> str:
        ws = Workspace({prefix: wrong})
        try:
            return (await ws.execute(f"ls /{name}")).stderr.decode()
        finally:
            await ws.close()

    said = asyncio.run(act())
    assert "refuses the" in said and "Permission denied" in said and "wrong-hunter9" not in said


def test_sessions_work_as_typed(mounts: dict[str, Any]) -> None:
    async def act() -> list[tuple[str, str, str]]:
        ws = Workspace(mounts)
        try:
            await ws.execute("ls /gh")
            wrong = []
            for script, wanted in SESSIONS:
                result = await ws.execute(script)
                shown = " ".join(result.stdout.decode().split())
                fits = wanted in shown if wanted else not shown
                if not fits or result.stderr:
                    wrong.append((script, shown[:300], result.stderr.decode()))
            return wrong
        finally:
            await ws.close()

    assert asyncio.run(act()) == []
