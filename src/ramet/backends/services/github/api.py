"""GitHub's REST API for its mounts: client, errors and raw queries."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

from ramet.backends.services.auth import TokenAuth, TokenSource
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import json_lines
from ramet.backends.services.pages import any_entries, first_of, linked
from ramet.backends.services.requests import raw_request, request_of
from ramet.backends.services.rest import Answer, Rest, rate_limited
from ramet.core.errors import RametError, fail
from ramet.core.paths import Path
from ramet.core.streams import closing

SIGNED: Final = (
    "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
    "release-assets.githubusercontent.com", "github-releases.githubusercontent.com", "*.blob.core.windows.net",
    "*.actions.githubusercontent.com",
)  # fmt: skip
"""Hosts that signed downloads come from; they get no token."""
API_VERSION: Final = "2022-11-28"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_CONFLICT: Final = re.compile(r"fast.?forward|sha.*(supplied|match)|does not match|reference cannot be updated", re.I)


@dataclass(frozen=True, kw_only=True, repr=False)
class GitHubAPIConfig(ServiceConfig):
    """A repository, and the token that opens it."""

    secrets: ClassVar[tuple[str, ...]] = ("token",)

    owner: str
    """The user or organization that has the repository."""
    repo: str
    """The repository."""
    token: str | None = None
    """A token; without one, GitHub shows public repositories and allows few requests."""
    token_env: str | None = None
    """The environment variable that holds the token."""
    base_url: str = "https://api.github.com"
    """The address of the API; GitHub Enterprise has another one."""
    allow: tuple[str, ...] = ()
    """Hosts that signed downloads may come from, in addition to GitHub's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("owner", "repo"):
            if _NAME.fullmatch(getattr(self, name)) is None or getattr(self, name) in (".", ".."):
                raise RametError(
                    "invalid_config",
                    f"{getattr(self, name)!r} cannot be the {name} of a repository",
                    'give owner="octocat", repo="hello-world"',
                )

    @property
    def repository(self) -> str:
        """The address of the repository."""
        return f"/repos/{quote(self.owner)}/{quote(self.repo)}"


def github_rest(config: GitHubAPIConfig, token: TokenSource | None) -> Rest:
    return Rest.of(
        config,
        TokenAuth(token or (lambda: config.secret("token"))),
        signed=(*SIGNED, *config.allow),
        headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION},
        judge=_judge,
        explain=_explain,
    )


def _explain(found: Any) -> str:
    if not isinstance(found, dict):
        return ""
    words = [str(found.get("message", ""))]
    for error in found.get("errors") or ():
        if isinstance(error, dict):
            words.append(str(error.get("message") or f"{error.get('field', '')} {error.get('code', '')}").strip())
        else:
            words.append(str(error))
    return ": ".join(word for word in words if word)


def _judge(answer: Answer) -> OSError | None:
    """Errors that GitHub reports in the body or in its own headers."""
    if answer.status not in (403, 409, 422):
        return None
    try:
        said = _explain(answer.json())
    except OSError:
        said = ""
    if answer.status == 403:
        if "secondary rate limit" in said.lower() and "retry-after" not in answer.headers:
            return rate_limited(answer.path, "GitHub", 60.0)  # as GitHub asks of clients when it names no time
        needed = answer.headers.get("x-accepted-oauth-scopes", "").strip()
        given = answer.headers.get("x-oauth-scopes")
        if needed and given is not None and not set(needed.split(", ")) & set(given.split(", ")):
            words = f"Permission denied: the token has the scopes [{given}] and needs one of [{needed}]"
            return fail(errno.EACCES, answer.path, words)
        return None
    if answer.status == 409 or _CONFLICT.search(said):
        return fail(errno.ESTALE, answer.path, f"Stale file handle: {said}" if said else None)
    return fail(errno.EINVAL, answer.path, f"Invalid argument: GitHub says {said[:200]}")


async def github_query(
    rest: Rest,
    config: GitHubAPIConfig,
    path: Path,
    text: str,
    values: Sequence[str],
    limit: int | None,
    write: bool,
) -> AsyncIterator[bytes]:
    """`GET /address?x=y`, over all pages, or another method with a JSON body; `{owner}` and `{repo}` are filled in."""
    request = request_of(text)
    if request is None:
        raise fail(errno.EINVAL, path, "a query is `GET /address?x=y`, or another method with -w and a JSON body")
    method, address = request[0], request[1].replace("{owner}", config.owner).replace("{repo}", config.repo)
    if method == "GET" and not values:
        found = json_lines(first_of(linked(rest, address, path=path, pick=any_entries, patient=True), limit))
    else:
        found = raw_request(rest, config, path, (method, address), values, limit=limit, write=write)
    async with closing(found) as lines:
        async for block in lines:
            yield block
