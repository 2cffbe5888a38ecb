"""Verbs that look at history: what there is, what changed, who wrote it, where it broke."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramet.apps.cli import quick as glancing
from ramet.apps.cli.options import (
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
    pass


def log(
    name: Name,
    store: Where = HOME,
    graph: Annotated[bool, typer.Option("--graph", "-g", help="Draw how histories part and join.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the revisions of a workspace, newest first."""
    glancing.log(name, store, graph, as_json)


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
    glancing.show_file(place, store)


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
