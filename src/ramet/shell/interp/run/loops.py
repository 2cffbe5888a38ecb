"""Compile loops: each runs as one coroutine that suspends when its body does or its time slice ends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH
from ramet.core.errors import reason
from ramet.core.paths import decode
from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, is_name, is_number
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import ErrexitExempt, Readonly, ShellError
from ramet.shell.expand.word import compile as words
from ramet.shell.expand.word import to_text as texts
from ramet.shell.interp.run.current_line import current_line
from ramet.shell.interp.run.maybe_async import BREAK, CONTINUE, Run, drive
from ramet.shell.interp.state.messages import message_of
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.variable_bytes import SHORT
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import ArithCommand, For, ForArith, Literal, Select, While, Word


async def yield_turn(sh: ShellState) -> None:
    """Count a turn of a loop, and yield the event loop."""
    sh.budget.turn()
    await sh.budget.yield_turn()


def compile_while(node: While, condition: Run, body: Run) -> Run:
    until = node.until

    async def loop(sh: ShellState) -> int:
        status = 0
        budget = sh.budget
        clock, counted = budget.clock, budget.limits.loop_steps is not None
        sh.loops += 1
        while True:
            sh.errexit_ignored += 1
            result: Any = condition(sh)
            if type(result) is not int:
                result = await result
            sh.errexit_ignored -= 1
            if until and result == CONTINUE:
                result = BREAK if sh.flow_n == 1 else CONTINUE  # the condition has succeeded, which ends the loop
            if result < 256:
                if (result != 0) is not until:
                    break
                result = body(sh)
                if type(result) is not int:
                    result = await result
                if result < 256:
                    status = result
            if result > 255:
                if result > CONTINUE:
                    sh.loops -= 1
                    return int(result)
                sh.flow_n -= 1
                if sh.flow_n > 0:
                    sh.loops -= 1
                    return int(result)
                status = sh.flow_status
                if result == BREAK:
                    break
            if counted or clock() >= budget.slice_end:
                await yield_turn(sh)
        sh.loops -= 1
        if sh.pipe_statuses is None and sh.status != status:
            sh.pipe_statuses = [sh.status]
        sh.status = status
        return status

    return lambda sh: drive(loop(sh))


def compile_for(node: For, body: Run) -> Run:
    name, line = node.name, node.line
    named = is_name(name)
    around = current_line() or line
    fields = words.words(node.words) if node.words is not None else None

    async def loop(sh: ShellState) -> int:
        sh.line = line
        if not named:
            sh.line = around
            sh.status = sh.error(f"`{name}': not a valid identifier")
            return sh.shell.leave(sh, 2) if sh.posix and not sh.interactive else 1
        mark = len(sh.substitutions)
        if fields is None:
            items = sh.params
        else:
            items = await words.fields_of(fields, sh)
            if sh.has_globs:
                items = await sh.shell.globbed(sh, items)
            if len(items) > sh.budget.limits.expansion_words:
                raise sh.budget.exceeded("expansion_words", "for")
        status = 0
        budget = sh.budget
        clock, counted = budget.clock, budget.limits.loop_steps is not None
        store = sh.variables
        longest = max(map(len, items), default=0)
        if longest >= SHORT or name not in store.values:
            store.charge(max(longest, SHORT))
        sh.loops += 1
        try:
            for item in items:
                if sh.instrumented:
                    sh.line = line
                    ends = await sh.shell.before_compound(sh, node)
                    if ends is not None:
                        if ends < 256:
                            status = ends
                            continue
                        if _beyond(sh, ends):
                            return ends
                        status = sh.flow_status
                        if ends == BREAK:
                            break
                        continue
                if name in store.attrs or sh.allexport:
                    try:
                        bound = _put_reference(sh, name, str(item))
                    except Readonly as error:
                        status = sh.error(error.message)
                        if sh.posix:
                            return _ended_by_posix(sh, status)
                        break
                    if not bound:
                        status = 1
                        break
                else:
                    old = sh.vars.get(name)
                    if FAST and (type(old) is str or old is None):
                        sh.vars[name] = item
                    elif not _put_reference(sh, name, str(item)):
                        status = 1
                        break
                result: Any = body(sh)
                if type(result) is not int:
                    result = await result
                if result < 256:
                    status = result
                else:
                    if result > CONTINUE:
                        return int(result)
                    sh.flow_n -= 1
                    if sh.flow_n > 0:
                        return int(result)
                    status = sh.flow_status
                    if result == BREAK:
                        break
                if counted or clock() >= budget.slice_end:
                    await yield_turn(sh)
        except BaseException:
            if len(sh.substitutions) > mark:
                await sh.shell.end_substitutions(sh, mark, cancelled=True)
            raise
        finally:
            sh.loops -= 1
            if len(sh.substitutions) > mark:
                await sh.shell.end_substitutions(sh, mark)
        sh.status = status
        return status

    return lambda sh: drive(loop(sh))


def _put_reference(sh: ShellState, name: str, item: str) -> bool:
    """The variable of a loop that is a name reference is bound anew at each turn; one that cannot be ends the loop."""
    from ramet.shell.expand.values import NameRef

    if type(sh.vars.get(name)) is not NameRef:
        sh.variables.set(name, item)
        return True
    sh.variables.assignable(name)
    try:
        sh.variables.bind(name, item)
    except ErrexitExempt as error:
        sh.complain_once(error)
        return False
    return True


_ONE: Final = Word((Literal("1"),))
"""What stands for an expression that is not there."""


async def _before(sh: ShellState, expression: ArithCommand) -> tuple[int | None, str | None]:
    """Trace an expression of `for ((...))` and run DEBUG traps; return how they end it, and its text if expanded."""
    from ramet.shell.interp.run.traps import before_command
    from ramet.shell.interp.run.xtrace import trace

    sh.line, sh.last_command = expression.line, expression
    text = None
    expanded = texts.document(expression.body)
    if sh.xtrace or ("DEBUG" in sh.traps and expanded.const is None):
        text = await expanded.run(sh) if expanded.wait else expanded.run(sh)
        expression = ArithCommand(Word((Literal(text),)), (), expression.line)
        sh.last_command = expression
    if sh.xtrace and text is not None:
        trace(sh, [f"(( {text} ))"], raw=True)
    return await before_command(sh, expression), text


def _evaluated(sh: ShellState, expression: tuple[bool, Any], text: str | None) -> Any:
    """The value of an expression, as something to await where it waits."""
    if text is None:
        return expression[1](sh)
    if not expression[0]:
        return arith.evaluate(text, sh.variables)
    return _at_once(arith.evaluate(text, sh.variables))


async def _at_once(value: int) -> int:
    return value


def _beyond(sh: ShellState, flow: int) -> bool:
    """Whether control flow that a trap started here is for something around this loop."""
    if flow > CONTINUE:
        return True
    sh.flow_n -= 1
    return sh.flow_n > 0


def compile_for_arith(node: ForArith, body: Run) -> Run:
    parts = [texts.number(word) if word.parts else None for word in (node.init, node.condition, node.step)]
    init, condition, step = parts
    line = node.line
    commands = [ArithCommand(word if word.parts else _ONE, (), line) for word in (node.init, node.condition, node.step)]

    async def loop(sh: ShellState) -> int:
        status = 0
        budget = sh.budget
        clock, counted = budget.clock, budget.limits.loop_steps is not None
        inside = False  # failures in the body are not those of the loop's expressions
        sh.line = line
        sh.loops += 1
        try:
            text: str | None = None
            if sh.instrumented:
                ends, text = await _before(sh, commands[0])
                if ends is not None:
                    return ends if ends < 256 or _beyond(sh, ends) else 0
            if init is not None:
                found = _evaluated(sh, init, text)
                if init[0]:
                    await found
            while True:
                text = None
                if sh.instrumented:
                    ends, text = await _before(sh, commands[1])
                    if ends is not None and ends > 255:
                        if _beyond(sh, ends):
                            return ends
                        break
                if condition is not None:
                    found = condition[1](sh) if text is None else _evaluated(sh, condition, text)
                    if condition[0]:
                        found = await found
                    if not found:
                        break
                inside = True
                result: Any = body(sh)
                if type(result) is not int:
                    result = await result
                inside = False
                if result < 256:
                    status = result
                else:
                    if result > CONTINUE:
                        return int(result)
                    sh.flow_n -= 1
                    if sh.flow_n > 0:
                        return int(result)
                    status = sh.flow_status
                    if result == BREAK:
                        break
                text = None
                if sh.instrumented:
                    ends, text = await _before(sh, commands[2])
                    if ends is not None and ends > 255:
                        if _beyond(sh, ends):
                            return ends
                        if ends == BREAK:
                            break
                if step is not None:
                    found = step[1](sh) if text is None else _evaluated(sh, step, text)
                    if step[0]:
                        await found
                if counted or clock() >= budget.slice_end:
                    await yield_turn(sh)
        except (ArithFailure, ShellError) as error:
            if inside or not (isinstance(error, Readonly) or arith.own_failure(error)):
                raise
            sh.line = line
            sh.complain("".join(("" if isinstance(error, Readonly) else "((: ", *message_of(error))))
            status = 1
        finally:
            sh.loops -= 1
        sh.status = status
        return status

    return lambda sh: drive(loop(sh))


def _ended_by_posix(sh: ShellState, status: int) -> int:
    """By POSIX's rules a shell does not outlive a loop over what cannot be assigned to."""
    alone = sh.origin == "environment" and not sh.sub_level
    return sh.shell.leave(sh, 127 if alone else status)


