"""Linear for the tests: its own GraphQL schema over teams in memory.

The schema is made from the types of `@linear/sdk`, so that a field, filter or variable that Linear does not have fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    build_schema,
    graphql_sync,
    parse,
    validate,
)
from graphql.execution.values import get_variable_values
from tests.support.descriptions import description, problems
from tests.support.service_fake import Call, Fake, Reply

KEY = "lin_api_hunter2hunter2"
MOST_COMPLEX = 10_000
"""Points of one query, as Linear's documentation counts them."""
SCALARS = {"Int", "Float", "String", "Boolean", "ID"}


def sdl_of(source: str) -> str:
    """The schema in GraphQL's language out of the TypeScript declarations of the SDK."""
    source = re.sub(r"/\*\*.*?\*/", "", source, flags=re.DOTALL)
    enums = {
        found[1]: re.findall(r'= "([^"]+)"', found[2])
        for found in re.finditer(r"^(?:declare )?enum (\w+) \{(.*?)^\}", source, re.DOTALL | re.MULTILINE)
    }
    unions = {
        found[1]: found[2].split(" | ")
        for found in re.finditer(r"^type (\w+) = ((?:\w+ \| )+\w+);", source, re.MULTILINE)
    }
    types = {
        found[1]: {
            name: (bool(optional), text)
            for name, optional, text in re.findall(r"^  (\w+)(\??): (.+?);$", found[2], re.MULTILINE)
        }
        for found in re.finditer(r"^type (\w+) = (?:\w+ & )*\{\n(.*?)^\};?", source, re.DOTALL | re.MULTILINE)
    }
    scalars: set[str] = set()
    known, out, todo = set(SCALARS), [], ["Query", "Mutation"]

    def spelled(text: str, nullable: bool) -> str:
        if found := re.fullmatch(r"(?:Input)?Maybe<(.*)>", text):
            return spelled(found[1], True)
        if found := re.fullmatch(r"Array<(.*)>", text):
            word = f"[{spelled(found[1], False)}]"
        elif found := re.fullmatch(r'Scalars\["(\w+)"\]', text):
            word = found[1]
            scalars.update({word} - SCALARS)
        else:
            word = text
            todo.append(word)
        return word if nullable else f"{word}!"

    while todo:
        name = todo.pop()
        if name in known:
            continue
        known.add(name)
        if name in enums:
            out.append(f"enum {name} {{ {' '.join(enums[name])} }}")
        elif name in unions:
            out.append(f"union {name} = {' | '.join(unions[name])}")
            todo += unions[name]
        elif name in types:
            given, lines = "__typename" not in types[name], []
            for field, (nullable, text) in types[name].items():
                if field != "__typename":
                    arguments = {} if given else types.get(f"{name}{field[0].upper()}{field[1:]}Args", {})
                    words = ", ".join(f"{one}: {spelled(kind, free)}" for one, (free, kind) in arguments.items())
                    lines.append(f"  {field}{f'({words})' if words else ''}: {spelled(text, nullable)}")
            out.append(f"{'input' if given else 'type'} {name} {{\n" + "\n".join(lines) + "\n}")
    return "\n".join([f"scalar {name}" for name in sorted(scalars)] + out)


@cache
def schema() -> GraphQLSchema | None:
    content = description("linear")
    return None if content is None else build_schema(sdl_of(content.decode()), assume_valid=True)


class LinearChecker:
    """Every operation must fit the schema, its variables too, and cost no more than Linear allows."""

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        if (method, path, query, kind) != ("POST", "/graphql", "", "application/json"):
            problems.append(f"{method} {path}?{query} {kind}: not an operation")
            return
        body = json.loads(sent)
        problems.extend(f"{body['query']}: {words}" for words in complaints(body["query"]))
        found = schema()
        if found is not None and not complaints(body["query"]):
            (operation,) = operations(body["query"])
            coerced = get_variable_values(found, operation.variable_definitions or (), body["variables"])
            if isinstance(coerced, list):
                problems.extend(f"{body['query']}: {error.message}" for error in coerced)


def operations(text: str) -> list[OperationDefinitionNode]:
    return [one for one in parse(text).definitions if isinstance(one, OperationDefinitionNode)]


@cache
def complaints(text: str) -> tuple[str, ...]:
    found = schema()
    if found is None:
        return ()
    try:
        words = [error.message for error in validate(found, parse(text))]
        points = sum(cost(one.selection_set) for one in operations(text))
    except GraphQLError as error:
        return (error.message,)
    return (*words, *([f"costs {points:.0f} points"] if points > MOST_COMPLEX else ()))


