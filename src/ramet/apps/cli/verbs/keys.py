"""Verbs for the keys of an encrypted store. A key is named (file, variable, KMS), never an argument."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from ramet.apps.cli.options import AsJson, Where
from ramet.apps.cli.output import plural, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import HOME, any_store
from ramet.core.errors import RametError


def new(file: Annotated[str, Argument(help="File to make; nobody else can read it.")]) -> None:
    """Make a key in a new file. Whoever loses it loses what it opens: keep a copy elsewhere."""
    from ramet.store.crypto.wrapping_keys import new_key_file

    made = new_key_file(file)
    print(f"{made.id} in {file}")
    print(f"export RAMET_KEY=file:{file}", file=sys.stderr)


def init(store: Where = HOME) -> None:
    """Begin an encrypted store with the key that RAMET_KEY names; one that exists is only opened."""
    print(any_store(store).keys.wrapped_by)


def show_keys(store: Where = HOME, as_json: AsJson = False) -> None:
    """List the keyrings: workspaces, how many keys, and which key opens them. No key is shown."""
    rows = [
        {
            "workspace": ring.workspace, "state": ring.state, "epochs": ring.epochs, "keys": len(ring.ids),
            "newest": ring.ids[-1] if ring.ids else "", "opened_by": ", ".join(ring.wrapped_by),
            "from": ", ".join(ring.names), "destroyed": ring.destroyed,
        }
        for ring in any_store(store).keys.show()
    ]  # fmt: skip
    show(rows, ("workspace", "state", "epochs", "keys", "newest", "opened_by", "from"), as_json)


def rotate(
    to: Annotated[str, Option("--to", help="The new key: file:PATH, env:NAME or kms:ID.")],
    store: Where = HOME,
    old: Annotated[
        str | None, Option("--old", help="The key before, to end a rotation that RAMET_KEY alone cannot.")
    ] = None,
) -> None:
    """Let another key open the store, and the one in RAMET_KEY nothing any more. No data is written anew."""
    for source in (to, old):
        if source is not None and source.partition(":")[0] not in ("file", "env", "kms"):
            raise RametError(
                "invalid_argument",
                "that names no place of a key",
                "write file:PATH, env:NAME or kms:ID; never a key",
            )
    done = any_store(store).keys.rotate(to, old)
    print(f"{plural(done, 'keyring')} written")


def shred(
    name: Annotated[str, Argument(help="Name of a workspace.")],
    store: Where = HOME,
    yes: Annotated[bool, Option("--yes", help="Do it: nothing brings it back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a workspace and destroy its keys: what only they could open is lost for ever."""
    if not yes:
        raise RametError(
            "invalid_argument", f"shredding {name!r} cannot be undone", "say --yes when that is what you want"
        )
    done = any_store(store).keys.shred(name)
    if as_json:
        plain = {"workspace": name, "destroyed": done.destroyed, "kept_by": done.kept_by, "removed": done.removed}
        print(json.dumps(plain))
        return
    print(f"{plural(done.destroyed, 'key')} destroyed, {plural(done.removed, 'object')} removed")
    for other, count in sorted(done.kept_by.items()):
        print(f"{other} still has {count} of its keys: what it began with or merged")
