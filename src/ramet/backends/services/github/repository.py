"""`GitHubResource`: a repository as files: code, issues, pull requests, releases.

/code/...                                     the files at a ref; a write is a commit
/issues/<number>__<title>/issue.md            fields above the text; edits are sent
/pulls/<number>__<title>/{pull.md,diff.patch} and reviews, comments, files, commits, checks
/releases/<tag>__<id>/{release.md,assets/}
/issues.jsonl, /pulls.jsonl, ...              whole collections, one entry a line
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import quote

from ramet.backends.file_names import as_name
from ramet.backends.services import front_matter
from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import among, fixed, json_lines, pretty_json
from ramet.backends.services.front_matter import BODY, Fields, Value
from ramet.backends.services.github.api import GitHubAPIConfig, github_query, github_rest
from ramet.backends.services.github.git_branch import GitBranch
from ramet.backends.services.names import key_first, key_last, time_ns, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Place, Rendered, Subtree
from ramet.backends.services.pages import inside, linked
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Edit, Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

EDITABLE: Final = ("title", "state", "labels", "assignees", "milestone")
DIFF: Final = "application/vnd.github.diff"
README: Final = """\
# {owner}/{repo} on GitHub

    code/                                the files at {ref}; a write is a commit
    issues/<number>__<title>/issue.md    title, state, labels, assignees, milestone; then the text
    issues/<number>__<title>/comments.jsonl
    pulls/<number>__<title>/             pull.md diff.patch files.jsonl commits.jsonl reviews.jsonl
                                         review_comments.jsonl comments.jsonl checks.jsonl
    releases/<tag>__<id>/                release.md and assets/
    issues.jsonl pulls.jsonl branches.jsonl commits.jsonl    one entry a line, newest first

The number alone is enough: `cat issues/42/issue.md`.

- Find: `jq -r 'select(.state=="open") | "\\(.number) \\(.title)"' issues.jsonl`, `grep -rn TODO code/src`
- Search GitHub: `query . 'GET /search/issues?q=repo:{owner}/{repo}+crash'`
- Edit an issue: `sed -i 's/^state: open/state: closed/' issues/42/issue.md`. Only what differs is sent.
- Comment: `post issues/42 -m 'Fixed in #57'`. New issue: `post issues -t 'Title' -m 'Text'`.
- Anything else of the API: `query -w . 'POST /repos/{owner}/{repo}/...' '{{"name": "value"}}'`
- `grep -r` over everything reads collections twice; add --exclude='*.jsonl'.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class GitHubConfig(GitHubAPIConfig):
    """A repository on GitHub, at a ref."""

    kind: ClassVar[str] = "github"

    ref: str | None = None
    """The branch, tag or commit whose files are shown; the default branch when not given."""


