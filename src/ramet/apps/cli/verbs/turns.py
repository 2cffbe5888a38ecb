"""`ramet turn` and `ramet rewind`: revisions of a directory that `ramet bind` has bound, while its program runs."""

from __future__ import annotations

import os
from typing import Annotated

from ramet.apps.cli.addresses import split_name
from ramet.apps.cli.options import AsJson, Message, Where, known_names
from ramet.apps.cli.output import say
from ramet.apps.cli.parameters import Argument
from ramet.apps.cli.stores import HOME
from ramet.apps.cli.turns import ask
from ramet.apps.cli.verbs.bind import absolute_store
from ramet.core.errors import RametError

Bound = Annotated[
    str | None, Argument(help="Bound workspace. Default: the one that this runs in.", complete=known_names)
]


def turn(name: Bound = None, message: Message = "", store: Where = HOME, as_json: AsJson = False) -> None:
    """Make a revision of a bound directory while its program runs.
    For hooks of coding agents that run at the end of a turn. Without a change there is no new revision.
    """
    where, _ = _bound(name)
    answer = ask(absolute_store(store), where, do="turn", message=message)
    say(answer, answer["revision"], as_json)


def rewind(name: Bound = None, store: Where = HOME, as_json: AsJson = False) -> None:
    """Make a bound directory what it was at a turn, as a new revision; nothing is lost.
    NAME@REVISION names the turn, by default the one before the last. Files that are in no revision stay.
    """
    where, revision = _bound(name)
    answer = ask(absolute_store(store), where, do="rewind", to=revision)
    say(answer, answer["revision"], as_json)


def _bound(name: str | None) -> tuple[str, str | None]:
    name = name or os.environ.get("RAMET_WORKSPACE")
    if not name:
        raise RametError("invalid_argument", "missing argument NAME", "write the name of a bound workspace")
    return split_name(name)
