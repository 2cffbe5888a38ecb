"""SlackResource against a fake; methods and names of arguments are checked against Slack's description."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts
from tests.support.slack_fake import SEARCH, TOKEN, SlackFake

from ramet import Workspace
from ramet.backends import SlackConfig, SlackResource
from ramet.backends.services import chat_days
from ramet.backends.services.chat_days import ChatDays, start_of
from ramet.testing import READING, Check, run_check

DAY = "2026-05-03"
AT = start_of(DAY) + 9 * 3600 + 14 * 60 + 2


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackFake]:
    clock = datetime(2026, 5, 4, 12, tzinfo=UTC).timestamp()
    monkeypatch.setattr(chat_days.ChatDays.__init__, "__defaults__", (lambda: clock,))
    with SlackFake() as running:
        file = {
            "id": "F1Z", "name": "graph/x.png", "size": 3, "url_private": f"{running.base}/files/F1Z", "mode": "hosted",
        }  # fmt: skip
        running.say("C024", f"{AT:.6f}", "deploy &lt;failed&gt; <@U2B> see <https://x.org|log>", reply_count=1)
        running.say("C024", f"{AT + 60:.6f}", "two\nlines", "U2B", files=[file])
        running.say("C024", f"{AT - 86400:.6f}", "the day before")
        running.say("D1X", f"{AT:.6f}", "psst")
        running.replies[f"{AT:.6f}"] = [
            running.messages["C024"][0],
            {"ts": f"{AT + 5:.6f}", "user": "U2B", "text": "on it"},
        ]
        yield running


def mounted(slack: SlackFake, **settings: Any) -> SlackResource:
    given = {"token": TOKEN, "search_token": SEARCH, **settings}
    return SlackResource(SlackConfig(base_url=slack.base, private=True, allow=("127.0.0.2",), **given))


def shell(slack: SlackFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/slack": mounted(slack, **settings)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(slack: SlackFake, check: Check) -> None:
    run_check(check, lambda: mounted(slack))


def test_a_day_is_a_chat_with_names(slack: SlackFake) -> None:
    found = shell(
        slack, "ls /slack /slack/channels /slack/dms /slack/groups /slack/channels/C024",
        f"cat /slack/channels/ops__*/{DAY}/chat.md",
    )  # fmt: skip
    assert found[0][0].split() == [
        "/slack:", "README.md", "channels", "dms", "groups", "users", "users.jsonl",
        "/slack/channels:", "ops__C024", "/slack/channels/C024:", "2026-05-02", "2026-05-03", "channel.json",
        "/slack/dms:", "bob__D1X", "/slack/groups:", "mpdm-ada--bob-1__G1X",
    ]  # fmt: skip
    assert found[1][0] == (
        f"09:14 ada: deploy <failed> @bob see log (https://x.org) (1 replies -> threads/09-14-02__{AT:.6f}.md)\n"
        "09:15 bob: two\n    lines [files/graph%2Fx__F1Z.png]\n"
    )


def test_threads_files_and_raw_messages(slack: SlackFake) -> None:
    found = shell(
        slack, f"cd /slack/channels/C024/{DAY}; cat threads/*; cat files/*; jq -r .user chat.jsonl",
        "grep -rh psst /slack/dms --include=chat.md; jq -r .name /slack/users.jsonl; ls /slack/users",
    )  # fmt: skip
    assert found[0] == (
        "09:14 ada: deploy <failed> @bob see log (https://x.org)\n09:14 bob: on it\npngU1A\nU2B\n", "", 0,
    )  # fmt: skip
    assert found[1] == ("09:14 ada: psst\nada\nbob\nada__U1A.json\nbob__U2B.json\n", "", 0)


def test_a_walk_over_a_channel_is_one_paged_history(slack: SlackFake) -> None:
    for number in range(2500):
        slack.say("C024", f"{AT - 20 * 86400 - number * 600:.6f}", f"needle {number}")
    assert shell(slack, "grep -rh needle /slack/channels/C024 --include=chat.jsonl | wc -l")[0][0] == "2500\n"
    assert slack.count("POST", "/conversations.history") == 3


def test_a_day_that_is_named_costs_one_history(slack: SlackFake) -> None:
    slack.say("C024", f"{start_of('2020-01-02') + 5:.6f}", "long ago")
    assert shell(slack, "cat /slack/channels/C024/2020-01-02/chat.md")[0][0] == "00:00 ada: long ago\n"
    assert slack.count("POST", "/conversations.history") == 1
    assert shell(slack, "cat /slack/channels/C024/2020-01-03/chat.md")[0][2] == 1


def test_post_speaks_once_in_channel_and_thread(slack: SlackFake) -> None:
    found = shell(
        slack, "post /slack/channels/C024 -m 'a < b'",
        f"cd /slack/channels/C024/{DAY}/threads; post * -m +1",
        "echo data > /tmp/g.png; post /slack/channels/C024 -m Graph -a /tmp/g.png",
        f"echo hi >> /slack/channels/C024/{DAY}/chat.md", "post /slack/channels/C0OLD -m x", "post /slack/users -m x",
        writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 0, 0, 1, 1, 1]
    said = slack.messages["C024"][3:]
    assert [one["text"] for one in said] == ["a &lt; b", "+1", "Graph"] and said[1]["thread_ts"] == f"{AT:.6f}"
    assert slack.uploaded == [b"data\n"]
    assert "use post" in found[3][1] and "archived" in found[4][1] and "nothing can be posted" in found[5][1]


def test_a_post_whose_answer_is_lost_is_not_sent_twice(slack: SlackFake) -> None:
    slack.fault("POST", "/chat.postMessage", lost=True)
    (found,) = shell(slack, "post /slack/channels/C024 -m once", writable=True)
    assert "may have been made" in found[1] and slack.count("POST", "/chat.postMessage") == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(200, {"ok": False, "error": "missing_scope", "needed": "channels:history", "provided": "chat:write"}),
         "the token has the scopes [chat:write] and needs [channels:history]"),
        (Reply(200, {"ok": False, "error": "not_in_channel"}), "invite it"),
        (Reply(200, {"ok": False, "error": "token_revoked"}), "refuses the token: token_revoked"),
        (Reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "9999"}), "limits the rate of requests"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(slack: SlackFake, reply: Reply, words: str) -> None:
    slack.fault("POST", "/conversations.history", reply)
    (found,) = shell(slack, "ls /slack/channels/C024")
    assert words in found[1] and found[2] != 0


@pytest.mark.parametrize(
    "reply",
    [
        Reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "0"}),
        Reply(200, {"ok": False, "error": "internal_error"}),
        Reply(503, b""),
        None,
    ],
)
def test_what_passes_is_asked_again(slack: SlackFake, reply: Reply | None) -> None:
    slack.fault("POST", "/conversations.history", reply)
    assert shell(slack, f"cat /slack/channels/C024/{DAY}/chat.jsonl | wc -l")[0] == ("2\n", "", 0)


def test_query_searches_and_calls_methods(slack: SlackFake) -> None:
    for number in range(150):
        slack.say("C024", f"{AT + 100 + number:.6f}", f"crash {number}")
    found = shell(
        slack, "query /slack 'crash in:#ops' | wc -l", "query -n 3 /slack crash | jq -r .path | sort -u",
        "query /slack 'conversations.info channel=C024' | jq -r .channel.name",
        "query /slack 'chat.delete channel=C024 ts=1'",
        "query -w /slack 'chat.delete channel=C024 ts=1' | jq .ok", writable=True,
    )  # fmt: skip
    assert [one[0] for one in found] == [
        "150\n", f"channels/ops__C024/{DAY}/chat.md\n", "ops\n", "", "true\n",
    ]  # fmt: skip
    assert "that takes -w" in found[3][1]
    assert "user token" in shell(slack, "query /slack crash", search_token=None)[0][1]


def test_a_large_channel_is_not_held_in_memory() -> None:
    async def history(oldest: float, latest: float) -> Any:
        for number in range(100_000):
            yield {"ts": f"{latest - 1 - number:.6f}", "text": "x" * 400, "user": "U1A"}

    async def act() -> int:
        chat = ChatDays(history, 3, lambda: AT)
        total = 0
        for day, _ in await chat.days():
            async for _ in chat.messages(day):
                total += 1
        return total

    tracemalloc.start()
    try:
        assert asyncio.run(act()) == 100_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000  # the messages are 45 MB
    finally:
        tracemalloc.stop()


def test_the_tokens_are_nowhere(slack: SlackFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(slack, writable=True)
        ws = Workspace({"/slack": resource})
        try:
            await ws.execute("ls /slack/channels; query /slack x; post /slack/channels/C024 -m x")
            ws.snapshot(tmp_path / "snapshot.tar")
            return repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert TOKEN not in seen and SEARCH not in seen and "REDACTED" in seen
