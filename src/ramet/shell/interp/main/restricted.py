"""The restricted shell: what it refuses is asked for where it would be done, and only there."""

from __future__ import annotations

from typing import Final

from ramet.shell.expand.values import READONLY
from ramet.shell.interp.state.shell_state import ShellState

OPTION: Final = "restricted_shell"
_FIXED: Final = ("BASH_ENV", "ENV", "HISTFILE", "PATH", "SHELL")


def restrict(sh: ShellState) -> None:
    """From here on; there is no way back."""
    sh.shopts.add(OPTION)
    for name in _FIXED:
        sh.vars.setdefault(name, None)
        sh.variables.flag(name, READONLY)


def refused(sh: ShellState, *message: str) -> bool:
    """Whether this shell is restricted, said with what it refuses."""
    if OPTION not in sh.shopts:
        return False
    sh.complain(*message)
    return True
