"""What listens in a workspace, from outside: `/v1/workspaces/NAME/ports/8000/...`, and origins for browsers.

Rules that this file keeps:
- Who may run commands in a workspace may reach its ports. This is checked at every request.
- A request opens no workspace: in one that is not open, nothing runs. While it lasts, the workspace stays open, but
  it does not keep verbs waiting that close it.
- An origin is `http://LABEL.localhost:PORT`: browsers isolate it from the console, from all other origins, and from
  other ports of this machine. A link that works once gives the browser a cookie for this origin; without it
  nothing passes. The program does not get the cookie.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

from ramet.apps.server.links import Links
from ramet.apps.server.port_headers import PortPlace
from ramet.apps.server.port_proxy import TUNNEL, Exchange, Talk, dialed
from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import Call, Receive, Reply, Scope, Send, send_reply
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.apps.server.open_workspaces import OpenWorkspace

PATH: Final = re.compile(r"/v1/workspaces/([^/]+)/ports/([0-9]{1,5})(/.*)?")
COOKIE: Final = "ramet-port"
OPENING: Final = "/.ramet/open/"
ORIGINS: Final = 1000
"""Origins that are remembered; the oldest is dropped for a new one."""
_LABEL: Final = re.compile(r"(p[0-9a-f]{24})\.localhost(?::[0-9]{1,5})?", re.IGNORECASE)
_LOOPBACK: Final = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_CODE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class PortRoutes:
    """Passes what clients send to programs of workspaces."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._running = 0
        self._names = frozenset(api.settings.hosts - {"*"})

    # ------------------------------------------------------------------------------------------- below /v1

    def finds(self, scope: Scope) -> bool:
        """Whether a request is for a program."""
        return scope["path"].startswith("/v1/workspaces/") and PATH.fullmatch(_raw_path(scope)) is not None

    async def answer(self, call: Call, receive: Receive, send: Send) -> None:
        """Answer a request below `/v1` by the program."""
        name, place, path = self._place(call)
        if call.header(b"service-worker") is not None:
            raise Refusal("permission_denied", "no service worker may run here", "Open it at a separate origin.")
        await self._api.access.may_run(call, name)
        if not path:
            query = call.scope["query_string"].decode("latin-1")
            there = (b"location", f"{place.prefix}/{'?' if query else ''}{query}".encode("latin-1"))
            await send_reply(Reply(status=308, headers=[there]), call, send)
            return
        await self.pass_on(call, receive, send, name, place, path)

    async def talk(self, call: Call, receive: Receive, send: Send) -> None:
        """Carry a WebSocket below `/v1`: without a path below the port it is a tunnel for any protocol."""
        name, place, path = self._place(call)
        await self._api.access.may_run(call, name)
        async with self.reaching(name) as hosted:
            talk = Talk(call.scope, receive, send, self._api.settings.bounds, place)
            dial = _dial(hosted)
            if path:
                await talk.twin(dial, path + _query(call.scope))
            elif TUNNEL in call.scope.get("subprotocols", ()):
                await talk.tunnel(dial)
            else:
                raise Refusal(
                    "invalid_argument", "this is no WebSocket of a program", f"Offer {TUNNEL}, or add a path."
                )

    def _place(self, call: Call) -> tuple[str, PortPlace, str]:
        scope = call.scope
        found = PATH.fullmatch(_raw_path(scope))
        assert found is not None
        name, port = unquote(found[1], errors="surrogateescape"), int(found[2])
        prefix = f"/v1/workspaces/{found[1]}/ports/{port}"
        return name, PortPlace(_scheme(scope), call.header(b"host") or "", prefix, port, self._names), found[3] or ""

    # --------------------------------------------------------------------------------------------- for both

    async def pass_on(self, call: Call, receive: Receive, send: Send, name: str, place: PortPlace, path: str) -> None:
        """Answer a request that may pass."""
        target = (path + _query(call.scope)).encode("latin-1")
        async with self.reaching(name) as hosted:
            exchange = Exchange(call.scope, receive, send, self._api.settings.bounds, place, target)
            await exchange.run(_dial(hosted))

    @contextlib.asynccontextmanager
    async def reaching(self, name: str) -> AsyncIterator[OpenWorkspace]:
        """Keep an open workspace from being closed for idleness."""
        bounds = self._api.settings.bounds
        hosted = await self.opened(name)
        if hosted is None:
            raise Refusal(
                "unavailable", f"nothing runs in {name!r}: it is not open", "Start the program first.", status=502
            )
        if self._running >= bounds.ports:
            raise Refusal("too_many_requests", f"{bounds.ports} requests to programs run already", "try again later")
        self._running += 1
        hosted.reached += 1
        try:
            yield hosted
        finally:
            self._running -= 1
            hosted.unreach()

    async def opened(self, name: str) -> OpenWorkspace | None:
        """Return a workspace if it is open; refuse one that does not exist."""
        workspaces = self._api.workspaces
        hosted = workspaces.find(name)
        if hosted is None and not workspaces.has(name):
            store = workspaces.store
            if store is None or not await workspaces.blocking(store.__contains__, name):
                raise RametError("workspace_not_found", f"no workspace {name!r}", "see the list of workspaces")
        return hosted


def _dial(hosted: OpenWorkspace) -> Any:
    async def connect(port: int) -> socket.socket:
        programs = hosted.ws.programs
        if programs is None:
            raise RametError(
                "native_unavailable", f"nothing can listen in {hosted.name!r}: real programs are off in it",
                "Create it with native programs, on a server that was started with --native.",
            )  # fmt: skip
        return await programs.ports.connect(port)

    return connect


