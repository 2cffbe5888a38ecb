"""NotionResource against a fake; requests are checked against Notion's own client and OpenAPI document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import descriptions
from tests.support.notion_fake import KEY, NotionFake, failed
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import NotionConfig, NotionResource
from ramet.backends.services.notion.texts import changed_piece
from ramet.testing import READING, Check, run_check

TEXT = "# Plan\n\nShip in *May*.\n\n- one\n- two\n- three\n\nThe end."


@pytest.fixture
def notion() -> Iterator[NotionFake]:
    with NotionFake() as running:
        roadmap = running.add("Roadmap", TEXT)
        running.add("Q3", "Third quarter.", roadmap["id"])
        running.add("a/b\nc", "x")
        tasks = running.add_source("Tasks", Status="status", Tags="multi_select", Points="number", Due="date")
        for name, status, points in (("Fix", "Open", 3), ("Ship", "Done", None)):
            running.add(
                name, f"About {name}.", tasks,
                Status={"id": "s", "type": "status", "status": {"name": status}, "_options": ["Open", "Done"]},
                Tags={"id": "t", "type": "multi_select", "multi_select": [{"name": "web"}]},
                Points={"id": "p", "type": "number", "number": points},
                Due={"id": "d", "type": "date", "date": None},
            )  # fmt: skip
        yield running


def mounted(notion: NotionFake, **settings: Any) -> NotionResource:
    given = {"api_key": KEY, "ttl": 600.0, "requests_per_second": None, **settings}
    return NotionResource(NotionConfig(base_url=f"{notion.base}/v1", private=True, **given))


def shell(notion: NotionFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/n": mounted(notion, **settings)}, scripts)


def page(notion: NotionFake, title: str) -> dict[str, Any]:
    return next(one for one in notion.pages.values() if f'"{title}"' in json.dumps(one["properties"]))


def changes(notion: NotionFake) -> list[str]:
    """Requests that change something."""
    reads = ("/v1/search", "/query")
    return [f"{one.method} {one.path}" for one in notion.calls if one.method != "GET" and not one.path.endswith(reads)]


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(notion: NotionFake, check: Check) -> None:
    run_check(check, lambda: mounted(notion))


def test_the_tree_is_one_search_for_pages_and_one_for_databases(notion: NotionFake) -> None:
    (found,) = shell(notion, "cd /n; find . -name 'page.md' | sed 's/__[0-9a-f]*/__ID/g' | sort")
    assert found[0].split("\n") == [
        "./databases/Tasks__ID/rows/Fix__ID/page.md", "./databases/Tasks__ID/rows/Ship__ID/page.md",
        "./pages/Roadmap__ID/Q3__ID/page.md", "./pages/Roadmap__ID/page.md", "./pages/a%2Fb%0Ac__ID/page.md", "",
    ]  # fmt: skip
    assert notion.count() == 3


def test_a_thousand_pages_are_ten_requests(notion: NotionFake) -> None:
    for number in range(995):
        notion.add(f"Page {number}")
    assert shell(notion, "ls /n/pages | wc -l")[0][0] == "997\n" and notion.count() == 10


def test_a_page_is_its_properties_and_its_markdown(notion: NotionFake) -> None:
    found = shell(notion, "cat /n/pages/Roadmap__*/page.md", "cat /n/databases/Tasks__*/rows/Fix__*/page.md")
    id = page(notion, "Roadmap")["id"]
    assert found[0][0] == f'---\ntitle: Roadmap\n_id: {id}\n_url: "https://www.notion.so/{id}"\n---\n\n{TEXT}\n'
    assert found[1][0].startswith("---\nName: Fix\nStatus: Open\nTags: [web]\nPoints: 3\nDue:\n_id: ")
    assert found[1][0].endswith("---\n\nAbout Fix.\n")


def test_one_page_by_its_id_is_two_requests(notion: NotionFake) -> None:
    id = page(notion, "Q3")["id"]
    assert shell(notion, f"tail -1 /n/pages/{id}/page.md")[0][0] == "Third quarter.\n" and notion.count() == 2


def test_rows_are_lines_with_plain_values(notion: NotionFake) -> None:
    found = shell(
        notion, "jq -r 'select(.Status==\"Open\").Name' /n/databases/Tasks__*/rows.jsonl",
        "cd /n; jq -r .path databases/Tasks__*/rows.jsonl | xargs tail -qn1", "cd /n; query databases/Tasks__* "
        "'{\"property\": \"Status\", \"status\": {\"equals\": \"Done\"}}' | jq -r '.Name, .Points, ._id'",
    )  # fmt: skip
    assert [one[0] for one in found[:2]] == ["Fix\n", "About Fix.\nAbout Ship.\n"]
    assert found[2][0] == f"Ship\nnull\n{page(notion, 'Ship')['id']}\n"


def test_all_values_of_a_long_property_are_shown(notion: NotionFake) -> None:
    whole = [{"id": f"{number:032x}"} for number in range(60)]
    fix = page(notion, "Fix")
    fix["properties"]["Linked"] = {
        "id": "r", "type": "relation", "relation": whole[:25], "has_more": True, "_all": whole
    }  # fmt: skip
    (found,) = shell(notion, "jq -c '.Linked | select(.) | length' /n/databases/Tasks__*/rows.jsonl")
    assert found == ("60\n", "", 0)


def test_a_long_page_is_read_whole_and_its_text_is_read_only(notion: NotionFake) -> None:
    id, part, gone = page(notion, "Roadmap")["id"], notion.id(), notion.id()
    notion.parts[id], notion.texts[part] = [part, gone], "The rest."
    found = shell(
        notion, "tail -2 /n/pages/Roadmap__*/page.md", "sed -i 's/May/June/' /n/pages/Roadmap__*/page.md",
        "sed -i 's/^title: .*/title: Plan/' /n/pages/Roadmap__*/page.md", writable=True,
    )  # fmt: skip
    assert found[0][0] == f"The rest.\n<!-- Notion does not show the block {gone} -->\n"
    assert "the text is read-only" in found[1][1] and found[2][1:] == ("", 0)
    assert changes(notion) == [f"PATCH /v1/pages/{id}"]


# ---------------------------------------------------------------------------------------------------------- changes


def test_a_small_edit_names_what_it_replaces(notion: NotionFake) -> None:
    (found,) = shell(notion, "sed -i 's/two/TWO/' /n/pages/Roadmap__*/page.md", writable=True)
    assert found[1:] == ("", 0) and notion.texts[page(notion, "Roadmap")["id"]] == TEXT.replace("two", "TWO")
    sent = [call.json for call in notion.calls if call.method == "PATCH"]
    assert sent == [
        {"type": "update_content", "update_content": {"content_updates": [{"old_str": "- two", "new_str": "- TWO"}]}}
    ]


@pytest.mark.parametrize(
    ("old", "new", "piece"),
    [
        ("a\nb\nc\nd\ne\nf", "a\nb\nX\nd\ne\nf", ("c", "X")),
        ("a\nb\na\nb\na\nc", "a\nb\nX\nb\na\nc", ("b\na\nb", "b\nX\nb")),
        ("a1\na2\na3\na4\na5", "a1\na2\na3\na4\na5\nnew", ("a5", "a5\nnew")),
        ("a1\na2\na3\na4\na5", "a2\na3\na4\na5", ("a1\na2", "a2")),
        ("", "new", None),
        ("one line", "other line", None),
        ("x\nx\nx", "x\nx", None),
    ],
)
def test_the_piece_that_differs_is_unique(old: str, new: str, piece: tuple[str, str] | None) -> None:
    found = changed_piece(old, new)
    assert found == piece
    if found is not None:
        assert old.replace(*found) == new


def test_properties_are_edited_by_their_names(notion: NotionFake) -> None:
    row = "/n/databases/Tasks__*/rows/Fix__*/page.md"
    found = shell(
        notion, f"sed -i 's/^Status: .*/Status: Done/; s/\\[web/&, urgent/; s/^Points: 3/Points: 1.5/' {row}",
        f"sed -i 's/^Due:.*/Due: 2026-06-01/; s/^Name: .*/Name: Fixed/' {row}", writable=True,
    )  # fmt: skip
    assert [one[1:] for one in found] == [("", 0)] * 2
    values = page(notion, "Fixed")["properties"]
    assert values["Status"]["status"] == {"name": "Done"} and values["Points"]["number"] == 1.5
    assert values["Tags"]["multi_select"] == [{"name": "web"}, {"name": "urgent"}]
    assert values["Due"]["date"] == {"start": "2026-06-01", "end": None}
    assert len(changes(notion)) == 2


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ("s/^Status: .*/Status: Nope/", "Notion says Nope is not one of Open, Done"),
        ("s/^Tags: .*/Tags: web/", "Tags is a list"),
        ("s/^Points: .*/Points: many/", "Points is a number"),
        ("s/^_id: .*/_id: 1/", "_id is read-only"),
        ("s/^Due:/Deadline:/", "unknown key Deadline"),
    ],
)
def test_a_bad_edit_says_what_to_do(notion: NotionFake, edit: str, words: str) -> None:
    before = json.dumps(notion.pages)
    (found,) = shell(notion, f"sed -i '{edit}' /n/databases/Tasks__*/rows/Fix__*/page.md", writable=True)
    assert words in found[1] and found[2] != 0 and json.dumps(notion.pages) == before


def test_an_edit_of_a_changed_page_is_stale(notion: NotionFake) -> None:
    async def act(change: str, edit: str) -> tuple[str, int]:
        ws = Workspace({"/n": mounted(notion, writable=True)})
        try:
            await ws.execute("cat /n/pages/Roadmap__*/page.md")
            notion.texts[page(notion, "Roadmap")["id"]] = change
            result = await ws.execute(edit)
            return result.stderr.decode(), result.exit_code
        finally:
            await ws.close()

    words, status = asyncio.run(act(TEXT + "\nMore.", "sed -i s/two/2/ /n/pages/Roadmap__*/page.md"))
    assert status != 0 and "the service has changed it since you read it" in words and changes(notion) == []


def test_an_edit_that_loses_the_race_is_stale(notion: NotionFake) -> None:
    notion.fault("PATCH", "/markdown", failed(400, "validation_error", "old_str was not found in the page."))
    (found,) = shell(notion, "sed -i s/two/2/ /n/pages/Roadmap__*/page.md", writable=True)
    assert "Stale file handle" in found[1] and notion.texts[page(notion, "Roadmap")["id"]] == TEXT


def test_a_new_file_is_a_new_page_or_row(notion: NotionFake) -> None:
    found = shell(
        notion, "cd /n/pages/Roadmap__*; echo 'An *idea*.' > Idea.md; cat Idea.md; ls -d Idea__*/",
        "cd /n/databases/Tasks__*/rows; printf -- '---\\nStatus: Open\\nPoints: 5\\n---\\nWhy' > 'Call Bob.md'; ls",
        "cd /n/pages/Roadmap__*; echo x > notes.txt", "echo x > /n/pages/Top.md",
        "cd /n/databases/Tasks__*/rows; printf -- '---\\nNope: 1\\n---\\n' > B.md", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 0, 1, 1, 1] and "An *idea*.\nIdea__" in found[0][0]
    idea, row = page(notion, "Idea"), page(notion, "Call Bob")
    assert idea["parent"]["page_id"] == page(notion, "Roadmap")["id"] and notion.texts[idea["id"]] == "An *idea*."
    assert row["properties"]["Status"]["status"] == {"name": "Open"} and row["properties"]["Points"]["number"] == 5
    assert "cannot set Nope: you can set Name, Status, Tags, Points, Due" in found[4][1]
    assert len([one for one in changes(notion) if one == "POST /v1/pages"]) == 2


def test_a_page_whose_answer_is_lost_is_not_made_twice(notion: NotionFake) -> None:
    notion.fault("POST", "/v1/pages", lost=True)
    (found,) = shell(notion, "cd /n/pages/Roadmap__*; echo x > Idea.md", writable=True)
    assert "may have been made" in found[1] and changes(notion) == ["POST /v1/pages"]


def test_post_comments_once(notion: NotionFake) -> None:
    found = shell(
        notion, "post /n/pages/Roadmap__* -m 'Looks good'; jq -r .text /n/pages/Roadmap__*/comments.jsonl",
        "post /n/databases/Tasks__*/rows/Fix__* -m 'On it'", "post /n/pages -m x", "post /n/pages/Roadmap__* -t T -m x",
        "echo hi >> /n/pages/Roadmap__*/comments.jsonl", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 0, 1, 1, 1] and found[0][0].endswith("Looks good\n")
    assert [one["rich_text"][0]["plain_text"] for one in notion.comments] == ["Looks good", "On it"]
    assert "use post" in found[4][1]
    notion.fault("POST", "/v1/comments", lost=True)
    (lost,) = shell(notion, "post /n/pages/Roadmap__* -m once", writable=True)
    assert "may have been made" in lost[1] and len(notion.comments) == 3


def test_removal_is_the_trash(notion: NotionFake) -> None:
    found = shell(notion, "rmdir /n/pages/Roadmap__*", "ls /n/pages | grep -c Roadmap", writable=True)
    assert found[1][0] == "0\n" and page(notion, "Roadmap")["in_trash"]


def test_pages_with_equal_titles_are_told_apart(notion: NotionFake) -> None:
    notion.add("Roadmap", "another")
    (found,) = shell(notion, "cat /n/pages/Roadmap__*/page.md | grep -c ^title:")
    assert found[0] == "2\n"


def test_names_with_blanks_and_colons_can_be_edited(notion: NotionFake) -> None:
    for name in ("Due date", "a: b", "Größe"):
        page(notion, "Fix")["properties"][name] = {"id": name, "type": "rich_text", "rich_text": []}
    row = "/n/databases/Tasks__*/rows/Fix__*/page.md"
    script = f'sed -i \'s/^Due date:/& soon/; s/^"a: b":/& "x: y"/; s/^Größe:/& 3/\' {row}'
    (found,) = shell(notion, script, writable=True)
    values = page(notion, "Fix")["properties"]
    assert found[1:] == ("", 0)
    assert [values[name]["rich_text"][0]["plain_text"] for name in ("Due date", "a: b", "Größe")] == [
        "soon", "x: y", "3",
    ]  # fmt: skip


def test_a_branch_sends_nothing_before_its_commit(notion: NotionFake) -> None:
    async def act() -> list[Any]:
        ws = Workspace({"/n": mounted(notion, writable=True)})
        try:
            branch = ws.branch()
            await branch.execute("cd /n/pages/Roadmap__*; sed -i s/two/2/ page.md; post . -m Nice")
            before = changes(notion)
            await branch.commit()
            return [before, len(changes(notion)), len(notion.comments)]
        finally:
            await ws.close()

    assert asyncio.run(act()) == [[], 2, 1]


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    "reply",
    [
        failed(429, "rate_limited", "Slow down", {"Retry-After": "0"}),
        failed(429, "rate_limited", "Slow down", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        failed(429, "rate_limited", "Slow down"),
        failed(409, "conflict_error", "Conflict"),
        Reply(529, b""),
        Reply(503, b""),
        None,
    ],
)
def test_what_passes_is_asked_again(notion: NotionFake, reply: Reply | None) -> None:
    notion.fault("POST", "/v1/search", reply)
    assert "Roadmap" in shell(notion, "ls /n/pages")[0][0]
    descriptions.problems[:] = [one for one in descriptions.problems if "-> 409" not in one and "-> 529" not in one]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (failed(401, "unauthorized", "API token is invalid."), "Notion refuses the secret: API token is invalid."),
        (failed(403, "restricted_resource", "Insufficient permissions"), "the integration lacks a capability"),
        (failed(404, "object_not_found", "Could not find"), "not shared with the integration"),
        (failed(429, "rate_limited", "Slow down", {"Retry-After": "9999"}), "limits the rate of requests until"),
    ],
)
def test_refusals_say_what_to_do(notion: NotionFake, reply: Reply, words: str) -> None:
    notion.fault("GET", "/markdown", reply, times=9)
    (found,) = shell(notion, "cat /n/pages/Roadmap__*/page.md")
    assert words in found[1] and found[2] != 0


def test_pages_that_shift_while_they_are_read(notion: NotionFake) -> None:
    notion.page = 2
    for number in range(9):
        notion.add(f"Page {number}")
    search = notion._search

    def shifting(call: Any) -> Reply:
        answer = search(call)
        first = next(iter(notion.pages))
        notion.pages[first] = notion.pages.pop(first)  # an edit puts it at the other end
        return answer

    notion.routes[0] = ("POST", notion.routes[0][1], shifting)
    (found,) = shell(notion, "ls /n/pages")
    names = found[0].splitlines()
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("ls /n/pages/nope", "No such file or directory"),
        ("ls /n/pages/ffffffffffffffffffffffffffffffff", "not shared with the integration"),
        ("ls /n/databases/ffffffffffffffffffffffffffffffff", "not shared with the integration"),
        ("mkdir /n/pages/New", "only the service makes directories here"),
        ("mv /n/pages/Roadmap__* /n/pages/Other", "the service names its things itself"),
        ("printf '\\377' > /n/pages/Roadmap__*/page.md", "not UTF-8"),
        ("head -c 20000000 /dev/zero > /n/pages/Roadmap__*/page.md", "at most 16 MiB can be sent; nothing was changed"),
        (
            "cd /n/pages/Roadmap__*; head -c 20000000 /dev/zero > Big.md",
            "at most 16 MiB can be sent; nothing was changed",
        ),
        ("query /n 'PATCH /pages/1' '{}'", "that takes -w"),
        ('query /n/pages \'{"property": "x"}\'', "a filter is for a database"),
        ("query /n/databases/Tasks__* '{nope'", "this is not JSON"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(notion: NotionFake, script: str, words: str) -> None:
    (found,) = shell(notion, script, writable=True)
    assert words in found[1] and found[2] != 0 and changes(notion) == []


def test_more_pages_than_are_listed_is_an_error(notion: NotionFake) -> None:
    found = shell(notion, "ls /n/pages", f"tail -1 /n/pages/{page(notion, 'Q3')['id']}/page.md", max_pages=2)
    assert "more than 2 pages; open one by its id" in found[0][1] and found[1][0] == "Third quarter.\n"


def test_query_searches_and_asks(notion: NotionFake) -> None:
    found = shell(
        notion, "cd /n; query . roadmap | jq -r .path | head -1 | xargs tail -1",
        "query /n 'GET /users' | jq -r .results[].name",
        "query /n 'POST /search' '{\"query\": \"Q3\"}' | jq '.results | length'",
        f"query -w /n 'PATCH /pages/{page(notion, 'Q3')['id']}' '{{\"in_trash\": true}}' | jq .in_trash", writable=True,
    )  # fmt: skip
    assert [one[0] for one in found] == ["The end.\n", "Ada\n", "1\n", "true\n"]


def test_the_check_of_exchanges_can_fail(notion: NotionFake) -> None:
    if notion._checker is None:
        pytest.skip("Notion's description is not there: make descriptions")
    shell(notion, "query /n 'POST /search' '{\"shoe_size\": 1}'")
    assert "shoe_size" in str(descriptions.problems)
    descriptions.problems.clear()


def test_the_secret_is_nowhere(notion: NotionFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(notion, writable=True)
        ws = Workspace({"/n": resource})
        try:
            notion.fault("POST", "/v1/search", failed(400, "validation_error", f"bad {KEY}"))
            result = await ws.execute("ls /n/pages; post /n/pages/Roadmap__* -m x; query /n x")
            ws.snapshot(tmp_path / "snapshot.tar")
            shown = repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
            return shown + result.stderr.decode() + result.stdout.decode()
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert KEY not in seen and "REDACTED" in seen
