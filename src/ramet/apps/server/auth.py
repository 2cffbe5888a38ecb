"""Authentication of HTTP requests: check the Host header, the token and the rate limit."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import re
import time
from collections import OrderedDict
from itertools import islice
from typing import Any, Final

from ramet.apps.server.api import problem_reply, refuse_websocket
from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import Call, Receive, Scope, Send, send_reply
from ramet.apps.server.settings import ServerSettings
from ramet.apps.server.terminals import BEARER

HEALTH: Final = "/v1/health"
CLIENTS: Final = 10_000
"""Clients that are remembered; those that run nothing go first, the longest idle of them before others."""
HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


class _Client:
    __slots__ = ("at", "running", "tokens")

    def __init__(self, burst: int) -> None:
        self.running, self.tokens, self.at = 0, float(burst), time.monotonic()


class Authentication:
    """ASGI middleware that authenticates requests; only `/v1/health` needs no token."""

    def __init__(self, app: Any, settings: ServerSettings, own: tuple[str, ...] = ()) -> None:
        self._app, self._settings, self._own = app, settings, own
        """Wrap `app`. Paths below `own` check the token themselves."""
        self._token = settings.token.encode()
        self._others = [(other.encode(), principal) for other, principal in settings.principals.items()]
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            name = self._let_in(scope)
            client = self._client(name)
        except Refusal as refused:
            if scope["type"] == "websocket":
                await refuse_websocket(refused, Call(scope, receive), send)
            else:
                await send_reply(problem_reply(refused), Call(scope, receive), send)
            return
        scope["ramet.client"] = name
        try:
            await self._app(scope, receive, send)
        finally:
            client.running -= 1

    def _let_in(self, scope: Scope) -> str:
        """Check Host and token of a request; return a name for the client."""
        host = token = origin = b""
        hosts = 0
        for header, value in scope["headers"]:
            if header == b"host":
                host, hosts = value, hosts + 1
            elif header == b"authorization":
                token = value
            elif header == b"origin":
                origin = value
        self._check_host(host.decode("latin-1") if hosts == 1 else "")
        if scope["type"] == "websocket":
            if origin and origin.partition(b"://")[2] != host:  # browsers let every page open WebSockets
                raise Refusal("permission_denied", "unknown Origin header", "use the page of this server", status=403)
            token = token or _offered(scope)
        if not self._token:
            return "local"
        kind, _, given = token.partition(b" ")
        right = hmac.compare_digest(given.strip(), self._token)  # always, so that timing reveals nothing
        for other, principal in self._others:
            if hmac.compare_digest(given.strip(), other):
                right, scope["ramet.principal"] = True, principal
        if not (right and kind.lower() == b"bearer") and not self._open(scope["path"]):
            raise Refusal(
                "unauthenticated", "invalid token" if token else "missing token",
                "send Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer"},
            )  # fmt: skip
        peer = scope.get("client")
        whose = hashlib.sha256(given).hexdigest()[:8] if right else "unknown"
        return f"{peer[0] if peer else 'socket'}/{whose}"

    def _open(self, path: str) -> bool:
        return path == HEALTH or (self._own != () and f"{path}/".startswith(self._own))

    def _evict(self, new: str) -> None:
        idle = (name for name, client in self._clients.items() if not client.running and name != new)
        for name in list(islice(idle, len(self._clients) - CLIENTS)):
            del self._clients[name]

    def _check_host(self, text: str) -> None:
        hosts = self._settings.hosts
        if "*" in hosts:
            return
        if _host_name(text) not in hosts:
            raise Refusal("permission_denied", "unknown Host header", "use a name that the server allows", status=421)

    def _client(self, name: str) -> _Client:
        bounds = self._settings.bounds
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = _Client(bounds.burst)
            if len(self._clients) > CLIENTS:
                self._evict(name)
        else:
            self._clients.move_to_end(name)
        if client.running >= bounds.concurrency:
            raise _slower(f"this client already has {bounds.concurrency} requests running", 1.0)
        if bounds.rate:
            now = time.monotonic()
            client.tokens = min(float(bounds.burst), client.tokens + (now - client.at) * bounds.rate)
            client.at = now
            if client.tokens < 1:
                raise _slower("this client sends requests too fast", (1 - client.tokens) / bounds.rate)
            client.tokens -= 1
        client.running += 1
        return client


def _offered(scope: Scope) -> bytes:
    """Return the token among the subprotocols of a WebSocket as a header would give it."""
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(BEARER):
            text = offered.removeprefix(BEARER)
            with contextlib.suppress(ValueError):
                return b"Bearer " + base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return b""


def _host_name(text: str) -> str:
    """The name of a Host header without its port, in lower case; empty when it is not one."""
    found = HOST.fullmatch(text)
    return "" if found is None else (found["six"] or found["name"]).lower()


def _slower(cause: str, seconds: float) -> Refusal:
    wait = max(1, int(seconds + 0.999))
    return Refusal("too_many_requests", cause, f"try again in {wait} s", headers={"retry-after": str(wait)})
