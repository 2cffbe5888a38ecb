"""Turns an awk program into a Python module: its functions, its rules, and where possible a fast form of the rules."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ramet.commands.awk import analyze
from ramet.commands.awk.analyze import Facts, has_loop, walk
from ramet.commands.awk.builtins import RUNTIME_NAMES
from ramet.commands.awk.dialect import GNU, Dialect
from ramet.commands.awk.emit import Emitter
from ramet.commands.awk.fast import FastEmitter
from ramet.commands.awk.formats import sprintf
from ramet.commands.awk.lexer import IN_NAMESPACE
from ramet.commands.awk.libraries import ARRAYS, CONSTANTS, functions_of
from ramet.commands.awk.names import BUILTINS
from ramet.commands.awk.numerals import numerals_of
from ramet.commands.awk.parser import RESERVED, parse
from ramet.commands.awk.runtime import ExitProgram, NextFile, NextRecord, Runtime
from ramet.commands.awk.tree import (
    Assign,
    AwkError,
    Block,
    Call,
    Delete,
    DoWhile,
    Exit,
    Expr,
    ExprStmt,
    Field,
    For,
    ForIn,
    Getline,
    If,
    Index,
    Num,
    Print,
    Program,
    Regex,
    Return,
    Rule,
    Simple,
    Step,
    Stmt,
    Switch,
    Var,
    While,
)
from ramet.commands.awk.values import Array, Numbers, compare, num, number_text, to_number, truth
from ramet.commands.awk.values import Field as FieldValue

Slots = dict[tuple[int, str], int]
"""Which counter counts what happens to which node."""


class Writer:
    """Python statements for awk statements, indented as they nest."""

    def __init__(self, emitter: Emitter, place: str, waiting: bool, slots: Slots | None = None) -> None:
        self.e, self.place, self.waiting, self.slots = emitter, place, waiting, slots
        self.lines: list[str] = []
        self.depth = 1
        self.loops: list[tuple[str, Any]] = []
        self.counted = False

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def note(self, node: object, what: str = "run") -> None:
        """Where runs are counted: one more."""
        if self.slots is not None:
            self.put(f"C[{self.slots.setdefault((id(node), what), len(self.slots))}] += 1")

    def body(self, statements: tuple[Stmt, ...] | Stmt, node: object = None, what: str = "body") -> None:
        self.depth += 1
        before = len(self.lines)
        self.note(node, what)
        for statement in statements if isinstance(statements, tuple) else (statements,):
            self.statement(statement)
        if len(self.lines) == before:
            self.put("pass")
        self.depth -= 1

    def statement(self, node: Stmt) -> None:
        self.e.enter(node)
        if self.slots is not None and not isinstance(node, Block):
            self.note(node)
        getattr(self, f"_{type(node).__name__.lower()}")(node)

    def _block(self, node: Block) -> None:
        for statement in node.body:
            self.statement(statement)

    # ------------------------------------------------------------------ expressions as statements

    def _exprstmt(self, node: ExprStmt) -> None:
        expr, e = node.expr, self.e
        if isinstance(expr, Step) or (isinstance(expr, Assign) and expr.op != "="):
            look = e.looked_at(expr.target)
            if look:
                self.put(look)
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
            if isinstance(target, Index):
                array, key = self.holder(target), e.temp()
                self.put(f"{key} = {e.key(target.subscripts)}")
                if expr.op == "=":
                    self.put(f"{array}[{key}] = {e.value(expr.value)}")
                else:
                    old = e.temp()
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

    def holder(self, target: Index) -> str:
        """The array whose element a statement changes, found once."""
        if not target.outer:
            return self.e.array(target.name)
        array = self.e.temp()
        self.put(f"{array} = {self.e.within(target)}")
        return array

    def operand(self, node: Expr) -> str:
        """A number for a statement of its own: in the fast form a field is converted in line, without a call."""
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
            # The field is nearly always there: finding out that it is not costs nothing when it is.
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
            if "revoutput" in e.program.libraries:
                # Where what is written may be turned round, each piece is written alone.
                sink = f"(await R.sink({node.redirect!r}, {e.text(node.target)}))"
                pieces = [data] if node.formatted else self.pieces(node)
                self.put(f"for _piece in ({', '.join(pieces)},): {sink}.write(_piece)")
                return
            self.put(f"(await R.sink({node.redirect!r}, {e.text(node.target)})).write({data})")
        else:
            self.put(f"O({data})")

    def pieces(self, node: Print) -> list[str]:
        shown = [self.e.shown(arg) for arg in node.args or (Field(Num(0.0)),)]
        return [*[piece for one in shown for piece in (one, "R.ofs")][:-1], "R.ors"]

    def _delete(self, node: Delete) -> None:
        array = self.e.within(node)
        if node.subscripts is None:
            self.put(f"{array}.clear()")
        else:
            self.put(f"{array}.pop({self.e.key(node.subscripts)}, None)")

    # ------------------------------------------------------------------ control

    def _if(self, node: If) -> None:
        self.put(f"if {self.e.condition(node.test)}:")
        self.body(node.yes, node, "yes")
        if node.no is not None:
            self.put("else:")
            self.body(node.no, node, "no")

    def tick(self) -> None:
        """Once in a while a loop looks at the clock and, where it can, lets others run."""
        self.counted = True
        self.put("_n += 1")
        self.put("if not _n & 1023: " + ("await R.breathe()" if self.waiting else "R.tidy()"))

    def _while(self, node: While) -> None:
        self.put(f"while {self.e.condition(node.test)}:")
        self.loops.append(("while", None))
        self.body(node.body, node)
        self.depth += 1
        self.tick()
        self.depth -= 1
        self.loops.pop()

    def _dowhile(self, node: DoWhile) -> None:
        self.put("while True:")
        self.loops.append(("do", node.test))
        self.body(node.body, node)
        self.depth += 1
        self.tick()
        self.put(f"if not {self.e.condition(node.test)}: break")
        self.depth -= 1
        self.loops.pop()

    def _for(self, node: For) -> None:
        if node.start is not None:
            self.statement(node.start)
        self.put(f"while {self.e.condition(node.test) if node.test is not None else 'True'}:")
        self.loops.append(("for", node.step))
        self.body(node.body, node)
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
        self.put(f"for {key} in keys(R, {self.e.nested(self.e.array(node.array), node.outer)}):")
        self.depth += 1
        self.put(self.e.store(Var(node.name), key))
        self.depth -= 1
        self.loops.append(("in", None))
        self.body(node.body, node)
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
            self.body(body, node, str(index))
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


# ---------------------------------------------------------------------------------------------------- the module


@dataclass
class Compiled:
    """A program ready to be loaded into a runtime, any number of times."""

    program: Program
    facts: Facts
    code: CodeType
    constants: dict[str, Any]
    dialect: Dialect = GNU
    waiting: set[str] = field(default_factory=set)
    """Entry points that must be awaited."""
    fast: dict[tuple[str, bool], CodeType | None] = field(default_factory=dict)
    slots: Slots | None = None
    """Where the runs of each part are counted, if they are."""

    @functools.cached_property
    def functions(self) -> dict[str, tuple[bool, tuple[bool, ...]]]:
        """For calls by name: whether a function must be awaited, and which of its parameters are arrays."""
        return {
            name: (
                name in self.facts.waiting,
                tuple(
                    self.facts.is_array(param, name, self.program) and (name, param) not in self.facts.mixed
                    for param in function.params
                ),
            )
            for name, function in self.program.functions.items()
        }

    @functools.cached_property
    def simple(self) -> bool:
        return fast_enough(self.facts, self.program)

    def load(self, runtime: Runtime) -> dict[str, Any]:
        """A fresh namespace with the program's functions bound to this runtime."""
        space: dict[str, Any] = {
            "R": runtime,
            "O": runtime.out.append,
            "text": runtime.text,
            "shown": runtime.shown,
            "num": num,
            "truth": truth,
            "compare": compare,
            "number_text": number_text,
            "to_number": to_number,
            "sprintf": sprintf,
            "NUMBERS": Numbers(),
            "Array": Array,
            "Field": FieldValue,
            "NextRecord": NextRecord,
            "NextFile": NextFile,
            "ExitProgram": ExitProgram,
            **RUNTIME_NAMES,
            **self.constants,
        }
        numerals = numerals_of(self.dialect)
        if numerals is not None:
            for name in ("num", "truth", "compare", "to_number"):
                space[name] = getattr(numerals, name)
            runtime.looks_numeric = numerals.looks_numeric
        if self.dialect.bignum:
            from ramet.commands.awk import bignum

            space.update(bignum.NAMES)
        if numerals is not None or not self.dialect.utf8:
            space["sprintf"] = functools.partial(sprintf, number=space["num"], utf8=self.dialect.utf8)
        if self.dialect.lint:
            from ramet.commands.awk import lint

            space.update(lint.NAMES)
            runtime.lint = self.dialect.lint
        libraries = self.program.libraries
        if libraries:
            space |= {f"e_{name}": found.body for name, found in functions_of(libraries).items()}
            runtime.libraries = frozenset(libraries)
        if self.slots is not None:
            space["C"] = [0] * len(self.slots)
        runtime.namespace = space
        runtime.functions = self.functions
        if "FUNCTAB" in self.facts.uses:
            known = (*(name.replace(IN_NAMESPACE, "::") for name in self.functions), *BUILTINS)
            runtime.functab.update({name: name for name in known})
        exec(self.code, space)
        for library in libraries:
            space.update({f"v_{name}": value for name, value in CONSTANTS.get(library, {}).items()})
            for name, elements in ARRAYS.get(library, {}).items():
                space.setdefault(f"a_{name}", Array()).update(elements)
        return space

    def fast_rules(self, runtime: Runtime, plain: bool) -> Any:
        """The rules as one loop over many records, for the field separator in force; None when they need more."""
        if (
            not self.simple
            or self.slots is not None
            or self.dialect.lint
            or not self.dialect.plain_numbers
            or not _plain_separators(runtime)
        ):
            return None
        key = (runtime.fs, plain)
        if key not in self.fast:
            source = _fast_source(self.program, self.facts, self.constants, runtime.fs, plain)
            self.fast[key] = compile(source, "<awk>", "exec")
        made = runtime.namespace.get("fast_rules")
        if made is None or made[0] != key:
            code = self.fast[key]
            if code is None:
                return None
            runtime.namespace.update(self.constants)
            exec(code, runtime.namespace)
            made = runtime.namespace["fast_rules"] = (key, runtime.namespace["fast"])
        return made[1]


