"""`ramet push`: push revisions to git remotes, and retry failed pushes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.options import AsJson, Name, Quiet, Where
from ramet.apps.cli.output import show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.progress import progress_bar
from ramet.apps.cli.stores import HOME, SERVERS, any_store
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.workspace.stored.git_push import Pushed


def push(
    name: Name,
    remote: Annotated[str | None, Argument(help="URL or path. Default: retry failed pushes.")] = None,
    store: Where = HOME,
    branch: Annotated[str, Option(help="Branch to push to; {{.name}} is the workspace.")] = "{{.name}}",
    path: Annotated[list[str] | None, Option(help="Push only this path; may be repeated.")] = None,
    token: Annotated[
        str | None,
        Option(value="PLACE", help="Where to read the token: env:NAME or file:PATH, never the token itself."),
    ] = None,
    username: Annotated[str, Option(help="User name for the token.")] = "x-access-token",
    secret: Annotated[
        list[str] | None, Option(help="Secret for retries: NAME/KEY=env:VARIABLE; may be repeated.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Push a revision to a git branch as one commit. A failed push is kept; omit REMOTE to retry it."""
    where, revision = split_name(name)
    handle = any_store(store)[where]
    secrets = _secrets(secret or [])
    rows: list[dict[str, Any]] = []
    failed: list[RametError] = []
    with progress_bar(quiet) as progress:
        if remote is not None:
            local = "://" not in remote and ":" not in remote
            place = str(Path(remote).absolute()) if local and not store.startswith(SERVERS) else remote
            given = None if token is None else _value(token)
            done = handle.push(
                place, revision, branch=branch, paths=path or ["/"], token=given, username=username
            )  # fmt: skip
            rows.append(_row(done))
        else:
            waiting = handle.pushes()
            for number, one in enumerate(waiting):
                progress("pushes", number, len(waiting))
                try:
                    done = handle.push_again(one, secrets)
                    rows.append(_row(done))
                except RametError as error:
                    failed.append(error)
    if rows or not failed:
        show(rows, ("branch", "remote", "commit"), as_json, empty="no pushes to retry")
    for row in rows:
        for what in ("left_out", "withheld"):
            for one in row.get(what, ()):
                print(f"{what.replace('_', ' ')}: {one}", file=sys.stderr)
    if failed:
        raise failed[0]


def _row(done: Pushed) -> dict[str, Any]:
    notes = {"left_out": list(done.left_out), "withheld": list(done.withheld)}
    row = {"branch": done.branch, "remote": done.remote, "commit": done.commit}
    return {**row, **{what: paths for what, paths in notes.items() if paths}}


def _secrets(texts: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        name, equals, reference = text.partition("=")
        owner, slash, key = name.partition("/")
        if not (equals and slash and owner and key):
            raise RametError("invalid_argument", "cannot parse --secret", "write NAME/KEY=env:VARIABLE")
        found.setdefault(owner, {})[key] = _value(reference)
    return found


def _value(reference: str) -> str:
    kind, _, where = reference.removeprefix("secret:").partition(":")
    if kind == "env" and where in os.environ:
        return os.environ[where]
    if kind == "file":
        return Path(where).expanduser().read_text().strip()
    raise RametError("invalid_argument", "cannot read the token", "write env:NAME or file:PATH")
