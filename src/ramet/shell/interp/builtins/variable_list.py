"""Variables as declare, set and export list them, however many there are and however much is in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import BATCH, LARGE
from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import LONGEST_NAME
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
_LARGE_ARRAY: Final = 5000

LineOf = Callable[[ShellState, str], str | None]
"""How a variable is shown; None for one that is not."""


def is_large(sh: ShellState, name: str) -> bool:
    """Whether writing a variable takes long enough to be done aside."""
    value = sh.vars.get(name) if len(name) <= LONGEST_NAME else None
    if type(value) is str:
        return len(value) > LARGE
    if name == "_":
        return type(sh.last_arg) is not str or len(sh.last_arg) > LARGE
    if isinstance(value, Dynamic):
        return len(sh.params) > _LARGE_ARRAY  # it may be one of the arrays that hold them
    if isinstance(value, Assoc) and any(len(key) > LARGE for key in value.items):
        return True
    return isinstance(value, Indexed | Assoc) and (
        len(value) > _LARGE_ARRAY or any(len(text) > LARGE for text in value.stored() if text is not None)
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


async def every_name(sh: ShellState) -> list[str]:
    """All variables in their order."""
    names = chain((name for name in sh.vars if "\0" not in name), () if "_" in sh.vars else ("_",))
    return sorted(names)


async def write_settings(sh: ShellState, command: str, functions: bool = True) -> int:
    """`name=value` of all variables, and the functions."""
    if await write_variables(sh, command, await every_name(sh), setting_line):
        return 1
    if not functions:
        return 0
    names = sorted(sh.functions)
    return await write_functions(sh, names, command)


async def write_variables(
    sh: ShellState,
    command: str,
    names: Sequence[str],
    line_of: LineOf,
    missing: Callable[[str], Sequence[str]] | None = None,
) -> int:
    """The lines of variables, however many and however large; `missing` says what is wrong with one that has none."""
    status = 0
    for start in range(0, len(names), BATCH):
        lines: list[str] = []
        sh.pending_output = lines
        for name in map(str, names[start : start + BATCH]):
            show = partial(line_of, sh, name)
            large = is_large(sh, name)
            line = await offload(sh.budget, show) if large else show()
            if line is None:
                status = status if missing is None else sh.error("".join(missing(name)))
            elif not large:
                lines.append(line + "\n")
            else:
                sh.pending_output = []
                if await write_large(sh, "".join(lines), command) or await write_large(sh, line, command, "\n"):
                    return 1
                sh.pending_output = lines = []
        sh.pending_output = []
        written = sh.out(encode("".join(lines)), command) if lines else 0
        if written if isinstance(written, int) else await written:
            return 1
        await turn(sh)
    return status


async def write_large(sh: ShellState, text: str, command: str, end: str = "") -> int:
    """Text of any length to stdout, in blocks between which others run."""
    for start in range(0, len(text), LARGE):
        written = sh.out(encode(text[start : start + LARGE]), command)
        if written if isinstance(written, int) else await written:
            return 1
        await sh.budget.yield_turn()
    written = sh.out(encode(end), command) if end else 0
    return written if isinstance(written, int) else await written
