"""`LinearResource`: the teams of a Linear workspace as files: issues, projects, cycles, documents.

/teams/<KEY>/issues/<KEY-n>/{issue.md,issue.json,comments.jsonl}    fields above the text; edits are sent
/teams/<KEY>/{projects,documents}/<name>__<id>.md
/teams/<KEY>/{cycles,members}/<name>__<id>.json
/teams/<KEY>/issues.jsonl                                           all issues, one a line
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from ramet.backends.services import front_matter
from ramet.backends.services.auth import TokenAuth, TokenSource
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import (
    among,
    digest,
    fixed,
    json_line,
    json_lines,
    json_object,
    json_text,
    letter_text,
    pretty_json,
)
from ramet.backends.services.front_matter import BODY, Value
from ramet.backends.services.linear import api
from ramet.backends.services.linear.texts import (
    CYCLES,
    DOCUMENTS,
    FIXED_WORDS,
    MEMBERS,
    PROJECTS,
    Family,
    cycle_name,
    day_of,
    fields_of,
    issue_text,
    priority_of,
    rendered,
    title_of,
)
from ramet.backends.services.names import key_last, time_ns, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Node, Place, Rendered
from ramet.backends.services.pages import first_of
from ramet.backends.services.rest import Rest, patiently
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

EDITABLE: Final = (
    "title", "state", "assignee", "priority", "labels", "estimate", "dueDate", "project", "cycle", "parent",
)  # fmt: skip
PROJECT_EDITABLE: Final = ("name", "description", "startDate", "targetDate", "lead")
ISSUE_FILES: Final = ("issue.md", "issue.json", "comments.jsonl")
UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TEAM: Final = re.compile(r"([A-Za-z0-9]{1,32})(?:__.*)?", re.DOTALL)
_ISSUE: Final = re.compile(r"([A-Za-z0-9]{1,32}-\d{1,9})(?:__.*)?", re.DOTALL)
_OPERATION: Final = re.compile(r"\s*(?:\{|(?:query|mutation|fragment)\b[^{]*\{)")
_STRING: Final = re.compile(r'"""(?:[^"]|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"')
_WORDS: Final = re.compile(r"[^\W\d](?:[^\W\d]|[ '.!?()/-])*[^\W\d_-]")
"""Texts that only stand in one value: without quotes, list and field separators, and without digits."""
README: Final = """\
# Linear

    teams/<KEY>/                        one directory for each team, such as ENG
        issues/<KEY-n>/issue.md         title, state, assignee, priority, labels, ...; then the description
        issues/<KEY-n>/comments.jsonl   its comments, one a line
        issues/<KEY-n>/issue.json       what Linear says of it
        issues.jsonl                    all issues that are not archived, one a line, newest first
        projects/<name>__<id>.md  documents/<title>__<id>.md
        cycles/<name>__<id>.json  members/<name>__<id>.json  team.json

- Find: `jq -r 'select(.state=="In Progress").identifier' teams/ENG/issues.jsonl`
- `grep -ril 'race condition' teams/ENG` asks Linear which issues to read; --exclude='*.jsonl' saves reading twice.
- Edit: `sed -i 's/^state: .*/state: Done/' teams/ENG/issues/ENG-42/issue.md`. Only what differs is sent. Names are
  those of Linear; a wrong one is refused with a list of what there is. Projects and documents are edited likewise.
- Comment: `post teams/ENG/issues/ENG-42 -m 'Shipped'`. New issue: `post teams/ENG/issues -t 'Title' < body.md`.
  New document: `post teams/ENG/documents -t 'Title' < body.md`.
- `rmdir teams/ENG/issues/ENG-42` archives the issue.
- Search Linear: `query . 'race condition'`. Anything else: `query . '{ issue(id: "ENG-42") { branchName } }'`;
  a mutation takes `query -w`, variables are a JSON object: `query -w . 'mutation($id: String!) {...}' '{"id": "..."}'`.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearConfig(ServiceConfig):
    """A workspace of Linear, as the owner of a key sees it."""

    kind: ClassVar[str] = "linear"
    secrets: ClassVar[tuple[str, ...]] = ("api_key",)

    api_key: str | None = None
    """A personal API key (`lin_api_`), or an OAuth token."""
    api_key_env: str | None = None
    """The environment variable that holds the key."""
    base_url: str = "https://api.linear.app/graphql"
    """The address of the API."""
    workspace: str | None = None
    """The workspace that the key must be for, as in its address; another one is refused."""
    team_ids: tuple[str, ...] = ()
    """Teams that are shown, by key or id; all when not given."""
    search: bool = True
    """Whether Linear finds the issues for a recursive `grep`; otherwise every issue is read."""


class _Issue(NamedTuple):
    fields: Any
    comments: Any
    """The first page of its comments, if it was asked for."""


class LinearResource(Service):
    """`LinearResource(LinearConfig(api_key="lin_api_..."))`. `token` is a function that returns the key."""

    config: LinearConfig

    def __init__(self, config: LinearConfig, *, token: TokenSource | None = None) -> None:
        auth = TokenAuth(token or (lambda: config.secret("api_key")), _scheme)
        self._rest = Rest.of(config, auth, judge=api.judge)
        self._api = api.LinearAPI(self._rest)
        team, issue = "/teams/*", "/teams/*/issues/*"
        nodes: list[Node] = [
            Rendered("/README.md", fixed(README)),
            Collection("/teams", self._teams, self._team, _key(_TEAM)),
            Rendered(f"{team}/team.json", pretty_json),
            Asked(f"{team}/issues.jsonl", lambda place: json_lines(self._flat(place))),
            Collection(f"{team}/issues", self._issues, self._issue, _key(_ISSUE), self._archive),
            Rendered(f"{issue}/issue.md", issue_text, self._edit_issue, self._fresh_issue),
            Rendered(f"{issue}/issue.json", lambda place: json_text(place.data.fields)),
            Asked(f"{issue}/comments.jsonl", lambda place: json_lines(self._comments(place))),
            Inbox(f"{team}/issues", self._new_issue),
            Inbox(issue, self._comment),
            Inbox(f"{team}/documents", self._new_document),
        ]
        for kind, edit in (
            (PROJECTS, self._edit_project), (DOCUMENTS, self._edit_document), (CYCLES, None), (MEMBERS, None),
        ):  # fmt: skip
            items = partial(self._things, kind)
            nodes += [
                Collection(f"{team}/{kind.name}", items, partial(among, items), key_last(UUID, kind.extension)),
                Rendered(
                    f"{team}/{kind.name}/*", partial(rendered, kind), edit, partial(self._fresh_thing, kind)
                ),
            ]  # fmt: skip
        super().__init__(config, nodes)

    # ------------------------------------------------------------------------------------------ collections

    async def _teams(self, place: Place) -> AsyncIterator[Item]:
        wanted = self.config.team_ids
        ids = [one for one in wanted if re.fullmatch(UUID, one)]
        either = [{"id": {"in": ids}}, {"key": {"in": [one.upper() for one in wanted if one not in ids]}}]
        async with closing(self._api.paged(api.TEAMS, place.path, filter={"or": either} if wanted else {})) as teams:
            async for team in teams:
                yield self._as_team(team, place.path)

    async def _team(self, place: Place, key: str) -> Item:
        found = self._api.paged(api.TEAMS, place.path, filter={"key": {"eq": key}})
        async with closing(found) as teams:
            async for team in teams:
                if not self.config.team_ids or {team["id"], team["key"]} & set(self.config.team_ids):
                    return self._as_team(team, place.path)
        raise fail(errno.ENOENT, place.path)

    def _as_team(self, team: Any, path: Path) -> Item:
        workspace = team["organization"]["urlKey"]
        if self.config.workspace not in (None, workspace):
            words = f"Permission denied: the key is for the workspace {workspace}, not for {self.config.workspace}"
            raise fail(errno.EACCES, path, words)
        return Item(team["key"], team["key"], team, self._directory(team["updatedAt"]))

    def _directory(self, changed: str) -> Stat:
        return Stat(Kind.DIR, None, time_ns(changed), None, self.config.ttl)

    async def _entries(self, place: Place) -> AsyncIterator[Any]:
        """The issues of a team with all their labels."""
        async with closing(self._api.paged(api.ISSUES, place.path, team=place.items[0].data["id"])) as issues:
            async for issue in issues:
                yield await self._whole(issue, place.path)

    async def _whole(self, issue: Any, path: Path) -> Any:
        """An issue with all labels, and an address without its title, which changes."""
        if issue["labels"]["pageInfo"]["hasNextPage"]:
            found = [label async for label in self._api.paged(api.LABELS, path, id=issue["id"])]
            issue["labels"] = {"nodes": found}
        issue["labels"].pop("pageInfo", None)
        head, found, _ = issue["url"].partition(f"/{issue['identifier']}")
        issue["url"] = head + found
        return issue

    async def _issues(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._entries(place)) as issues:
            async for issue in issues:
                yield self._as_issue(issue)

    async def _issue(self, place: Place, key: str) -> Item:
        found = (await self._api.ask(api.ONE_ISSUE, place.path, id=key))["issue"]
        if found["identifier"] != key or found["team"]["key"] != place.items[0].key:
            raise fail(errno.ENOENT, place.path, f"No such file or directory: {key} is now {found['identifier']}")
        comments = found.pop("comments")
        return self._as_issue(await self._whole(found, place.path), comments)

    def _as_issue(self, issue: Any, comments: Any = None) -> Item:
        about = self._directory(issue["updatedAt"])
        return Item(issue["identifier"], issue["identifier"], _Issue(issue, comments), about)

    async def _flat(self, place: Place) -> AsyncIterator[Any]:
        async with closing(self._entries(place)) as issues:
            async for issue in issues:
                yield {**fields_of(issue), "updatedAt": issue["updatedAt"], "description": issue["description"]}

    async def _comments(self, place: Place) -> AsyncIterator[Any]:
        known, after = place.data.comments, None
        if known is not None:
            for comment in known["nodes"]:
                yield comment
            after = api.following(known)
            if after is None:
                return
        found = self._api.paged(api.COMMENTS, place.path, after, id=place.data.fields["id"])
        async with closing(found) as comments:
            async for comment in comments:
                yield comment

    async def _things(self, kind: Family, place: Place) -> AsyncIterator[Item]:
        async with closing(self._api.paged(kind.listing, place.path, team=place.items[0].data["id"])) as things:
            async for thing in things:
                yield self._as_thing(kind, thing)

    def _as_thing(self, kind: Family, thing: Any) -> Item:
        content = kind.render(thing)
        stat = Stat(Kind.FILE, len(content), time_ns(thing["updatedAt"]), digest(content), self.config.ttl)
        title = thing[kind.title] or cycle_name(thing)
        return Item(thing["id"], f"{title_name(title)}__{thing['id']}{kind.extension}", thing, stat)

    # ---------------------------------------------------------------------------------------------- changes

    async def _fresh_issue(self, place: Place) -> Place:
        return place._replace(items=(place.items[0], await self._issue(place, place.items[1].key)))

    async def _fresh_thing(self, kind: Family, place: Place) -> Place:
        (found,) = (await self._api.ask(kind.one, place.path, id=place.items[1].key)).values()
        return place._replace(items=(place.items[0], self._as_thing(kind, found)))

    async def _edit_issue(self, place: Place, old: bytes, new: bytes) -> None:
        changed = front_matter.edited(place.path, old, new, EDITABLE)
        given: dict[str, object] = {}
        for name, value in changed.items():
            field, sent = await self._sent(name, value, place)
            given[field] = sent
        if given:
            await self._update(api.UPDATE_ISSUE, place, place.data.fields["id"], given)

    async def _edit_project(self, place: Place, old: bytes, new: bytes) -> None:
        changed = front_matter.edited(place.path, old, new, PROJECT_EDITABLE)
        given: dict[str, object] = {}
        for name, value in changed.items():
            match name:
                case "lead":
                    (given["leadId"],) = await self._ids("assignee", [value], place) if value else (None,)
                case "startDate" | "targetDate":
                    given[name] = day_of(name, value, place.path)
                case "name":
                    given[name] = title_of(value, place.path)
                case _:
                    given["content" if name == BODY else name] = "" if value is None else str(value)
        if given:
            await self._update(api.UPDATE_PROJECT, place, place.items[1].key, given)

    async def _edit_document(self, place: Place, old: bytes, new: bytes) -> None:
        changed = front_matter.edited(place.path, old, new, ("title",))
        given = {
            "content" if name == BODY else name: value if name == BODY else title_of(value, place.path)
            for name, value in changed.items()
        }
        if given:
            await self._update(api.UPDATE_DOCUMENT, place, place.items[1].key, given)

    async def _update(self, document: str, place: Place, id: str, given: Mapping[str, object]) -> None:
        await self._api.change(document, place.path, repeatable=True, id=id, input=given)

    async def _sent(self, name: str, value: Value, place: Place) -> tuple[str, object]:
        """A field of the front matter as Linear takes it."""
        match name:
            case "title":
                return name, title_of(value, place.path)
            case "priority":
                return name, priority_of(value, place.path)
            case "labels":
                if not isinstance(value, list) and value is not None:
                    raise fail(errno.EINVAL, place.path, "Invalid argument: labels is a list, as in [one, two]")
                return "labelIds", await self._ids(name, value or [], place)
            case "estimate":
                if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                    raise fail(errno.EINVAL, place.path, "Invalid argument: estimate is a number")
                return name, value
            case "dueDate":
                return name, day_of(name, value, place.path)
            case "parent":
                return "parentId", None if value is None else await self._parent(str(value), place.path)
            case "state" if value is None:
                raise fail(errno.EINVAL, place.path, "Invalid argument: state is empty")
            case "state" | "assignee" | "project" | "cycle":
                return f"{name}Id", None if value is None else (await self._ids(name, [value], place))[0]
        return "description", "" if value is None else value

    async def _ids(self, kind: str, names: Sequence[Value], place: Place) -> list[str]:
        given = {} if kind == "assignee" else {"team": place.items[0].data["id"]}
        there: dict[str, list[str]] = {}
        async for one in self._api.paged(api.CHOICES[kind], place.path, **given):
            there.setdefault(one["name"] or cycle_name(one), []).append(one["id"])
        found = []
        for name in map(str, names):
            ids = there.get(name) or [
                id for other in there if other.casefold() == name.casefold() for id in there[other]
            ]
            if not ids:
                choices = ", ".join(sorted(there)[:40]) + (", ..." if len(there) > 40 else "")
                words = f"Invalid argument: no {kind} {name}; there are: {choices or 'none'}"
                raise fail(errno.EINVAL, place.path, words)
            if len(ids) > 1:
                words = f"Invalid argument: there are {len(ids)} of {kind} {name}; change it in Linear"
                raise fail(errno.EINVAL, place.path, words)
            found += ids
        return found

    async def _parent(self, identifier: str, path: Path) -> str:
        try:
            return str((await self._api.ask(api.ISSUE_ID, path, id=identifier))["issue"]["id"])
        except FileNotFoundError:
            raise fail(errno.EINVAL, path, f"Invalid argument: parent is no issue: {identifier}") from None

    async def _archive(self, place: Place) -> None:
        await self._api.change(api.ARCHIVE, place.path, repeatable=True, id=place.data.fields["id"])

    # ---------------------------------------------------------------------------------------------- posting

    async def _new_issue(self, place: Place, letter: Letter) -> str:
        text = letter_text(letter, place.path, "a new issue", titled=True)
        given = {"teamId": place.items[0].data["id"], "title": letter.subject, "description": text}
        return str((await self._api.change(api.CREATE_ISSUE, place.path, input=given))["issue"]["url"])

    async def _comment(self, place: Place, letter: Letter) -> str:
        given = {"issueId": place.data.fields["id"], "body": letter_text(letter, place.path, "a comment")}
        return str((await self._api.change(api.CREATE_COMMENT, place.path, input=given))["comment"]["url"])

    async def _new_document(self, place: Place, letter: Letter) -> str:
        text = letter_text(letter, place.path, "a new document", titled=True)
        given = {"teamId": place.items[0].data["id"], "title": letter.subject, "content": text}
        return str((await self._api.change(api.CREATE_DOCUMENT, place.path, input=given))["document"]["url"])

    # -------------------------------------------------------------------------------------------- searching

    async def search(self, path: Path, text: str, *, fold: bool = False) -> AsyncIterator[Path]:
        """Every file that may hold the text: of the issues, those that Linear finds; of the rest, all.

        A text that our files may hold although no searched field does is refused: then all issues are read.
        """
        depth = len(path.parts)
        if not self.config.search or _WORDS.fullmatch(text) is None or re.fullmatch("[a-fA-F-]+", text):
            raise fail(errno.ENOTSUP, path)
        if depth > 3 or (depth == 3 and path.name != "issues") or (depth and path.parts[0] != "teams"):
            raise fail(errno.ENOTSUP, path)
        if depth == 0:
            yield path / "README.md"
        if depth >= 2:
            teams = [path if depth == 2 else path.parent]
        else:
            above = path if depth else path / "teams"
            teams = [above / name async for name, _ in self.scan(above)]
        for team in teams:
            hits = await self._search_team(team, text)
            for identifier in hits:
                for file in ISSUE_FILES:
                    yield team / "issues" / identifier / file
            if depth == 3:
                return
            yield team / "team.json"
            if hits:
                yield team / "issues.jsonl"
            for kind in (PROJECTS, DOCUMENTS, CYCLES, MEMBERS):
                async for file, _ in self.scan(team / kind.name):
                    yield team / kind.name / file

    async def _search_team(self, at: Path, text: str) -> list[str]:
        about = (await self._find(at)).place.data
        address = f"https://linear.app/{about['organization']['urlKey']}/issue/{about['key']}-"
        if text.casefold() in "\n".join((api.ISSUE, api.COMMENT, FIXED_WORDS, address)).casefold():
            raise fail(errno.ENOTSUP, at)
        within = {"containsIgnoreCase": text}
        person, name = {"displayName": within}, {"name": within}
        comments = {"comments": {"some": {"or": [{"body": within}, {"user": person}]}}}
        either = [
            {"title": within}, {"description": within}, comments, {"state": name}, {"assignee": person},
            {"creator": person}, {"labels": {"some": name}}, {"project": name}, {"cycle": name},
            {"parent": {"team": {"key": within}}},
        ]  # fmt: skip
        wanted = {"team": {"id": {"eq": about["id"]}}, "or": either}
        return [issue["identifier"] async for issue in self._api.paged(api.HITS, at, filter=wanted)]

    # --------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """An operation of GraphQL with its variables as JSON, or words for Linear's search of issues."""
        if _OPERATION.match(text) is not None:
            changes = re.search(r"\bmutation\b", _STRING.sub("", text)) is not None
            if changes and not write:
                raise fail(errno.EROFS, path, "a mutation changes the service; that takes -w")
            if changes:
                self._check_writable(path)
            given = json_object(values[0], path) if values else {}
            yield json_line(await patiently(partial(self._api.ask, text, path, reads=not changes, **given)))
            return
        if values:
            raise fail(errno.EINVAL, path, "a search takes no values; quote it as one word")
        async with closing(json_lines(first_of(self._hits(text, path), limit))) as lines:
            async for block in lines:
                yield block

    async def _hits(self, text: str, path: Path) -> AsyncIterator[Any]:
        async with closing(self._api.paged(api.SEARCH, path, term=text)) as found:
            async for hit in found:
                yield {"path": f"teams/{hit['team']['key']}/issues/{hit['identifier']}/issue.md", **hit}

    async def close(self) -> None:
        await super().close()
        await self._rest.close()


# ----------------------------------------------------------------------------------------------------- rendering


def _scheme(key: str) -> str:
    """A personal key is sent bare, a token of OAuth as a bearer."""
    return "" if key.startswith("lin_api_") else "Bearer"


def _key(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    def find(name: str) -> str | None:
        found = pattern.fullmatch(name)
        return found[1].upper() if found is not None else None

    return find
