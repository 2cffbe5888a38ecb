"""`Api`: route a request to its handler and turn the outcome into a response."""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final
from urllib.parse import unquote

from ramet.apps.server.access import Authorization
from ramet.apps.server.connections import ConnectionTable
from ramet.apps.server.events import Events
from ramet.apps.server.idempotency import IdempotencyKeys
from ramet.apps.server.open_workspaces import OpenWorkspace, OpenWorkspaces
from ramet.apps.server.port_proxy import ProgramFailed
from ramet.apps.server.ports import PortOrigins, PortRoutes
from ramet.apps.server.problems import Refusal, internal, make_problem, problem_of
from ramet.apps.server.request import (
    NO_STORE,
    PROBLEM,
    Call,
    ClientGone,
    Receive,
    Reply,
    Scope,
    Send,
    encode_json,
    plain,
    send_reply,
)
from ramet.apps.server.routes import ROUTES, Route
from ramet.apps.server.settings import ServerSettings
from ramet.apps.server.terminals import TerminalConnection
from ramet.core.errors import RametError
from ramet.workspace.record.recorder import acting
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.store import StoredWorkspace

log: Final = logging.getLogger("ramet.server")
Passing = Callable[[Call, Receive, Send], Awaitable[None]]
TERMINAL: Final = re.compile(r"/v1/workspaces/([^/]+)/terminal")
"""The path of the WebSocket; all others are in the table of routes."""