class GitHubResource(Service):
    """`GitHubResource(GitHubConfig(token="...", owner="octocat", repo="hello-world"))`.

    `token` is a function that returns the token, for tokens that expire.
    """

    config: GitHubConfig

    def __init__(self, config: GitHubConfig, *, token: TokenSource | None = None) -> None:
        self._rest = github_rest(config, token)
        self._repo = config.repository
        self._missing = (
            f"No such file or directory: {config.owner}/{config.repo} is not there, or the token cannot read it"
        )
        self.code = GitBranch(self._rest, self._repo, config.ref, config.ttl)
        readme = README.format(owner=config.owner, repo=config.repo, ref=config.ref or "the default branch")
        issue, pull = "/issues/*", "/pulls/*"
        super().__init__(config, (
            Rendered("/README.md", fixed(readme)),
            Subtree("/code", self.code),
            Asked("/issues.jsonl", self._stream("/issues", key="number", keep=_is_issue, state="all")),
            Asked("/pulls.jsonl", self._stream("/pulls", key="number", state="all")),
            Asked("/branches.jsonl", self._stream("/branches", key="name")),
            Asked("/commits.jsonl", self._stream("/commits", key="sha", sha=config.ref)),
            Collection("/issues", self._issues, self._issue, key_first),
            Rendered(f"{issue}/issue.md", _issue_text, self._edit_issue, self._fresh_issue),
            Asked(f"{issue}/issue.json", _one(pretty_json)),
            Asked(f"{issue}/comments.jsonl", self._below("/issues/{number}/comments")),
            Collection("/pulls", self._pulls, self._pull, key_first),
            Rendered(f"{pull}/pull.md", _pull_text, self._edit_issue, self._fresh_pull),
            Asked(f"{pull}/pull.json", _one(pretty_json)),
            Asked(f"{pull}/diff.patch", self._diff),
            Asked(f"{pull}/files.jsonl", self._below("/pulls/{number}/files", key="filename")),
            Asked(f"{pull}/commits.jsonl", self._below("/pulls/{number}/commits", key="sha")),
            Asked(f"{pull}/reviews.jsonl", self._below("/pulls/{number}/reviews")),
            Asked(f"{pull}/review_comments.jsonl", self._below("/pulls/{number}/comments")),
            Asked(f"{pull}/comments.jsonl", self._below("/issues/{number}/comments")),
            Asked(f"{pull}/checks.jsonl", self._checks),
            Collection("/releases", self._releases, self._release, key_last(r"\d{1,18}")),
            Rendered("/releases/*/release.md", _release_text),
            Asked("/releases/*/release.json", _one(pretty_json)),
            Collection("/releases/*/assets", self._assets, partial(among, self._assets), key_last(r"\d{1,18}")),
            Asked("/releases/*/assets/*", self._download),
            Inbox("/issues", self._new_issue),
            Inbox(issue, self._comment),
            Inbox(pull, self._comment),
        ))  # fmt: skip

    # ------------------------------------------------------------------------------------------ collections

    def _list(self, address: str, path: Path, key: str = "id", **params: str | int | None) -> AsyncIterator[Any]:
        given = {**params, "per_page": 100}
        return linked(self._rest, self._repo + address, path=path, params=given, key=key, missing=self._missing)

    def _stream(
        self, address: str, *, key: str, keep: Callable[[Any], bool] = lambda entry: True, **params: str | None
    ) -> Callable[[Place], AsyncIterator[bytes]]:
        async def kept(path: Path) -> AsyncIterator[Any]:
            async with closing(self._list(address, path, key, **params)) as entries:
                async for entry in entries:
                    if keep(entry):
                        yield entry

        return lambda place: json_lines(kept(place.path))

    def _below(self, address: str, key: str = "id") -> Callable[[Place], AsyncIterator[bytes]]:
        """A list that belongs to an issue or a pull request."""
        return lambda place: json_lines(self._list(address.format(number=place.items[0].key), place.path, key))

    async def _issues(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._list("/issues", place.path, "number", state="all")) as entries:
            async for entry in entries:
                if _is_issue(entry):
                    yield self._thread(entry)

    async def _issue(self, place: Place, key: str) -> Item:
        found = (await self._rest.get(f"{self._repo}/issues/{key}", path=place.path)).json()
        if not _is_issue(found):
            raise fail(errno.ENOENT, place.path, f"No such file or directory: {key} is a pull request; see pulls/{key}")
        return self._thread(found)

    async def _pulls(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._list("/pulls", place.path, "number", state="all")) as entries:
            async for entry in entries:
                yield self._thread(entry)

    async def _pull(self, place: Place, key: str) -> Item:
        return self._thread((await self._rest.get(f"{self._repo}/pulls/{key}", path=place.path)).json())

    def _thread(self, entry: Any) -> Item:
        name = f"{entry['number']}__{title_name(entry['title'])}"
        return Item(str(entry["number"]), name, entry, self._directory(entry["updated_at"]))

    def _directory(self, changed: str | None) -> Stat:
        return Stat(Kind.DIR, None, time_ns(changed), None, self.config.ttl)

    async def _releases(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._list("/releases", place.path)) as entries:
            async for entry in entries:
                yield self._as_release(entry)

    async def _release(self, place: Place, key: str) -> Item:
        return self._as_release((await self._rest.get(f"{self._repo}/releases/{key}", path=place.path)).json())

    def _as_release(self, entry: Any) -> Item:
        stat = self._directory(entry.get("published_at") or entry["created_at"])
        return Item(str(entry["id"]), f"{title_name(entry['tag_name'])}__{entry['id']}", entry, stat)

    async def _assets(self, place: Place) -> AsyncIterator[Item]:
        for asset in place.data["assets"]:
            stat = Stat(Kind.FILE, asset["size"], time_ns(asset["updated_at"]), None, self.config.ttl)
            yield Item(str(asset["id"]), as_name(f"{asset['name']}__{asset['id']}"), asset, stat)

    # --------------------------------------------------------------------------------------------- contents

    def _download(self, place: Place) -> AsyncIterator[bytes]:
        address = f"{self._repo}/releases/assets/{place.items[-1].key}"
        return self._rest.stream(address, path=place.path, accept="application/octet-stream")

    async def _diff(self, place: Place) -> AsyncIterator[bytes]:
        try:
            blocks = self._rest.stream(f"{self._repo}/pulls/{place.items[0].key}", path=place.path, accept=DIFF)
            async with closing(blocks) as stream:
                async for block in stream:
                    yield block
        except OSError as error:
            if "answers 406" in (error.strerror or ""):
                words = "File too large: GitHub makes no diff of this size; see files.jsonl"
                raise fail(errno.EFBIG, place.path, words) from None
            raise

    def _checks(self, place: Place) -> AsyncIterator[bytes]:
        address = f"{self._repo}/commits/{place.data['head']['sha']}/check-runs"
        return json_lines(
            linked(self._rest, address, path=place.path, params={"per_page": 100}, pick=inside("check_runs"), key="id")
        )

    # ---------------------------------------------------------------------------------------------- changes

    async def _fresh_issue(self, place: Place) -> Place:
        return place._replace(items=(await self._issue(place, place.items[0].key),))

    async def _fresh_pull(self, place: Place) -> Place:
        return place._replace(items=(await self._pull(place, place.items[0].key),))

    async def _edit_issue(self, place: Place, old: bytes, new: bytes) -> None:
        """Send what differs. A pull request is an issue to this part of the API."""
        changed = front_matter.edited(place.path, old, new, EDITABLE)
        if not changed:
            return
        body: dict[str, object] = {
            name: await self._api_form(name, value, place.path) for name, value in changed.items()
        }
        await self._rest.send(
            "PATCH", f"{self._repo}/issues/{place.items[0].key}", path=place.path, json_body=body, repeatable=True
        )

    async def _api_form(self, name: str, value: Value, path: Path) -> object:
        """A value of the front matter as the API takes it."""
        match name:
            case "labels" | "assignees":
                if isinstance(value, list) or value is None:
                    return value or []
                raise fail(errno.EINVAL, path, f"Invalid argument: {name} is a list, as in [one, two]")
            case "state":
                if value in ("open", "closed"):
                    return value
                raise fail(errno.EINVAL, path, "Invalid argument: state is open or closed")
            case "milestone":
                return None if value is None else await self._milestone(str(value), path)
            case "title":
                if not isinstance(value, str) or not value.strip():
                    return str(value) if isinstance(value, int) else _no_title(path)
        return "" if value is None else value

    async def _milestone(self, title: str, path: Path) -> int:
        found: dict[str, int] = {}
        async for one in self._list("/milestones", path, "number", state="all"):
            found[one["title"]] = one["number"]
        if title not in found:
            choices = ", ".join(found) or "none"
            raise fail(errno.EINVAL, path, f"Invalid argument: no milestone {title}; there are: {choices}")
        return found[title]

    async def _new_issue(self, place: Place, letter: Letter) -> str:
        if not letter.subject.strip():
            raise fail(errno.EINVAL, place.path, "a new issue needs a title: -t TITLE")
        _without_attachments(place, letter)
        body = {"title": letter.subject, "body": letter.body.decode("utf-8", "replace")}
        answer = await self._rest.send("POST", f"{self._repo}/issues", path=place.path, json_body=body)
        return str(answer.json()["html_url"])

    async def _comment(self, place: Place, letter: Letter) -> str:
        if letter.subject:
            raise fail(errno.EINVAL, place.path, "a comment has no title")
        _without_attachments(place, letter)
        body = {"body": letter.body.decode("utf-8", "replace")}
        address = f"{self._repo}/issues/{quote(place.items[0].key)}/comments"
        answer = await self._rest.send("POST", address, path=place.path, json_body=body)
        return str(answer.json()["html_url"])

    def batches(self, path: Path) -> bool:
        return path.under(Path("/code")) and path != "/code"

    async def apply(self, edits: Sequence[Edit]) -> None:
        """One commit of all edits below `/code`."""
        self._check_writable(edits[0].path)
        await self.code.apply([edit._replace(path=edit.path.below(Path("/code"))) for edit in edits])

    def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        return github_query(self._rest, self.config, path, text, values, limit, write)

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        self.code.forget()

    async def close(self) -> None:
        await super().close()
        await self.code.close()
        await self._rest.close()


