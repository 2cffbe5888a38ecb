"""The end of a builtin: what `$_` becomes, and failures that end a shell in POSIX mode."""

from __future__ import annotations

from typing import Final

from ramet.shell.interp.run.assign import AssignWord
from ramet.shell.interp.state.shell_state import ShellState

_USAGE_ENDS: Final = frozenset(
    ("break", "continue", "exec", "export", "readonly", "return", "set", "shift", "times", "trap", "unset")
)
"""Special builtins whose wrong usage, status 2, ends a shell in POSIX mode."""


def ends_shell(sh: ShellState, name: str, result: int) -> bool:
    """Return whether the failure of a builtin ends a shell in POSIX mode."""
    failed, sh.export_failed = sh.export_failed, False
    if failed and name in ("export", "readonly"):
        return True
    return result == 2 and name in _USAGE_ENDS and not sh.errexit_ignored


def last_argument(word: str) -> str:
    """Return what `$_` becomes: an array assignment counts by its name."""
    return word.name if isinstance(word, AssignWord) and word.items is not None else str(word)
