"""The builtins: one explicit table of name -> function."""

from __future__ import annotations

from typing import Final

from ramet.shell.interp.builtins import (
    completion,
    declare,
    dirs,
    flow,
    history,
    jobs,
    lookup,
    mapfile,
    misc,
    printf,
    test,
    unset,
)
from ramet.shell.interp.builtins import (
    read as io,
)
from ramet.shell.interp.builtins import (
    set_shopt as settings,
)
from ramet.shell.interp.builtins.usage import helped
from ramet.shell.interp.state.shell_state import Builtin

_TABLE: Final[dict[str, Builtin]] = {
    **misc.TABLE,
    **history.TABLE,
    **flow.TABLE,
    **declare.TABLE,
    **unset.TABLE,
    **io.TABLE,
    **mapfile.TABLE,
    **printf.TABLE,
    **test.TABLE,
    **dirs.TABLE,
    **jobs.TABLE,
    **lookup.TABLE,
    **completion.TABLE,
    **settings.TABLE,
}
_WITHOUT_HELP: Final = frozenset((":", "[", "echo", "false", "test", "true"))
"""Builtins to which `--help` is a word like any other."""
_OFTEN: Final = frozenset(("break", "continue", "let", "local", "return", "shift"))
"""Builtins of loops and functions, which look for `--help` themselves where it is wrong anyway."""
BUILTINS: Final[dict[str, Builtin]] = {
    name: builtin if name in _WITHOUT_HELP or name in _OFTEN else helped(name, builtin)
    for name, builtin in _TABLE.items()
}

PROMPT_BUILTINS: Final = frozenset(("echo", "printf", ":", "true", "false", "pwd", "set", "declare", "export", "type"))
"""Builtins that write what they have and end: as a stage of a pipeline they need no task."""
