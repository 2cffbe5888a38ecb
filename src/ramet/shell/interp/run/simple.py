"""Compile simple commands: expansion, assignments, redirections, lookup, and the call.

A simple command is compiled to the first of these ways that fits:

1. Nothing is left of it (an empty alias): `_nothing_read`.
2. It has no words, only assignments or redirections: `nameless.py`.
3. Assignments stand before a quick builtin (`IFS= read -r x`): `fast/prefix_assign.py`.
4. It has assignments or redirections, or expanding its words may wait: `_general`, the way that all others equal.
5. It is `local name=value`: `fast/local.py`.
6. It calls a function, builtin or program: `fast/call.py`.

Ways 3, 5 and 6 go on in `_general` when they find anything unusual at run time. `RAMET_PLAIN=1` switches them off.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import takewhile
from typing import Any, Final

from ramet.concurrency.sizes import BATCH
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Fatal, LineError, Readonly, ShellError
from ramet.shell.expand.values import EXPORT, Assoc, Dynamic, Indexed, NameRef
from ramet.shell.expand.word import compile as words
from ramet.shell.expand.word.braces import TooManyWords, expand_braces, has_braces
from ramet.shell.interp.builtins import BUILTINS
from ramet.shell.interp.builtins.lookup import SPECIAL
from ramet.shell.interp.fast.call import compile_call
from ramet.shell.interp.fast.local import compile_local
from ramet.shell.interp.fast.prefix_assign import compile_prefixed
from ramet.shell.interp.process.jobs import report_death
from ramet.shell.interp.run.assign import (
    Assign,
    AssignWord,
    compile_assign,
    compile_before_command,
    put,
    word_of,
)
from ramet.shell.interp.run.builtin_status import ends_shell, last_argument
from ramet.shell.interp.run.external import run_external
from ramet.shell.interp.run.functions import call_function
from ramet.shell.interp.run.maybe_async import EXIT, Result, Run, drive
from ramet.shell.interp.run.nameless import assignments, bare_redirected, perform
from ramet.shell.interp.run.redirect import RedirectPlan, Undo, apply, compile_redirects, in_process, keep, restore
from ramet.shell.interp.run.subshell import run_shell
from ramet.shell.interp.run.traps import announce, before_command, child_died, exit_redirected
from ramet.shell.interp.run.xtrace import trace_array, trace_value
from ramet.shell.interp.state.assignment_hooks import OPTION_VARIABLES, option_restorer
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.shell.interp.state.special_variables import PLAIN_COMPUTED
from ramet.shell.interp.state.variables import TRANSFORM
from ramet.shell.syntax.nodes import Assignment, Literal, Simple, Word
from ramet.shell.syntax.printer import command_text

Expand = Callable[[ShellState], Any]
"""The words of a command as fields, at once or later."""


def compile_simple(node: Simple) -> Run:
    assigns = [(compile_before_command if node.words else compile_assign)(assign) for assign in node.assigns]
    redirects = compile_redirects(node.redirects)
    if not node.words:
        if not assigns and not redirects:
            return _nothing_read
        if redirects:
            return bare_redirected(node, assigns, redirects)
        return assignments(node, assigns)
    run = _with_words(node, assigns, redirects)
    arguments = node.words[1:]
    rest = tuple(word for word in arguments if _keyword(word) is None)
    if len(rest) == len(arguments):
        return run
    found = [assignment for word in arguments if (assignment := _keyword(word)) is not None]
    other: list[Run] = []

    def perhaps(sh: ShellState) -> Result:
        """`set -k`: assignments are made for the command wherever they stand."""
        if not sh.instrumented or "keyword" not in sh.options:
            return run(sh)
        if not other:
            all_of = [*assigns, *map(compile_assign, found)]
            moved = Simple((*node.assigns, *found), (node.words[0], *rest), node.redirects, node.line)
            other.append(_with_words(moved, all_of, redirects))
        return other[0](sh)

    return perhaps


_KEYWORD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,65535}+)(\+?)=", re.ASCII).match


def _keyword(word: Word | Assignment) -> Assignment | None:
    """The assignment that an argument is under `set -k`."""
    if isinstance(word, Assignment):
        return word if word.subscript is None and isinstance(word.value, Word) else None
    first = word.parts[0] if word.parts else None
    if type(first) is not Literal or "=" not in first.text or (m := _KEYWORD(first.text)) is None:
        return None
    value = first.text[m.end() :]
    return Assignment(m[1], None, bool(m[2]), Word((*([Literal(value)] if value else []), *word.parts[1:])))


def _with_words(node: Simple, assigns: list[Assign], redirects: list[RedirectPlan]) -> Run:
    wait, expand = _arguments(node.words)
    if assigns and not wait:
        prefixed = compile_prefixed(node, expand, partial(_resumed, node, expand, assigns))
        if prefixed is not None:
            return prefixed
    general: Run = lambda sh: drive(_general(sh, None, node, expand, wait, assigns, redirects))  # noqa: E731
    if wait or assigns or redirects:
        return general
    slow = partial(_resumed, node, expand, [])
    if not any(isinstance(word, Assignment) and _braced(word) for word in node.words):
        local = compile_local(node, slow)
        if local is not None:
            return local
    return compile_call(node, expand, slow, partial(_program, node)) or general


async def _resumed(node: Simple, expand: Expand, assigns: list[Assign], sh: ShellState, argv: Any) -> int:
    """Go on in the general way with words that are expanded (a list), an awaitable for them, or None."""
    words = argv if argv is None or type(argv) is list else await argv
    return await _general(sh, words, node, expand, False, assigns, [])


def _nothing_read(sh: ShellState) -> Result:
    """An alias that turned out to be empty, or a comment: not even `$?` changes."""
    return 0


def _braced(word: Assignment) -> bool:
    return isinstance(word.value, Word) and has_braces(word.value)


def _unbraced(word: Word | Assignment) -> Iterable[Word | Assignment]:
    """`declare a=x{1,2}`: unlike a plain assignment, an argument is subject to brace expansion."""
    if isinstance(word, Word) or not isinstance(word.value, Word) or not _braced(word):
        return (word,)
    try:
        return [
            Assignment(word.name, word.subscript, word.append, value) for value in expand_braces(word.value, _BRACES)
        ]
    except TooManyWords:
        return (word,)


_BRACES: Final = 1000
"""Assignments that one argument may stand for."""


def _arguments(sources: tuple[Word | Assignment, ...]) -> tuple[bool, Callable[[ShellState], Any]]:
    """The words of a command, with the assignments among the arguments of a declaration builtin."""
    plain = [word for word in sources if isinstance(word, Word)]
    if len(plain) < len(sources):
        sources = tuple(one for word in sources for one in _unbraced(word))
    if len(plain) == len(sources):
        compiled = words.words(plain)
        return compiled.wait, compiled.run
    keyed = any(_KEYED(word.parts[0].text) for word in plain if word.parts and isinstance(word.parts[0], Literal))
    plans: list[tuple[words.Words | None, Assign | None]] = [
        (words.words((word,)), None) if isinstance(word, Word) else (None, compile_assign(word, keyed, argument=True))
        for word in sources
    ]
    waits = any((fields or assign).wait for fields, assign in plans if fields or assign)  # type: ignore[union-attr]

    async def rest(sh: ShellState, out: list[str], start: int, pending: Awaitable[Any] | None) -> list[str]:
        if pending is not None:
            found = await pending
            out += found if type(found) is list else (found,)
        for place in range(start, len(plans)):
            fields, assign = plans[place]
            if place and not place % BATCH:
                await sh.budget.yield_turn()
            if fields is not None:
                out += await words.fields_of(fields, sh)
            elif assign is not None:
                word = await word_of(assign, sh)
                more = place + 1 < len(plans)
                out.append(await _declared(sh, out, word) if more and word.items is not None else word)
        return out

    if not waits and len(plans) <= BATCH:

        def run(sh: ShellState) -> Any:
            out: list[str] = []
            place = 0
            for fields, assign in plans:
                place += 1  # noqa: SIM113 - enumerate costs a tuple per word
                if fields is not None:
                    found = fields.run(sh)
                    if type(found) is not list:
                        return rest(sh, out, place, found)
                    out += found
                elif assign is not None:
                    word = assign.word(sh)
                    if type(word) is not AssignWord:
                        return rest(sh, out, place, word)
                    out.append(word)
            return out

        return False, run

    async def waiting(sh: ShellState) -> list[str]:
        return await rest(sh, [], 0, None)

    return True, waiting


async def _declared(sh: ShellState, before: list[str], word: AssignWord) -> str:
    """`local a=(1 2) b=("${a[@]}")`: an array is declared before the words that follow it are expanded."""
    builtin = before[0] if before else ""
    given = [one for one in before[1:] if not isinstance(one, AssignWord)]
    options = list(takewhile(lambda one: one[:1] in ("-", "+"), given))
    if any(map(_KEYED, given[len(options) :])):  # after a name it is not an option, and yet arrays obey it
        options.append("-A")
    usual = set("".join(options)) <= _USUAL and not (builtin == "local" and not sh.frames)
    if builtin not in (*_DECLARING, "local") or builtin in sh.functions or not usual:
        return word
    if sh.xtrace:
        trace_array(sh, word)
    result = BUILTINS[builtin](sh, [builtin, *options, word])
    status = result if isinstance(result, int) else await result
    return word if status else word.name


_USUAL: Final = frozenset("-+aAgiIlnrtuxc")
"""Options that declare."""


_KEYED: Final = re.compile(r"-[a-zA-Z]*A").match
"""The option that makes associative arrays of what is declared."""


# ------------------------------------------------------------------------------------------------ with a command


async def _program(node: Simple, sh: ShellState, argv: list[str]) -> int:
    result = await _external(sh, argv)
    if sh.command_death or sh.jobs.jobs:
        _report_deaths(sh, node)
    return result


def _report_deaths(sh: ShellState, node: Simple) -> None:
    """Report what a signal killed while the command ran: its own process, and jobs."""
    if sh.command_death:
        (number, pid), sh.command_death = sh.command_death, None
        report_death(sh, number, pid, command_text(node))
    sh.jobs.report_killed(sh)
    sh.jobs.drop_reported()


async def _external(sh: ShellState, argv: list[str]) -> int:
    result = await run_external(sh, argv)
    if sh.traps and not sh.single_command:
        child_died(sh)
    sh.last_arg = argv[-1]
    sh.pipe_statuses = None
    if result < 256:
        sh.status = result
    return result


async def _general(
    sh: ShellState,
    argv: list[str] | None,
    node: Simple,
    expand: Callable[[ShellState], Any],
    wait: bool,
    assigns: list[Assign],
    redirects: list[RedirectPlan],
) -> int:
    """A command in its whole generality; `argv` when its words are expanded already."""
    mark = len(sh.substitutions)
    sh.line, sh.last_command = node.line, node
    sh.substitution_status = None
    try:
        if argv is None:
            if sh.instrumented and (ends := await before_command(sh, node)) is not None:
                return ends
            found = await expand(sh) if wait else expand(sh)
            argv = found if type(found) is list else await found
        if sh.has_globs:
            argv = await sh.shell.globbed(sh, argv)
        if len(argv) > sh.budget.limits.expansion_words:
            raise sh.budget.exceeded("expansion_words", argv[0])
        if not argv:
            return await _nothing(sh, node, assigns, redirects)
        if assigns:
            result = await _with_assignments(sh, node, argv, assigns, redirects)
        else:
            result = await _watched(sh, node, argv, redirects, False)
        if sh.command_death or (sh.jobs.jobs and _is_program(sh, argv[0])):
            _report_deaths(sh, node)
        return result
    except BaseException:
        if len(sh.substitutions) > mark:
            await sh.shell.end_substitutions(sh, mark, cancelled=True)
        raise
    finally:
        if len(sh.substitutions) > mark:
            await sh.shell.end_substitutions(sh, mark)


async def _nothing(sh: ShellState, node: Simple, assigns: list[Assign], redirects: list[RedirectPlan]) -> int:
    """All words vanished: what is left are assignments and redirections."""
    status = sh.substitution_status or 0
    undo: Undo = []
    try:
        if not await apply(sh, redirects, undo):
            sh.status = 1
            return 1
        await perform(sh, assigns)
    finally:
        await restore(sh, undo)
    sh.pipe_statuses = None
    sh.last_arg = ""
    sh.status = (sh.substitution_status or 0) if assigns else status
    return sh.status


async def _with_assignments(
    sh: ShellState, node: Simple, argv: list[str], assigns: list[Assign], redirects: list[RedirectPlan]
) -> int:
    """`x=1 command`: the variables exist, exported, while the command runs."""
    store = sh.variables
    lasting = sh.posix and argv[0] in SPECIAL and argv[0] not in sh.disabled
    store.push(temporary=True)
    if argv[0] in _DECLARING:
        store.scopes[-1].temps.add("=")
    depth = len(store.scopes)
    bound: dict[str, Any] = {}
    effects = (
        () if lasting else [option_restorer(sh, assign.name) for assign in assigns if assign.name in OPTION_VARIABLES]
    )
    sh.depth += 1
    try:
        for place, assign in enumerate(assigns):
            if place and not place % BATCH:
                await sh.budget.yield_turn()
            if assign.node.subscript is not None:
                sh.complain(f"`{assign.trace_head.rstrip('+=')}': not a valid identifier")
                continue
            try:
                store.writable(assign.name)
            except Readonly as error:
                if sh.errexit:
                    raise Fatal(error.parts) from None
                if sh.posix:
                    raise LineError(error.parts) from None
                sh.complain_once(error)
                continue
            assign = assign.flat or assign
            store.save(assign.name)
            target = assign.name
            if not assign.node.append and not lasting:  # its value is that of the environment, as it is
                store.flag(target, remove=TRANSFORM)
            if type(store.values.get(target)) is NameRef:
                target, deeper = store.follow(target)
                if deeper is not None or not target:
                    continue  # an element cannot be put into an environment
                store.save(target)
            if not lasting and (
                isinstance(found := store.values.get(target), Indexed | Assoc)
                or (type(found) is Dynamic and target in PLAIN_COMPUTED)
            ):
                await _as_text(sh, assign, target)
            elif assign.node.append and sh.xtrace:
                word = await word_of(assign, sh)
                put(sh, word.name, word.value, True)
                trace_value(sh, f"{assign.name}=", store.get(target) or "")
            else:
                await perform(sh, [assign])
            store.flag(target, EXPORT, 0 if lasting else TRANSFORM)
        if argv[0] not in _BINDING:
            return await _watched(sh, node, argv, redirects, True)
        given = {assign.name: store.values.get(assign.name) for assign in assigns}
        result = await _watched(sh, node, argv, redirects, True)
        bound = {name: value for name in given if (value := store.values.get(name)) is not given[name]}
        return result
    finally:
        sh.depth -= 1
        if len(store.scopes) >= depth:
            if lasting:  # before a special builtin they are assignments like any other
                store.scopes.pop()
            else:
                store.pop()
        for undo in effects:
            undo()
        for name, value in bound.items():
            if type(value) is str:
                put(sh, name, value)
        if any(assign.name == "PATH" for assign in assigns):
            sh.hashed.clear()


async def _as_text(sh: ShellState, assign: Assign, target: str) -> None:
    """An array, or what is computed, is a plain variable while a command runs that has an assignment to it."""
    word = await word_of(assign, sh)
    old = (sh.variables.get(target) or "") if word.append else ""
    value = old + word.value
    if sh.xtrace:
        trace_value(sh, f"{assign.name}=", value)
    sh.variables.values[target] = value


_DECLARING: Final = ("declare", "export", "readonly", "typeset")
_BINDING: Final = ("getopts", "let", "printf")
"""Builtins that assign to the variable itself, not to the one that is there while they run: `x=1 let x=2`."""


async def _watched(sh: ShellState, node: Simple, argv: list[str], redirects: list[RedirectPlan], scoped: bool) -> int:
    if sh.instrumented and not await announce(sh, argv):
        return sh.status
    name = argv[0]
    if not redirects:
        return await invoke(sh, argv, scoped)
    if in_process(sh, redirects) and _is_program(sh, name):
        return await _in_its_process(sh, argv, redirects)
    undo: Undo = []
    kept = False
    result = 1
    try:
        if not await _redirected(sh, redirects, undo, scoped):
            sh.status = 1
            return sh.shell.leave(sh, 1) if sh.posix and name in SPECIAL else 1
        if name == "exec" and len(argv) == 1 and name not in sh.functions:
            kept = True
            await keep(sh, undo, lasting=True)
            sh.status = 0
            return 0
        sh.redirected_calls += 1
        sh.depth += 1
        try:
            result = await invoke(sh, argv, scoped)
        finally:
            sh.redirected_calls -= 1
            sh.depth -= 1
        if name == "exec" and name not in sh.functions and result == 2:
            kept = True  # its words were wrong, its redirections were not
            await keep(sh, undo, lasting=True)
        if result == EXIT and not sh.errexit_ended:
            await exit_redirected(sh)
    except (ShellError, ArithFailure) as error:
        sh.complain_once(error)
        raise
    finally:
        if undo and not kept and not await restore(sh, undo) and result == 0:
            sh.status = result = 1
    return result


def _is_program(sh: ShellState, name: str) -> bool:
    return name not in sh.functions and (name not in BUILTINS or name in sh.disabled)


async def _in_its_process(sh: ShellState, argv: list[str], redirects: list[RedirectPlan]) -> int:
    """A program whose redirections assign variables or may fail: none of that is seen outside of its process."""
    child = sh.fork(borrow=True)
    child.single_command, child.stage_command = True, child

    async def body(own: ShellState) -> int:
        undo: Undo = []
        good = await apply(own, redirects, undo)
        await keep(own, undo)
        return await _external(own, argv) if good else 1

    sh.status = await run_shell(child, lambda own: drive(body(own)))
    if sh.traps:
        child_died(sh)
    if child.death_signal:
        sh.command_death = child.death_signal, child.own_pid()
    sh.last_arg = argv[-1]
    sh.pipe_statuses = None
    return sh.status


async def _redirected(sh: ShellState, redirects: list[RedirectPlan], undo: Undo, scoped: bool) -> bool:
    """Apply redirections; the assignments before the command are not for them to see."""
    if not scoped:
        return await apply(sh, redirects, undo)
    sh.variables.exchange()
    try:
        return await apply(sh, redirects, undo)
    finally:
        sh.variables.exchange()


async def invoke(sh: ShellState, argv: list[str], scoped: bool = False, functions: bool = True) -> int:
    """Run a command whose words are final: a function, a builtin, or a program."""
    name = argv[0]
    if functions:
        function = sh.functions.get(name)
        if function is not None and not (sh.posix and name in SPECIAL):
            sh.last_arg = argv[-1]
            result: Any = call_function(sh, function, argv, scoped)
            if type(result) is not int:
                result = await result
            sh.last_arg = str(argv[-1])
            if result < 256:
                sh.status = result
            return int(result)
    builtin = BUILTINS.get(name)
    if builtin is None or name in sh.disabled:
        return await _external(sh, argv)
    result = await run_builtin(sh, builtin, argv)
    if result and functions and sh.posix and ends_shell(sh, name, result):
        return sh.shell.leave(sh, result)
    return int(result)


async def run_builtin(sh: ShellState, builtin: Builtin, argv: list[str]) -> int:
    result: Any = builtin(sh, argv)
    if type(result) is not int:
        result = await result
    sh.last_arg = last_argument(argv[-1])
    sh.pipe_statuses = None
    if result < 256:
        sh.status = result
    return int(result)


__all__ = ["compile_simple", "invoke", "run_builtin"]
