"""Verbs that look at history: what there is, what changed, who wrote it, where it broke."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramet.apps.cli.shared import (
    HOME,
    AsJson,
    Name,
    Where,
    anywhere,
    described,
    file_of,
    reported,
    show,
    split,
    watched,
)

if TYPE_CHECKING:
    from ramet.apps.client_ref import RemoteRef
    from ramet.store.ids import RevisionId
    from ramet.store.revisions import Revision
    from ramet.workspace.reference import StoredWorkspaceRef


def log(
    name: Name,
    store: Where = HOME,
    graph: Annotated[bool, typer.Option("--graph", "-g", help="Draw how histories part and join.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the revisions of a workspace, newest first."""
    with reported():
        where, revision = split(name)
        handle = anywhere(store)[where]
        names: dict[bytes, list[str]] = {}
        for found in handle.tags():
            names.setdefault(found.target, []).append(found.name)
        if not graph:
            log = handle.log(revision)
            known = {one.id for one in log}
            rows = [{**described(r), "tags": names.get(r.id, []), **_ends(handle, r, known)} for r in log]
            if any("expired" in row for row in rows) and sys.stdout.isatty():
                print("what came before some of these revisions has expired", file=sys.stderr)
            columns = ["revision", "id", "time", "message", "lineage", "tags"]
            if any(row["resumable"] for row in rows):
                columns.append("resumable")
            show(rows, tuple(columns), as_json, empty=f"{where} has no revision yet")
            return
        for row in handle.graph(revision):
            if row.revision is None:
                print(row.lines)
                continue
            tags = "".join(f" ({tag})" for tag in names.get(row.revision.id, []))
            subject = row.revision.message.partition("\n")[0]
            print(f"{row.lines} {row.revision.id.hex()[:12]} {row.revision.name}{tags} {subject}".rstrip())


def _ends(handle: StoredWorkspaceRef | RemoteRef, revision: Revision, known: set[RevisionId]) -> dict[str, list[str]]:
    """The parents of a revision that have expired, if any has; those that are known have not."""
    if known.issuperset(revision.parents):
        return {}
    gone = [parent.hex() for parent in handle.expired_parents(revision)]
    return {"expired": gone} if gone else {}


def diff(
    name: Name,
    against: Annotated[str | None, typer.Argument(help="Another revision, or OTHER@REVISION; else the parent.")] = None,
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Show what a revision changed."""
    with reported():
        where, revision = split(name)
        found = anywhere(store)[where].diff(revision, against)
        rows = [{"change": d.what, "path": d.path, **({"from": d.old} if d.old else {})} for d in found]
        columns = ("change", "path", "from") if any("from" in row for row in rows) else ("change", "path")
        show(rows, columns, as_json, empty="nothing differs")


def show_file(
    place: Annotated[str, typer.Argument(help="NAME[@REVISION]:/path of a file.")], store: Where = HOME
) -> None:
    """Print a file of a revision."""
    with reported():
        name, revision, path = file_of(place)
        for block in anywhere(store)[name].show(path, revision):
            sys.stdout.buffer.write(block)


def blame(
    place: Annotated[str, typer.Argument(help="NAME[@REVISION]:/path of a file.")],
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Show for each line of a file the revision, session and command that wrote it."""
    with reported():
        name, revision, path = file_of(place)
        rows: list[dict[str, Any]] = []
        for line in anywhere(store)[name].blame(path, revision):
            writer = line.writer
            rows.append({
                "line": line.number, "revision": line.revision.name, "author": line.author, "path": line.path,
                "session": writer.session_id if writer else "", "command": writer.command if writer else "",
                "text": line.text.decode("utf-8", "replace").rstrip("\n"),
            })  # fmt: skip
        show(rows, ("line", "revision", "author", "session", "text"), as_json)


def bisect(
    name: Name,
    good: Annotated[str, typer.Argument(help="A revision in which the command succeeds.")],
    bad: Annotated[str, typer.Argument(help="A later one in which it fails.")],
    command: Annotated[list[str], typer.Argument(help="-- CMD: status 0 is good, 125 skips, all else is bad.")],
    store: Where = HOME,
    timeout: Annotated[float | None, typer.Option(help="Seconds per try.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the first revision in which a command fails. Nothing is written to the store."""
    import shlex

    with reported():
        text = command[0] if len(command) == 1 else shlex.join(command)
        handle = anywhere(store)[split(name)[0]]
        found = asyncio.run(handle.bisect(good, bad, text, timeout=timeout, progress=watched()))
        rows: list[dict[str, Any]] = [
            {"tried": s.revision.name, "verdict": s.verdict, "status": s.exit_code} for s in found.steps
        ]
        if as_json or not sys.stdout.isatty():
            first, suspects = found.first_bad, [revision.name for revision in found.suspects]
            rows.append({"suspects": suspects} if first is None else {"first_bad": first.name, **described(first)})
            show(rows, (), as_json)
            return
        if rows:
            show(rows, ("tried", "verdict", "status"), False)
        if found.first_bad is not None:
            subject = found.first_bad.message.partition("\n")[0]
            print(f"first bad: {found.first_bad.name} {found.first_bad.id.hex()[:12]} {subject}".rstrip())
        else:
            print(f"first bad: one of {', '.join(revision.name for revision in found.suspects)}")
