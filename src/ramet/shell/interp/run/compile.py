"""Compile syntax trees to functions: lists, conditions, functions, subshells, background.

A compiled node takes the session and returns a status, control flow (above 255), or an awaitable of one of these.
`ignore` counts the enclosing places where a failure is an answer (`if`, `&&`, `!`), which `set -e` must respect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ramet.concurrency.offload import offload
from ramet.concurrency.recursion import level
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.numerals import LONGEST_NAME, is_name
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Fatal, Readonly, ShellError, TooLong
from ramet.shell.expand.values import EXPORT, READONLY
from ramet.shell.expand.word import to_text as texts
from ramet.shell.interp.builtins.lookup import SPECIAL
from ramet.shell.interp.process.descriptors import Description
from ramet.shell.interp.process.jobs import report_death
from ramet.shell.interp.run.case import compile_case
from ramet.shell.interp.run.conditions import compile_cond
from ramet.shell.interp.run.current_line import AtLine, current_line
from ramet.shell.interp.run.functions import stationed
from ramet.shell.interp.run.loops import compile_for, compile_for_arith, compile_select, compile_while
from ramet.shell.interp.run.maybe_async import EXIT, Result, Run, drive
from ramet.shell.interp.run.pipeline import compile_pipeline, is_program
from ramet.shell.interp.run.redirect import RedirectPlan, Undo, apply, compile_redirects, keep, run_redirected
from ramet.shell.interp.run.simple import compile_simple
from ramet.shell.interp.run.subshell import high_fd, run_shell
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.run.traps import before_command, child_died, deliver, failed, ignore_interrupts
from ramet.shell.interp.run.xtrace import trace
from ramet.shell.interp.state.frames import FunctionDef
from ramet.shell.interp.state.function_table import flags as function_flags
from ramet.shell.interp.state.function_table import set_flags as set_function_flags
from ramet.shell.interp.state.messages import message_of
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax import nodes
from ramet.shell.syntax.printer import command_text, word_text

_CHECKED = (nodes.Simple, nodes.Pipeline, nodes.Subshell, nodes.ArithCommand, nodes.Cond)
"""Nodes whose failure counts for `set -e` and ERR; inside other compounds it was counted already."""


def compile_script(script: nodes.Script) -> Run:
    """A list of statements."""
    statements = script.statements
    if not statements:
        return _nothing
    if len(statements) == 1:
        return _statement(statements[0])
    return _sequence([_plain_statement(statement) for statement in statements])


async def _rested(sh: ShellState, result: int) -> int:
    await sh.budget.yield_turn()
    return result


def _nothing(sh: ShellState) -> Result:
    if sh.pipe_statuses is None:
        sh.pipe_statuses = [sh.status]  # no command has run since
    sh.status = 0
    return 0


def _sequence(runs: list[tuple[Run, nodes.Node | None]]) -> Run:
    """Statements in order, each with the node to blame when its failure counts."""

    async def rest(sh: ShellState, number: int, pending: Awaitable[int]) -> int:
        result: Any = await pending
        budget = sh.budget
        while True:
            if result:
                node = runs[number][1]
                if node is not None and result < 256 and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
                    sh.trap_command = node
                    result = failed(sh, result)
                    if type(result) is not int:
                        result = await result
                if result > 255:
                    return int(result)
            number += 1
            if number == len(runs):
                return int(result)
            if budget.clock() >= budget.slice_end:
                await budget.yield_turn()
            result = runs[number][0](sh)
            if type(result) is not int:
                result = await result

    def all_of(sh: ShellState) -> Result:
        result: Result = 0
        number = 0
        budget = sh.budget
        clock = budget.clock
        for run, node in runs:
            result = run(sh)
            if type(result) is not int:
                return rest(sh, number, result)  # type: ignore[arg-type]
            if result:
                if result > 255:
                    return result
                if node is not None and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
                    return rest(sh, number, _ready(result))
            if clock() >= budget.slice_end:
                return rest(sh, number, _rested(sh, result))
            number += 1  # noqa: SIM113 - enumerate costs a tuple per statement
        return result

    return all_of


async def _ready(result: int) -> int:
    return result


def _plain_statement(statement: nodes.Statement) -> tuple[Run, nodes.Node | None]:
    if statement.end and statement.end != current_line():
        with AtLine(statement.end):
            return _plain_statement(statement)
    if statement.background:
        return _background(statement), None
    return compile_node(statement.node), statement.node if counts(statement.node) else None


def _statement(statement: nodes.Statement) -> Run:
    node = statement.node
    if statement.end and statement.end != current_line():
        with AtLine(statement.end):
            return _statement(statement)
    if statement.background:
        return _background(statement)
    run = compile_node(node)
    if counts(node):
        return _checked(run, node)
    return run


def counts(node: nodes.Node) -> bool:
    return isinstance(node, _CHECKED) and not (isinstance(node, nodes.Pipeline) and node.negated)


def _checked(run: Run, node: nodes.Node) -> Run:
    """A command whose failure counts."""

    def checked(sh: ShellState) -> Result:
        result = run(sh)
        if type(result) is int:
            if result and result < 256 and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
                sh.trap_command = node
                return failed(sh, result)
            return result
        return _checked_later(sh, result, node)  # type: ignore[arg-type]

    return checked


async def _checked_later(sh: ShellState, pending: Awaitable[int], node: nodes.Node) -> int:
    result: Any = await pending
    if result and result < 256 and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
        sh.trap_command = node
        result = failed(sh, result)
        if type(result) is not int:
            result = await result
    return int(result)


def compile_node(node: nodes.Node) -> Run:
    """Any command, pipeline or chain."""
    if isinstance(node, nodes.Simple):
        return compile_simple(node)
    if isinstance(node, nodes.AndOr):
        return _and_or(node)
    if isinstance(node, nodes.Pipeline):
        if node.negated and not node.timed and len(node.stages) == 1 and getattr(node.stages[0], "redirects", None):
            return _negated_inside(node, node.stages[0])
        return compile_pipeline(
            node, [(_forked_command if len(node.stages) > 1 else compile_node)(stage) for stage in node.stages]
        )
    with level as station:
        run = _COMPOUND[type(node)](node)
    if station:
        run = stationed(run)
    redirects = getattr(node, "redirects", ())
    if redirects and not isinstance(node, nodes.Subshell):
        plans = compile_redirects(redirects)
        own = isinstance(node, nodes.Cond | nodes.ArithCommand | nodes.ForArith)
        line = node.line if own else current_line() or redirects[-1].line or node.line
        inner = run
        blamed = not isinstance(node, _CHECKED)

        def redirected(sh: ShellState) -> Result:
            sh.line = line
            return drive(run_redirected(sh, plans, inner, blamed))

        return redirected
    return run


def _loop_body(node: nodes.For | nodes.Select) -> Run:
    """The body of a loop at whose line bash stands while it runs what is within."""
    with AtLine(node.line):
        return compile_script(node.body)


def _case(node: nodes.Case) -> Run:
    with AtLine(node.line):
        bodies = [compile_script(item.body) for item in node.items]
    return compile_case(node, bodies)


def _negated_inside(node: nodes.Pipeline, stage: Any) -> Run:
    """`! { a; } < file`: what `!` negates is the command, not that its redirections fail."""
    if isinstance(stage, nodes.Simple):
        return compile_pipeline(node, [compile_node(stage)])
    bare = type(stage)(**{name: () if name == "redirects" else getattr(stage, name) for name in stage._fields})
    inner = compile_pipeline(nodes.Pipeline((bare,), True, "", (), node.line), [compile_node(bare)])
    plans, line = compile_redirects(stage.redirects), current_line() or stage.redirects[-1].line or stage.line

    def redirected(sh: ShellState) -> Result:
        sh.line = line
        return drive(run_redirected(sh, plans, inner, False))

    return redirected


# ------------------------------------------------------------------------------------------------ chains and ifs


def _and_or(node: nodes.AndOr) -> Run:
    links = [("", node.first), *node.rest]
    runs = [(op == "||", compile_node(item)) for op, item in links]
    last = len(runs) - 1
    check = counts(links[-1][1])

    async def rest(sh: ShellState, number: int, pending: Awaitable[int]) -> int:
        result: Any = await pending
        if number < last:
            sh.errexit_ignored -= 1
        while result < 256 and number < last:
            number += 1
            alternative, run = runs[number]
            if (result != 0) is not alternative:
                continue
            if number < last:
                sh.errexit_ignored += 1
            result = run(sh)
            if type(result) is not int:
                result = await result
            else:
                await sh.budget.yield_turn()
            if number < last:
                sh.errexit_ignored -= 1
            elif result and result < 256 and check and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
                sh.trap_command = links[-1][1]
                result = failed(sh, result)
                if type(result) is not int:
                    result = await result
                return int(result)
        return int(result)

    async def last_rest(sh: ShellState, pending: Awaitable[int]) -> int:
        result: Any = await pending
        if result and result < 256 and check and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
            sh.trap_command = links[-1][1]
            result = failed(sh, result)
            if type(result) is not int:
                result = await result
        return int(result)

    def chain(sh: ShellState) -> Result:
        result: Any = 0
        number = 0
        budget = sh.budget
        for alternative, run in runs:
            if number and (result != 0) is not alternative:
                number += 1
                continue
            if number < last:
                sh.errexit_ignored += 1
                result = run(sh)
                if type(result) is not int:
                    return rest(sh, number, result)
                if budget.clock() >= budget.slice_end:
                    return rest(sh, number, _rested(sh, result))
                sh.errexit_ignored -= 1
                if result > 255:
                    return int(result)
            else:
                result = run(sh)
                if type(result) is not int:
                    return last_rest(sh, result)
                if result and result < 256 and check and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
                    sh.trap_command = links[-1][1]
                    return failed(sh, result)
            number += 1
        return int(result)

    return chain


def _if(node: nodes.If) -> Run:
    clauses = [(compile_script(condition), compile_script(body)) for condition, body in node.clauses]
    orelse = compile_script(node.orelse) if node.orelse is not None else _nothing

    async def rest(sh: ShellState, number: int, pending: Awaitable[int]) -> int:
        result: Any = await pending
        sh.errexit_ignored -= 1
        while True:
            if result > 255:
                return int(result)
            if result == 0:
                result = clauses[number][1](sh)
                break
            number += 1
            if number == len(clauses):
                result = orelse(sh)
                break
            sh.errexit_ignored += 1
            result = clauses[number][0](sh)
            if type(result) is not int:
                result = await result
            sh.errexit_ignored -= 1
        return int(result if type(result) is int else await result)

    def run(sh: ShellState) -> Result:
        for number, (condition, body) in enumerate(clauses):
            sh.errexit_ignored += 1
            result = condition(sh)
            if type(result) is not int:
                return rest(sh, number, result)  # type: ignore[arg-type]
            sh.errexit_ignored -= 1
            if result == 0:
                return body(sh)
            if result > 255:
                return result
        return orelse(sh)

    return run


# --------------------------------------------------------------------------------------------- other compounds


def _group(node: nodes.Group) -> Run:
    return compile_script(node.body)


def _subshell_body(script: nodes.Script) -> Run:
    """The body of a subshell: the shell becomes its one program or subshell, whose failure it does not see."""
    statement = script.statements[0] if len(script.statements) == 1 else None
    if statement is None or statement.background:
        return compile_script(script)
    node = statement.node
    if isinstance(node, nodes.Subshell):
        return compile_node(node)
    if not isinstance(node, nodes.Simple):
        return compile_script(script)
    run = compile_node(node)
    checked = _checked(run, node)
    names = [word_text(word) for word in node.words[:2] if isinstance(word, nodes.Word)]
    name = next((one for one in names if one != "command"), None)
    return lambda sh: (run if is_program(sh, name) else checked)(sh)


def _subshell(node: nodes.Subshell) -> Run:
    with AtLine(node.line):
        body = _subshell_body(node.body)
    plans = compile_redirects(node.redirects)
    line = node.line

    single = len(node.body.statements) == 1 and isinstance(node.body.statements[0].node, nodes.Simple)

    def redirected(child: ShellState) -> Result:
        return drive(_inside(child, plans, body))

    async def run(sh: ShellState) -> int:
        if sh.pending and (ends := await deliver(sh)):
            return ends
        sh.line, sh.last_command = line, node
        child = sh.fork(borrow=True)
        child.single_command = single
        status = await run_shell(child, redirected if plans else body)
        if child.death_signal and sh.single_command:
            sh.death_signal = child.death_signal
        elif child.death_signal:
            report_death(sh, child.death_signal, child.own_pid(), command_text(node))
        if sh.traps:
            child_died(sh)
        sh.pipe_statuses = None
        sh.status = status
        return status

    return lambda sh: drive(run(sh))


def _forked_command(node: nodes.Node) -> Run:
    """Compile a command that runs in a forked shell: a subshell needs no second one."""
    if isinstance(node, _TRAPLESS):
        return _without_exit_trap(compile_node(node))
    if not isinstance(node, nodes.Subshell):
        return compile_node(node)
    with AtLine(node.line):
        body = _subshell_body(node.body)
    plans = compile_redirects(node.redirects)
    line = node.line

    def run(sh: ShellState) -> Result:
        sh.line, sh.last_command = line, node
        return drive(_inside(sh, plans, body)) if plans else body(sh)

    return run


_TRAPLESS = (nodes.If, nodes.While, nodes.For, nodes.ForArith, nodes.Select, nodes.Case, nodes.AndOr)


def _without_exit_trap(inner: Run) -> Run:
    """Compile a compound in a forked shell, which runs no EXIT trap that it has set."""

    async def run(sh: ShellState) -> int:
        result: Any = inner(sh)
        if type(result) is not int:
            result = await result
        sh.traps.pop("EXIT", None)
        return int(result)

    return lambda sh: drive(run(sh))


async def _inside(child: ShellState, plans: list[RedirectPlan], body: Run) -> int:
    """The body of a subshell behind its redirections, which hold until it is gone: its last words go there too."""
    undo: Undo = []
    good = await apply(child, plans, undo)
    await keep(child, undo)
    if not good:
        return 1
    result = body(child)
    return result if isinstance(result, int) else await result


class _FirstCall:
    """The body of a function until it is made by the first call: most functions of a library are never called."""

    __slots__ = ("_node", "made")

    def __init__(self, node: nodes.Function) -> None:
        self._node = node
        self.made: Run | None = None

    def __call__(self, sh: ShellState) -> Result:
        if self.made is None:
            if self._node.size > LONG_SCRIPT:
                return drive(self._compile_offloaded(sh))
            self.made = compile_function_body(self._node)
        return self._run(sh, self.made)

    async def _compile_offloaded(self, sh: ShellState) -> int:
        self.made = await offload(sh.budget, partial(compile_function_body, self._node))
        result = self._run(sh, self.made)
        return result if isinstance(result, int) else await result

    def _run(self, sh: ShellState, body: Run) -> Result:
        name = self._node.name
        known = sh.functions.get(name)
        if known is not None and known.body is self:
            sh.functions[name] = known._replace(body=body)
        return body(sh)


def _function(node: nodes.Function) -> Run:
    body = _FirstCall(node)

    def refused(sh: ShellState, message: str) -> Result:
        sh.line = node.line
        sh.status = sh.error(message)
        if sh.errexit_ignored or not (sh.errexit or "ERR" in sh.traps):
            return 1
        sh.trap_command = sh.last_command  # a definition does not count as a command
        return failed(sh, 1)

    def define(sh: ShellState) -> Result:
        if len(node.name) > LONGEST_NAME or any(char in node.name for char in "$`'\"\\"):
            return refused(sh, f"`{node.name}': not a valid identifier")
        if sh.posix and (node.name in SPECIAL or not is_name(node.name)):
            sh.line = node.line
            what = "is a special builtin" if node.name in SPECIAL else "not a valid identifier"
            sh.flow_status = sh.status = 2
            return sh.error(f"`{node.name}': {what}", EXIT)
        if node.name in sh.functions and function_flags(sh, node.name) & READONLY:
            return refused(sh, f"{node.name}: readonly function")
        source = sh.frames[-1].source if sh.frames else sh.source or ("main" if sh.origin == "stdin" else sh.origin)
        sh.functions[node.name] = FunctionDef(node, body.made or body, source, sh.line_now(0))
        if sh.allexport:
            set_function_flags(sh, node.name, EXPORT, 0)
        sh.status = 0
        return 0

    return define


def compile_function_body(node: nodes.Function) -> Run:
    with AtLine(node.body.line):
        run = compile_node(node.body)
    return _checked(run, node.body) if counts(node.body) else run


def _arithmetic(node: nodes.ArithCommand) -> Run:
    wait, value = texts.number(node.body)
    code = texts.code_of(node.body) if FAST else None
    line = node.line

    def broken(sh: ShellState, error: Exception) -> int:
        if not isinstance(error, Readonly) and not arith.own_failure(error):
            raise error
        sh.status = sh.error("".join(("" if isinstance(error, Readonly) else "((: ", *message_of(error))))
        return sh.status

    expression = texts.expression(node.body)

    async def general(sh: ShellState, resume: Callable[[], int] | None = None) -> int:
        sh.line, sh.last_command = line, node
        if resume is None and sh.instrumented and (ends := await before_command(sh, node)) is not None:
            return ends
        evaluated = value
        if sh.xtrace:
            expanded = await expression.run(sh) if expression.wait else expression.run(sh)
            trace(sh, [f"(( {expanded} ))"], raw=True)
            evaluated = lambda sh: arith.evaluate(expanded, sh.variables)  # noqa: E731 - the trace has expanded it
        try:
            try:
                found: Any = evaluated(sh) if resume is None else await offload(sh.budget, resume)
                found = await found if wait and evaluated is value else found
            except TooLong as error:
                found = await offload(sh.budget, error.resume or partial(evaluated, sh))
            sh.status = 0 if found else 1
        except (ArithFailure, ShellError) as error:
            if isinstance(error, Fatal) or getattr(error, "status", 1) != 1:
                raise
            return broken(sh, error)
        sh.pipe_statuses = None
        return sh.status

    if wait:
        return lambda sh: drive(general(sh))

    def run(sh: ShellState) -> Result:
        sh.line, sh.last_command = line, node
        if sh.instrumented:
            return drive(general(sh))
        try:
            status = 0 if (value(sh) if code is None else code(sh.variables)) else 1
        except TooLong as error:
            return drive(general(sh, error.resume))
        except (ArithFailure, ShellError) as error:
            if isinstance(error, Fatal) or getattr(error, "status", 1) != 1:
                raise
            return broken(sh, error)
        sh.status = status
        sh.pipe_statuses = None
        return status

    return run


def _background(statement: nodes.Statement) -> Run:
    node = statement.node
    negated = isinstance(node, nodes.Pipeline) and node.negated
    if isinstance(node, nodes.Pipeline) and node.negated and node.stages:
        # `!` does not invert the status of a job.
        alone = len(node.stages) == 1 and not node.timed
        job = node.stages[0] if alone else nodes.Pipeline(node.stages, False, node.timed, node.merge, node.line)
        run = _forked_command(job)
    else:
        run = _forked_command(node)
    if isinstance(node, nodes.Cond | nodes.ArithCommand):
        run = _checked(run, node)  # other commands end with the process that was made for them
    text: list[str] = []

    def start(sh: ShellState, announced: nodes.Node | None = None) -> Result:
        if not text:
            text.append(command_text(node))
        child = sh.jobs.fork_process(sh)
        child.task_group = TaskGroup()
        child.errexit_ignored += negated and child.errexit
        child.single_command = isinstance(node, nodes.Simple)
        if child.single_command:
            child.loops = sh.loops
        child.debug_trap_command = announced
        if "monitor" not in sh.options and 0 in child.fds and child.fds[0].base:
            # Only what the shell itself was given: a pipe or a redirection around this command is meant for it.
            child.fds[0].release()
            child.fds[0] = child.open_null()
        process = sh.jobs.spawn(child, run_shell(child, _background_body(sh, run), counted=True))
        job = sh.jobs.add(process, text[0])
        if sh.interactive and not sh.sub_level and not sh.frames:
            sh.err(f"[{job.id}] {job.pid}\n")
        sh.background = process.pid
        sh.pipe_statuses = None
        sh.status = 0
        return 0

    async def watched(sh: ShellState) -> int:
        ends = await before_command(sh, node)
        if ends is not None:
            return ends
        started = start(sh, node)
        return started if isinstance(started, int) else await started

    def run_it(sh: ShellState) -> Result:
        # A simple command is announced by the shell that starts it.
        return (
            drive(watched(sh))
            if sh.instrumented and "DEBUG" in sh.traps and isinstance(node, nodes.Simple)
            else start(sh)
        )

    return run_it


def _background_body(sh: ShellState, run: Run) -> Run:
    """The body of a process that is started by `&`; a signal that comes before it has begun finds it as any other."""
    if "monitor" in sh.options:
        return run

    def begin(child: ShellState) -> Result:
        ignore_interrupts(child)
        return run(child)

    return begin


def _coproc(node: nodes.Coproc) -> Run:
    run = compile_node(node.body)

    async def start(sh: ShellState) -> int:
        from ramet.core.streams import pipe

        sh.line = node.line
        if not is_name(node.name):
            sh.status = sh.error(f"`{node.name}': not a valid identifier")
            return 1
        sh.make_room("coproc", 2)
        child = sh.jobs.fork_process(sh)
        child.task_group = TaskGroup()
        their_in, our_out = pipe()
        our_in, their_out = pipe()
        for fd, stream in ((0, their_in), (1, their_out)):
            old = child.fds.get(fd)
            if old is not None:
                old.release()
            child.fds[fd] = Description(stream)
        first = next((fd for fd in range(63, 12, -1) if fd not in sh.fds and fd - 3 not in sh.fds), None)
        if first is None:
            first = high_fd(sh.fds)
            second = high_fd((*sh.fds, first))
        else:
            second = first - 3  # the other ends of both pipes were between them
        sh.fds[first], sh.fds[second] = Description(our_in), Description(our_out)
        sh.variables.set_list(node.name, [str(first), str(second)])
        process = sh.jobs.spawn(child, run_shell(child, _background_body(sh, run), counted=True))
        job = sh.jobs.add(process, f"coproc {node.name} {command_text(node.body)}")
        sh.variables.set(f"{node.name}_PID", str(job.pid))
        sh.coprocs[node.name] = job.pid
        sh.background = job.pid
        sh.status = 0
        return 0

    return lambda sh: drive(start(sh))


_COMPOUND: dict[type, Callable[[Any], Run]] = {
    nodes.Group: _group,
    nodes.Subshell: _subshell,
    nodes.If: _if,
    nodes.While: lambda node: compile_while(node, compile_script(node.condition), compile_script(node.body)),
    nodes.For: lambda node: compile_for(node, _loop_body(node)),
    nodes.ForArith: lambda node: compile_for_arith(node, compile_script(node.body)),
    nodes.Select: lambda node: compile_select(node, _loop_body(node)),
    nodes.Case: _case,
    nodes.Function: _function,
    nodes.ArithCommand: _arithmetic,
    nodes.Cond: compile_cond,
    nodes.Coproc: _coproc,
}
