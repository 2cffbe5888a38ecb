"""Run pipelines: concurrent stages with bounded pipes; `!`, `time`, `pipefail`, `lastpipe`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from ramet.core.streams import pipe
from ramet.shell.interp.builtins import BUILTINS
from ramet.shell.interp.fast.pipeline_stage import runs_inline
from ramet.shell.interp.process import signals
from ramet.shell.interp.process.descriptors import Description
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.run.subshell import run_shell
from ramet.shell.interp.run.traps import before_command, child_died, deliver, failed
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import ArithCommand, Command, Cond, Pipeline, Simple, Subshell, Word
from ramet.shell.syntax.printer import command_text, word_text


def compile_pipeline(node: Pipeline, stages: list[Run]) -> Run:
    body: Run
    if len(stages) > 1:
        names = [_name(stage) for stage in node.stages]
        inline = [runs_inline(stage) for stage in node.stages]
        merge = node.merge or (False,) * len(stages)

        def several(sh: ShellState) -> Result:
            return drive(_run(sh, stages, merge, inline, names, node))

        body = several
        if isinstance(node.stages[-1], Subshell) and not node.negated:
            body = _twice_blamed(body)

    elif stages:
        body = stages[0]
    else:

        def nothing(sh: ShellState) -> Result:
            sh.status = 0
            return 0

        body = nothing

    if node.timed:
        body = _timed(body, node.timed)
    return _negated(body, bool(stages) and isinstance(node.stages[0], Cond | ArithCommand)) if node.negated else body


def _twice_blamed(body: Run) -> Run:
    """`a | (b)`: bash runs the ERR trap for the subshell at the end, and again for the pipeline."""

    async def run(sh: ShellState) -> int:
        result: Any = body(sh)
        if type(result) is not int:
            result = await result
        if result and result < 256 and not sh.errexit_ignored and "ERR" in sh.traps:
            result = failed(sh, result)
            if type(result) is not int:
                result = await result
        return int(result)

    return lambda sh: drive(run(sh))


def _name(stage: Any) -> str | None:
    """The command that a stage consists of, "" for a subshell, None for anything else."""
    if isinstance(stage, Subshell):
        return ""
    if not isinstance(stage, Simple) or not stage.words or not isinstance(first := stage.words[0], Word):
        return None
    return word_text(first)


def _negated(body: Run, silent: bool) -> Run:
    """`! body`; a `silent` one leaves no PIPESTATUS."""

    async def waiting(sh: ShellState, pending: Awaitable[int], ignored: bool) -> int:
        result = await pending
        sh.errexit_ignored -= ignored
        return finish(sh, result)

    def finish(sh: ShellState, result: int) -> int:
        if result > 255:
            return result
        if sh.pipe_statuses is None and not silent:
            sh.pipe_statuses = [result]  # as it ended, not as it counts
        sh.status = 0 if result else 1
        return sh.status

    def run(sh: ShellState) -> Result:
        # bash decides by what holds now: `set -e` that comes inside a negated function still counts there. An ERR
        # trap hears of what fails inside the command in any case.
        ignored = sh.errexit
        sh.errexit_ignored += ignored
        result = body(sh)
        if type(result) is not int:
            return waiting(sh, result, ignored)  # type: ignore[arg-type]
        sh.errexit_ignored -= ignored
        return finish(sh, result)

    return run


async def _run(
    sh: ShellState,
    stages: list[Run],
    merge: tuple[bool, ...],
    inline: list[bool],
    stage_names: list[str | None],
    node: Pipeline,
) -> int:
    """Run the stages; the last one in this task, so that a short pipeline needs few others."""
    if sh.pending and (ends := await deliver(sh)):
        return ends
    count = len(stages)
    shell = sh.shell
    if shell.too_many_shells(sh.budget.limits.processes, count):
        raise sh.budget.exceeded("processes", "fork")
    if sh.budget.check():
        await sh.budget.yield_turn()
    shell.forks += count
    sh.last_command = next(
        (one for one in reversed(node.stages) if isinstance(one, Simple | Subshell)), sh.last_command
    )
    try:
        if sh.instrumented and "DEBUG" in sh.traps:
            # The stages are shells of their own, which do not inherit the trap: it runs here, before them.
            for stage in node.stages:
                if isinstance(stage, Simple):
                    sh.line = stage.line or sh.line
                    result = await before_command(sh, stage)
                    if result is not None and result > 255:
                        return result
        return await _stages(sh, stages, merge, inline, stage_names, node)
    finally:
        shell.forks -= count


async def _stages(
    sh: ShellState,
    stages: list[Run],
    merge: tuple[bool, ...],
    inline: list[bool],
    stage_names: list[str | None],
    node: Pipeline,
) -> int:
    count = len(stages)
    sh.line = node.line or sh.line
    children: list[ShellState] = []
    lastpipe = "lastpipe" in sh.shopts and "monitor" not in sh.options and not isinstance(node.stages[-1], Subshell)
    tasks: list[asyncio.Task[int] | int] = []
    source: Description | None = None
    last: ShellState | None = None
    kept_stdin: Description | None = None
    try:
        for number, stage in enumerate(stages):
            ending = number == count - 1
            if number and not number % _BATCH:
                await sh.budget.yield_turn()
            if ending and lastpipe:
                kept_stdin = sh.fds.get(0)
                assert source is not None
                sh.fds[0] = source
                final = node.stages[-1]
                if isinstance(final, Simple):
                    sh.debug_trap_command = final
                try:
                    result: Any = stage(sh)
                    if type(result) is not int:
                        result = await result
                    if result and result < 256 and isinstance(final, Simple | ArithCommand | Cond):
                        # A command of this shell fails for itself, and the pipeline once more.
                        result = await _count_failure(sh, final, int(result))
                finally:
                    source.release()
                    if kept_stdin is None:
                        sh.fds.pop(0, None)
                    else:
                        sh.fds[0] = kept_stdin
                if result > 255:
                    await _gather(tasks)
                    return int(result)
                tasks.append(int(result))
                break
            child = sh.fork()
            child.loops, child.single_command = 0, is_program(sh, stage_names[number])
            if isinstance(node.stages[number], Simple):
                child.debug_trap_command = child.stage_command = node.stages[number]
            children.append(child)
            if stage_names[number] == "jobs":
                child.jobs.inherited = sh.jobs.visible()
            if source is not None:
                _replace(child, 0, source)
                source = None
            if not ending:
                reader, writer = pipe()
                _replace(child, 1, Description(writer))
                if merge[number]:
                    _replace(child, 2, child.fds[1].share())
                source = Description(reader)
            if ending:
                last = child
                if len(tasks) > sum(isinstance(task, int) for task in tasks):
                    # The stages before get their first turn, as processes that are already running would.
                    await asyncio.sleep(0)
                status = await run_shell(child, stage, counted=True)
                tasks.append(status)
            elif inline[number]:
                started = drive(run_shell(child, stage, counted=True))
                tasks.append(
                    started if isinstance(started, int) else asyncio.create_task(_finish_stage(child, started))
                )
            else:
                task = asyncio.create_task(_run_stage(sh.shell.start_queue.turn(), child, stage))
                sh.task_group.tasks[task] = True
                tasks.append(task)
        statuses = await _gather(tasks)
    except BaseException:
        if source is not None and last is None:
            source.release()
        await sh.task_group.end(task for task in tasks if not isinstance(task, int))
        for number, child in enumerate(children):
            begun = tasks[number] if number < len(tasks) else 0
            if isinstance(begun, asyncio.Task) and not begun.done():
                begun.add_done_callback(partial(_release_unstarted, child))
            else:
                sh.shell.release_unstarted(child)
        raise
    if sh.traps:
        child_died(sh, len(children))
    sh.pipe_statuses = statuses
    status = statuses[-1]
    if sh.pipefail:
        status = next((one for one in reversed(statuses) if one), 0)
    sh.status = status
    if status > 128 and (children[-1].death_signal or (sh.pipefail and any(child.death_signal for child in children))):
        _report_deaths(sh, node, children, statuses)
    return status


async def _count_failure(sh: ShellState, node: Command, status: int) -> int:
    """What follows a command that failed, where failures count."""
    if sh.errexit_ignored or not (sh.errexit or "ERR" in sh.traps):
        return status
    sh.status, sh.trap_command = status, node
    result = failed(sh, status)
    return result if isinstance(result, int) else await result


_BATCH: Final = 32
"""Stages that are started between two turns of the event loop."""


def _report_deaths(sh: ShellState, node: Pipeline, children: list[ShellState], statuses: list[int]) -> None:
    """What became of every stage of a pipeline that died of a signal."""
    number = sh.status - 128
    if number in signals.UNREPORTED or sh.in_substitution:
        return
    if number == 15:
        sh.err("Terminated\n")
        return
    lines: list[str] = []
    for child, status, stage in zip(children, statuses, node.stages, strict=False):
        state = (
            signals.DESCRIPTIONS.get(child.death_signal) or f"Signal {child.death_signal}"
            if child.death_signal
            else f"Exit {status}"
        )
        lines.append(
            f"{child.own_pid():5d} {state if status else 'Done':<24}{'| ' if lines else ''}{command_text(stage)}"
        )
    sh.complain("\n     ".join(lines))


def is_program(sh: ShellState, name: str | None) -> bool:
    """Whether a stage becomes one program or subshell, so that the signal which kills that kills the stage."""
    return name is not None and name not in sh.functions and name not in BUILTINS


async def _run_stage(turn: asyncio.Future[None] | None, child: ShellState, stage: Run) -> int:
    """A stage, once it is its turn to start; cancelled before that, it never begins."""
    try:
        if turn is not None:
            await turn
        return await child.task_group.steps(run_shell(child, stage, counted=True), whole=True)
    finally:
        child.shell.release_unstarted(child)  # the next stage waits for the end of the pipe


async def _finish_stage(child: ShellState, pending: Awaitable[int]) -> int:
    return await child.task_group.steps(_await(pending), whole=True)


async def _await(pending: Awaitable[int]) -> int:
    return await pending


def _release_unstarted(child: ShellState, task: asyncio.Task[int]) -> None:
    """A stage that was left to end may never have begun."""
    child.shell.release_unstarted(child)


def _replace(child: ShellState, fd: int, description: Description) -> None:
    old = child.fds.get(fd)
    if old is not None:
        old.release()
    child.fds[fd] = description


async def _gather(tasks: list[asyncio.Task[int] | int]) -> list[int]:
    return [task if isinstance(task, int) else await task for task in tasks]


def _timed(body: Run, form: str) -> Run:
    async def run(sh: ShellState) -> int:
        started, processor = time.perf_counter(), time.process_time()
        result: Any = body(sh)
        if type(result) is not int:
            result = await result
        elapsed, used = time.perf_counter() - started, time.process_time() - processor
        sh.err(times_text(sh, form, elapsed, used))
        return int(result)

    return lambda sh: drive(run(sh))


def times_text(sh: ShellState, form: str, elapsed: float, used: float) -> str:
    """Return the report of `time`."""
    if form == "time -p":
        return f"real {elapsed:.2f}\nuser {used:.2f}\nsys 0.00\n"
    wanted = sh.variables.get("TIMEFORMAT")
    if wanted is None:
        return f"\nreal\t{_minutes(elapsed)}\nuser\t{_minutes(used)}\nsys\t{_minutes(0.0)}\n"
    return _formatted(sh, wanted, elapsed, used) if wanted else ""


def _formatted(sh: ShellState, wanted: str, elapsed: float, used: float) -> str:
    """Format the report by TIMEFORMAT."""
    out: list[str] = []
    values = {"R": elapsed, "U": used, "S": 0.0}
    i = 0
    while i < len(wanted):
        at = wanted.find("%", i, len(wanted) - 1)
        if at < 0:
            return "".join((*out, wanted[i:], "\n"))
        out.append(wanted[i:at])
        i = at + 1
        digits = 3
        if wanted[i].isdigit():
            digits = min(int(wanted[i]), 3)
            i += 1
        long = wanted[i : i + 1] == "l"
        i += long
        key = wanted[i : i + 1]
        i += 1
        if key in values:
            out.append(_minutes(values[key], digits) if long else f"{values[key]:.{digits}f}")
        elif key == "P":
            out.append(f"{100 * used / elapsed if elapsed else 0:.2f}")
        elif key == "%":
            out.append("%")
        else:
            sh.complain(f"TIMEFORMAT: `{key}': invalid format character")
            return ""
    return "".join((*out, "\n"))


def _minutes(seconds: float, digits: int = 3) -> str:
    minutes = int(seconds // 60)
    return f"{minutes}m{seconds - 60 * minutes:.{digits}f}s"
