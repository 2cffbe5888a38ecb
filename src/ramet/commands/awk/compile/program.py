"""Compile an awk program to a Python module: functions, rules and, where possible, batch rules."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ramet.commands.awk.compile import analyze
from ramet.commands.awk.compile.analyze import Facts, has_loop, walk
from ramet.commands.awk.compile.batch_rules import FastEmitter
from ramet.commands.awk.compile.emit import Emitter
from ramet.commands.awk.compile.statements import StatementWriter
from ramet.commands.awk.run.builtins import RUNTIME_NAMES, WARNING
from ramet.commands.awk.run.numerals import numerals_of
from ramet.commands.awk.run.printf import sprintf
from ramet.commands.awk.run.streams import ExitProgram, NextFile, NextRecord, Runtime
from ramet.commands.awk.run.values import Array, Numbers, compare, num, number_text, to_number, truth
from ramet.commands.awk.run.values import Field as FieldValue
from ramet.commands.awk.syntax.builtin_names import BUILTINS
from ramet.commands.awk.syntax.dialect import GNU, Dialect
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE
from ramet.commands.awk.syntax.parser import RESERVED, parse
from ramet.commands.awk.syntax.tree import (
    Assign,
    AwkError,
    Builtin,
    Call,
    For,
    ForIn,
    Print,
    Program,
    Rule,
    Simple,
    Step,
    Stmt,
    Switch,
    Var,
)

_NAME = "<awk>"


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
    lasting: set[str] = field(default_factory=set)
    """Entry points that may run long without awaiting."""
    fast: dict[tuple[str, bool], CodeType | None] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    """The line of the program for each line of code, by the name of the code."""
    last_lines: dict[str, int] = field(default_factory=dict)
    """The line of the program in which each of its entry points ends."""

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
        """Return a fresh namespace with the program's functions bound to this runtime."""
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
        if numerals is not None or not self.dialect.utf8:
            space["sprintf"] = functools.partial(sprintf, number=space["num"], utf8=self.dialect.utf8)
        runtime.namespace = space
        runtime.lines = self.lines
        runtime.rules_end = self.last_lines.get("rules", 0)
        runtime.functions = self.functions
        if "FUNCTAB" in self.facts.uses:
            known = (*(name.replace(IN_NAMESPACE, "::") for name in self.functions), *BUILTINS)
            runtime.functab.update({name: name for name in known})
        exec(self.code, space)
        return space

    def fast_rules(self, runtime: Runtime, plain: bool) -> Any:
        """Return the rules as one loop over a batch, for the current FS; None if that is impossible."""
        if not self.simple or not self.dialect.plain_numbers or not _plain_separators(runtime):
            return None
        key = (runtime.fs, plain)
        if key not in self.fast:
            lines, where = _fast_source(self.program, self.facts, self.constants, runtime.fs, plain)
            name = f"<awk: {runtime.fs!r} {plain}>"
            self.fast[key] = _code(lines, name)
            self.lines[name] = where
        made = runtime.namespace.get("fast_rules")
        if made is None or made[0] != key:
            code = self.fast[key]
            if code is None:
                return None
            runtime.namespace.update(self.constants)
            exec(code, runtime.namespace)
            made = runtime.namespace["fast_rules"] = (key, runtime.namespace["fast"])
        return made[1]


@functools.lru_cache(maxsize=64)
def compiled_program(text: str, dialect: Dialect = GNU) -> Compiled:
    """Compile a program."""
    program = parse(text, dialect)
    facts = analyze.analyze(program)
    facts.regex = dialect.regex
    facts.uses |= {
        use
        for use, given in (
            ("bytes", not dialect.utf8),
            ("numerals", not dialect.plain_numbers),
            ("IGNORECASE", dialect.ignores_case),
        )
        if given
    }
    for name in facts.names & program.functions.keys():
        raise AwkError(
            f"cmd. line:1: error: function `{name}' called with space between name and `(',\n"
            "or used as a variable or an array",
            1,
        )
    for node in walk((program.rules, *(function.body for function in program.functions.values()))):
        if isinstance(node, Call) and node.name not in program.functions and node.name in facts.names | RESERVED:
            line = program.lines.get(id(node), 1)
            raise AwkError(f"cmd. line:{line}: error: attempt to use non-function `{node.name}' in function call", 1)
    constants: dict[str, Any] = {}
    lines: list[str] = []
    where: list[int] = []
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
    waiting, lasting = set[str](), set[str]()
    last_lines: dict[str, int] = {}
    own = [f"v_{n}" for n in sorted(facts.names) if ("", n) not in facts.arrays]
    ways = [(function, "f", function.name in facts.waiting) for function in program.functions.values()]
    ways += [(function, "w", True) for function in program.functions.values() if function.name in facts.lasting]
    for function, letter, awaits in ways:
        emitter = Emitter(program, facts, constants, function.name)
        writer = StatementWriter(emitter, "function", awaits)
        with _located(emitter):
            emitter.enter(function)
            if function.name in facts.lasting:
                writer.called()
            for statement in function.body:
                writer.statement(statement)
        params = ", ".join(f"p_{name}" for name in function.params)
        lines.append(f"{'async ' if awaits else ''}def {letter}_{function.name}({params}):")
        lines.append(f"    global {', '.join(own)}" if own else "    pass")
        _append(writer, lines, where)
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
        if analyze.lasts(tuple(bodies), facts):
            lasting.add(place)
        writer = StatementWriter(Emitter(program, facts, constants), place, can_wait)
        with _located(writer.e):
            _rules(writer, rules)
        last_lines[place] = writer.where[-2] if len(writer.where) > 1 else writer.e.line
        lines.append(f"{'async ' if can_wait else ''}def {place}():")
        lines.append(shared)
        _append(writer, lines, where)
    code = _code(lines, _NAME)
    return Compiled(
        program,
        facts,
        code,
        constants,
        dialect,
        waiting,
        lasting,
        lines={_NAME: where},
        last_lines=last_lines,
    )