def _changes(node: Assign) -> bool:
    """Whether the value of `x += value` may change x, which is looked at after it."""
    return node.op != "=" and any(isinstance(part, (Assign, Step, Call, Getline)) for part in walk(node.value))


@functools.lru_cache(maxsize=64)
def compiled_program(text: str, dialect: Dialect = GNU, counted: bool = False) -> Compiled:
    """A program that is ready to run; `counted` makes it one that knows how often each of its parts ran."""
    program = parse(text, dialect, placed=counted or bool(dialect.lint))
    slots: Slots | None = {} if counted else None
    facts = analyze.analyze(program)
    facts.uses |= {
        use
        for use, given in (
            ("bytes", not dialect.utf8),
            ("numerals", not dialect.plain_numbers),
            ("IGNORECASE", dialect.ignores_case),
            ("bignum", dialect.bignum),
        )
        if given
    }
    for name in facts.names & program.functions.keys():
        raise AwkError(
            f"cmd. line:1: error: function `{name}' called with space between name and `(',\n"
            "or used as a variable or an array",
            1,
        )
    if dialect.bignum and facts.names & {"PREC", "ROUNDMODE"}:
        raise AwkError("fatal: PREC and ROUNDMODE are not supported: numbers that are not whole are doubles")
    for node in walk((program.rules, *(function.body for function in program.functions.values()))):
        if isinstance(node, Call) and node.name not in program.functions and node.name in facts.names | RESERVED:
            raise AwkError(f"cmd. line:1: error: attempt to use non-function `{node.name}' in function call", 1)
    emitter_of: type[Emitter] = Emitter
    if dialect.lint:
        from ramet.commands.awk import lint

        emitter_of = lint.LintEmitter
        facts.warnings += lint.static(program, facts, dialect.lint)
    constants: dict[str, Any] = {}
    lines: list[str] = []
    for name in sorted(facts.names):
        if ("", name) in facts.arrays:
            lines.append(f"a_{name} = Array()")
        else:
            lines.append(f"v_{name} = None")
    ranges = sum(1 for rule in program.rules if rule.until is not None)
    lines += [f"r_{index} = False" for index in range(ranges)]
    scalars = [f"v_{name}" for name in sorted(facts.names) if ("", name) not in facts.arrays]
    scalars += [f"r_{index}" for index in range(ranges)]
    shared = f"    global {', '.join(scalars)}" if scalars else "    pass"
    waiting: set[str] = set()
    for function in program.functions.values():
        emitter = emitter_of(program, facts, constants, function.name)
        writer = Writer(emitter, "function", function.name in facts.waiting, slots)
        writer.note(function)
        for statement in function.body:
            writer.statement(statement)
        own = [f"v_{n}" for n in sorted(facts.names) if ("", n) not in facts.arrays]
        head = "async def" if function.name in facts.waiting else "def"
        params = ", ".join(f"p_{name}" for name in function.params)
        lines.append(f"{head} f_{function.name}({params}):")
        lines.append(f"    global {', '.join(own)}" if own else "    pass")
        lines += _counter(writer) + writer.lines
    groups: dict[str, list[Rule]] = {"begin": [], "rules": [], "end": [], "begin_file": [], "end_file": []}
    for rule in program.rules:
        place = {"BEGIN": "begin", "END": "end", "BEGINFILE": "begin_file", "ENDFILE": "end_file"}.get(
            rule.kind, "rules"
        )
        groups[place].append(rule)
    for place, rules in groups.items():
        if not rules:
            continue
        bodies = [(rule.pattern, rule.until, rule.body) for rule in rules]
        can_wait = analyze.can_wait(tuple(bodies), facts.waiting) or has_loop(tuple(bodies))
        if can_wait:
            waiting.add(place)
        writer = Writer(emitter_of(program, facts, constants), place, can_wait, slots)
        _rules(writer, rules)
        lines.append(f"{'async ' if can_wait else ''}def {place}():")
        lines.append(shared)
        lines += _counter(writer) + writer.lines
    code = compile("\n".join(lines) + "\n", "<awk>", "exec")
    return Compiled(program, facts, code, constants, dialect, waiting, slots=slots)


