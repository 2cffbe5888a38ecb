"""`run_in_own_session`: run a command in a fresh session, so that framework calls run concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count

from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

PREFIX = "exec-"


async def run_in_own_session(
    ws: Workspace,
    command: str,
    *,
    cwd: str,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    cancel: asyncio.Event | None = None,
) -> IOResult:
    """Run a command and return its result; its background jobs continue in the session."""
    await _sweep(ws)
    session_id = next(name for name in map(f"{PREFIX}{{}}".format, count(1)) if name not in ws.sessions)
    session = ws.create_session(session_id, env=env, cwd=cwd)
    finished = False
    try:
        result = await ws.execute(command, session_id, timeout=timeout, cancel=cancel)
        finished = not result.timed_out
        return result
    finally:
        if not finished or not session.shell.processes:
            await ws.close_session(session_id)


async def _sweep(ws: Workspace) -> None:
    """Close sessions whose background jobs have ended."""
    for session in ws.list_sessions():
        if session.session_id.startswith(PREFIX) and not session.lock.locked() and not session.shell.processes:
            await ws.close_session(session.session_id)
