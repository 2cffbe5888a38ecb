"""Mail, Drive, GitHub and Slack in one workspace: an agent answers a report, and nothing leaves before a review.

    export GMAIL_TOKEN=... DRIVE_TOKEN=... GITHUB_TOKEN=... SLACK_TOKEN=... GITHUB_REPOSITORY=octocat/hello
    python examples/triage.py

The agent here is a fixed list of steps; a model would choose the same commands as calls of a tool.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from shlex import quote

from ramet import (
    GitHubConfig,
    GitHubResource,
    GmailConfig,
    GmailResource,
    GoogleDriveConfig,
    GoogleDriveResource,
    SlackConfig,
    SlackResource,
    Workspace,
)

NEEDED = ("GMAIL_TOKEN", "DRIVE_TOKEN", "GITHUB_TOKEN", "SLACK_TOKEN", "GITHUB_REPOSITORY")


def mounts() -> Workspace:
    owner, _, repo = os.environ["GITHUB_REPOSITORY"].partition("/")
    return Workspace({
        "/mail": GmailResource(GmailConfig(access_token_env="GMAIL_TOKEN")),
        "/drive": GoogleDriveResource(GoogleDriveConfig(access_token_env="DRIVE_TOKEN")),
        "/gh": GitHubResource(GitHubConfig(token_env="GITHUB_TOKEN", owner=owner, repo=repo, writable=True)),
        "/slack": SlackResource(SlackConfig(token_env="SLACK_TOKEN", writable=True)),
    })  # fmt: skip


async def triage(ws: Workspace, approve: Callable[[Sequence[str]], bool], channel: str = "ops") -> bool:
    """Work in a branch, show what it would send, and send it if it is approved."""
    branch = ws.branch()

    async def shell(command: str) -> str:
        print(f"$ {command}")
        result = await branch.execute(command)
        if not result.ok:
            raise RuntimeError(result.stderr.decode())
        return result.text.strip()

    mail = await shell("grep -rl 'see issue #' /mail/INBOX --include='*.eml' | tail -1")
    issue = await shell(f"grep -om1 'issue #[0-9]*' {quote(mail)} | tr -dc 0-9")
    name = await shell(f"grep -om1 '[a-z-]*\\.csv' {quote(mail)}")
    file = await shell(f"find '/drive/My Drive' -name {quote(name)} | head -1")
    worst = await shell(f"sort -t, -k2 -nr {quote(file)} | head -1")
    comment = f"{name} on Drive: the worst is {worst}."
    await shell(f"post /gh/issues/{issue} -m {quote(comment)}")
    await shell(f"sed -i 's/^labels: .*/labels: [bug]/' /gh/issues/{issue}/issue.md")
    await shell(f"post /slack/channels/{channel}__* -m {quote(f'Issue #{issue}: {comment}')}")

    changes = [f"{change.what} {change.path}" for change in await branch.diff()]
    if not approve(changes):
        await branch.abort()
        return False
    report = await branch.commit()
    if not report.ok:
        print("changed by others meanwhile:", *(conflict.path for conflict in report.conflicts))
    return report.ok


def ask(changes: Sequence[str]) -> bool:
    print(*changes, sep="\n")
    return input("send this? [y/N] ") == "y"


async def main() -> None:
    missing = [name for name in NEEDED if name not in os.environ]
    if missing:
        print("set", ", ".join(missing), "to try this with accounts of your own")
        return
    async with mounts() as ws:
        print("sent" if await triage(ws, ask) else "nothing was sent")


if __name__ == "__main__":
    asyncio.run(main())
