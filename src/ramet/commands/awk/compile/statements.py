"""Compile awk statements to indented Python statements."""

from __future__ import annotations

from typing import Any

from ramet.commands.awk.compile.analyze import walk
from ramet.commands.awk.compile.append import added, chosen, is_quiet
from ramet.commands.awk.compile.batch_rules import FastEmitter
from ramet.commands.awk.compile.emit import Emitter
from ramet.commands.awk.syntax.tree import (
    Assign,
    Block,
    Delete,
    DoWhile,
    Exit,
    Expr,
    ExprStmt,
    Field,
    For,
    ForIn,
    If,
    Index,
    Num,
    Print,
    Regex,
    Return,
    Simple,
    Step,
    Stmt,
    Switch,
    Var,
    While,
)


class StatementWriter:
    """Python statements for awk statements, indented as they nest."""

    def __init__(self, emitter: Emitter, place: str, waiting: bool) -> None:
        self.e, self.place, self.waiting = emitter, place, waiting
        emitter.awaits = waiting
        self.lines: list[str] = []
        self.where: list[int] = []
        """The line of the awk program that each line of the code comes from."""
        self.depth = 1
        self.loops: list[tuple[str, Any]] = []
        self.counted = False

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)
        self.where.append(self.e.line)

    def body(self, statements: tuple[Stmt, ...] | Stmt) -> None:
        self.depth += 1
        before = len(self.lines)
        for statement in statements if isinstance(statements, tuple) else (statements,):
            self.statement(statement)
        if len(self.lines) == before:
            self.put("pass")
        self.depth -= 1

    def statement(self, node: Stmt) -> None:
        around = self.e.line
        self.e.enter(node)
        getattr(self, f"_{type(node).__name__.lower()}")(node)
        self.e.line = around

    def _block(self, node: Block) -> None:
        for statement in node.body:
            self.statement(statement)

    # ------------------------------------------------------------------ expressions as statements

    def _exprstmt(self, node: ExprStmt) -> None:
        expr, e = node.expr, self.e
        if isinstance(expr, Assign) and self.lengthen(expr):
            return
        if isinstance(expr, Assign) and isinstance(expr.target, (Var, Index)) and not _changes(expr):
            target = expr.target
            if isinstance(target, Var) and not e.is_special(target.name) and not e.is_array(target):
                name = e.variable(target.name)
                if e.is_traced(target.name):
                    self.put(e.value(expr))
                elif expr.op == "=":
                    self.put(f"{name} = {e.value(expr.value)}")
                elif self.place == "fast" and expr.op in ("+=", "-="):
                    amount = self.operand(expr.value)
                    if not amount.isidentifier():
                        # Evaluated once, whatever the variable turns out to hold.
                        once = e.temp()
                        self.put(f"{once} = {amount}")
                        amount = once
                    self.put(f"try: {name} {expr.op} {amount}")
                    self.put(f"except TypeError: {name} = num({name}) {expr.op[0]} {amount}")
                else:
                    self.put(f"{name} = {e.arithmetic(expr.op[:-1], e.number(target), self.operand(expr.value), '=')}")
                return
            if isinstance(target, Index) and expr.op == "=" and "subarrays" in e.facts.uses:
                self.put(e.store(target, e.value(expr.value)))
                return
            if isinstance(target, Index):
                if expr.op == "=":
                    self.put(f"{e.array(target.name)}[{e.key(target.subscripts)}] = {e.value(expr.value)}")
                else:
                    array, key, old = self.holder(target), e.temp(), e.temp()
                    self.put(f"{key} = {e.key(target.subscripts)}")
                    self.put(f"{old} = {array}.get({key})")
                    number = f"({old} if {old}.__class__ is float else num({old}))"
                    self.put(f"{array}[{key}] = {e.arithmetic(expr.op[:-1], number, e.number(expr.value), '=')}")
                return
        if isinstance(expr, Step) and isinstance(expr.target, (Var, Index)):
            amount = "+ 1.0" if expr.amount > 0 else "- 1.0"
            target = expr.target
            if isinstance(target, Var) and not e.is_special(target.name) and not e.is_array(target):
                self.put(f"{e.variable(target.name)} = {e.number(target)} {amount}")
                return
            if isinstance(target, Index):
                array, key, old = self.holder(target), e.temp(), e.temp()
                self.put(f"{key} = {e.key(target.subscripts)}")
                self.put(f"{old} = {array}.get({key})")
                self.put(f"{array}[{key}] = ({old} if {old}.__class__ is float else num({old})) {amount}")
                return
        self.put(e.value(expr))

    def lengthen(self, node: Assign) -> bool:
        """Return code for an assignment that puts something behind what is there, if it is one."""
        e, target = self.e, node.target
        rest = added(node)
        if not rest:
            choice = chosen(node)
            if choice is None or not e.lengthened(target):
                return False
            self._if(choice)
            return True
        place = e.lengthened(target)
        if not place:
            return False
        if isinstance(target, Index):
            key = e.temp()
            self.put(f"{key} = {e.key(target.subscripts)}")
            place = f"{place}[{key}]"
        grown, more = e.temp(), e.temp()
        self.put(f"{grown} = {place}")
        self.put(f"if {grown}.__class__ is not str: {grown} = text({grown})")
        parts = "".join(f"{e.text(part)}, " for part in rest)
        # A `Field` would be appended by copying; joined, it is a plain str.
        self.put(f"{more} = ''.join(({parts}))")
        if isinstance(target, Index) and not all(is_quiet(part) for part in rest):
            self.put(f"{key} = {e.key(target.subscripts)}")
        self.put(f"{place} = None")
        self.put(f"{grown} += {more}")
        self.put(f"if len({grown}) > R.longest: R.grown({grown})")
        self.put(f"{place} = {grown}; {grown} = None")
        return True

    def holder(self, target: Index) -> str:
        """Return the array whose element a statement changes, found once."""
        if not target.outer:
            return self.e.array(target.name)
        array = self.e.temp()
        self.put(f"{array} = {self.e.within(target)}")
        return array

    def operand(self, node: Expr) -> str:
        """Return a number for a statement; in batch rules a field is converted inline, without a call."""
        e = self.e
        if (
            self.place != "fast"
            or not isinstance(node, Field)
            or not isinstance(node.number, Num)
            or not node.number.value
        ):
            return e.number(node)
        text, found = e.temp(), e.temp()
        if isinstance(e, FastEmitter) and e.presplit:
            # The field nearly always exists: an exception costs nothing then.
            at = int(node.number.value) - 1
            self.put("if T is not None:")
            self.put(f"    try: {found} = T[F[{at}]]")
            self.put(f"    except IndexError: {found} = 0.0")
            self.put("else:")
            self.put("    try:")
            self.put(f"        {text} = F[{at}]")
            self.put(f"        {found} = float({text})")
            self.put(f"        if {found} - {found} or '_' in {text}: {found} = to_number({text})")
            self.put(f"    except IndexError: {found} = 0.0")
            self.put(f"    except ValueError: {found} = to_number({text})")
            return found
        else:
            self.put(f"{text} = {e.field_text(node)}")
            self.put("try:")
            self.put(f"    {found} = float({text})")
            self.put(f"    if {found} - {found} or '_' in {text}: {found} = to_number({text})")
        self.put(f"except ValueError: {found} = to_number({text})")
        return found

    def _print(self, node: Print) -> None:
        e = self.e
        if node.formatted:
            values = "".join(f"{e.value(arg)}, " for arg in node.args[1:])
            data = f"sprintf({e.text(node.args[0])}, ({values}), R.convfmt)"
        elif not node.args:
            data = f"{e.field_text(Field(Num(0.0)))} + R.ors"
        else:
            data = " + R.ofs + ".join(e.shown(arg) for arg in node.args) + " + R.ors"
        if node.redirect:
            assert node.target is not None
            self.put(f"(await R.sink({node.redirect!r}, {e.text(node.target)})).write({data})")
        else:
            self.put(f"O({data})")

    def _delete(self, node: Delete) -> None:
        array = self.e.within(node)
        if node.subscripts is None:
            self.put(f"{array}.clear()")
        else:
            self.put(f"{array}.pop({self.e.key(node.subscripts)}, None)")

    # ------------------------------------------------------------------ control

    def _if(self, node: If) -> None:
        self.put(f"if {self.e.condition(node.test)}:")
        self.body(node.yes)
        if node.no is not None:
            self.put("else:")
            self.body(node.no)

    def tick(self) -> None:
        """Check the budget in a loop now and then, and yield where the code can await."""
        self.counted = True
        self.put("_n += 1")
        self.put("if not _n & 31 and R.due(): await R.yield_turn()" if self.waiting else "if not _n & 1023: R.tidy()")

    def called(self) -> None:
        """Check the budget in a recursive function."""
        self.put("R.calls += 1")
        wait, look = "if not R.calls & 31 and R.due(): await R.yield_turn()", "if not R.calls & 1023: R.tidy()"
        self.put(wait if self.waiting else look)

    def head(self, test: Expr | None) -> None:
        """Begin a loop. Python 3.11 specializes `while True`, not a loop with a test."""
        self.put("while True:")
        if test is not None:
            self.put(f"    if not {self.e.condition(test)}: break")

    def _while(self, node: While) -> None:
        self.head(node.test)
        self.loops.append(("while", None))
        self.body(node.body)
        self.depth += 1
        self.tick()
        self.depth -= 1
        self.loops.pop()

    def _dowhile(self, node: DoWhile) -> None:
        self.put("while True:")
        self.loops.append(("do", node.test))
        self.body(node.body)
        self.depth += 1
        self.tick()
        around = self.e.line
        self.e.enter(node.test)
        self.put(f"if not {self.e.condition(node.test)}: break")
        self.e.line = around
        self.depth -= 1
        self.loops.pop()

    def _for(self, node: For) -> None:
        if node.start is not None:
            self.statement(node.start)
        self.head(node.test)
        self.loops.append(("for", node.step))
        self.body(node.body)
        self.depth += 1
        if node.step is not None:
            self.statement(node.step)
        self.tick()
        self.depth -= 1
        self.loops.pop()

    def _forin(self, node: ForIn) -> None:
        key = self.e.temp()
        if self.e.is_traced(node.name):
            self.put(self.e.touched(node.name, "None"))
        array = self.e.nested(self.e.array(node.array), node.outer)
        self.put(f"for {key} in {'await offload_keys' if self.waiting else 'keys'}(R, {array}):")
        self.depth += 1
        self.tick()
        self.put(self.e.store(Var(node.name), key))
        self.depth -= 1
        self.loops.append(("in", None))
        self.body(node.body)
        self.loops.pop()

    def _switch(self, node: Switch) -> None:
        subject, at, again = self.e.temp(), self.e.temp(), self.e.temp()
        self.put(f"{subject} = {self.e.value(node.subject)}")
        self.put(f"{again} = False")
        default = len(node.cases)
        self.put("while True:")
        self.depth += 1
        word = "if"
        for index, (label, _) in enumerate(node.cases):
            if label is None:
                default = index
                continue
            if isinstance(label, Regex):
                test = f"{self.e.rx(label)}.test(text({subject}))"
            elif isinstance(label, Num):
                test = f"({subject}.__class__ is not str and compare({subject}, {label.value!r}, R.convfmt) == 0)"
            else:
                test = f"(text({subject}) == {self.e.text(label)} and {subject}.__class__ is not float)"
            self.put(f"{word} {test}: {at} = {index}")
            word = "elif"
        self.put(f"else: {at} = {default}" if word == "elif" else f"{at} = {default}")
        self.loops.append(("switch", again))
        for index, (_, body) in enumerate(node.cases):
            self.put(f"if {at} <= {index}:")
            self.body(body)
        self.loops.pop()
        self.put("break")
        self.depth -= 1
        if any(isinstance(below, Simple) and below.word == "continue" for below in walk(node)) and self.loops:
            self.put(f"if {again}:")
            self.depth += 1
            self._simple(Simple("continue"))
            self.depth -= 1

    def _simple(self, node: Simple) -> None:
        if node.word == "break":
            self.put("break" if self.loops else "return")
        elif node.word == "continue":
            kind: str
            extra: Any
            kind, extra = self.loops[-1] if self.loops else ("", None)
            if not kind:
                self.put("return")
                return
            if kind == "switch":
                self.put(f"{extra} = True")
                self.put("break")
                return
            if kind == "for" and extra is not None:
                self.statement(extra)
            if kind in ("for", "while"):
                self.tick()
            if kind == "do":
                self.put(f"if not {self.e.condition(extra)}: break")
            self.put("continue")
        elif node.word == "next":
            self.put({"rules": "return", "fast": "continue"}.get(self.place, "raise NextRecord"))
        else:
            self.put("raise NextFile")

    def _exit(self, node: Exit) -> None:
        status = "None" if node.status is None else f"int({self.e.number(node.status)})"
        self.put(f"raise ExitProgram({status})")

    def _return(self, node: Return) -> None:
        self.put("return " + ("None" if node.value is None else self.e.value(node.value)))


def _changes(node: Assign) -> bool:
    """Return whether the value of `x += value` may change x, which is read after it."""
    return node.op != "=" and not is_quiet(node.value)
