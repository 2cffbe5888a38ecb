"""Shortcut: call a function or builtin without assignments and redirections by one plain function.

It equals `run/simple.py` because nothing around the call is left to do: no assignments to scope, no redirections to
undo, no process substitutions to end (they wait, which excludes the shortcut). Traps, traces and patterns
(`sh.instrumented`, `sh.has_globs`) go the general way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ramet.shell.interp.builtins import BUILTINS
from ramet.shell.interp.builtins.lookup import SPECIAL
from ramet.shell.interp.run.builtin_status import ends_shell, last_argument
from ramet.shell.interp.run.functions import call_function
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import Simple

Slow = Callable[[ShellState, Any], Coroutine[Any, Any, int]]
"""The general way, with the words as far as they are expanded: a list, an awaitable for one, or None."""


def compile_call(
    node: Simple,
    expand: Callable[[ShellState], Any],
    slow: Slow,
    program: Callable[[ShellState, list[str]], Coroutine[Any, Any, int]],
) -> Run | None:
    """Compile the call of a command whose words need not wait; None when shortcuts are off."""
    if not FAST:
        return None
    line = node.line
    builtins = BUILTINS

    def run(sh: ShellState) -> Result:
        sh.line, sh.last_command = line, node
        if sh.instrumented:
            return drive(slow(sh, None))
        argv = expand(sh)
        if type(argv) is not list:
            return slow(sh, argv)
        if sh.has_globs or not argv:
            return drive(slow(sh, argv))
        name = argv[0]
        function = sh.functions.get(name)
        if function is not None and not (sh.posix and name in SPECIAL):
            result = call_function(sh, function, argv)
            if type(result) is not int:
                return _called(sh, argv, result)  # type: ignore[arg-type]
            sh.last_arg = argv[-1]
            return result
        builtin = builtins.get(name)
        if builtin is None or name in sh.disabled:
            return drive(program(sh, argv))
        result = builtin(sh, argv)
        if type(result) is int:
            sh.last_arg = argv[-1] if type(argv[-1]) is str else last_argument(argv[-1])
            sh.pipe_statuses = None
            if result < 256:
                sh.status = result
                if result and sh.posix and ends_shell(sh, name, result):
                    return sh.shell.leave(sh, result)
            return result
        return _settle(sh, argv, result)  # type: ignore[arg-type]

    return run


async def _called(sh: ShellState, argv: list[str], pending: Awaitable[int]) -> int:
    result = await pending
    sh.last_arg = argv[-1]
    return result


async def _settle(sh: ShellState, argv: list[str], pending: Awaitable[int]) -> int:
    result = await pending
    sh.last_arg = last_argument(argv[-1])
    sh.pipe_statuses = None
    if result < 256:
        sh.status = result
        if result and sh.posix and ends_shell(sh, argv[0], result):
            return sh.shell.leave(sh, result)
    return result