def _counter(writer: Writer) -> list[str]:
    return ["    _n = 0"] if writer.counted else []


def _rules(writer: Writer, rules: list[Rule]) -> None:
    e = writer.e
    number = 0
    for rule in rules:
        body: tuple[Stmt, ...] = rule.body if rule.body is not None else (Print(()),)
        writer.note(rule, "test")
        e.enter(rule)
        if rule.until is not None:
            flag = f"r_{number}"
            number += 1
            assert rule.pattern is not None
            chosen = e.temp()
            writer.put(f"{chosen} = {flag}")
            writer.put(f"if not {flag} and {e.condition(rule.pattern)}:")
            writer.put(f"    {chosen} = {flag} = True")
            writer.put(f"if {chosen}:")
            writer.put(f"    if {e.condition(rule.until)}: {flag} = False")
            writer.body(body, rule)
        elif rule.pattern is not None:
            writer.put(f"if {e.condition(rule.pattern)}:")
            writer.body(body, rule)
        else:
            for statement in body:
                writer.statement(statement)
    writer.put("pass")


# -------------------------------------------------------------------------------------------------- the fast form

_MISSES = 200_000
"""How many different numbers a program meets before it stops remembering them."""
_NEEDS_MORE = frozenset(
    [
        "indirect",
        "extension",
        "getline",
        "getline-record",
        "assigns-fields",
        "fields-in-functions",
        "while",
        "nextfile",
        "nextfile-in-function",
        "next-in-function",
        "redirect",
        "system",
        "close",
        "IGNORECASE",
        "FPAT",
        "FIELDWIDTHS",
        "RT",
        "FILENAME",
        "ARGIND",
        "SYMTAB",
        "typeof",
    ]
)


