"""What files of Linear's things hold, and values of front matter as Linear takes them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import date
from typing import Any, Final, NamedTuple

from ramet.backends.services import front_matter
from ramet.backends.services.contents import json_text
from ramet.backends.services.front_matter import Value
from ramet.backends.services.linear import api
from ramet.backends.services.nodes import Place
from ramet.core.errors import fail
from ramet.core.paths import Path, encode

PRIORITIES: Final = ("No priority", "Urgent", "High", "Medium", "Low")


class Family(NamedTuple):
    """A directory of a team with one file for each thing."""

    name: str
    listing: str
    title: str
    """The field that names a thing."""
    extension: str
    render: Callable[[Any], bytes]
    one: str = ""
    """Ask for one thing by its id, before an edit."""


def named(found: Any, field: str = "name") -> str | None:
    return found[field] if found else None


def cycle_name(cycle: Any) -> str:
    return str(cycle.get("name") or f"Cycle {cycle['number']:g}")


def fields_of(issue: Any) -> dict[str, Value]:
    estimate = issue["estimate"]
    return {
        "identifier": issue["identifier"],
        "title": issue["title"],
        "state": issue["state"]["name"],
        "assignee": named(issue["assignee"], "displayName"),
        "priority": issue["priorityLabel"],
        "labels": [label["name"] for label in issue["labels"]["nodes"]],
        "estimate": None if estimate is None else round(estimate),
        "dueDate": issue["dueDate"],
        "project": named(issue["project"]),
        "cycle": cycle_name(issue["cycle"]) if issue["cycle"] else None,
        "parent": named(issue["parent"], "identifier"),
        "creator": named(issue["creator"], "displayName"),
        "createdAt": issue["createdAt"],
        "url": issue["url"],
    }


def issue_text(place: Place) -> bytes:
    issue = place.data.fields
    return encode(front_matter.render(fields_of(issue), issue["description"] or ""))


def rendered(kind: Family, place: Place) -> bytes:
    return kind.render(place.data)


def project_text(project: Any) -> bytes:
    fields: dict[str, Value] = {
        "name": project["name"], "description": project["description"], "status": project["status"]["name"],
        "priority": project["priorityLabel"], "progress": f"{project['progress']:.0%}",
        "lead": named(project["lead"], "displayName"), "startDate": project["startDate"],
        "targetDate": project["targetDate"], "createdAt": project["createdAt"], "url": project["url"],
    }  # fmt: skip
    return encode(front_matter.render(fields, project["content"] or ""))


def document_text(document: Any) -> bytes:
    fields: dict[str, Value] = {
        "title": document["title"], "project": named(document["project"]),
        "creator": named(document["creator"], "displayName"), "createdAt": document["createdAt"],
        "url": document["url"],
    }  # fmt: skip
    return encode(front_matter.render(fields, document["content"] or ""))


PROJECTS: Final = Family("projects", api.PROJECTS, "name", ".md", project_text, api.ONE_PROJECT)
DOCUMENTS: Final = Family("documents", api.DOCUMENTS, "title", ".md", document_text, api.ONE_DOCUMENT)
CYCLES: Final = Family("cycles", api.CYCLES, "name", ".json", json_text)
MEMBERS: Final = Family("members", api.MEMBERS, "displayName", ".json", json_text)
FIXED_WORDS: Final = "\n".join(
    (*PRIORITIES, "true false null triage backlog unstarted started completed canceled duplicate", "Cycle ")
)
"""Words that stand in files of issues and in no field that is searched."""


def title_of(value: Value, path: Path) -> str:
    if value is None or not str(value).strip():
        raise fail(errno.EINVAL, path, "Invalid argument: the title is empty")
    return str(value)


def priority_of(value: Value, path: Path) -> int:
    names = [name.casefold() for name in PRIORITIES]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return value
    if value is None or str(value).casefold() in names:
        return names.index(str(value).casefold()) if value is not None else 0
    raise fail(errno.EINVAL, path, f"Invalid argument: priority is one of {', '.join(PRIORITIES)}")


def day_of(name: str, value: Value, path: Path) -> str | None:
    try:
        return None if value is None else date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise fail(errno.EINVAL, path, f"Invalid argument: {name} is a day such as 2026-05-03") from None
