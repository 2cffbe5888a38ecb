"""List variables as `declare`, `set` and `export` show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import BATCH, LARGE
from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.c_locale import bytewise
from ramet.shell.expand.values import Assoc, Dynamic, Indexed, NameRef
from ramet.shell.expand.word import transform
from ramet.shell.interp.run.batches import turn
from ramet.shell.interp.state.function_table import write_functions
from ramet.shell.interp.state.shell_state import ShellState

_UNLISTED: Final = frozenset(
    (
        "BASHPID",
        "BASH_ARGV0",
        "BASH_COMMAND",
        "BASH_SUBSHELL",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "HISTCMD",
        "LINENO",
        "RANDOM",
        "SECONDS",
        "SRANDOM",
    )
)

LineOf = Callable[[ShellState, str], str | None]
"""How a variable is shown; None for one that is not."""


def _is_large(sh: ShellState, name: str) -> bool:
    """Whether a variable is large enough to be quoted in a thread."""
    value = sh.vars.get(name)
    if type(value) is str:
        return len(value) > LARGE
    if isinstance(value, Dynamic):
        return len(sh.params) > BATCH  # BASH_ARGV holds them
    return isinstance(value, Indexed | Assoc) and (
        len(value) > BATCH or sum(len(text) for text in value.stored() if text is not None) > LARGE
    )


def declaration_line(sh: ShellState, name: str) -> str | None:
    """`declare -x name="value"` as `declare -p` shows it."""
    store = sh.variables
    if name == "_":
        return "declare -- _=" + quote.double(quote.as_locale(sh, str(sh.last_arg)))
    if name not in store.values:
        return None
    value = store.values[name]
    letters = transform.attribute_letters(store, name) or "-"
    if type(value) is NameRef:
        return (
            f"declare -{letters} {name}={quote.double(value.target)}" if value.target else f"declare -{letters} {name}"
        )
    array = store.array(name)
    if array is not None:
        if array.blank and not len(array):
            return f"declare -{letters} {name}"
        return f"declare -{letters} {name}=" + transform.array_text(array, bytewise(sh))
    text = store.get(name)
    if text is None:
        return f"declare -{letters} {name}"
    return f"declare -{letters} {name}=" + quote.double(quote.as_locale(sh, text))


def setting_line(sh: ShellState, name: str) -> str | None:
    """`name=value` as `set` shows it; what is computed when it is asked for is not shown."""
    if name == "_":
        return "_=" + quote.setting(quote.as_locale(sh, str(sh.last_arg)))
    value = sh.vars.get(name)
    if type(value) is Dynamic and name in _UNLISTED:
        return None
    array = sh.variables.array(name)
    if array is not None and not len(array) and (name == "FUNCNAME" or (value is array and array.blank)):
        return None
    if array is not None:
        return f"{name}=" + transform.array_text(array, bytewise(sh))
    text = value.target if type(value) is NameRef else sh.variables.get(name)
    return None if text is None else (f"{name}=" + quote.setting(quote.as_locale(sh, text)))


def every_name(sh: ShellState) -> list[str]:
    """The names of all variables, sorted."""
    return sorted({"_", *(name for name in sh.vars if "\0" not in name)})


async def write_settings(sh: ShellState, command: str, functions: bool = True) -> int:
    """`name=value` of all variables, and the functions."""
    if await write_variables(sh, command, every_name(sh), setting_line):
        return 1
    if not functions:
        return 0
    return await write_functions(sh, sorted(sh.functions), command)


async def write_variables(
    sh: ShellState,
    command: str,
    names: Sequence[str],
    line_of: LineOf,
    missing: Callable[[str], str] | None = None,
) -> int:
    """Write the lines of variables; `missing` makes the message for one that is not there."""
    status = 0
    for start in range(0, len(names), BATCH):
        lines = sh.pending_output = list[str]()
        for name in map(str, names[start : start + BATCH]):
            show = partial(line_of, sh, name)
            line = await offload(sh.budget, show) if _is_large(sh, name) else show()
            if line is not None:
                lines.append(line + "\n")
            elif missing is not None:
                status = sh.error(missing(name))
        sh.pending_output = []
        written = sh.out(encode("".join(lines)), command) if lines else 0
        if written if isinstance(written, int) else await written:
            return 1
        await turn(sh)
    return status
