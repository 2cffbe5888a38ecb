"""`Shell`: run shell text in a session.

    shell = Shell(fs=vfs, commands=table)                  # table: name -> Exec
    session = shell.session(env={"HOME": "/"}, cwd="/")
    status = await shell.run(session, text, stdin=Reader, stdout=Writer, stderr=Writer, budget=Budget(limits))

- Runs of one session must not overlap; different sessions may run at the same time.
- `hook(session, argv)` is called before every command and refuses it by returning a reason.
- `last=True` ends the shell after this text (the EXIT trap runs).
- `session.jobs.settle()` waits for background jobs, `session.jobs.end()` kills them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload
from ramet.core import paths
from ramet.core.fs import FileSystem
from ramet.core.limits import DEFAULT_LIMITS, Budget, Cancelled, Limits, TimeUp
from ramet.core.paths import Path
from ramet.core.proc import Exec, Programs, Services, User
from ramet.core.streams import IteratorReader, Null, Reader, Writer
from ramet.shell.expand import glob as globbing
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.c_locale import bytewise
from ramet.shell.expand.errors import BadNumber, ErrexitExempt, LineError, Overflow, PosixFatal, TooMany
from ramet.shell.interp.main import command_line as invocation
from ramet.shell.interp.main import history_record as recording
from ramet.shell.interp.main.script_input import ScriptInput
from ramet.shell.interp.main.script_lines import ALL, LINES, NOTHING, ScriptReader
from ramet.shell.interp.process.daemons import adopt_daemon
from ramet.shell.interp.process.descriptors import Description, Table, release_all
from ramet.shell.interp.process.dev_fd import wrapped
from ramet.shell.interp.process.groups import ignored_signals, program_rlimits, receive_signals
from ramet.shell.interp.process.jobs import Jobs, Pids, StartQueue
from ramet.shell.interp.process.process import Process
from ramet.shell.interp.process.process_table import ProcessTable
from ramet.shell.interp.run import subshell
from ramet.shell.interp.run.compile import compile_script
from ramet.shell.interp.run.functions import HOP, hop, leave_all
from ramet.shell.interp.run.maybe_async import EXIT, Run, drive
from ramet.shell.interp.run.simple import invoke
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.run.traps import Leave, active, deliver, exit_trap, run_trap
from ramet.shell.interp.run.xtrace import trace
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.special_variables import adopt_environment
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import (
    ArithCommand,
    Case,
    CommandSub,
    Cond,
    For,
    ForArith,
    ProcessSub,
    Script,
    Select,
    Simple,
    made_of,
)
from ramet.shell.syntax.printer import command_text, word_text

if sys.getrecursionlimit() < 4000:
    # Levels of a script nest some frames each before they move to a stack of their own.
    sys.setrecursionlimit(4000)
if 0 < sys.get_int_max_str_digits() < 50_000:
    # Words of thousands of digits are numbers that are too large, about which commands have something to say.
    sys.set_int_max_str_digits(50_000)

Hook = Callable[[ShellState, list[str]], str | Awaitable[str | None] | None]
_TURNS: Final = 2
_SUBSTITUTED: Final = "command substitution: "
_COUNTED: Final = ("debug trap: ", "error trap: ")
"""Texts whose lines are counted from that of the command that they are about."""


def compiled(script: Script) -> Run:
    """Return the compiled closure of a script, cached with its tree."""
    made = made_of(script)
    run: Run | None = made.get(compile_script)
    if run is None:
        run = made[compile_script] = compile_script(script)
    return run


class Shell:
    """The interpreter that all sessions of a workspace share."""

    def __init__(
        self,
        fs: FileSystem,
        commands: Mapping[str, Exec],
        *,
        user: User | None = None,
        now: Callable[[], float] = time.time,
        limits: Limits = DEFAULT_LIMITS,
        hook: Hook | None = None,
        name: str = "bash",
        workspace: object = None,
        pids: Pids | None = None,
        programs: Programs | None = None,
        explain: Callable[[str], str] | None = None,
        network: object = None,
    ) -> None:
        self.fs, self.commands, self.now, self.limits = fs, commands, now, limits
        self.user = user or User()
        self.hook = hook
        self.name = name
        self.workspace = workspace
        self.processes: dict[int, Process] = {}
        self.start_queue = StartQueue()
        self.closing: set[asyncio.Future[Any]] = set()
        """Closing descriptors of processes that never started."""
        self.forks = 0
        """Running shells that are not processes: subshells, pipeline stages, programs started by programs."""
        self.pids = pids or Pids()
        self.programs = programs
        """Programs that are not in the table; None for none."""
        self.unused: Programs | None = None
        """Programs that are there, and that this call does not run."""
        self.network = network
        """The door to the network that commands get; None for none."""
        self.explain = explain
        """Return a line to print after `command not found`; empty for none."""
        self.started = now()
        self.turn = 0.0
        """When a caller that runs short scripts in a row has to yield the event loop."""

    def session(self, env: Mapping[str, str] | None = None, cwd: str | Path | None = None) -> ShellState:
        """A new session with this environment."""
        session = ShellState(self)
        given = dict(env or {})
        given.setdefault("HOME", self.user.home)
        if cwd is not None:
            session.cwd = paths.parse(str(cwd))
        elif "PWD" in given and given["PWD"].startswith("/"):
            session.cwd = paths.parse(given["PWD"])
        adopt_environment(session, given)
        return session

    def too_many_shells(self, most: int, coming: int = 0) -> bool:
        """Return whether more than `most` shells run, with `coming` new ones."""
        return len(self.processes) + self.forks + coming > most

    def release_unstarted(self, sh: ShellState) -> None:
        """Release what a forked shell shares if it never started."""
        if not sh.started:
            sh.break_cycles()
            if sh.fds:
                self.close_soon(sh.fds)

    def close_soon(self, fds: Table) -> None:
        """Close descriptors in the background."""
        closing = asyncio.ensure_future(release_all(fds))
        self.closing.add(closing)
        closing.add_done_callback(self._close)

    def detach_tasks(self, crew: TaskGroup) -> None:
        """Leave running tasks to the end of the workspace."""
        for task in crew.tasks:
            if not task.done():
                self.closing.add(task)
                task.add_done_callback(self._close)

    def _close(self, closing: asyncio.Future[Any]) -> None:
        self.closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # retrieved, so that asyncio does not log it

    def next_pid(self) -> int:
        return self.pids.next()

    def new_jobs(self) -> Jobs:
        return Jobs(self)

    def services_for(self, sh: ShellState, signal_group: Callable[[int], bool] | None = None) -> Services:
        """What commands of this shell get from it."""
        receive = partial(receive_signals, sh)
        ignored = partial(ignored_signals, sh)
        return Services(
            ProcessTable(sh), self.commands, self.workspace, self.programs, signal_group, self.network, receive,
            ignored, partial(program_rlimits, sh), partial(adopt_daemon, sh),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------- running

    async def run(
        self,
        session: ShellState,
        text: str,
        *,
        stdin: Reader | None = None,
        stdout: Writer | None = None,
        stderr: Writer | None = None,
        budget: Budget | None = None,
        last: bool = False,
    ) -> int:
        """Run a text in a session; its exit status. What the text opened with `exec` stays open in the session."""
        crew = session.task_group
        if crew.stopped:
            await crew.gone()  # of a call that was cancelled
        if crew.stopped or crew.tasks:
            crew = session.task_group = TaskGroup()
        crew.main = None
        session.budget = budget or Budget(self.limits)
        session.history.running = text
        session.variables.limit = session.budget.limits.string_bytes
        session.variables.longest = session.budget.limits.expression_chars
        session.variables.bytes_held.allow(session.budget.limits.variable_bytes)
        kept = {fd: session.fds.get(fd) for fd in (0, 1, 2)}
        older = frozenset(session.jobs.loose)
        given: list[Description] = []
        for fd, stream in enumerate((stdin, stdout, stderr)):
            description = session.fds[fd] = Description(stream if stream is not None else Null(), lent=True)
            description.standard = fd
            given.append(description)
        for fd, old in session.fds.items():
            if fd >= len(given) and old.standard is not None:
                session.fds[fd] = given[old.standard].share()
        try:
            status = crew.lead(self._run_top(session, text, last))
            if not isinstance(status, int):
                status = await status
            if session.substitutions:
                await subshell.end_substitutions(session, 0)
            if session.budget.hit == "processes":
                await session.jobs.end(session.budget)  # the next call needs their places
            return status
        except BaseException as error:
            crew.stop()
            if session.substitutions:
                await subshell.end_substitutions(session, 0, cancelled=True)
            await crew.end(process.task for process in session.jobs.loose - older)
            if isinstance(error, asyncio.CancelledError):
                # Generators that were left in the middle, which only the traceback still knows, are closed by the loop.
                error.__traceback__ = error.__context__ = None
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
            raise
        finally:
            session.errexit_ignored = session.loops = session.depth = session.stack = session.trace_level = 0
            leave_all(session)
            for fd, before in kept.items():
                current = session.fds.pop(fd, None)
                if current is not None:
                    closing = current.release()
                    if closing is not None:
                        await closing
                if before is not None:
                    session.fds[fd] = before

    async def _run_top(self, session: ShellState, text: str, last: bool) -> int:
        session.update_instrumented()
        try:
            try:
                result = await self.run_text(session, text, top=True)
                session.status = subshell.settle(session, result)
            except subshell.ERRORS as error:
                result = EXIT
                session.status = subshell.report(session, error)
            except Leave as leave:
                result = leave.result
                session.status = subshell.settle(session, leave.result)
            if session.pending:
                await deliver(session)
            if last or result == EXIT:
                await exit_trap(session)
            if last:
                if "history" in session.options:
                    await recording.save(session)
                await self._close_all(session)
        except subshell.ERRORS as error:
            session.status = subshell.report(session, error)
        except Leave as leave:
            session.status = subshell.settle(session, leave.result)
        except Killed as killed:
            if last:
                await self._last_words(session)
            session.status = 128 + killed.signal
        except (TimeUp, Cancelled):
            raise
        except Exception as error:
            session.status = subshell.defect(session, error)
        return session.status

    async def _close_all(self, session: ShellState) -> None:
        """Close the descriptors of a shell that ends, so that their readers see EOF."""
        for fd in [fd for fd in session.fds if fd > 2]:
            closing = session.fds.pop(fd).release()
            if closing is not None:
                await closing

    async def _last_words(self, session: ShellState) -> None:
        try:
            await exit_trap(session)
        except (*subshell.ERRORS, Leave, Killed):
            return

    async def run_text(
        self,
        sh: ShellState,
        text: str,
        *,
        top: bool = False,
        keep_line: bool = False,
        line: int = 1,
        where: str = "",
        source: ScriptInput | None = None,
        recorded: bool = False,
        strict: bool = False,
    ) -> int:
        """Run text line by line in this session: a status or control flow. A line that an error ends is left behind.

        With a `source`, what a line leaves of the text is the standard input of its commands. What is `recorded` is in
        the history already. With `strict` the shell does not outlive what cannot be parsed.
        """
        if "\0" in text:  # left out as bash does with what it reads
            text = text.replace("\0", "")
        kept = top and not recorded and sh.origin != "environment"
        shown = ALL if top else LINES if sh.in_trap or where or sh.frames else NOTHING
        if where == _SUBSTITUTED and "verbose" in sh.options:
            shown = NOTHING  # it was shown with the line that it stands in
        reading = ScriptReader(sh, text, line, kept, shown, source)
        result: Any = 0
        at = sh.line
        base = (len(sh.frames), len(sh.variables.scopes), sh.depth, sh.stack, sh.errexit_ignored, sh.loops)
        while True:
            script = reading.known()
            if script is None:
                if reading.over:
                    return int(result)
                try:
                    script = await reading.parsed()
                except SyntaxFailure as failure:
                    result = await self._syntax_error(
                        sh, failure, where or ("-c: " if top and sh.origin == "environment" else ""), top
                    )
                    ends = (failure.inner and not sh.interactive) or (sh.sub_level > 0 and not top and failure.array)
                    ends = ends or self._counts(sh, failure)
                    if failure.fatal or ends:
                        fatal = strict and failure.status is not None and not failure.lenient
                        leaves = top or fatal or ends or (sh.errexit and not sh.errexit_ignored)
                        return self.leave(sh, result) if leaves else result
                    continue
                if script is None:
                    reading.keep(whole=True)
                    return int(result)
            if sh.budget.check():
                await sh.budget.yield_turn()
            if sh.noexec:
                continue  # read, and not run
            if source is not None:
                reading.offer()
            if top:
                sh.errexit_ignored = sh.loops = 0
            if strict:  # once a command was run, it is that one that cannot go on
                strict = all(isinstance(one.node, Simple) and not one.node.words for one in script.statements)
            try:
                if reading.large:
                    result = await self._run_large(sh, script, reading.lasting)
                else:
                    result = (compiled if reading.lasting else compile_script)(script)(sh)
                    if type(result) is not int:
                        result = await result
            except (LineError, ArithFailure) as error:
                beyond = isinstance(error, BadNumber) or (isinstance(error, ArithFailure) and error.subscript)
                if not top and (sh.sub_level or beyond or isinstance(error, Overflow | TooMany)):
                    sh.complain_once(error)
                    raise
                sh.status = result = subshell.report(sh, error)
                if result == 2 and not (top and sh.origin != "environment"):
                    sh.status = result = 1  # what is only evaluated tells no more of an assignment that fails
                self.unwind(sh, *base)
                if sh.parent is None:
                    sh.budget.recover()
                if beyond and sh.origin == "environment":
                    return self.leave(sh, result)
                failing = sh.errexit and not isinstance(error, ArithFailure | ErrexitExempt)
                if sh.posix and isinstance(error, ArithFailure | PosixFatal):
                    ended = 127 if sh.origin == "environment" else int(result)
                    return self.leave(sh, ended if sh.exit_trap_status is None else sh.exit_trap_status)
                if failing:
                    return self.leave(sh, result)
            if keep_line:
                sh.line = at
            if result > 255:
                reading.keep(whole=False)
                return int(result)
            if top and "onecmd" in sh.options and sh.origin != "environment":
                return self.leave(sh, int(result))
            if source is not None:
                await reading.catch_up()

    async def _run_large(self, sh: ShellState, script: Script, lasting: bool) -> int:
        """Run a line that is long enough to be compiled in a thread."""
        run = await offload(sh.budget, partial(compiled if lasting else compile_script, script))
        result: Any = run(sh)
        return int(result if type(result) is int else await result)

    def unwind(self, sh: ShellState, frames: int, scopes: int, depth: int, stack: int, ignore: int, loops: int) -> None:
        """Restore frames, scopes and depths after an error ended a line."""
        while len(sh.frames) > frames:
            frame = sh.frames.pop()
            sh.params = frame.params
        while len(sh.variables.scopes) > scopes:
            sh.variables.pop()
        sh.depth, sh.stack, sh.errexit_ignored, sh.loops = depth, stack, ignore, loops

    def leave(self, sh: ShellState, status: int) -> int:
        sh.flow_status = sh.status = status
        return EXIT

    def _counts(self, sh: ShellState, failure: SyntaxFailure) -> bool:
        """Whether `set -e` sees the error: it is the message that does it, and some errors in conditions have none."""
        return sh.errexit and not sh.errexit_ignored and bool(failure.message or failure.more)

    async def _syntax_error(self, sh: ShellState, failure: SyntaxFailure, where: str, top: bool) -> int:
        sh.condition_open = failure.condition
        if where in _COUNTED:
            failure.line = sh.line_now(failure.line)
        messages = failure.lines(f"{sh.error_name}: {where}")
        if messages and sh.interactive and not sh.source:
            file = next((frame.source for frame in reversed(sh.frames) if not frame.function), "")
            head = f"{sh.error_name}: "
            messages = failure.lines(f"{head}{file}: ") if file else [head + failure.message]
        strict = sh.errexit and not sh.errexit_ignored
        for message in messages[:1] if strict else messages:  # the first one ends the shell
            await sh.say(f"{message}\n")
        counted = self._counts(sh, failure)
        kept = top and ((failure.status is None and not counted) or (failure.lenient and sh.status))
        if not kept:
            sh.status = failure.status if failure.status and not (counted and failure.array) else 2
        if failure.inner and not sh.interactive:
            if sh.origin == "environment" and not sh.sub_level:
                sh.status = 127
            elif not top or not sh.status:
                sh.status = 1
        return sh.status

    def text_runner(self, text: str) -> Run:
        """Return a text as a closure (backticks, `bash -c`)."""
        return lambda sh: drive(self.run_text(sh, text, where=_SUBSTITUTED, line=max(sh.line_now(), 1)))

    def compiled(self, script: Script) -> Run:
        return compiled(script)

    async def compile_offloaded(self, sh: ShellState, script: Script) -> Run:
        """The same for a large script."""
        return await offload(sh.budget, partial(compiled, script))

    # -------------------------------------------------------------------------------- what closures ask for

    def command_text(self, sh: ShellState, node: CommandSub) -> Awaitable[str]:
        return subshell.command_text(sh, node)

    def process_path(self, sh: ShellState, node: ProcessSub) -> Awaitable[str]:
        return subshell.process_path(sh, node)

    async def end_substitutions(self, sh: ShellState, mark: int, cancelled: bool = False) -> None:
        await subshell.end_substitutions(sh, mark, cancelled)

    async def globbed(self, sh: ShellState, fields: list[str], plainly: bool = False) -> list[str]:
        sh.has_globs = False
        fs = wrapped(self.fs, sh.fds, fields)
        shopts, ignored = (sh.shopts - {"dotglob"}, None) if plainly else (sh.shopts, sh.variables.get("GLOBIGNORE"))
        return await globbing.expand(fs, sh.cwd, fields, shopts, ignored, sh.budget, bytewise(sh))

    async def return_trap(self, sh: ShellState) -> None:
        if sh.in_return_trap or not active(sh, "RETURN", sh.functrace):
            return
        sh.in_return_trap = True
        try:
            result = await run_trap(sh, "RETURN")
        finally:
            sh.in_return_trap = False
        if result == EXIT:
            raise Leave(result)

    async def before_compound(self, sh: ShellState, node: Any) -> int | None:
        """What looks at `[[`, `((`, `case` and `for` before they run: DEBUG traps and traces."""
        from ramet.shell.interp.run.traps import before_command

        if sh.xtrace:
            if isinstance(node, ArithCommand):
                head = f"(( {word_text(node.body)} ))"
            elif isinstance(node, ForArith | Cond):
                head = ""
            else:
                head = _head(node)
            if head:
                trace(sh, [head], raw=True)
        return await before_command(sh, node)

    async def invoke(self, sh: ShellState, argv: list[str], *, functions: bool = True) -> int:
        """Run a command whose words are final."""
        return await invoke(sh, argv, functions=functions)

    async def below(self, sh: ShellState, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Run nested work (eval, source), every `HOP` levels in a new task, so that the stack cannot overflow."""
        if sh.stack < HOP:
            sh.stack += 1
            try:
                return await work()
            finally:
                sh.stack -= 1
        return await hop(sh, work)

    async def exists(self, path: Path) -> bool:
        try:
            await self.fs.stat(path)
        except OSError:
            return False
        return True

    async def read_file(self, path: Path) -> bytes:
        """Read a script file, up to the limit of one value."""
        return await IteratorReader(self.fs.read(path)).read_all(self.limits.string_bytes)

    async def run_bash(self, sh: ShellState, argv: list[str]) -> int:
        """Run `bash ...` or `sh ...`: a new shell with the environment of this one."""
        return await invocation.run_bash(self, sh, argv)


def _head(node: For | Select | Case) -> str:
    """What a trace shows of a command: all before its body, which may be some lines."""
    if isinstance(node, Case):
        return command_text(Case(node.word, ())).removesuffix(" \nesac")
    return command_text(type(node)(node.name, node.words, Script(()))).removesuffix(";\ndo\n\ndone")


__all__ = ["Hook", "Shell"]
