"""What declare, typeset, local, export and readonly are asked for, and what they show."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ramet.shell.expand.values import EXPORT, READONLY, TRACE, Assoc, Indexed
from ramet.shell.interp.builtins.variable_list import declaration_line, every_name, write_variables
from ramet.shell.interp.run.batches import each, write_lines
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state import function_table
from ramet.shell.interp.state.shell_state import ShellState

MARKERS: Final = ("export", "readonly")


@dataclass
class Request:
    """What the options of a declaration ask for."""

    command: str
    add: int = 0
    remove: int = 0
    array: str = ""
    both: bool = False
    functions: bool = False
    names_only: bool = False
    everywhere: bool = False
    inherit: bool = False
    show: bool = False
    unassigned: bool = False
    """Whether something could not be assigned, which a process tells by a status of its own."""
    late: bool = False
    """Whether `-A` was found behind a name: no option there, and yet what is assigned in parentheses heeds it."""
    words: list[str] = field(default_factory=list)


async def show_locals(sh: ShellState) -> int:
    scope = sh.variables.scopes[sh.variables._own_depth()]
    names = sorted(name for name in scope if name not in scope.temps)
    if next(frame for frame in reversed(sh.frames) if frame.function).options is not None:
        written = sh.out(b"local -\n", "local")
        if status := written if isinstance(written, int) else await written:
            return status
    return await write_variables(sh, "local", names, declaration_line)


def show(sh: ShellState, request: Request) -> Result:
    if not request.words:
        return drive(_show_all(sh, request))
    missing = partial(_not_found, request.command)
    return drive(write_variables(sh, request.command, request.words, declaration_line, missing))


def _not_found(command: str, name: str) -> str:
    return f"{command}: {name}: not found"


async def _show_all(sh: ShellState, request: Request) -> int:
    """All variables that have the attributes."""
    names = every_name(sh)
    attrs = sh.variables.attrs
    if request.add:
        names = [name for name in names if attrs.get(name, 0) & request.add]
    if request.array:
        kind = Assoc if request.array == "A" else Indexed
        names = [name for name in names if type(sh.variables.array(name)) is kind]
    portable = sh.posix and request.command in MARKERS
    line = partial(_portable_line, request.command) if portable else declaration_line
    return await write_variables(sh, request.command, names, line)


def _portable_line(command: str, sh: ShellState, name: str) -> str | None:
    """`export name="value"`: a line that any shell reads again, as far as it knows arrays."""
    line = declaration_line(sh, name)
    if line is None:
        return None
    letters, _, rest = line.removeprefix("declare -").partition(" ")
    return f"{command} -{letters[0]} {rest}" if letters[0] in "aA" else f"{command} {rest}"


_FUNCTION_BITS: Final = READONLY | TRACE | EXPORT


def functions(sh: ShellState, request: Request) -> Result:
    """Functions: their attributes changed, or shown."""
    wanted = request.add & _FUNCTION_BITS
    if not request.show and request.command not in MARKERS and any("=" in word for word in request.words):
        return sh.error(f"{request.command}: cannot use `-f' to make functions")
    shows = request.show and request.command not in MARKERS
    if request.words and (wanted or request.remove & _FUNCTION_BITS) and not shows:
        return each(sh, request.words, partial(_mark_function, sh, request))
    if not request.words:
        every = (name for name in sh.functions if not wanted or function_table.flags(sh, name) & wanted)
        return _show_functions(sh, request, sorted(every))
    return _show_functions(sh, request, request.words)


def _show_functions(sh: ShellState, request: Request, names: list[str]) -> Result:
    """Writes functions, or their names."""
    all_of = request.show or not request.words
    parts = sh.pending_output = list[str]()

    def line(name: str) -> str:
        found = sh.functions[name]
        place = f" {found.node.line + found.further} {found.source or sh.name}" if "extdebug" in sh.shopts else ""
        return f"{name}{place}\n"

    async def add(name: str) -> int:
        if name not in sh.functions:
            return sh.error(f"{request.command}: {name}: not found") if request.show else 1
        if sh.posix and request.command in MARKERS:
            parts.append(f"{request.command} -f {name}\n")
        elif not request.names_only:
            parts.extend(await function_table.definition(sh, name))
            if all_of and function_table.flags(sh, name):
                parts.append(function_table.attribute_line(sh, name))
        else:
            parts.append(function_table.attribute_line(sh, name) if all_of else line(name))
        return 0

    async def write() -> int:
        status = 0
        for name in names:
            status = await add(str(name)) or status
            await sh.budget.yield_turn()
        sh.pending_output = []
        written = write_lines(sh, parts, len(parts), request.command)
        return status or (written if isinstance(written, int) else await written)

    return drive(write())


def _mark_function(sh: ShellState, request: Request, word: str) -> Result:
    if word not in sh.functions:
        # Only `declare` stays silent about what is not there.
        return sh.error(f"{request.command}: {word}: not a function") if request.command in MARKERS else 1
    if request.remove & READONLY and function_table.flags(sh, word) & READONLY:
        return sh.error(f"{request.command}: {word}: readonly function")
    function_table.set_flags(sh, word, request.add & _FUNCTION_BITS, request.remove & _FUNCTION_BITS)
    return 0
