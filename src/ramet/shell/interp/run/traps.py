"""Traps, signals, traces, the command hook and `set -e` around commands."""

from __future__ import annotations

from typing import Any, Final

from ramet.shell.expand.arith.evaluate import Unbound
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Fatal, LineError, Overflow, TooLong
from ramet.shell.interp.process import signals
from ramet.shell.interp.run.maybe_async import EXIT, RETURN, Result, drive
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.function_table import traced
from ramet.shell.interp.state.shell_state import ShellState


def active(sh: ShellState, name: str, inherited: bool) -> bool:
    """Return whether a trap holds here: functions see DEBUG, ERR and RETURN only when they inherit them."""
    if name not in sh.traps:
        return False
    if inherited:
        return True
    calls = [frame.name for frame in sh.frames if frame.function]
    inside = calls[sh.trap_depth.get(name, 0) :]
    return not inside or (name != "ERR" and all(traced(sh, call) for call in inside))


def hidden(sh: ShellState, name: str) -> bool:
    """Whether a trap is one of the callers of a function that does not inherit it: to the function there is none."""
    return name in _INHERITABLE and name in sh.traps and not active(sh, name, _inherited(sh, name))


def _inherited(sh: ShellState, name: str) -> bool:
    return sh.errtrace if name == "ERR" else sh.functrace


_INHERITABLE: Final = ("DEBUG", "ERR", "RETURN")
_NESTED: Final = 10
"""How many calls of functions take as long to end as a trap within which a signal arrives."""


async def run_trap(sh: ShellState, name: str) -> int:
    """Run the action of a trap; `$?` outlives it. What it returns matters only when it is control flow."""
    action = sh.traps.get(name, "")
    if not action:
        return 0
    status, pipes, line, last = sh.status, sh.pipe_statuses, sh.line, sh.last_arg
    outer, ran = sh.line_shift, sh.last_command
    if name != "DEBUG" and not sh.in_trap:
        sh.trap_command = ran
    if sh.depth > (deepest := sh.budget.limits.recursion):
        sh.budget.spend("recursion")
        raise Overflow(f"trap: maximum trap nesting level exceeded ({deepest})")
    # The traps of signals count their own lines, these go on from the command that they are about.
    sh.line_shift = (sh.line_now() - 1, len(sh.frames)) if name in ("DEBUG", "RETURN") else None
    sh.in_trap += 1
    sh.depth += _NESTED
    sh.text_depth += 1
    sh.trace_level += 1
    try:
        where = "debug trap: " if name == "DEBUG" else "return trap: " if name == "RETURN" else "trap: "
        result = await sh.shell.below(sh, lambda: sh.shell.run_text(sh, action, keep_line=True, where=where))
    except Overflow as error:
        if name != "DEBUG":
            raise
        result = sh.error(error.message)  # or no command would ever run again, not even one that removes the trap
    finally:
        sh.in_trap -= 1
        sh.depth -= _NESTED
        sh.text_depth -= 1
        sh.trace_level -= 1
        sh.line_shift, sh.last_command = outer, ran
    if result > 255:
        if result < RETURN:
            sh.flow_status = sh.status = status  # leaving a loop, a handler changes no status
        return result
    if name == "DEBUG":
        sh.debug_status = result
    sh.status, sh.pipe_statuses, sh.line, sh.last_arg = status, pipes, line, last
    return 0


async def before_command(sh: ShellState, node: Any) -> int | None:
    """What comes before a command and its words: signals, the DEBUG trap. Not None: the command is not to run, and
    ends with this."""
    if sh.noexec:
        sh.status = 0
        return 0
    if sh.pending:
        result = await deliver(sh)
        if result:
            return result
    announced, sh.debug_trap_command = sh.debug_trap_command, None
    if announced is node:
        sh.trap_command = node
    elif "DEBUG" in sh.traps and not sh.in_debug_trap and active(sh, "DEBUG", sh.functrace):
        sh.in_debug_trap = True
        if not sh.in_trap:
            sh.trap_command = node
        try:
            result = await run_trap(sh, "DEBUG")
        finally:
            sh.in_debug_trap = False
        if result:
            return result
        if sh.debug_status and "extdebug" in sh.shopts:
            return _skipped(sh)
    return None


async def announce(sh: ShellState, argv: list[str]) -> bool:
    """What looks at the words of a command before it runs: traces and the hook; False when it must not run."""
    if sh.xtrace:
        from ramet.shell.interp.run.xtrace import trace_command

        trace_command(sh, argv)
    if sh.shell.hook is None:
        return True
    from ramet.shell.interp.builtins import BUILTINS

    # Programs are asked about where they are started, which more ways lead to than this one.
    return (argv[0] not in BUILTINS and argv[0] not in sh.functions) or await permitted(sh, argv)


def _skipped(sh: ShellState) -> int:
    """Under `extdebug` a DEBUG trap that fails keeps the command from running; with 2 it also ends the function."""
    if sh.debug_status == 2 and sh.frames:
        sh.flow_status = sh.status = 2
        return RETURN
    sh.status = 0
    return 0


async def permitted(sh: ShellState, argv: list[str]) -> bool:
    """Ask the hook; False (status 126, said on stderr) when it refuses."""
    hook = sh.shell.hook
    if hook is None:
        return True
    refusal = hook(sh, argv)
    if refusal is not None and not isinstance(refusal, str):
        refusal = await refusal
    if refusal is None:
        return True
    sh.complain(f"{argv[0]}: Permission denied{': ' + refusal if refusal else ''}")
    sh.status = 126
    return False


class Leave(Exception):
    """Control flow that starts where only an exception can carry it; `result` is EXIT or RETURN."""

    def __init__(self, result: int) -> None:
        super().__init__(result)
        self.result = result


