"""Slack for the tests: channels in memory behind the methods that its mount uses."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.support.descriptions import description, problems
from tests.support.service_fake import SIGNED, Call, Fake, Reply

TOKEN = "xoxb-hunter2hunter2"
SEARCH = "xoxp-hunter3hunter3"
NEW = {"/files.getUploadURLExternal", "/files.completeUploadExternal"}
"""Methods that are younger than the description."""


class SlackParameters:
    """Slack's own description is old: it proves methods and names of arguments."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.names: dict[str, set[str]] = {}
        for path, methods in document["paths"].items():
            found = self.names[path] = set()
            for operation in methods.values():
                if isinstance(operation, dict) and "responses" in operation:
                    found.update(one["name"] for one in operation.get("parameters", ()))
                    for content in operation.get("requestBody", {}).get("content", {}).values():
                        found.update(content["schema"].get("properties", {}))

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        from urllib.parse import parse_qsl

        if path in NEW or path.startswith(("/upload/", "/files/")):
            return
        if path not in self.names:
            problems.append(f"{path}: not described")
            return
        unknown = set(dict(parse_qsl(sent.decode()))) - self.names[path]
        if unknown or query:
            problems.append(f"{path}: no arguments {unknown} {query}")


@cache
def parameters() -> SlackParameters | None:
    content = description("slack")
    return None if content is None else SlackParameters(json.loads(content))


class SlackFake(Fake):
    def __init__(self) -> None:
        super().__init__(parameters())
        self.page = 1000
        self.users = [
            {"id": "U1A", "name": "ada", "profile": {"display_name": "ada"}},
            {"id": "U2B", "name": "bob", "profile": {"display_name": ""}},
        ]
        self.channels = [
            {"id": "C024", "name": "ops", "is_channel": True, "created": 1},
            {"id": "C0OLD", "name": "old", "is_channel": True, "is_archived": True, "created": 1},
            {"id": "G1X", "name": "mpdm-ada--bob-1", "is_mpim": True, "created": 1},
            {"id": "D1X", "is_im": True, "user": "U2B", "created": 1},
        ]
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.replies: dict[str, list[dict[str, Any]]] = {}
        self.uploaded: list[bytes] = []
        for name, handler in (
            ("users.list", lambda call: self._page(call, "members", self.users)),
            ("users.info", self._user),
            ("conversations.list", self._list),
            ("conversations.info", self._info),
            ("conversations.history", self._history),
            ("conversations.replies", self._replies),
            ("chat.postMessage", self._post),
            ("chat.delete", lambda call: _ok()),
            ("files.getUploadURLExternal", self._slot),
            ("files.completeUploadExternal", self._complete),
            ("search.messages", self._search),
        ):
            self.route("POST", f"/{name}", handler)
        self.route("POST", "/upload/{id}", self._upload)
        self.route("GET", "/files/{id}", lambda call, id: Reply(200, b"png"))

    def _handle(self, call: Call) -> Reply:
        wanted = SEARCH if call.path == "/search.messages" else TOKEN
        upload = call.path.startswith("/upload/")
        if not upload and call.headers.get("authorization") != f"Bearer {wanted}":
            return _error("invalid_auth")
        assert not (upload and call.host == SIGNED and "authorization" in call.headers)
        return super()._handle(call)

    def say(self, channel: str, ts: str, text: str, user: str = "U1A", **given: Any) -> None:
        self.messages.setdefault(channel, []).append({"type": "message", "user": user, "text": text, "ts": ts, **given})

    def _page(self, call: Call, name: str, entries: list[Any]) -> Reply:
        start, size = int(call.form.get("cursor") or 0), min(self.page, int(call.form["limit"]))
        following = str(start + size) if start + size < len(entries) else ""
        return _ok(**{name: entries[start : start + size]}, response_metadata={"next_cursor": following})

    def _user(self, call: Call) -> Reply:
        found = [user for user in self.users if user["id"] == call.form["user"]]
        return _ok(user=found[0]) if found else _error("user_not_found")

    def _list(self, call: Call) -> Reply:
        kinds = call.form["types"].split(",")
        keep = [one for one in self.channels if _kind(one) in kinds and not one.get("is_archived")]
        return self._page(call, "channels", keep)

    def _channel(self, call: Call) -> dict[str, Any] | None:
        return next((one for one in self.channels if one["id"] == call.form["channel"]), None)

    def _info(self, call: Call) -> Reply:
        found = self._channel(call)
        return _ok(channel=found) if found else _error("channel_not_found")

    def _history(self, call: Call) -> Reply:
        if self._channel(call) is None:
            return _error("channel_not_found")
        oldest, latest = float(call.form["oldest"]), float(call.form["latest"])
        found = [one for one in self.messages.get(call.form["channel"], ()) if oldest <= float(one["ts"]) <= latest]
        return self._page(call, "messages", sorted(found, key=lambda one: -float(one["ts"])))

    def _replies(self, call: Call) -> Reply:
        return self._page(call, "messages", self.replies[call.form["ts"]])

    def _post(self, call: Call) -> Reply:
        found = self._channel(call)
        if found is None:
            return _error("channel_not_found")
        if found.get("is_archived"):
            return _error("is_archived")
        self.say(call.form["channel"], "1777880000.000100", call.form["text"], **_only(call, "thread_ts"))
        return _ok(ts="1777880000.000100", channel=call.form["channel"])

    def _slot(self, call: Call) -> Reply:
        return _ok(upload_url=f"{self.signed}/upload/F9NEW", file_id="F9NEW")

    def _upload(self, call: Call, id: str) -> Reply:
        self.uploaded.append(call.body)
        return Reply(200, b"OK")

    def _complete(self, call: Call) -> Reply:
        self.say(call.form["channel_id"], "1777880001.000100", call.form.get("initial_comment", ""))
        return _ok(files=json.loads(call.form["files"]))

    def _search(self, call: Call) -> Reply:
        hits = [
            {"channel": {"id": channel, "name": "ops"}, **message}
            for channel, messages in self.messages.items()
            for message in messages
            if call.form["query"].split()[0] in message["text"]
        ]
        size, page = int(call.form["count"]), int(call.form["page"])
        pages = -(-len(hits) // size)
        return _ok(messages={"matches": hits[(page - 1) * size : page * size], "paging": {"pages": pages}})


def _kind(channel: dict[str, Any]) -> str:
    return "im" if channel.get("is_im") else "mpim" if channel.get("is_mpim") else "public_channel"


def _only(call: Call, *names: str) -> dict[str, str]:
    return {name: call.form[name] for name in names if name in call.form}


def _ok(**given: Any) -> Reply:
    return Reply(200, {"ok": True, **given})


def _error(word: str, **given: Any) -> Reply:
    return Reply(200, {"ok": False, "error": word, **given})
