"""GmailResource against a fake; every exchange is checked against Google's discovery document."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

import pytest
from tests.support.gmail_fake import GmailFake
from tests.support.google_fake import CLIENT, REFRESH, SECRET, refused
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import GmailConfig, GmailResource
from ramet.core.paths import Path
from ramet.testing import READING, Check, run_check

TODAY = datetime.now(UTC).replace(hour=9, minute=14, second=2, microsecond=0)
NOON = (TODAY - timedelta(days=1)).timestamp()
DAY = (TODAY - timedelta(days=1)).strftime("%Y-%m-%d")
PICTURE = bytes(range(256)) * 5


def letter(subject: str, text: str = "See you.", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"] = "Bob <bob@example.com>", "ada@example.com"
    made["Subject"], made["Message-ID"] = subject, f"<{abs(hash(subject))}@example.com>"
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made


@pytest.fixture
def gmail() -> Iterator[GmailFake]:
    with GmailFake() as running:
        running.labels |= {"Label_1": "Work/Clients", "Label_2": "2026-01-01", "Label_3": "threads"}
        report = letter("Report/Q3 – näher", "needle\n")
        report.add_attachment(PICTURE, maintype="image", subtype="png", filename="graph.png")
        report.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="small.csv")
        first = running.add(report, NOON, ("INBOX", "UNREAD"))
        running.add(letter("Re: Report", "Thanks!"), NOON + 60, ("SENT",), thread=first)
        running.add(letter("Clients"), NOON - 86400, ("Label_1",))
        yield running


def mounted(gmail: GmailFake, **settings: Any) -> GmailResource:
    given: dict[str, Any] = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "refresh_token": REFRESH,
        "ttl": 600.0,
        "token_url": f"{gmail.base}/token",
        **settings,
    }
    return GmailResource(GmailConfig(base_url=gmail.base, private=True, **given))


def shell(gmail: GmailFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/g": mounted(gmail, **settings)}, scripts)


def changes(gmail: GmailFake) -> list[str]:
    reads = ("/token", "/batch")
    return [f"{call.method} {call.path}" for call in gmail.calls if call.method != "GET" and call.path not in reads]


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(gmail: GmailFake, check: Check) -> None:
    run_check(check, lambda: mounted(gmail))


def test_the_tree(gmail: GmailFake) -> None:
    found = shell(
        gmail,
        "ls /g",
        "ls /g/Work /g/Work/Clients",
        f"ls /g/INBOX/{DAY}",
        f"cat /g/INBOX/{DAY}/Report*.eml",
        f"jq -r '.subject, .text, .from[0].address, .labels[0], .attachments[0].file' /g/INBOX/{DAY}/Report*.json",
        f"cd /g/INBOX/{DAY}/Report*[0-9a-f]/; ls; md5sum < graph.png; cat small.csv; stat -c %s graph.png",
        "cat /g/threads/Re*.md | grep -v '^$'",
        "head -1 /g/README.md",
    )
    assert [one[1:] for one in found] == [("", 0)] * len(found)
    assert set(found[0][0].split()) == {
        "ALL",
        "INBOX",
        "README.md",
        "SENT",
        "SPAM",
        "STARRED",
        "TRASH",
        "UNREAD",
        "Work",
        "%32026-01-01",
        "threads",
        "threads__Label_3",
    }
    assert "Clients" in found[1][0] and len(found[2][0].split()) == 3
    assert found[3][0].encode() and "needle" in found[3][0]
    assert found[4][0].split("\n")[:3] == ["Report/Q3 – näher", "needle", ""]
    assert "bob@example.com\nINBOX\ngraph.png" in found[4][0]
    assert found[5][0].startswith("graph.png\nsmall.csv\n") and "a,b\n1280\n" in found[5][0]
    assert "# Report/Q3" in found[6][0] and "Thanks!" in found[6][0] and "graph.png" in found[6][0]


def test_raw_messages_are_byte_for_byte(gmail: GmailFake) -> None:
    ids = [gmail.add(b"Subject: n\r\n\r\n" + bytes(range(256)) * 700 + b"x" * extra, NOON) for extra in range(4)]

    async def act() -> list[bytes]:
        resource = mounted(gmail)
        try:
            paths = [Path(f"/INBOX/{DAY}/n__{id}.eml") for id in ids]
            return [b"".join([block async for block in resource.read(path)]) for path in paths]
        finally:
            await resource.close()

    assert asyncio.run(act()) == [gmail.raw[id] for id in ids]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"From: b@x.org\r\nSubject: none\r\n\r\nGr\xfc\xdfe", "Grüße"),
        ("From: b@x.org\r\nSubject: none\r\n\r\nGrüße".encode(), "Grüße"),
        (b"From: b@x.org\r\nSubject: n\r\nContent-Type: text/plain; charset=nonsense\r\n\r\nGr\xfc\xdfe", "Grüße"),
        (b"From: b@x.org\r\nSubject: n\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\n\xf0\xd2\xc9", "При"),
        (b'Subject: n\r\nContent-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$B$"\x1b(B', "あ"),
        (b"no header at all", None),
        (b"\r\n\r\nonly text", "\nonly text"),
    ],
)
def test_a_mail_without_a_charset_and_worse(gmail: GmailFake, raw: bytes, text: str | None) -> None:
    id = gmail.add(raw, NOON)
    (found,) = shell(gmail, f"jq -r .text /g/ALL/{DAY}/*__{id}.json")
    assert found[1:] == ("", 0) and (text is None or found[0] == f"{text}\n")


def test_a_thousand_messages_are_few_requests(gmail: GmailFake) -> None:
    for number in range(997):
        gmail.add(letter(f"n{number}"), NOON + number)
    found = shell(gmail, "ls /g/INBOX", f"ls /g/INBOX/{DAY} | wc -l", "ls /g/INBOX")
    assert found[0][0] == found[2][0] == f"{DAY}\n" and int(found[1][0]) >= 1995
    # Token, labels, profile; two pages and ten batches for the window; two pages for the day.
    assert len(gmail.calls) <= 18


def test_a_refresh_is_one_request(gmail: GmailFake) -> None:
    async def act() -> list[Any]:
        resource = mounted(gmail)
        day = Path(f"/INBOX/{DAY}")
        try:

            async def names() -> list[str]:
                return sorted([name async for name, _ in resource.scan(day) if name.endswith(".eml")])

            before, count = await names(), len(gmail.calls)
            id = gmail.add(letter("New"), NOON + 5)
            gone = gmail.add(letter("Gone"), NOON + 6)
            gmail.remove(gone)
            resource.forget()
            after = await names()
            asked = [call.path.rpartition("/")[2] for call in gmail.calls[count:]]
            gmail.relabel(id, "Label_1")
            resource.forget()
            moved = await names()
            gmail.forgotten = 999
            resource.forget()
            again = await names()
            return [before, after, asked, moved, again]
        finally:
            await resource.close()

    before, after, asked, moved, again = asyncio.run(act())
    assert len(after) == len(before) + 1 and moved == again == before
    assert asked[:2] == ["labels", "history"] and len(asked) == 3  # and the new message


def test_removal_is_the_trash_and_moves_are_labels(gmail: GmailFake) -> None:
    (id, *_) = gmail.about
    found = shell(
        gmail,
        f"mv /g/INBOX/{DAY}/Report*.eml /g/Work/Clients/; ls /g/Work/Clients/{DAY} | wc -l; ls /g/INBOX",
        f"mv /g/Work/Clients/{DAY}/Report*.eml /g/INBOX/; rm /g/INBOX/{DAY}/Report*.eml; ls /g/TRASH",
        f"mv /g/TRASH/{DAY}/Report*.eml /g/INBOX/; ls /g/INBOX",
        "mkdir /g/New; ls -d /g/New",
        writable=True,
    )
    assert [one[1:] for one in found] == [("", 0)] * len(found)
    assert found[0][0] == "3\n" and found[1][0] == f"{DAY}\n" and found[2][0] == f"{DAY}\n"
    assert set(gmail.about[id]["labelIds"]) == {"UNREAD", "INBOX"} and "New" in gmail.labels.values()
    assert not any(call.method == "DELETE" for call in gmail.calls)


def test_mail_send(gmail: GmailFake) -> None:
    (id, *_) = gmail.about
    found = shell(
        gmail,
        "mail send /g -s Tomorrow -m 'At 9' -c cy@example.com bob@example.com",
        f"echo data > /tmp/f.txt; mail send /g/INBOX/{DAY}/Report*.eml -s Re -m Agreed -a /tmp/f.txt bob@example.com",
        writable=True,
    )
    assert [one[2] for one in found] == [0, 0]
    first, second = gmail.sent
    assert first["message"]["From"] == "ada@example.com" and first["message"]["Cc"] == "cy@example.com"
    assert second["about"] == {"threadId": id} and second["message"]["In-Reply-To"].startswith("<")
    assert second["message"].get_payload()[1].get_filename() == "f.txt"


def test_a_large_letter_is_uploaded(gmail: GmailFake) -> None:
    (found,) = shell(
        gmail, "head -c 5000000 /dev/zero > /tmp/z; mail send /g -s Z -m z -a /tmp/z b@x.org", writable=True
    )
    assert found[1:] == ("", 0) and len(gmail.sent) == 1 and changes(gmail)[-1].startswith("POST /upload/")
    (found,) = shell(
        gmail, "head -c 20000000 /dev/zero > /tmp/z; mail send /g -s Z -m z -a /tmp/z b@x.org", writable=True
    )
    assert "at most 25 MB; nothing was sent" in found[1] and len(gmail.sent) == 1


def test_a_letter_whose_answer_is_lost_is_not_sent_twice(gmail: GmailFake) -> None:
    gmail.fault("POST", "/messages/send", lost=True)
    (found,) = shell(gmail, "mail send /g -s Once -m x bob@example.com", writable=True)
    assert "look before you send it again" in found[1] and found[2] != 0 and len(gmail.sent) == 1
    gmail.fault("POST", "/messages/send", refused(429, "slow", "rateLimitExceeded"))
    shell(gmail, "mail send /g -s Twice -m x bob@example.com", writable=True)
    assert len(gmail.sent) == 2


def test_a_branch_sends_nothing_before_its_commit(gmail: GmailFake) -> None:
    async def act() -> list[Any]:
        ws = Workspace({"/g": mounted(gmail, writable=True)})
        try:
            branch = ws.branch()
            await branch.execute(f"rm /g/INBOX/{DAY}/Report*.eml")
            before = changes(gmail)
            await branch.commit()
            return [before, changes(gmail)]
        finally:
            await ws.close()

    before, after = asyncio.run(act())
    assert before == [] and len(after) == 1 and after[0].endswith("/trash")


def test_query_searches_and_asks(gmail: GmailFake) -> None:
    found = shell(
        gmail,
        "cd /g; query . 'from:bob needle' | jq -r .path | xargs grep -c needle",
        "query -n 1 /g from:bob | wc -l",
        "query /g 'GET /gmail/v1/users/me/profile' | jq -r .emailAddress",
        "query -w /g 'POST /gmail/v1/users/me/labels' '{\"name\": \"Q\"}' | jq -r .name",
        writable=True,
    )
    assert [one[0] for one in found] == ["1\n", "1\n", "ada@example.com\n", "Q\n"]


@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_batch_that_fails_in_part_is_asked_again(gmail: GmailFake, status: int) -> None:
    failed = iter([refused(status, "slow", "rateLimitExceeded")])
    gmail.part = lambda id: next(failed, None)
    (found,) = shell(gmail, "ls /g/ALL | wc -l")
    assert found == ("2\n", "", 0)


@pytest.mark.parametrize(
    "reply",
    [
        refused(429, "Too many", "rateLimitExceeded"),
        refused(403, "Slow", "userRateLimitExceeded"),
        Reply(503, b""),
        None,
        refused(401, "expired", "authError"),
    ],
)
def test_what_passes_is_asked_again(gmail: GmailFake, reply: Reply | None) -> None:
    gmail.fault("GET", "/messages$", reply)
    assert shell(gmail, "ls /g/INBOX")[0][0] == f"{DAY}\n"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refused(401, "Invalid Credentials", "authError"), "127.0.0.1 refuses the token: Invalid Credentials"),
        (refused(403, "scopes", "insufficientPermissions"), "sign in again with https://www.googleapis.com/auth/gmail"),
        (refused(403, "quota", "dailyLimitExceeded"), "wait until tomorrow"),
    ],
)
def test_refusals_say_what_to_do(gmail: GmailFake, reply: Reply, words: str) -> None:
    gmail.fault("GET", "/labels$", reply, times=9)
    (found,) = shell(gmail, "ls /g/INBOX")
    assert words in found[1] and found[2] != 0


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("ls /g/Nope", "No such file or directory"),
        ("ls /g/INBOX/2026-02-31", "No such file or directory"),
        (f"cat /g/INBOX/{DAY}/Nope__1.eml", "No such file or directory"),
        (f"rm /g/INBOX/{DAY}/Report*.json", "by its .eml"),
        (f"echo x >> /g/INBOX/{DAY}/Report*.eml", "use mail send"),
        ("echo x > /g/INBOX/new.eml", "use mail send"),
        (f"mv /g/INBOX/{DAY}/Report*.eml /g/INBOX/{DAY}/x.eml", "keep the name"),
        (f"mv /g/INBOX/{DAY}/Report*.eml /g/Work/", "there is no such label"),
        ("mkdir /g/INBOX", "File exists"),
        ("post /g -m x", "needs an address"),
        ("query /g 'DELETE /gmail/v1/users/me/messages/1'", "that takes -w"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(gmail: GmailFake, script: str, words: str) -> None:
    (found,) = shell(gmail, script, writable=True)
    assert words in found[1] and found[2] != 0 and changes(gmail) == []


def test_more_messages_than_are_listed_is_an_error(gmail: GmailFake) -> None:
    found = shell(gmail, "ls /g/ALL", f"ls /g/SENT/{DAY}", max_messages=1)
    assert "more than 1 messages in 30 days; name a day" in found[0][1] and found[1][2] == 0


def test_the_secrets_are_nowhere(gmail: GmailFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(gmail, writable=True)
        ws = Workspace({"/g": resource})
        try:
            gmail.fault("GET", "/labels$", refused(400, f"bad {SECRET} {REFRESH} ya29.hunter2-1", "invalid"))
            result = await ws.execute("ls /g/INBOX; mail send /g -s x -m x b@x.org; query /g x")
            ws.snapshot(tmp_path / "snapshot.tar")
            shown = repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
            return shown + result.stderr.decode() + result.stdout.decode()
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert "hunter2" not in seen and "REDACTED" in seen and CLIENT in seen
