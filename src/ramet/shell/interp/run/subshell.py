"""Run forked shells to their end; command and process substitution."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Container
from functools import partial
from itertools import chain, count
from typing import Any, Final

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.core.errors import LimitExceeded, out_of_range, reason, strerror
from ramet.core.limits import Cancelled, TimeUp
from ramet.core.paths import decode
from ramet.core.streams import Capture, pipe
from ramet.shell.expand.arith.evaluate import Unbound
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Fatal, PosixFatal, ShellError
from ramet.shell.expand.word.braces import TooManyWords
from ramet.shell.interp.fast import substitution as in_place
from ramet.shell.interp.process import signals
from ramet.shell.interp.process.descriptors import Description, release_all, release_some
from ramet.shell.interp.process.process import Process
from ramet.shell.interp.run.functions import HOP, hop
from ramet.shell.interp.run.maybe_async import EXIT, RETURN, Run, drive
from ramet.shell.interp.run.substitution_lines import relined
from ramet.shell.interp.run.traps import Leave, child_died, deliver, exit_trap, send
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.cache import parse
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.lazy_simple import first_word
from ramet.shell.syntax.nodes import CommandSub, Literal, ProcessSub, Script, Simple, Word, made_of
from ramet.shell.syntax.printer import lines_text
from ramet.text.pattern.tokens import PatternTooCostly

ERRORS = (ShellError, ArithFailure, Unbound, LimitExceeded, TooManyWords, PatternTooCostly, RecursionError)
"""What ends a shell, or its current line, with a message."""


def report(sh: ShellState, error: Exception) -> int:
    """Say what ended the command; the status."""
    if isinstance(error, RecursionError):
        sh.complain("maximum recursion depth reached")
        return 1
    sh.complain_once(error)
    if isinstance(error, Fatal | Unbound) or (sh.posix and isinstance(error, PosixFatal | ArithFailure)):
        # What ends a shell ends `bash -c` with 127, also the process that it makes for a simple command; any other
        # shell, and one with `set -e`, with 1.
        outer: ShellState | None = sh
        level = sh.sub_level
        while outer is not None and outer.stage_command is not None:
            level, outer = level - 1, outer.parent
        return 127 if sh.origin == "environment" and not (level or sh.interactive or sh.errexit) else 1
    return error.status if isinstance(error, ShellError) else 1


def defect(sh: ShellState, error: Exception) -> int:
    """What no script should be able to cause ends its shell with a message, not the workspace with a traceback."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return sh.error(f"{where}{reason(error)}")
    if out_of_range(error):
        return sh.error(strerror(errno.ERANGE))
    return sh.error(f"internal error: {type(error).__name__}: {error}", 70)


def settle(sh: ShellState, result: int) -> int:
    """The exit status of a shell whose body ended with this result."""
    if result < 256:
        return result
    return sh.flow_status if result in (EXIT, RETURN) else sh.status


async def run_shell(sh: ShellState, run: Run, counted: bool = False) -> int:
    """Run the body of a forked shell and close it; never raises for what a script does.

    It is one of the `processes` that may be alive; who starts several has `counted` them before.
    """
    if sh.stack < HOP:
        return await _run_shell(sh, run, not counted)
    try:
        return await hop(sh, lambda: _run_shell(sh, run, not counted), forked=True)
    finally:
        sh.shell.release_unstarted(sh)