def fast_enough(facts: Facts, program: Program) -> bool:
    """Whether the rules can run over many records in one go, with the record and fields in local variables."""
    if facts.uses & _NEEDS_MORE or any(use.startswith("assigns-") for use in _in_rules(program)):
        return False
    return not _next_in_loop(program)


def _plain_separators(runtime: Runtime) -> bool:
    """Whether records and fields end at single characters."""
    if len(runtime.rs) != 1 or runtime.split_by != "FS" or runtime.icase:
        return False
    return len(runtime.fs) == 1 and runtime.fs != "\\"


def _next_in_loop(program: Program) -> bool:
    """Whether `next` would have to leave an inner loop, too."""
    for node in walk(program.rules):
        if isinstance(node, (For, ForIn, Switch)) and any(
            isinstance(b, Simple) and b.word == "next" for b in walk(node)
        ):
            return True
    return False


def _in_rules(program: Program) -> set[str]:
    """The special variables that rules and functions assign to (BEGIN has run already)."""
    found: set[str] = set()
    scopes: list[Any] = [rule for rule in program.rules if rule.kind != "BEGIN"]
    scopes += [function.body for function in program.functions.values()]
    for node in walk(tuple(scopes)):
        if isinstance(node, (Assign, Step)) and isinstance(node.target, Var) and node.target.name in analyze.SPECIAL:
            found.add("assigns-" + node.target.name)
    return found