def _raw_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return raw.partition(b"?")[0].decode("latin-1")


def _query(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return f"?{query.decode('latin-1')}" if query else ""


def _scheme(scope: Scope) -> str:
    return "https" if scope.get("scheme") in ("https", "wss") else "http"


# ---------------------------------------------------------------------------------------------------------- origins


class _Origin(NamedTuple):
    name: str
    port: int
    principal: str | None
    key: str
    """The value of the cookie."""


class PortOrigins:
    """Gives programs separate origins at `LABEL.localhost`, for browsers on this machine."""

    def __init__(self, api: Api, routes: PortRoutes) -> None:
        self._api, self._routes = api, routes
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, _Origin] = {}
        self._links = Links()
        self._running: Counter[str] = Counter()

    @contextlib.contextmanager
    def _counted(self, label: str) -> Iterator[None]:
        """Bound the requests of one origin, as those of a client are."""
        most = self._api.settings.bounds.concurrency
        if self._running[label] >= most:
            raise Refusal("too_many_requests", f"this origin already has {most} requests running", "try again later")
        self._running[label] += 1
        try:
            yield
        finally:
            self._running[label] -= 1
            if not self._running[label]:
                del self._running[label]

    async def link(self, call: Call, name: str, port: int) -> str:
        """Return a URL that opens a program once in a browser, which then stays let in."""
        found = _LOOPBACK.fullmatch(call.header(b"host") or "")
        if found is None or call.scope.get("client") is None:  # a unix socket, which browsers do not know
            raise RametError(
                "unsupported", "this server is not reached at a loopback address of the browser's machine",
                f"Run `ramet --store URL port {name} {port}` there, and open what it prints.",
            )  # fmt: skip
        (await self._connected(name, port)).close()
        principal = call.scope.get("ramet.principal")
        identity = repr((name, port, principal)).encode("utf-8", "surrogatepass")
        label = f"p{hmac.new(self._secret, identity, hashlib.sha256).hexdigest()[:24]}"
        if label not in self._known:
            while len(self._known) >= ORIGINS:
                del self._known[next(iter(self._known))]
            self._known[label] = _Origin(name, port, principal, secrets.token_urlsafe(32))
        return f"{_scheme(call.scope)}://{label}.localhost{found[1] or ''}{OPENING}{self._links.make(label)}"

    async def _connected(self, name: str, port: int) -> socket.socket:
        async with self._routes.reaching(name) as hosted:
            return await dialed(_dial(hosted), port)

    def finds(self, scope: Scope) -> bool:
        """Whether a request is for an origin: by its Host header."""
        return scope["type"] in ("http", "websocket") and self._label(scope) != ""

    def _label(self, scope: Scope) -> str:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        found = _LABEL.fullmatch(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
        return "" if found is None else found[1].lower()

    async def answer(self, call: Call, receive: Receive, send: Send) -> None:
        """Answer a request at an origin, or let a browser in."""
        label, path = self._label(call.scope), _raw_path(call.scope)
        if path.startswith(OPENING):
            await send_reply(self._let_in(call, label, path.removeprefix(OPENING)), call, send)
            return
        origin, place = await self._allowed(call, label)
        with self._counted(label):
            await self._routes.pass_on(call, receive, send, origin.name, place, path)

    async def talk(self, call: Call, receive: Receive, send: Send) -> None:
        """Carry a WebSocket of a page at an origin."""
        label = self._label(call.scope)
        origin, place = await self._allowed(call, label)
        if call.header(b"origin") != f"{place.scheme}://{place.host}":
            raise Refusal("permission_denied", "unknown Origin header", "use the page of this origin", status=403)
        with self._counted(label):
            await self._twin(call, receive, send, origin, place)

    async def _twin(self, call: Call, receive: Receive, send: Send, origin: _Origin, place: PortPlace) -> None:
        async with self._routes.reaching(origin.name) as hosted:
            talk = Talk(call.scope, receive, send, self._api.settings.bounds, place)
            await talk.twin(_dial(hosted), _raw_path(call.scope) + _query(call.scope))

    def _let_in(self, call: Call, label: str, code: str) -> Reply:
        whose = self._links.redeem(code.encode()) if _CODE.fullmatch(code) else None
        if whose != label or label not in self._known:
            raise _unknown()
        secure = "; Secure" if _scheme(call.scope) == "https" else ""
        cookie = f"{COOKIE}={self._known[label].key}; Path=/; HttpOnly; SameSite=Lax{secure}"
        headers = [
            (b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        ]  # fmt: skip
        return Reply(status=303, headers=headers)

    async def _allowed(self, call: Call, label: str) -> tuple[_Origin, PortPlace]:
        """Check the cookie of a browser, and what its principal may do now."""
        origin = self._known.get(label)
        given = [
            value.strip() for name, header in call.scope["headers"] if name == b"cookie"
            for one in header.split(b";") for key, _, value in [one.partition(b"=")] if key.strip() == COOKIE.encode()
        ]  # fmt: skip
        if origin is None or not any(hmac.compare_digest(one, origin.key.encode()) for one in given):
            raise _unknown()
        if origin.principal is not None:
            call.scope["ramet.principal"] = origin.principal
        with self._api.access.as_principal(call):
            await self._api.access.may_run(call, origin.name)
        host = call.header(b"host") or ""
        return origin, PortPlace(_scheme(call.scope), host, "", origin.port, cookie=COOKIE.encode())


def _unknown() -> Refusal:
    return Refusal(
        "unauthenticated", "this browser was not let in, or the link was used", "Open it again from the console.",
        status=401,
    )  # fmt: skip
