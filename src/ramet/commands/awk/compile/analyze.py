"""Analyze an awk program before compilation: arrays, functions that await, features in use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ramet.commands.awk.syntax.expressions import ARRAY_ARGUMENTS
from ramet.commands.awk.syntax.tree import (
    Assign,
    Builtin,
    Call,
    Delete,
    DoWhile,
    Field,
    For,
    ForIn,
    Function,
    Getline,
    In,
    Index,
    Indirect,
    Num,
    Print,
    Program,
    Regex,
    Simple,
    Step,
    Var,
    While,
)
from ramet.patterns.parse import AWK, Dialect

SPECIAL = frozenset(
    [
        "NF",
        "NR",
        "FNR",
        "FS",
        "OFS",
        "ORS",
        "RS",
        "SUBSEP",
        "CONVFMT",
        "OFMT",
        "FILENAME",
        "RT",
        "FPAT",
        "FIELDWIDTHS",
        "IGNORECASE",
        "ERRNO",
        "ARGIND",
        "ARGC",
        "RSTART",
        "RLENGTH",
        "BINMODE",
        "LINT",
        "TEXTDOMAIN",
    ]
)
SPECIAL_ARRAYS = frozenset(("ENVIRON", "ARGV", "PROCINFO", "SYMTAB", "FUNCTAB"))
WAITING = frozenset(("system", "close"))


def walk(node: Any) -> Iterator[Any]:
    """Yield this node and all nodes below it."""
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, tuple):
            todo.extend(current)
        elif dataclasses.is_dataclass(current):
            yield current
            todo.extend(getattr(current, item.name) for item in dataclasses.fields(current))


@dataclass
class Facts:
    """Facts about a program. A scope is a function's name, or "" for globals."""

    arrays: set[tuple[str, str]] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    """Functions that may await."""
    lasting: set[str] = field(default_factory=set)
    """Functions that never await and may run long: code that can await calls their awaiting form."""
    names: set[str] = field(default_factory=set)
    """Global variables (scalars and arrays, without the special ones)."""
    mixed: set[tuple[str, str]] = field(default_factory=set)
    """Parameters that are an array in one call and a scalar in another."""
    traced: set[str] = field(default_factory=set)
    """Global variables that `typeof` reads: a first use changes their type from untyped to unassigned."""
    uses: set[str] = field(default_factory=set)
    """Special variables and features that occur: `NR`, `getline`, `fields-in-functions`, ..."""
    regex: Dialect = AWK
    """How regular expressions are read."""
    warnings: list[str] = field(default_factory=list)

    def is_array(self, name: str, scope: str, program: Program) -> bool:
        if name in SPECIAL_ARRAYS:
            return True
        return (self.owner(name, scope, program), name) in self.arrays

    @staticmethod
    def owner(name: str, scope: str, program: Program) -> str:
        return scope if scope and name in program.functions[scope].params else ""


def analyze(program: Program) -> Facts:
    facts = Facts()
    scopes: list[tuple[str, Any]] = [("", program.rules)]
    scopes += [(function.name, function.body) for function in program.functions.values()]
    calls: list[tuple[str, Call]] = []
    for scope, body in scopes:
        for node in walk(body):
            _note(node, scope, program, facts, calls)
    _spread_arrays(program, facts, calls)
    for _, call in calls:
        for param, arg in zip(program.functions[call.name].params, call.args, strict=False):
            if isinstance(arg, Index) and (call.name, param) in facts.arrays:
                facts.uses.add("subarrays")
    facts.mixed &= facts.arrays
    _spread_waiting(program, facts)
    _spread_lasting(program, facts)
    return facts


def _asks(node: Any) -> bool:
    return isinstance(node, Builtin) and node.name in ("isarray", "typeof") and isinstance(node.args[0], Var)