def _fast_source(program: Program, facts: Facts, constants: dict[str, Any], fs: str, plain: bool) -> str:
    rules = [rule for rule in program.rules if not rule.kind]
    emitter = FastEmitter(program, facts, constants, fs, plain, rules)
    writer = Writer(emitter, "fast", False)
    writer.depth = 3
    _rules(writer, rules)
    scalars = [f"v_{name}" for name in sorted(facts.names) if ("", name) not in facts.arrays]
    scalars += [f"r_{index}" for index in range(sum(1 for rule in program.rules if rule.until is not None))]
    lines = ["def fast(batch):"]
    if scalars:
        lines.append(f"    global {', '.join(scalars)}")
    lines += [
        "    O = R.out.append",
        "    nr, fnr, rec, _n, F = R.NR, R.FNR, '', 0, None",
        f"    T = NUMBERS if NUMBERS.misses < {_MISSES} else None",
        *(f"    l_{name} = v_{name}" for name in sorted(emitter.locals)),
        "    try:",
        "        for rec in batch:",
    ]
    if emitter.uses_fields:
        lines.append(f"            F = {emitter.split if emitter.presplit else None}")
    counting = bool({"NR", "FNR"} & facts.uses)
    if counting:
        lines.append("            nr += 1.0; fnr += 1.0")
    lines += writer.lines
    lines.append("    finally:")
    lines += [f"        v_{name} = l_{name}" for name in sorted(emitter.locals)]
    if counting:
        lines.append("        R.NR, R.FNR = nr, fnr")
    else:
        lines.append("        R.NR += len(batch); R.FNR += len(batch)")
    lines.append("        R.set_record(rec)")
    return "\n".join(lines) + "\n"
