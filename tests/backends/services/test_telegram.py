"""TelegramResource against a fake of the Bot API, whose answers `test_clients.py` validates with aiogram's models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts
from tests.support.telegram_fake import TOKEN, TelegramFake

from ramet import Workspace
from ramet.backends import TelegramConfig, TelegramResource
from ramet.backends.services.chat_days import start_of
from ramet.testing import READING, Check, run_check

DAY = "2026-05-03"
AT = start_of(DAY) + 9 * 3600 + 14 * 60 + 2
GROUP = "/t/groups/Ops*"


@pytest.fixture
def telegram() -> Iterator[TelegramFake]:
    with TelegramFake() as running:
        first = running.say(-1001, AT, "deploy failed")
        file = {"file_id": "F1", "file_unique_id": "U1", "file_name": "graph.x.png", "file_size": 3}
        running.say(-1001, AT + 60, "", "bob", caption="two\nlines", reply_to_message=first, document=file)
        running.say(-1002, AT, "news")
        running.say(7, AT + 86400, "psst")
        running.tell("edited_message", {**first, "text": "deploy failed twice", "edit_date": round(AT) + 90})
        yield running


def mounted(telegram: TelegramFake, **settings: Any) -> TelegramResource:
    return TelegramResource(TelegramConfig(base_url=telegram.base, private=True, **{"token": TOKEN, **settings}))


def shell(telegram: TelegramFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/t": mounted(telegram, **settings)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(telegram: TelegramFake, check: Check) -> None:
    given = list(telegram.updates)

    def fresh() -> TelegramResource:
        telegram.updates = list(given)
        return mounted(telegram)

    run_check(check, fresh)


def test_what_the_bot_was_told_is_a_chat_by_day(telegram: TelegramFake) -> None:
    found = shell(
        telegram, f"ls /t; ls /t/*/; ls {GROUP} {GROUP}/{DAY}", f"cat {GROUP}/{DAY}/chat.md",
        f"cat {GROUP}/{DAY}/files/*",
        "jq -r .text /t/private/*/*/chat.jsonl; cat /t/channels/News__*/*/chat.md",
    )  # fmt: skip
    assert "Ops%2FProd__-1001" in found[0][0] and "ada__7" in found[0][0]
    assert found[1][0] == (
        "09:14 ada: deploy failed twice\n09:15 bob (to ada): two\n    lines [files/graph.x__2.png]\n"
    )
    assert found[2][0] == "png" and found[3][0] == "psst\n09:14 News: news\n"


def test_messages_are_taken_in_pages_and_once(telegram: TelegramFake) -> None:
    for number in range(250):
        telegram.say(-1001, AT + 100 + number, f"needle {number}")
    found = shell(telegram, f"grep -c needle {GROUP}/{DAY}/chat.md", f"wc -l < {GROUP}/{DAY}/chat.jsonl")
    assert [one[0] for one in found] == ["250\n", "252\n"]
    asked = [call.json.get("offset") for call in telegram.calls if call.path.endswith("/getUpdates")]
    assert asked == [None, 1101, 1201]


def test_what_was_taken_is_kept_in_a_file_before_it_is_confirmed(telegram: TelegramFake, tmp_path: Path) -> None:
    keep = tmp_path / "inbox.jsonl"
    telegram.fault("POST", "/getUpdates", lost=True)
    assert shell(telegram, f"wc -l < {GROUP}/{DAY}/chat.md", keep=str(keep))[0][0] == "3\n"
    assert keep.stat().st_mode & 0o777 == 0o600 and TOKEN not in keep.read_text()
    telegram.updates.clear()
    keep.write_bytes(keep.read_bytes() + b'{"update_id": 1')  # a write that was cut off
    telegram.say(-1001, AT + 5, "later")
    assert shell(telegram, f"wc -l < {GROUP}/{DAY}/chat.md", keep=str(keep))[0][0] == "4\n"
    telegram.updates.clear()
    assert shell(telegram, f"wc -l < {GROUP}/{DAY}/chat.md", keep=str(keep))[0][0] == "4\n"


def test_a_snapshot_carries_what_was_taken(telegram: TelegramFake, tmp_path: Path) -> None:
    async def act() -> bytes:
        ws = Workspace({"/t": mounted(telegram)})
        await ws.execute("ls /t/groups")
        ws.snapshot(tmp_path / "s.tar")
        await ws.close()
        telegram.updates.clear()
        again = Workspace.load(tmp_path / "s.tar", resources={"/t": mounted(telegram)})
        try:
            return (await again.execute(f"cat {GROUP}/{DAY}/chat.md")).stdout
        finally:
            await again.close()

    assert asyncio.run(act()).startswith(b"09:14 ada: deploy failed twice\n")


def test_post_speaks_once_and_is_seen(telegram: TelegramFake) -> None:
    telegram.fault("POST", "/sendMessage", lost=True)
    found = shell(
        telegram, f"post {GROUP} -m once", f"post {GROUP} -m 'Rolled back.'",
        f"echo data > /tmp/g.png; post {GROUP} -m Graph -a /tmp/g.png", f"echo hi >> {GROUP}/{DAY}/chat.md",
        f"cat {GROUP}/2026-05-04/chat.md", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [1, 0, 0, 1, 0]
    assert "may have been made" in found[0][1] and "use post" in found[3][1]
    assert "ramet_bot: Rolled back.\n" in found[4][0] and "ramet_bot: Graph\n" in found[4][0]
    assert telegram.count("POST", "/sendMessage") == 3 and b"data\n" in telegram.uploads[0]


@pytest.mark.parametrize(
    ("script", "settings", "words"),
    [
        ("ls /t/groups", {"token": "1:wrong"}, "refuses the token; ask BotFather"),
        ("ls /t/groups", {"token": "wrong"}, "is not like 123:abc"),
        ("ls /t/groups/-5", {}, "No such file"),
        (f"post {GROUP} -m x", {"writable": False}, "set writable=True in TelegramConfig"),
        (f"head -c 5000 /dev/zero | tr '\\0' a | post {GROUP}", {}, "at most 4096 characters; nothing was posted"),
        (f"head -c 20000000 /dev/zero > /tmp/f; post {GROUP} -a /tmp/f", {}, "larger than 16 MiB; nothing was posted"),
        ("query /t getUpdates", {}, "would lose messages"),
        ("query /t 'deleteMessage chat_id=1 message_id=2'", {}, "that takes -w"),
        ("query /t 'some words'", {}, "use grep to search"),
        ("query /t getNothing", {}, "knows no such method"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_what_to_do(
    telegram: TelegramFake, script: str, settings: dict[str, Any], words: str
) -> None:
    (found,) = shell(telegram, script, **{"writable": True, **settings})
    assert words in found[1] and found[2] != 0
    assert telegram.count("POST", "/send") + telegram.count("POST", "/delete") == 0
    assert str(settings.get("token", TOKEN)) not in found[1] or settings.get("token") == "wrong"


def test_another_reader_is_named(telegram: TelegramFake) -> None:
    telegram.webhook = True
    (found,) = shell(telegram, "ls /t/groups")
    assert "webhook is set" in found[1] and found[2] != 0


def test_a_file_that_is_too_large_for_bots_is_refused(telegram: TelegramFake) -> None:
    video = {"file_id": "F2", "file_unique_id": "U2", "file_size": 30 << 20}
    telegram.say(-1001, AT + 200, video=video)
    (found,) = shell(telegram, f"cat {GROUP}/{DAY}/files/video*")
    assert "at most 20 MB" in found[1] and telegram.count("POST", "/getFile") == 0


@pytest.mark.parametrize(
    "reply", [Reply(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 0}}), Reply(502, b""), None]
)
def test_what_passes_is_asked_again(telegram: TelegramFake, reply: Reply | None) -> None:
    telegram.fault("POST", "/getUpdates", reply)
    assert shell(telegram, f"wc -l < {GROUP}/{DAY}/chat.md")[0] == ("3\n", "", 0)


def test_query_calls_methods(telegram: TelegramFake) -> None:
    found = shell(
        telegram,
        "query /t getMe | jq -r .username",
        "query -w /t 'deleteMessage chat_id=1 message_id=2'",
        writable=True,
    )
    assert [one[0] for one in found] == ["ramet_bot\n", "true\n"]


def test_a_branch_posts_at_its_commit(telegram: TelegramFake) -> None:
    async def act() -> list[int]:
        ws = Workspace({"/t": mounted(telegram, writable=True)})
        try:
            counts = []
            for end in ("abort", "commit"):
                branch = ws.branch()
                await branch.execute(f"post {GROUP} -m Hi")
                assert [one.what for one in await branch.diff()] == ["posted"]
                await getattr(branch, end)()
                counts.append(telegram.count("POST", "/sendMessage"))
            return counts
        finally:
            await ws.close()

    assert asyncio.run(act()) == [0, 1]


def test_the_token_is_nowhere_though_it_is_in_every_address(
    telegram: TelegramFake, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def act() -> str:
        resource = mounted(telegram, writable=True)
        ws = Workspace({"/t": resource})
        try:
            telegram.fault("POST", "/getUpdates", Reply(500, b""), times=2)
            result = [
                await ws.execute(f"cat {GROUP}/*/files/*; post {GROUP} -m x; query /t getNothing; query /t getMe")
            ]
            telegram.fault("POST", "/getMe", None, times=9)
            result.append(await ws.execute("query /t getMe"))
            ws.snapshot(tmp_path / "snapshot.tar")
            return repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts()) + repr(result)
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1") + caplog.text
    assert TOKEN not in seen and "REDACTED" in seen
