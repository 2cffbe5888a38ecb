"""GoogleDocsResource against a fake that models documents; exchanges are checked against discovery documents."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.docs_fake import DocsFake, paragraph, table
from tests.support.google_fake import CLIENT, REFRESH, SECRET, refused
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import GoogleDocsConfig, GoogleDocsResource
from ramet.backends.services.google.docs_edit import split
from ramet.backends.services.google.docs_markdown import blocks_of, markdown, tabs_of
from ramet.testing import READING, Check, run_check

AT = "/w/owned/Plan__*"
BOLD, ITALIC = {"bold": True}, {"italic": True}
MONO = {"weightedFontFamily": {"fontFamily": "Roboto Mono"}}
RED = {"foregroundColor": {"color": {"rgbColor": {"red": 1.0}}}}
IMAGE = {"inlineObjectElement": {"inlineObjectId": "kix.1"}}
NOTE = {"footnoteReference": {"footnoteId": "f1", "footnoteNumber": "1"}}
PLAN = [
    *paragraph("Plan", named="HEADING_1"),
    *paragraph("Ship in ", ("May", BOLD), " or 👍 ", ("later", RED), "."),
    *paragraph(""),
    *paragraph("one", bullet=("disc", 0)),
    *paragraph("two ", ("x*y", MONO), bullet=("disc", 1)),
    *paragraph("first", bullet=("numbers", 0)),
    *paragraph("A picture ", IMAGE, " and a note", NOTE, " here."),
    *paragraph("Before the table"),
    *table(
        [paragraph("name"), paragraph("a|b")],
        [paragraph("x"), [*paragraph("in", bullet=("disc", 0)), *paragraph("list", bullet=("disc", 0))]],
        [paragraph(""), table([paragraph("nested")]) + paragraph("")],
    ),
    *paragraph(("def f():", MONO)),
    *paragraph(("    return 1", MONO)),
    *paragraph("The ", ("end", {"link": {"url": "https://x.org/a_b"}}), " # of 1. snake_case *star*"),
]
TEXT = """\
# Plan

Ship in **May** or 👍 later.

- one
    - two `x*y`
1. first

