"""GitHubResource against a fake whose every exchange is checked against GitHub's OpenAPI description."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.support.github_fake import TOKEN, GitHubFake
from tests.support.service_fake import Reply

from ramet import Workspace
from ramet.backends import GitHubConfig, GitHubResource
from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.core.stat import Kind
from ramet.testing import READING, Check, refused, run_check

P = parse


@pytest.fixture
def hub() -> Iterator[GitHubFake]:
    with GitHubFake() as running:
        yield running


def mounted(hub: GitHubFake, **settings: Any) -> GitHubResource:
    given = {"token": TOKEN, "owner": "octocat", "repo": "hello", "ttl": 600.0, **settings}
    return GitHubResource(GitHubConfig(base_url=hub.base, private=True, allow=("127.0.0.2",), **given))


def shell(hub: GitHubFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    """Run scripts in a workspace with the repository at /gh; their output, errors and status."""

    async def act() -> list[tuple[str, str, int]]:
        ws = Workspace({"/gh": mounted(hub, **settings)})
        try:
            found = []
            for script in scripts:
                result = await ws.execute(script)
                found.append((result.stdout.decode(), result.stderr.decode(), result.exit_code))
            return found
        finally:
            await ws.close()

    return asyncio.run(act())


def run(hub: GitHubFake, act: Callable[[GitHubResource], Awaitable[None]], **settings: Any) -> None:
    async def whole() -> None:
        resource = mounted(hub, **settings)
        try:
            await act(resource)
        finally:
            await resource.close()

    asyncio.run(whole())


@pytest.fixture(scope="module")
def full() -> Iterator[GitHubFake]:
    with GitHubFake() as running:
        running.add("Login fails / sometimes\nreally", labels=["bug", "a, b"], assignees=["ada"])
        running.add("Fix login", pull=True)
        running.comments[1] = [running.sample("issue-comment", id=9, body="me too")]
        running.add_release("v1.0")
        running.put(
            {"run.sh": b"#!/bin/sh\n", "latest": b"src/main.py"}, modes={"run.sh": "100755", "latest": "120000"}
        )
        yield running


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
@pytest.mark.parametrize("writable", (False, True))
def test_the_reading_suite(full: GitHubFake, check: Check, writable: bool) -> None:
    run_check(check, lambda: mounted(full, writable=writable))


# --------------------------------------------------------------------------------------------------------- looking


def test_the_tree_is_as_the_readme_says(full: GitHubFake) -> None:
    listing, readme, issue, pull = shell(
        full, "ls /gh", "cat /gh/README.md", "ls /gh/issues; ls /gh/issues/1", "ls /gh/pulls/2"
    )
    assert listing[0].split() == [
        "README.md", "branches.jsonl", "code", "commits.jsonl", "issues", "issues.jsonl", "pulls", "pulls.jsonl",
        "releases",
    ]  # fmt: skip
    assert "octocat/hello" in readme[0]
    assert issue[0].splitlines() == [
        "1__Login fails %2F sometimes%0Areally", "comments.jsonl", "issue.json", "issue.md",
    ]  # fmt: skip
    assert set(pull[0].split()) == {
        "pull.md", "pull.json", "diff.patch", "files.jsonl", "commits.jsonl", "reviews.jsonl", "review_comments.jsonl",
        "comments.jsonl", "checks.jsonl",
    }  # fmt: skip


def test_an_issue_has_its_fields_above_its_text(full: GitHubFake) -> None:
    (found,) = shell(full, "cat /gh/issues/1__*/issue.md")
    assert found[0] == (
        '---\nnumber: 1\ntitle: "Login fails / sometimes\\nreally"\nstate: open\nlabels: [bug, "a, b"]\n'
        'assignees: [ada]\nmilestone:\nauthor: octocat\ncreated_at: "2026-05-01T10:00:00Z"\n'
        'url: "https://github.com/octocat/hello/issues/1"\n---\n\ntext\n'
    )


def test_everything_of_a_pull_request_can_be_read(full: GitHubFake) -> None:
    found = shell(full, "cd /gh/pulls/2* && for f in *; do echo $f; cat $f | wc -l; done; cat diff.patch")
    assert found[0][1:] == ("", 0)
    assert "diff --git" in found[0][0]


def test_collections_are_lines_for_jq(full: GitHubFake) -> None:
    found = shell(
        full,
        "jq -r .number /gh/issues.jsonl; jq -r .number /gh/pulls.jsonl; jq -r .name /gh/branches.jsonl",
        "jq -r .sha /gh/commits.jsonl | wc -l; jq -r .body /gh/issues/1/comments.jsonl",
    )
    assert found[0] == ("1\n2\nmain\n", "", 0)
    assert found[1] == ("2\nme too\n", "", 0)


def test_releases_have_assets(full: GitHubFake) -> None:
    found = shell(full, "cd /gh/releases/v1.0__50; ls . assets; cat assets/*; grep tag: release.md")
    assert found[0] == (".:\nassets\nrelease.json\nrelease.md\n\nassets:\napp.tgz__77\nassettag: v1.0\n", "", 0)


def test_code_has_kinds_versions_and_links(full: GitHubFake) -> None:
    async def act(gh: GitHubResource) -> None:
        main = await gh.stat(P("/code/src/main.py"))
        assert (main.kind, main.size) == (Kind.FILE, 20) and len(main.version or "") == 40
        assert (await gh.stat(P("/code/latest"))).target == "src/main.py"
        assert (await gh.stat(P("/code/run.sh"))).mode == 0o755
        with refused(errno.ENOENT):
            await gh.stat(P("/code/src/none"))

    run(full, act)
    assert shell(full, "cat /gh/code/latest")[0][0] == "print('hi')  # TODO\n"


def test_a_tree_too_large_for_one_answer_is_asked_for_by_directory(hub: GitHubFake) -> None:
    hub.truncated = True
    assert shell(hub, "find /gh/code -type f | sort; cat /gh/code/src/main.py")[0] == (
        "/gh/code/README.md\n/gh/code/src/data.bin\n/gh/code/src/main.py\nprint('hi')  # TODO\n", "", 0,
    )  # fmt: skip


def test_the_number_decides_and_not_the_title(full: GitHubFake) -> None:
    assert shell(full, "head -2 '/gh/issues/1__An old title/issue.md'")[0][2] == 0
    assert "pulls/2" in shell(full, "cat /gh/issues/2/issue.md")[0][1]


# -------------------------------------------------------------------------------------------------- request counts


def test_listing_a_thousand_issues_costs_ten_requests(hub: GitHubFake) -> None:
    for number in range(1000):
        hub.add(f"Issue {number}")
    found = shell(hub, "ls -l /gh/issues | wc -l; cat /gh/issues/*/issue.md | grep -c '^title'")
    assert found[0] == ("1001\n1000\n", "", 0)
    assert hub.count() == 10


def test_an_issue_with_its_comments_costs_two_requests(hub: GitHubFake) -> None:
    hub.add("One")
    hub.comments[1] = [hub.sample("issue-comment", id=9, body="me too")]
    assert shell(hub, "cat /gh/issues/1/issue.md /gh/issues/1/comments.jsonl")[0][2] == 0
    assert hub.count() == 2


def test_a_recursive_grep_is_one_tarball_and_a_second_one_conditional_request(hub: GitHubFake) -> None:
    hub.put({f"d{number % 20}/f{number}.txt": b"x\n" * number + b"needle\n" for number in range(2000)})

    async def act() -> None:
        resource = mounted(hub)
        ws = Workspace({"/gh": resource})
        try:
            first = await ws.execute("grep -rl needle /gh/code | wc -l")
            assert first.stdout == b"2000\n"
            assert hub.count("GET", "/tarball/") == 1
            assert hub.count("GET", "/git/blobs/") <= 8
            assert (hub.count("GET", "/commits/"), hub.count("GET", "/git/trees/")) == (1, 1)
            # The commit, its tree, the tarball, the download that it leads to, and the first blobs.
            assert hub.count() <= 4 + 8
            before = hub.count()
            ws.fs.changed(P("/gh"))
            second = await ws.execute("grep -rl needle /gh/code | wc -l")
            assert second.stdout == b"2000\n"
            assert hub.count() == before + 1 and hub.statuses[-1] == 304
        finally:
            await ws.close()

    asyncio.run(act())


def test_what_a_tarball_leaves_out_is_read_as_a_blob(hub: GitHubFake) -> None:
    hub.put({f"f{number}": b"%d" % number for number in range(30)})
    hub.attributes = {"f29"}
    assert shell(hub, "cat /gh/code/f*")[0][0] == "".join(sorted(map(str, range(30)), key=lambda n: f"f{n}"))
    assert hub.count("GET", "/tarball/") == 1


def test_a_reader_that_stops_ends_the_paging(hub: GitHubFake) -> None:
    for number in range(500):
        hub.add(f"Issue {number}")
    assert shell(hub, "head -1 /gh/issues.jsonl | jq .number")[0][0] == "500\n"
    assert hub.count() == 1


# --------------------------------------------------------------------------------------------------------- writing


def test_a_write_is_a_commit_with_the_sha_that_it_replaces(hub: GitHubFake) -> None:
    found = shell(
        hub, "echo new > /gh/code/src/new.txt; sed -i s/hi/ho/ /gh/code/src/main.py; cat /gh/code/src/main.py",
        "mkdir -p /gh/code/a/b && echo deep > /gh/code/a/b/c; rm /gh/code/README.md",
        "mv /gh/code/src /gh/code/lib; ls -R /gh/code",
        writable=True,
    )  # fmt: skip
    assert found[0] == ("print('ho')  # TODO\n", "", 0)
    assert found[1][1:] == found[2][1:] == ("", 0)
    assert hub.count("PUT") == 3 and hub.count("DELETE") == 1 and hub.count("PATCH", "/git/refs/") == 1
    assert hub.files() == {
        "lib/new.txt": b"new\n", "lib/main.py": b"print('ho')  # TODO\n", "lib/data.bin": b"\0\xff\x01",
        "a/b/c": b"deep\n",
    }  # fmt: skip


def test_what_is_redirected_into_a_file_is_one_commit(hub: GitHubFake) -> None:
    before = len(hub.commits)
    script = "{ echo a; echo b; } > /gh/code/x; echo c >> /gh/code/x; seq 1 300000 > /gh/code/y; tail -1 /gh/code/y"
    assert shell(hub, script, writable=True)[0] == ("300000\n", "", 0)
    assert hub.files()["x"] == b"a\nb\nc\n" and len(hub.commits) == before + 3


def test_a_conditional_write_of_a_changed_file_is_stale(hub: GitHubFake) -> None:
    async def act(gh: GitHubResource) -> None:
        version = (await gh.stat(P("/code/README.md"))).version
        hub.put({"README.md": b"theirs\n"})
        with refused(errno.ESTALE):
            await gh.write(P("/code/README.md"), b"mine\n", if_version=version)
        assert hub.files()["README.md"] == b"theirs\n"
        await gh.write(P("/code/README.md"), b"mine\n")
        assert hub.files()["README.md"] == b"mine\n"

    run(hub, act, writable=True)


def test_an_edited_field_is_all_that_is_sent(hub: GitHubFake) -> None:
    hub.add("One", labels=["bug"])
    found = shell(
        hub, "sed -i 's/^state: open/state: closed/' /gh/issues/1/issue.md; grep state /gh/issues/1/issue.md",
        "sed -i 's/^labels:.*/labels: [bug, web]/; s/^milestone:/milestone: v1/' /gh/issues/1/issue.md",
        "echo more >> /gh/issues/1/issue.md; tail -1 /gh/issues/1/issue.md", writable=True,
    )  # fmt: skip
    assert [one[1:] for one in found] == [("", 0)] * 3 and found[0][0] == "state: closed\n"
    sent = [call.json for call in hub.calls if call.method == "PATCH"]
    assert sent == [
        {"state": "closed"}, {"labels": ["bug", "web"], "milestone": 3}, {"body": "text\nmore"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("s/^state: open/state: ajar/", "state is open or closed"),
        ("s/^author: .*/author: eve/", "author is read-only"),
        ("s/^state: open/status: open/", "unknown key status"),
        ("s/^milestone:/milestone: v9/", "no milestone v9; there are: v1"),
        ("s/^title: .*/title:/", "title is empty"),
        ("s/^labels: .*/labels: bug/", "labels is a list"),
        ("2,$s/^---$/--/", "has no end"),
    ],
)
def test_a_wrong_edit_changes_nothing_and_says_why(hub: GitHubFake, script: str, words: str) -> None:
    hub.add("One")
    (found,) = shell(hub, f"sed -i '{script}' /gh/issues/1/issue.md", writable=True)
    assert words in found[1] and found[2] != 0
    assert hub.count("PATCH") == 0


def test_an_edit_of_an_issue_that_has_changed_is_stale(hub: GitHubFake) -> None:
    hub.add("One")

    async def act(gh: GitHubResource) -> None:
        text = await ops.read_bytes(gh, P("/issues/1/issue.md"))
        hub.issues[1]["title"] = "Theirs"
        with refused(errno.ESTALE):
            await gh.write(P("/issues/1/issue.md"), text.replace(b"open", b"closed"))
        assert hub.issues[1]["state"] == "open"
        text = await ops.read_bytes(gh, P("/issues/1/issue.md"))
        await gh.write(P("/issues/1/issue.md"), text.replace(b"open", b"closed"))
        assert hub.issues[1]["state"] == "closed" and hub.issues[1]["title"] == "Theirs"

    run(hub, act, writable=True)


def test_post_comments_and_makes_issues(hub: GitHubFake) -> None:
    hub.add("One")
    found = shell(
        hub, "post /gh/issues/1 -m 'Fixed in #57'", "echo body | post /gh/issues -t 'Flaky / test'; ls /gh/issues",
        "cat /gh/issues/1/comments.jsonl | jq -r .body", writable=True,
    )  # fmt: skip
    assert found[0] == ("posted https://github.com/octocat/hello/issues/1#c\n", "", 0)
    assert found[1][0].splitlines()[1:] == ["1__One", "2__Flaky %2F test"]
    assert found[2][0] == "Fixed in #57\n"


def test_query_asks_the_api_over_all_pages(hub: GitHubFake) -> None:
    for number in range(250):
        hub.add(f"crash {number}" if number % 2 else f"fine {number}")
    found = shell(
        hub, "query /gh 'GET /search/issues?q=repo:{owner}/{repo}+crash&per_page=100' | wc -l",
        "query -n 3 /gh 'GET /search/issues?q=crash' | wc -l",
        "query /gh 'GET /repos/{owner}/{repo}' | jq -r .default_branch",
        "query /gh 'DELETE /repos/{owner}/{repo}'", "query /gh 'find me'",
    )  # fmt: skip
    assert [one[0] for one in found[:3]] == ["125\n", "3\n", "main\n"]
    assert "that takes -w" in found[3][1] and "a query is" in found[4][1]
    assert hub.count("DELETE") == 0


def test_query_changes_only_what_is_writable(hub: GitHubFake) -> None:
    hub.add("One")
    script = """query -w /gh 'PATCH /repos/{owner}/{repo}/issues/1' '{"title": "Two"}' | jq -r .title"""
    assert "writable=True" in shell(hub, script)[0][1]
    assert shell(hub, script, writable=True)[0][0] == "Two\n"


# -------------------------------------------------------------------------------------------------------- branches


def test_a_branch_is_one_commit_and_its_messages_wait_for_it(hub: GitHubFake) -> None:
    hub.add("One")

    async def act() -> None:
        ws = Workspace({"/gh": mounted(hub, writable=True)})
        branch = ws.branch()
        try:
            script = (
                "cd /gh/code; echo a > a.txt; mkdir -p x/y; echo b > x/y/b.txt; rm README.md;"
                "sed -i s/hi/ho/ src/main.py;"
                "sed -i 's/^state: open/state: closed/' /gh/issues/1/issue.md; post /gh/issues/1 -m done"
            )
            result = await branch.execute(script)
            assert (result.stdout, result.stderr) == (b"posted when the branch is committed (1 waiting)\n", b"")
            assert hub.count("P") + hub.count("DELETE") == 0
            assert [(str(one.path), one.what) for one in await branch.diff() if one.kind is Kind.FILE] == [
                ("/gh/code/README.md", "removed"), ("/gh/code/a.txt", "added"), ("/gh/code/src/main.py", "modified"),
                ("/gh/code/x/y/b.txt", "added"), ("/gh/issues/1", "posted"), ("/gh/issues/1/issue.md", "modified"),
            ]  # fmt: skip
            before = len(hub.commits)
            assert (await branch.commit()).ok
            assert len(hub.commits) == before + 1 and hub.issues[1]["state"] == "closed"
            assert hub.files() == {
                "a.txt": b"a\n", "x/y/b.txt": b"b\n", "src/main.py": b"print('ho')  # TODO\n",
                "src/data.bin": b"\0\xff\x01",
            }  # fmt: skip
            assert [one["body"] for one in hub.comments[1]] == ["done"]
            assert (await ws.execute("cat /gh/code/a.txt")).stdout == b"a\n"
        finally:
            await branch.close()
            await ws.close()

    asyncio.run(act())


def test_a_branch_over_what_has_changed_is_a_conflict_and_sends_nothing(hub: GitHubFake) -> None:
    hub.add("One")

    async def act() -> None:
        ws = Workspace({"/gh": mounted(hub, writable=True)})
        branch, given_up = ws.branch(), ws.branch()
        try:
            await branch.execute("echo mine > /gh/code/README.md; post /gh/issues/1 -m done; echo x > /gh/code/x")
            hub.put({"README.md": b"theirs\n"})
            report = await branch.commit()
            assert [str(one.path) for one in report.conflicts] == ["/gh/code/README.md"]
            await given_up.execute("echo x > /gh/code/x; post /gh/issues/1 -m no")
            await given_up.abort()
            assert (await given_up.commit()).applied == ()
            assert hub.count("P") == 0 and hub.files()["README.md"] == b"theirs\n"
        finally:
            await given_up.close()
            await branch.close()
            await ws.close()

    asyncio.run(act())


# --------------------------------------------------------------------------------------------------------- failing


def test_a_mount_that_is_not_writable_says_how_to_make_it_so(hub: GitHubFake) -> None:
    hub.add("One")
    found = shell(hub, "echo x > /gh/issues/1/issue.md", "post /gh/issues/1 -m x", "rm /gh/code/README.md")
    assert all("writable=True in GitHubConfig" in one[1] and one[2] for one in found), found
    assert hub.count("POST") + hub.count("PATCH") + hub.count("PUT") + hub.count("DELETE") == 0


def test_what_cannot_be_written_says_what_to_do(hub: GitHubFake) -> None:
    hub.add("One")
    found = shell(
        hub, "echo hi >> /gh/issues/1/comments.jsonl", "echo hi > /gh/issues/1/new.txt", "rm -r /gh/issues/1",
        "mkdir /gh/issues/7x", "head -c 20000000 /dev/zero > /gh/code/big", "post /gh/code -m x",
        "post /gh/issues -m x",
        "post /gh/issues/1 -m ''", writable=True,
    )  # fmt: skip
    words = [
        "use post", "only the service makes files", "see README.md", "", "at most 16 MiB", "nothing can be posted here",
        "needs a title", "empty",
    ]  # fmt: skip
    for (_, said, status), expected in zip(found, words, strict=True):
        assert expected in said and status, (said, expected)
    assert hub.files().keys() == {"README.md", "src/main.py", "src/data.bin"}
    assert hub.count("POST") + hub.count("PATCH") + hub.count("PUT") + hub.count("DELETE") == 0


def test_a_wrong_token_and_an_unknown_repository_are_named(hub: GitHubFake) -> None:
    wrong = shell(hub, "ls /gh/issues", "cat /gh/code/README.md", token="ghp_wrong")
    assert all("refuses the token" in one[1] and "ghp_wrong" not in one[1] for one in wrong), wrong
    unknown = shell(hub, "ls /gh/issues", "ls /gh/code", repo="none")
    assert all("octocat/none" in one[1] and "is not there, or the token cannot read it" in one[1] for one in unknown)


def test_a_missing_scope_is_named(hub: GitHubFake) -> None:
    headers = {"X-Accepted-OAuth-Scopes": "repo", "X-OAuth-Scopes": "read:user"}
    hub.fault("GET", "/issues$", Reply(403, {"message": "Must have admin rights"}, headers))
    (found,) = shell(hub, "ls /gh/issues")
    assert "the token has the scopes [read:user] and needs one of [repo]" in found[1]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(429, {"message": "slow down"}, {"Retry-After": "0"}),
        Reply(429, {"message": "slow down"}, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Reply(403, {"message": "API rate limit exceeded"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
        Reply(403, {"message": "You have exceeded a secondary rate limit"}, {"Retry-After": "0"}),
        Reply(502, b"<html>"),
        Reply(503, {"message": "later"}),
        None,
    ],
    ids=("429", "429 date", "403 quota", "403 secondary", "502", "503", "cut"),
)
def test_what_passes_is_asked_again(hub: GitHubFake, reply: Reply | None) -> None:
    hub.add("One")
    hub.fault("GET", "/issues$", reply)
    assert shell(hub, "ls /gh/issues")[0] == ("1__One\n", "", 0)


def test_a_limit_that_ends_late_is_reported_and_not_waited_for(hub: GitHubFake) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999"}
    hub.fault("GET", "/issues$", Reply(403, {"message": "API rate limit exceeded"}, headers))
    (found,) = shell(hub, "ls /gh/issues")
    assert "limits the rate of requests until" in found[1] and hub.count() == 1


def test_a_post_whose_answer_is_lost_is_not_sent_twice(hub: GitHubFake) -> None:
    hub.add("One")
    hub.fault("POST", "/comments$", lost=True)
    (found,) = shell(hub, "post /gh/issues/1 -m once", writable=True)
    assert "may have been made" in found[1] and found[2] == 1
    assert hub.count("POST") == 1 and len(hub.comments[1]) == 1


@pytest.mark.parametrize("status", (500, 502))
def test_a_post_that_fails_in_the_service_is_not_sent_twice(hub: GitHubFake, status: int) -> None:
    hub.add("One")
    hub.fault("POST", "/comments$", Reply(status, {"message": "oops"}))
    (found,) = shell(hub, "post /gh/issues/1 -m once", writable=True)
    assert "may have been made" in found[1] and hub.count("POST") == 1


def test_a_post_that_a_limit_refuses_is_sent_again(hub: GitHubFake) -> None:
    hub.add("One")
    hub.fault("POST", "/comments$", Reply(429, {"message": "slow"}, {"Retry-After": "0"}))
    assert shell(hub, "post /gh/issues/1 -m once", writable=True)[0][2] == 0
    assert len(hub.comments[1]) == 1


def test_a_write_whose_answer_is_lost_is_reported(hub: GitHubFake) -> None:
    hub.fault("PUT", "/contents/", lost=True)
    (found,) = shell(hub, "echo x > /gh/code/x", writable=True)
    assert "may have been made" in found[1] and hub.count("PUT") == 1


def test_pages_that_shift_show_no_entry_twice(hub: GitHubFake) -> None:
    for number in range(150):
        hub.add(f"Issue {number}")

    async def act(gh: GitHubResource) -> None:
        names: list[str] = []
        async for name, _ in gh.scan(P("/issues")):
            if not names:
                hub.add("Newer")
            names.append(name)
        assert len(names) == len(set(names)) == 150

    run(hub, act)


def test_a_token_is_renewed_once_it_is_refused(hub: GitHubFake) -> None:
    tokens = iter(("ghp_expired", TOKEN))
    config = GitHubConfig(owner="octocat", repo="hello", base_url=hub.base, private=True)

    async def act() -> None:
        resource = GitHubResource(config, token=lambda: next(tokens))
        try:
            assert (await resource.stat(P("/code/README.md"))).size == 8
        finally:
            await resource.close()

    asyncio.run(act())
    assert hub.statuses[0] == 401


# --------------------------------------------------------------------------------------------------------- secrets


def test_the_token_is_nowhere(hub: GitHubFake, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    import pickle

    hub.add("One")
    hub.fault("GET", "/pulls$", Reply(401, {"message": f"Bad credentials: {TOKEN}"}))
    caplog.set_level(0)

    async def act() -> str:
        resource = mounted(hub, writable=True)
        ws = Workspace({"/gh": resource})
        try:
            result = await ws.execute(
                "ls /gh/issues; ls /gh/pulls; cat /gh/README.md; post /gh/issues/1 -m x; ls /gh/none"
            )
            ws.snapshot(tmp_path / "snapshot.tar")
            seen = [repr(resource), repr(resource.config), repr(ws.mounts()), str(list(ws.history)), repr(result)]
            return "\n".join([*seen, repr(pickle.dumps(resource.describe()))])
        finally:
            await ws.close()

    seen = asyncio.run(act())
    seen += (tmp_path / "snapshot.tar").read_bytes().decode("latin-1") + caplog.text
    assert TOKEN not in seen and "REDACTED" in seen


def test_a_snapshot_needs_the_resource_again(hub: GitHubFake) -> None:
    description = mounted(hub).describe()
    assert (description.type, description.needs_override) == ("github", True)
    assert description.redacted_fields == ("token",) and description.config["token"] == "<REDACTED>"
    json.dumps(description.config)


@pytest.mark.parametrize(
    "settings",
    [
        {"owner": "a/b"}, {"repo": ".."}, {"token": ""}, {"token": "two words"}, {"token": "x", "token_env": "Y"},
        {"base_url": "ftp://x"}, {"base_url": "https://u:p@x"},
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_work_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(RametError) as raised:
        GitHubConfig(**{"owner": "octocat", "repo": "hello", **settings})
    assert raised.value.code == "invalid_config"


def test_a_token_comes_out_of_its_variable(hub: GitHubFake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    assert shell(hub, "cat /gh/code/README.md", token=None, token_env="MY_TOKEN")[0][0] == "# Hello\n"
    found = shell(hub, "cat /gh/code/README.md", token=None, token_env="NOT_SET")
    assert "the environment variable NOT_SET is not set" in found[0][1]
