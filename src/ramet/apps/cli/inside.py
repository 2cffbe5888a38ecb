"""Verbs that look into a workspace without changing it: what ran in it, its sessions, its jobs, its mounts."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramet.apps.cli.shared import HOME, AsJson, Name, Where, opened, reported, show, split

if TYPE_CHECKING:
    from ramet.workspace.store import StoredWorkspace

Rows = list[dict[str, Any]]


def _looked(name: str, store: str, look: Callable[[StoredWorkspace], Rows]) -> Rows:
    """Rows from a workspace that is opened to be read only; who works in it is not disturbed."""

    async def act() -> Rows:
        where, revision = split(name)
        async with opened(store).open(where, revision, readonly=True) as ws:
            return look(ws)

    return asyncio.run(act())


def history(
    name: Name,
    store: Where = HOME,
    session: Annotated[str | None, typer.Option(help="Only of this session.")] = None,
    last: Annotated[int, typer.Option("--last", "-n", help="Only so many, the newest ones; 0 is all.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the commands that ran in a workspace, the newest last."""

    def look(ws: StoredWorkspace) -> Rows:
        return [
            {
                "number": record.number, "time": _time(record.started_at), "session": record.session_id,
                "status": record.exit_code, "seconds": round(record.duration, 3), "cwd": record.cwd,
                "command": record.command, "agent": record.agent_id,
            }
            for record in ws.history
            if session is None or record.session_id == session
        ][-last:]  # fmt: skip

    with reported():
        show(_looked(name, store, look), ("number", "time", "session", "status", "seconds", "command"), as_json)


def sessions(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show the sessions of a workspace."""

    def look(ws: StoredWorkspace) -> Rows:
        return [
            {"session": one.session_id, "cwd": str(one.cwd), "last status": one.last_exit_code}
            for one in ws.list_sessions()
        ]

    with reported():
        show(_looked(name, store, look), ("session", "cwd", "last status"), as_json)


def jobs(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show the background jobs of a workspace that have ended; running ones live in the process that runs them."""

    def look(ws: StoredWorkspace) -> Rows:
        return [dict(job) for job in ws.finished_jobs]

    with reported():
        show(_looked(name, store, look), ("session_id", "id", "status", "exit_code", "command"), as_json)


def mounts(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show what a revision has mounted where."""
    with reported():
        where, revision = split(name)
        found = opened(store)[where].find(revision)
        rows = [
            {
                "prefix": mount.prefix, "resource": mount.type, "mode": mount.mode,
                "content": "in the store" if mount.tree is not None else "elsewhere", "scratch": mount.scratch,
            }
            for mount in found.mounts
        ]  # fmt: skip
        show(rows, ("prefix", "resource", "mode", "content"), as_json)


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