# ----------------------------------------------------------------------------------------------------- rendering


def _is_issue(entry: Any) -> bool:
    """GitHub lists pull requests among the issues."""
    return "pull_request" not in entry


def _one(render: Callable[[Place], bytes]) -> Callable[[Place], AsyncIterator[bytes]]:
    async def read(place: Place) -> AsyncIterator[bytes]:
        yield render(place)

    return read


def _fields(entry: Any) -> dict[str, Value]:
    milestone = entry.get("milestone")
    return {
        "number": entry["number"],
        "title": entry["title"],
        "state": entry["state"],
        "labels": [label if isinstance(label, str) else str(label.get("name") or "") for label in entry["labels"]],
        "assignees": [user["login"] for user in entry.get("assignees") or ()],
        "milestone": milestone["title"] if milestone else None,
        "author": entry["user"]["login"] if entry.get("user") else None,
        "created_at": entry["created_at"],
        "url": entry["html_url"],
    }


def _text(fields: Fields, body: str | None) -> bytes:
    return encode(front_matter.render(fields, body or ""))


def _issue_text(place: Place) -> bytes:
    return _text(_fields(place.data), place.data.get(BODY))


def _pull_text(place: Place) -> bytes:
    pull = place.data
    fields = _fields(pull) | {
        "draft": bool(pull.get("draft")),
        "base": pull["base"]["ref"],
        "head": pull["head"]["label"] or pull["head"]["ref"],
        "merged_at": pull["merged_at"],
    }
    return _text(fields, pull.get(BODY))


def _release_text(place: Place) -> bytes:
    release = place.data
    fields: dict[str, Value] = {
        "tag": release["tag_name"], "name": release.get("name"), "draft": release["draft"],
        "prerelease": release["prerelease"], "author": release["author"]["login"],
        "published_at": release.get("published_at"), "url": release["html_url"],
    }  # fmt: skip
    return _text(fields, release.get(BODY))


def _no_title(path: Path) -> str:
    raise fail(errno.EINVAL, path, "Invalid argument: title is empty")


def _without_attachments(place: Place, letter: Letter) -> None:
    if letter.attachments:
        raise fail(
            errno.ENOTSUP, place.path, "GitHub takes no attachments through its API; commit the file, and link it"
        )
