"""Verbs about the keys of an encrypted store. A key is never an argument: a file, a variable or a KMS is named."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from ramet.apps.cli.options import HOME, AsJson, Where, anywhere, counted, reported, show
from ramet.core.errors import RametError

app = typer.Typer(
    help="Make, show, rotate and destroy the keys of an encrypted store.", no_args_is_help=True, add_completion=False
)


@app.command("new")
def new(file: Annotated[str, typer.Argument(help="File to make; nobody else can read it.")]) -> None:
    """Make a key in a new file. Whoever loses it loses what it opens: keep a copy elsewhere."""
    with reported():
        from ramet.store.crypto.wrapping_keys import new_key_file

        made = new_key_file(file)
        print(f"{made.id} in {file}")
        print(f"export RAMET_KEY=file:{file}", file=sys.stderr)


@app.command("init")
def init(store: Where = HOME) -> None:
    """Begin an encrypted store with the key that RAMET_KEY names; one that exists is only opened."""
    with reported():
        print(anywhere(store).keys.wrapped_by)


@app.command("show")
def show_keys(store: Where = HOME, as_json: AsJson = False) -> None:
    """List the keyrings: workspaces, how many keys, and which key opens them. No key is shown."""
    with reported():
        rows = [
            {
                "workspace": ring.workspace, "state": ring.state, "epochs": ring.epochs, "keys": len(ring.ids),
                "newest": ring.ids[-1] if ring.ids else "", "opened_by": ", ".join(ring.wrapped_by),
                "from": ", ".join(ring.names), "destroyed": ring.destroyed,
            }
            for ring in anywhere(store).keys.show()
        ]  # fmt: skip
        show(rows, ("workspace", "state", "epochs", "keys", "newest", "opened_by", "from"), as_json)


@app.command("rotate")
def rotate(
    to: Annotated[str, typer.Option("--to", help="The new key: file:PATH, env:NAME or kms:ID.")],
    store: Where = HOME,
    old: Annotated[
        str | None, typer.Option("--old", help="The key before, to end a rotation that RAMET_KEY alone cannot.")
    ] = None,
) -> None:
    """Let another key open the store, and the one in RAMET_KEY nothing any more. No data is written anew."""
    with reported():
        for source in (to, old):
            if source is not None and source.partition(":")[0] not in ("file", "env", "kms"):
                raise RametError(
                    "invalid_argument",
                    "that names no place of a key",
                    "write file:PATH, env:NAME or kms:ID; never a key",
                )
        done = anywhere(store).keys.rotate(to, old)
        print(f"{counted(done, 'keyring')} written")


@app.command("shred")
def shred(
    name: Annotated[str, typer.Argument(help="Name of a workspace.")],
    store: Where = HOME,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: nothing brings it back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a workspace and destroy its keys: what only they could open is lost for ever."""
    with reported():
        if not yes:
            raise RametError(
                "invalid_argument", f"shredding {name!r} cannot be undone", "say --yes when that is what you want"
            )
        done = anywhere(store).keys.shred(name)
        if as_json:
            plain = {"workspace": name, "destroyed": done.destroyed, "kept_by": done.kept_by, "removed": done.removed}
            print(json.dumps(plain))
            return
        print(f"{counted(done.destroyed, 'key')} destroyed, {counted(done.removed, 'object')} removed")
        for other, count in sorted(done.kept_by.items()):
            print(f"{other} still has {count} of its keys: what it began with or merged")
