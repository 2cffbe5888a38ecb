"""Verbs that make, list, change and remove workspaces."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ramet.apps.cli import quick as glancing
from ramet.apps.cli.options import (
    HOME,
    AsJson,
    ConfigFile,
    Name,
    Quiet,
    Where,
    anywhere,
    described,
    known_names,
    reported,
    say,
    show,
    split,
)
from ramet.apps.cli.verbs.exec import Line, run
from ramet.core.errors import RametError


def create(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Create an empty workspace."""
    with reported():
        anywhere(store).create(name)
        say({"workspace": name}, name, as_json)


def list_workspaces(store: Where = HOME, as_json: AsJson = False) -> None:
    """List the workspaces of the store."""
    glancing.list_workspaces(store, as_json)


def rm(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Remove a workspace. Its revisions stay until they are collected."""
    with reported():
        anywhere(store).rm(name)
        if as_json:
            say({"removed": name}, "", True)


def execute(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a workspace; may be left out when --config gives one.",
            autocompletion=known_names,
        ),
    ],
    command: Annotated[str | None, typer.Argument(metavar="COMMAND", help="Shell text, as after `bash -c`.")] = None,
    store: Where = HOME,
    timeout: Annotated[float | None, typer.Option(help="Seconds until it is ended with status 124.")] = None,
    cwd: Annotated[str | None, typer.Option(help="Working directory for this command only.")] = None,
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the revision.")] = "",
    author: Annotated[str, typer.Option(help="Author of the revision.")] = "",
    config: ConfigFile = None,
    quiet: Quiet = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object when it has ended: output, status, what it touched.")
    ] = False,
) -> None:
    """Run a command in a workspace and commit what it changed. Its exit status is passed through."""
    line = Line(name, command, store, timeout, cwd, message, author, config, quiet, as_json)
    raise typer.Exit(run(line))


def fork(
    name: Name,
    new_name: Annotated[str, typer.Argument(help="Name of the new workspace.")],
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Begin a workspace with a revision of another one; nothing is copied."""
    with reported():
        where, revision = split(name)
        made = anywhere(store)[where].fork(revision, new_name)
        say({"workspace": new_name, **described(made)}, made.name, as_json)


def revert(
    name: Annotated[str, typer.Argument(help="NAME@REVISION whose content becomes the new tip.")],
    paths: Annotated[list[str] | None, typer.Argument(help="Only these paths.")] = None,
    store: Where = HOME,
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the revision.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make the content of a past revision the newest one, whole or by path. History stays."""
    with reported():
        where, revision = split(name)
        if revision is None:
            raise RametError("invalid_argument", "no revision was given", "write NAME@REVISION; `ramet log` lists them")
        handle = anywhere(store)[where]
        made = handle.revert(revision, message, paths)
        if paths and handle.find(made.parents[0].hex()).content_manifest == made.content_manifest:
            print(f"ramet: {', '.join(paths)} was so already, or is in neither revision", file=sys.stderr)
        say(described(made), made.name, as_json)


def merge(
    name: Name,
    other: Annotated[str, typer.Argument(help="OTHER or OTHER@REVISION to bring in.")],
    store: Where = HOME,
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the revision.")] = "",
    as_json: AsJson = False,
) -> None:
    """Bring another workspace into this one. Conflicts are listed, change nothing, and give status 4."""
    with reported():
        result = anywhere(store)[split(name)[0]].merge(other, message)
        if result.revision is not None:
            say(described(result.revision), result.revision.name, as_json)
            return
        show([{"conflict": c.why, "path": c.path} for c in result.conflicts], ("conflict", "path"), as_json)
        raise typer.Exit(4)


def tag(
    name: Annotated[str, typer.Argument(help="NAME to list its tags, NAME@REVISION to name that revision.")],
    tag: Annotated[str | None, typer.Argument(help="Name of the tag; lists when left out.")] = None,
    store: Where = HOME,
    delete: Annotated[bool, typer.Option("--delete", "-d", help="Remove the tag.")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Move a tag that exists.")] = False,
    message: Annotated[str, typer.Option("--message", "-m", help="What the tag is for.")] = "",
    as_json: AsJson = False,
) -> None:
    """Name a revision so that NAME@TAG finds it and it is kept; list or delete such names."""
    with reported():
        where, revision = split(name)
        handle = anywhere(store)[where]
        if tag is None:
            rows = [
                {"tag": t.name, "revision": handle.find(t.name).name, "id": t.target.hex(), "message": t.message}
                for t in handle.tags()
            ]
            show(rows, ("tag", "revision", "id", "message"), as_json, empty=f"{where} has no tag")
        elif delete:
            handle.untag(tag)
        else:
            made = handle.tag(tag, revision, message=message, force=force)
            say({"tag": made.name, "id": made.target.hex()}, f"{where}@{made.name}", as_json)