def cost(selection: SelectionSetNode | None) -> float:
    """Linear's points: 0.1 for a property, 1 for an object, and a connection multiplies what is inside."""
    points = 0.0
    for field in selection.selections if selection is not None else ():
        if isinstance(field, FieldNode):
            sizes = [one.value for one in field.arguments or () if one.name.value == "first"]
            times = int(sizes[0].value) if sizes and isinstance(sizes[0], IntValueNode) else 1
            points += 0.1 if field.selection_set is None else 1 + times * cost(field.selection_set)
    return points


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value == wanted,
    "in": lambda value, wanted: value in wanted,
    "null": lambda value, wanted: (value is None) == wanted,
    "containsIgnoreCase": lambda value, wanted: wanted.lower() in (value or "").lower(),
    "some": lambda value, wanted: any(matches(wanted, one) for one in value),
    "or": lambda value, wanted: any(matches(one, value) for one in wanted),
}


def matches(wanted: dict[str, Any], value: Any) -> bool:
    """Whether a thing fits a filter; lists of things are under their name with an underscore."""
    for key, inner in wanted.items():
        if key in COMPARE:
            if not COMPARE[key](value, inner):
                return False
        elif value is None or not matches(inner, value.get(f"_{key}", value.get(key))):
            return False
    return True


