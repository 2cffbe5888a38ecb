"""LangfuseResource against a fake of both generations of servers, which the vendor's own client reads too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.langfuse_fake import PUBLIC, SECRET, WHEN, LangfuseFake
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import LangfuseConfig, LangfuseResource
from ramet.testing import READING, Check, run_check

DAY = WHEN[:10]


@pytest.fixture(params=(3, 4))
def langfuse(request: pytest.FixtureRequest) -> Iterator[LangfuseFake]:
    with LangfuseFake(request.param) as running:
        running.trace("t1", "Ask / answer", session="chat/1", level="ERROR")
        running.trace("t2", "Next day", "2026-05-04T10:00:00.000Z")
        running.prompt("folder/greet", "Hello {{name}}", "production")
        running.prompt("folder/greet", "Hi {{name}}")
        running.prompt("chat", [{"role": "user", "content": "hi"}], kind="chat")
        yield running


def mounted(langfuse: LangfuseFake, **settings: Any) -> LangfuseResource:
    given = {"public_key": PUBLIC, "secret_key": SECRET, "ttl": 600.0, "days": 10_000, **settings}
    return LangfuseResource(LangfuseConfig(base_url=langfuse.base, private=True, **given))


def shell(langfuse: LangfuseFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/l": mounted(langfuse, **settings)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(langfuse: LangfuseFake, check: Check) -> None:
    run_check(check, lambda: mounted(langfuse))


def test_traces_are_files_by_day(langfuse: LangfuseFake) -> None:
    found = shell(
        langfuse, f"ls /l /l/traces; ls /l/traces/{DAY}", f"jq -r .name /l/traces/{DAY}/t1",
        "jq -r .id /l/traces.jsonl",
        f"grep -rl ERROR /l/traces/{DAY} | sed 's/.*__//'", "ls /l/sessions; jq -r .name /l/sessions/*",
        "jq -r .value /l/scores.jsonl",
        f"ls /l/traces/2026-05-01; cat /l/traces/{DAY}/t2",
    )  # fmt: skip
    assert found[0][0].split("\n")[:-1] == [
        "/l:", "README.md", "datasets", "prompts", "scores.jsonl", "sessions", "traces", "traces.jsonl", "",
        "/l/traces:", DAY, "2026-05-04", "09-14-02_Ask %2F answer__t1.jsonl",
    ]  # fmt: skip
    assert [one[0] for one in found[1:6]] == [
        "Ask / answer\nanswer\n", "t2\nt1\n", "t1.jsonl\n", "chat%2F1.jsonl\nAsk / answer\n", "0.5\n",
    ]  # fmt: skip
    assert found[6][2] == 1 and "No such file" in found[6][1]


def test_a_day_of_many_traces_is_paged_and_listing_costs_nothing_more(langfuse: LangfuseFake) -> None:
    for number in range(250):
        langfuse.trace(f"n{number}", "Many")
    assert shell(langfuse, f"ls -l /l/traces/{DAY} | grep -c Many")[0][0] == "250\n"
    assert len(langfuse.calls) <= 6


def test_a_reader_that_stops_ends_the_paging(langfuse: LangfuseFake) -> None:
    for number in range(500):
        langfuse.trace(f"n{number}", "Many")
    assert shell(langfuse, "head -1 /l/traces.jsonl | jq -r .id")[0][0] == "t2\n"
    assert len(langfuse.calls) <= 4


def test_prompts_have_versions_and_labels(langfuse: LangfuseFake) -> None:
    found = shell(
        langfuse, "ls /l/prompts; ls /l/prompts/folder%2Fgreet /l/prompts/folder%2Fgreet/labels",
        "cat /l/prompts/folder%2Fgreet/1.md", "tail -1 /l/prompts/folder%2Fgreet/labels/latest.md",
        "jq -r '.prompt[].role' /l/prompts/chat/1.json", "cat /l/prompts/folder%2Fgreet/9.md",
    )  # fmt: skip
    assert found[0][0].split() == [
        "chat", "folder%2Fgreet", "/l/prompts/folder%2Fgreet:", "1.md", "2.md", "labels",
        "/l/prompts/folder%2Fgreet/labels:", "latest.md", "production.md",
    ]  # fmt: skip
    assert found[1][0] == (
        "---\nname: folder/greet\nversion: 1\nlabels: [production]\ntags: []\ncommitMessage:\n---\n\nHello {{name}}\n"
    )
    assert [one[0] for one in found[2:4]] == ["Hi {{name}}\n", "user\n"] and found[4][2] == 1


def test_next_makes_a_new_version_once(langfuse: LangfuseFake) -> None:
    langfuse.fault("POST", "/prompts", lost=True)
    greet = "/l/prompts/folder%2Fgreet"
    found = shell(
        langfuse, f"echo lost > {greet}/next.md",
        f"cd {greet}; "
        "sed 's/Hello/Hey/; s/^labels:.*/labels: [staging]/; s/^com.*/commitMessage: short/' 1.md > next.md",
        f"ls {greet} | tail -2; tail -1 {greet}/labels/staging.md", f"echo x > {greet}/1.md", f"echo x > {greet}/7.md",
        f"printf -- '---\\nowner: me\\n---\\nx\\n' > {greet}/next.md",
        "post /l/prompts -t New -m Text; cat /l/prompts/New/1.md | tail -1",
        "cd /l/prompts/chat; "
        """echo '{"prompt": [{"role": "system", "content": "x"}]}' > next.json; jq -r .version 2.json""",
        writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [1, 0, 0, 1, 1, 1, 0, 0]
    assert ("may have been made" in found[0][1] and found[2][0] == "labels\nnext.md\nHey {{name}}\n") or found[2][0]
    assert (
        "never changes" in found[3][1]
        and "numbers versions itself" in found[4][1]
        and "unknown key owner" in found[5][1]
    )
    made = langfuse.prompts["folder/greet"]
    assert [one["prompt"] for one in made] == ["Hello {{name}}", "Hi {{name}}", "lost", "Hey {{name}}"]
    assert made[3]["labels"] == ["staging", "latest"] and made[3]["commitMessage"] == "short"
    assert made[0]["labels"] == ["production"] and found[7][0] == "2\n" and found[6][0].endswith("Text\n")


def test_datasets_have_items_and_runs(langfuse: LangfuseFake) -> None:
    data = "/l/datasets/qa%2Feasy"
    found = shell(
        langfuse,
        f"""cd {data}; post . -m '{{"input": 1, "expectedOutput": 2}}'; jq -r .expectedOutput items.jsonl""",
        f"ls {data}; ls {data}/runs; jq -r .traceId {data}/runs/*", f"post {data} -m nothing",
        f"post {data} -m '{{\"inptu\": 1}}'",
        writable=True,
    )  # fmt: skip
    assert found[0][0].endswith("\n2\n") and found[1][0].endswith("first run__r1.jsonl\nt1\n")
    assert "not JSON" in found[2][1] and "unknown key inptu" in found[3][1] and len(langfuse.items) == 1


@pytest.mark.parametrize(
    ("script", "settings", "words"),
    [
        ("ls /l/traces", {"secret_key": "wrong"}, "refuses the token: Invalid credentials"),
        ("ls /l/prompts/none", {}, "No such file"),
        ("ls /l/datasets/none", {}, "No such file"),
        ("echo x > /l/prompts/folder%2Fgreet/next.md", {"writable": False}, "set writable=True in LangfuseConfig"),
        ("head -c 20000000 /dev/zero > /l/prompts/folder%2Fgreet/next.md", {}, "at most 16 MiB"),
        ("query /l words", {}, "a query is `GET /api/public/...`"),
        ("query /l 'POST /api/public/scores' '{}'", {}, "that takes -w"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    langfuse: LangfuseFake, script: str, settings: dict[str, Any], words: str
) -> None:
    (found,) = shell(langfuse, script, **{"writable": True, **settings})
    assert words in found[1] and found[2] != 0 and langfuse.count("POST") == 0


def test_an_address_without_langfuse_is_named() -> None:
    with LangfuseFake(4) as running:
        running.routes.clear()
        (found,) = shell(running, "ls /l/traces")
    assert "check base_url" in found[1] and found[2] != 0


@pytest.mark.parametrize("reply", [Reply(429, {"message": "slow"}, {"Retry-After": "0"}), Reply(503, b""), None])
def test_what_passes_is_asked_again(langfuse: LangfuseFake, reply: Reply | None) -> None:
    langfuse.fault("GET", "/v2/prompts$", reply)
    assert shell(langfuse, "ls /l/prompts | wc -l")[0] == ("2\n", "", 0)


def test_a_branch_makes_a_version_at_its_commit(langfuse: LangfuseFake) -> None:
    async def act() -> list[int]:
        ws = Workspace({"/l": mounted(langfuse, writable=True)})
        try:
            counts = []
            for end in ("abort", "commit"):
                branch = ws.branch()
                await branch.execute("echo new > /l/prompts/folder%2Fgreet/next.md")
                assert [one.what for one in await branch.diff()] == ["added"]
                await getattr(branch, end)()
                counts.append(langfuse.count("POST"))
            return counts
        finally:
            await ws.close()

    assert asyncio.run(act()) == [0, 1]


def test_query_asks_the_api(langfuse: LangfuseFake) -> None:
    assert shell(langfuse, "query /l 'GET /api/public/projects' | jq -r .name")[0] == ("demo\n", "", 0)


def test_the_secret_is_nowhere(langfuse: LangfuseFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(langfuse, writable=True)
        ws = Workspace({"/l": resource})
        try:
            result = await ws.execute("ls -R /l; query /l 'GET /api/public/none'; post /l/prompts -t x -m y")
            ws.snapshot(tmp_path / "snapshot.tar")
            return repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts()) + repr(result)
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert SECRET not in seen and "REDACTED" in seen and PUBLIC in seen