async def _run_shell(sh: ShellState, run: Run, more: int) -> int:
    if sh.group is not None and not (sh.single_command or sh.program_environment or sh in sh.group.members):
        return await _in_group(sh, run, more)
    shell = sh.shell
    shell.forks += more
    over, sh.started = False, True
    try:
        try:
            if sh.budget.check():  # shells within shells: none of them may come to a loop that gives way
                await sh.budget.yield_turn()
            if more and shell.too_many_shells(sh.budget.limits.processes):
                raise sh.budget.exceeded("processes", "fork")
            result: Any = run(sh)
            if type(result) is not int:
                result = await result
            sh.status = settle(sh, result)
        except ERRORS as error:
            sh.status = report(sh, error)
        except Leave as leave:
            sh.status = settle(sh, leave.result)
        over = bool(sh.sub_level)
        if sh.pending:
            flow = await deliver(sh)  # a signal that came with the last command
            if flow:
                sh.status = settle(sh, flow)
        if sh.traps:
            await exit_trap(sh)
        if sh.death_signal and sh.process is not None and sh.process.session is sh:
            sh.process.killed = sh.death_signal  # the one command that it was died of a signal
        if sh.jobs.jobs:
            await sh.jobs.let_start()
        return sh.status
    except ERRORS as error:
        return report(sh, error)
    except Killed as killed:
        sh.death_signal = killed.signal
        if sh.process is not None and sh.process.session is sh:
            sh.process.killed = killed.signal
        if sh.traps and not over and killed.signal in signals.TERMINATING:
            await _last_words(sh)
        return 128 + killed.signal
    except (TimeUp, Cancelled):
        raise
    except Exception as error:
        return defect(sh, error)
    except BaseException as error:
        if sh.substitutions:
            await end_substitutions(sh, 0, cancelled=True)
        signal = sh.process.killed if sh.process is not None and sh.process.session is sh else 0
        if isinstance(error, asyncio.CancelledError) and "EXIT" in sh.traps and signal in signals.TERMINATING:
            await _last_words(sh)  # a signal ended it
        raise
    finally:
        shell.forks -= more
        try:
            if sh.substitutions:
                await end_substitutions(sh, 0)
            closing = release_some(sh.fds)
            if closing is not None:
                await release_all(sh.fds, closing)
        except OSError as error:
            sh.complain(f"write error: {reason(error)}")
        finally:
            if sh.fds:  # it was interrupted once more
                shell.close_soon(sh.fds)
            if not sh.jobs.jobs and not sh.jobs.loose:
                sh.break_cycles()


async def _in_group(sh: ShellState, run: Run, more: int) -> int:
    """A shell that the signals of its process group reach as well."""
    assert sh.group is not None
    members = sh.group.members
    members.append(sh)
    try:
        return await _run_shell(sh, run, more)
    finally:
        members.remove(sh)


async def _last_words(sh: ShellState) -> None:
    """A shell that a signal ends still runs its EXIT trap."""
    try:
        await exit_trap(sh)
    except (*ERRORS, Leave, Killed):
        return


_ALIAS: Final = Word((Literal("alias"),))
_WORDS: Final = re.compile(r"[^\s;&|()<>'\"`$\\]+").findall


def _with_aliases(sh: ShellState, body: Script) -> str | None:
    """The text of a substitution in which an alias may take part: bash reads it again when it runs."""
    made = made_of(body)
    changes: bool | None = made.get(_changes_reading)
    if changes is None:
        changes = made[_changes_reading] = _changes_reading(body)
    if changes:
        return lines_text(body)
    if not sh.aliases or "expand_aliases" not in sh.shopts:
        return None
    text = lines_text(body)
    return None if sh.aliases.keys().isdisjoint(_WORDS(text)) else text


def _changes_reading(body: Script) -> bool:
    """Is there a line in a substitution after one that says what aliases stand for?"""
    statements = body.statements
    if len(statements) < 2 or not any(one.newline for one in statements):
        return False
    return any(isinstance(one.node, Simple) and first_word(one.node) == _ALIAS for one in statements[:-1])


async def _read_again(sh: ShellState, body: Script, size: int) -> str | None:
    return await offload_large(sh.budget, size, partial(_with_aliases, sh, body), LONG_SCRIPT)


