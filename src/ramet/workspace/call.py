"""Run one `execute` call: in order within its session, inside its limits, recorded once.

- `cwd` and `env` of a call are undone however it ends, and so are its `set -e`, `-u`, `-x`, `-o pipefail` and the
  like: the next call would fail by options that its writer cannot see.
- A timeout is a result (124, the output so far); a cancellation is an exception, and wins over a timeout.
- Every call becomes exactly one record.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ramet.concurrency.watchdog import WATCHDOG
from ramet.core.errors import LimitExceeded, RametError, WrongType, reason, wrong_type
from ramet.core.limits import Budget, Cancelled, Limits, TimeUp
from ramet.core.paths import Path, encode
from ramet.core.streams import IteratorReader, PipeWriter, Reader
from ramet.core.usage import USAGE, Usage
from ramet.shell.expand.values import EXPORT
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.text.width import WIDEST
from ramet.workspace.execution import Channels
from ramet.workspace.record.history import HEAD_BYTES, MetaValue
from ramet.workspace.record.recorder import CURRENT, OpenRecord
from ramet.workspace.result import IOResult
from ramet.workspace.session import Session

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace

TIMED_OUT, INTERRUPTED = 124, 130
"""Exit status after a timeout, and after a cancellation."""


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    command: str
    session: Session
    agent_id: str
    stdin: Reader | None
    cwd: Path | None
    env: Mapping[str, str]
    limits: Limits
    cancel: asyncio.Event | None
    native: bool | None
    meta: Mapping[str, MetaValue] = field(default_factory=dict)


def check_arguments(command: object, stdin: object, env: Mapping[str, str] | None, timeout: object) -> None:
    """Check arguments before anything runs or is recorded."""
    if not isinstance(command, str):
        raise wrong_type("a command", command, "Pass text.")
    if stdin is not None and not isinstance(stdin, str | bytes | Reader) and not hasattr(stdin, "__aiter__"):
        raise wrong_type("stdin", stdin, "Pass bytes, text or an asynchronous iterator of bytes.")
    if env is not None and not isinstance(env, Mapping):
        raise wrong_type("env", env, 'Pass {"NAME": "value"}.')
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise wrong_type("an environment variable", value, "Pass names and values as text.")
        if not (name.isidentifier() and name.isascii()) or "\0" in value:
            raise RametError(
                "invalid_argument", f"{name!r} cannot be an environment variable", "use letters and digits"
            )
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout < 0):
        raise WrongType("invalid_argument", f"cannot use {timeout!r} as a timeout", "Pass a number of seconds.")


def _check_open(ws: Workspace) -> None:
    if ws.closed:
        raise RametError("closed", "the workspace is closed", "make a new one, or load a snapshot")


async def run_call(ws: Workspace, call: Call, channels: Channels) -> IOResult:
    _check_open(ws)
    session = call.session
    async with session.lock:
        _check_open(ws)  # the session may have been closed by an earlier call
        session.running = asyncio.current_task()
        entry = ws.recorder.start(
            "command", call.command, session_id=session.session_id, agent_id=call.agent_id, meta=call.meta
        )
        session.fs.start(entry.actor.agent_id)
        outcome = _Outcome()
        counting, current = USAGE.set(outcome.usage), CURRENT.set(entry)
        options = None if session.sticky_options else frozenset(session.state.options)
        try:
            if session.reopen:
                ws.restored.problems.extend(await session.reopen_descriptors())
            refusal = await _cwd_error(session, call)
            if refusal:
                channels.stderr.write(encode(refusal))
                outcome.exit_code = 1
            else:
                with _call_environment(session, call), WATCHDOG.watching():
                    off = call.native is False
                    session.shell.programs, session.shell.unused = (None, ws.programs) if off else (ws.programs, None)
                    await _with_cancel(_run(call, _text(ws, call), channels, outcome), call.cancel)
                await _flush_open_files(ws, channels, outcome)
        except (asyncio.CancelledError, Cancelled):
            outcome.cancelled = True
            session.state.status = outcome.exit_code = INTERRUPTED
            if session.ending and session.running is not None and not session.running.uncancel():
                raise RametError(
                    "closed", "the session was closed while this ran", "close it when nothing runs"
                ) from None
            raise
        finally:
            session.running = None
            if ws.programs is not None:
                ws.programs.let_go((channels.stdout, channels.stderr))
                await ws.programs.record_changes()
            USAGE.reset(counting)
            CURRENT.reset(current)
            if options is not None and options != session.state.options:
                for name in options ^ session.state.options:
                    session.state.set_option(name, name in options)
            if isinstance(call.stdin, IteratorReader):
                await call.stdin.close()
            duration = _finish(ws, call, entry, channels, outcome)
        return _result(entry, channels, outcome, duration)


async def _flush_open_files(ws: Workspace, channels: Channels, outcome: _Outcome) -> None:
    """Flush open descriptors to the tree, so that a copy of it is complete."""
    try:
        await ws._vfs.flush_near()
    except OSError as error:
        _write_message(channels, f"bash: write error: {reason(error)}\n")
        outcome.exit_code = outcome.exit_code or 1


async def estimate_call(ws: Workspace, call: Call, channels: Channels) -> IOResult:
    """Estimate the cost of a call, without running or recording it."""
    try:
        from ramet.workspace.provision import provision

        estimate = await provision(ws, call.session, call.command, call.cwd)
    except SyntaxFailure as failure:
        lines = "".join(line + "\n" for line in failure.lines("bash: "))
        return IOResult(stderr=encode(lines), exit_code=2)
    return IOResult(stdout=encode(f"{estimate}\n"), estimate=estimate)


async def _cwd_error(session: Session, call: Call) -> str:
    """Return why the working directory is unusable, in the words of `cd`; empty when it is usable."""
    if call.cwd is None:
        return ""
    try:
        if (await session.fs.stat(call.cwd, follow=True)).is_dir:
            return ""
        why = "Not a directory"
    except OSError as error:
        why = reason(error)
    return f"bash: cd: {call.cwd}: {why}\n"


@dataclass
class _Outcome:
    exit_code: int = 0
    timed_out: bool = False
    truncated: bool = False
    cancelled: bool = False
    usage: Usage = field(default_factory=Usage)


TURN = 0.01
"""Seconds that short calls may run back to back before the event loop gets a turn."""


def _text(ws: Workspace, call: Call) -> str:
    """What the shell of the workspace runs: with `native=True`, the real shell of the box."""
    if not call.native or ws.programs is None:
        return call.command
    return f"({ws.programs.shell} -c {shlex.quote(call.command)})"


async def _run(call: Call, text: str, channels: Channels, outcome: _Outcome) -> None:
    session, limits = call.session, call.limits
    budget = Budget(limits)
    budget.owner = session.shell.workspace
    WIDEST.set(limits.width_chars)
    session.state.condition_open = False  # unlike in bash, a syntax error does not affect the next call
    if call.stdin is not None and call.stdin.terminal:
        for writer in (channels.stdout, channels.stderr):
            if isinstance(writer, PipeWriter):
                writer.terminal = True  # echo output to the terminal
    try:
        async with asyncio.timeout(limits.wall_time):
            outcome.exit_code = await session.shell.run(
                session.state,
                text,
                stdin=call.stdin,
                stdout=channels.stdout,
                stderr=channels.stderr,
                budget=budget,
            )
        if channels.overflowed or budget.hit:  # the result is incomplete, even if the script continued
            session.state.status = outcome.exit_code = outcome.exit_code or 1
            outcome.truncated = channels.overflowed
        # Calls that never suspend would starve other tasks.
        now = time.monotonic()
        if now > session.shell.turn:
            session.shell.turn = now + TURN
            await asyncio.sleep(0)
    except (TimeoutError, TimeUp):
        outcome.exit_code, outcome.timed_out = TIMED_OUT, True
        session.state.status = TIMED_OUT
        _write_message(channels, f"ramet: timed out after {limits.wall_time:g} s\n")
    except LimitExceeded as error:
        session.state.status = outcome.exit_code = 1
        outcome.truncated = True
        _write_message(channels, f"ramet: {error}\n")


def _write_message(channels: Channels, message: str) -> None:
    try:
        channels.stderr.write(encode(message))
    except (LimitExceeded, BrokenPipeError):
        return  # stderr is full or closed; the exit code tells


async def _with_cancel(run: Coroutine[Any, Any, None], cancel: asyncio.Event | None) -> None:
    """Await `run`; when the token is set first, stop it and raise Cancelled."""
    if cancel is None:
        await run
        return
    work = asyncio.ensure_future(run)
    signal = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({work, signal}, return_when=asyncio.FIRST_COMPLETED)
        if cancel.is_set():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            raise Cancelled("the cancel token was set")
        await work
    finally:
        for task in (work, signal):
            task.cancel()
        await asyncio.gather(work, signal, return_exceptions=True)


@contextmanager
def _call_environment(session: Session, call: Call) -> Iterator[None]:
    if call.cwd is None and not call.env:
        yield
        return
    state = session.state
    store, cwd = state.variables, state.cwd
    names = [*call.env, *(("PWD", "OLDPWD") if call.cwd is not None else ())]
    before = [(name, name in store.values, store.values.get(name), store.attrs.get(name, 0)) for name in names]
    if call.cwd is not None:
        state.cwd = call.cwd
        store.set("PWD", str(call.cwd))
    for name, value in call.env.items():
        store.set(name, value)
        store.flag(name, add=EXPORT)
    try:
        yield
    finally:
        for name, known, value_before, flags in before:
            if known:
                store.values[name] = value_before
            else:
                store.values.pop(name, None)
            store.attrs.pop(name, None)
            if flags:
                store.attrs[name] = flags
        if call.cwd is not None:
            state.cwd = cwd


def _result(entry: OpenRecord, channels: Channels, outcome: _Outcome, duration: float) -> IOResult:
    return IOResult(
        stdout=channels.captured_out.getvalue(),
        stderr=channels.captured_err.getvalue(),
        exit_code=outcome.exit_code,
        timed_out=outcome.timed_out,
        truncated=outcome.truncated or channels.overflowed,
        bytes_read=dict(entry.bytes_read),
        bytes_written=dict(entry.bytes_written),
        cache_hits=outcome.usage.cache_hits,
        duration=duration,
    )


def _finish(ws: Workspace, call: Call, entry: OpenRecord, channels: Channels, outcome: _Outcome) -> float:
    """Add the record; returns the seconds that the call took."""
    scrub = ws.secrets.scrub
    out, err = channels.captured_out, channels.captured_err
    return ws.recorder.finish(
        entry,
        exit_code=outcome.exit_code,
        stdout=scrub(out.head(HEAD_BYTES * 2))[:HEAD_BYTES],
        stderr=scrub(err.head(HEAD_BYTES * 2))[:HEAD_BYTES],
        stdout_bytes=min(len(out), channels.limit),
        stderr_bytes=min(len(err), channels.limit),
        timed_out=outcome.timed_out,
        cancelled=outcome.cancelled,
        cwd=str(call.session.cwd),
        cache_hits=outcome.usage.cache_hits,
    ).duration
