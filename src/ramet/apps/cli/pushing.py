"""The verb that pushes revisions to git remotes, and tries again what could not be pushed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramet.apps.cli.shared import HOME, AsJson, Name, Quiet, Where, opened, reported, show, split, watched
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.store.repository import Repository
    from ramet.workspace.pushing import Push

TOKEN = ("push", "token")
"""The name and key under which a token of the command line is looked for."""


def push(
    name: Name,
    remote: Annotated[
        str | None, typer.Argument(metavar="REMOTE", help="URL or path; left out, what is waiting is tried again.")
    ] = None,
    store: Where = HOME,
    branch: Annotated[str, typer.Option(help="Branch to push to; {{.name}} is the workspace.")] = "{{.name}}",
    path: Annotated[list[str] | None, typer.Option(help="Only this path; may be repeated.")] = None,
    token: Annotated[
        str | None, typer.Option(help="Where the token is, env:NAME or file:PATH; never the token itself.")
    ] = None,
    username: Annotated[str, typer.Option(help="The user name that goes with the token.")] = "x-access-token",
    secret: Annotated[
        list[str] | None, typer.Option(help="NAME/KEY=env:VARIABLE, for pushes that are waiting; may be repeated.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Push a revision as one commit of a git branch. What fails is kept, and tried again without REMOTE."""
    from ramet.workspace.pushing import GitSettings, note, pending, perform, plan

    with reported():
        where, revision = split(name)
        handle = opened(store)
        repository: Repository = handle.repository
        secrets = _secrets(secret or [])
        if remote is None:
            waiting: list[Push] = pending(repository, where)
        else:
            if token is not None:
                secrets.setdefault(TOKEN[0], {})[TOKEN[1]] = _value(token)
            local = "://" not in remote and ":" not in remote
            settings = GitSettings(tuple(path or ["/"]), {}, username, None if token is None else TOKEN)
            output = {"remote": str(Path(remote).absolute()) if local else remote, "branch": branch}
            waiting = [plan(output, settings, where, handle[where].find(revision), where)]
            note(repository, waiting[0])
        rows: list[dict[str, Any]] = []
        failed: list[RametError] = []
        with watched(quiet) as progress:
            for number, one in enumerate(waiting):
                progress("pushes", number, len(waiting))
                try:
                    done = perform(repository, one, secrets)
                    rows.append({"branch": done.branch, "remote": done.remote, "commit": done.commit})
                except RametError as error:
                    failed.append(error)
        show(rows, ("branch", "remote", "commit"), as_json)
        if failed:
            raise failed[0]


def _secrets(texts: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        name, equals, reference = text.partition("=")
        owner, slash, key = name.partition("/")
        if not (equals and slash and owner and key):
            raise RametError("invalid_argument", "--secret cannot be understood", "write NAME/KEY=env:VARIABLE")
        found.setdefault(owner, {})[key] = _value(reference)
    return found


def _value(reference: str) -> str:
    kind, _, where = reference.removeprefix("secret:").partition(":")
    if kind == "env" and where in os.environ:
        return os.environ[where]
    if kind == "file":
        return Path(where).expanduser().read_text().strip()
    raise RametError("invalid_argument", "the token is not where it is said to be", "write env:NAME or file:PATH")