def compile_select(node: Select, body: Run) -> Run:
    around = current_line() or node.line
    fields = words.words(node.words) if node.words is not None else None

    async def loop(sh: ShellState) -> int:
        sh.line, sh.last_command = node.line, node
        if sh.instrumented and (ends := await sh.shell.before_compound(sh, node)) is not None:
            return ends
        if not is_name(node.name):
            sh.line = around
            sh.status = sh.error(f"`{node.name}': not a valid identifier")
            return 1
        if fields is None:
            items = sh.params
        else:
            items = await words.fields_of(fields, sh)
            if sh.has_globs:
                items = await sh.shell.globbed(sh, items)
        if not items:
            sh.status = 0
            return 0
        status = 0
        show = True
        sh.loops += 1
        try:
            while True:
                if show:
                    await sh.say(await offload_large(sh.budget, len(items), partial(menu, sh, items), BATCH))
                prompt = sh.variables.get("PS3")
                await sh.say("#? " if prompt is None else prompt)
                try:
                    data = await sh.reader(0).readline()
                except OSError as error:
                    sh.complain(f"read error: 0: {reason(error)}")
                    data = b""
                if not data:
                    sh.out(b"\n", "select")
                    status = 1
                    break
                reply = decode(data.removesuffix(b"\n"))
                sh.variables.set("REPLY", reply)
                show = not reply or reply.isspace()
                if show:
                    continue
                number = int(reply) if len(reply) <= LONGEST_NUMBER and is_number(reply.strip()) else 0
                try:
                    sh.variables.set(node.name, str(items[number - 1]) if 1 <= number <= len(items) else "")
                except Readonly as error:
                    status = sh.error(error.message)
                    if sh.posix:
                        return _ended_by_posix(sh, status)
                    break
                result: Any = body(sh)
                if type(result) is not int:
                    result = await result
                if result < 256:
                    status = result
                else:
                    if result > CONTINUE:
                        return int(result)
                    sh.flow_n -= 1
                    if sh.flow_n > 0:
                        return int(result)
                    status = sh.flow_status
                    if result == BREAK:
                        break
                show = not sh.variables.get("REPLY")
                await yield_turn(sh)
        finally:
            sh.loops -= 1
        sh.status = status
        return status

    return lambda sh: drive(loop(sh))


