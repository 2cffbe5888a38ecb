"""Function attributes, `declare -f` listings, and export of functions through the environment.

- The attributes of a function are in `Variables.attrs` under `MARK` + its name; variable names never contain the mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import LARGE, LONG_SCRIPT
from ramet.shell.expand.values import EXPORT, READONLY, TRACE
from ramet.shell.interp.run.batches import write_lines
from ramet.shell.interp.state.frames import FunctionDef
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import Function, Script
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.positions import put_lines
from ramet.shell.syntax.printer import function_text, function_value
from ramet.shell.syntax.scanner import Options

MARK: Final = "\1"
_LETTERS: Final = (("r", READONLY), ("t", TRACE), ("x", EXPORT))
_PREFIX: Final = "BASH_FUNC_"
_SUFFIX: Final = "%%"
_KEPT: Final = 256
_ANY: Final = Options(extglob=True)
"""What reads every definition that some options allowed."""


def flags(sh: ShellState, name: str) -> int:
    """The attributes of a function."""
    return sh.variables.attrs.get(MARK + name, 0)


def traced(sh: ShellState, name: str) -> bool:
    """Whether a function inherits the DEBUG and RETURN traps: `declare -ft`."""
    return flags(sh, name) & TRACE != 0


def set_flags(sh: ShellState, name: str, add: int, remove: int) -> None:
    sh.variables.flag(MARK + name, add, remove)


def forget(sh: ShellState, name: str) -> None:
    """A function goes, with its attributes."""
    sh.functions.pop(name, None)
    sh.variables.attrs.pop(MARK + name, None)


def attribute_line(sh: ShellState, name: str) -> str:
    """`declare -fx name`."""
    found = flags(sh, name)
    return f"declare -f{''.join(letter for letter, bit in _LETTERS if found & bit)} {name}\n"


async def definition(sh: ShellState, name: str) -> list[str]:
    """A function as it is shown, in parts."""
    node = sh.functions[name].node
    text = await offload_large(sh.budget, node.size, partial(function_text, node, sh.posix), LONG_SCRIPT)
    return [text, "\n"]


async def write_functions(sh: ShellState, names: Iterable[str], command: str) -> int:
    """The definitions of functions."""
    parts: list[str] = []
    for name in names:
        parts += await definition(sh, name)
        await sh.budget.yield_turn()
    written = write_lines(sh, parts, len(parts), command)
    return written if isinstance(written, int) else await written


async def ready_exported(sh: ShellState) -> None:
    """Print large exported functions in a thread and cache their texts for `environment`."""
    if not sh.functions:
        return
    for key in [key for key in sh.variables.attrs if key[0] == MARK]:
        function = sh.functions.get(key[1:])
        if function is not None and function.node.size > LONG_SCRIPT and not _is_kept(function.node):
            await offload(sh.budget, partial(_value, function.node))


def add_exported(sh: ShellState, env: dict[str, str]) -> None:
    """Put the exported functions into an environment."""
    for key, found in sh.variables.attrs.items():
        if found & EXPORT and key[0] == MARK:
            function = sh.functions.get(key[1:])
            if function is not None:
                env[f"{_PREFIX}{key[1:]}{_SUFFIX}"] = _value(function.node)


_values: dict[int, tuple[Function, str]] = {}
"""What exported functions are in the environment: every program that is started wants it."""


def _is_kept(node: Function) -> bool:
    found = _values.get(id(node))
    return found is not None and found[0] is node


def _value(node: Function) -> str:
    if _is_kept(node):
        return _values[id(node)][1]
    if len(_values) >= _KEPT:
        _values.clear()
    text = function_value(node)
    _values[id(node)] = (node, text)
    return text


async def adopt(sh: ShellState, given: Iterable[tuple[str, str]]) -> None:
    """Define the functions of an environment; skip values that are not exactly one definition."""
    for key, value in given:
        if key.startswith(_PREFIX) and key.endswith(_SUFFIX) and value.startswith("() {"):
            await sh.budget.yield_turn()
            name = key[len(_PREFIX) : -len(_SUFFIX)]
            script = await offload_large(sh.budget, len(value), partial(_parse_definition, name, value), LONG_SCRIPT)
            await sh.budget.yield_turn()
            function = None
            if isinstance(script, SyntaxFailure):
                for line in script.lines(f"{sh.name}: {name}: "):
                    await sh.say(f"{line}\n")
            elif "/" not in name and (function := _define(sh, name, script)) is None:
                sh.err(f"{sh.name}: warning: {name}: ignoring function definition attempt\n")
            if function is None:
                sh.err(f"{sh.name}: error importing function definition for `{name}'\n")
            else:
                sh.functions[name] = function._replace(source="environment")
                set_flags(sh, name, EXPORT, 0)


def _parse_definition(name: str, value: str) -> Script | SyntaxFailure:
    """What a definition is that an environment brought: its first command, whose lines count from 0."""
    known = _imported.get((name, value)) if len(value) <= LARGE else None
    if known is None:
        try:
            parser = Parser(f"{name} {value}\n", start_line=0)
            known = parser.next() or Script(())
        except SyntaxFailure as failure:
            return failure
        if len(value) <= LARGE:
            if len(_imported) >= _KEPT:
                _imported.clear()
            _imported[name, value] = known
    return known


_imported: dict[tuple[str, str], Script] = {}
"""Definitions that environments brought: every shell that is started reads them again."""


def define_again(sh: ShellState, name: str, text: str, source: str | None, lines: list[int]) -> FunctionDef | None:
    """The same for a function that another session had: the text is how `declare -f` shows it, whatever the options
    were under which it was read; the other two say where it stood."""
    try:
        # Not from the cache: the lines are of this definition alone.
        script = Script(tuple(s for line in iter(Parser(text, None, _ANY).next, None) for s in line.statements))
    except SyntaxFailure:
        return None
    if lines and script.statements:
        put_lines(script.statements[0].node, lines)
    function = _define(sh, name, script)
    if function is not None and source is not None:
        function = sh.functions[name] = function._replace(source=source)
    return function


def _define(sh: ShellState, name: str, script: Script) -> FunctionDef | None:
    found = [statement.node for statement in script.statements]
    if len(found) != 1 or not isinstance(found[0], Function) or found[0].name != name:
        return None
    end, sh.budget.slice_end = sh.budget.slice_end, float("inf")  # nothing here may wait
    try:
        sh.shell.compiled(script)(sh)
    finally:
        sh.budget.slice_end = end
    return sh.functions.get(name)
