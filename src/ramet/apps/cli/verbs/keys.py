"""Verbs for the keys of an encrypted store. Arguments name a key (file, variable, KMS), never contain one."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from ramet.apps.cli.options import AsJson, Where
from ramet.apps.cli.output import plural, say, show
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import HOME, any_store
from ramet.core.errors import RametError


def new(
    file: Annotated[str, Argument(help="File to create, readable only by you.")],
    as_json: AsJson = False,
) -> None:
    """Create a key in a new file. Data encrypted with a lost key is lost: keep a copy elsewhere."""
    from ramet.store.crypto.wrapping_keys import new_key_file

    made = new_key_file(file)
    say({"key": made.id, "file": file}, f"{made.id} in {file}", as_json)
    print(f"export RAMET_KEY=file:{file}", file=sys.stderr)


def init(store: Where = HOME, as_json: AsJson = False) -> None:
    """Create an encrypted store with the key that RAMET_KEY names; an existing store is only opened."""
    key = any_store(store).keys.wrapped_by
    say({"key": key}, key, as_json)


def show_keys(store: Where = HOME, as_json: AsJson = False) -> None:
    """List the keyrings: workspaces, number of keys, and the id of the key that opens them. No key is shown."""
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
    to: Annotated[str, Option("--to", help="New key: file:PATH, env:NAME or kms:ID.")],
    store: Where = HOME,
    old: Annotated[str | None, Option("--old", help="Previous key, to finish a rotation that stopped halfway.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replace the key in RAMET_KEY with another one; the old key opens nothing afterwards. No data is rewritten."""
    for source in (to, old):
        if source is not None and source.partition(":")[0] not in ("file", "env", "kms"):
            raise RametError(
                "invalid_argument",
                "cannot rotate: --to does not name a key's place",
                "write file:PATH, env:NAME or kms:ID, never the key itself",
            )
    done = any_store(store).keys.rotate(to, old)
    say({"written": done}, f"{plural(done, 'keyring')} written", as_json)


def shred(
    name: Annotated[str, Argument(help="Name of a workspace.")],
    store: Where = HOME,
    yes: Annotated[bool, Option("--yes", help="Confirm: this cannot be undone.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a workspace and destroy its keys: data that only they decrypt is lost for ever."""
    if not yes:
        raise RametError("invalid_argument", f"shredding {name!r} cannot be undone", "pass --yes to confirm")
    done = any_store(store).keys.shred(name)
    if as_json:
        plain = {"workspace": name, "destroyed": done.destroyed, "kept_by": done.kept_by, "removed": done.removed}
        print(json.dumps(plain))
        return
    print(f"{plural(done.destroyed, 'key')} destroyed, {plural(done.removed, 'object')} removed")
    for other, count in sorted(done.kept_by.items()):
        print(f"{other} still has {count} of its keys, from a fork or merge")
