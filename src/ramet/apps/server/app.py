"""`create_app` builds the ASGI application, `serve` runs it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from ramet.core.errors import RametError, missing_extra

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route
except ModuleNotFoundError as error:
    raise missing_extra("server", "the HTTP server") from error

from ramet.apps.server.api import Api, log, problem_for
from ramet.apps.server.auth import Authentication
from ramet.apps.server.connections import ConnectionTable, configure
from ramet.apps.server.events import Events
from ramet.apps.server.open_workspaces import OpenWorkspaces
from ramet.apps.server.openapi import document
from ramet.apps.server.request import Receive, Scope, Send, encode_json
from ramet.apps.server.settings import ServerSettings, read_token
from ramet.concurrency.collector import IdleCollector, idle_collection
from ramet.workspace.stored.store import Store

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
GIT, UI = "/git", "/ui"
OWN = (GIT, UI)
"""Mounts that check the token themselves."""


class App:
    """The whole server as an ASGI application. `mounts` are other applications, behind the same token.

    The rendezvous server at `/git` checks the token itself, because git sends it as a password. The web page at `/ui`
    needs no token: its static files contain nothing of the store.
    """

    def __init__(self, store: Store | None, settings: ServerSettings, mounts: Mapping[str, Any]) -> None:
        self.events = Events(settings.bounds.events)
        self.workspaces = OpenWorkspaces(store, settings, self.events)
        self.connections = ConnectionTable()
        self.api = Api(self.workspaces, settings, self.events, self.connections)
        self._description: bytes | None = None
        self._rest = Starlette(
            routes=[Route("/openapi.json", self._openapi), *(Mount(path, app=app) for path, app in mounts.items())],
            lifespan=self._lifespan,
            exception_handlers={404: self._nothing},
        )
        self._gate = Authentication(self._inside, settings, tuple(f"{path}/" for path in OWN if path in mounts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.api.origins.finds(scope):
            await self.api.at_origin(scope, receive, send)
            return
        await self._gate(scope, receive, send)

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            await self.api(scope, receive, send)
        elif scope["type"] == "websocket":
            await self.api.talk(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    async def _openapi(self, request: Request) -> Response:
        if self._description is None:
            self._description = encode_json(document())
        return Response(self._description, media_type="application/json")

    async def _nothing(self, request: Request, error: Exception) -> Response:
        reply = problem_for("not_found", "no such route", "See /openapi.json.")
        return Response(reply.body, reply.status, media_type="application/problem+json")

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with self.running():
            yield

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start and stop the background work of a server; tests use it without a server."""
        self.workspaces.start()
        try:
            yield
        finally:
            self.stop()
            for failure in await self.workspaces.close():
                log.error("cannot close a workspace", exc_info=failure)

    def stop(self) -> None:
        """End event streams, so that the server can shut down."""
        self.workspaces.stopping.set()
        self.events.close()


def create_app(
    store: Store | None = None, settings: ServerSettings | None = None, mounts: Mapping[str, Any] | None = None
) -> App:
    return App(store, settings or ServerSettings(), mounts or {})


class _Server(uvicorn.Server):
    """Ends event streams on the signal; a graceful shutdown would wait for them forever."""

    app: App
    collector: IdleCollector | None = None

    async def on_tick(self, counter: int) -> bool:
        if self.collector is not None:
            self.collector.tick(busy=bool(self.server_state.tasks))
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.app.stop()
        super().handle_exit(sig, frame)


def serve(
    store: Store | None,
    *,
    host: str = "127.0.0.1",
    port: int = 8750,
    uds: str | None = None,
    token_file: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    settings: ServerSettings | None = None,
    mounts: Mapping[str, Any] | None = None,
    rendezvous: str | None = None,
    ui: bool = False,
    listening: socket.socket | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; then commit everything and release the leases.

    On a unix socket (mode 0600) a token is optional; on TCP it comes from `token_file`, created if missing.
    `rendezvous` is a directory of git repositories served at `/git` with the same token. `ui` serves the web page at
    `/ui/`. `listening` is a listening TCP socket to use instead of a port.
    """
    settings = settings or ServerSettings()
    if not settings.token and token_file is not None:
        settings = replace(settings, token=read_token(token_file))
    if uds is None and not settings.token:
        raise RametError("invalid_config", "a TCP port needs a token", "pass token_file=, or serve on a unix socket")
    if uds is None and host not in LOOPBACK:
        if certificate is None:
            log.warning("serving on %s without TLS: the token is sent in clear text", host)
        settings = replace(settings, hosts=settings.hosts | {host})
    if rendezvous is not None:
        from ramet.apps.git_server import rendezvous as received

        if not settings.token:
            raise RametError("invalid_config", "a rendezvous needs a token", "pass token_file=")
        mounts = {**(mounts or {}), GIT: received(rendezvous, settings.token)}
    if ui:
        from ramet.apps.ui.pages import Pages

        mounts = {**(mounts or {}), UI: Pages(settings.token, settings.principals)}
    app = create_app(store, settings, mounts)
    config = configure(
        app, settings.bounds, app.connections, host=host, port=port, ssl_certfile=certificate, ssl_keyfile=key,
        timeout_graceful_shutdown=10, lifespan="on", websockets=True,
    )  # fmt: skip
    server = _Server(config)
    server.app = app
    with idle_collection() if settings.tune_gc else contextlib.nullcontext() as server.collector:
        if uds is None:
            server.run(None if listening is None else [listening])
            return
        with _socket(uds) as listening:
            try:
                server.run(sockets=[listening])
            finally:
                Path(uds).unlink(missing_ok=True)


def _socket(path: str) -> socket.socket:
    """Create a unix socket that only its owner can use; uvicorn would make it world-writable."""
    Path(path).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(path)
    except OSError:
        made.close()
        raise
    finally:
        os.umask(before)
    made.listen(2048)
    return made


__all__ = ["App", "create_app", "serve"]