A picture ![Graph](#kix.1) and a note[^1] here.

Before the table

| name | a\\|b |
| --- | --- |
| x | - in<br>- list |
|  | nested |

```
def f():
    return 1
```

The [end](https://x.org/a_b) # of 1. snake_case \\*star\\*

[^1]: The note.
"""
MORE = {
    "footnotes": {
        "f1": {
            "content": [
                {
                    "endIndex": 10,
                    "paragraph": {
                        "elements": [{"endIndex": 10, "textRun": {"content": "The note.\n", "textStyle": {}}}]
                    },
                }
            ]
        }
    },
    "inlineObjects": {
        "kix.1": {
            "inlineObjectProperties": {
                "embeddedObject": {
                    "title": "Graph",
                    "imageProperties": {"contentUri": "https://lh3.googleusercontent.com/x"},
                }
            }
        }
    },
}


@pytest.fixture
def docs() -> Iterator[DocsFake]:
    with DocsFake() as running:
        running.add_doc("Plan", PLAN, more=MORE)
        running.add_doc("Tabs", paragraph("first tab"), paragraph("second tab"))
        yield running


def mounted(docs: DocsFake, **more: Any) -> GoogleDocsResource:
    given: dict[str, Any] = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "refresh_token": REFRESH,
        "ttl": 600.0,
        "private": True,
        "token_url": f"{docs.base}/token",
        "drive_url": docs.base,
        **more,
    }
    return GoogleDocsResource(GoogleDocsConfig(base_url=docs.base, **given))


def shell(docs: DocsFake, *scripts: str, **more: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/w": mounted(docs, **more)}, scripts)


def changes(docs: DocsFake) -> list[Any]:
    return [call for call in docs.calls if call.method != "GET" and call.path != "/token"]


def units(docs: DocsFake) -> Any:
    return next(iter(docs.docs.values()))["tabs"][0]


def text(docs: DocsFake) -> str:
    (first, *_) = docs.docs
    return markdown(blocks_of(tabs_of(docs.document(first))[0]))


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(docs: DocsFake, check: Check) -> None:
    run_check(check, lambda: mounted(docs))


def test_a_document_as_markdown(docs: DocsFake) -> None:
    found = shell(
        docs,
        f"cat {AT}/doc.md",
        f"ls {AT} {AT}/tabs",
        f"jq -r .title {AT}/doc.json",
        "cat /w/owned/Tabs__*/doc.md",
        "cat /w/owned/Tabs__*/tabs/02*",
        "head -1 /w/README.md",
    )
    assert [one[1:] for one in found] == [("", 0)] * len(found)
    assert found[0][0] == TEXT and found[2][0] == "Plan\n" and found[4][0] == "second tab\n"
    assert found[3][0] == "<!-- tab: Tab 1 -->\n\nfirst tab\n\n<!-- tab: Tab 2 -->\n\nsecond tab\n"
    assert "01-Tab 1.md" in found[1][0]


def test_what_is_rendered_is_split_into_the_same_blocks(docs: DocsFake) -> None:
    (id, *_) = docs.docs
    blocks = blocks_of(tabs_of(docs.document(id))[0])
    assert split(markdown(blocks)) == [block.text for block in blocks]


def test_a_paragraph_changes_and_nothing_else(docs: DocsFake) -> None:
    before = [dict(unit) for unit in units(docs)]
    (found,) = shell(docs, f"sed -i 's/Ship in/Sail 👍 in/' {AT}/doc.md; cat {AT}/doc.md", writable=True)
    assert found == (TEXT.replace("Ship in", "Sail 👍 in"), "", 0)
    (call,) = changes(docs)
    assert call.json["writeControl"] == {"requiredRevisionId": "r1"}
    assert call.json["requests"][0] == {
        "deleteContentRange": {"range": {"startIndex": 7, "endIndex": 10, "tabId": "t.0"}}
    }  # "hip": what is common stays
    after = units(docs)
    assert after[:6] == before[:6] and after[11:] == before[9:]  # everything else, colours included


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Plan", "## Plan"),
        ("# Plan", "Plan"),
        ("**May**", "*May* ~~and~~ `code`"),
        ("[end](https://x.org/a_b)", "[END](https://y.org)"),
        ("- one\n", "- one\n- one and a half\n"),
        ("- one\n", ""),
        ("    - two", "- two"),
        ("1. first", "1. first\n2. second"),
        ("1. first", "\nfirst"),
        ("Before the table\n\n", ""),
        ("Before the table", "Before the table\n\nand another one"),
        ("# Plan\n\n", ""),
        ("# Plan", "New top\n\n# Plan"),
        ("| x |", "| why |"),
        ("|  | nested |", "| filled | nested |"),
        ("    return 1\n", "    return 2\n    # really\n"),
        ("```\ndef f():\n    return 1\n```\n\n", ""),
        ("Ship in **May** or 👍 later.", "Ship\n\n- a\n- b\n\n### c"),
        ("*star\\*", "*star\\* and the last one\n\nA new end"),
        (" and a note", " and no note"),
        ("A picture ", "A *nice* picture "),
        ("The [end](https://x.org/a_b) # of 1. snake_case \\*star\\*\n\n", ""),
    ],
)
def test_edits_read_back_as_they_were_written(docs: DocsFake, old: str, new: str) -> None:
    assert old in TEXT
    wanted = TEXT.replace(old, new, 1)

    async def act() -> str:
        ws = Workspace(
            {"/w": mounted(docs, writable=True)},
        )
        try:
            path = (await ws.execute(f"ls -d {AT}")).stdout.decode().strip() + "/doc.md"
            await ws.execute(f"cat {path}")
            result = await ws.execute(f"cat > {path}", stdin=wanted.encode())
            assert result.exit_code == 0, result.stderr
            return (await ws.execute(f"cat {path}")).stdout.decode()
        finally:
            await ws.close()

    assert asyncio.run(act()) == wanted == text(docs)


def test_many_random_edits(docs: DocsFake) -> None:
    chance = random.Random(7)
    parts = ["# A", "text *it* 👍", "- item", "    - deep", "1. n", "**b** `c`", "## B\n\nmore", "```\nx\ny\n```"]

    async def act() -> None:
        ws = Workspace({"/w": mounted(docs, writable=True)})
        try:
            path = (await ws.execute("ls -d /w/owned/Random__*")).stdout.decode().strip() + "/doc.md"
            for _ in range(60):
                content = (await ws.execute(f"cat {path}")).stdout.decode()
                blocks = split(content)
                for _ in range(chance.randint(1, 3)):
                    at = chance.randint(0, len(blocks))
                    blocks[at : at + chance.randint(0, 2)] = [chance.choice(parts)] * chance.randint(0, 2)
                wanted = "\n\n".join(blocks or ["alone"])
                result = await ws.execute(f"cat > {path}", stdin=wanted.encode())
                assert result.exit_code == 0, result.stderr
                got = (await ws.execute(f"cat {path}")).stdout.decode()
                assert _normal(split(got)) == _normal(split(wanted)), (content, wanted)
        finally:
            await ws.close()

    docs.add_doc("Random", paragraph("start"))
    asyncio.run(act())


def _normal(blocks: list[str]) -> list[str]:
    """Blocks without the numbers of items; code that stands together is one block; depths are those of lists."""
    joined = "\n".join(blocks).replace("\n```\n```\n", "\n")
    return [line.lstrip("0123456789") for line in joined.split("\n")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("![Graph](#kix.1)", "", "removes ![Graph](#kix.1)"),
        ("[^1] here", " here", "removes [^1]"),
        ("A picture ", "![a](https://x.org/a.png) ", "cannot be written here"),
        ("[^1]: The note.", "[^1]: Another.", "a footnote cannot be changed here"),
        ("- in<br>- list", "other", "a cell of several paragraphs"),
        ("| x | - in<br>- list |\n", "", "the shape of a table"),
        ("Before the table", "Before the table\n\n| a |\n| --- |", "a new table cannot be written here"),
    ],
)
def test_what_would_be_lost_is_refused(docs: DocsFake, old: str, new: str, words: str) -> None:
    async def act() -> str:
        ws = Workspace({"/w": mounted(docs, writable=True)})
        try:
            result = await ws.execute(f"cd {AT}; cat > doc.md", stdin=TEXT.replace(old, new, 1).encode())
            return result.stderr.decode()
        finally:
            await ws.close()

    assert old in TEXT and words in asyncio.run(act()) and changes(docs) == []


def test_a_change_by_somebody_else_is_not_overwritten(docs: DocsFake) -> None:
    async def act() -> list[str]:
        ws = Workspace({"/w": mounted(docs, writable=True)})
        try:
            await ws.execute(f"cat {AT}/doc.md")
            units(docs)[0]["c"] = "F"
            first = (await ws.execute(f"cd {AT}; echo mine > doc.md")).stderr.decode()
            docs.fault(
                "POST", ":batchUpdate", refused(400, "The required revision ID 'r1' does not match.", "badRequest")
            )
            return [first, (await ws.execute(f"sed -i s/Flan/Plan/ {AT}/doc.md")).stderr.decode()]
        finally:
            await ws.close()

    first, second = asyncio.run(act())
    assert "Stale file handle" in first and "Stale file handle" in second


def test_a_tab_is_edited_by_itself(docs: DocsFake) -> None:
    found = shell(
        docs,
        "sed -i s/second/2nd/ /w/owned/Tabs__*/tabs/02*; cat /w/owned/Tabs__*/tabs/*",
        "sed -i s/first/x/ /w/owned/Tabs__*/doc.md",
        writable=True,
    )
    assert found[0][:2] == ("first tab\n2nd tab\n", "") and "edit one of tabs/" in found[1][1]


def test_a_new_document_and_comments(docs: DocsFake) -> None:
    found = shell(
        docs,
        "cd /w/owned; echo '# New' > New.md; ls | grep -c '^New__'",
        f"post {AT} -m Nice; jq -r .content {AT}/comments.jsonl",
        "cd /w/owned; echo x > New.txt",
        "rmdir /w/owned/Tabs__*; ls /w/owned | grep -c Tabs",
        writable=True,
    )
    (made,) = docs.named("New")
    assert docs.exports[made["id"], "text/markdown"] == b"# New\n" and found[0][0] == "1\n"
    assert found[1][0].endswith("Nice\n") and "ends in .md" in found[2][1] and found[3][0] == "0\n"


def test_an_edit_whose_answer_is_lost_is_not_sent_twice(docs: DocsFake) -> None:
    docs.fault("POST", ":batchUpdate", lost=True)
    (found,) = shell(docs, f"sed -i 's/Ship/Sail/' {AT}/doc.md", writable=True)
    assert "may have been made" in found[1] and len(changes(docs)) == 1 and "Sail" in text(docs)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("cat /w/owned/nope-nope-nope/doc.md", "not there, or not shared"),
        (f"cd {AT}; printf '\\377' > doc.md", "not UTF-8"),
        (f"cat {AT}/tabs/09-x.md", "No such file"),
        ("query /w hello", "a query is"),
        ("query /w 'POST /v1/documents/x:batchUpdate' '{}'", "that takes -w"),
        ("mkdir /w/owned/New", "only the service makes directories"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(docs: DocsFake, script: str, words: str) -> None:
    (found,) = shell(docs, script, writable=True)
    assert words in found[1] and found[2] != 0 and changes(docs) == []


def test_faults(docs: DocsFake) -> None:
    docs.fault("GET", "/v1/documents", refused(429, "slow", "RATE_LIMIT_EXCEEDED"))
    docs.fault("GET", "/files$", Reply(503, b""))
    assert shell(docs, f"head -1 {AT}/doc.md")[0][0] == "# Plan\n"


def test_a_branch_sends_nothing_before_its_commit(docs: DocsFake) -> None:
    async def act() -> list[Any]:
        ws = Workspace({"/w": mounted(docs, writable=True)})
        try:
            aborted = ws.branch()
            await aborted.execute(f"sed -i 's/Ship/Sink/' {AT}/doc.md")
            await aborted.abort()
            branch = ws.branch()
            await branch.execute(f"sed -i 's/Ship/Sail/' {AT}/doc.md; post {AT} -m Nice")
            before = changes(docs)
            await branch.commit()
            return [before, len(changes(docs)), text(docs)]
        finally:
            await ws.close()

    before, count, now = asyncio.run(act())
    assert before == [] and count == 2 and now == TEXT.replace("Ship", "Sail")


def test_the_secrets_are_nowhere(docs: DocsFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(docs, writable=True)
        ws = Workspace({"/w": resource})
        try:
            docs.fault("GET", "/v1/documents", refused(400, f"bad {SECRET} {REFRESH} ya29.hunter2-1", "invalid"))
            result = await ws.execute(f"cat {AT}/doc.md; post {AT} -m x; query /w 'GET /v1/documents/x'")
            ws.snapshot(tmp_path / "snapshot.tar")
            shown = repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
            return shown + result.stderr.decode() + result.stdout.decode()
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert "hunter2" not in seen and "REDACTED" in seen and CLIENT in seen


def test_what_is_appended_becomes_paragraphs_before_the_footnotes(docs: DocsFake) -> None:
    found = shell(
        docs,
        f"printf 'More\\n\\n- a\\n' >> {AT}/doc.md; echo '- b' >> {AT}/doc.md; tail -7 {AT}/doc.md",
        "echo x >> /w/owned/Tabs__*/tabs/01*; cat /w/owned/Tabs__*/tabs/01*; echo x >> /w/owned/Tabs__*/doc.md",
        writable=True,
    )
    assert found[0][:2] == ("\nMore\n\n- a\n- b\n\n[^1]: The note.\n", "")
    assert found[1][0] == "first tab\n\nx\n" and "edit one of tabs/" in found[1][1]