async def command_text(sh: ShellState, node: CommandSub) -> str:
    """What a command substitution stands for."""
    body = node.body
    cat = False
    single = body is not None and _is_single(body)
    if single and (prepared := in_place.prepared(sh, node)) is not None:
        return await _text_in_place(sh, *prepared)
    if body is None and node.source.lstrip().startswith("<"):
        try:
            body = parse(node.source)
        except SyntaxFailure:
            body = None  # running it will say so
    if body is None:
        run = sh.shell.text_runner(node.source)
    elif (text := await _read_again(sh, body, node.size)) is not None:
        run = sh.shell.text_runner(text)
        body = None
    else:
        if node.body is None:
            single = _is_single(body)
        if not single:
            body = relined(sh, body, node.size)
        file_only = _file_only(body)
        cat = single and file_only is not None
        run = _runner(sh, body, file_only) if node.size < LONG_SCRIPT else await _long_runner(sh, body, file_only)
    child = sh.fork(borrow=True)
    shift_lines(sh, child, node.body, body)
    child.loops = sh.loops  # `break` leaves what it still takes for the body of a loop
    child.jobs.inherited = sh.jobs.visible()
    capture = Capture(sh.budget.limits.string_bytes, "string_bytes")
    old = child.fds.get(1)
    if old is not None:
        old.release()
    output = child.fds[1] = Description(capture)
    if child.errexit and "inherit_errexit" not in sh.shopts and not sh.posix:
        child.set_option("errexit", False)
    child.trace_level += 1
    child.text_depth, child.in_substitution = 1, True
    child.single_command = single
    sh.status = sh.substitution_status = await run_shell(child, run)
    if output.refs > 0:
        await _last_writers(sh, output)
    if sh.traps:
        child_died(sh)
    if child.death_signal == _INTERRUPT:
        send(sh, _INTERRUPT)  # who interrupts a substitution means the script
    if cat and sh.status and sh.errexit:
        # bash reads the file without a subshell, so the failure counts here in any context.
        sh.flow_status = sh.status
        raise Leave(EXIT)
    return _captured_text(sh, capture)


async def _text_in_place(sh: ShellState, plan: in_place.Plan, argv: list[str]) -> str:
    """Return the text of a substitution that needs no subshell."""
    if sh.budget.check():
        await sh.budget.yield_turn()
    capture = Capture(sh.budget.limits.string_bytes, "string_bytes")
    try:
        status = await in_place.run(sh, plan, argv, capture)
    except ERRORS as error:
        status = report(sh, error)
    sh.status = sh.substitution_status = status
    return _captured_text(sh, capture)


def _captured_text(sh: ShellState, capture: Capture) -> str:
    data = capture.getvalue().rstrip(b"\n")
    if b"\0" in data:
        sh.complain("warning: command substitution: ignored null byte in input")
        data = data.replace(b"\0", b"")
    return decode(data)


_INTERRUPT: Final = signals.NUMBERS["INT"]


def _runner(sh: ShellState, body: Script, file_only: Simple | None) -> Run:
    """What runs a substitution; `< file`, alone or on its last line, shows the file."""
    if file_only is None:
        return sh.shell.compiled(body)
    if len(body.statements) == 1:
        return _cat(file_only)
    return _then_cat(sh.shell.compiled(Script(body.statements[:-1])), file_only)


async def _long_runner(sh: ShellState, body: Script, file_only: Simple | None) -> Run:
    return await sh.shell.compile_offloaded(sh, body) if file_only is None else _runner(sh, body, file_only)


def _is_single(body: Script) -> bool:
    """Whether a substitution is one simple command."""
    return len(body.statements) == 1 and isinstance(body.statements[0].node, Simple)


def _file_only(body: Script) -> Simple | None:
    """Return `< file` at the end of a substitution, if it is on a separate line."""
    last = body.statements[-1] if body.statements else None
    if (
        last is not None
        and isinstance(node := last.node, Simple)
        and not node.words
        and not node.assigns
        and len(node.redirects) == 1
        and node.redirects[0].op == "<"
        and not last.background
        and (len(body.statements) == 1 or last.line > body.statements[-2].line)
    ):
        return node
    return None


def _then_cat(run: Run, last: Simple) -> Run:
    show = _cat(last)

    async def both(sh: ShellState) -> int:
        result: Any = run(sh)
        if type(result) is not int:
            result = await result
        if result > 255:
            return int(result)
        result = show(sh)
        return int(result if type(result) is int else await result)

    return lambda sh: drive(both(sh))


async def _last_writers(sh: ShellState, output: Description) -> None:
    """Wait for jobs that a substitution left behind with its output open."""
    while holders := [
        process.silent or process.task
        for process in sh.shell.processes.values()
        if not process.task.done() and any(one is output for one in process.session.fds.values())
    ]:
        await asyncio.wait(holders, return_when=asyncio.FIRST_COMPLETED)


