"""`ls`, `log` and `show`, and the quick way to them: an ordinary line is understood without building a command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ramet.apps.cli.errors import reported
from ramet.apps.cli.output import described, file_of, show, split
from ramet.apps.cli.verbs.exec import HOME, anywhere

if TYPE_CHECKING:
    from ramet.apps.client.reference import RemoteRef
    from ramet.store.model.ids import RevisionId
    from ramet.store.model.revisions import Revision
    from ramet.workspace.stored.reference import StoredWorkspaceRef

KEYS: Final = ("revision", "id", "time", "message", "phase", "lineage", "resumable", "content", "parents")
"""What is told of a head; nothing of a workspace that has none yet."""


def list_workspaces(store: str, as_json: bool = False) -> None:
    with reported():
        found = anywhere(store)
        rows = []
        for name, head in found.heads().items():
            rows.append({"workspace": name, **(dict.fromkeys(KEYS) if head is None else described(head))})
        if not rows and not as_json and sys.stdout.isatty():
            print(f"no workspace in {store} yet; `ramet create NAME` makes one")
            return
        show(rows, ("workspace", "revision", "time", "message"), as_json)


def log(name: str, store: str, graph: bool = False, as_json: bool = False) -> None:
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


def show_file(place: str, store: str) -> None:
    with reported():
        name, revision, path = file_of(place)
        for block in anywhere(store)[name].show(path, revision):
            sys.stdout.buffer.write(block)


class Form(NamedTuple):
    """How an ordinary line of a verb looks."""

    act: Callable[..., None]
    places: int
    flags: Mapping[str, str]


FORMS: Final = {
    "ls": Form(list_workspaces, 0, {"--json": "as_json"}),
    "log": Form(log, 1, {"--json": "as_json", "--graph": "graph", "-g": "graph"}),
    "show": Form(show_file, 1, {}),
}


def understood(verb: str, words: list[str]) -> Callable[[], None] | None:
    """What the words after a verb ask for when there is nothing unusual in them; None leaves them to the rest."""
    form = FORMS[verb]
    given: dict[str, Any] = {"store": os.environ.get("RAMET_HOME") or HOME}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word in form.flags:
            given[form.flags[word]] = True
        elif option == "--store":
            found = value if equals else next(rest, None)
            if found is None:
                return None
            given["store"] = found
        elif word.startswith("-"):
            return None
        else:
            places.append(word)
    return None if len(places) != form.places else lambda: form.act(*places, **given)
