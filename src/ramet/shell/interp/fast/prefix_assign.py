"""Shortcut: assignments before a quick builtin, as in `IFS= read -r line`.

It equals `run/simple.py` because the builtins listed run nothing else and keep nothing, so that a temporary scope
around the call is all there is to make. Anything unusual at run time (traces, patterns, POSIX mode, variables with
attributes) goes the general way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from ramet.shell.expand.values import EXPORT
from ramet.shell.expand.word import to_text as texts
from ramet.shell.interp.builtins import BUILTINS
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.state.assignment_hooks import ON_ASSIGN
from ramet.shell.interp.state.scopes import MISSING, Scope
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import Literal, Simple, Word

_QUICK: Final = frozenset((":", "[", "echo", "false", "read", "test", "true"))
"""Builtins that run nothing else and keep no assignment."""
_FEW: Final = 64


def compile_prefixed(node: Simple, expand: Callable[[ShellState], list[str]], slow: Callable[..., Any]) -> Run | None:
    """Compile a plain case; None when there is anything unusual. `slow` gets the words where they are expanded."""
    first = node.words[0]
    if (
        not FAST
        or node.redirects
        or not isinstance(first, Word)
        or len(first.parts) != 1
        or not isinstance(first.parts[0], Literal)
    ):
        return None
    name = first.parts[0].text
    if name not in _QUICK or len(node.assigns) > _FEW:
        return None
    plans: list[tuple[str, Callable[[ShellState], str]]] = []
    for assign in node.assigns:
        if (
            assign.subscript is not None
            or assign.append
            or not isinstance(assign.value, Word)
            or assign.name in ON_ASSIGN
        ):
            return None
        value = texts.text(assign.value, assign=True)
        if value.wait:
            return None
        plans.append((assign.name, value.run))
    line, builtin = node.line, BUILTINS[name]

    def run(sh: ShellState) -> Result:
        if sh.instrumented:
            return drive(slow(sh, None))
        sh.line, sh.last_command = line, node
        argv = expand(sh)
        store = sh.variables
        values, attrs = store.values, store.attrs
        if (
            type(argv) is not list
            or sh.has_globs
            or len(argv) > _FEW
            or sh.posix
            or name in sh.functions
            or name in sh.disabled
        ):
            return drive(slow(sh, argv))
        for one, _ in plans:
            if one in attrs or type(values.get(one, "")) is not str:
                return drive(slow(sh, argv))
        scope = Scope(True)
        store.scopes.append(scope)
        try:
            for one, text in plans:
                found = text(sh)
                if one not in scope:
                    scope[one] = (values.get(one, MISSING), 0)
                values[one] = found
                attrs[one] = EXPORT
            result = builtin(sh, argv)
        except BaseException:
            store.pop()
            raise
        if type(result) is not int:
            return _rest(sh, argv, result)  # type: ignore[arg-type]
        store.pop()
        return _settle(sh, argv, result)

    return run


async def _rest(sh: ShellState, argv: list[str], pending: Awaitable[int]) -> int:
    try:
        result = await pending
    finally:
        sh.variables.pop()
    return _settle(sh, argv, result)


def _settle(sh: ShellState, argv: list[str], status: int) -> int:
    sh.last_arg = argv[-1]
    sh.pipe_statuses = None
    sh.status = status
    return status