def shift_lines(sh: ShellState, child: ShellState, written: Script | None, body: Script | None) -> None:
    """The lines of a substitution count from where the command ends that it stands in, not from where it stands."""
    if body is None:  # its text counts from there itself
        child.line, child.line_shift = sh.line_now(), (0, len(child.frames))
    elif body.statements:
        further = sh.line_now() - (body.statements[0].line if body is written else 1)
        child.line_shift = (further, len(child.frames)) if further else None


def _cat(simple: Simple) -> Run:
    """`$(< file)`: the file itself, without a command."""

    async def run(sh: ShellState) -> int:
        from ramet.shell.interp.run.redirect import apply, compile_redirects

        sh.line = simple.line
        if not await apply(sh, compile_redirects(simple.redirects), []):
            return 1
        reader, writer = sh.reader(simple.redirects[0].fd or 0), sh.writer(1)
        try:
            while block := await reader.read():
                writer.write(block)
                await sh.budget.yield_turn()  # not every source waits
                if writer.full:
                    await writer.drain()
        except OSError as error:
            return 0 if error.errno == errno.EISDIR else sh.error(reason(error))
        return 0

    return lambda sh: drive(run(sh))


class Substitution:
    """A running process substitution: its descriptor here, its process, and whether it reads what we write."""

    __slots__ = ("fd", "process", "reads")

    def __init__(self, fd: int, process: Process, reads: bool) -> None:
        self.fd, self.process, self.reads = fd, process, reads


async def process_path(sh: ShellState, node: ProcessSub) -> str:
    """Start a process substitution; the path by which the command reaches it. One without commands is nothing."""
    body = node.body
    if not body.statements:
        return ""
    again: Script | None = None
    if (text := await _read_again(sh, body, node.size)) is not None:
        run = sh.shell.text_runner(text)
    else:
        again = body = relined(sh, body, node.size)
        file_only = _file_only(body)
        run = _runner(sh, body, file_only) if node.size < LONG_SCRIPT else await _long_runner(sh, body, file_only)
    sh.make_room("process substitution")
    child = sh.jobs.fork_process(sh)
    reader, writer = pipe()
    shift_lines(sh, child, node.body, again)
    child.loops = sh.loops  # `break` leaves what it still takes for the body of a loop
    ours, theirs, number = (reader, writer, 1) if node.direction == "<" else (writer, reader, 0)
    old = child.fds.get(number)
    if old is not None:
        old.release()
    child.fds[number] = Description(theirs)
    child.trace_level += 1
    child.text_depth, child.in_substitution = 1, True
    fd = high_fd(sh.fds)
    sh.fds[fd] = Description(ours)
    process = sh.jobs.spawn(child, run_shell(child, run, counted=True))
    sh.background = process.pid
    sh.substitutions.append(Substitution(fd, process, node.direction == ">"))
    await sh.budget.yield_turn()
    return f"/dev/fd/{fd}"


def high_fd(taken: Container[int]) -> int:
    """A descriptor that the shell chooses: out of the way of scripts while there is room."""
    return next(number for number in chain(range(63, 4, -1), (3, 4), count(64)) if number not in taken)


async def end_substitutions(sh: ShellState, mark: int, cancelled: bool = False) -> None:
    """The command is done with its process substitutions: close our ends.

    One that reads what we wrote gets a moment to say what it found (bash would go on, but that output would still
    arrive). What still runs afterwards belongs to the job table, and ends with it.
    """
    ending = sh.substitutions[mark:]
    del sh.substitutions[mark:]
    for substitution in ending:
        description = sh.fds.pop(substitution.fd, None)
        if description is not None:
            closing = description.release()
            if closing is not None:
                await closing
    if cancelled:
        await sh.task_group.end(one.process.task for one in ending)
        return
    running = {one.process for one in ending if not one.process.task.done()}
    sh.jobs.loose |= running
    readers = [one.process.task for one in ending if one.reads and one.process in running]
    if readers:
        await asyncio.wait(readers, timeout=0.05)
