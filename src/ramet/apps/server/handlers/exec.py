"""Run commands: buffered, streamed or detached. A disconnected client cancels its command."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

from ramet.apps.server import models
from ramet.apps.server.problems import Refusal, internal, problem_of
from ramet.apps.server.request import NDJSON, NO_STORE, Call, Reply, answer, decode_json, encode_json, too_large
from ramet.apps.server.serialize import exec_result, text_or_base64
from ramet.apps.server.uploads import PIECE, spool
from ramet.core.errors import RametError
from ramet.core.limits import Limits
from ramet.store.crypto.codec import as_encrypted
from ramet.workspace.changes import ChangeWatch
from ramet.workspace.execution import Execution, Output
from ramet.workspace.result import IOResult

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.apps.server.open_workspaces import OpenWorkspace


@dataclass
class RunningJob:
    """A detached command."""

    id: str
    command: str
    session: str
    started_at: float
    task: asyncio.Task[None] = field(init=False)
    ended_at: float | None = None
    result: models.ExecResult | None = None
    problem: models.Problem | None = None
    killed: bool = False

    def info(self) -> models.Job:
        if self.ended_at is None:
            state = "running"
        elif self.killed:
            state = "killed"
        else:
            state = "failed" if self.problem is not None else "completed"
        return models.Job(
            self.id, self.command, self.session, state, self.started_at, self.ended_at, self.result,  # type: ignore[arg-type]
            self.problem,
        )  # fmt: skip


Stdin = bytes | AsyncIterator[bytes] | None


async def run(api: Api, call: Call) -> Reply:
    if call.scope["query_string"] and call.query(models.ExecQuery).stdin is not None:
        return await _run_with_stdin_body(api, call)
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Exec)
    return await _run(api, call, asked, _stdin(asked))


async def _run_with_stdin_body(api: Api, call: Call) -> Reply:
    """Run a command whose stdin follows the request; the stdin is spooled to a file first.

    Most HTTP clients read no response before they have sent the whole body, so a command that started at once could
    block forever on its output.
    """
    store = api.workspaces.store
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(
            spool(sealed=store is not None and as_encrypted(store.repository.objects) is not None)
        )
        asked = decode_json(await _spool_stdin(api, call, file), models.Exec)
        if asked.stdin is not None or asked.stdin_base64 is not None:
            raise _twice()
        if asked.detach:
            raise Refusal(
                "unsupported", "a detached command cannot stream stdin", "write the input to a file, and read that"
            )
        reply = await _run(api, call, asked, _read(file))
        if reply.blocks is not None:
            reply.blocks = _with(reply.blocks, stack.pop_all())
        return reply


async def _spool_stdin(api: Api, call: Call, file: IO[bytes]) -> bytes:
    """Return the first line of a body; write the rest to the file."""
    bounds = api.settings.bounds
    head, whole = b"", False
    async for block in call.blocks(bounds.upload_bytes):
        if not whole:
            line, end, block = (head + block).partition(b"\n")
            head, whole = line, bool(end)
            if len(head) > bounds.json_bytes:
                raise too_large(bounds.json_bytes)
        await asyncio.to_thread(file.write, block) if len(block) > PIECE else file.write(block)
    file.seek(0)
    return head


async def _read(file: IO[bytes]) -> AsyncIterator[bytes]:
    while block := await asyncio.to_thread(file.read, PIECE):
        yield block


async def _with(blocks: AsyncIterator[bytes], stack: contextlib.ExitStack) -> AsyncIterator[bytes]:
    """Yield blocks, then close what `stack` holds."""
    with stack:
        async with contextlib.aclosing(blocks):  # type: ignore[type-var]
            async for block in blocks:
                yield block


async def _run(api: Api, call: Call, asked: models.Exec, stdin: Stdin) -> Reply:
    if asked.revision is not None:
        return await _past(api, call, asked, asked.revision, stdin)
    hosted = await api.workspaces.enter(call.parts[0])
    handed_over = False
    try:
        if asked.detach:
            return _start_job(api, hosted, asked, stdin)
        if asked.stream:
            reply = Reply(status=200, headers=[NDJSON, NO_STORE])
            execution = _execution(hosted, asked, stdin, api.settings.bounds.command_seconds, buffered=False)
            reply.blocks = _stream_reply(api, hosted, asked, execution)
            handed_over = True
            return reply
        execution = _execution(hosted, asked, stdin, api.settings.bounds.command_seconds)
        result = await call.watched(_finish(api, hosted, asked, execution))
        return answer(exec_result(result, asked.encoding == "base64"))
    finally:
        if not handed_over:
            hosted.leave()


async def _past(api: Api, call: Call, asked: models.Exec, revision: str, stdin: Stdin) -> Reply:
    """Run a command on a revision, in a private workspace."""
    if asked.detach:
        raise Refusal("unsupported", "cannot detach a command on a revision", "fork the revision, and run it there")
    async with contextlib.AsyncExitStack() as stack:
        hosted = await stack.enter_async_context(api.workspaces.past(call.parts[0], revision))
        execution = _execution(hosted, asked, stdin, api.settings.bounds.command_seconds, buffered=not asked.stream)
        if asked.stream:
            blocks = _stream_reply(api, hosted, asked, execution)
            return Reply(headers=[NDJSON, NO_STORE], blocks=_until(blocks, stack.pop_all()))
        return answer(exec_result(await call.watched(execution), asked.encoding == "base64"))


async def _until(blocks: AsyncGenerator[bytes, None], stack: contextlib.AsyncExitStack) -> AsyncIterator[bytes]:
    """Yield blocks, then close what the asynchronous `stack` holds."""
    async with stack, contextlib.aclosing(blocks):
        async for block in blocks:
            yield block


def _stdin(asked: models.Exec) -> bytes | None:
    if asked.stdin_base64 is None:
        return None if asked.stdin is None else asked.stdin.encode()
    if asked.stdin is not None:
        raise _twice()
    try:
        return base64.b64decode(asked.stdin_base64, validate=True)
    except binascii.Error:
        raise Refusal("invalid_argument", "stdin_base64 is not base64", "encode the bytes with base64") from None


def _twice() -> Refusal:
    return Refusal("invalid_argument", "stdin is given twice", "send one of stdin, stdin_base64 and a following body")


def _timeout(hosted: OpenWorkspace, asked: models.Exec, seconds: float) -> float | None:
    """The time that the request names, else what the workspace says, else what the server gives."""
    if asked.timeout_ms is not None:
        return asked.timeout_ms / 1000
    return seconds if hosted.ws.settings.limits.wall_time is None else None


def _execution(
    hosted: OpenWorkspace, asked: models.Exec, stdin: Stdin, seconds: float, *, buffered: bool = True
) -> Execution:
    limits = hosted.ws.settings.limits
    if not buffered:
        limits = replace(limits, output_bytes=Limits().output_bytes)
    if "\0" in asked.command:
        raise Refusal("invalid_argument", "a command cannot contain a NUL character", "remove it")
    return hosted.ws.execute(
        asked.command, asked.session, stdin, asked.provision, asked.agent, asked.native, cwd=asked.cwd, env=asked.env,
        limits=limits, timeout=_timeout(hosted, asked, seconds), meta=asked.meta,
    )  # fmt: skip


async def _finish(api: Api, hosted: OpenWorkspace, asked: models.Exec, execution: Execution) -> IOResult:
    if not api.commits_before_answer(hosted) or asked.provision:
        result = await execution
    else:
        watch = ChangeWatch(hosted.ws, hosted.ws.get_session(asked.session))
        try:
            result = await execution
        finally:
            changed = watch.changed()
        if changed or asked.message:
            await _durable(api, hosted, asked)
    api.events.add("exec", hosted.name, session=asked.session, exit_code=result.exit_code)
    return result


async def _durable(api: Api, hosted: OpenWorkspace, asked: models.Exec) -> None:
    if api.commits_before_answer(hosted) and hosted.committer is not None:
        await hosted.committer.commit(asked.message, subject=_subject(hosted, asked), author=asked.author)


def _subject(hosted: OpenWorkspace, asked: models.Exec) -> str:
    return hosted.ws.secrets.scrub_text(asked.command.strip().partition("\n")[0][:72])


async def executed(
    api: Api, hosted: OpenWorkspace, asked: models.Exec, execution: Execution
) -> AsyncGenerator[Output, None]:
    """Yield the output of a command, then make what it changed durable."""
    watch = None
    if api.commits_before_answer(hosted):
        watch = ChangeWatch(hosted.ws, hosted.ws.get_session(asked.session))
    async with contextlib.aclosing(aiter(execution)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            yield piece
    assert execution.result is not None
    if watch is not None and (watch.changed() or asked.message):
        await _durable(api, hosted, asked)
    api.events.add("exec", hosted.name, session=asked.session, exit_code=execution.result.exit_code)


async def _stream_reply(
    api: Api, hosted: OpenWorkspace, asked: models.Exec, execution: Execution
) -> AsyncGenerator[bytes, None]:
    forced = asked.encoding == "base64"
    try:
        try:
            async with contextlib.aclosing(executed(api, hosted, asked, execution)) as pieces:
                async for fd, data in pieces:
                    (text,), encoding = text_or_base64(data, forced=forced)
                    yield encode_json(models.Piece(fd, text, encoding)) + b"\n"  # type: ignore[arg-type]
            assert execution.result is not None
            last: Any = exec_result(execution.result)
        except (RametError, OSError, ValueError, TypeError) as error:
            last = {"problem": problem_of(error) or internal()}
        yield encode_json(last) + b"\n"
    finally:
        hosted.leave()


# --------------------------------------------------------------------------------------------------------- jobs


def _start_job(api: Api, hosted: OpenWorkspace, asked: models.Exec, stdin: Stdin) -> Reply:
    bound = api.settings.bounds.jobs
    if len(hosted.jobs) >= bound:
        for old in [job for job in hosted.jobs.values() if job.ended_at is not None][: bound // 4 + 1]:
            del hosted.jobs[old.id]
        if len(hosted.jobs) >= bound:
            raise RametError("limit_exceeded", f"{bound} jobs are running", "wait for one, or stop one")
    execution = _execution(hosted, asked, stdin, api.settings.bounds.command_seconds)
    job = RunningJob(secrets.token_hex(8), asked.command, asked.session, time.time())
    hosted.enter()
    job.task = asyncio.ensure_future(_job(api, hosted, asked, execution, job))
    job.task.add_done_callback(lambda task: _end_job(api, hosted, job, task))
    hosted.jobs[job.id] = job
    return answer(job.info(), 202)


async def _job(api: Api, hosted: OpenWorkspace, asked: models.Exec, execution: Execution, job: RunningJob) -> None:
    try:
        job.result = exec_result(await _finish(api, hosted, asked, execution), asked.encoding == "base64")
    except asyncio.CancelledError:
        job.killed = True
    except Exception as error:  # no task awaits a job: any error is its outcome
        job.problem = problem_of(error) or internal()


def _end_job(api: Api, hosted: OpenWorkspace, job: RunningJob, task: asyncio.Task[None]) -> None:
    """Note the end of a job, also of one that was killed before it started."""
    job.killed, job.ended_at = job.killed or task.cancelled(), time.time()
    hosted.leave()
    api.events.add("job", hosted.name, job=job.id, state=job.info().state)


def _job_of(hosted: OpenWorkspace, name: str) -> RunningJob:
    job: RunningJob | None = hosted.jobs.get(name)
    if job is None:
        raise RametError("not_found", f"no job {name!r}", "list the jobs of the workspace")
    return job


async def jobs(api: Api, call: Call) -> Reply:
    async with api.using(call) as hosted:
        return answer(models.Jobs([job.info() for job in hosted.jobs.values()]))


async def job(api: Api, call: Call) -> Reply:
    async with api.using(call) as hosted:
        return answer(_job_of(hosted, call.parts[1]).info())


async def wait_job(api: Api, call: Call) -> Reply:
    async with api.using(call) as hosted:
        found = _job_of(hosted, call.parts[1])
        await call.watched(asyncio.wait({found.task}))
        return answer(found.info())


async def kill_job(api: Api, call: Call) -> Reply:
    async with api.using(call) as hosted:
        found = _job_of(hosted, call.parts[1])
        found.task.cancel()
        await asyncio.wait({found.task})
        return answer(found.info())
