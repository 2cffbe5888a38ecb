"""One engine, thin surfaces: whatever one of them can do, all can, or it is said why not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from ramet.apps.cli.verb_table import leaves
from ramet.apps.client import client
from ramet.apps.client import reference as client_ref
from ramet.apps.client import sandbox as client_run
from ramet.apps.client import workspace as client_workspace
from ramet.apps.server.routes import ROUTES
from ramet.apps.surfaces import ELSEWHERE, LOCAL, NOT_AFAR, OPTIONS, TABLE, Row
from ramet.store.verbs.key_admin import Keys
from ramet.workspace.agent.sandbox import AgentRun, Files, Sandbox
from ramet.workspace.agent.tools import TOOLS
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.store import Store, StoredWorkspace

LIBRARY = {kind.__name__: kind for kind in (Store, StoredWorkspace, StoredWorkspaceRef, Keys)}
CLIENT: dict[str, Any] = {
    kind.__name__: kind
    for kind in (client.RemoteStore, client.RemoteKeys, client_ref.RemoteRef, client_workspace.RemoteWorkspace)
}
TYPES = Path(__file__).parents[2] / "clients" / "typescript" / "types"
CLASSES = {"AgentRun": ("run",), "Workspace": ("workspace", "running"), "StoreCare": ("care",)}
PAIRS: list[tuple[Any, Any]] = [
    (Store, client.RemoteStore),
    (StoredWorkspaceRef, client_ref.RemoteRef),
    (StoredWorkspace, client_workspace.RemoteWorkspace),
    (Keys, client.RemoteKeys),
    (AgentRun, client_run.RemoteAgentRun),
    (Sandbox, client_run.RemoteSandbox),
    (Files, client_run.RemoteFiles),
]
SANDBOX = {
    "Sandbox.hydrate": "for who has a loop of its own",
    "Sandbox.dehydrate": "for who has a loop of its own",
    "Sandbox.wanted": "for who ends it in a loop of its own",
    "Sandbox.retry_pushes": "a workspace's `push_again` does it",
}


def verbs() -> list[str]:
    return sorted(f"{path} {verb.name}".removeprefix("ramet ") for path, verb in leaves())


def test_every_verb_is_in_the_table_or_says_why_not() -> None:
    assert sorted([*(row.verb for row in TABLE), *LOCAL]) == verbs(), "a new verb needs a route, or a reason"


def test_every_route_is_in_the_table_or_says_what_stands_for_it() -> None:
    named = {route for row in TABLE for route in row.routes} | set(ELSEWHERE)
    assert named == {f"{route.method} {route.path}" for route in ROUTES}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.verb)
def test_what_the_table_names_is_there(row: Row) -> None:
    for found, places in ((row.library, LIBRARY), (row.python, CLIENT)):
        owner, _, name = found.partition(".")
        assert hasattr(places[owner], name), found
    owner, _, name = row.typescript.partition(".")
    declared = "".join((TYPES / f"{file}.d.ts").read_text() for file in CLASSES[owner])
    assert re.search(rf"^    {name}\(", declared, re.M), row.typescript
    assert not row.mcp or row.mcp in TOOLS


def public(kind: Any) -> dict[str, Any]:
    """Names that callers use, with what they are; also those that are only annotated."""
    found: dict[str, Any] = {}
    for base in reversed([base for base in kind.__mro__ if base is not object]):
        found |= dict.fromkeys(getattr(base, "__annotations__", {})) | vars(base)
    dunder = ("__getitem__", "__contains__", "__enter__", "__aenter__")
    return {name: value for name, value in found.items() if not name.startswith("_") or name in dunder}


@pytest.mark.parametrize(("here", "there"), PAIRS, ids=lambda kind: kind.__name__)
def test_the_client_has_the_calls_of_the_library(here: Any, there: Any) -> None:
    afar = public(there)
    state = {"name", "workspace", "image", "revision", "failure", "files", "phase", "pushed", "warnings"}
    for name, call in public(here).items():
        place = f"{here.__name__}.{name}"
        if place in NOT_AFAR or place in SANDBOX:
            assert name not in afar, f"{place} is there: it needs no reason"
            continue
        if name in state or name in ("closed", "checkpointer", "history", "sessions", "finished_jobs", "secrets"):
            continue
        assert name in afar, f"{place} is missing from afar: add it, or say why not in NOT_AFAR"
        if isinstance(call, property) or not callable(call):
            continue
        _same(place, call, afar[name])


def _same(place: str, here: Any, there: Any) -> None:
    """The same parameters by the same names, and the same order for those that may be given by place."""
    left_out, _ = OPTIONS.get(place, ("", ""))
    wanted = [p for p in inspect.signature(here).parameters.values() if p.name not in left_out.split()]
    had = inspect.signature(there).parameters
    free = any(p.kind is p.VAR_KEYWORD for p in wanted)
    for parameter in wanted:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        open_ended = any(p.kind is p.VAR_KEYWORD for p in had.values())
        assert parameter.name in had or open_ended, f"{place}({parameter.name})"
    by_place = [p.name for p in wanted if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in had.values() if p.kind is p.POSITIONAL_OR_KEYWORD][: len(by_place)] == by_place or free


def test_what_is_said_to_be_left_out_exists() -> None:
    kinds = {kind.__name__: kind for kind, _ in PAIRS}
    for place in NOT_AFAR:
        owner, _, name = place.partition(".")
        known = set(public(kinds[owner])) | set(
            re.findall(r"self\.(\w+)\b", inspect.getsource(kinds[owner].__mro__[-2]))
        )
        known |= set(re.findall(r"self\.(\w+)\b", inspect.getsource(kinds[owner])))
        assert name in known, f"{place} is gone: so should be its reason"
    for place, (names, _) in OPTIONS.items():
        owner, _, name = place.partition(".")
        signature = inspect.signature(getattr(kinds[owner], name))
        if name == "execute":
            signature = inspect.signature(kinds[owner].__mro__[1].execute)
        assert set(names.split()) <= set(signature.parameters), place
