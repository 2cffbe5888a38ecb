"""Google for the tests: tokens and the common parts; Drive, Gmail and the editors are fakes of their own."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

from tests.support.discovery import _mask, google
from tests.support.service_fake import Call, Fake, Reply

CLIENT, SECRET, REFRESH = "client-7.apps.googleusercontent.com", "GOCSPX-hunter2", "1//refresh-hunter2"
ACCESS = "ya29.hunter2"


def refused(status: int, message: str, reason: str = "", headers: dict[str, str] | None = None) -> Reply:
    """An error as Google's APIs write it."""
    error: dict[str, Any] = {"code": status, "message": message}
    if reason:
        error["errors"] = [{"domain": "global", "reason": reason, "message": message}]
    return Reply(status, {"error": error}, headers or {})


def masked(value: Any, mask: str) -> Any:
    """What a field mask leaves of an answer."""
    if isinstance(value, list):
        return [masked(one, mask) for one in value]
    picked = {}
    for name, inner in _mask(mask):
        if name in value:
            picked[name] = masked(value[name], inner) if inner else value[name]
    return picked


class GoogleFake(Fake):
    """Tokens: `ACCESS` and a number behind it; every renewal makes the next one the only one that is taken."""

    def __init__(self) -> None:
        super().__init__(google())
        self.renewals = 0
        self.grant: Reply | None = None
        self.grants: list[dict[str, str]] = []
        self.lasts = 3600
        self.route("POST", "/token", self._grant)

    @property
    def token(self) -> str:
        return f"{ACCESS}-{self.renewals}"

    def _grant(self, call: Call) -> Reply:
        form = dict(parse_qsl(call.body.decode()))
        self.grants.append(form)
        if self.grant is not None:
            return self.grant
        if form["grant_type"] == "refresh_token":
            given = (form["client_id"], form["client_secret"], form["refresh_token"])
            if given != (CLIENT, SECRET, REFRESH):
                return Reply(400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."})
        self.renewals += 1
        return Reply(200, {"access_token": self.token, "expires_in": self.lasts, "token_type": "Bearer"})

    def _handle(self, call: Call) -> Reply:
        known = (f"Bearer {self.token}", "Bearer given")
        if call.path != "/token" and call.host == "127.0.0.1" and call.headers.get("authorization") not in known:
            return refused(401, "Request had invalid authentication credentials.", "authError")
        reply = super()._handle(call)
        mask = call.query.get("fields")
        if mask and reply.status < 300 and isinstance(reply.body, dict):
            reply.body = masked(reply.body, mask)
        return reply

    def pages(self, call: Call, inside: str, entries: list[Any], size: int, **more: Any) -> Reply:
        start = int(call.query.get("pageToken") or 0)
        body = {inside: entries[start : start + size], **more}
        if start + size < len(entries):
            body["nextPageToken"] = str(start + size)
        return Reply(200, body)


_TOKEN = re.compile(r"\s*('(?:\\.|[^'\\])*'|[()]|!=|<=|>=|[=<>]|[\w.]+)")


class DriveQuery:
    """The part of Drive's query language that mounts use; anything else is an error."""

    def __init__(self, text: str, me: str) -> None:
        self.tokens = _TOKEN.findall(text)
        assert "".join(self.tokens).replace(" ", "") == "".join(re.split(r"\s+", text)) or "'" in text, text
        self.at, self.me = 0, me

    def fits(self, file: dict[str, Any], content: bytes) -> bool:
        self.at, self.file, self.content = 0, file, content
        found = self._any()
        assert self.at == len(self.tokens), self.tokens[self.at :]
        return found

    def _next(self) -> str:
        self.at += 1
        return str(self.tokens[self.at - 1])

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _any(self) -> bool:
        found = self._all()
        while self._peek() == "or":
            self._next()
            found = self._all() or found
        return found

    def _all(self) -> bool:
        found = self._one()
        while self._peek() == "and":
            self._next()
            found = self._one() and found
        return found

    def _one(self) -> bool:
        token = self._next()
        if token == "not":
            return not self._one()
        if token == "(":
            found = self._any()
            assert self._next() == ")"
            return found
        if token.startswith("'"):
            assert self._next() == "in"
            inside = self._next()
            wanted = self._text(token)
            if inside == "owners":
                return bool((wanted == "me") == self.file.get("ownedByMe", True))
            assert inside == "parents", inside
            return bool(wanted in self.file["parents"])
        operator, value = self._next(), self._text(self._next())
        if token == "fullText":
            return value.lower() in (self.file["name"] + " " + self.content.decode("latin-1")).lower()
        if token in ("trashed", "sharedWithMe"):
            return bool(self.file.get(token, False)) == (value == "true")
        there = str(self.file.get(token, ""))
        fits: dict[str, bool] = {"=": there == value, "!=": there != value, "contains": value.lower() in there.lower(),
                ">": there > value, "<": there < value}  # fmt: skip
        return fits[operator]

    def _text(self, token: str) -> str:
        return re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith("'") else token
