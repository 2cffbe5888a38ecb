"""Errors of ours: one base class, hashable, and the same after pickling."""

from __future__ import annotations

import ast
import builtins
import pickle
from pathlib import Path

import pytest

import ramet
from ramet import CommandFailed, IOResult, LimitExceeded, RametError
from ramet.core.errors import wrong_type
from ramet.workspace.config import ConfigError, Problem
from ramet.workspace.config.nodes import ConfigSyntaxError, Position
from ramet.workspace.stored.events import EventRefused

ERRORS = [
    RametError("not_found", "cannot find it", "Look elsewhere.", {"path": "/a"}),
    LimitExceeded("output_bytes", 5, "cat"),
    CommandFailed(IOResult(stderr=b"no\n", exit_code=3)),
    wrong_type("a command", 5, "Pass text."),
    ConfigSyntaxError("not YAML", Position(1, 2)),
    ConfigError([Problem("ramet.yaml", 1, 2, "store", "it is no path")]),
    EventRefused("the webhook answered 403"),
]

INSIDE = ("commands/", "shell/")
"""Errors of these packages end as a message and an exit status, as those of a real program do."""
CONTROL_FLOW = {
    "Abandoned": "ends a thread whose work nobody waits for",
    "BadRequest": "ends a connection of a native program; becomes an answer of the proxy",
    "CannotCommitOverlay": "scans the merged directory instead",
    "Cancelled": "ends a call; becomes asyncio.CancelledError",
    "CannotEnter": "status of the helper process of the box",
    "CannotHold": "status of the helper process of the box",
    "ClientGone": "ends a request whose client has left",
    "Died": "ends a program by a signal; becomes an exit status",
    "ImapLost": "becomes Unavailable at the boundary of the backend",
    "ImapRefused": "becomes an OSError at the boundary of the backend",
    "Inexpressible": "picks another engine for a pattern",
    "NotForRe2": "picks another engine for a pattern",
    "ProgramFailed": "breaks off the answer of a program that the server passes on",
    "Refusal": "the answer of the server to a request, as problem JSON",
    "SocksError": "ends a connection of a native program, which has its answer",
    "TooLarge": "forgets which lines programs wrote; blame says unknown",
    "StopWork": "ends background work of the server",
    "TimeUp": "ends a call; becomes exit code 124",
    "UsageError": "becomes exit status 2 of the command line",
}
"""Exceptions that never leave ramet, and what they do; those of one module begin with an underscore."""
VALUES = {
    "BadScheme": "a BadURL: a scheme that the network does not have",
    "BadURL": "a ValueError that becomes a refusal of the network, or the message of a command",
    "DamagedFrame": "a ValueError that readers of the store turn into store_corrupt",
    "MatchTimeout": "a RuntimeError of the pattern engine, as of a library",
    "PatternError": "a ValueError of the pattern engine, as re.error is",
    "PatternTooCostly": "refuses a pattern of the shell; becomes a message",
}
"""Errors of parts that are usable alone, below core."""


def test_every_error_of_ours_is_a_ramet_error() -> None:
    """Backends answer with OSErrors; everything else that can leave ramet is a RametError."""
    root = Path(ramet.__file__).parent
    bases: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*.py")):
        if not str(file.relative_to(root)).startswith(INSIDE):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    bases.setdefault(node.name, []).extend(ast.unparse(base).split(".")[-1] for base in node.bases)

    def ancestors(name: str) -> set[str]:
        return {name}.union(*(ancestors(base) for base in bases.get(name, ()) if base != name))

    errors = {name for name in dir(builtins) if name.endswith(("Error", "Exception"))}
    ours = {name for name in bases if ancestors(name) & errors}
    system = {name for name in errors if issubclass(getattr(builtins, name), OSError)}
    fine = {name for name in ours if name.startswith("_") or ancestors(name) & {"RametError", *system}}
    assert ours - fine == CONTROL_FLOW.keys() | VALUES.keys()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_hashable_and_survives_pickling(error: RametError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.as_dict() == error.as_dict() and str(again) == str(error)
    assert len({error, again}) == 2


def test_a_wrong_type_is_still_a_type_error() -> None:
    with pytest.raises(TypeError, match="cannot use a int as a command"):
        raise wrong_type("a command", 5, "Pass text.")