def _note(node: Any, scope: str, program: Program, facts: Facts, calls: list[tuple[str, Call]]) -> None:
    def array(name: str) -> None:
        facts.arrays.add((facts.owner(name, scope, program), name))
        known(name)

    def known(name: str) -> None:
        if name in SPECIAL or name in SPECIAL_ARRAYS:
            facts.uses.add(name)
        elif not facts.owner(name, scope, program):
            facts.names.add(name)

    if isinstance(node, Var):
        known(node.name)
        if scope and node.name in ("NF", "NR", "FNR", "RT"):
            facts.uses.add("fields-in-functions")
    elif isinstance(node, (Index, In, Delete)):
        array(node.name)
        if node.outer:
            facts.uses.add("subarrays")
    elif isinstance(node, Indirect):
        known(node.name)
        facts.uses.add("indirect")
    elif isinstance(node, ForIn):
        array(node.array)
        known(node.name)
        facts.uses.add("for-in")
    elif isinstance(node, Regex) and scope:
        facts.uses.add("fields-in-functions")
    elif isinstance(node, Builtin):
        for index in ARRAY_ARGUMENTS.get(node.name, ()):
            if index < len(node.args) and isinstance(node.args[index], Var):
                array(node.args[index].name)  # type: ignore[union-attr]
            elif index < len(node.args):
                facts.uses.add("subarrays")
        facts.uses.add(node.name)
        if _asks(node):
            asked = node.args[0].name  # type: ignore[union-attr]
            if facts.owner(asked, scope, program):
                facts.mixed.add((scope, asked))
            elif node.name == "typeof" and asked not in SPECIAL and asked not in SPECIAL_ARRAYS:
                facts.traced.add(asked)
        if node.name in ("sub", "gsub") and len(node.args) > 2 and isinstance(node.args[2], Field):
            _note_field(node.args[2], facts)
        if node.name in ("length", "sub", "gsub") and len(node.args) < 3 and scope:
            facts.uses.add("fields-in-functions")
    elif isinstance(node, Call):
        if node.name not in program.functions:
            return  # an unknown function is fatal only when called
        if len(node.args) > len(program.functions[node.name].params):
            line = program.lines.get(id(node), 1)
            facts.warnings.append(
                f"cmd. line:{line}: warning: function `{node.name}' called with more arguments than declared"
            )
        calls.append((scope, node))
    elif isinstance(node, Getline):
        facts.uses.add("getline")
        if node.kind == "main" or node.target is None:
            facts.uses.add("getline-record")
        if isinstance(node.target, Field):
            _note_field(node.target, facts)
    elif isinstance(node, Field) and scope:
        facts.uses.add("fields-in-functions")
    elif isinstance(node, Print):
        if node.redirect:
            facts.uses.add("redirect")
        if not node.args and scope:
            facts.uses.add("fields-in-functions")
    elif isinstance(node, (While, DoWhile)):
        facts.uses.add("while")
    elif isinstance(node, For):
        facts.uses.add("for")
    elif isinstance(node, Simple) and node.word in ("next", "nextfile"):
        facts.uses.add(node.word + ("-in-function" if scope else ""))
    if isinstance(node, (Assign, Step)):
        if isinstance(node.target, Field):
            _note_field(node.target, facts)
        elif isinstance(node.target, Var) and node.target.name in SPECIAL:
            facts.uses.add("assigns-" + node.target.name)


def _note_field(node: Field, facts: Facts) -> None:
    """Assigning `$0` only starts a new record; any other field makes record and fields depend on each other."""
    if not (isinstance(node.number, Num) and node.number.value == 0.0):
        facts.uses.add("assigns-fields")


def _spread_arrays(program: Program, facts: Facts, calls: list[tuple[str, Call]]) -> None:
    """Propagate array types between arguments and parameters."""
    changed = True
    while changed:
        changed = False
        for scope, call in calls:
            function = program.functions[call.name]
            for param, arg in zip(function.params, call.args, strict=False):
                if not isinstance(arg, Var):
                    continue
                outside = (facts.owner(arg.name, scope, program), arg.name)
                inside = (function.name, param)
                special = arg.name in SPECIAL_ARRAYS
                if (outside in facts.arrays or special) and inside not in facts.arrays:
                    facts.arrays.add(inside)
                    changed = True
                elif (
                    inside in facts.arrays and inside not in facts.mixed and outside not in facts.arrays and not special
                ):
                    facts.arrays.add(outside)
                    changed = True


def can_wait(node: Any, waiting: set[str]) -> bool:
    """Return whether something in here may have to wait for input, output or a command."""
    for below in walk(node):
        if isinstance(below, (Getline, Indirect)) or (isinstance(below, Print) and below.redirect):
            return True
        if isinstance(below, Builtin) and below.name in WAITING:
            return True
        if isinstance(below, Call) and below.name in waiting:
            return True
    return False


def _spread_waiting(program: Program, facts: Facts) -> None:
    changed = True
    while changed:
        changed = False
        for function in program.functions.values():
            if function.name not in facts.waiting and (
                can_wait(function.body, facts.waiting) or prints_again(function.body)
            ):
                facts.waiting.add(function.name)
                changed = True


def _spread_lasting(program: Program, facts: Facts) -> None:
    """Find functions that loop, sort or recurse, and their callers."""
    calls = {
        name: {below.name for below in walk(function.body) if isinstance(below, Call)}
        for name, function in program.functions.items()
    }
    again = {name for name, function in program.functions.items() if has_loop(function.body)}
    for name in calls:
        reached, todo = {name}, list(calls[name])
        while todo:
            if (called := todo.pop()) == name:
                again.add(name)
            elif called not in reached:
                reached.add(called)
                todo += calls.get(called, ())
    found = again
    while found:
        facts.lasting |= found
        found = {name for name, called in calls.items() if called & facts.lasting} - facts.lasting
    facts.lasting -= facts.waiting


def has_loop(node: Any) -> bool:
    """Return whether there is a loop or a sort in here."""
    return any(
        isinstance(below, (While, DoWhile, For, ForIn))
        or (isinstance(below, Builtin) and below.name in ("asort", "asorti"))
        for below in walk(node)
    )


def lasts(node: Any, facts: Facts) -> bool:
    """Return whether something in here may run long without awaiting."""
    return has_loop(node) or any(isinstance(below, Call) and below.name in facts.lasting for below in walk(node))


def prints_again(node: Any) -> bool:
    """Return whether something is printed in a loop that is not one over the fields of a record."""
    return any(
        isinstance(below, (While, DoWhile, For, ForIn))
        and not (isinstance(below, For) and _over_fields(below))
        and any(isinstance(inner, Print) for inner in walk(below))
        for below in walk(node)
    )


def _over_fields(loop: For) -> bool:
    return any(isinstance(below, Var) and below.name == "NF" for below in walk((loop.start, loop.test)))


__all__ = [
    "SPECIAL",
    "SPECIAL_ARRAYS",
    "Facts",
    "Function",
    "analyze",
    "can_wait",
    "has_loop",
    "lasts",
    "prints_again",
    "walk",
]
