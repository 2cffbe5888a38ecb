"""Notion for the tests: pages and data sources in memory behind the routes that its mount uses."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from tests.support.descriptions import description, openapi, problems
from tests.support.service_fake import Call, Fake, Reply

KEY = "ntn_hunter2hunter2"
VERSION = "2026-03-11"
_ENDPOINT = re.compile(
    r'method: "(?P<method>\w+)",\s+pathParams: \[(?P<path>.*?)\],\s+queryParams: \[(?P<query>.*?)\],'
    r"\s+bodyParams: \[(?P<body>.*?)\],.*?path: \(.*?\) => [`\"](?P<address>.*?)[`\"]",
    re.DOTALL,
)
FULLY_DESCRIBED = ("/markdown", "/v1/search", "/query")
"""Endings of addresses whose bodies the OpenAPI document describes; elsewhere it is older than the client."""


class NotionChecker:
    """Addresses and names of parameters after the vendor's own client; bodies after its OpenAPI document."""

    def __init__(self, source: str) -> None:
        self.endpoints: list[tuple[str, re.Pattern[str], set[str], set[str]]] = []
        for found in _ENDPOINT.finditer(source):
            query, body = (set(re.findall(r'"(\w+)"', found[part])) for part in ("query", "body"))
            pattern = re.compile("/v1/" + re.sub(r"\$\{p\.\w+\}", "[^/]+", found["address"]))
            self.endpoints.append((found["method"].upper(), pattern, query, body))
        assert len(self.endpoints) > 30, "the client of Notion is written in another way"

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        fitting = [one for one in self.endpoints if one[0] == method and one[1].fullmatch(path)]
        if not fitting:
            problems.append(f"{method} {path}: not described")
            return
        _, _, queries, bodies = min(fitting, key=lambda one: one[1].pattern.count("["))
        unknown = set(dict(parse_qsl(query))) - queries
        if sent:
            unknown |= set(json.loads(sent)) - bodies
        if unknown:
            problems.append(f"{method} {path}: no parameters {sorted(unknown)}")
        document = openapi("notion")
        if document is not None and path.endswith(FULLY_DESCRIBED):
            document.check(method, path, query, sent, kind, status, got)


@cache
def checker() -> NotionChecker | None:
    content = description("notion-client")
    return None if content is None else NotionChecker(content.decode())