def menu(sh: ShellState, items: list[str]) -> str:
    """The numbered list that `select` shows, in columns that tabs lead to."""
    return "".join(_menu_pieces(sh, items))


def _menu_pieces(sh: ShellState, items: list[str]) -> Iterator[str]:
    width = len(str(len(items)))
    columns_text = sh.variables.get("COLUMNS") or ""
    total = int(columns_text) if is_number(columns_text) and int(columns_text) > 0 else 80
    cell = width + 2 + max(len(item) for item in items) + 2
    columns = max(1, total // cell)
    rows = -(-len(items) // columns)
    columns = -(-len(items) // rows)
    if rows == 1:
        rows, columns = columns, 1
    first = len(str(rows))
    for row in range(rows):
        place = length = 0
        for index in range(row, len(items), rows):
            if index >= rows:
                yield _gap(place - cell + length, place)
            number = f"{index + 1:>{width if place else first}}) "
            yield number
            yield items[index]
            length = len(number) + len(items[index])
            place += cell
        yield "\n"


def _gap(start: int, stop: int) -> str:
    """What leads from one column to another on a line, by tabs as far as they reach."""
    out = ""
    while start < stop:
        if stop // 8 > start // 8:
            out += "\t"
            start += 8 - start % 8
        else:
            out += " "
            start += 1
    return out
