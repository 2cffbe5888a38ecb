"""The builtins: one explicit table of name -> function."""

from __future__ import annotations

from typing import Final

from ramet.shell.interp.builtins import (
    completion,
    declare,
    dirs,
    flow,
    history,
    io,
    jobs,
    lookup,
    misc,
    printf,
    settings,
    test,
)
from ramet.shell.interp.session import Builtin

BUILTINS: Final[dict[str, Builtin]] = {
    **misc.TABLE,
    **history.TABLE,
    **flow.TABLE,
    **declare.TABLE,
    **io.TABLE,
    **printf.TABLE,
    **test.TABLE,
    **dirs.TABLE,
    **jobs.TABLE,
    **lookup.TABLE,
    **completion.TABLE,
    **settings.TABLE,
}

PROMPT_BUILTINS: Final = frozenset(("echo", "printf", ":", "true", "false", "pwd", "set", "declare", "export", "type"))
"""Builtins that write what they have and end: as a stage of a pipeline they need no task."""
