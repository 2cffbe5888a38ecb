"""LinearResource against a server that executes Linear's own schema; every operation is checked against it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import descriptions
from tests.support.linear_fake import KEY, LinearFake, failed, schema
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import LinearConfig, LinearResource
from ramet.testing import READING, Check, run_check

ISSUE = "/l/teams/ENG/issues/ENG-42"
LATER = str(round(time.time() * 1000) + 9_000_000)


@pytest.fixture
def linear() -> Iterator[LinearFake]:
    if schema() is None:
        pytest.skip("Linear's schema is not there: make descriptions")
    with LinearFake() as running:
        yield running


def mounted(linear: LinearFake, **settings: Any) -> LinearResource:
    given = {"api_key": KEY, "ttl": 600.0, **settings}
    return LinearResource(LinearConfig(base_url=f"{linear.base}/graphql", private=True, **given))


def shell(linear: LinearFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/l": mounted(linear, **settings)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(linear: LinearFake, check: Check) -> None:
    run_check(check, lambda: mounted(linear))


def test_the_tree_of_a_team(linear: LinearFake) -> None:
    found = shell(linear, "cd /l/teams; ls /l /l/teams ENG ENG/issues/*; ls ENG/{projects,cycles,members}")
    words = found[0][0].split()
    assert words[:6] == ["/l:", "README.md", "teams", "/l/teams:", "ENG", "OPS"]
    assert "issue.md" in words and "comments.jsonl" in words and "issues.jsonl" in words
    assert any(word.startswith("Launch%2FQ3__") and word.endswith(".md") for word in words)
    assert any(word.startswith("7__") for word in words) and any(word.startswith("ada__") for word in words)


def test_an_issue_is_fields_above_its_description(linear: LinearFake) -> None:
    (found,) = shell(linear, f"cat {ISSUE}/issue.md; jq -r .state.name {ISSUE}/issue.json")
    assert found[0] == (
        "---\nidentifier: ENG-42\ntitle: Flaky test\nstate: Todo\nassignee: ada\npriority: High\nlabels: [bug]\n"
        "estimate: 3\ndueDate:\nproject:\ncycle:\nparent:\ncreator: bob\n"
        f'createdAt: "{linear.issues[0]["createdAt"]}"\nurl: "https://linear.app/acme/issue/ENG-42"\n---\n\n'
        "A race condition in the *cache*.\nTodo\n"
    )


def test_an_issue_with_its_comments_is_two_requests(linear: LinearFake) -> None:
    linear.comment(linear.issues[0], "seen again")
    (found,) = shell(linear, f"cat {ISSUE}/issue.md; jq -r .body {ISSUE}/comments.jsonl")
    assert found[0].endswith("seen again\n") and linear.count() == 2


def test_a_thousand_issues_are_ten_requests_and_one_for_the_team(linear: LinearFake) -> None:
    for number in range(999):
        linear.issue(f"Issue {number}", "text")
    found = shell(linear, "ls /l/teams/ENG/issues | wc -l", "jq -r .state /l/teams/ENG/issues.jsonl | sort | uniq -c")
    assert [one[0].split() for one in found] == [["1000"], ["1000", "Todo"]]
    assert linear.count() == 1 + 10 + 10
    (found_again,) = shell(linear, "cat /l/teams/ENG/issues/*/issue.md | grep -c '^title:'")
    assert found_again[0] == "1000\n" and linear.count() == 21 + 1 + 10


def test_all_labels_of_an_issue_are_shown(linear: LinearFake) -> None:
    linear.issue("Many", "x", labels=[linear.thing(name=f"label{number}", team=None) for number in range(60)])
    (found,) = shell(linear, "grep ^labels: /l/teams/ENG/issues/ENG-43/issue.md | tr ',' '\\n' | wc -l")
    assert found[0] == "60\n"


def test_more_comments_than_a_page(linear: LinearFake) -> None:
    for number in range(260):
        linear.comment(linear.issues[0], f"comment {number}")
    (found,) = shell(linear, f"jq -r .body {ISSUE}/comments.jsonl | sort -u | wc -l")
    assert found == ("260\n", "", 0)


def test_an_edit_sends_only_what_differs_and_names_become_ids(linear: LinearFake) -> None:
    issue = linear.issues[0]
    found = shell(
        linear, f"sed -i 's/^state: .*/state: done/' {ISSUE}/issue.md",
        f"sed -i 's/^labels: .*/labels: [web, bug]/; s/: ada/: bob/; s/^priority: .*/priority: Low/' {ISSUE}/issue.md",
        f"sed -i 's/^estimate: .*/estimate:/; s/^dueDate:/& 2026-06-01/; s/^cycle:/& Cycle 7/' {ISSUE}/issue.md",
        f"sed -i 's/^project:.*/project: Launch\\/Q3/; s/race/data race/' {ISSUE}/issue.md",
        f"cat {ISSUE}/issue.md", writable=True,
    )  # fmt: skip
    assert [one[1:] for one in found] == [("", 0)] * 5
    inputs = [call.json["variables"]["input"] for call in linear.calls if "issueUpdate" in call.json["query"]]
    assert inputs[0] == {"stateId": linear.states[2]["id"]} and set(inputs[1]) == {"labelIds", "assigneeId", "priority"}
    assert inputs[2] == {"estimate": None, "dueDate": "2026-06-01", "cycleId": linear.cycles[0]["id"]}
    assert issue["description"] == "A data race condition in the *cache*." and issue["project"] is linear.projects[0]
    assert "labels: [web, bug]\n" in found[4][0] and "state: Done\n" in found[4][0]


def test_projects_and_documents_are_edited(linear: LinearFake) -> None:
    found = shell(
        linear, "sed -i 's/^lead: .*/lead: bob/; s/plan/new plan/' /l/teams/ENG/projects/*",
        "sed -i 's/^title: .*/title: Redesign/; s/Caches/No caches/' /l/teams/ENG/documents/*", writable=True,
    )  # fmt: skip
    assert [one[1:] for one in found] == [("", 0)] * 2
    assert linear.projects[0]["content"] == "The new plan." and linear.projects[0]["lead"] is linear.users[1]
    assert linear.documents[0]["title"] == "Redesign" and "No caches everywhere" in linear.documents[0]["content"]


def test_an_edit_of_a_changed_issue_is_stale_and_nothing_is_sent(linear: LinearFake) -> None:
    async def act() -> tuple[str, int]:
        ws = Workspace({"/l": mounted(linear, writable=True)})
        try:
            await ws.execute(f"cat {ISSUE}/issue.md")
            linear.issues[0]["title"] = "Other title"
            result = await ws.execute(f"sed -i 's/^state: .*/state: Done/' {ISSUE}/issue.md")
            return result.stderr.decode(), result.exit_code
        finally:
            await ws.close()

    words, status = asyncio.run(act())
    assert status != 0 and "the service has changed it since you read it" in words
    assert linear.issues[0]["state"]["name"] == "Todo" and "issueUpdate" not in str([one.body for one in linear.calls])


BAD_EDITS = [
    ("s/^state: .*/state: Shipped/", "no state Shipped; there are: Done, In Progress, Todo"),
    ("s/^labels: .*/labels: [bug, nope]/", "no labels nope; there are: bug, web"),
    ("s/^labels: .*/labels: bug/", "labels is a list"),
    ("s/^assignee: .*/assignee: eve/", "no assignee eve"),
    ("s/^priority: .*/priority: highest/", "priority is one of No priority, Urgent"),
    ("s/^dueDate:.*/dueDate: tomorrow/", "dueDate is a day such as 2026-05-03"),
    ("s/^estimate: .*/estimate: large/", "estimate is a number"),
    ("s/^parent:.*/parent: ENG-999/", "parent is no issue: ENG-999"),
    ("s/^title: .*/title:/", "the title is empty"),
    ("s/^state: .*/state:/", "state is empty"),
    ("s/^creator: .*/creator: ada/", "creator is read-only"),
    ("s/^cycle:/sprint:/", "unknown key sprint"),
]


@pytest.mark.parametrize(("edit", "words"), BAD_EDITS, ids=lambda value: value[:20])
def test_a_bad_edit_says_what_to_do_and_changes_nothing(linear: LinearFake, edit: str, words: str) -> None:
    (found,) = shell(linear, f"sed -i '{edit}' {ISSUE}/issue.md", writable=True)
    assert words in found[1] and found[2] != 0
    assert "mutation" not in str([call.body for call in linear.calls])


def test_post_comments_and_makes_issues_and_documents(linear: LinearFake) -> None:
    found = shell(
        linear, f"post {ISSUE} -m 'Shipped'", "echo 'It *fails*' | post /l/teams/OPS/issues -t 'a/b \"c\"'",
        "post /l/teams/ENG/documents -t Notes -m Text; ls /l/teams/ENG/documents | wc -l",
        "post /l/teams/ENG/issues -m x", f"post {ISSUE} -t T -m x", f"echo x > /tmp/f; post {ISSUE} -m x -a /tmp/f",
        "post /l/teams/ENG/cycles -m x", "ls /l/teams/OPS/issues", writable=True,
    )  # fmt: skip
    assert [one[2] for one in found] == [0, 0, 0, 1, 1, 1, 1, 0]
    assert linear.issues[0]["_comments"][0]["body"] == "Shipped"
    assert (linear.issues[1]["title"], linear.issues[1]["description"]) == ('a/b "c"', "It *fails*\n")
    assert found[2][0].endswith("2\n") and found[7][0] == "OPS-42\n"
    assert "needs a title" in found[3][1] and "has no title" in found[4][1] and "no attachments" in found[5][1]
    assert linear.count() > 0 and len(linear.issues[0]["_comments"]) == 1


@pytest.mark.parametrize("fault", [{"lost": True}, {"reply": Reply(502, b"")}])
def test_a_post_whose_answer_is_lost_is_not_sent_twice(linear: LinearFake, fault: dict[str, Any]) -> None:
    linear.faults.append(_mutation(**fault))
    (found,) = shell(linear, f"post {ISSUE} -m once", writable=True)
    assert "may have been made" in found[1] and found[2] != 0
    assert sum("commentCreate" in call.json["query"] for call in linear.calls) == 1


def _mutation(**given: Any) -> Any:
    from tests.support.service_fake import Fault

    return Fault(lambda call: b"mutation" in call.body, **given)


def test_removal_archives(linear: LinearFake) -> None:
    found = shell(linear, f"rmdir {ISSUE}", "ls /l/teams/ENG/issues; rm /l/teams/ENG/projects/*", writable=True)
    assert found[0][2] == 0 and linear.issues[0]["archivedAt"] and found[1][0] == "" and found[1][2] == 1


# --------------------------------------------------------------------------------------------------------- searching


def test_grep_asks_linear_which_issues_to_read(linear: LinearFake) -> None:
    for number in range(250):
        linear.comment(linear.issue(f"Issue {chr(97 + number % 26)}", "nothing to see"), "a note")
    linear.comment(linear.issues[77], "a RACE condition again")
    (found,) = shell(linear, "grep -ril 'race condition' /l/teams/ENG --exclude='*.jsonl'")
    assert found == (f"{ISSUE}/issue.json\n{ISSUE}/issue.md\n", "", 0)
    (found,) = shell(linear, "grep -ril 'race condition' /l/teams/ENG/issues")
    assert f"/l/teams/ENG/issues/{linear.issues[77]['identifier']}/comments.jsonl" in found[0].split()
    linear.calls.clear()
    (found,) = shell(linear, "grep -rih 'race condition' /l/teams/ENG/issues | wc -l")
    # The team, its filtered issues, three pages of listing, and the comments of the two hits.
    assert found[0] == "3\n" and linear.count() == 1 + 1 + 3 + 2


@pytest.mark.parametrize(
    "text",
    ["ada", "bug", "In Progress", "Flaky", "race condition", "cache", "caches", "ENG-42", "eng", "acme", "state",
     "High", "2026-05", "displayName", "Launch", "dead", '"bug"', "labels: [bug]", "Todo", "plan", "example.org",
     "web", "ops", "nowhere at all", "on it", "title: Flaky"],
)  # fmt: skip
@pytest.mark.parametrize("top", ["/l", "/l/teams", "/l/teams/ENG", "/l/teams/ENG/issues", ISSUE])
def test_grep_with_search_finds_what_grep_without_it_finds(linear: LinearFake, text: str, top: str) -> None:
    linear.comment(linear.issues[0], "on it")
    linear.issue("Second", "other", parent=linear.issue("Upper", "x", team=1), project=linear.projects[0])
    script = f"grep -rin -e {json.dumps(text)} {top} | sort"
    (with_search,), (without,) = shell(linear, script), shell(linear, script, search=False)
    assert with_search == without


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    "reply",
    [
        failed(400, "Rate limit exceeded", "RATELIMITED", {"Retry-After": "0"}),
        failed(400, "Rate limit exceeded", "RATELIMITED",
               {"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": "1000"}),
        Reply(429, b"", {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        failed(200, "Internal", "INTERNAL_SERVER_ERROR"),
        Reply(503, b""),
        None,
    ],
)  # fmt: skip
def test_what_passes_is_asked_again(linear: LinearFake, reply: Reply | None) -> None:
    linear.fault("POST", "/graphql", reply)
    assert shell(linear, "ls /l/teams")[0] == ("ENG\nOPS\n", "", 0)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (failed(400, "Rate limit exceeded", "RATELIMITED",
                {"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": LATER}),
         "Linear limits the rate of requests until"),
        (failed(401, "Authentication required", "AUTHENTICATION_ERROR"), "Linear refuses the key"),
        (failed(400, "You don't have permission", "FORBIDDEN"), "Permission denied: Linear says You don't"),
        (Reply(404, b"<html>"), "No such file"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(linear: LinearFake, reply: Reply, words: str) -> None:
    linear.fault("POST", "/graphql", reply, times=9)
    (found,) = shell(linear, "ls /l/teams")
    assert words in found[1] and found[2] != 0


def test_a_revoked_key_is_asked_for_again(linear: LinearFake) -> None:
    keys = iter(["lin_api_revoked", KEY])

    async def act() -> list[str]:
        resource = LinearResource(
            LinearConfig(base_url=f"{linear.base}/graphql", private=True), token=lambda: next(keys)
        )
        ws = Workspace({"/l": resource})
        try:
            return [(await ws.execute("ls /l/teams")).stdout.decode(), str(linear.statuses)]
        finally:
            await ws.close()

    assert asyncio.run(act()) == ["ENG\nOPS\n", "[401, 200]"]


def test_pages_that_shift_while_they_are_read(linear: LinearFake) -> None:
    linear.page = 2
    for number in range(7):
        linear.issue(f"Issue {number}")
    execute = linear._execute

    def shifting(call: Any) -> Reply:
        answer = execute(call)
        if "issues(" in call.json["query"]:
            linear._touch(linear.issues[0])
            linear.issue("New")
        return answer

    linear.routes[:] = [("POST", linear.routes[0][1], shifting)]
    (found,) = shell(linear, "ls /l/teams/ENG/issues")
    assert found[0].split() == [f"ENG-{number}" for number in range(42, 50)]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("ls /l/teams/NOPE", "No such file or directory"),
        ("cat /l/teams/ENG/issues/ENG-999/issue.md", "No such file or directory"),
        ("cat /l/teams/OPS/issues/ENG-42/issue.md", "ENG-42 is now ENG-42"),
        ("cat /l/teams/ENG/issues/nope/issue.md", "No such file or directory"),
        ("echo x > /l/teams/ENG/issues/new.md", "only the service makes files here"),
        ("mkdir /l/teams/NEW", "only the service makes directories here"),
        (f"mv {ISSUE} /l/teams/ENG/issues/ENG-43", "the service names its things itself"),
        (f"echo hi >> {ISSUE}/comments.jsonl", "use post"),
        (f"printf '\\377' > {ISSUE}/issue.md", "not UTF-8"),
        (f"head -c 20000000 /dev/zero > {ISSUE}/issue.md", "at most 16 MiB can be sent; nothing was changed"),
        ("query /l 'mutation { x }'", "that takes -w"),
        ("query /l '{ viewer { name } }' nope", "this is not JSON"),
        ("query /l words extra", "a search takes no values"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(linear: LinearFake, script: str, words: str) -> None:
    (found,) = shell(linear, script, writable=True)
    assert words in found[1] and found[2] != 0
    assert "mutation" not in str([call.body for call in linear.calls])


def test_a_mount_that_is_not_writable_changes_nothing(linear: LinearFake) -> None:
    found = shell(linear, f"post {ISSUE} -m x", f"sed -i s/Todo/Done/ {ISSUE}/issue.md", f"rm -r {ISSUE}")
    assert all(one[2] != 0 for one in found) and "set writable=True in LinearConfig" in found[0][1]
    assert "mutation" not in str([call.body for call in linear.calls])


def test_names_of_other_tools_are_accepted(linear: LinearFake) -> None:
    path = "/l/teams/ENG__Engineering__00000000-0000-4000-8000-000000000001/issues/ENG-42__x/issue.md"
    assert shell(linear, f"grep ^title {path}; grep ^title /l/teams/eng/issues/eng-42/issue.md")[0][0] == (
        "title: Flaky test\ntitle: Flaky test\n"
    )


def test_teams_and_workspace_can_be_narrowed(linear: LinearFake) -> None:
    assert shell(linear, "ls /l/teams; ls /l/teams/OPS", team_ids=("ENG",))[0][::2] == ("ENG\n", 2)
    assert shell(linear, "ls /l/teams", team_ids=(linear.teams[1]["id"],))[0][0] == "OPS\n"
    assert "the key is for the workspace acme" in shell(linear, "ls /l/teams", workspace="other")[0][1]


def test_query_searches_and_asks(linear: LinearFake) -> None:
    for number in range(120):
        linear.issue(f"Crash {number}")
    found = shell(
        linear, "query /l crash | wc -l", "cd /l; query -n 2 . crash | jq -r .path | head -1 | xargs grep ^title",
        "query /l '{ viewer { displayName } }' | jq -r .viewer.displayName",
        "query -w /l 'mutation($id: String!) { issueArchive(id: $id) { success } }' '{\"id\": \"ENG-42\"}'",
        writable=True,
    )  # fmt: skip
    assert [one[0] for one in found[:3]] == ["120\n", "title: Crash 0\n", "ada\n"]
    assert json.loads(found[3][0]) == {"issueArchive": {"success": True}} and linear.issues[0]["archivedAt"]


def test_the_check_of_exchanges_can_fail(linear: LinearFake) -> None:
    (found,) = shell(linear, "query /l '{ viewer { shoeSize } }'")
    assert "Cannot query field" in found[1] and "shoeSize" in str(descriptions.problems)
    descriptions.problems.clear()


def test_a_branch_sends_nothing_before_its_commit(linear: LinearFake) -> None:
    async def act() -> list[Any]:
        ws = Workspace({"/l": mounted(linear, writable=True)})
        try:
            branch = ws.branch()
            await branch.execute(f"sed -i 's/^state: .*/state: Done/' {ISSUE}/issue.md; post {ISSUE} -m Shipped")
            before = linear.issues[0]["state"]["name"], len(linear.issues[0]["_comments"])
            await branch.commit()
            return [before, (linear.issues[0]["state"]["name"], len(linear.issues[0]["_comments"]))]
        finally:
            await ws.close()

    assert asyncio.run(act()) == [("Todo", 0), ("Done", 1)]


def test_the_key_is_nowhere(linear: LinearFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(linear, writable=True)
        ws = Workspace({"/l": resource})
        try:
            linear.fault("POST", "/graphql", failed(400, f"bad key {KEY}", "FORBIDDEN"))
            result = await ws.execute(f"ls /l/teams; post {ISSUE} -m x; query /l x")
            ws.snapshot(tmp_path / "snapshot.tar")
            shown = repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
            return shown + result.stderr.decode() + result.stdout.decode()
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert KEY not in seen and "REDACTED" in seen
