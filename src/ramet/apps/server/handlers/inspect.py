"""Inspect workspaces over HTTP: mounts, commands, jobs, bisect, git export.

An open workspace shows its live state; a closed one is read from its head, without opening it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from ramet.apps.server import models
from ramet.apps.server import models_maintenance as care
from ramet.apps.server.background import in_a_loop, long_work
from ramet.apps.server.handlers.files import BYTES, blocks_of
from ramet.apps.server.request import NDJSON, NO_STORE, Call, Reply, answer, decode_json, encode_json
from ramet.apps.server.serialize import mount_info, revision_info
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.store.model.revisions import Revision
from ramet.store.refs.feed import Cursor, Event
from ramet.store.verbs.git_export import GitExport, branch_name, fast_import
from ramet.workspace.mounts import parse_prefix
from ramet.workspace.record.history import ExecutionRecord, RecordFilter
from ramet.workspace.snapshot.state import finished_jobs
from ramet.workspace.stored.bisect import BisectResult
from ramet.workspace.stored.costs import CostRow, costs_of, total_costs
from ramet.workspace.stored.saved_state import job_of, last_number
from ramet.workspace.stored.store import StoredWorkspace

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.apps.server.open_workspaces import OpenWorkspace
    from ramet.workspace.mounts import Mount


# --------------------------------------------------------------------------------------------------------- mounts


async def mounts(api: Api, call: Call) -> Reply:
    asked, hosted = call.query(care.RevisionQuery), api.workspaces.find(call.parts[0])
    if hosted is not None and asked.revision is None:
        return answer(care.MountList([_live(mount) for mount in hosted.ws.mounts(scratch=True)]))
    handle = api.handle(call)
    found = await api.workspaces.blocking(lambda: handle().mounts(asked.revision))
    return answer(care.MountList([mount_info(mount) for mount in found]))


def _live(mount: Mount) -> models.MountInfo:
    kind = type(mount.resource).__name__.removesuffix("Resource").lower()
    return models.MountInfo(str(mount.prefix), kind, mount.mode.value, scratch=mount.scratch)


async def mount(api: Api, call: Call) -> Reply:
    """Add an empty mount with content in the store. Other mounts are set when the server starts."""
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.MakeMount)
    async with api.using(call) as hosted:
        hosted.ws.mount(asked.prefix, RAMResource(), asked.mode)
        if isinstance(hosted.ws, StoredWorkspace):
            hosted.ws.stream_uploads()
        await api.changed(hosted, asked.message or f"mount {asked.prefix}")
        place = parse_prefix(asked.prefix)
        made = next(one for one in hosted.ws.mounts() if one.prefix == place)
        return answer(_live(made), 201)


async def umount(api: Api, call: Call) -> Reply:
    asked = call.query(care.PrefixQuery)
    async with api.using(call) as hosted:
        await (await hosted.ws.unmount(asked.prefix)).close()
        await api.changed(hosted, asked.message or f"umount {asked.prefix}")
        return answer(models.Done())


# -------------------------------------------------------------------------------------------------- commands and jobs


async def history(api: Api, call: Call) -> Reply:
    asked = call.query(care.HistoryQuery)
    where = asked.where
    if where == RecordFilter() and (asked.revision is not None or api.workspaces.find(call.parts[0]) is None):
        handle = api.handle(call)

        def newest() -> tuple[list[ExecutionRecord], int]:
            ref = handle()
            return ref.history(asked.revision, last=asked.last), ref.count_history(asked.revision)

        return answer(care.CommandHistory(*await api.workspaces.blocking(newest)))
    if where == RecordFilter() and (hosted := api.workspaces.find(call.parts[0])) is not None:
        live = hosted.ws.history
        await live.load_older()
        return answer(care.CommandHistory(live.after(live.next_number - 1 - asked.last), len(live)))
    found = await _records(api, call, asked.revision, where)
    return answer(care.CommandHistory(found[-asked.last :], len(found)))


async def costs(api: Api, call: Call) -> Reply:
    asked, hosted = call.query(care.CostsQuery), api.workspaces.find(call.parts[0])
    if hosted is None or asked.revision is not None:
        handle = api.handle(call)
        rows = await api.workspaces.blocking(
            lambda: handle().costs(asked.revision, by=asked.by, since=asked.since, until=asked.until)
        )
        return answer(care.CostTotals(rows))
    if hosted.kind == "stored" and asked.since is None and asked.until is None:
        return answer(care.CostTotals(await _live_costs(api, hosted, asked.by)))
    found = await _records(api, call, asked.revision)
    return answer(care.CostTotals(total_costs(found, by=asked.by, since=asked.since, until=asked.until)))


async def _live_costs(api: Api, hosted: OpenWorkspace, by: str) -> list[CostRow]:
    """Total what is committed, most of which was totalled before, and the records that are not committed yet."""
    repository = api.workspaces.need_store().repository

    def committed() -> tuple[Revision | None, int]:
        latest = repository.head_and_latest(hosted.name)[1]
        return latest, 0 if latest is None else last_number(repository, latest)

    latest, last = await api.workspaces.blocking(committed)
    newer = hosted.ws.history.after(last)
    return await api.workspaces.blocking(
        lambda: total_costs(newer, by=by) if latest is None else costs_of(repository, latest, newer, by=by)
    )


async def _records(
    api: Api, call: Call, revision: str | None, where: RecordFilter | None = None
) -> list[ExecutionRecord]:
    """The records of a revision that fit; without a revision, also those that are not committed yet."""
    hosted = api.workspaces.find(call.parts[0])
    if hosted is not None and revision is None:
        await hosted.ws.history.load_older()
        return [one for one in hosted.ws.history if where is None or where.fits(one)]
    handle = api.handle(call)
    return await api.workspaces.blocking(lambda: handle().history(revision, where=where))


async def completions(api: Api, call: Call) -> Reply:
    asked = call.query(care.CompletionQuery)
    async with api.seeing(call, asked.revision) as hosted:
        found = await hosted.ws.complete(asked.line, asked.session)
        return answer(care.Completions(found.start, found.words))


async def questions(api: Api, call: Call) -> Reply:
    """A workspace that is not open has no pending question."""
    hosted = api.workspaces.find(call.parts[0])
    if hosted is None:
        await api.workspaces.blocking(api.handle(call))
        return answer(care.Questions([]))
    found = [
        care.QuestionInfo(
            one.number, one.request.kind, one.request.name, hosted.ws.secrets.scrub_text(one.request.subject),
            one.request.session_id, one.request.agent_id, one.asked_at,
        )
        for one in hosted.ws.questions()
    ]  # fmt: skip
    return answer(care.Questions(found))


async def answer_question(api: Api, call: Call) -> Reply:
    """A principal does not answer what its own commands ask."""
    said = decode_json(await call.body(api.settings.bounds.json_bytes), care.AnswerQuestion)
    hosted, text = api.workspaces.find(call.parts[0]), call.parts[1]
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    pending = [] if hosted is None else [one for one in hosted.ws.questions() if one.number == number]
    if hosted is None or not pending:
        raise RametError("not_found", f"no question {number or text!r} is pending", "It may have been answered.")
    who = api.access.principal(call)
    if who is not None and not api.access.is_administrator(call) and pending[0].principal in ("", who):
        raise RametError(
            "permission_denied", f"{who!r} cannot answer question {number}: it may be about its own command",
            "Let another principal answer, or use the server's own token.",
        )  # fmt: skip
    hosted.ws.answer(number, said.allow)
    return answer(models.Done())


async def ended_jobs(api: Api, call: Call) -> Reply:
    asked, hosted = call.query(care.RevisionQuery), api.workspaces.find(call.parts[0])
    if hosted is not None and asked.revision is None:
        return answer(care.EndedJobs([job_of(plain) for plain in finished_jobs(hosted.ws)]))
    handle = api.handle(call)
    return answer(care.EndedJobs(await api.workspaces.blocking(lambda: handle().jobs(asked.revision))))


async def bisect(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Bisect)
    if "\0" in asked.command:
        raise RametError("invalid_argument", "a command cannot contain a NUL character", "remove it")
    handle = api.handle(call)
    seconds = None if asked.timeout_ms is None else asked.timeout_ms / 1000
    work = in_a_loop(
        lambda progress: handle().bisect(asked.good, asked.bad, asked.command, timeout=seconds, progress=progress)
    )
    return await long_work(api, call, work, _bisect_info, stream=asked.stream)


def _bisect_info(found: BisectResult) -> care.Bisected:
    return care.Bisected(
        None if found.first_bad is None else revision_info(found.first_bad),
        [revision_info(one) for one in found.suspects],
        [care.Tried(revision_info(step.revision), step.verdict, step.exit_code) for step in found.steps],
    )


async def git(api: Api, call: Call) -> Reply:
    """Export the history for `git fast-import`; a comment before the end reports what was written and omitted."""
    name, repository = call.parts[0], api.workspaces.need_store().repository
    handle, hosted = api.handle(call), api.workspaces.find(name)
    if hosted is not None and hosted.committer is not None:
        await hosted.committer.commit()
    await api.workspaces.blocking(lambda: handle().find())
    done = GitExport(branch_name(name))
    pieces = _append_report(fast_import(repository, name, done), done)
    return Reply(headers=[BYTES, NO_STORE], blocks=blocks_of(api, pieces))


def _append_report(pieces: Iterator[bytes], done: GitExport) -> Iterator[bytes]:
    for piece in pieces:
        yield (b"# ramet %s\n" % encode_json(done) + piece) if piece == b"done\n" else piece


# ----------------------------------------------------------------------------------------------------------- feed


async def feed(api: Api, call: Call) -> Reply:
    asked = call.query(care.FeedQuery)
    await api.access.may_follow(call, None)
    Cursor.decode(asked.since)  # refuse a bad cursor before the response starts
    events = api.workspaces.need_store().events(asked.since, follow=asked.follow)
    return Reply(headers=[NDJSON, NO_STORE], blocks=_event_lines(api, events))


async def _event_lines(api: Api, events: Any) -> AsyncIterator[bytes]:
    try:
        while (event := await _next(api, events)) is not None:
            yield encode_json({"cursor": event.cursor, "envelope": event.envelope}) + b"\n"
    finally:
        await events.aclose()


async def _next(api: Api, events: Any) -> Event | None:
    """Return the next event; None at the end, or when the server stops."""
    coming = asyncio.ensure_future(anext(events, None))
    stopping = asyncio.ensure_future(api.workspaces.stopping.wait())
    try:
        await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            found: Event | None = coming.result()
            return found
        return None
    finally:
        stopping.cancel()
        if not coming.done():
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming
