"""Linear's GraphQL API for its mount: documents, errors and paging."""

from __future__ import annotations

import errno
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from ramet.backends.remote.http_client import wait_of
from ramet.backends.services.pages import by_cursor
from ramet.backends.services.rest import Answer, Rest, rate_limited, token_refused
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path

TEAM: Final = "id key name description private createdAt updatedAt organization { urlKey }"
ISSUE: Final = """id identifier title description priority priorityLabel estimate dueDate createdAt updatedAt
 completedAt url state { name type } assignee { displayName } creator { displayName } project { name }
 cycle { number name } parent { identifier } team { id key }
 labels(first: 25) { nodes { name } pageInfo { hasNextPage } }"""
COMMENT: Final = "id body createdAt updatedAt user { displayName } parent { id }"
PROJECT: Final = """id name description content priorityLabel progress startDate targetDate createdAt updatedAt url
 status { name } lead { displayName }"""
DOCUMENT: Final = "id title content createdAt updatedAt url creator { displayName } project { name }"
CYCLE: Final = "id number name description startsAt endsAt completedAt progress isActive createdAt updatedAt"
MEMBER: Final = "id name displayName email active admin guest timezone createdAt updatedAt"
PAGE: Final = "pageInfo { hasNextPage endCursor }"
OF_TEAM: Final = "filter: { team: { id: { eq: $team } } }"


def listing(call: str, node: str, *, of_team: bool = True, size: int = 100) -> str:
    """A query for pages of `call`, such as `cycles(filter: ...)`."""
    name, _, given = call.partition("(")
    given = f", {given[:-1]}" if given else ""
    team = "$team: ID!, " if of_team else ""
    call = f"{name}(first: {size}, after: $after{given})"
    return f"query({team}$after: String) {{ page: {call} {{ nodes {{ {node} }} {PAGE} }} }}"


_OF_ACCESSIBLE: Final = "{ accessibleTeams: { some: { id: { eq: $team } } } }"
# Ordered by creation: an issue that changes while pages are read keeps its place.
ISSUES: Final = listing(f"issues({OF_TEAM}, orderBy: createdAt)", ISSUE)
PROJECTS: Final = listing(f"projects(filter: {_OF_ACCESSIBLE})", PROJECT, size=50)
CYCLES: Final = listing(f"cycles({OF_TEAM})", CYCLE)
DOCUMENTS: Final = listing(
    f"documents(filter: {{ or: [{{ team: {{ id: {{ eq: $team }} }} }}, {{ project: {_OF_ACCESSIBLE} }}] }})",
    DOCUMENT,
    size=50,
)
MEMBERS: Final = f"""query($team: String!, $after: String) {{ team(id: $team) {{
 page: members(first: 100, after: $after) {{ nodes {{ {MEMBER} }} {PAGE} }} }} }}"""
TEAMS: Final = f"""query($filter: TeamFilter, $after: String) {{
 page: teams(first: 100, after: $after, filter: $filter) {{ nodes {{ {TEAM} }} {PAGE} }} }}"""
HITS: Final = f"""query($filter: IssueFilter!, $after: String) {{
 page: issues(first: 250, after: $after, filter: $filter) {{ nodes {{ identifier }} {PAGE} }} }}"""
SEARCH: Final = f"""query($term: String!, $after: String) {{
 page: searchIssues(first: 50, after: $after, term: $term, includeComments: true) {{
 nodes {{ identifier title url state {{ name }} team {{ key }} updatedAt }} {PAGE} }} }}"""
ONE_ISSUE: Final = f"""query($id: String!) {{ issue(id: $id) {{ {ISSUE}
 comments(first: 50) {{ nodes {{ {COMMENT} }} {PAGE} }} }} }}"""
COMMENTS: Final = f"""query($id: String!, $after: String) {{ team: issue(id: $id) {{
 page: comments(first: 100, after: $after) {{ nodes {{ {COMMENT} }} {PAGE} }} }} }}"""
LABELS: Final = f"""query($id: String!, $after: String) {{ team: issue(id: $id) {{
 page: labels(first: 250, after: $after) {{ nodes {{ name }} {PAGE} }} }} }}"""
