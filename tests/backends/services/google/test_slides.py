"""GoogleSlidesResource against a fake; every exchange is checked against Google's discovery documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.google_fake import CLIENT, REFRESH, SECRET, refused
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts
from tests.support.sheets_fake import SlidesFake, shape, text_of

from ramet import Workspace
from ramet.backends import GoogleSlidesConfig, GoogleSlidesResource
from ramet.testing import READING, Check, run_check

AT = "/p/owned/Talk__*"


@pytest.fixture
def slides() -> Iterator[SlidesFake]:
    with SlidesFake() as running:
        note = shape("n1", text_of(("Say hello.", {})), 0)
        cell = {"text": text_of(("a|b", {}))}
        group = {
            "objectId": "g",
            "transform": {"translateY": 500},
            "elementGroup": {"children": [shape("in", text_of(("inside", {"bold": True})), 10)]},
        }
        running.add_deck(
            "Talk",
            [
                {
                    "objectId": "s1",
                    "pageElements": [
                        shape("low", text_of(("last", {"link": {"url": "https://x.org"}})), 900),
                        shape("list", text_of(("one", {}), ("two", {"level": 1}), bullets=True), 300),
                        shape("t", text_of(("Hello", {})), 1, kind="TITLE"),
                        group,
                    ],
                    "slideProperties": {
                        "notesPage": {"notesProperties": {"speakerNotesObjectId": "n1"}, "pageElements": [note]}
                    },
                },
                {
                    "objectId": "s2",
                    "pageElements": [
                        {
                            "objectId": "tab",
                            "table": {"rows": 1, "columns": 2, "tableRows": [{"tableCells": [cell, cell]}]},
                        },
                        {"objectId": "pic", "description": "a cat", "transform": {"translateY": 7}, "image": {}},
                    ],
                },
                {"objectId": "s3"},
            ],
        )
        yield running


def mounted(slides: SlidesFake, **more: Any) -> GoogleSlidesResource:
    given: dict[str, Any] = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "refresh_token": REFRESH,
        "ttl": 600.0,
        "private": True,
        "token_url": f"{slides.base}/token",
        "drive_url": slides.base,
        "allow": ("127.0.0.2",),
        **more,
    }
    return GoogleSlidesResource(GoogleSlidesConfig(base_url=slides.base, **given))


def shell(slides: SlidesFake, *scripts: str, **more: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/p": mounted(slides, **more)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(slides: SlidesFake, check: Check) -> None:
    run_check(check, lambda: mounted(slides))


def test_a_deck_is_read(slides: SlidesFake) -> None:
    found = shell(
        slides,
        f"ls {AT} {AT}/slides",
        f"cat {AT}/deck.md",
        f"cat {AT}/notes.md",
        f"cat {AT}/slides/01.md | tail -3",
        f"cat {AT}/slides/02.png",
        f"cat {AT}/slides/2.md",
        "head -1 /p/README.md",
    )
    assert [one[1:] for one in found] == [("", 0)] * len(found)
    assert "01.md\n01.png\n02.md" in found[0][0]
    assert found[1][0].startswith(
        "# Talk\n\n---\n\n## 1. Hello\n\n- one\n  - two\n\n**inside**\n\n[last](https://x.org)\n\n---\n\n## 2"
    )
    assert "| a\\|b | a\\|b |\n| --- | --- |" in found[1][0] and "[image: a cat]" in found[1][0]
    assert found[2][0] == "## 1\n\nSay hello.\n" and found[3][0] == "Notes:\n\nSay hello.\n"
    assert "PNG hunter" in found[4][0] and found[5][0].startswith("## 2")
    assert slides.count("GET", "/v1/presentations/[^/]*$") == 1


def test_a_change_is_seen(slides: SlidesFake) -> None:
    (id,) = slides.decks

    async def act() -> list[str]:
        resource = mounted(slides, ttl=0.0)
        ws = Workspace({"/p": resource})
        try:
            seen = [(await ws.execute(f"head -1 {AT}/deck.md")).stdout.decode()]
            slides.decks[id]["title"] = "Better"
            slides.change(id)
            return [*seen, (await ws.execute(f"head -1 {AT}/deck.md")).stdout.decode()]
        finally:
            await ws.close()

    assert asyncio.run(act()) == ["# Talk\n", "# Better\n"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"echo x > {AT}/deck.md", "Read-only file system"),
        (f"cat {AT}/slides/09.md", "No such file"),
        ("query /p hello", "a query is"),
        ("query /p 'POST /v1/presentations/x:batchUpdate' '{}'", "that takes -w"),
    ],
)
def test_what_cannot_be_done_says_so(slides: SlidesFake, script: str, words: str) -> None:
    (found,) = shell(slides, script, writable=True)
    assert words in found[1] and found[2] != 0


def test_query_changes_and_post_comments(slides: SlidesFake) -> None:
    (id,) = slides.decks
    found = shell(
        slides,
        f"query -w /p 'POST /v1/presentations/{id}:batchUpdate' '{{\"requests\": []}}' | jq -r .presentationId",
        f"post {AT} -m Nice; jq -r .content {AT}/comments.jsonl",
        writable=True,
    )
    assert found[0][0] == f"{id}\n" and found[1][0].endswith("Nice\n")


def test_faults(slides: SlidesFake) -> None:
    slides.fault("GET", "/v1/presentations", refused(403, "slow", "rateLimitExceeded"))
    slides.fault("GET", "/shot.png", Reply(503, b""))
    found = shell(slides, f"head -1 {AT}/deck.md", f"wc -c < {AT}/slides/01.png")
    assert [one[0] for one in found] == ["# Talk\n", "11\n"]
