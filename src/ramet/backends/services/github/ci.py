"""`GitHubCIResource`: the workflow runs of a repository as files: jobs, logs, annotations, artifacts.

/runs/<id>__<workflow>__<branch>__<result>/{run.json,jobs.jsonl,failed.log,annotations.jsonl}
/runs/<...>/jobs/<id>__<name>.log
/runs/<...>/artifacts/<name>__<id>.zip
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import among, fixed, json_lines, pretty_json
from ramet.backends.services.github.api import GitHubAPIConfig, github_query, github_rest
from ramet.backends.services.names import key_first, key_last, time_ns, title_name
from ramet.backends.services.nodes import Asked, Collection, Item, Place, Rendered
from ramet.backends.services.pages import first_of, inside, linked
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import Path, encode
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

RUNNING_TTL: Final = 5.0
"""Seconds for which a run that has not ended is trusted."""
FAILED: Final = frozenset(("failure", "timed_out", "startup_failure"))
README: Final = """\
# Workflow runs of {owner}/{repo} on GitHub

    runs/<id>__<workflow>__<branch>__<result>/    the newest {max_runs} of the last {days} days
        run.json           what GitHub says of the run
        failed.log         the logs of the failed jobs, one after the other
        jobs.jsonl         its jobs, one a line, with their steps
        jobs/<id>__<name>.log
        annotations.jsonl  errors and warnings with file and line
        artifacts/<name>__<id>.zip
    runs.jsonl workflows.jsonl

The id alone is enough, for older runs too: `tail -50 runs/9876/failed.log`.

- What failed: `ls runs | grep failure | tail -1`
- Run failed jobs again: `query -w . 'POST /repos/{owner}/{repo}/actions/runs/9876/rerun-failed-jobs'`
- A log is there when its job has ended.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class GitHubCIConfig(GitHubAPIConfig):
    """The workflow runs of a repository on GitHub."""

    kind: ClassVar[str] = "github_ci"

    days: int = 30
    """Days of which runs are listed."""
    max_runs: int = 300
    """Runs that are listed at most, the newest first."""


