"""Discord for the tests: servers in memory behind the routes that its mount uses."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from tests.support.descriptions import description, problems
from tests.support.service_fake import Call, Fake, Reply

from ramet.backends.services.discord import id_at

TOKEN = "MTA.hunter2.hunter2"
GUILD = "111111111"
WHEN = "2026-05-03T09:14:02Z"
MEMBER: dict[str, Any] = {
    "avatar": None, "banner": None, "communication_disabled_until": None, "flags": 0, "joined_at": WHEN, "nick": None,
    "pending": False, "premium_since": None, "roles": [], "mute": False, "deaf": False,
}  # fmt: skip


class DiscordChecker:
    """Addresses, names of parameters, statuses, and names of the fields of a new message, after Discord's own types."""

    def __init__(self, source: str) -> None:
        paths = source[source.index("export interface Paths") if "export interface Paths" in source else 0 :]
        self.endpoints: list[tuple[re.Pattern[str], int, str, set[str], set[str]]] = []
        for found in re.finditer(r'^  "(/[^"]*)": \{\n(.*?)^  \};', paths, re.DOTALL | re.MULTILINE):
            pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(found[1])))
            for method in re.finditer(r"^    (\w+): \{\n(.*?)^    \};", found[2], re.DOTALL | re.MULTILINE):
                query = re.search(r"^        query\??: \{\n(.*?)^        \};", method[2], re.DOTALL | re.MULTILINE)
                names = set(re.findall(r"^          (\w+)\??:", query[1], re.MULTILINE)) if query else set()
                statuses = set(re.findall(r'^        "(\w+)":', method[2], re.MULTILINE))
                self.endpoints.append((pattern, found[1].count("{"), method[1].upper(), names, statuses))
        assert len(self.endpoints) > 150, "the description is written in another way"
        body = re.search(
            r"^export (?:interface|type) MessageCreateRequest\b.*?\{\n(.*?)^\}", source, re.DOTALL | re.MULTILINE
        )
        assert body is not None
        self.message = set(re.findall(r"^  (\w+)\??:", body[1], re.MULTILINE))
        assert "content" in self.message

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        path = path.removeprefix("/api/v10")
        if path.startswith("/cdn/"):
            return
        fitting = [one for one in self.endpoints if one[2] == method and one[0].fullmatch(path)]
        if not fitting:
            problems.append(f"{method} {path}: not described")
            return
        _, _, _, names, statuses = min(fitting, key=lambda one: one[1])
        if unknown := set(dict(parse_qsl(query))) - names:
            problems.append(f"{method} {path}: no parameters {unknown}")
        if str(status) not in statuses and f"{str(status)[0]}XX" not in statuses and status < 500:
            problems.append(f"{method} {path}: the status {status} is not described")
        fields = set(json.loads(sent)) if path.endswith("/messages") and kind == "application/json" else set()
        if unknown := fields - self.message:
            problems.append(f"{method} {path}: no fields {unknown}")


@cache
def checker() -> DiscordChecker | None:
    content = description("discord")
    return None if content is None else DiscordChecker(content.decode())


