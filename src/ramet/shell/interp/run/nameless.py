"""Compile simple commands without a name: assignments and redirections."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from ramet.concurrency.sizes import BATCH
from ramet.shell.expand.word.pieces import Text
from ramet.shell.interp.run.assign import Assign, put, set_item, word_of
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.run.redirect import RedirectPlan, Undo, apply, restore
from ramet.shell.interp.run.subshell import run_shell
from ramet.shell.interp.run.traps import before_command
from ramet.shell.interp.run.xtrace import trace, trace_value
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import Simple
from ramet.shell.syntax.printer import word_text


def assignments(node: Simple, assigns: list[Assign]) -> Run:
    line = node.line
    runs = [assign.run for assign in assigns]
    if len(runs) <= BATCH and not any(assign.wait for assign in assigns):
        first = runs[0] if len(runs) == 1 else None

        async def rest(sh: ShellState, place: int, pending: Awaitable[None]) -> int:
            await pending
            await perform(sh, assigns[place:])
            sh.pipe_statuses, sh.last_arg, sh.status = None, "", 0
            return 0

        def run(sh: ShellState) -> Result:
            sh.line, sh.last_command = line, node
            if sh.instrumented:
                return drive(_watched_assignments(sh, node, assigns))
            if first is not None:
                pending = first(sh)
                if pending is not None:
                    return rest(sh, 1, pending)
            else:
                place = 0
                for one in runs:
                    pending = one(sh)
                    place += 1  # noqa: SIM113 - enumerate costs a tuple per assignment
                    if pending is not None:
                        return rest(sh, place, pending)
            sh.pipe_statuses = None
            sh.last_arg = ""
            sh.status = 0
            return 0

        return run

    async def waiting(sh: ShellState) -> int:
        sh.line, sh.last_command = line, node
        if sh.instrumented:
            return await _watched_assignments(sh, node, assigns)
        sh.substitution_status = None
        if len(runs) == 1:
            await runs[0](sh)
        else:
            await perform(sh, assigns)
        sh.pipe_statuses = None
        sh.last_arg = ""
        status = sh.substitution_status or 0
        sh.status = status
        return status

    return lambda sh: drive(waiting(sh))


async def perform(sh: ShellState, assigns: list[Assign]) -> None:
    """Make assignments in their order, with a trace under `set -x`."""
    for place, assign in enumerate(assigns, 1):
        pending = traced_assignment(sh, assign) if sh.xtrace else assign.run(sh)
        if pending is not None:
            await pending
        if not place % BATCH:
            await sh.budget.yield_turn()


async def _watched_assignments(sh: ShellState, node: Simple, assigns: list[Assign]) -> int:
    if (ends := await before_command(sh, node)) is not None:
        return ends
    sh.substitution_status = None
    await perform(sh, assigns)
    sh.pipe_statuses = None
    sh.last_arg = ""
    sh.status = sh.substitution_status or 0
    return sh.status


async def traced_assignment(sh: ShellState, assign: Assign) -> None:
    """Trace an assignment with its value expanded, then make it."""
    if assign.literal is not None:
        trace(sh, [assign.trace_head + assign.literal], raw=True)
        pending = assign.run(sh)
        if pending is not None:
            await pending
        return
    if assign.element is not None:
        await _traced_element(sh, assign, *assign.element)
        return
    word = await word_of(assign, sh)
    trace_value(sh, f"{word.name}{'+' if word.append else ''}=" if word.key is None else assign.trace_head, word.value)
    put(sh, word.name, word.value, word.append)


async def _traced_element(sh: ShellState, assign: Assign, key: Text, text: Text) -> None:
    """Trace and make the assignment to an element, whose value is expanded before its subscript."""
    value = await text.run(sh) if text.wait else text.run(sh)
    trace_value(sh, assign.trace_head, value)
    index = await key.run(sh) if key.wait else key.run(sh)
    node = assign.node
    set_item(sh, node.name, index, value, node.append, word_text(node.subscript) if node.subscript else "")


def bare_redirected(node: Simple, assigns: list[Assign], redirects: list[RedirectPlan]) -> Run:
    """Compile redirections without a command: made and undone, some of them in a forked shell."""
    forked = any(plan.var is not None or (plan.fd == 0 and plan.op in _OF_INPUT) for plan in redirects)
    # A stage of a pipeline is a process already, which does not wait for the second one.
    ignored = any(plan.var is not None or (plan.fd == 0 and plan.op in ("<", "<>")) for plan in redirects)

    async def made(sh: ShellState) -> int:
        undo: Undo = []
        try:
            good = await apply(sh, redirects, undo)
        finally:
            await restore(sh, undo)
        return 0 if good else 1

    async def run(sh: ShellState) -> int:
        sh.line, sh.last_command = node.line, node
        if sh.instrumented and (ends := await before_command(sh, node)) is not None:
            return ends
        sh.substitution_status = None
        await perform(sh, assigns)
        if forked:
            status = await run_shell(sh.fork(borrow=True), lambda child: drive(made(child)))
            sh.status = 0 if ignored and sh.stage_command is node else status
        else:
            sh.status = await made(sh) or sh.substitution_status or 0
        sh.pipe_statuses = None
        sh.last_arg = ""
        return sh.status

    return lambda sh: drive(run(sh))


_OF_INPUT: Final = frozenset(("<", "<>", "<&", ">&"))
