"""The `ramet` command: workspaces of a store, from a terminal.

Tables on a terminal, JSON with `--json` or when piped. Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 busy or
conflict, 124 timeout; `exec` passes the command's own status through. Engines are imported by the verb that needs
them, so that `--help` stays quick.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.store.revisions import Revision
    from ramet.workspace.store import Store

app = typer.Typer(
    name="ramet",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Durable workspaces for agents: one file tree, a real shell, every state versioned.\n\n"
    "[bold]First minute[/]\n\n"
    "  ramet create demo\n\n"
    "  ramet exec demo 'echo hello > /greeting; ls -l /'\n\n"
    "  ramet log demo\n\n"
    "  ramet fork demo demo-2",
)

Where = Annotated[
    str, typer.Option("--store", envvar="RAMET_HOME", help="Directory or URL of the store.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON (also when the output is piped).")]
Name = Annotated[str, typer.Argument(help="Name of a workspace; NAME@REVISION where a revision makes sense.")]

HOME = "~/.ramet"
STATUS = {
    "workspace_not_found": 3, "revision_not_found": 3, "not_found": 3, "session_not_found": 3,
    "workspace_busy": 4, "lease_lost": 4, "head_moved": 4, "merge_conflict": 4, "workspace_exists": 4,
}  # fmt: skip


@contextmanager
def reported() -> Iterator[None]:
    """Errors as people want them: one line of cause, one line of what to do."""
    try:
        yield
    except RametError as error:
        if "--json" in sys.argv:
            print(json.dumps({"error": error.as_dict()}))
        else:
            print(f"ramet: {error.cause}", file=sys.stderr)
            if error.remediation:
                print(f"       {error.remediation}", file=sys.stderr)
        raise typer.Exit(STATUS.get(error.code, 1)) from None
    except (OSError, ValueError) as error:
        print(f"ramet: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def opened(where: str) -> Store:
    from ramet.workspace.store import Store

    return Store(where)


def split(text: str) -> tuple[str, str | None]:
    name, at, revision = text.partition("@")
    return name, revision if at else None


def show(rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> None:
    """Rows as a table for people, as JSON for programs."""
    if as_json or not sys.stdout.isatty():
        print(json.dumps(rows, indent=None if not as_json else 1, default=str))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    Console().print(table)


def described(revision: Revision) -> dict[str, Any]:
    import datetime

    when = datetime.datetime.fromtimestamp(revision.time, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    return {
        "revision": revision.name, "id": revision.id.hex()[:12], "time": when, "message": revision.message,
        "lineage": revision.lineage, "content": revision.content_manifest,
    }  # fmt: skip


@app.command()
def create(name: Name, store: Where = HOME) -> None:
    """Create an empty workspace."""
    with reported():
        opened(store).create(name)
        print(name)


@app.command("ls")
def list_workspaces(store: Where = HOME, as_json: AsJson = False) -> None:
    """List the workspaces of the store."""
    with reported():
        found = opened(store)
        rows = []
        for name in found.ls():
            head = found[name].head
            rows.append({"workspace": name, **({} if head is None else described(head))})
        show(rows, ("workspace", "revision", "time", "message"), as_json)


@app.command()
def rm(name: Name, store: Where = HOME) -> None:
    """Remove a workspace. Its revisions stay until they are collected."""
    with reported():
        opened(store).rm(name)


@app.command("exec")
def execute(
    name: Name,
    command: Annotated[str, typer.Argument(help="Shell text, as after `bash -c`.")],
    store: Where = HOME,
    timeout: Annotated[float | None, typer.Option(help="Seconds until it is ended with status 124.")] = None,
    cwd: Annotated[str | None, typer.Option(help="Working directory for this command only.")] = None,
    message: Annotated[str, typer.Option("--message", "-m", help="Message of the revision.")] = "",
) -> None:
    """Run a command in a workspace and commit what it changed. Its exit status is passed through."""

    async def act() -> int:
        where, revision = split(name)
        async with opened(store).open(where, revision) as ws:
            stdin = None if sys.stdin.isatty() else _input()
            execution = ws.execute(command, stdin=stdin, timeout=timeout, cwd=cwd)
            async for piece in execution:
                stream = sys.stdout.buffer if piece.fd == 1 else sys.stderr.buffer
                stream.write(piece.data)
                stream.flush()
            assert execution.result is not None
            if ws.lease is not None:
                await ws.commit(message or command.splitlines()[0][:72])
            return execution.result.exit_code

    with reported():
        raise typer.Exit(asyncio.run(act()))


async def _input() -> Any:
    while block := await asyncio.to_thread(os.read, 0, 65536):
        yield block


@app.command()
def log(name: Name, store: Where = HOME, as_json: AsJson = False) -> None:
    """Show the revisions of a workspace, newest first."""
    with reported():
        rows = [described(revision) for revision in opened(store)[split(name)[0]].log()]
        show(rows, ("revision", "id", "time", "message", "lineage"), as_json)


@app.command()
def diff(
    name: Name,
    against: Annotated[str | None, typer.Argument(help="Another revision; the parent when left out.")] = None,
    store: Where = HOME,
    as_json: AsJson = False,
) -> None:
    """Show what a revision changed."""
    with reported():
        where, revision = split(name)
        found = opened(store)[where].diff(revision, against)
        rows = [{"change": d.what, "path": d.path, **({"from": d.old} if d.old else {})} for d in found]
        show(rows, ("change", "path", "from"), as_json)


@app.command("show")
def show_file(
    place: Annotated[str, typer.Argument(help="NAME[@REVISION]:/path of a file.")], store: Where = HOME
) -> None:
    """Print a file of a revision."""
    with reported():
        address, _, path = place.partition(":")
        if not path:
            raise RametError("invalid_argument", f"{place!r} names no file", "write NAME@REVISION:/path")
        name, revision = split(address)
        for block in opened(store)[name].show(path, revision):
            sys.stdout.buffer.write(block)


@app.command()
def fork(
    name: Name, new_name: Annotated[str, typer.Argument(help="Name of the new workspace.")], store: Where = HOME
) -> None:
    """Begin a workspace with a revision of another one; nothing is copied."""
    with reported():
        where, revision = split(name)
        print(opened(store)[where].fork(revision, new_name).name)


@app.command()
def revert(
    name: Annotated[str, typer.Argument(help="NAME@REVISION whose content becomes the new tip.")], store: Where = HOME
) -> None:
    """Make the content of a past revision the newest one. History stays."""
    with reported():
        where, revision = split(name)
        if revision is None:
            raise RametError("invalid_argument", "no revision was given", "write NAME@REVISION; `ramet log` lists them")
        print(opened(store)[where].revert(revision).name)


@app.command()
def checkout(
    name: Name,
    target: Annotated[str, typer.Argument(help="Directory that is made equal to the tree.")],
    store: Where = HOME,
    prefix: Annotated[str, typer.Option(help="Mount to take.")] = "/",
) -> None:
    """Write a revision to a real directory: only what differs is written, what must not be there is removed."""
    with reported():
        where, revision = split(name)
        receipt = opened(store)[where].checkout(target, revision, prefix)
        print(
            f"{receipt.written} written, {receipt.kept} kept, {receipt.removed} removed; tree {receipt.tree.hex()[:12]}"
        )


@app.command()
def snapshot(
    name: Name, target: Annotated[str, typer.Argument(help="Tar to write.")], store: Where = HOME,
    compress: Annotated[str | None, typer.Option(help="gz, bz2 or xz.")] = None,
) -> None:  # fmt: skip
    """Write a workspace to a snapshot tar."""

    async def act() -> None:
        where, revision = split(name)
        async with opened(store).open(where, revision, readonly=True) as ws:
            ws.snapshot(target, compress)

    with reported():
        asyncio.run(act())


@app.command()
def verify(store: Where = HOME) -> None:
    """Read everything in the store and check every digest and reference."""
    with reported():
        report = opened(store).verify()
        print(f"{report.packs} packs, {report.objects} objects, {report.revisions} revisions")
        for name in report.affected:
            print(f"damaged: {name}", file=sys.stderr)
        if not report.ok:
            raise typer.Exit(1)


@app.command()
def version() -> None:
    """Print the version."""
    from ramet import __version__

    print(__version__)


def main(run: Callable[[], Any] = app) -> None:
    """The entry point of the `ramet` command."""
    run()


if __name__ == "__main__":
    main()