class LinearFake(Fake):
    def __init__(self) -> None:
        super().__init__(LinearChecker())
        self.number = 0
        self.page = 250
        organization = {"urlKey": "acme"}
        self.teams = [
            self.thing(key="ENG", name="Engineering", description=None, private=False, organization=organization),
            self.thing(key="OPS", name="Operations", description=None, private=False, organization=organization),
        ]
        self.users = [self._user("ada", "Ada Lovelace"), self._user("bob", "Bob")]
        for team in self.teams:
            team["members"] = lambda info, **given: self._connection(self.users, given)
        self.states = [
            self.thing(name=name, type=kind, team=team)
            for team in self.teams
            for name, kind in (("Todo", "unstarted"), ("In Progress", "started"), ("Done", "completed"))
        ]
        self.labels = [self.thing(name=name, team=team) for name, team in (("bug", self.teams[0]), ("web", None))]
        self.projects = [
            self.thing(
                name="Launch/Q3", description="Ship it", content="The plan.", priorityLabel="High", progress=0.5,
                startDate=None, targetDate="2026-09-01", url="https://linear.app/acme/project/launch-1",
                status={"name": "Started"}, lead=self.users[0], _accessibleTeams=[self.teams[0]],
            )
        ]  # fmt: skip
        self.cycles = [
            self.thing(
                name=None, number=7.0, description=None, startsAt="2026-05-01T00:00:00.000Z",
                endsAt="2026-05-14T00:00:00.000Z", completedAt=None, progress=0.25, isActive=True, team=self.teams[0],
            )
        ]  # fmt: skip
        self.documents = [
            self.thing(
                title="Design", content="# Design\n\nCaches everywhere.", url="https://linear.app/acme/document/d-1",
                creator=self.users[1], project=self.projects[0], team=None,
            )
        ]  # fmt: skip
        self.issues: list[dict[str, Any]] = []
        self.issue("Flaky test", "A race condition in the *cache*.", labels=self.labels[:1], assignee=self.users[0])
        self.route("POST", "/graphql", self._execute)

    # ------------------------------------------------------------------------------------------------- things

    def thing(self, **given: Any) -> dict[str, Any]:
        self.number += 1
        when = f"2026-05-01T10:00:00.{self.number % 1000:03}Z"
        return {
            "id": f"00000000-0000-4000-8000-{self.number:012x}", "createdAt": when, "updatedAt": when, **given
        }  # fmt: skip

    def _user(self, name: str, full: str) -> dict[str, Any]:
        return self.thing(
            displayName=name,
            name=full,
            email=f"{name}@example.org",
            active=True,
            admin=False,
            guest=False,
            timezone="UTC",
        )

    def issue(self, title: str, description: str | None = None, team: int = 0, **given: Any) -> dict[str, Any]:
        home = self.teams[team]
        number = 41 + sum(one["team"] is home for one in self.issues)
        identifier = f"{home['key']}-{number + 1}"
        made = self.thing(
            identifier=identifier, title=title, description=description, priority=2.0, priorityLabel="High",
            estimate=3.0, dueDate=None, completedAt=None, branchName=f"ada/{identifier.lower()}",
            url=f"https://linear.app/acme/issue/{identifier}/{re.sub(r'[^a-z]+', '-', title.lower())}",
            state=self.states[3 * team], assignee=None, creator=self.users[1], project=None, cycle=None, parent=None,
            team=home,
        ) | given  # fmt: skip
        made["_labels"], made["_comments"] = list(made.pop("labels", ())), []
        made["labels"] = lambda info, **given: self._connection(made["_labels"], given)
        made["comments"] = lambda info, **given: self._connection(made["_comments"], given)
        self.issues.append(made)
        return made

    def comment(self, issue: dict[str, Any], body: str, user: int = 0) -> dict[str, Any]:
        url = f"{issue['url']}#comment-{self.number}"
        made = self.thing(body=body, user=self.users[user], parent=None, url=url, issue=issue)
        issue["_comments"].append(made)
        return made

    # ------------------------------------------------------------------------------------------------ serving

    def _execute(self, call: Call) -> Reply:
        if call.headers.get("authorization") != KEY:
            return failed(401, "Authentication required, not authenticated", "AUTHENTICATION_ERROR")
        body, found = call.json, schema()
        assert found is not None
        if words := complaints(body["query"]):
            return failed(400, words[0], "GRAPHQL_VALIDATION_FAILED")
        result = graphql_sync(found, body["query"], self._root(), variable_values=body["variables"])
        if result.errors:
            error = result.errors[0]
            return failed(200, error.message, (error.extensions or {}).get("code", "INTERNAL_SERVER_ERROR"))
        return Reply(200, {"data": result.data})

    def _connection(self, entries: list[Any], given: dict[str, Any]) -> dict[str, Any]:
        wanted = given.get("filter") or {}
        kept = [one for one in entries if matches(wanted, one)]
        ids = [one["id"] for one in kept]
        start = ids.index(given["after"]) + 1 if given.get("after") else 0
        found = kept[start : start + min(self.page, given.get("first", 50))]
        more = start + len(found) < len(kept)
        return {"nodes": found, "pageInfo": {"hasNextPage": more, "endCursor": found[-1]["id"] if found else None}}

    def _one(self, entries: list[Any], id: str) -> Any:
        for one in entries:
            if id in (one["id"], one.get("identifier")):
                return one
        raise GraphQLError("Entity not found: Issue", extensions={"code": "INPUT_ERROR"})

    def _root(self) -> dict[str, Any]:
        def listed(entries: list[Any]) -> Callable[..., Any]:
            return lambda info, **given: self._connection(entries, given)

        def one(entries: list[Any]) -> Callable[..., Any]:
            return lambda info, id: self._one(entries, id)

        live = sorted(
            (one for one in self.issues if not one.get("archivedAt")), key=lambda one: one["id"], reverse=True
        )
        return {
            "viewer": self.users[0], "teams": listed(self.teams), "team": one(self.teams), "issues": listed(live),
            "issue": one(self.issues), "projects": listed(self.projects), "project": one(self.projects),
            "cycles": listed(self.cycles), "documents": listed(self.documents), "document": one(self.documents),
            "users": listed(self.users), "workflowStates": listed(self.states), "issueLabels": listed(self.labels),
            "searchIssues": self._search, "issueUpdate": self._update_issue, "issueCreate": self._create_issue,
            "issueArchive": self._archive, "commentCreate": self._comment, "documentCreate": self._create_document,
            "documentUpdate": lambda info, id, input: self._update(self.documents, "document", id, input),
            "projectUpdate": lambda info, id, input: self._update(self.projects, "project", id, input),
        }  # fmt: skip

    def _search(self, info: Any, term: str, **given: Any) -> dict[str, Any]:
        return self._connection([one for one in self.issues if term.lower() in one["title"].lower()], given)

    def _update_issue(self, info: Any, id: str, input: dict[str, Any]) -> dict[str, Any]:
        issue = self._one(self.issues, id)
        for field, entries in (
            ("stateId", self.states), ("assigneeId", self.users), ("projectId", self.projects),
            ("cycleId", self.cycles), ("parentId", self.issues),
        ):  # fmt: skip
            if field in input:
                value = input.pop(field)
                issue[field[:-2]] = None if value is None else self._one(entries, value)
        if "labelIds" in input:
            issue["_labels"] = [self._one(self.labels, one) for one in input.pop("labelIds")]
        if "priority" in input:
            names = ("No priority", "Urgent", "High", "Medium", "Low")
            issue["priorityLabel"] = names[input["priority"]]
        issue.update(input)
        self._touch(issue)
        return {"success": True, "issue": issue}

    def _update(self, entries: list[Any], name: str, id: str, input: dict[str, Any]) -> dict[str, Any]:
        found = self._one(entries, id)
        if "leadId" in input:
            lead = input.pop("leadId")
            found["lead"] = None if lead is None else self._one(self.users, lead)
        found.update(input)
        self._touch(found)
        return {"success": True, name: found}

    def _touch(self, thing: dict[str, Any]) -> None:
        self.number += 1
        thing["updatedAt"] = f"2026-05-02T10:00:00.{self.number % 1000:03}Z"

    def _create_issue(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        team = [one["id"] for one in self.teams].index(input["teamId"])
        return {"success": True, "issue": self.issue(input["title"], input["description"], team)}

    def _archive(self, info: Any, id: str) -> dict[str, Any]:
        self._one(self.issues, id)["archivedAt"] = "2026-05-03T10:00:00.000Z"
        return {"success": True}

    def _comment(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "comment": self.comment(self._one(self.issues, input["issueId"]), input["body"])}

    def _create_document(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        made = self.thing(
            title=input["title"], content=input["content"], url="https://linear.app/acme/document/new",
            creator=self.users[0], project=None, team=self._one(self.teams, input["teamId"]),
        )  # fmt: skip
        self.documents.append(made)
        return {"success": True, "document": made}


def failed(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Reply:
    said = {"errors": [{"message": message, "extensions": {"code": code, "userPresentableMessage": message}}]}
    return Reply(status, said, headers or {})
