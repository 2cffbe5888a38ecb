"""Workspaces, sessions, history, snapshots and events over HTTP. Store access runs in threads."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from typing import IO, TYPE_CHECKING

from ramet import __version__
from ramet.apps.server import models
from ramet.apps.server.request import NO_STORE, Call, Reply, answer, decode_json
from ramet.apps.server.serialize import change, revision_info, session_info, workspace_info
from ramet.apps.server.uploads import spool
from ramet.core.errors import RametError
from ramet.core.paths import decode, parse
from ramet.store.crypto.codec import as_encrypted
from ramet.store.model.address import parse_address
from ramet.store.model.revisions import Revision
from ramet.store.refs.refs import not_found
from ramet.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.store.verbs.blame import BlameLine

TAR = (b"content-type", b"application/x-tar")
SSE = (b"content-type", b"text/event-stream")
PIECE = 1 << 18


async def health(api: Api, call: Call) -> Reply:
    return answer(models.Health("stopping" if api.workspaces.stopping.is_set() else "ok", __version__))


# ------------------------------------------------------------------------------------------------- workspaces


async def workspaces(api: Api, call: Call) -> Reply:
    workspaces = api.workspaces

    def stored() -> list[tuple[str, Revision | None, bool]]:
        if workspaces.store is None:
            return []
        repository = workspaces.store.repository
        names = [name for name in workspaces.store.ls() if api.access.sees(call, name)]
        return [(name, repository.head(name), repository.refs.is_held(name)) for name in names]

    told = await workspaces.blocking(stored)
    found = [workspace_info(name, workspaces.find(name), head, held) for name, head, held in told]
    memory = [hosted for hosted in workspaces.memory() if api.access.sees_memory(call, hosted.name)]
    found += [workspace_info(hosted.name, hosted, None) for hosted in memory]
    return answer(models.WorkspaceNames(sorted(found, key=lambda info: info.name)))


async def create(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.CreateWorkspace)
    workspaces = api.workspaces
    native = None
    if asked.native is not False:
        native = workspaces.native(asked.name)
        if native is None:
            raise RametError(
                "native_unavailable", "cannot run native programs: this server does not allow them",
                "Start it with `ramet serve --native`.",
            )  # fmt: skip
        native = native if asked.native is True else native.asked(asked.native.plain)
    if asked.kind == "memory":
        hosted = await workspaces.add_memory(asked.name, owner=api.access.principal(call), native=native)
        info = workspace_info(asked.name, hosted, None)
    else:
        if workspaces.find(asked.name) is not None:
            raise RametError("workspace_exists", f"workspace {asked.name!r} exists already", "use it")
        await workspaces.blocking(partial(workspaces.need_store().create, asked.name, native=native or False))
        info = workspace_info(asked.name, None, None)
    api.events.add("created", asked.name, kind=asked.kind)
    return answer(info, 201)


async def show(api: Api, call: Call) -> Reply:
    name, workspaces = call.parts[0], api.workspaces
    hosted = workspaces.find(name)
    head, held = None, False
    if hosted is None or hosted.kind == "stored":
        if workspaces.store is None:
            raise not_found(name)
        head = await workspaces.blocking(workspaces.store.repository.head, name)
        held = workspaces.store.repository.refs.is_held(name)
    return answer(workspace_info(name, hosted, head, held))


async def remove(api: Api, call: Call) -> Reply:
    await api.workspaces.remove(call.parts[0])
    api.events.add("removed", call.parts[0])
    return answer(models.Done())


async def trash(api: Api, call: Call) -> Reply:
    found = await api.workspaces.blocking(api.workspaces.need_store().trash)
    return answer(models.Trash([models.RemovedInfo(one.name, one.time, one.revision) for one in found]))


async def restore(api: Api, call: Call) -> Reply:
    name, workspaces = call.parts[0], api.workspaces
    if workspaces.find(name) is not None:
        raise RametError("workspace_exists", f"cannot restore {name!r}: a workspace of this name exists", "use it")
    await workspaces.blocking(workspaces.need_store().restore, name)
    api.events.add("restored", name)
    return answer(models.Done())


# --------------------------------------------------------------------------------------------------- sessions


async def sessions(api: Api, call: Call) -> Reply:
    asked = call.query(models.SessionsQuery)
    if asked.revision is not None:
        handle = api.handle(call)
        saved = await api.workspaces.blocking(lambda: handle().sessions(asked.revision))
        found = [models.SessionInfo(one.session_id, one.cwd, dict(one.env), one.last_exit_code) for one in saved]
        return answer(models.Sessions(found))
    async with api.using(call) as hosted:
        secret = hosted.ws.secrets.env()
        return answer(models.Sessions([session_info(s, secret) for s in hosted.ws.list_sessions()]))


async def create_session(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.CreateSession)
    async with api.using(call) as hosted:
        bound = api.settings.bounds.sessions
        if len(hosted.ws.list_sessions()) >= bound:
            raise RametError("limit_exceeded", f"the workspace already has {bound} sessions", "close one")
        _check_env(asked.env)
        if asked.cwd is not None and not (await hosted.ws.fs.stat(parse(asked.cwd), follow=True)).is_dir:
            raise NotADirectoryError(20, "Not a directory", asked.cwd)
        made = hosted.ws.create_session(asked.id, env=asked.env, cwd=asked.cwd)
        await api.changed(hosted, f"create session {asked.id}")
        return answer(session_info(made, hosted.ws.secrets.env()), 201)


def _check_env(env: dict[str, str]) -> None:
    for name, value in env.items():
        if not (name.isidentifier() and name.isascii()) or "\0" in value:
            raise RametError("invalid_argument", f"{name!r} cannot be an environment variable", "use letters, digits")


async def session(api: Api, call: Call) -> Reply:
    async with api.using(call) as hosted:
        return answer(session_info(hosted.ws.get_session(call.parts[1]), hosted.ws.secrets.env()))


async def close_session(api: Api, call: Call) -> Reply:
    async with api.using(call) as hosted:
        await hosted.ws.close_session(call.parts[1])
        await api.changed(hosted, f"close session {call.parts[1]}")
        return answer(models.Done())


# ---------------------------------------------------------------------------------------------------- history


async def log(api: Api, call: Call) -> Reply:
    asked = call.query(models.LogQuery)
    handle = api.handle(call)
    records: tuple[int, int] | set[int] | None = None
    if asked.records is not None:
        records = set(map(int, asked.records.split(",")))
    elif asked.first_record is not None or asked.last_record is not None:
        records = (asked.first_record or 1, asked.last_record or sys.maxsize)

    def look() -> tuple[list[Revision], bool, dict[str, list[str]]]:
        ref = handle()
        found = ref.log(
            asked.revision, limit=asked.limit + 1, offset=asked.offset, without=asked.without, records=records
        )
        shown = found[: asked.limit]
        gone = {one.id.hex(): [parent.hex() for parent in ref.expired_parents(one)] for one in shown}
        return shown, len(found) > asked.limit, {name: parents for name, parents in gone.items() if parents}

    shown, more, expired = await api.workspaces.blocking(look)
    return answer(models.Log([revision_info(revision, asked.brief) for revision in shown], more, expired))


async def diff(api: Api, call: Call) -> Reply:
    asked = call.query(models.DiffQuery)
    handle = api.handle(call)
    found = await api.workspaces.blocking(lambda: handle().diff(asked.older, asked.newer))
    return answer(models.Diff([change(one) for one in found[asked.offset : asked.offset + asked.limit]], len(found)))


async def blame(api: Api, call: Call) -> Reply:
    asked = call.query(models.BlameQuery)
    handle = api.handle(call)
    return await api.workspaces.blocking(lambda: _blame(handle().blame(asked.path, asked.revision), asked.brief))


def _blame(found: list[BlameLine], brief: bool) -> Reply:
    """Encode it in the thread that found it: a line may need a kilobyte."""
    lines = [
        models.BlameLine(
            one.number, one.revision.name, decode(one.text).removesuffix("\n"),
            one.writer.session_id if one.writer else None, one.writer.command if one.writer else None,
            one.revision.id.hex(), one.path, one.writer.agent_id if one.writer else None,
            one.writer.number if one.writer else None, one.writer.kind if one.writer else None,
            one.writer.principal if one.writer else None,
        )
        for one in found
    ]  # fmt: skip
    revisions = {one.revision.id: one.revision for one in found}
    ends = not found or found[-1].text.endswith(b"\n")
    return answer(models.Blame(lines, [revision_info(one, brief) for one in revisions.values()], ends))


async def commit(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Commit)
    async with api.using(call) as hosted:
        if hosted.committer is None:
            raise RametError(
                "unsupported",
                "cannot commit: not a stored workspace",
                "create a stored workspace, or terminate the sandbox",
            )
        done = await hosted.committer.commit(
            asked.message, subject=asked.subject, author=asked.author, trace_id=asked.trace_id
        )
        return answer(revision_info(done))


async def fork(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Fork)
    name, workspaces = call.parts[0], api.workspaces
    hosted = workspaces.find(name)
    if hosted is not None and hosted.kind == "memory":
        if asked.revision is not None:
            raise RametError("unsupported", "a memory workspace has no revisions", "omit the revision")
        twin = await workspaces.blocking(hosted.ws.copy)
        made = await workspaces.add_memory(asked.name, twin, owner=api.access.principal(call))
        return answer(workspace_info(asked.name, made, None), 201)
    if workspaces.find(asked.name) is not None:
        raise RametError("workspace_exists", f"workspace {asked.name!r} exists already", "take another name")
    if asked.revision is None and hosted is not None and hosted.committer is not None:
        async with api.using(call):
            await hosted.committer.commit()  # the fork has the caller's current state
    handle = api.handle(call)
    done = await workspaces.blocking(lambda: handle().fork(asked.revision, asked.name))
    api.events.add("forked", asked.name, source=name, revision=done.name)
    return answer(workspace_info(asked.name, None, done), 201)


async def rename(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Rename)
    if api.workspaces.find(asked.name) is not None:
        raise RametError("workspace_exists", f"workspace {asked.name!r} exists already", "take another name")
    handle = api.handle(call)
    async with api.workspaces.alone(call.parts[0]):
        done = await api.workspaces.blocking(lambda: handle().rename(asked.name).head)
    api.events.add("renamed", asked.name, source=call.parts[0])
    return answer(workspace_info(asked.name, None, done))


async def revert(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Revert)
    handle = api.handle(call)
    async with api.workspaces.alone(call.parts[0]):
        done = await api.workspaces.blocking(lambda: handle().revert(asked.revision, asked.message, list(asked.paths)))
    api.events.add("reverted", call.parts[0], revision=done.name)
    return answer(revision_info(done))


async def merge(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Merge)
    handle = api.handle(call)
    other = parse_address(asked.other).name
    await api.access.need(call, other)
    theirs = api.workspaces.find(other)
    if theirs is not None and theirs.committer is not None and other != call.parts[0]:
        await theirs.committer.commit()
    async with api.workspaces.alone(call.parts[0]):
        done = await api.workspaces.blocking(
            lambda: handle().merge(asked.other, asked.message, take=asked.take, edited=asked.edited)
        )
    conflicts = [models.Conflict(one.path, one.why) for one in done.conflicts]
    if done.revision is not None:
        api.events.add("merged", call.parts[0], revision=done.revision.name)
    revision = None if done.revision is None else revision_info(done.revision)
    return answer(models.Merged(revision, conflicts, done.base), 200 if done.ok else 409)


async def undo(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Undo)
    handle = api.handle(call)
    async with api.workspaces.alone(call.parts[0]):
        done = await api.workspaces.blocking(
            lambda: handle().undo(agent=asked.agent, run=asked.run, message=asked.message)
        )
    conflicts = [models.Conflict(one.path, one.why) for one in done.conflicts]
    if done.revision is not None:
        api.events.add("reverted", call.parts[0], revision=done.revision.name)
    revision = None if done.revision is None else revision_info(done.revision)
    return answer(models.Merged(revision, conflicts), 200 if done.ok else 409)


async def tags(api: Api, call: Call) -> Reply:
    handle = api.handle(call)
    found = await api.workspaces.blocking(lambda: handle().tags())
    return answer(models.Tags([models.TagInfo(t.name, t.target.hex(), t.message, t.author, t.time) for t in found]))


async def make_tag(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.MakeTag)
    handle, name = api.handle(call), call.parts[1]
    made = await api.workspaces.blocking(
        lambda: handle().tag(name, asked.revision, message=asked.message, author=asked.author, force=asked.force)
    )
    api.events.add("tagged", call.parts[0], tag=name, revision=made.target.hex())
    return answer(models.TagInfo(made.name, made.target.hex(), made.message, made.author, made.time))


async def untag(api: Api, call: Call) -> Reply:
    handle = api.handle(call)
    await api.workspaces.blocking(lambda: handle().untag(call.parts[1]))
    return answer(models.Done())


async def note(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.MakeNote)
    handle, who = api.handle(call), api.access.principal(call) or asked.author
    made = await api.workspaces.blocking(
        lambda: handle().note(asked.message, asked.revision, path=asked.path or "", line=asked.line, author=who)
    )
    api.events.add("noted", call.parts[0], revision=made.name)
    return answer(revision_info(made), 201)


# -------------------------------------------------------------------------------------------------- snapshots


async def download(api: Api, call: Call) -> Reply:
    """Stream a tar: a thread writes it into a pipe, the response reads the pipe."""
    asked = call.query(models.SnapshotQuery)
    name = call.parts[0]
    hosted = api.workspaces.find(name)
    if hosted is not None and hosted.kind == "memory":
        if asked.kind != "snapshot" or asked.revision is not None:
            raise RametError("unsupported", "a memory workspace supports snapshots only", "omit the other parameters")
        ws: Workspace = hosted.ws
        return Reply(headers=[TAR], blocks=_pipe(api, lambda sink: ws.snapshot(sink, asked.compress)))
    if asked.revision is None and hosted is not None and hosted.committer is not None:
        async with api.using(call):
            await hosted.committer.commit()
    handle = api.handle(call)
    found = await api.workspaces.blocking(lambda: handle().find(asked.revision))

    def write(sink: IO[bytes]) -> None:
        handle().export(sink, found.id.hex(), kind=asked.kind, compress=asked.compress)

    return Reply(headers=[TAR, (b"etag", f'"{found.id.hex()}"'.encode())], blocks=_pipe(api, write))


async def _pipe(api: Api, write: object) -> AsyncIterator[bytes]:
    source, sink = os.pipe()

    def work() -> None:
        with os.fdopen(sink, "wb", PIECE) as file:
            write(file)  # type: ignore[operator]

    writing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        while piece := await asyncio.to_thread(os.read, source, PIECE):
            yield piece
        await writing  # an error aborts the connection, so that a partial tar never looks complete
    finally:
        os.close(source)
        await asyncio.gather(writing, return_exceptions=True)


async def upload(api: Api, call: Call) -> Reply:
    asked = call.query(models.UploadQuery)
    name, workspaces = call.parts[0], api.workspaces
    encrypted = as_encrypted(workspaces.need_store().repository.objects) is not None
    with spool(sealed=encrypted) as file:
        async for block in call.blocks(api.settings.bounds.upload_bytes):
            await asyncio.to_thread(file.write, block) if len(block) > PIECE else file.write(block)
        file.seek(0)
        hosted = workspaces.find(name)
        if hosted is not None and hosted.kind == "memory":
            raise RametError("unsupported", "cannot replace a memory workspace", "upload under another name")
        async with workspaces.alone(name):
            done = await workspaces.blocking(
                workspaces.need_store().import_archive, name, file, prefix=asked.prefix, kind=asked.kind,
                message=asked.message, author=asked.author,
            )  # fmt: skip
    api.events.add("imported", name, revision=done.revision.name)
    return answer(models.Uploaded(name, revision_info(done.revision), list(done.left_out), done.files), 201)


# ----------------------------------------------------------------------------------------------------- events


async def events(api: Api, call: Call) -> Reply:
    asked = call.query(models.EventsQuery)
    last = call.header(b"last-event-id")
    since = asked.since
    if since is None and last is not None:
        if not last.isascii() or not last.isdigit() or len(last) > 18:
            raise RametError(
                "invalid_argument", "Last-Event-ID is not a number", "send the id of the last event you received"
            )
        since = int(last)
    await api.access.may_follow(call, asked.workspace)
    return Reply(headers=[SSE, NO_STORE], blocks=api.events.stream(since, asked.workspace))
