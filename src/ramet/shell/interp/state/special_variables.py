"""Variables that the shell itself sets or computes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ramet.core import paths
from ramet.shell.expand.arith.numerals import is_name, is_number, is_signed
from ramet.shell.expand.values import EXPORT, INTEGER, READONLY, Dynamic, Indexed, Value
from ramet.shell.interp.state.assignment_hooks import ON_ASSIGN, compatibility
from ramet.shell.interp.state.options import OPTIONS, SHOPTS

if TYPE_CHECKING:
    from ramet.shell.interp.state.shell_state import ShellState

VERSION: Final = ("5", "2", "15", "1", "release", "x86_64-pc-linux-gnu")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class RandomSource:
    """The numbers of `$RANDOM`, which follow from the seed as they do in bash."""

    __slots__ = ("last", "state")

    def __init__(self, seed: int) -> None:
        self.seed(seed)

    @classmethod
    def cast(cls) -> RandomSource:
        """Seed from the system."""
        return cls(int.from_bytes(os.urandom(4)))

    def seed(self, seed: int) -> None:
        self.state, self.last = seed & 0xFFFFFFFF, 0

    def next(self, folded: bool = True) -> int:
        """The next number, which is never the one before it; `folded` since bash 5.1."""
        while True:
            high, low = divmod(self.state or 123459876, 127773)
            found = 16807 * low - 2836 * high
            self.state = found + 0x7FFFFFFF if found < 0 else found
            number = (self.state >> 16 ^ self.state if folded else self.state) & 0x7FFF
            if number != self.last:
                self.last = number
                return number


def _seed(sh: ShellState, value: str) -> None:
    sh.dice().seed(int(value) if is_signed(value) else 0)


def _set_seconds(sh: ShellState, value: str) -> None:
    offset = int(value) if is_signed(value) else 0
    sh.seconds_base = sh.shell.now() - offset


def _set_arg0(sh: ShellState, value: str) -> None:
    sh.arg0 = value
    sh.name = value


def _sources(sh: ShellState) -> list[str]:
    found = [frame.source for frame in reversed(sh.frames)]
    return [*found, *([sh.source] if sh.source else [])]


def _lines(sh: ShellState) -> list[str]:
    found = [str(frame.line) for frame in reversed(sh.frames)]
    return [*found, *(["0"] if sh.source or (sh.origin == "main" and found) else [])]


def _functions(sh: ShellState) -> list[str]:
    if not any(frame.function for frame in sh.frames):
        return []
    return [*sh.function_names(), *(["main"] if sh.source or sh.origin == "main" else [])]


def _pipe_status(sh: ShellState) -> list[str]:
    return [str(sh.status)] if sh.pipe_statuses is None else [str(status) for status in sh.pipe_statuses]


def _line(sh: ShellState) -> str:
    return str(sh.line_now())


def _level(sh: ShellState) -> str:
    # The words of a simple command in a pipeline are not yet within the shell that runs it.
    return str(sh.sub_level - (sh.stage_command is not None and sh.last_command is sh.stage_command))


def _directories(sh: ShellState) -> list[str]:
    return [sh.pwd, *sh.dirs]


def _arguments(sh: ShellState) -> list[list[str]]:
    """What every call was made with, innermost first, as far as `extdebug` was on then; in the end the parameters of
    the script, if they were read outside of functions."""
    if sh.arguments is None and not any(frame.function for frame in sh.frames):
        sh.arguments = sh.params
    calls = [frame.arguments for frame in reversed(sh.frames) if frame.arguments is not None]
    return calls if sh.arguments is None else [*calls, sh.arguments]


def _command(sh: ShellState) -> str:
    from ramet.shell.interp.run.bash_command import bash_command

    return bash_command(sh)


def _set_line(sh: ShellState, value: str) -> None:
    sh.line = int(value) if is_number(value) else 0


def _set_last(sh: ShellState, value: str) -> None:
    sh.last_arg = value


def _ignored(sh: ShellState, value: str) -> None:
    """Assignments to these have no effect."""


PLAIN_COMPUTED: Final = (
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "LINENO",
    "BASHPID",
    "BASH_ARGV0",
)
"""Those of them that are variables like any other to a command that has an assignment before it."""
COMPUTED: Final[dict[str, tuple[Callable[[Any], Any], Callable[[Any, str], None] | None]]] = {
    "RANDOM": (lambda sh: str(sh.dice().next(compatibility(sh) > 50)), _seed),
    "SRANDOM": (lambda sh: str(int.from_bytes(os.urandom(4))), _ignored),
    "SECONDS": (lambda sh: str(int(sh.shell.now() - sh.seconds_base)), _set_seconds),
    "EPOCHSECONDS": (lambda sh: str(int(sh.shell.now())), _ignored),
    "EPOCHREALTIME": (lambda sh: f"{sh.shell.now():.6f}", _ignored),
    "LINENO": (_line, _set_line),
    "BASHPID": (lambda sh: str(sh.own_pid()), _ignored),
    "BASH_SUBSHELL": (_level, _ignored),
    "BASH_COMMAND": (_command, _ignored),
    "BASH_ARGV0": (lambda sh: sh.arg0, _set_arg0),
    "FUNCNAME": (_functions, _ignored),
    "BASH_SOURCE": (_sources, _ignored),
    "BASH_LINENO": (_lines, _ignored),
    "PIPESTATUS": (_pipe_status, _ignored),
    "GROUPS": (lambda sh: [str(sh.shell.user.gid)], _ignored),
    "SHELLOPTS": (lambda sh: ":".join(name for name in OPTIONS if name in sh.options), None),
    "BASHOPTS": (lambda sh: ":".join(name for name in SHOPTS if name in sh.shopts), None),
    "BASH_ARGC": (lambda sh: [str(len(level)) for level in _arguments(sh)], _ignored),
    "BASH_ARGV": (lambda sh: [word for level in _arguments(sh) for word in reversed(level)], _ignored),
    "HISTCMD": (lambda sh: str(_command_number(sh)), _ignored),
    "_": (lambda sh: str(sh.last_arg), _set_last),
}


KEPT_BY_SHELL: Final = frozenset(("FUNCNAME", "GROUPS", "BASH_ARGC", "BASH_ARGV", "BASH_SOURCE", "BASH_LINENO"))
"""What no function can have for itself."""


def _command_number(sh: ShellState) -> int:
    """The number in the history of the command that runs."""
    kept = sh.history
    return kept.base + len(kept.entries) - 1 if "history" in sh.options else 0


def _commands(sh: ShellState) -> dict[str, str]:
    return {name: path.lstrip("\0") for name, (path, _) in sh.hashed.items()}


_NO_ALIAS: Final = " \t\n/$`=\"'\\|&;()<>"
"""What no alias has in its name."""


def is_alias_name(name: str) -> bool:
    return not any(char in name for char in _NO_ALIAS)


def _set_alias(sh: ShellState, name: str, value: str) -> None:
    if is_alias_name(name):
        sh.aliases[name] = value
    else:
        sh.complain(f"`{name}': invalid alias name")


def _set_command(sh: ShellState, name: str, value: str) -> None:
    sh.hashed[name] = (value, 0)


def _set_directory(sh: ShellState, key: str, value: str) -> None:
    place = int(key) if is_number(key) else 0
    if 1 <= place <= len(sh.dirs):
        sh.dirs[place - 1] = value


DYNAMIC: Final = {
    **{name: Dynamic(get, put) for name, (get, put) in COMPUTED.items()},
    "DIRSTACK": Dynamic(_directories, _ignored, _set_directory, assoc=False),
    "BASH_ALIASES": Dynamic(lambda sh: dict(sh.aliases), _ignored, _set_alias),
    "BASH_CMDS": Dynamic(_commands, _ignored, _set_command),
}


def own_variables(sh: ShellState) -> dict[str, Value]:
    """What every shell has besides its computed variables before it knows anything of its surroundings."""
    user = sh.shell.user
    return {
        "BASH": "/bin/bash",
        "BASH_VERSION": f"{VERSION[0]}.{VERSION[1]}.{VERSION[2]}({VERSION[3]})-{VERSION[4]}",
        "BASH_VERSINFO": Indexed(VERSION),
        "HOSTNAME": user.host,
        "HOSTTYPE": "x86_64",
        "MACHTYPE": VERSION[5],
        "OSTYPE": "linux-gnu",
        "BASH_LOADABLES_PATH": "/usr/local/lib/bash:/usr/lib/bash:/opt/local/lib/bash:/usr/pkg/lib/bash"
        ":/opt/pkg/lib/bash:.",
        "IFS": " \t\n",
        "OPTERR": "1",
        "OPTIND": "1",
        "PS4": "+ ",
        "UID": str(user.uid),
        "EUID": str(user.uid),
        "PPID": "1",
    }


OWN_ATTRIBUTES: Final = {
    **dict.fromkeys(("SHELLOPTS", "BASHOPTS", "BASH_VERSINFO"), READONLY),
    **dict.fromkeys(("UID", "EUID", "PPID"), READONLY | INTEGER),
    **dict.fromkeys(("RANDOM", "SRANDOM", "SECONDS", "BASHPID", "HISTCMD", "OPTIND"), INTEGER),
}


def install(sh: ShellState) -> None:
    """Give a new session the variables that every shell starts with."""
    sh.vars.update(DYNAMIC)
    sh.vars.update(own_variables(sh))
    sh.variables.attrs.update(OWN_ATTRIBUTES)


def adopt_environment(sh: ShellState, env: dict[str, str]) -> None:
    """Import an environment as exported variables, and complete what a login would have set."""
    adopt_variables(sh, env.items())
    complete_environment(sh, env)


def adopt_variables(sh: ShellState, given: Iterable[tuple[str, str]]) -> None:
    """Exported variables of an environment, or some of them."""
    for name, value in given:
        if paths.encode(name) and is_name(name) and not sh.variables.attrs.get(name, 0) & READONLY:
            if name == "SECONDS":
                _set_seconds(sh, value)
            elif name not in _OUR_OWN:
                if isinstance(sh.vars.get(name), Dynamic):
                    continue
                sh.vars[name] = value
            sh.variables.attrs[name] = sh.variables.attrs.get(name, 0) | EXPORT


_OUR_OWN: Final = frozenset(("IFS", "OPTIND", "OPTERR", "BASH_VERSION"))
"""Variables whose values no environment may bring along."""


def complete_environment(sh: ShellState, env: Mapping[str, str]) -> None:
    """What a shell makes of its variables once it has them all."""
    for option in env.get("SHELLOPTS", "").split(":"):
        if option in OPTIONS:
            sh.set_option(option, True)
    if "BASH_COMPAT" in env:
        ON_ASSIGN["BASH_COMPAT"](sh, env["BASH_COMPAT"])
    level = sh.variables.get("SHLVL") or "0"
    number = int(level) + 1 if is_signed(level) else 1
    if number >= 1000:
        sh.err(f"{sh.name}: warning: shell level ({number}) too high, resetting to 1\n")
    sh.vars["SHLVL"] = str(max(number, 0) if number < 1000 else 1)
    sh.variables.attrs["SHLVL"] = EXPORT
    for name, value in (("PATH", PATH), ("TERM", "dumb"), ("SHELL", "/bin/bash")):
        if name not in sh.vars:
            sh.vars[name] = value
    if type(sh.vars.get("PWD")) is not str or paths.parse(str(sh.vars["PWD"]) or "/") != sh.cwd:
        sh.vars["PWD"] = str(sh.cwd)
    sh.variables.attrs["PWD"] = EXPORT
    if "OLDPWD" not in sh.vars:
        sh.vars["OLDPWD"] = None
        sh.variables.attrs["OLDPWD"] = EXPORT
