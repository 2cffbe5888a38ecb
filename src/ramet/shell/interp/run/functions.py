"""Call functions: frame, scope, and recursion as deep as the limit allows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from ramet.core.errors import LimitExceeded
from ramet.core.limits import Cancelled, TimeUp
from ramet.shell.expand.arith.numerals import is_number
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import ErrexitExempt, Overflow, ShellError, TooLong
from ramet.shell.interp.run.maybe_async import EXIT, RETURN, Result, Run, T, drive
from ramet.shell.interp.run.traps import Leave, active, deliver, exit_within, run_trap
from ramet.shell.interp.state.frames import Frame, FunctionDef
from ramet.shell.interp.state.function_table import traced
from ramet.shell.interp.state.scopes import Scope
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.variable_bytes import SHORT, charge_of

HOP: Final = 40
"""Levels on one C stack; the next one gets a task, and with it a new stack."""


async def hop(sh: ShellState, work: Callable[[], Coroutine[Any, Any, T]], forked: bool = False) -> T:
    """Go on in a new task, so that the C stack stays shallow however deep a script nests.

    In a `forked` shell, a cancelled call need not wait for the end.
    """
    stack = sh.stack
    sh.stack = 0
    task: asyncio.Task[T] | None = None
    try:
        await sh.budget.yield_turn()
        group, current = sh.task_group, asyncio.current_task()
        if forked:
            return await group.run_in_task(work)
        if current in group.tasks:
            task = asyncio.create_task(group.member(work))
            return await task
        task = asyncio.create_task(work())
        return await (group.wait_for(task) if group.main in (None, current) else task)
    except GeneratorExit:
        if task is not None:
            task.cancel()  # the caller may not wait and gives up
        raise
    except (ShellError, asyncio.CancelledError) as error:
        # A traceback through thousands of levels costs more than the script.
        raise error.with_traceback(None) from None
    finally:
        sh.stack = stack


_WEIGHT: Final = 5
"""Calls of functions that the levels between two stations count for."""


def stationed(run: Run) -> Run:
    """Return a deeply nested command such that it goes on in a new task where the stack is deep."""

    def enter(sh: ShellState) -> Result:
        if sh.stack >= HOP:
            return drive(hop(sh, lambda: _await_run(sh, run)))
        sh.stack += _WEIGHT
        try:
            result = run(sh)
        except BaseException:
            sh.stack -= _WEIGHT
            raise
        if type(result) is not int:
            return _unstacked(sh, result)  # type: ignore[arg-type]
        sh.stack -= _WEIGHT
        return result

    return enter


async def _unstacked(sh: ShellState, pending: Awaitable[int]) -> int:
    try:
        return await pending
    finally:
        sh.stack -= _WEIGHT


async def _await_run(sh: ShellState, run: Run) -> int:
    result: Any = run(sh)
    return int(result if type(result) is int else await result)


def call_function(sh: ShellState, function: FunctionDef, argv: list[str], scoped: bool = False) -> Result:
    """Run a function; `scoped` when the caller already opened its scope for assignments before the command.

    Within a loop it counts twice: what is bounded is how long it takes to end it all.
    """
    sh.depth += 2 if sh.loops else 1
    stack = sh.stack = sh.stack + 1
    if stack >= HOP:
        return _deep(sh, function, argv, scoped)
    if "FUNCNEST" in sh.vars:
        _bounded(sh, argv)
    if not stack & 7:
        try:
            _charge_calls(sh)
        except LimitExceeded:
            sh.depth -= 2 if sh.loops else 1
            sh.stack -= 1
            raise
        if sh.budget.check():
            return _pause(sh, function, argv, scoped)
    return _call(sh, function, argv, scoped)


def _charge_calls(sh: ShellState) -> None:
    """Count the arguments and the hidden variables of the last eight calls."""
    size = sum(charge_of(frame.params) for frame in sh.frames[-8:])
    for scope in sh.variables.scopes[-8:]:
        size += SHORT * len(scope) + sum(len(value) for value, _ in scope.values() if type(value) is str)
    sh.variables.charge(size)


async def _pause(sh: ShellState, function: FunctionDef, argv: list[str], scoped: bool) -> int:
    try:
        await sh.budget.yield_turn()
    except BaseException:
        sh.depth -= 2 if sh.loops else 1
        sh.stack -= 1
        raise
    result = _call(sh, function, argv, scoped)
    return result if type(result) is int else await result  # type: ignore[misc]


def _bounded(sh: ShellState, argv: list[str]) -> None:
    """Refuses a call that nests deeper than FUNCNEST, or our own limit, allows."""
    limit = sh.budget.limits.recursion
    refusal: ShellError | None = None
    nest = sh.variables.get("FUNCNEST")
    most = int(nest) if nest is not None and is_number(nest) else 0
    if 0 < most < min(limit, sh.depth) and sum(frame.function for frame in sh.frames) >= most:
        refusal = ErrexitExempt(f"{argv[0]}: maximum function nesting level exceeded ({most})")
    if refusal is None and sh.depth > limit:
        sh.budget.spend("recursion")
        refusal = Overflow(f"{argv[0]}: maximum function nesting level exceeded ({limit})")
    if refusal is not None:
        sh.depth -= 2 if sh.loops else 1
        sh.stack -= 1
        raise refusal


async def _deep(sh: ShellState, function: FunctionDef, argv: list[str], scoped: bool) -> int:
    _bounded(sh, argv)

    async def below() -> int:
        sh.stack += 1
        result = _call(sh, function, argv, scoped)
        return result if type(result) is int else await result  # type: ignore[misc]

    try:
        return await hop(sh, below)
    finally:
        sh.stack -= 1


def _call(sh: ShellState, function: FunctionDef, argv: list[str], scoped: bool) -> Result:
    frame = Frame(argv[0], function.source, sh.line if sh.line_shift is None else sh.line_now(), sh.params, sh.loops)
    sh.frames.append(frame)
    sh.params = argv[1:]
    sh.loops = 0
    if not scoped:
        sh.variables.scopes.append(Scope())
    else:
        scope = sh.variables.scope_at(len(sh.variables.scopes) - 1)
        scope.temporary = False
        scope.temps = set(scope)
    if sh.instrumented:
        if "extdebug" in sh.shopts:
            frame.arguments = sh.params
        if "DEBUG" in sh.traps:
            return drive(_call_with_debug(sh, function, frame))
    try:
        result = function.body(sh)
    except BaseException as error:
        _say_where(sh, frame, error)
        _leave(sh, frame)
        raise
    if type(result) is not int:
        return _finish(sh, frame, result)  # type: ignore[arg-type]
    if "RETURN" in sh.traps or sh.pending or (result == EXIT and "EXIT" in sh.traps):
        return drive(_returned(sh, frame, result))
    if result == RETURN:
        sh.status = result = sh.flow_status
    # What _leave does, written out: this is the hot path.
    sh.frames.pop()
    scope = sh.variables.scopes.pop()
    if scope:
        restore = sh.variables._restore
        for name, saved in scope.items():
            restore(name, saved)
    sh.params, sh.loops = frame.params, frame.loops
    sh.depth -= 2 if frame.loops else 1
    sh.stack -= 1
    if frame.special:
        _afterwards(sh, frame)
    return result


def _say_where(sh: ShellState, frame: Frame, error: BaseException) -> None:
    """An error names the file that the function is from, which is known only as long as it runs."""
    if frame.source != "main" and isinstance(error, (ShellError, ArithFailure)) and not isinstance(error, TooLong):
        sh.complain_once(error)


def _leave(sh: ShellState, frame: Frame) -> None:
    sh.frames.pop()
    sh.variables.pop()
    sh.params, sh.loops = frame.params, frame.loops
    sh.depth -= 2 if frame.loops else 1
    sh.stack -= 1
    if frame.special:
        _afterwards(sh, frame)


def _afterwards(sh: ShellState, frame: Frame) -> None:
    """What some calls leave to be done: options to restore (`local -`), an ERR trap that came too late for the call."""
    if frame.options is not None:
        wanted = frame.options[0]
        for name in sh.options ^ wanted:
            sh.set_option(name, name in wanted)
    depth = sum(frame.function for frame in sh.frames)
    for name, set_at in sh.trap_depth.items():
        if set_at > depth:
            sh.trap_depth[name] = depth
            if sh.frames:
                sh.frames[-1].special = True
    if frame.trapped:
        sh.err_trap_just_set = not sh.errexit_ignored and sh.status != 0 and "ERR" in sh.traps
        if sh.frames:
            sh.frames[-1].trapped = sh.frames[-1].special = True


async def _unburden(sh: ShellState) -> None:
    """Gives back most of what a call took over, where that is very much: others run in between."""
    store = sh.variables
    scope = store.scope_at(len(store.scopes) - 1)
    while len(scope) > _MANY:
        for _ in range(_MANY):
            store._restore(*scope.popitem())
        await sh.budget.yield_turn_unchecked()


_MANY: Final = 512
"""Variables of a call that are given back at once."""


async def _finish(sh: ShellState, frame: Frame, pending: Awaitable[int]) -> int:
    try:
        try:
            result = await pending
        except _ABANDONED:
            raise
        except Leave as leave:
            if leave.result != RETURN:
                raise
            result = RETURN  # in the trap of a signal it counts as one in the body
        result = await _end_call(sh, result)
    except _ABANDONED:
        raise  # `leave_all` does the rest
    except BaseException as error:
        _say_where(sh, frame, error)
        _leave(sh, frame)
        raise
    _leave(sh, frame)
    return result


_ABANDONED: Final = (asyncio.CancelledError, TimeUp, Cancelled)
"""What ends all calls of a shell, not one of them."""


def leave_all(sh: ShellState) -> None:
    """Leave the functions that a shell was in when it was abandoned: all at once, there may be thousands."""
    frames = sh.frames
    if frames:
        sh.params = frames[0].params
    special = any(frame.special for frame in frames)
    while special and frames:
        frame = frames.pop()
        if frame.special:
            _afterwards(sh, frame)
    frames.clear()
    sh.variables.pop_all()


async def _end_call(sh: ShellState, result: int) -> int:
    """What follows the end of a body: signals and traps. RETURN still sees the status from before `return`."""
    if sh.pending:
        result = await _signalled(sh, result)
    status = sh.flow_status
    if result == EXIT:
        if not (sh.errexit_ended and sh.redirected_calls):
            await exit_within(sh)
    elif "RETURN" in sh.traps:
        held = active(sh, "RETURN", sh.functrace)
        await sh.shell.return_trap(sh)
        depth = sum(frame.function for frame in sh.frames)
        if held and not sh.functrace and sh.trap_depth.get("RETURN", 0) == depth:
            sh.trap_depth["RETURN"] = depth - 1  # set inside this function, it holds around it from now on
    if result == RETURN:
        sh.status = result = status
    if len(sh.variables.scopes[-1]) > _MANY:
        await _unburden(sh)
    return result


async def _body_status(sh: ShellState, pending: Awaitable[int]) -> int:
    """What a body ends with; `return` in the trap of a signal counts as one in the body."""
    try:
        return await pending
    except Leave as leave:
        if leave.result != RETURN:
            raise
        return RETURN


async def _signalled(sh: ShellState, result: int) -> int:
    """Signals that came with the last command of a function find it still running."""
    status = sh.flow_status
    flow = await deliver(sh)
    sh.flow_status = sh.flow_status if flow else status
    return flow or result


async def _returned(sh: ShellState, frame: Frame, result: int) -> int:
    try:
        return await _end_call(sh, result)
    finally:
        _leave(sh, frame)


async def _call_with_debug(sh: ShellState, function: FunctionDef, frame: Frame) -> int:
    """A call while a DEBUG trap is set: the trap sees the function itself only where it is inherited."""
    try:
        if not sh.in_debug_trap and (sh.functrace or (traced(sh, frame.name) and active(sh, "DEBUG", False))):
            sh.in_debug_trap = True
            sh.line = getattr(function.node.body, "line", 0) or sh.line
            try:
                await run_trap(sh, "DEBUG")
            finally:
                sh.in_debug_trap = False
        result = function.body(sh)
        if type(result) is not int:
            result = await _body_status(sh, result)  # type: ignore[arg-type]
        return await _end_call(sh, result)
    finally:
        _leave(sh, frame)