class NotionFake(Fake):
    def __init__(self) -> None:
        super().__init__(checker())
        self.number = 0
        self.page = 100
        self.pages: dict[str, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}
        self.parts: dict[str, list[str]] = {}
        """Blocks that the Markdown of a page leaves out."""
        self.sources: dict[str, dict[str, Any]] = {}
        self.comments: list[dict[str, Any]] = []
        self.hidden: set[str] = set()
        """Pages that the search does not find yet."""
        for method, pattern, handler in (
            ("POST", "/v1/search", self._search),
            ("GET", "/v1/pages/{id}", lambda call, id: self._with(id, lambda page: Reply(200, page))),
            ("PATCH", "/v1/pages/{id}", self._patch),
            ("POST", "/v1/pages", self._create),
            ("GET", "/v1/pages/{id}/markdown", self._markdown),
            ("PATCH", "/v1/pages/{id}/markdown", self._edit),
            ("GET", "/v1/pages/{id}/properties/{name}", self._property),
            ("GET", "/v1/comments", self._list_comments),
            ("POST", "/v1/comments", self._comment),
            ("GET", "/v1/users", lambda call: self._paged(call.query, [{"object": "user", "id": "u1", "name": "Ada"}])),
            ("GET", "/v1/data_sources/{id}", self._source),
            ("POST", "/v1/data_sources/{id}/query", self._query),
        ):
            self.route(method, pattern, handler)

    # ------------------------------------------------------------------------------------------------- things

    def id(self) -> str:
        self.number += 1
        return f"1f300000-0000-4000-8000-{self.number:012x}"

    def add(self, title: str, text: str = "", parent: str | None = None, **properties: Any) -> dict[str, Any]:
        above: dict[str, Any] = {"type": "workspace", "workspace": True}
        name = "title"
        if parent in self.sources:
            above, name = {"type": "data_source_id", "data_source_id": parent}, "Name"
        elif parent is not None:
            above = {"type": "page_id", "page_id": parent}
        id = self.id()
        made = {
            "object": "page", "id": id, "parent": above, "created_time": "2026-05-01T10:00:00.000Z",
            "last_edited_time": "2026-05-01T10:00:00.000Z", "in_trash": False, "url": f"https://www.notion.so/{id}",
            "properties": {name: {"id": "title", "type": "title", "title": rich(title)}, **properties},
        }  # fmt: skip
        self.pages[id], self.texts[id] = made, text
        return made

    def add_source(self, title: str, **kinds: str) -> str:
        id = self.id()
        properties = {"Name": {"id": "title", "type": "title", "title": {}}}
        properties |= {name: {"id": name, "type": kind, kind: {}} for name, kind in kinds.items()}
        self.sources[id] = {
            "object": "data_source", "id": id, "title": rich(title), "properties": properties,
            "parent": {"type": "database_id", "database_id": self.id()}, "last_edited_time": "2026-05-01T10:00:00.000Z",
        }  # fmt: skip
        return id

    # ------------------------------------------------------------------------------------------------ serving

    def _handle(self, call: Call) -> Reply:
        if call.headers.get("authorization") != f"Bearer {KEY}":
            return failed(401, "unauthorized", "API token is invalid.")
        if call.headers.get("notion-version") != VERSION:
            return failed(400, "missing_version", "Notion-Version is missing.")
        return super()._handle(call)

    def _paged(self, given: dict[str, Any], entries: list[Any]) -> Reply:
        start, size = int(given.get("start_cursor") or 0), min(self.page, int(given.get("page_size", 100)))
        more = start + size < len(entries)
        following = str(start + size) if more else None
        said = {"object": "list", "results": entries[start : start + size], "has_more": more, "next_cursor": following}
        return Reply(200, said)

    def _found(self, id: str) -> dict[str, Any] | None:
        return next((page for key, page in self.pages.items() if key.replace("-", "") == id.replace("-", "")), None)

    def _with(self, id: str, act: Any) -> Reply:
        page = self._found(id)
        if page is None:
            return failed(404, "object_not_found", f"Could not find page with ID: {id}.")
        found: Reply = act(page)
        return found

    def _search(self, call: Call) -> Reply:
        kind = call.json.get("filter", {}).get("value")
        found: list[Any] = [] if kind == "data_source" else [
            page for id, page in self.pages.items() if not page["in_trash"] and id not in self.hidden
        ]  # fmt: skip
        found += [] if kind == "page" else self.sources.values()
        if "query" in call.json:
            found = [one for one in found if call.json["query"].lower() in json.dumps(one).lower()]
        return self._paged(call.json, found)

    def _patch(self, call: Call, id: str) -> Reply:
        def act(page: dict[str, Any]) -> Reply:
            for name, given in call.json.get("properties", {}).items():
                ((kind, value),) = given.items()
                options = page["properties"][name].get("_options")
                if options is not None and value is not None and value["name"] not in options:
                    return failed(400, "validation_error", f"{value['name']} is not one of {', '.join(options)}")
                if kind in ("title", "rich_text"):
                    value = rich("".join(one["text"]["content"] for one in value))
                page["properties"][name][kind] = value
            page["in_trash"] = call.json.get("in_trash", page["in_trash"])
            self._touch(page)
            return Reply(200, page)

        return self._with(id, act)

    def _touch(self, page: dict[str, Any]) -> None:
        page["last_edited_time"] = "2026-05-02T10:00:00.000Z"

    def _create(self, call: Call) -> Reply:
        parent, given = call.json["parent"], dict(call.json["properties"])
        above = parent.get("page_id") or parent.get("data_source_id")
        title = next(name for name, one in given.items() if "title" in one)
        words = "".join(one["text"]["content"] for one in given.pop(title)["title"])
        values = {name: {"id": name, "type": next(iter(one)), **one} for name, one in given.items()}
        made = self.add(words, call.json["markdown"], above, **values)
        self.hidden.add(made["id"])
        return Reply(200, made)

    def _markdown(self, call: Call, id: str) -> Reply:
        if id in self.texts and id not in self.pages:
            return self._as_markdown(id)
        return self._with(id, lambda page: self._as_markdown(page["id"]))

    def _as_markdown(self, id: str) -> Reply:
        left = self.parts.get(id, [])
        said = {
            "object": "page_markdown", "id": id, "markdown": self.texts[id], "truncated": bool(left),
            "unknown_block_ids": left,
        }  # fmt: skip
        return Reply(200, said)

    def _edit(self, call: Call, id: str) -> Reply:
        def act(page: dict[str, Any]) -> Reply:
            given = call.json[call.json["type"]]
            if call.json["type"] == "replace_content":
                self.texts[page["id"]] = given["new_str"]
            for one in given.get("content_updates", ()):
                if self.texts[page["id"]].count(one["old_str"]) != 1:
                    return failed(400, "validation_error", "old_str was not found exactly once in the page.")
                self.texts[page["id"]] = self.texts[page["id"]].replace(one["old_str"], one["new_str"])
            self._touch(page)
            return self._as_markdown(page["id"])

        return self._with(id, act)

    def _property(self, call: Call, id: str, name: str) -> Reply:
        def act(page: dict[str, Any]) -> Reply:
            one = next(one for one in page["properties"].values() if one["id"] == name)
            kind = one["type"]
            return self._paged(call.query, [{"object": "property_item", kind: part} for part in one["_all"]])

        return self._with(id, act)

    def _list_comments(self, call: Call) -> Reply:
        return self._paged(
            call.query, [one for one in self.comments if one["parent"]["page_id"] == call.query["block_id"]]
        )

    def _comment(self, call: Call) -> Reply:
        words = "".join(one["text"]["content"] for one in call.json["rich_text"])
        made = {
            "object": "comment", "id": self.id(), "parent": call.json["parent"], "rich_text": rich(words),
            "discussion_id": self.id(), "created_time": "2026-05-01T10:00:00.000Z",
        }  # fmt: skip
        self.comments.append(made)
        return Reply(200, made)

    def _source(self, call: Call, id: str) -> Reply:
        found = [one for key, one in self.sources.items() if key.replace("-", "") == id.replace("-", "")]
        return Reply(200, found[0]) if found else failed(404, "object_not_found", "Could not find the data source.")

    def _query(self, call: Call, id: str) -> Reply:
        rows = [
            page for page in self.pages.values()
            if page["parent"].get("data_source_id") == id and not page["in_trash"]
        ]  # fmt: skip
        wanted = call.json.get("filter")
        if wanted is not None:
            kind = next(key for key in wanted if key != "property")
            rows = [
                row for row in rows
                if (row["properties"][wanted["property"]][kind] or {}).get("name") == wanted[kind]["equals"]
            ]  # fmt: skip
        return self._paged(call.json, rows)


def rich(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": {"content": text}, "plain_text": text}] if text else []


def failed(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, {"object": "error", "status": status, "code": code, "message": message}, headers or {})