async def deliver(sh: ShellState) -> int:
    """Run the traps of the signals that have arrived; control flow or 0."""
    while sh.pending:
        number = sh.pending.pop(0)
        name = signals.NAMES[number]
        if name not in sh.traps and number not in signals.IGNORED_BY_DEFAULT:
            raise Killed(number)
        if name in sh.traps:
            outer, sh.in_chld_trap = sh.in_chld_trap, sh.in_chld_trap or number == signals.CHLD
            try:
                result = await run_trap(sh, name)
            finally:
                sh.in_chld_trap = outer
            if result:
                return result
    sh.update_instrumented()
    return 0


def child_died(sh: ShellState, count: int = 1) -> None:
    """Note that `count` processes of a shell have ended. Those of the CHLD trap itself count only once another one has
    ended: else the trap would never stop."""
    if not sh.traps.get("CHLD"):
        return
    if sh.in_chld_trap:
        sh.deferred_chld += count
    else:
        sh.pending += [signals.CHLD] * (count + sh.deferred_chld)
        sh.deferred_chld = 0
        sh.instrumented = True


def interrupted(sh: ShellState) -> int:
    """Return the signal that interrupts a wait, 0 for none: SIGCHLD does not."""
    return next((number for number in sh.pending if number != signals.CHLD), 0)


def ignore_interrupts(sh: ShellState) -> None:
    """What was started by `&` without job control is not interrupted from a keyboard; of INT its traps tell."""
    sh.traps["INT"] = ""
    sh.background_ignored = frozenset(("INT", "QUIT"))


def send(sh: ShellState, number: int) -> None:
    """A signal arrives at a shell: its trap is queued, or the default action is taken."""
    name = signals.NAMES[number] if number < len(signals.NAMES) else ""
    if name in sh.traps:
        if sh.traps[name]:
            sh.pending.append(number)
            sh.instrumented = True
        return
    if number in signals.IGNORED_BY_DEFAULT or number == 0 or name in sh.background_ignored:
        return
    if name == "QUIT" and not sh.sub_level:
        return  # a shell never minds it, its subshells do
    raise Killed(number)


def failed(sh: ShellState, status: int) -> Result:
    """A command that counts has failed: the ERR trap, then `set -e`."""
    if sh.err_trap_just_set:
        sh.err_trap_just_set = False  # it was set by the command that failed
    elif "ERR" in sh.traps and not sh.in_err_trap and active(sh, "ERR", sh.errtrace):
        return drive(_err(sh, status))
    return _over(sh, status) if sh.errexit else status


def _over(sh: ShellState, status: int) -> int:
    """`set -e` ends the shell."""
    sh.flow_status = status
    sh.errexit_ended, sh.loops_left = True, sh.loops
    if "EXIT" in sh.traps:
        sh.variables.forget_locals()
    return EXIT


async def _err(sh: ShellState, status: int) -> int:
    # A failure inside the handler does not call the handler again, nor one that it has put in its place.
    action = sh.traps.pop("ERR")
    sh.status, pipes = status, sh.pipe_statuses
    sh.in_err_trap = True
    try:
        result: Any = await _run_action(sh, action)
    finally:
        sh.in_err_trap = False
        sh.traps.setdefault("ERR", action)
    if result > 255:
        if result < RETURN:
            sh.flow_status = sh.status = status
        return int(result)
    if sh.errexit:
        return _over(sh, status)
    sh.status, sh.pipe_statuses = status, pipes
    return status


async def _run_action(sh: ShellState, action: str) -> int:
    if not action:
        return 0
    line, outer, ran = sh.line, sh.line_shift, sh.last_command
    sh.line_shift = (sh.line_now(getattr(sh.trap_command, "line", 0) or line) - 1, len(sh.frames))
    if not sh.in_trap:
        sh.trap_command = ran
    sh.in_trap += 1
    sh.text_depth += 1
    sh.trace_level += 1
    try:
        return await sh.shell.run_text(sh, action, keep_line=True, where="error trap: ")
    finally:
        sh.in_trap -= 1
        sh.text_depth -= 1
        sh.trace_level -= 1
        sh.line, sh.line_shift, sh.last_command = line, outer, ran


async def exit_trap(sh: ShellState) -> None:
    """The EXIT trap, once; it may change the status by calling `exit`."""
    action = sh.traps.pop("EXIT", "")
    if not action:
        return
    status = sh.exit_trap_status = sh.status
    sh.listed_traps["EXIT"] = action  # it still shows while it runs
    sh.trap_command = sh.last_command
    sh.in_trap += 1
    sh.line_shift = None
    sh.loops = sh.loops_left or sh.loops
    try:
        result = await sh.shell.run_text(sh, action, keep_line=True, where="exit trap: ")
    except Leave as leave:
        result = leave.result
    except (Fatal, Unbound, LineError, ArithFailure) as error:
        if isinstance(error, Overflow | TooLong):
            raise  # what hit a limit of ours is not forgotten
        sh.complain_once(error)  # it ends the trap: the shell ends as it was going to
        result = status
    finally:
        sh.in_trap -= 1
        sh.exit_trap_status = None
    sh.status = sh.flow_status if result in (EXIT, RETURN) else status


async def exit_redirected(sh: ShellState) -> None:
    """`exit` leaves redirections as they are, unless it leaves them with a text that is evaluated: then what the text
    has made is undone before the trap runs."""
    if "EXIT" in sh.traps and (not sh.text_depth or any(frame.function for frame in sh.frames)):
        await exit_within(sh)


async def exit_within(sh: ShellState) -> None:
    """The same where `exit` leaves a function: the trap finds itself within the call still."""
    sh.status = sh.flow_status
    await exit_trap(sh)
    sh.flow_status = sh.status