class Api:
    """An ASGI application for everything below `/v1`."""

    def __init__(
        self, workspaces: OpenWorkspaces, settings: ServerSettings, events: Events, connections: ConnectionTable
    ) -> None:
        self.workspaces, self.settings, self.events, self.connections = workspaces, settings, events, connections
        self.started_at = time.time()
        self.keys = IdempotencyKeys(workspaces, settings.bounds)
        self.access = Authorization(workspaces, settings)
        self.working = 0
        """Number of long operations in progress."""
        self.terminals = 0
        """Number of connected terminals."""
        self.ports = PortRoutes(self)
        self.origins = PortOrigins(self, self.ports)
        self._tree: dict[str, Any] = {}
        for route in ROUTES:
            node = self._tree
            for part in route.path[1:].split("/"):
                node = node.setdefault("*" if part.startswith("{") else part, {})
            node.setdefault("", {})[route.method] = route
            if route.method == "GET" and route.path.endswith("/file"):
                node[""]["HEAD"] = route

    # ---------------------------------------------------------------------------------------- for handlers

    @contextlib.asynccontextmanager
    async def using(self, call: Call) -> AsyncIterator[OpenWorkspace]:
        hosted = await self.workspaces.enter(call.parts[0])
        try:
            yield hosted
        finally:
            hosted.leave()

    @contextlib.asynccontextmanager
    async def seeing(self, call: Call, revision: str | None) -> AsyncIterator[OpenWorkspace]:
        """Enter the live workspace, or open a revision for this request only."""
        async with self.using(call) if revision is None else self.workspaces.past(call.parts[0], revision) as hosted:
            yield hosted

    def handle(self, call: Call) -> Callable[[], StoredWorkspaceRef]:
        """Return a function that finds the stored workspace without opening it; call it in a thread."""
        store, name = self.workspaces.need_store(), call.parts[0]

        def found() -> StoredWorkspaceRef:
            store.repository.refs.require(name)
            return StoredWorkspaceRef(store.repository, name)

        return found

    def commits_before_answer(self, hosted: OpenWorkspace) -> bool:
        return hosted.committer is not None and self.settings.durable == "answer"

    async def durable(self, hosted: OpenWorkspace, message: str) -> None:
        if hosted.committer is not None and self.settings.durable == "answer":
            await hosted.committer.commit(subject=message)
        elif isinstance(hosted.ws, StoredWorkspace):
            await hosted.ws.acknowledge()  # a sandbox: its changes become a draft

    async def changed(self, hosted: OpenWorkspace, message: str) -> None:
        """Make a request's changes as durable as the settings say, and publish an event."""
        await self.durable(hosted, message)
        self.events.add("changed", hosted.name, what=message)

    # ------------------------------------------------------------------------------------------- dispatch

    def find(self, method: str, path: str) -> tuple[Route, list[str]]:
        """Find the route of a path and the values of its placeholders."""
        node, parts = self._tree, []
        for part in path[1:].split("/"):
            below = node.get(part) if part not in ("", "*") else None
            if below is None:
                below = node.get("*") if part else None
                if below is None:
                    raise Refusal("not_found", "no such route", "See /openapi.json.")
                parts.append(unquote(part, errors="surrogateescape"))
            node = below
        methods = node.get("")
        if methods is None:
            raise Refusal("not_found", "no such route", "See /openapi.json.")
        route = methods.get(method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise Refusal(
                "invalid_argument", f"method {method} is not allowed here", f"use {allowed}", status=405,
                headers={"allow": allowed},
            )  # fmt: skip
        return route, parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(scope, receive, scope.get("ramet.client", ""))
        try:
            with acting(principal=self.access.principal(call) or ""), self.access.as_principal(call):
                if self.ports.finds(scope):
                    await self._pass_on(call, receive, send, self.ports.answer)
                    return
                reply = await self._answer(call)
                await send_reply(reply, call, send)
        except ClientGone:
            return
        except asyncio.CancelledError:
            if not call.gone:
                raise

    async def at_origin(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at the origin of a program."""
        call, origins = Call(scope, receive), self.origins
        talks = scope["type"] == "websocket"
        await self._pass_on(call, receive, send, origins.talk if talks else origins.answer)

    async def _pass_on(self, call: Call, receive: Receive, send: Send, act: Passing) -> None:
        """Let a program answer, or say why it cannot."""
        try:
            await act(call, receive, send)
            return
        except (ClientGone, ProgramFailed):
            return  # the server closes the connection of an answer that is not whole
        except Refusal as error:
            refused = error
        except (RametError, OSError) as error:
            found = problem_of(error) or internal()
            refused = Refusal(found.code, found.cause, found.remediation, status=found.status)
        if call.scope["type"] == "websocket":
            await refuse_websocket(refused, call, send)
        elif act == self.origins.answer and "text/html" in (call.header(b"accept") or ""):
            await send_reply(problem_page(refused), call, send)
        else:
            await send_reply(problem_reply(refused), call, send)

    async def talk(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket: the terminal of a workspace, a program that listens in it, or a refusal."""
        call = Call(scope, receive, scope.get("ramet.client", ""))
        if self.ports.finds(scope):
            with acting(principal=self.access.principal(call) or ""), self.access.as_principal(call):
                await self._pass_on(call, receive, send, self.ports.talk)
            return
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        found = TERMINAL.fullmatch(raw.partition(b"?")[0].decode("ascii", "replace"))
        if found is None:
            await refuse_websocket(Refusal("not_found", "no such route", "See /openapi.json."), call, send)
            return
        call.parts = [unquote(found[1], errors="surrogateescape")]
        self.terminals += 1
        try:
            with acting(principal=self.access.principal(call) or ""), self.access.as_principal(call):
                await TerminalConnection(self, call, receive, send).serve()
        finally:
            self.terminals -= 1

    async def _answer(self, call: Call) -> Reply:
        scope = call.scope
        try:
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            route, call.parts = self.find(scope["method"], raw.partition(b"?")[0].decode("ascii", "replace"))
            await self.access.check(call, route)
            if route.query.__struct_fields__ == ():
                call.query(route.query)
            key = call.header(b"idempotency-key") if scope["method"] not in ("GET", "HEAD") else None
            if key is not None and not route.fresh:
                return await self.keys.once(self, call, key, route.handler)
            return await route.handler(self, call)
        except ClientGone:
            raise
        except Refusal as refused:
            return problem_reply(refused)
        except Exception as error:
            problem = problem_of(error)
            if problem is None or problem.status >= 500:
                log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            return Reply(encode_json(problem or internal()), (problem or internal()).status, [PROBLEM])


async def refuse_websocket(refused: Refusal, call: Call, send: Send) -> None:
    """Answer the request for a WebSocket with a problem, or with 403 where the server can send no more."""
    if "websocket.http.response" not in call.scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    reply = problem_reply(refused)
    await send({"type": "websocket.http.response.start", "status": reply.status, "headers": reply.headers})
    await send({"type": "websocket.http.response.body", "body": reply.body})


def problem_reply(refused: Refusal) -> Reply:
    return Reply(encode_json(refused.problem), refused.problem.status, [PROBLEM, *plain(refused.headers)])


def problem_page(refused: Refusal) -> Reply:
    """Say a problem to a person at the origin of a program."""
    problem = refused.problem
    cause, remedy = html.escape(problem.cause), html.escape(problem.remediation)
    page = f"<!doctype html><meta charset=utf-8><title>{problem.status}</title><h1>{cause}</h1><p>{remedy}</p>"
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", b"default-src 'none'")]
    return Reply(page.encode(), problem.status, [*headers, NO_STORE, *plain(refused.headers)])


def problem_for(code: str, cause: str, remediation: str, status: int | None = None) -> Reply:
    problem = make_problem(code, cause, remediation, status=status)
    return Reply(encode_json(problem), problem.status, [PROBLEM])
