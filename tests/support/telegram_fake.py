"""Telegram for the tests: the inbox of a bot, as the Bot API gives it."""

from __future__ import annotations

import re
from typing import Any

from tests.support.service_fake import Call, Fake, Reply

TOKEN = "123456:AAhunter2-hunter2_x"


class TelegramFake(Fake):
    def __init__(self) -> None:
        super().__init__()
        self.number = self.message = 0
        self.updates: list[dict[str, Any]] = []
        self.webhook = False
        self.uploads: list[bytes] = []
        self.chats = {
            -1001: {"id": -1001, "type": "supergroup", "title": "Ops/Prod"},
            -1002: {"id": -1002, "type": "channel", "title": "News"},
            7: {"id": 7, "type": "private", "first_name": "Ada", "username": "ada"},
        }
        self.route("POST", "/bot{token}/{method}", self._method)
        self.route("GET", "/file/bot{token}/{path+}", self._file)

    def say(self, chat: int, at: float, text: str = "", user: str = "ada", **given: Any) -> dict[str, Any]:
        self.message += 1
        kind = "channel_post" if self.chats[chat]["type"] == "channel" else "message"
        made: dict[str, Any] = {"message_id": self.message, "date": round(at), "chat": self.chats[chat], **given}
        if kind == "message":
            made["from"] = {"id": 7, "is_bot": False, "first_name": user.title(), "username": user}
        if text:
            made["text"] = text
        return self.tell(kind, made)

    def tell(self, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self.updates.append({"update_id": 1000 + self.number, kind: message})
        return message

    def _method(self, call: Call, token: str, method: str) -> Reply:
        if token != TOKEN:
            return _error(401, "Unauthorized")
        return getattr(self, f"_{method.lower()}", lambda call: _error(404, "Not Found"))(call)

    def _file(self, call: Call, token: str, path: str) -> Reply:
        return Reply(200, b"png") if token == TOKEN else _error(401, "Unauthorized")

    def _getupdates(self, call: Call) -> Reply:
        if self.webhook:
            return _error(409, "Conflict: can't use getUpdates method while webhook is active")
        given = call.json
        self.updates = [one for one in self.updates if one["update_id"] >= given.get("offset", 0)]
        return _ok(self.updates[: given["limit"]])

    def _getme(self, call: Call) -> Reply:
        return _ok({"id": 1, "is_bot": True, "first_name": "Bot", "username": "ramet_bot"})

    def _getfile(self, call: Call) -> Reply:
        return _ok({"file_id": call.json["file_id"], "file_unique_id": "u", "file_path": "documents/file_1.png"})

    def _deletemessage(self, call: Call) -> Reply:
        return _ok(True)

    def _sent(self, chat: int, **given: Any) -> Reply:
        if chat not in self.chats:
            return _error(400, "Bad Request: chat not found")
        self.message += 1
        sender = {"id": 1, "is_bot": True, "first_name": "Bot", "username": "ramet_bot"}
        made = {"message_id": self.message, "date": 1777880000, "chat": self.chats[chat], "from": sender, **given}
        return _ok(made)

    def _sendmessage(self, call: Call) -> Reply:
        return self._sent(call.json["chat_id"], text=call.json["text"])

    def _senddocument(self, call: Call) -> Reply:
        found = re.search(rb'name="chat_id"\r\n\r\n(-?\d+)', call.body)
        assert found is not None
        self.uploads.append(call.body)
        return self._sent(int(found[1]), document={"file_id": "x", "file_unique_id": "y", "file_name": "g.png"})


def _ok(result: Any) -> Reply:
    return Reply(200, {"ok": True, "result": result})


def _error(status: int, words: str, **parameters: Any) -> Reply:
    return Reply(
        status,
        {"ok": False, "error_code": status, "description": words, **({"parameters": parameters} if parameters else {})},
    )