class GitHubCIResource(Service):
    """`GitHubCIResource(GitHubCIConfig(token="...", owner="octocat", repo="hello-world"))`.

    `token` is a function that returns the token, for tokens that expire.
    """

    config: GitHubCIConfig

    def __init__(self, config: GitHubCIConfig, *, token: TokenSource | None = None) -> None:
        self._rest = github_rest(config, token)
        self._actions = f"{config.repository}/actions"
        name = f"{config.owner}/{config.repo}"
        self._missing = f"No such file or directory: {name} is not there, or the token cannot read its actions"
        readme = README.format(owner=config.owner, repo=config.repo, days=config.days, max_runs=config.max_runs)
        super().__init__(config, (
            Rendered("/README.md", fixed(readme)),
            Asked("/workflows.jsonl", lambda place: json_lines(self._list("/workflows", "workflows", place.path))),
            Asked("/runs.jsonl", lambda place: json_lines(self._newest(place.path))),
            Collection("/runs", self._runs, self._run, key_first),
            Asked("/runs/*/run.json", self._run_json),
            Asked("/runs/*/jobs.jsonl", lambda place: json_lines(self._jobs_of(place))),
            Asked("/runs/*/failed.log", self._failed_log),
            Asked("/runs/*/annotations.jsonl", lambda place: json_lines(self._annotations(place))),
            Collection("/runs/*/jobs", self._jobs, partial(among, self._jobs), key_first),
            Asked("/runs/*/jobs/*", lambda place: self._log(place.data, place.path)),
            Collection(
                "/runs/*/artifacts", self._artifacts, partial(among, self._artifacts), key_last(r"\d{1,18}", ".zip")
            ),
            Asked("/runs/*/artifacts/*", self._zip),
        ))  # fmt: skip

    # ------------------------------------------------------------------------------------------ collections

    def _list(self, address: str, name: str, path: Path, **params: str) -> AsyncIterator[Any]:
        return linked(
            self._rest, self._actions + address, path=path, params={**params, "per_page": 100}, pick=inside(name),
            key="id", missing=self._missing,
        )  # fmt: skip

    def _newest(self, path: Path) -> AsyncIterator[Any]:
        since = datetime.now(UTC) - timedelta(days=self.config.days)
        runs = self._list("/runs", "workflow_runs", path, created=f">={since:%Y-%m-%d}")
        return first_of(runs, self.config.max_runs)

    async def _runs(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._newest(place.path)) as runs:
            async for run in runs:
                yield self._as_run(run)

    async def _run(self, place: Place, key: str) -> Item:
        return self._as_run((await self._rest.get(f"{self._actions}/runs/{key}", path=place.path)).json())

    def _as_run(self, run: Any) -> Item:
        words = (run.get("name") or "run", run.get("head_branch") or "-", run["conclusion"] or run["status"] or "-")
        name = "__".join([str(run["id"]), *map(title_name, words)])
        ttl = self.config.ttl if run["status"] == "completed" else min(RUNNING_TTL, self.config.ttl)
        return Item(str(run["id"]), name, run, Stat(Kind.DIR, None, time_ns(run["updated_at"]), None, ttl))

    def _jobs_of(self, place: Place) -> AsyncIterator[Any]:
        return self._list(f"/runs/{place.items[0].key}/jobs", "jobs", place.path, filter="latest")

    async def _jobs(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._jobs_of(place)) as jobs:
            async for job in jobs:
                yield self._as_job(job, place)

    def _as_job(self, job: Any, place: Place) -> Item:
        """The log of a job that has ended stays as it is: a job that runs again has another id."""
        ended = job["status"] == "completed"
        version, ttl = (f"job-{job['id']}", None) if ended else (None, place.items[0].stat.ttl)
        stat = Stat(Kind.FILE, None, time_ns(job["completed_at"] or job["started_at"]), version, ttl)
        return Item(str(job["id"]), f"{job['id']}__{title_name(job['name'])}.log", job, stat)

    async def _artifacts(self, place: Place) -> AsyncIterator[Item]:
        found = self._list(f"/runs/{place.items[0].key}/artifacts", "artifacts", place.path)
        async with closing(found) as artifacts:
            async for one in artifacts:
                stat = Stat(Kind.FILE, None, time_ns(one["created_at"]), None, self.config.ttl)
                yield Item(str(one["id"]), f"{title_name(one['name'])}__{one['id']}.zip", one, stat)

    # --------------------------------------------------------------------------------------------- contents

    async def _run_json(self, place: Place) -> AsyncIterator[bytes]:
        yield pretty_json(place)

    async def _log(self, job: Any, path: Path) -> AsyncIterator[bytes]:
        if job["status"] != "completed":
            words = "Resource temporarily unavailable: the log is not there before the job ends"
            raise fail(errno.EAGAIN, path, words)
        missing = "No such file or directory: GitHub has no log of this job, or has deleted it"
        blocks = self._rest.stream(f"{self._actions}/jobs/{job['id']}/logs", path=path, missing=missing)
        async with closing(blocks) as stream:
            async for block in stream:
                yield block

    async def _failed_log(self, place: Place) -> AsyncIterator[bytes]:
        async with closing(self._jobs_of(place)) as jobs:
            async for job in jobs:
                if job["conclusion"] in FAILED:
                    yield encode(f"==> {job['name']} ({job['conclusion']}) <==\n")
                    last = b"\n"
                    async with closing(self._log(job, place.path)) as blocks:
                        async for block in blocks:
                            last = block
                            yield block
                    if not last.endswith(b"\n"):
                        yield b"\n"

    async def _annotations(self, place: Place) -> AsyncIterator[Any]:
        """What the jobs remarked; a job's id is that of its check run."""
        async with closing(self._jobs_of(place)) as jobs:
            async for job in jobs:
                address = f"{self.config.repository}/check-runs/{job['id']}/annotations"
                remarks = linked(self._rest, address, path=place.path, params={"per_page": 100})
                async with closing(remarks) as found:
                    async for remark in found:
                        yield {"job": job["name"], **remark}

    def _zip(self, place: Place) -> AsyncIterator[bytes]:
        missing = "No such file or directory: the artifact has expired"
        address = f"{self._actions}/artifacts/{place.items[-1].key}/zip"
        return self._rest.stream(address, path=place.path, missing=missing)

    def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        return github_query(self._rest, self.config, path, text, values, limit, write)

    async def close(self) -> None:
        await super().close()
        await self._rest.close()
