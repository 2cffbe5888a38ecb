"""DiscordResource against a fake; requests are checked against Discord's own types of its API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.discord_fake import GUILD, TOKEN, DiscordFake
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import DiscordConfig, DiscordResource
from ramet.backends.services import chat_days
from ramet.backends.services.chat_days import start_of
from ramet.backends.services.discord import Quotas
from ramet.testing import READING, Check, run_check

DAY = "2026-05-03"
AT = start_of(DAY) + 9 * 3600 + 14 * 60 + 2
OPS, THREAD = "222222222", "333333333"
CHANNEL = "/d/Acme__*/channels/ops__*"


@pytest.fixture
def discord(monkeypatch: pytest.MonkeyPatch) -> Iterator[DiscordFake]:
    clock = datetime(2026, 5, 4, 12, tzinfo=UTC).timestamp()
    monkeypatch.setattr(chat_days.ChatDays.__init__, "__defaults__", (lambda: clock,))
    with DiscordFake() as running:
        bob = running.users["bob"]
        first = running.say(OPS, AT, f"deploy failed <@{bob['id']}> see <#5>", mentions=[bob])
        running.say(
            OPS,
            AT + 60,
            "two\nlines",
            "bob",
            referenced_message=first,
            attachments=[running.attach("graph.x.png", "1")],
        )
        running.say(OPS, AT - 86400, "the day before")
        running.say(THREAD, AT, "in a thread")
        yield running


def mounted(discord: DiscordFake, **settings: Any) -> DiscordResource:
    given = {"token": TOKEN, "ttl": 600.0, **settings}
    return DiscordResource(
        DiscordConfig(base_url=f"{discord.base}/api/v10", private=True, allow=("127.0.0.2",), **given)
    )


def shell(discord: DiscordFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/d": mounted(discord, **settings)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(discord: DiscordFake, check: Check) -> None:
    run_check(check, lambda: mounted(discord))


def test_a_day_is_a_chat_with_names(discord: DiscordFake) -> None:
    found = shell(
        discord, f"ls /d; ls /d/Acme*; ls /d/Acme*/channels; ls /d/Acme*/threads; ls {CHANNEL}",
        f"cat {CHANNEL}/{DAY}/chat.md", f"cat {CHANNEL}/{DAY}/files/*",
        f"cat /d/{GUILD}/threads/*/{DAY}/chat.md; jq -r .user.username /d/{GUILD}/members.jsonl",
    )  # fmt: skip
    assert found[0][0].split() == [
        f"Acme__{GUILD}", "README.md", "channels", "members.jsonl", "threads", f"ops__{OPS}", f"Crash%2F1__{THREAD}",
        "2026-05-02", "2026-05-03", "channel.json",
    ]  # fmt: skip
    assert found[1][0] == (
        "09:14 ada: deploy failed @bob see #5\n09:15 bob (to ada): two\n    lines [files/graph.x__444444444.png]\n"
    )
    assert found[2][0] == "png" and found[3][0] == "09:14 ada: in a thread\nada\nbob\n"


def test_a_walk_over_a_channel_is_one_paged_history(discord: DiscordFake) -> None:
    for number in range(950):
        discord.say(OPS, AT - 20 * 86400 - number * 600, f"needle {number}")
    assert shell(discord, f"grep -rh needle {CHANNEL} --include=chat.jsonl | wc -l")[0][0] == "950\n"
    assert discord.count("GET", f"/channels/{OPS}/messages$") == 10


def test_an_ended_link_is_asked_for_again(discord: DiscordFake) -> None:
    discord.expired.add("1")
    assert shell(discord, f"cat {CHANNEL}/{DAY}/files/*")[0] == ("png", "", 0)
    assert discord.count("GET", f"/channels/{OPS}/messages/") == 1


def test_texts_that_are_hidden_from_the_bot_are_told_once(discord: DiscordFake) -> None:
    for number in range(3):
        discord.say(OPS, AT + 1000 + number, "")
    (found,) = shell(discord, f"cat {CHANNEL}/{DAY}/chat.md")
    assert found[0].count("message content intent") == 1 and found[0].count("09:30 ada: \n") == 3


def test_post_speaks_once_in_channel_and_thread(discord: DiscordFake) -> None:
    discord.fault("POST", f"/channels/{THREAD}/", lost=True)
    found = shell(
        discord, f"post {CHANNEL} -m 'Rolled back. @everyone'",
        f"echo data > /tmp/g.png; post {CHANNEL} -m Graph -a /tmp/g.png",
        f"post /d/{GUILD}/threads/{THREAD} -m once", f"echo hi >> {CHANNEL}/{DAY}/chat.md",
        f"cat {CHANNEL}/2026-05-04/chat.md", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 0, 1, 1, 0]
    assert "may have been made" in found[2][1] and "use post" in found[3][1] and found[4][0].count("bob") == 2
    posted = [call for call in discord.calls if call.method == "POST"]
    assert len(posted) == 3 and posted[0].json["allowed_mentions"] == {"parse": ["users"]}
    assert b"data\n" in discord.uploads[0]


@pytest.mark.parametrize(
    ("script", "settings", "words"),
    [
        ("ls /d", {"token": "wrong"}, "refuses the token: 401: Unauthorized"),
        (f"ls /d/{GUILD}/channels/99999999", {}, "No such file"),
        (f"post {CHANNEL} -m x", {"writable": False}, "set writable=True in DiscordConfig"),
        (f"post {CHANNEL} -t Title -m x", {}, "has no title"),
        (f"printf '' | post {CHANNEL}", {}, "is empty"),
        (f"head -c 3000 /dev/zero | tr '\\0' a | post {CHANNEL}", {}, "at most 2000 characters; nothing was posted"),
        (f"head -c 20000000 /dev/zero > /tmp/f; post {CHANNEL} -a /tmp/f", {},
         "larger than 16 MiB; nothing was posted"),
        ("query /d words", {}, "query <guild>__<id>"),
        (f"ls /d/{GUILD}", {"guild_ids": ("5555555",)}, "No such file"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_what_to_do(
    discord: DiscordFake, script: str, settings: dict[str, Any], words: str
) -> None:
    (found,) = shell(discord, script, **{"writable": True, **settings})
    assert words in found[1] and found[2] != 0 and discord.count("POST") == 0


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(403, {"message": "Missing Access", "code": 50001}), "ask an administrator"),
        (Reply(429, {"message": "slow down", "retry_after": 9999.5, "global": False}), "limits the rate of requests"),
    ],
)
def test_refusals_say_what_to_do(discord: DiscordFake, reply: Reply, words: str) -> None:
    discord.fault("GET", f"/channels/{OPS}/messages$", reply)
    (found,) = shell(discord, f"ls {CHANNEL}")
    assert words in found[1] and found[2] != 0


@pytest.mark.parametrize("reply", [Reply(429, {"retry_after": 0.01, "global": False}), Reply(502, b""), None])
def test_what_passes_is_asked_again(discord: DiscordFake, reply: Reply | None) -> None:
    discord.fault("GET", f"/channels/{OPS}/messages$", reply)
    assert shell(discord, f"wc -l < {CHANNEL}/{DAY}/chat.jsonl")[0] == ("2\n", "", 0)


def test_a_spent_quota_is_waited_for_before_the_next_request(
    discord: DiscordFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr("ramet.backends.services.discord.asyncio.sleep", sleep)
    quotas = Quotas()
    quotas.saw("/a", {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "5"})
    quotas.saw("/b", {"x-ratelimit-remaining": "1", "x-ratelimit-reset-after": "5"})
    for route in "/a", "/b":
        asyncio.run(quotas.wait(route))
    assert len(paused) == 1 and 4 < paused[0] <= 5


def test_query_searches_and_asks(discord: DiscordFake) -> None:
    for number in range(60):
        discord.say(OPS, AT + 100 + number, f"crash {number}")
    discord.fault("GET", "/messages/search", Reply(202, {"message": "Index", "code": 110000, "retry_after": 0.01}))
    found = shell(
        discord, f"query /d/{GUILD} crash | wc -l", f"query -n 1 /d/{GUILD} crash | jq -r .path",
        "query /d 'GET /users/@me' | jq -r .username", f"query /d 'DELETE /channels/{OPS}/messages/1'",
    )  # fmt: skip
    assert found[0][0] == "60\n" and found[1][0] == f"Acme__{GUILD}/channels/ops__{OPS}/{DAY}/chat.md\n"
    assert found[2][0] == "bob\n" and "that takes -w" in found[3][1]


def test_a_branch_posts_at_its_commit(discord: DiscordFake) -> None:
    async def act() -> list[int]:
        ws = Workspace({"/d": mounted(discord, writable=True)})
        try:
            counts = []
            for end in ("abort", "commit"):
                branch = ws.branch()
                await branch.execute(f"post {CHANNEL} -m Hi")
                assert [one.what for one in await branch.diff()] == ["posted"]
                await getattr(branch, end)()
                counts.append(discord.count("POST"))
            return counts
        finally:
            await ws.close()

    assert asyncio.run(act()) == [0, 1]


def test_the_token_is_nowhere(discord: DiscordFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(discord, writable=True)
        ws = Workspace({"/d": resource})
        try:
            result = await ws.execute(
                f"ls /d/*/channels; post {CHANNEL} -m x; query /d 'GET /users/1'; cat {CHANNEL}/*/files/*"
            )
            ws.snapshot(tmp_path / "snapshot.tar")
            return repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts()) + repr(result)
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert TOKEN not in seen and "REDACTED" in seen
