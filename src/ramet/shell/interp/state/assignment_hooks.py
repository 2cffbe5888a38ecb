"""Variables whose assignment does more than assign, and what a shell makes of their new values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ramet.shell.expand.arith.numerals import is_number

if TYPE_CHECKING:
    from ramet.shell.interp.state.shell_state import ShellState


def _path(sh: ShellState, value: str | None) -> None:
    sh.hashed.clear()


def _option_index(sh: ShellState, value: str | None) -> None:
    if value is not None:
        sh.variables.option_place = (int(value) if is_number(value) else 1, 0)


def _posixly_correct(sh: ShellState, value: str | None) -> None:
    if sh.posix is not (value is not None):
        sh.set_option("posix", value is not None)


def _glob_ignore(sh: ShellState, value: str | None) -> None:
    """What leaves names out takes the hidden ones in, also after it has become empty."""
    if value:
        sh.shopts.add("dotglob")
    elif value is None:
        sh.shopts.discard("dotglob")


def _compatibility(sh: ShellState, value: str | None) -> None:
    level = _level(value)
    if value and level is None:
        sh.complain(f"BASH_COMPAT: {value}: compatibility value out of range")
    sh.shopts -= COMPATIBLE
    if f"compat{level}" in COMPATIBLE:
        sh.shopts.add(f"compat{level}")


def _trace_target(sh: ShellState, value: str | None) -> None:
    description = sh.fds.get(int(value)) if value and is_number(value) else None
    sh.trace_fd_invalid = description is None or description.writer is None
    if value and sh.trace_fd_invalid:
        why = "invalid value for trace file descriptor" if description is None else "cannot open as FILE"
        sh.complain(f"BASH_XTRACEFD: {value}: {why}")


def _level(value: str | None) -> int | None:
    """`5.1` or `51` as a number, unless there is no such version."""
    found = _LEVEL(value or "")
    level = int(found[1] + found[2]) if found is not None else 0
    return level if _OLDEST <= level <= _NEWEST else None


def compatibility(sh: ShellState) -> int:
    """The version of bash that scripts are promised, as BASH_COMPAT says: 52 where it says nothing."""
    return _level(sh.variables.get("BASH_COMPAT")) or _NEWEST


COMPATIBLE: Final = frozenset(f"compat{level}" for level in (31, 32, 40, 41, 42, 43, 44))
_LEVEL: Final = re.compile(r"([0-9])\.?([0-9])").fullmatch
_OLDEST, _NEWEST = 31, 52


def switch_compatibility(sh: ShellState, name: str, on: bool) -> None:
    """`shopt -s compat42`: it is the only one then, and BASH_COMPAT says so."""
    others = sh.shopts & COMPATIBLE - {name}
    sh.shopts -= COMPATIBLE
    if on:
        sh.shopts.add(name)
    else:
        sh.shopts |= others
    sh.vars["BASH_COMPAT"] = min((one[6:] for one in sh.shopts & COMPATIBLE), default=str(_NEWEST))


NOTICED: Final[dict[str, Callable[[ShellState, str | None], None]]] = {
    "PATH": _path,
    "OPTIND": _option_index,
    "POSIXLY_CORRECT": _posixly_correct,
    "GLOBIGNORE": _glob_ignore,
    "BASH_COMPAT": _compatibility,
    "BASH_XTRACEFD": _trace_target,
}
"""What to do with the new value; None where a variable is unset."""

LASTING: Final = ("POSIXLY_CORRECT", "GLOBIGNORE", "BASH_COMPAT")
"""Those of them that switch options, which is undone when an assignment has held for one command."""


def noticed(sh: ShellState, name: str) -> Callable[[], None]:
    """What brings back the options that an assignment to one of these is about to switch."""
    posix, mine = sh.posix, {"dotglob"} if name == "GLOBIGNORE" else COMPATIBLE
    before = sh.shopts & mine

    def undo() -> None:
        if name != "POSIXLY_CORRECT":
            sh.shopts -= mine
            sh.shopts |= before
        elif sh.posix is not posix:
            sh.set_option("posix", posix)

    return undo
