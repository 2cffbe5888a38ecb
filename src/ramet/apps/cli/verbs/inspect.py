"""Verbs that inspect a workspace: commands, sessions, jobs, mounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.options import AsJson, Name, Since, Where, WholeName, known_agents, known_paths, known_runs
from ramet.apps.cli.output import iso_time, parse_time, say, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import HOME, SERVERS, any_store, remote_store
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.server.models_maintenance import QuestionInfo

ANSWERS: Final[dict[str, Any]] = {"yes": True, "no": False, "host": "host"}


def history(
    name: Name,
    store: Where = HOME,
    session: Annotated[str | None, Option(help="Only what this session did.")] = None,
    agent: Annotated[str | None, Option(help="Only what this agent did.", complete=known_agents)] = None,
    run: Annotated[str | None, Option(help="Only what this run did.", complete=known_runs)] = None,
    principal: Annotated[str | None, Option(help="Only what this principal or user called for.")] = None,
    path: Annotated[
        str | None, Option(help="Only what changed this path, or something below it.", complete=known_paths)
    ] = None,
    failed: Annotated[bool, Option("--failed", help="Only what ended with another status than 0.")] = False,
    exit_code: Annotated[int | None, Option("--exit-code", help="Only what ended with this status.")] = None,
    network: Annotated[bool, Option("--network", help="Only what sent a request to the network.")] = False,
    refused: Annotated[
        bool, Option("--refused", help="Only what had a request refused by the network's rules.")
    ] = False,
    text: Annotated[str | None, Option("--grep", help="Only commands that contain this text, in any case.")] = None,
    since: Since = None,
    last: Annotated[
        int, Option("--last", "-n", value="NUMBER", minimum=0, help="Show the last N records; 0 shows all.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the commands and other changes of a workspace, the newest last."""
    from ramet.workspace.record.history import RecordFilter

    where, revision = split_name(name)
    wanted = RecordFilter(
        session, agent, run, path, text, failed or None, parse_time(since), exit_code=exit_code, principal=principal,
        network="refused" if refused else "any" if network else None,
    )  # fmt: skip
    rows = [
        {
            "number": record.number, "time": iso_time(record.started_at), "kind": record.kind,
            "session": record.session_id, "agent": record.agent_id, "principal": record.principal,
            "status": record.exit_code, "seconds": round(record.duration, 3), "cpu": round(record.cpu, 3),
            "cwd": record.cwd, "command": record.command, "bytes_read": record.bytes_read,
            "bytes_written": record.bytes_written, "paths_written": list(record.paths_written),
            "paths_removed": list(record.paths_removed), "paths_cut": record.paths_cut, "parent": record.parent,
            "network_requests": record.network_requests, "network_bytes": record.network_bytes, "meta": record.meta,
        }
        for record in any_store(store)[where].history(revision, last=last or None, where=wanted)
    ]  # fmt: skip
    columns = ("number", "time", "kind", "session", "agent", "status", "seconds", "command")
    show(rows, columns, as_json, empty="no record fits" if wanted != RecordFilter() else "nothing has run in it")


def agents(
    name: Name,
    store: Where = HOME,
    by: Annotated[str, Option(help="agent, session, run or principal.")] = "agent",
    since: Since = None,
    until: Annotated[str | None, Option(help="Only before this time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what each agent did and what it cost: commands, failures, seconds, files, bytes, tokens and money."""
    where, revision = split_name(name)
    found = any_store(store)[where].costs(revision, by=by, since=parse_time(since), until=parse_time(until))
    rows = [
        {
            by: row.name, "commands": row.commands, "failures": row.failures, "seconds": round(row.seconds, 3),
            "cpu": round(row.cpu, 3), "files": row.files,
            "read": sum(row.bytes_read.values()), "written": sum(row.bytes_written.values()),
            "bytes_read": row.bytes_read, "bytes_written": row.bytes_written, "meta": row.meta,
            "first": iso_time(row.first), "last": iso_time(row.last),
        }
        for row in found
    ]  # fmt: skip
    keys = sorted({key for row in found for key in row.meta})
    if not as_json:
        for row, total in zip(rows, found, strict=True):
            row.update(total.meta)
    columns = (by, "commands", "failures", "seconds", "cpu", "files", "read", "written", *keys)
    show(rows, columns, as_json, empty="nothing has run in it", forms=dict.fromkeys(keys, "{:.12g}".format))


def sessions(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show the sessions of a workspace."""
    where, revision = split_name(name)
    rows = [
        {"session": one.session_id, "cwd": one.cwd, "last_status": one.last_exit_code}
        for one in any_store(store)[where].sessions(revision)
    ]
    show(rows, ("session", "cwd", "last_status"), as_json)


def jobs(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show the background jobs of a workspace that have ended; running jobs exist only in their own process."""
    where, revision = split_name(name)
    rows = [dict(job.__dict__) for job in any_store(store)[where].jobs(revision)]
    columns = ("session_id", "id", "status", "exit_code", "command")
    show(rows, columns, as_json, empty="no job has ended in it", forms={"id": str})


def questions(
    name: WholeName,
    number: Annotated[int | None, Argument(help="Question to answer. Default: list the pending ones.")] = None,
    answer: Annotated[str | None, Argument(help="yes, no, or host for all later requests to the same host.")] = None,
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """List what waits for a permission on a server, or answer it. Local commands ask at their own terminal."""
    import asyncio

    if not store.startswith(SERVERS):
        raise RametError(
            "unsupported", "questions wait on a server only",
            "Pass --store URL; `ramet exec` and `ramet shell` ask at their own terminal.",
        )  # fmt: skip
    if (number is None) != (answer is None) or answer not in (None, *ANSWERS):
        raise RametError("invalid_argument", "cannot read the answer", f"Write ramet questions {name} 3 yes|no|host.")

    async def run() -> list[QuestionInfo]:
        async with remote_store(store).open(name) as ws:
            if number is not None and answer is not None:
                await ws.answer(number, ANSWERS[answer])
                return []
            return await ws.questions()

    found = asyncio.run(run())
    if number is not None:
        say({"number": number, "answer": answer}, f"question {number}: {answer}", as_json)
        return
    import msgspec

    rows = [{**msgspec.structs.asdict(one), "asked_at": iso_time(one.asked_at)} for one in found]
    show(rows, ("number", "asked_at", "agent_id", "kind", "name", "subject"), as_json, empty="nothing waits")


def mounts(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show the mounts of a revision."""
    where, revision = split_name(name)
    rows = [
        {
            "prefix": mount.prefix, "resource": mount.type, "mode": mount.mode,
            "content": "in the store" if mount.tree is not None else "elsewhere", "scratch": mount.scratch,
        }
        for mount in any_store(store)[where].mounts(revision or "head")
    ]  # fmt: skip
    show(rows, ("prefix", "resource", "mode", "content"), as_json)
