"""TrelloResource against a fake; requests are checked against Trello's OpenAPI description."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts
from tests.support.trello_fake import KEY, TOKEN, TrelloFake

from ramet import Workspace
from ramet.backends import TrelloConfig, TrelloResource
from ramet.testing import READING, Check, run_check


@pytest.fixture
def trello() -> Iterator[TrelloFake]:
    with TrelloFake() as running:
        work = running.add_board("Work/Life", "Doing", "Done")
        file = {
            "id": running.id(), "name": "graph.png", "bytes": 7, "isUpload": True, "date": "2026-05-02T10:00:00.000Z",
            "url": f"{running.base}/files/1",
        }  # fmt: skip
        link = {"id": running.id(), "name": "Log", "isUpload": False, "url": "https://x.org/log", "date": None}
        labels, ada = [work["labels"][0]], work["members"][0]["id"]
        first = running.add_card(
            work, 0, "Fix / login\nnow", "It *fails*.", labels=labels, idMembers=[ada], attachments=[file, link]
        )
        running.add_card(work, 1, "Old one")
        running.say(first, "me too")
        yield running


def mounted(trello: TrelloFake, **settings: Any) -> TrelloResource:
    given = {"api_key": KEY, "api_token": TOKEN, "requests_per_second": None, "ttl": 600.0, **settings}
    return TrelloResource(TrelloConfig(base_url=f"{trello.base}/1", private=True, allow=("127.0.0.2",), **given))


def shell(trello: TrelloFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/t": mounted(trello, **settings)}, scripts)


CARD = "/t/boards/Work*/lists/Doing*/Fix*"


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
@pytest.mark.parametrize("writable", (False, True))
def test_the_reading_suite(trello: TrelloFake, check: Check, writable: bool) -> None:
    run_check(check, lambda: mounted(trello, writable=writable))


def test_a_board_is_lists_of_cards_in_one_request(trello: TrelloFake) -> None:
    found = shell(
        trello, "ls /t /t/boards/* /t/boards/*/lists/Doing* | sed 's/__.*//'", f"cat {CARD}/card.md",
        f"cat {CARD}/attachments/*; jq -r .text {CARD}/comments.jsonl",
        "jq -r '[.name, .list, .labels[]] | join(\",\")' /t/boards/*/cards.jsonl",
        "jq -r .path /t/boards/*/cards.jsonl | tail -1 | (read -r at; grep ^name \"/t/$at\")",
    )  # fmt: skip
    assert found[0][0].split() == [
        "/t:", "README.md", "boards", "/t/boards/Work%2FLife", "board.json", "cards.jsonl", "lists",
        "/t/boards/Work%2FLife", "Fix", "%2F", "login%0Anow",
    ]  # fmt: skip
    assert found[1][0] == (
        '---\nname: "Fix / login\\nnow"\nlist: Doing\nlabels: [bug]\nmembers: [ada]\ndue:\ndueComplete: false\n'
        'closed: false\nshortLink: card0009\ndateLastActivity: "2026-05-02T10:00:00.000Z"\n'
        'url: "https://trello.com/c/card0009"\n---\n\nIt *fails*.\n'
    )
    assert found[2][0] == "https://x.org/log\ncontentme too\n"
    assert found[3][0] == "Fix / login\nnow,Doing,bug\nOld one,Done\n" and found[4][0] == "name: Old one\n"
    assert trello.count("GET", "/1/boards/") == 1 and trello.count("GET", "/members/me/boards") == 1


def test_more_cards_than_a_page(trello: TrelloFake) -> None:
    board = trello.add_board("Large", "All")
    for number in range(2300):
        trello.add_card(board, 0, f"Card {number}")
    assert shell(trello, "ls /t/boards/Large*/lists/* | wc -l; wc -l < /t/boards/Large*/cards.jsonl")[0][0] == (
        "2300\n2300\n"
    )
    assert trello.count("GET", f"/1/boards/{board['id']}") == 3


def test_an_edit_sends_only_what_differs_and_names_become_ids(trello: TrelloFake) -> None:
    found = shell(
        trello, f"sed -i 's/^labels: .*/labels: [sky]/; s/^due:.*/due: 2026-05-09/; s/fails/broke/' {CARD}/card.md",
        f"sed -i 's/^labels: .*/labels: [none]/' {CARD}/card.md", f"sed -i 's/^url: .*/url: x/' {CARD}/card.md",
        f"sed -i 's/^due: .*/due: soon/' {CARD}/card.md", f"sed -i 's/^list: .*/list: Never/' {CARD}/card.md",
        f"sed -i 's/^list: .*/list: Done/' {CARD}/card.md", "ls /t/boards/Work*/lists/Done* | wc -l",
        "sed -i 's/^closed: .*/closed: true/' /t/boards/Work*/lists/Done*/Old*/card.md",
        "ls /t/boards/Work*/lists/Done*",
        writable=True,
    )  # fmt: skip
    sent = [call.json for call in trello.calls if call.method == "PUT"]
    sky, done = trello.boards[next(iter(trello.boards))]["labels"][1]["id"], sent[-1]
    assert sent[0] == {"idLabels": sky, "due": "2026-05-09T00:00:00+00:00", "desc": "It *broke*."}
    assert list(done) == ["closed"] and len(sent) == 3 and list(sent[1]) == ["idList"] and found[6][0] == "2\n"
    assert [one[1:] for one in found[5:]] == [("", 0)] * 4 and found[8][0].count("\n") == 1
    for (_, said, status), words in zip(
        found[1:5], ("no labels none; there are: bug, sky", "url is read-only", "such as", "no list Never"), strict=True
    ):
        assert words in said and status != 0


def test_cards_move_between_lists_and_are_archived(trello: TrelloFake) -> None:
    found = shell(
        trello, f"mv {CARD} /t/boards/Work*/lists/Done*/",
        "ls /t/boards/Work*/lists/Done* | wc -l",
        "cd /t/boards/Work*/lists; mv Done*/Old* $(echo Doing*)/Renamed__$(ls Done* | sed -n 's/^Old.*__//p')",
        "cd /t/boards/Work*/lists; mv Doing*/Renamed* $(echo Done*)/Elsewhere",
        "rmdir /t/boards/Work*/lists/Doing*/Renamed*",
        "mv /t/boards/Work*/lists/Done*/Fix* /t/boards/", "mv /t/boards/Work* /t/boards/x", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 0, 0, 1, 0, 1, 1] and found[1][0] == "2\n"
    assert "must end in __" in found[3][1] and "cannot move" in found[5][1] and "names its things" in found[6][1]
    sent = [call.json for call in trello.calls if call.method == "PUT"]
    assert [list(one) for one in sent] == [["idList"], ["idList", "name"], ["closed"]] and sent[2] == {"closed": "true"}


def test_an_edit_of_a_changed_card_is_stale(trello: TrelloFake) -> None:
    async def act() -> bytes:
        ws = Workspace({"/t": mounted(trello, writable=True)})
        try:
            await ws.execute(f"cat {CARD}/card.md > /tmp/card")
            next(iter(trello.cards.values()))["desc"] = "Someone else's"
            return (await ws.execute(f"sed s/fails/works/ /tmp/card > {CARD}/card.md")).stderr
        finally:
            await ws.close()

    assert b"read it again" in asyncio.run(act()) and trello.count("PUT") == 0


def test_post_comments_attaches_and_makes_cards_once(trello: TrelloFake) -> None:
    trello.fault("POST", "/1/cards$", lost=True)
    found = shell(
        trello, f"echo data > /tmp/g.png; post {CARD} -m Done -a /tmp/g.png",
        "post /t/boards/Work*/lists/Done* -t T -m B",
        "ls -d /t/boards/Work*/lists/Done*/T__*", "post /t/boards/Work* -m x", f"echo x >> {CARD}/comments.jsonl",
        "post /t/boards/Work*/lists/Done* -m x", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 1, 0, 1, 1, 1]
    assert "may have been made" in found[1][1] and "use post" in found[4][1] and "-t TITLE" in found[5][1]
    assert trello.comments[next(iter(trello.cards))][-1]["data"]["text"] == "Done"
    assert trello.count("POST", "/1/cards$") == 1 and b"data\n" in trello.uploads[0]


def test_query_searches_and_asks(trello: TrelloFake) -> None:
    found = shell(
        trello, "cat \"/t/$(query /t Fix | jq -r .path)\" | grep -c fails",
        "query /t 'GET /members/me' | jq -r .username",
        "query /t 'PUT /cards/x' '{}'", "query /t 'GET /members/nobody'", writable=True,
    )  # fmt: skip
    assert found[0][0] == "1\n" and found[1][0] == "ada\n" and "takes -w" in found[2][1]


@pytest.mark.parametrize(
    ("script", "settings", "words"),
    [
        ("ls /t/boards", {"api_token": "wrong"}, "refuses the key or the token: invalid token"),
        ("ls /t/boards/64b0ffffffffffffffffffff", {}, "No such file"),
        (f"echo x > {CARD}/card.md", {"writable": False}, "set writable=True in TrelloConfig"),
        (f"head -c 20000 /dev/zero | tr '\\0' a | post {CARD}", {}, "at most 16384 characters; nothing was changed"),
        (f"head -c 20000000 /dev/zero > /tmp/f; post {CARD} -a /tmp/f", {}, "larger than 16 MiB; nothing was posted"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    trello: TrelloFake, script: str, settings: dict[str, Any], words: str
) -> None:
    (found,) = shell(trello, script, **{"writable": True, **settings})
    assert words in found[1] and found[2] != 0
    assert trello.count("POST") + trello.count("PUT") == 0


@pytest.mark.parametrize("reply", [Reply(429, b"Rate limit exceeded", {"Retry-After": "0"}), Reply(503, b""), None])
def test_what_passes_is_asked_again(trello: TrelloFake, reply: Reply | None) -> None:
    trello.fault("GET", "/1/boards/", reply)
    assert shell(trello, f"grep -c fails {CARD}/card.md")[0] == ("1\n", "", 0)


def test_a_branch_sends_nothing_before_its_commit(trello: TrelloFake) -> None:
    async def act() -> list[int]:
        ws = Workspace({"/t": mounted(trello, writable=True)})
        try:
            counts = []
            for end in ("abort", "commit"):
                branch = ws.branch()
                await branch.execute(f"sed -i s/fails/works/ {CARD}/card.md; post {CARD} -m Hi")
                counts.append(trello.count("PUT") + trello.count("POST"))
                assert [one.what for one in await branch.diff()][-2:] == ["posted", "modified"]
                await getattr(branch, end)()
                counts.append(trello.count("PUT") + trello.count("POST"))
            return counts
        finally:
            await ws.close()

    assert asyncio.run(act()) == [0, 0, 0, 2]


def test_key_and_token_are_nowhere(trello: TrelloFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(trello, writable=True)
        ws = Workspace({"/t": resource})
        try:
            result = await ws.execute(
                "ls /t/boards; query /t 'GET /members/nobody'; cat /t/boards/*/lists/*/*/attachments/*"
            )
            ws.snapshot(tmp_path / "snapshot.tar")
            shown = repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
            return shown + repr(result)
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert KEY not in seen and TOKEN not in seen and "REDACTED" in seen