ONE_PROJECT: Final = f"query($id: String!) {{ project(id: $id) {{ {PROJECT} }} }}"
ONE_DOCUMENT: Final = f"query($id: String!) {{ document(id: $id) {{ {DOCUMENT} }} }}"
ISSUE_ID: Final = "query($id: String!) { issue(id: $id) { id } }"
CHOICES: Final[Mapping[str, str]] = {
    "state": listing(f"workflowStates({OF_TEAM})", "id name", size=250),
    "labels": listing(
        "issueLabels(filter: { or: [{ team: { id: { eq: $team } } }, { team: { null: true } }] })", "id name", size=250
    ),
    "project": listing(f"projects(filter: {_OF_ACCESSIBLE})", "id name", size=250),
    "cycle": listing(f"cycles({OF_TEAM})", "id number name", size=250),
    "assignee": listing("users", "id name: displayName", of_team=False, size=250),
}
"""Queries for the names that a field may have."""
UPDATE_ISSUE: Final = (
    "mutation($id: String!, $input: IssueUpdateInput!) { issueUpdate(id: $id, input: $input) { success } }"
)
UPDATE_PROJECT: Final = (
    "mutation($id: String!, $input: ProjectUpdateInput!) { projectUpdate(id: $id, input: $input) { success } }"
)
UPDATE_DOCUMENT: Final = (
    "mutation($id: String!, $input: DocumentUpdateInput!) { documentUpdate(id: $id, input: $input) { success } }"
)
ARCHIVE: Final = "mutation($id: String!) { issueArchive(id: $id) { success } }"
CREATE_ISSUE: Final = "mutation($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { url } } }"
CREATE_COMMENT: Final = (
    "mutation($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { url } } }"
)
CREATE_DOCUMENT: Final = (
    "mutation($input: DocumentCreateInput!) { documentCreate(input: $input) { success document { url } } }"
)


class LinearAPI:
    """Operations against one endpoint."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest

    async def ask(
        self, document: str, path: Path, *, reads: bool = True, repeatable: bool = False, **given: Any
    ) -> Any:
        """The data of an operation, which is a query unless `reads` is False."""
        body = {"query": document, "variables": given}
        answer = await self.rest.send("POST", "", path=path, json_body=body, reads=reads, repeatable=repeatable)
        return answer.json()["data"]

    async def change(self, document: str, path: Path, *, repeatable: bool = False, **given: Any) -> Any:
        """The payload of a mutation; Linear can refuse one without an error."""
        (payload,) = (await self.ask(document, path, reads=False, repeatable=repeatable, **given)).values()
        if not payload["success"]:
            raise fail(errno.EIO, path, "Linear did not make the change")
        return payload

    def paged(self, document: str, path: Path, after: str | None = None, **given: Any) -> AsyncIterator[Any]:
        """The nodes of a connection that the document calls `page`; `after` is where the first page begins."""

        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            data = await self.ask(document, path, **given, after=cursor or after)
            found = (data if "page" in data else data["team"])["page"]
            return found["nodes"], following(found)

        return by_cursor(page, path)


def following(connection: Any) -> str | None:
    """The cursor of the next page."""
    about = connection["pageInfo"]
    return about["endCursor"] if about["hasNextPage"] else None


def judge(answer: Answer) -> OSError | None:
    """Linear tells its errors in the body, with status 200 or 400."""
    if answer.status not in (200, 400, 401, 403, 429):
        return None
    try:
        said = answer.json()
    except OSError:
        return None
    errors = said.get("errors") if isinstance(said, dict) else None
    if not isinstance(errors, list) or not errors or not isinstance(errors[0], dict):
        return None
    about = errors[0].get("extensions") or {}
    code, message = str(about.get("code", "")), str(errors[0].get("message", ""))
    words = " ".join(str(about.get("userPresentableMessage") or message).split())[:200]
    if code == "RATELIMITED":
        return rate_limited(answer.path, "Linear", _wait(answer.headers))
    if code == "AUTHENTICATION_ERROR":
        return token_refused(answer.path, f"Linear refuses the key: {words}")
    if code in ("FORBIDDEN", "FEATURE_NOT_ACCESSIBLE"):
        return fail(errno.EACCES, answer.path, f"Permission denied: Linear says {words}")
    if message.startswith("Entity not found"):
        return fail(errno.ENOENT, answer.path)
    if code in ("INTERNAL_SERVER_ERROR", "LOCK_TIMEOUT", "NETWORK_ERROR"):
        return unavailable(answer.path, f"Linear says {words}")
    return fail(errno.EINVAL, answer.path, f"Invalid argument: Linear says {words}")


def _wait(headers: Mapping[str, str]) -> float:
    """Seconds until a spent quota is filled again; Linear names the time in milliseconds."""
    waits = [wait_of(headers)]
    for quota in ("requests", "complexity"):
        reset = headers.get(f"x-ratelimit-{quota}-reset", "")
        if headers.get(f"x-ratelimit-{quota}-remaining") == "0" and reset.isascii() and reset.isdigit():
            waits.append(float(reset) / 1000 - time.time())
    return max(waits)
