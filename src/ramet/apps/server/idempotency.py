"""`Idempotency-Key`: a repeated request gets the first response and changes nothing.

A key belongs to a method, path, query and body (409 with another one); of a body above the bound of JSON bodies, the
beginning and the declared length count. Rules:
- Responses stay in memory, bounded in number and time, and in the store as long as the request's effect.
- A request inside a stored workspace: the response is written to the store before it is sent, under a mark that the
  revision with the effect carries. A repeat after a crash finds

  | mark in a revision | response | then |
  |---|---|---|
  | yes | yes | the response is sent again |
  | no | no | the request runs |
  | yes | no | `outcome_unknown`: only the caller can decide |

- A request that creates or removes workspaces or revisions, or changes retention, leaves no mark. Its start is written
  to the store first. If the server ended before it responded, a repeat is refused as `outcome_unknown`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import Call, Reply
from ramet.apps.server.settings import Bounds
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.apps.server.open_workspaces import OpenWorkspaces

KEY: Final = re.compile(r"[!-~]{1,255}")
LARGEST: Final = 1 << 20
"""Largest response in bytes that is remembered; streamed responses are not."""
REPLAYED: Final = (b"idempotency-replayed", b"true")
ANSWERS: Final = "server/answers/"
DAY: Final = 86_400
LOOK_BACK: Final = 10_000
"""Number of revisions searched for the mark of a request."""


class IdempotencyKeys:
    """Responses by client and idempotency key."""

    def __init__(self, workspaces: OpenWorkspaces, bounds: Bounds, clock: Callable[[], float] = time.time) -> None:
        self._workspaces, self._bounds, self._clock = workspaces, bounds, clock
        self._swept = -1
        """Day of the last removal of old responses from the store."""
        self._known: OrderedDict[str, tuple[float, str, Reply]] = OrderedDict()
        self._running: dict[str, tuple[str, asyncio.Future[None]]] = {}

    async def once(self, api: Api, call: Call, key: str, handler: Callable[[Any, Call], Awaitable[Reply]]) -> Reply:
        if not KEY.fullmatch(key):
            raise Refusal("invalid_argument", "invalid Idempotency-Key", "use 1 to 255 visible characters")
        scope = call.scope
        name = hashlib.sha256(f"{call.client}\0{key}".encode()).hexdigest()
        body = await call.peek(self._bounds.json_bytes)
        asked = hashlib.sha256(
            b"\0".join([scope["method"].encode(), scope["raw_path"], scope["query_string"], body])
        ).hexdigest()
        while name in self._running:
            before, running = self._running[name]
            _same(before, asked)
            await asyncio.shield(running)
        known = self._known.get(name)
        if known is not None and known[0] > time.monotonic():
            _same(known[1], asked)
            return _again(known[2])
        done = asyncio.get_running_loop().create_future()
        self._running[name] = asked, done
        try:
            stored = await self._recall(call, name, asked)
            reply = stored if stored is not None else await self._run(api, call, name, asked, handler)
            if reply.blocks is None and len(reply.body) <= LARGEST and reply.status < 500:
                self._remember(name, asked, reply)
            return reply
        finally:
            del self._running[name]
            done.set_result(None)

    def _remember(self, name: str, asked: str, reply: Reply) -> None:
        now = time.monotonic()
        self._known.pop(name, None)
        self._known[name] = now + self._bounds.key_seconds, asked, reply
        while len(self._known) > self._bounds.keys or next(iter(self._known.values()))[0] <= now:
            self._known.popitem(last=False)  # the oldest, and with it any that expired
            if not self._known:
                break

    # ---------------------------------------------------------------------------------- in the store

    async def _run(
        self, api: Api, call: Call, name: str, asked: str, handler: Callable[[Any, Call], Awaitable[Reply]]
    ) -> Reply:
        hosted = None
        if call.parts and self._workspaces.store is not None and _inside(call):
            try:
                hosted = await self._workspaces.enter(call.parts[0])
            except RametError:
                hosted = None  # the handler reports the error
        if hosted is None or hosted.committer is None:
            if hosted is not None:
                hosted.leave()
            elif self._workspaces.store is not None and not _inside(call):
                return await self._run_logged(api, call, name, asked, handler)
            return await handler(api, call)
        mark = f"idempotency:{name[:32]}"
        hosted.committer.keys[mark] = None
        try:
            reply = await handler(api, call)
            if reply.blocks is None and len(reply.body) <= LARGEST and reply.status < 400:
                await self._workspaces.blocking(self._write, call.parts[0], name, asked, reply)
            return reply
        finally:
            hosted.committer.keys.pop(mark, None)
            hosted.leave()

    async def _run_logged(
        self, api: Api, call: Call, name: str, asked: str, handler: Callable[[Any, Call], Awaitable[Reply]]
    ) -> Reply:
        """Run a request that changes no workspace's inside: store its start, then its response."""
        blocking = self._workspaces.blocking
        place = await blocking(self._begin, name, asked)
        kept = False
        try:
            reply = await handler(api, call)
            if reply.blocks is None and len(reply.body) <= LARGEST and reply.status < 400:
                await blocking(self._write, "", name, asked, reply)
                kept = True
            return reply
        finally:
            if not kept:  # refused or streamed: a repeat runs
                await asyncio.shield(blocking(self._workspaces.need_store().repository.objects.delete, place))

    def _begin(self, name: str, asked: str) -> str:
        place = _place(name, self._clock())
        self._workspaces.need_store().repository.objects.put(place, json.dumps({"asked": asked}).encode())
        return place

    def _write(self, workspace: str, name: str, asked: str, reply: Reply) -> None:
        plain = {
            "asked": asked, "status": reply.status, "body": reply.body.decode("utf-8", "surrogateescape"),
            "headers": [[key.decode("latin-1"), value.decode("latin-1")] for key, value in reply.headers],
        }  # fmt: skip
        # A response may contain file content: encrypt it with the workspace's keys, so that shredding covers it.
        now, repository = self._clock(), self._workspaces.need_store().repository
        objects = repository.objects_of(workspace) if workspace else repository.objects
        objects.put(_place(name, now), json.dumps(plain).encode())
        if self._swept != (today := int(now // DAY)):
            self._swept = today
            for key in list(repository.objects.list(ANSWERS)):
                day = key.removeprefix(ANSWERS).partition("/")[0]
                if day.isdigit() and int(day) < today - 1:
                    repository.objects.delete(key)

    async def _recall(self, call: Call, name: str, asked: str) -> Reply | None:
        if self._workspaces.store is None:
            return None
        found = await self._workspaces.blocking(self._read, name)
        if found is not None:
            _same(found["asked"], asked)
            if "status" not in found:
                raise _unknown("the server stopped while this request ran")
            headers = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in found["headers"]]
            return _again(Reply(found["body"].encode("utf-8", "surrogateescape"), found["status"], headers))
        mark = f"idempotency:{name[:32]}"
        if call.parts and _inside(call) and await self._workspaces.blocking(self._has_happened, call.parts[0], mark):
            raise _unknown("the server stopped after this request took effect, before it responded")
        return None

    def _read(self, name: str) -> dict[str, Any] | None:
        objects = self._workspaces.need_store().repository.objects
        now = self._clock()
        for moment in (now, now - DAY):
            try:
                found: dict[str, Any] = json.loads(objects.get(_place(name, moment)))
                return found
            except KeyError:
                continue
        return None

    def _has_happened(self, workspace: str, mark: str) -> bool:
        try:
            log = self._workspaces.need_store()[workspace].log()
        except RametError:
            return False
        return any(mark in revision.trace_id.split() for revision in log[:LOOK_BACK])


def _inside(call: Call) -> bool:
    """Return whether a request changes the inside of a workspace, rather than the set of workspaces or revisions."""
    verb = call.scope["path"].split("/")[4:5]
    return verb in (["exec"], ["file"], ["dir"], ["move"], ["copy"], ["link"], ["sessions"], ["mounts"])


def _place(name: str, moment: float) -> str:
    return f"{ANSWERS}{int(moment // DAY)}/{name}"


def _unknown(cause: str) -> Refusal:
    return Refusal("outcome_unknown", cause, "check the current state, then repeat with a new key if needed")


def _same(before: str, now: str) -> None:
    if before != now:
        raise Refusal(
            "invalid_argument", "this Idempotency-Key was used for another request", "use a new key", status=409
        )


def _again(reply: Reply) -> Reply:
    return Reply(reply.body, reply.status, [*reply.headers, REPLAYED])