@contextmanager
def _located(emitter: Emitter) -> Iterator[None]:
    """Add the source line to errors of the emitter."""
    try:
        yield
    except AwkError as error:
        raise AwkError(f"cmd. line:{emitter.line}: {error}", error.status) from None


def _append(writer: StatementWriter, lines: list[str], where: list[int]) -> None:
    """Append the code of a function, and its source lines."""
    lines += _counter(writer)
    where += [writer.e.line] * (len(lines) - len(where))
    lines += writer.lines
    where += writer.where


def _code(lines: list[str], name: str) -> CodeType:
    """Return the code of a program, whose nesting may be more than the Python below takes."""
    try:
        return compile("\n".join(lines) + "\n", name, "exec")
    except (SyntaxError, MemoryError, RecursionError):
        raise AwkError("fatal: the program is nested too deeply") from None


def _counter(writer: StatementWriter) -> list[str]:
    return ["    _n = 0"] if writer.counted else []


def _rules(writer: StatementWriter, rules: list[Rule]) -> None:
    e = writer.e
    number = 0
    for rule in rules:
        body: tuple[Stmt, ...] = rule.body if rule.body is not None else (Print(()),)
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
            e.enter(rule.until)
            writer.put(f"    if {e.condition(rule.until)}: {flag} = False")
            e.enter(rule)
            writer.body(body)
        elif rule.pattern is not None:
            writer.put(f"if {e.condition(rule.pattern)}:")
            writer.body(body)
        else:
            for statement in body:
                writer.statement(statement)
    writer.put("pass")


# -------------------------------------------------------------------------------------------------- the fast form

_MISSES = 200_000
"""Cache misses after which conversions are no longer cached."""
_NEEDS_MORE = frozenset(
    [
        "indirect",
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
    """Return whether the rules can run over many records in one go, with the record and fields in local variables."""
    if facts.uses & _NEEDS_MORE or any(use.startswith("assigns-") for use in _in_rules(program)):
        return False
    rules = tuple(rule for rule in program.rules if not rule.kind)
    return not _next_in_loop(program) and not analyze.prints_again((rules, tuple(program.functions.values())))


def _plain_separators(runtime: Runtime) -> bool:
    """Return whether records and fields end at single characters."""
    if len(runtime.rs) != 1 or runtime.split_by != "FS" or runtime.icase:
        return False
    return len(runtime.fs) == 1 and runtime.fs != "\\"


def _next_in_loop(program: Program) -> bool:
    """Return whether `next` would have to leave an inner loop, too."""
    for node in walk(program.rules):
        if isinstance(node, (For, ForIn, Switch)) and any(
            isinstance(b, Simple) and b.word == "next" for b in walk(node)
        ):
            return True
    return False


def _in_rules(program: Program) -> set[str]:
    """Return the special variables that rules and functions assign to (BEGIN has run already)."""
    found: set[str] = set()
    scopes: list[Any] = [rule for rule in program.rules if rule.kind != "BEGIN"]
    scopes += [function.body for function in program.functions.values()]
    for node in walk(tuple(scopes)):
        if isinstance(node, (Assign, Step)) and isinstance(node.target, Var) and node.target.name in analyze.SPECIAL:
            found.add("assigns-" + node.target.name)
    return found


def _fast_source(
    program: Program, facts: Facts, constants: dict[str, Any], fs: str, plain: bool
) -> tuple[list[str], list[int]]:
    rules = [rule for rule in program.rules if not rule.kind]
    emitter = FastEmitter(program, facts, constants, fs, plain, rules)
    writer = StatementWriter(emitter, "fast", False)
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
        # A string grows in place only with a single reference.
        *(f"    l_{name}, v_{name} = v_{name}, None" for name in sorted(emitter.locals)),
        "    left = iter(batch)",
        "    try:",
        "        for rec in left:",
    ]
    if emitter.uses_fields:
        lines.append(f"            F = {emitter.split if emitter.presplit else None}")
    warns = any(
        isinstance(node, Builtin) and node.name in WARNING for node in walk((*rules, *program.functions.values()))
    )
    counting = warns or bool({"NR", "FNR"} & facts.uses)
    if counting:
        lines.append("            nr += 1.0; fnr += 1.0")
    if warns:
        lines.append("            R.NR, R.FNR = nr, fnr")
    where = [writer.e.line] * len(lines) + writer.where
    lines += writer.lines
    lines.append("    finally:")
    lines += [f"        v_{name} = l_{name}" for name in sorted(emitter.locals)]
    if counting:
        lines.append("        R.NR, R.FNR = nr, fnr")
    else:
        # An error in the middle names its record.
        lines.append("        nr = len(batch) - left.__length_hint__(); R.NR += nr; R.FNR += nr")
    lines.append("        R.set_record(rec)")
    return lines, where + [writer.e.line] * (len(lines) - len(where))
