"""Gmail for the tests: messages in memory behind the routes that its mount uses."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from email import message_from_bytes
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

from tests.support.google_fake import GoogleFake, masked, refused
from tests.support.service_fake import Call, Reply

ME = "/gmail/v1/users/me"
ADDRESS = "ada@example.com"
SYSTEM = ("INBOX", "SENT", "STARRED", "UNREAD", "TRASH", "SPAM")


def packed(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class GmailFake(GoogleFake):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.page = 500
        self.labels = {name: name for name in SYSTEM}
        self.raw: dict[str, bytes] = {}
        self.about: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.forgotten = 0
        """Events up to this one are not known any more."""
        self.part: Callable[[str], Reply | None] = lambda id: None
        """What goes wrong with a message of a batch."""
        self.sent: list[dict[str, Any]] = []
        for method, pattern, handler in (
            ("GET", f"{ME}/labels", lambda call: Reply(200, {"labels": [
                {"id": id, "name": name, "type": "system" if id in SYSTEM else "user"}
                for id, name in self.labels.items()]})),
            ("POST", f"{ME}/labels", self._new_label),
            ("GET", f"{ME}/profile", lambda call: Reply(200, {
                "emailAddress": ADDRESS, "messagesTotal": len(self.raw), "historyId": str(len(self.events))})),
            ("GET", f"{ME}/messages", self._list),
            ("POST", f"{ME}/messages/send", self._send),
            ("POST", f"/upload{ME}/messages/send", self._send),
            ("GET", f"{ME}/messages/{{id}}", lambda call, id: self._get(id, call.query)),
            ("GET", f"{ME}/messages/{{id}}/attachments/{{part}}", self._attachment),
            ("POST", f"{ME}/messages/{{id}}/trash", lambda call, id: self._label(id, {"TRASH"}, {"INBOX"})),
            ("POST", f"{ME}/messages/{{id}}/untrash", lambda call, id: self._label(id, set(), {"TRASH"})),
            ("POST", f"{ME}/messages/{{id}}/modify", lambda call, id: self._label(
                id, set(call.json["addLabelIds"]), set(call.json["removeLabelIds"]))),
            ("GET", f"{ME}/threads/{{id}}", self._conversation),
            ("GET", f"{ME}/history", self._list_history),
            ("POST", "/batch", self._batch),
        ):  # fmt: skip
            self.route(method, pattern, handler)

    # ------------------------------------------------------------------------------------------------- things

    def add(self, raw: bytes | Message, when: float, labels: tuple[str, ...] = ("INBOX",), thread: str = "") -> str:
        self.number += 1
        id = f"18f{self.number:013x}"
        self.raw[id] = raw if isinstance(raw, bytes) else raw.as_bytes()
        self.about[id] = {
            "id": id, "threadId": thread or id, "labelIds": list(labels), "internalDate": str(int(when * 1000)),
            "sizeEstimate": len(self.raw[id]), "snippet": "snip", "historyId": str(len(self.events) + 1),
        }  # fmt: skip
        self._record("messagesAdded", id)
        return id

    def relabel(self, id: str, *labels: str) -> None:
        self.about[id]["labelIds"] = list(labels)
        self._record("labelsAdded", id)

    def remove(self, id: str) -> None:
        self._record("messagesDeleted", id)
        del self.raw[id], self.about[id]

    def _record(self, kind: str, id: str) -> None:
        message = {name: self.about[id][name] for name in ("id", "threadId", "labelIds")}
        self.events.append({"id": str(len(self.events) + 1), kind: [{"message": json.loads(json.dumps(message))}]})

    # ------------------------------------------------------------------------------------------------ serving

    def _new_label(self, call: Call) -> Reply:
        if call.json["name"] in self.labels.values():
            return refused(409, "Label name exists or conflicts", "aborted")
        id = f"Label_{len(self.labels)}"
        self.labels[id] = call.json["name"]
        return Reply(200, {"id": id, "name": call.json["name"]})

    def _list(self, call: Call) -> Reply:
        words = call.query.get("q", "").split()
        label = call.query.get("labelIds")
        found = []
        for id, about in sorted(self.about.items(), key=lambda pair: -int(pair[1]["internalDate"])):
            hidden = {"SPAM", "TRASH"} & set(about["labelIds"]) and call.query.get("includeSpamTrash") != "true"
            if (label is None or label in about["labelIds"]) and not hidden and self._fits(id, words):
                found.append({"id": id, "threadId": about["threadId"]})
        answer = self.pages(call, "messages", found, min(self.page, int(call.query["maxResults"])))
        if not found:
            del answer.body["messages"]  # as Gmail does
        return answer

    def _fits(self, id: str, words: list[str]) -> bool:
        seconds = int(self.about[id]["internalDate"]) / 1000
        for word in words:
            name, _, value = word.partition(":")
            if name == "after" and not seconds > int(value):
                return False
            if name == "before" and not seconds < int(value):
                return False
            if name == "from" and value not in str(message_from_bytes(self.raw[id])["from"]):
                return False
            if not value and word.encode() not in self.raw[id]:
                return False
        return True

    def _get(self, id: str, query: dict[str, str]) -> Reply:
        if id not in self.raw:
            return refused(404, "Requested entity was not found.", "notFound")
        about = dict(self.about[id])
        if query.get("format") == "raw":
            return Reply(200, {**about, "raw": packed(self.raw[id])})
        return Reply(200, {**about, "payload": self._payload(id, message_from_bytes(self.raw[id]), "")})

    def _payload(self, id: str, message: Message, section: str) -> dict[str, Any]:
        made: dict[str, Any] = {
            "partId": section, "mimeType": message.get_content_type(), "filename": message.get_filename() or "",
            "headers": [
                {"name": name, "value": str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")}
                for name, value in message.items()
            ],
        }  # fmt: skip
        if message.is_multipart():
            inner: Any = message.get_payload()
            parts = [self._payload(id, one, f"{section}.{number}".lstrip(".")) for number, one in enumerate(inner)]
            return {**made, "body": {"size": 0}, "parts": parts}
        content: Any = message.get_payload(decode=True)
        if message.get_filename() and len(content) > 20:
            return {**made, "body": {"size": len(content), "attachmentId": f"ANG{section or 'x'}"}}
        return {**made, "body": {"size": len(content), "data": packed(content)}}

    def _attachment(self, call: Call, id: str, part: str) -> Reply:
        message: Any = message_from_bytes(self.raw[id])
        for number in part.removeprefix("ANG").split("."):
            message = message.get_payload()[int(number)]
        content = message.get_payload(decode=True)
        return Reply(200, {"size": len(content), "data": packed(content)})

    def _label(self, id: str, added: set[str], removed: set[str]) -> Reply:
        self.relabel(id, *((set(self.about[id]["labelIds"]) | added) - removed))
        return Reply(200, self.about[id])

    def _conversation(self, call: Call, id: str) -> Reply:
        ids = [one for one, about in self.about.items() if about["threadId"] == id]
        if not ids:
            return refused(404, "Requested entity was not found.", "notFound")
        return Reply(200, {"id": id, "messages": [self._get(one, call.query).body for one in ids]})

    def _list_history(self, call: Call) -> Reply:
        start = int(call.query["startHistoryId"])
        if start < self.forgotten:
            return refused(404, "Requested entity was not found.", "notFound")
        return self.pages(call, "history", self.events[start:], 500, historyId=str(len(self.events)))

    def _batch(self, call: Call) -> Reply:
        boundary = call.headers["content-type"].partition("boundary=")[2]
        answers = b""
        for part in call.body.split(f"--{boundary}".encode())[1:-1]:
            line = re.search(rb"GET (\S+) HTTP/1.1", part)
            assert line is not None
            address, _, query = line[1].decode().partition("?")
            given = dict(parse_qsl(query))
            id = address.rpartition("/")[2]
            reply = self.part(id) or self._get(id, given)
            body = masked(reply.body, given["fields"]) if reply.status == 200 else reply.body
            answers += b"--batch_x\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 %d X\r\n" % reply.status
            answers += b"Content-Type: application/json\r\n\r\n" + json.dumps(body).encode() + b"\r\n"
        return Reply(200, answers + b"--batch_x--", {"Content-Type": "multipart/mixed; boundary=batch_x"})

    def _send(self, call: Call) -> Reply:
        if call.path.startswith("/upload"):
            boundary = call.headers["content-type"].partition("boundary=")[2]
            first, second = call.body.split(f"--{boundary}".encode())[1:3]
            about = json.loads(first.split(b"\r\n\r\n", 1)[1])
            raw = second.split(b"\r\n\r\n", 1)[1][:-2]
        else:
            about = dict(call.json)
            text = about.pop("raw")
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        id = self.add(raw, 1777800000.0, ("SENT",), about.get("threadId", ""))
        self.sent.append({"about": about, "message": message_from_bytes(raw)})
        return Reply(200, self.about[id])
