"""`ShellState`: variables, options, descriptors and control flow of one shell.

- The first block of fields is the session: `fork` copies it for a subshell, `serialize` turns it into data.
- The second block belongs to the current run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ramet.concurrency.offload import in_thread
from ramet.concurrency.sizes import LARGE
from ramet.core.limits import Budget
from ramet.core.paths import ROOT, Path
from ramet.core.streams import Null, Reader, Writer
from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.c_locale import bytewise
from ramet.shell.expand.errors import BadNumber, BadSubscript, Fatal, LineError, TooLong
from ramet.shell.expand.word import to_text as texts
from ramet.shell.expand.word.fields import DEFAULT_IFS
from ramet.shell.history.entries import History
from ramet.shell.interp.process.descriptors import ClosedReader, ClosedWriter, Description, Table, share_all
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.state.frames import Frame, FunctionDef
from ramet.shell.interp.state.messages import ShellOutput
from ramet.shell.interp.state.options import HOT_OPTIONS, LETTERS, OPTIONS_ON, SHOPTS_ON
from ramet.shell.interp.state.special_variables import RandomSource, install
from ramet.shell.interp.state.variables import Variables
from ramet.shell.syntax import nodes
from ramet.shell.syntax.scanner import Options

HISTORY_SIZE: Final = "500"
"""The default of HISTSIZE and HISTFILESIZE."""

if TYPE_CHECKING:
    from ramet.shell.interp.main.shell import Shell
    from ramet.shell.interp.process.groups import ProcessGroup
    from ramet.shell.interp.process.jobs import Jobs
    from ramet.shell.interp.process.process import Process


class ShellState(ShellOutput):
    __slots__ = (
        "aliases",
        "allexport",
        "arg0",
        "arguments",
        "background",
        "background_ignored",
        "budget",
        "command_death",
        "command_line",
        "completions",
        "condition_open",
        "coprocs",
        "cwd",
        "death_signal",
        "debug_status",
        "debug_trap_command",
        "deferred_chld",
        "depth",
        "dirs",
        "disabled",
        "err_trap_just_set",
        "errexit",
        "errexit_ended",
        "errexit_ignored",
        "errtrace",
        "eval_frames",
        "exit_trap_status",
        "export_failed",
        "fds",
        "flow_n",
        "flow_status",
        "frames",
        "functions",
        "functrace",
        "group",
        "hard_ignored",
        "has_globs",
        "hashed",
        "history",
        "in_chld_trap",
        "in_debug_trap",
        "in_err_trap",
        "in_return_trap",
        "in_substitution",
        "in_trap",
        "instrumented",
        "interactive",
        "jobs",
        "join_star",
        "last_arg",
        "last_command",
        "line",
        "line_shift",
        "listed_traps",
        "logical_cwd",
        "loops",
        "loops_left",
        "name",
        "noclobber",
        "noexec",
        "noglob",
        "nounset",
        "options",
        "origin",
        "params",
        "parent",
        "pending",
        "pending_output",
        "pid",
        "pipe_statuses",
        "pipefail",
        "posix",
        "process",
        "program_environment",
        "random",
        "redirected_calls",
        "seconds_base",
        "shell",
        "shopts",
        "single_command",
        "source",
        "stack",
        "stage_command",
        "started",
        "status",
        "sub_level",
        "substitution_status",
        "substitutions",
        "task_group",
        "text_depth",
        "top_pid",
        "trace_fd_invalid",
        "trace_level",
        "trap_command",
        "trap_depth",
        "traps",
        "ulimits",
        "umask",
        "variables",
        "vars",
        "via_command",
        "xtrace",
    )  # fmt: skip

    allexport: bool
    errexit: bool
    errtrace: bool
    functrace: bool
    noclobber: bool
    noexec: bool
    noglob: bool
    nounset: bool

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.variables = Variables()
        self.vars = self.variables.values
        self.functions: dict[str, FunctionDef] = {}
        self.aliases: dict[str, str] = {}
        self.params: list[str] = []
        self.arguments: list[str] | None = None
        """The last parameters in BASH_ARGV: those at its first use."""
        self.arg0 = shell.name
        self.name = shell.name
        self.command_line = shell.name
        """What `ps` shows of this shell."""
        self.options: set[str] = set()
        self.shopts: set[str] = set(SHOPTS_ON)
        for option in ("allexport", "errexit", "errtrace", "functrace", "noclobber", "noexec", "noglob", "nounset"):
            setattr(self, option, False)
        self.xtrace = self.pipefail = self.posix = False
        self.traps: dict[str, str] = {}
        self.pending: list[int] = []
        for option in OPTIONS_ON:
            self.set_option(option, True)
        self.cwd = Path(shell.user.home) if shell.user.home.startswith("/") else ROOT
        self.logical_cwd: tuple[Path, str] | None = None
        """A directory without links, and the name under which it was entered; counts while it is the current one."""
        self.via_command = False
        """Whether `command` is about to run a special builtin, whose errors then end no shell in POSIX mode."""
        self.dirs: list[str] = []
        self.umask = 0o022
        self.trap_depth: dict[str, int] = {}
        self.background_ignored: frozenset[str] = frozenset()
        """Signals ignored by this process and its programs since `&` started it."""
        self.hard_ignored: frozenset[str] = frozenset()
        """Signals that were ignored when this shell started; traps cannot change them."""
        self.listed_traps: dict[str, str] = {}
        self.disabled: set[str] = set()
        self.hashed: dict[str, tuple[str, int]] = {}
        self.status = 0
        self.pipe_statuses: list[int] | None = []
        self.export_failed = False
        """`export` or `readonly` could not assign, which ends a shell in POSIX mode."""
        self.last_arg = shell.name
        self.exit_trap_status: int | None = None
        """The status with which the shell exits, while its EXIT trap runs."""
        self.in_return_trap = False
        """Whether a RETURN trap runs: what it calls does not run it again."""
        self.random: RandomSource | None = None
        self.seconds_base = shell.now()
        self.history = History()
        """Shared with a subshell until one of them changes it."""
        self.interactive = False
        self.completions: dict[str, str] = {}
        self.pid = self.top_pid = shell.next_pid()
        # -------------------------------------------------------------- the run
        self.background: int | None = None
        self.budget = Budget(shell.limits)
        self.task_group = TaskGroup()
        self.fds: Table = {}
        self.flow_n = 0
        self.flow_status = 0
        self.frames: list[Frame] = []
        self.source = ""
        self.line = 0
        self.loops = self.loops_left = 0
        """Depth of loops now, and at the exit: an EXIT trap may break out of them."""
        self.errexit_ignored = 0
        self.depth = 0
        self.stack = 0
        self.sub_level = 0
        self.has_globs = False
        self.in_debug_trap = self.err_trap_just_set = self.in_chld_trap = self.errexit_ended = self.in_err_trap = False
        self.redirected_calls = 0
        """Calls whose redirections a failure under `set -e` undoes before the EXIT trap runs."""
        self.text_depth = 0
        """Depth of evaluated texts (`eval`, `.`, `bash -c`, substitutions)."""
        self.eval_frames = -1
        """Number of frames where the innermost `eval` began; -1 outside of `eval`."""
        self.in_substitution = False
        """Whether it runs a command substitution, which does not report killed commands."""
        self.debug_status = 0
        """Status of the last DEBUG trap."""
        self.in_trap = self.deferred_chld = 0
        self.join_star = False
        """Whether an unquoted `$*` is one text where IFS is empty: in substitutions that are assigned."""
        self.pending_output: list[str] = []
        """Output of a builtin that is written before its next message."""
        self.debug_trap_command: object = None
        """The command whose DEBUG trap the parent shell has run."""
        self.stage_command: object = None
        """The command of this shell as a stage of a pipeline."""
        self.parent: ShellState | None = None
        self.group: ProcessGroup | None = None
        """The process group that gets signals of `timeout`."""
        self.process: Process | None = None
        self.substitution_status: int | None = None
        self.death_signal = 0
        """The signal that this shell died of."""
        self.command_death: tuple[int, int] | None = None
        """Signal and pid of the shell that the current command was, if that died."""
        self.program_environment = False
        """Whether a program started this command and gave it the whole environment."""
        self.started = False
        """Whether this forked shell has run; then it releases its descriptors itself."""
        self.single_command = False
        """Whether this shell runs one command that replaces it; its death is not reported."""
        self.substitutions: list[Any] = []
        self.coprocs: dict[str, Any] = {}
        self.origin = "main"
        self.instrumented = False
        self.trace_level = 0
        self.condition_open = False  # whether the last syntax error was inside `[[ ]]`
        self.trace_fd_invalid = False  # whether BASH_XTRACEFD names nothing, whatever may be there later
        self.line_shift: tuple[int, int] | None = None
        """How many lines further a substitution or a trap counts than its text, and the depth of calls at which it
        does."""
        self.ulimits: dict[str, tuple[str, str]] = {}
        self.trap_command: Any = None
        self.last_command: Any = None
        """The command that began last: what BASH_COMMAND names."""
        self.jobs: Jobs = shell.new_jobs()
        self._wire()
        install(self)
        self.update_instrumented()

    def _wire(self) -> None:
        store = self.variables
        store.host, store.warn = self, self.complain
        store.arith, store.number = self.evaluate_key, self.evaluate
        store.key_of = self.expand_key

    # ------------------------------------------------------------------------------------------------- forking

    def fork(self, borrow: bool = False) -> ShellState:
        """A subshell; with `borrow` this shell waits until the subshell is gone."""
        if self.depth >= self.budget.deepest:
            # Before anything is shared that would have to be let go.
            raise self.budget.exceeded(self.budget.hit or "recursion", "fork")
        twin = object.__new__(ShellState)
        twin.shell = self.shell
        twin.variables = self.variables.fork(borrow)
        twin.vars = twin.variables.values
        twin.functions = dict(self.functions)
        twin.aliases = dict(self.aliases)
        twin.params, twin.arguments = self.params, self.arguments
        twin.arg0, twin.name, twin.command_line = self.arg0, self.name, self.command_line
        twin.options, twin.shopts = set(self.options), set(self.shopts)
        twin.allexport, twin.errexit, twin.errtrace = self.allexport, self.errexit, self.errtrace
        twin.functrace, twin.noclobber, twin.noexec = self.functrace, self.noclobber, self.noexec
        twin.noglob, twin.nounset, twin.xtrace = self.noglob, self.nounset, self.xtrace
        twin.pipefail, twin.posix = self.pipefail, self.posix
        twin.logical_cwd, twin.via_command = self.logical_cwd, False
        twin.cwd, twin.dirs, twin.umask = self.cwd, list(self.dirs), self.umask
        twin.traps, twin.trap_depth, twin.listed_traps = {}, {}, dict(self.listed_traps)
        if self.traps:
            twin.traps = {
                name: action
                for name, action in self.traps.items()
                if (not action and name not in self.background_ignored)
                or (name == "ERR" and self.errtrace)
                or (name in ("DEBUG", "RETURN") and self.functrace)
            }
            twin.trap_depth = {name: self.trap_depth.get(name, 0) for name in twin.traps}
            twin.listed_traps = {**self.listed_traps, **self.traps}
        twin.background_ignored, twin.hard_ignored = frozenset(), self.hard_ignored
        twin.disabled, twin.hashed = set(self.disabled), dict(self.hashed)
        twin.status, twin.pipe_statuses, twin.last_arg = self.status, self.pipe_statuses, self.last_arg
        twin.export_failed = False
        twin.random = None
        twin.seconds_base, twin.history = self.seconds_base, self.history
        twin.completions, twin.interactive = self.completions, self.interactive
        twin.pid, twin.top_pid = 0, self.top_pid
        twin.background = self.background
        twin.budget, twin.task_group = self.budget, self.task_group
        twin.fds = share_all(self.fds)
        twin.flow_n = twin.flow_status = 0
        twin.frames, twin.source, twin.line = list(self.frames), self.source, self.line
        twin.loops, twin.loops_left, twin.errexit_ignored = 0, 0, self.errexit_ignored
        twin.depth, twin.sub_level = self.depth + 1, self.sub_level + 1
        twin.stack = self.stack + 7  # levels of functions that it takes as much of the stack as
        twin.has_globs = False
        twin.pending = []
        twin.debug_status = 0
        twin.pending_output = []
        twin.debug_trap_command, twin.stage_command, twin.join_star = None, None, self.join_star
        twin.in_debug_trap = twin.err_trap_just_set = twin.in_chld_trap = twin.errexit_ended = False
        twin.in_err_trap = self.in_err_trap
        twin.text_depth = twin.redirected_calls = 0
        twin.eval_frames = -1
        twin.in_substitution = False
        twin.in_trap, twin.exit_trap_status, twin.in_return_trap, twin.deferred_chld = 0, None, False, 0
        twin.parent, twin.process, twin.group = self, self.process, self.group
        twin.substitution_status, twin.substitutions = None, []
        twin.death_signal, twin.command_death, twin.single_command, twin.program_environment, twin.started = (
            0,
            None,
            False,
            False,
            False,
        )
        twin.coprocs, twin.origin = {}, self.origin
        twin.ulimits = dict(self.ulimits)
        twin.line_shift = self.line_shift
        twin.trace_level, twin.trap_command, twin.last_command = self.trace_level, self.trap_command, self.last_command
        twin.trace_fd_invalid, twin.condition_open = self.trace_fd_invalid, self.condition_open
        twin.jobs = self.jobs.fork()
        twin._wire()
        twin.instrumented = False
        if self.instrumented or self.shell.hook is not None:
            twin.update_instrumented()
        return twin

    async def end(self) -> None:
        """Kill the jobs, and wait for tasks of a cancelled call."""
        await self.jobs.end()
        if self.task_group.stopped:
            await self.task_group.gone()

    def break_cycles(self) -> None:
        """Cut the reference cycles of a shell that has ended."""
        store = self.variables
        store.host, store.arith, store.number, store.key_of, store.warn = None, int, int, str, str

    # ------------------------------------------------------------------------------------------------- options

    def set_option(self, name: str, on: bool) -> None:
        if name == "noexec" and self.interactive:
            return  # it could not be turned off again
        if on:
            self.options.add(name)
        else:
            self.options.discard(name)
        if name == "ignoreeof":
            if on:
                self.vars.setdefault("IGNOREEOF", "10")
            else:
                self.variables.unset("IGNOREEOF")
        elif name == "history" and on:
            for variable in ("HISTSIZE", "HISTFILESIZE"):
                if variable not in self.vars:
                    self.vars[variable] = self.variables.get("HISTSIZE") or HISTORY_SIZE
        if on and name in ("vi", "emacs"):
            self.options.discard("vi" if name == "emacs" else "emacs")
        if name in HOT_OPTIONS:
            setattr(self, name, on)
            if name in ("xtrace", "noexec"):
                self.update_instrumented()
            elif name == "allexport":
                self.variables.exporting = on
            elif name == "posix" and on is not ("POSIXLY_CORRECT" in self.vars):
                if on:
                    self.vars["POSIXLY_CORRECT"] = "y"
                    self.shopts |= {"expand_aliases", "inherit_errexit", "shift_verbose"}
                else:
                    self.variables.unset("POSIXLY_CORRECT")
                    self.shopts -= {"expand_aliases", "shift_verbose"}

    def shopt(self, name: str) -> bool:
        return name in self.shopts

    def update_instrumented(self) -> None:
        """Set whether commands check for traces, traps, signals and the hook."""
        self.instrumented = bool(
            self.xtrace
            or self.pending
            or "DEBUG" in self.traps
            or self.shell.hook is not None
            or self.noexec
            or "keyword" in self.options
            or "extdebug" in self.shopts
        )

    def flags(self) -> str:
        """`$-`."""
        letters = "".join(letter for letter, name in LETTERS.items() if name in self.options)
        if self.interactive:
            place = next((at for at, letter in enumerate(letters) if letter not in "abefh"), len(letters))
            letters = f"{letters[:place]}i{letters[place:]}"
        return letters + {"environment": "c", "stdin": "s"}.get(self.origin, "")

    def syntax_options(self) -> Options:
        shopts = self.shopts
        return Options("extglob" in shopts, self.posix, "expand_aliases" in shopts, bytewise(self), self.condition_open)

    # ---------------------------------------------------------------------------------------- for the expansion

    def special(self, name: str) -> str | None:
        if name == "?":
            return str(self.status)
        if name == "#":
            return str(len(self.params))
        if name == "$":
            return str(self.top_pid)
        if name == "!":
            return None if self.background is None else str(self.background)
        if name == "-":
            return self.flags()
        if name == "_":
            return str(self.last_arg)
        if name == "0":
            return self.arg0
        return None

    def calculate(self, text: str) -> int:
        if len(text) > self.variables.longest:
            self.allow_expression(len(text), text)
        try:
            return arith.evaluate(text, self.variables)
        except arith.Unbound as error:
            raise Fatal(str(error), 127) from None

    def evaluate(self, text: str) -> int:
        try:
            return self.calculate(text)
        except ArithFailure as error:
            raise (BadSubscript if error.subscript else BadNumber)(error.parts) from None

    def allow_expression(self, size: int, head: str) -> None:
        """Raise `TooLong` for an expression that would hold the event loop."""
        if size > self.variables.longest and not in_thread() and self.budget.slice_end != float("inf"):
            raise TooLong(f"{head[:40]}...: limit reached: expression_chars ({self.variables.longest})")

    def expand_key(self, text: str) -> str:
        """The text of a subscript that is read at run time (`unset 'a[$k]'`), as a key."""
        if not any(char in text for char in "$`'\"\\"):
            return text
        from ramet.shell.interp.main.prompt import parse_subscript

        word = parse_subscript(text)
        if word is None:
            return text
        found = self.text_now(texts.text(word))
        if found is None:
            raise LineError(f"{text}: a substitution in a subscript that is read at run time must not wait")
        return found

    def text_now(self, compiled: texts.Text) -> str | None:
        """A text where nothing may wait: None when a command in it would have to."""
        if not compiled.wait:
            return str(compiled.run(self))
        end, self.budget.slice_end = self.budget.slice_end, float("inf")
        try:
            found = drive(compiled.run(self))
        finally:
            self.budget.slice_end = end
        if isinstance(found, str):
            return found
        self.task_group.abandon(found)
        return None

    def evaluate_key(self, text: str) -> int:
        """A subscript that is read at run time, as a number."""
        if len(text) > LARGE:
            self.allow_expression(len(text), text)
        expanded = self.expand_key(text) if "$" in text or "`" in text else text
        return self.evaluate_subscript(expanded.replace('"', "") if '"' in expanded else expanded)

    def evaluate_subscript(self, text: str) -> int:
        """A subscript that is expanded already."""
        try:
            return self.evaluate(text)
        except BadNumber as error:
            raise BadSubscript(error.parts) from None

    def home(self, user: str) -> str | None:
        if not user:
            found = self.variables.get("HOME")
            return self.shell.user.home if found is None else found
        if user == self.shell.user.name:
            return self.shell.user.home
        return "/root" if user == "root" else None

    def tilde(self, prefix: str) -> str | None:
        if prefix == "+":
            return self.variables.get("PWD")
        if prefix == "-":
            return self.variables.get("OLDPWD")
        digits = prefix.lstrip("+-")
        if digits.isdigit() and len(prefix) - len(digits) <= 1:
            stack = [self.pwd, *self.dirs]
            index = int(digits)
            if prefix[0] == "-":
                index = len(stack) - 1 - index
            return stack[index] if 0 <= index < len(stack) else None
        return self.home(prefix)

    def prompt(self, text: str) -> str:
        from ramet.shell.interp.main.prompt import decode_prompt

        return decode_prompt(self, text)

    def command_text(self, node: nodes.CommandSub) -> Awaitable[str]:
        return self.shell.command_text(self, node)

    def process_path(self, node: nodes.ProcessSub) -> Awaitable[str]:
        return self.shell.process_path(self, node)

    @property
    def ifs(self) -> str:
        found = self.variables.get("IFS")
        return DEFAULT_IFS if found is None else found

    @property
    def pwd(self) -> str:
        """The current directory by the name under which it was entered, links and all."""
        called = self.logical_cwd
        return called[1] if called is not None and called[0] == self.cwd else str(self.cwd)

    def dice(self) -> RandomSource:
        """The source of `$RANDOM`; every shell and subshell gets its own when it first asks."""
        if self.random is None:
            self.random = RandomSource.cast()
        return self.random

    def own_pid(self) -> int:
        """`$BASHPID`."""
        if not self.pid:
            self.pid = self.process.pid if self.process is not None else self.shell.next_pid()
        return self.pid

    # --------------------------------------------------------------------------------------------- descriptors

    def reader(self, fd: int = 0) -> Reader:
        description = self.fds.get(fd)
        found = None if description is None else description.reader
        return ClosedReader() if found is None else found

    def writer(self, fd: int) -> Writer:
        description = self.fds.get(fd)
        found = None if description is None else description.writer
        return ClosedWriter() if found is None else found

    def free_fd(self, least: int = 10) -> int:
        fd = least
        while fd in self.fds:
            fd += 1
        return fd

    def make_room(self, doing: str, more: int = 1) -> None:
        """Raise if this shell may not open `more` descriptors."""
        if len(self.fds) + more > self.budget.limits.open_files:
            raise self.budget.exceeded("open_files", doing)

    def open_null(self) -> Description:
        return Description(Null(), path="/dev/null")

    # ---------------------------------------------------------------------------------------------------- frames

    def function_names(self) -> list[str]:
        return [frame.name for frame in reversed(self.frames)]

    def environment(self) -> dict[str, str]:
        env = self.variables.exported()
        if self.functions and any(name[0] == "\1" for name in self.variables.attrs):
            from ramet.shell.interp.state.function_table import add_exported

            add_exported(self, env)
        return env


Builtin = Callable[[ShellState, list[str]], Result]

__all__ = ["Builtin", "Fatal", "LineError", "ShellState"]
