"""GitHubCIResource against a fake whose every exchange is checked against GitHub's OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.github_fake import TOKEN, WHEN, GitHubFake
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet.backends import GitHubCIConfig, GitHubCIResource
from ramet.testing import READING, Check, run_check


@pytest.fixture(scope="module")
def hub() -> Iterator[GitHubFake]:
    with GitHubFake() as running:
        for number, (status, conclusion) in enumerate(
            (("in_progress", None), ("completed", "failure"), ("completed", "success")), 9874
        ):
            running.runs.insert(0, running.sample(
                "workflow-run", id=number, name="CI / all", head_branch="feat/x", status=status, conclusion=conclusion,
                created_at=WHEN, updated_at=WHEN,
            ))  # fmt: skip
            running.jobs[number] = [
                running.sample(
                    "job", id=number * 10 + job, name=name, status=status, completed_at=WHEN, started_at=WHEN,
                    conclusion=conclusion if job else "success" if conclusion else None,
                )
                for job, name in enumerate(("lint", "test"))
            ]  # fmt: skip
            if conclusion:
                running.logs |= {number * 10 + job: f"\ufeff{WHEN} log of {job}".encode() for job in range(2)}
        running.artifacts[9875] = [
            running.sample("artifact", id=55, name="coverage", expired=False, created_at=WHEN),
            running.sample("artifact", id=9, name="old", expired=True, created_at=WHEN),
        ]
        yield running


def mounted(hub: GitHubFake, **settings: Any) -> GitHubCIResource:
    given = {"token": TOKEN, "owner": "octocat", "repo": "hello", **settings}
    return GitHubCIResource(GitHubCIConfig(base_url=hub.base, private=True, allow=("127.0.0.2",), **given))


def shell(hub: GitHubFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/ci": mounted(hub, **settings)}, scripts)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(check: Check) -> None:
    given = {"status": "completed", "conclusion": "failure"}
    with GitHubFake() as ended:
        ended.runs = [ended.sample("workflow-run", id=7, name="CI", head_branch="main", updated_at=WHEN, **given)]
        ended.jobs[7] = [ended.sample("job", id=70, name="test", completed_at=WHEN, started_at=WHEN, **given)]
        ended.logs[70] = b"it failed\n"
        ended.artifacts[7] = [ended.sample("artifact", id=55, name="coverage", expired=False, created_at=WHEN)]
        run_check(check, lambda: mounted(ended))


def test_runs_are_listed_with_their_results(hub: GitHubFake) -> None:
    found = shell(hub, "ls /ci /ci/runs /ci/runs/9875/ /ci/runs/9875*/jobs")
    assert found[0][0] == (
        "/ci:\nREADME.md\nruns\nruns.jsonl\nworkflows.jsonl\n\n"
        "/ci/runs:\n9874__CI %2F all__feat%2Fx__in_progress\n9875__CI %2F all__feat%2Fx__failure\n"
        "9876__CI %2F all__feat%2Fx__success\n\n"
        "/ci/runs/9875/:\nannotations.jsonl\nartifacts\nfailed.log\njobs\njobs.jsonl\nrun.json\n\n"
        "/ci/runs/9875__CI %2F all__feat%2Fx__failure/jobs:\n98750__lint.log\n98751__test.log\n"
    )


def test_the_failed_log_is_that_of_the_failed_jobs(hub: GitHubFake) -> None:
    found = shell(hub, "cat /ci/runs/9875/failed.log; cat /ci/runs/9876/failed.log; cat /ci/runs/9875/jobs/98750*")
    assert found[0] == (f"==> test (failure) <==\n\ufeff{WHEN} log of 1\n\ufeff{WHEN} log of 0", "", 0)


def test_a_log_of_a_running_job_is_not_there_yet(hub: GitHubFake) -> None:
    (found,) = shell(hub, "cat /ci/runs/9874/jobs/98740*")
    assert "not there before the job ends" in found[1] and found[2] == 1


def test_annotations_and_artifacts(hub: GitHubFake) -> None:
    found = shell(
        hub, "jq -r '.job, .message' /ci/runs/9875/annotations.jsonl", "unzip -l /ci/runs/9875/artifacts/coverage*",
        "cat /ci/runs/9875/artifacts/old__9.zip", "jq -r .conclusion /ci/runs/9875/jobs.jsonl",
    )  # fmt: skip
    assert found[0][0] == "lint\njob 98750\ntest\njob 98751\n"
    assert "coverage__55.zip" in found[1][0] + found[1][1]
    assert "the artifact has expired" in found[2][1]
    assert found[3][0] == "success\nfailure\n"


def test_failed_jobs_run_again_by_query(hub: GitHubFake) -> None:
    script = "query -w /ci 'POST /repos/{owner}/{repo}/actions/runs/9875/rerun-failed-jobs'"
    assert "writable=True in GitHubCIConfig" in shell(hub, script)[0][1]
    assert shell(hub, script, writable=True)[0][2] == 0
    assert hub.count("POST") == 1


def test_the_newest_runs_are_listed_in_few_requests() -> None:
    with GitHubFake() as hub:
        hub.runs = [
            hub.sample("workflow-run", id=number, name="CI", status="completed", conclusion="success", updated_at=WHEN)
            for number in range(1000, 0, -1)
        ]
        assert shell(hub, "ls -l /ci/runs | wc -l", max_runs=250)[0][0] == "251\n"
        assert hub.count() == 3


def test_a_signed_link_that_has_ended_is_asked_for_again(hub: GitHubFake) -> None:
    hub.fault("GET", "/signed/log/", Reply(503, b"expired"))
    assert shell(hub, "cat /ci/runs/9876/jobs/98760*")[0][2] == 0
    assert hub.count("GET", "/jobs/98760/logs") >= 2


def test_the_token_is_redacted(hub: GitHubFake) -> None:
    resource = mounted(hub)
    assert TOKEN not in repr(resource) + repr(resource.describe())
    assert resource.describe().type == "github_ci" and resource.describe().needs_override