class DiscordFake(Fake):
    def __init__(self) -> None:
        super().__init__(checker())
        self.users = {"ada": _user("900000001", "ada"), "bob": _user("900000002", "bob")}
        shared = {"guild_id": GUILD, "flags": 0}
        self.channels = [
            {"id": "222222221", "type": 4, "name": "Category", "position": 0, **shared},
            {"id": "222222222", "type": 0, "name": "ops", "position": 1, **shared},
            {
                "id": "222222223",
                "type": 15,
                "name": "forum",
                "position": 2,
                "topic": None,
                "available_tags": [],
                **shared,
            },
            {"id": "222222224", "type": 2, "name": "voice", "position": 3, **shared},
        ]
        self.threads = [
            {"id": "333333333", "type": 11, "name": "Crash/1", "parent_id": "222222223", "owner_id": "900000001",
             "message_count": 1, "member_count": 1, "total_message_sent": 1, "last_message_id": None, **shared,
             "thread_metadata": {"archived": False, "auto_archive_duration": 60, "archive_timestamp": WHEN,
                                 "locked": False, "create_timestamp": WHEN}},
        ]  # fmt: skip
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.uploads: list[bytes] = []
        self.expired: set[str] = set()
        api = "/api/v10"
        for method, pattern, handler in (
            ("GET", "/users/@me", lambda call: Reply(200, self.users["bob"])),
            ("GET", "/users/@me/guilds", self._guilds),
            ("GET", "/guilds/{id}", lambda call, id: Reply(200, {"id": id, "name": "Acme"})),
            ("GET", "/guilds/{id}/channels", lambda call, id: Reply(200, self.channels)),
            (
                "GET",
                "/guilds/{id}/threads/active",
                self._active,
            ),
            ("GET", "/guilds/{id}/members", self._members),
            ("GET", "/guilds/{id}/messages/search", self._search),
            ("GET", "/channels/{id}", self._channel),
            ("GET", "/channels/{id}/messages", self._list),
            ("GET", "/channels/{id}/messages/{message}", self._message),
            ("POST", "/channels/{id}/messages", self._post),
        ):
            self.route(method, api + pattern, handler)
        self.route("GET", "/cdn/{name}", self._file)

    def _handle(self, call: Call) -> Reply:
        if call.host != "127.0.0.1":
            assert "authorization" not in call.headers, "a signed link gets no token"
        elif call.headers.get("authorization") != f"Bot {TOKEN}":
            return Reply(401, {"message": "401: Unauthorized", "code": 0})
        else:
            assert call.headers["user-agent"].startswith("DiscordBot (")
        return super()._handle(call)

    def unknown(self, call: Call) -> Reply:
        return Reply(404, {"message": "Unknown", "code": 10003})

    def say(self, channel: str, at: float, text: str, user: str = "ada", **given: Any) -> dict[str, Any]:
        made = {
            "id": str(id_at(at)), "channel_id": channel, "type": 0, "content": text, "author": self.users[user],
            "attachments": [], "embeds": [], "mentions": [], "timestamp": WHEN, "edited_timestamp": None, "flags": 0,
            "mention_roles": [], "components": [], "pinned": False, "mention_everyone": False, "tts": False, **given,
        }  # fmt: skip
        self.messages.setdefault(channel, []).append(made)
        return made

    def attach(self, name: str, tag: str) -> dict[str, Any]:
        url = f"{self.signed}/cdn/{tag}"
        return {"id": "444444444", "filename": name, "size": 3, "url": url, "proxy_url": url}

    def _active(self, call: Call, id: str) -> Reply:
        return Reply(200, {"threads": self.threads, "members": [], "has_more": False})

    def _guilds(self, call: Call) -> Reply:
        shown: dict[str, Any] = {"icon": None, "banner": None, "owner": False, "permissions": "0", "features": []}
        return Reply(200, [{"id": GUILD, "name": "Acme", **shown}])

    def _members(self, call: Call, id: str) -> Reply:
        after, size = int(call.query["after"]), int(call.query["limit"])
        people = [{"user": user, **MEMBER} for user in self.users.values() if int(user["id"]) > after]
        return Reply(200, people[:size])

    def _channel(self, call: Call, id: str) -> Reply:
        found = [one for one in (*self.channels, *self.threads) if one["id"] == id]
        return Reply(200, found[0]) if found else self.unknown(call)

    def _list(self, call: Call, id: str) -> Reply:
        found = sorted(self.messages.get(id, ()), key=lambda one: -int(one["id"]))
        before = int(call.query["before"])
        return Reply(200, [one for one in found if int(one["id"]) < before][: int(call.query["limit"])])

    def _message(self, call: Call, id: str, message: str) -> Reply:
        found = [one for one in self.messages[id] if one["id"] == message]
        for one in found[0]["attachments"]:
            one["url"] += "-new"
        return Reply(200, found[0])

    def _file(self, call: Call, name: str) -> Reply:
        return Reply(404, b"gone") if name in self.expired else Reply(200, b"png")

    def _post(self, call: Call, id: str) -> Reply:
        if call.headers["content-type"].startswith("multipart/"):
            self.uploads.append(call.body)
            found = re.search(rb'name="payload_json"\r\n\r\n(.*?)\r\n', call.body)
            assert found is not None
            body = json.loads(found[1])
        else:
            body = call.json
        made = self.say(id, 1777880000.0, body["content"], "bob")
        return Reply(200, made)

    def _search(self, call: Call, id: str) -> Reply:
        hits = [one for sent in self.messages.values() for one in sent if call.query["content"] in one["content"]]
        offset, size = int(call.query["offset"]), int(call.query["limit"])
        messages = [[{**one, "hit": True}] for one in hits[offset : offset + size]]
        return Reply(200, {"total_results": len(hits), "messages": messages, "doing_deep_historical_index": False})


def _user(id: str, name: str) -> dict[str, Any]:
    return {
        "id": id, "username": name, "global_name": None, "avatar": None, "discriminator": "0", "public_flags": 0,
        "flags": 0, "primary_guild": None,
    }  # fmt: skip
