"""`--lint`: what gawk warns of in a program, before it runs and, by the code written for it, while it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ramet.commands.awk.compile.analyze import Facts, walk
from ramet.commands.awk.compile.emit import Emitter
from ramet.commands.awk.run.libraries import functions_of
from ramet.commands.awk.run.values import Array, Value
from ramet.commands.awk.syntax.tree import (
    Assign,
    Binary,
    Builtin,
    Call,
    Cond,
    Expr,
    ExprStmt,
    Field,
    Function,
    Grouping,
    If,
    Index,
    Indirect,
    Match,
    Num,
    Print,
    Program,
    Regex,
    Rule,
    Str,
    Unary,
    Var,
)

if TYPE_CHECKING:
    from ramet.commands.awk.run.streams import Runtime

_FIRST, _SECOND, _THIRD = "first ", "second ", "third "
_TEXTS = {
    "tolower": ("",), "toupper": ("",), "index": (_FIRST, _SECOND), "length": ("",), "substr": (_FIRST,),
    "match": (_FIRST,), "system": ("",),
}  # fmt: skip
_NUMBERS = {
    "sin": ("",), "cos": ("",), "exp": ("",), "log": ("",), "sqrt": ("",), "int": ("",), "srand": ("",),
    "atan2": (_FIRST, _SECOND), "substr": (None, _SECOND, _THIRD),
}  # fmt: skip
"""What the arguments of functions ought to be, by what each of them is called."""
_VARIABLES = frozenset(
    ("FPAT", "FIELDWIDTHS", "IGNORECASE", "BINMODE", "LINT", "TEXTDOMAIN", "PROCINFO", "RT", "ARGIND")
)
_IDLE = frozenset(("+", "-", "*", "/", "%", "^", " ", "<", "<=", "==", "!=", ">", ">="))


# ------------------------------------------------------------------------------------------- before it runs


def static(program: Program, facts: Facts, kind: str) -> list[str]:
    """What can be seen without running the program, in the order of the source."""
    if kind == "invalid":
        return []
    if not program.rules and not program.functions:
        return [
            "cmd. line:1: warning: empty program text on command line",
            "cmd. line:1: warning: source file does not end in newline",
            "warning: no program text at all!",
        ]
    return [*_Reader(program, facts, kind != "no-ext").all(), *_names(program, facts)]


class _Reader:
    def __init__(self, program: Program, facts: Facts, extensions: bool) -> None:
        assert program.places is not None
        self.facts = facts
        self.program, self.extensions, self.places = program, extensions, program.places
        self.known: set[str] = set()
        self.out: list[str] = []
        self.line = 1
        self.kind = ""

    def all(self) -> list[str]:
        items: list[Rule | Function] = [*self.program.rules, *self.program.functions.values()]
        for item in sorted(items, key=lambda item: self.places.of[id(item)].start):
            self.kind = item.kind if isinstance(item, Rule) else ""
            self.node(item)
        return self.out

    def say(self, message: str) -> None:
        self.out.append(f"cmd. line:{self.line}: warning: {message}")

    def is_array(self, node: Expr) -> bool:
        return isinstance(node, Var) and ("", node.name) in self.facts.arrays

    def extension(self, word: str) -> None:
        if self.extensions and word not in self.known:
            self.known.add(word)
            self.say(f"`{word}' is a gawk extension")

    def node(self, node: Any) -> None:
        if isinstance(node, tuple):
            for below in node:
                self.node(below)
                if isinstance(below, ExprStmt) and _is_idle(below.expr):
                    self.say("statement has no effect")
            return
        if not dataclasses.is_dataclass(node):
            return
        place = self.places.of.get(id(node))
        if place is not None:
            self.line = self.places.text.count("\n", 0, place.start) + 1
        self.before(node)
        for item in dataclasses.fields(node):
            self.node(getattr(node, item.name))
        self.after(node)

    def before(self, node: Any) -> None:
        if isinstance(node, Builtin):
            if node.name == "length" and not node.parens:
                self.say("call of `length' without parentheses is not portable")
            elif node.name == "length" and self.is_array(node.args[0]):
                self.extension("length(array)")
        elif isinstance(node, (Var, Index)) and node.name in _VARIABLES:
            self.extension(node.name)
        elif isinstance(node, Indirect) and self.extensions and "@" not in self.known:
            self.known.add("@")
            self.say("indirect function calls are a gawk extension")

    def after(self, node: Any) -> None:
        if isinstance(node, Print) and not node.args and not node.formatted and self.kind in ("BEGIN", "END"):
            self.say("plain `print' in BEGIN or END rule should probably be `print \"\"'")
        elif isinstance(node, (If, Cond)):
            test = node.test
            if isinstance(node, Cond) and isinstance(test, Grouping) and len(test.items) == 1:
                test = test.items[0]
            if isinstance(test, Assign) and test.op == "=":
                self.say("assignment used in conditional context")


def _is_idle(node: Expr) -> bool:
    if isinstance(node, Grouping):
        return len(node.items) == 1 and _is_idle(node.items[0])
    if isinstance(node, Binary):
        return node.op in _IDLE
    return isinstance(node, (Num, Str, Var, Index, Field, Regex, Match, Unary))


def _names(program: Program, facts: Facts) -> Iterator[str]:
    for function in program.functions.values():
        for param in function.params:
            if param in facts.names:
                yield f"cmd. line:1: warning: function `{function.name}': parameter `{param}' shadows global variable"
    bodies = (program.rules, *(function.body for function in program.functions.values()))
    called = {node.name for node in walk(bodies) if isinstance(node, Call)}
    known = program.functions.keys() | functions_of(program.libraries).keys()
    for name in sorted(called - known):
        yield f"warning: function `{name}' called but never defined"
    for name in program.functions:
        if name not in called:
            yield f"warning: function `{name}' defined but never called directly"


# --------------------------------------------------------------------------------------------- while it runs


def seen(runtime: Runtime, value: Value, what: str, name: str, line: int) -> Value:
    if value is None:
        runtime.lint_warn(f"reference to uninitialized {what} `{name}'", line)
    return value


def element(runtime: Runtime, array: Array, key: str, name: str, line: int) -> Value:
    if key not in array:
        runtime.lint_warn(f'reference to uninitialized element `{name}["{key}"]\'', line)
    return array[key]


def field_at(runtime: Runtime, number: int, line: int) -> int:
    missing = not (runtime.NR or runtime.record) if number == 0 else number > runtime.get_nf()
    if missing:
        runtime.lint_warn(f"reference to uninitialized field `${number}'", line)
    return number


def argument(runtime: Runtime, value: Value, name: str, which: str, wanted: str, line: int) -> None:
    is_number = value.__class__ is float
    is_text = value.__class__ is str
    if (wanted == "string" and is_number) or (wanted == "numeric" and is_text):
        runtime.lint_warn(f"{name}: received non-{wanted} {which}argument", line)


def substring(runtime: Runtime, text: str, start: float, length: float | None, line: int) -> str:
    from ramet.commands.awk.run.builtins import substr

    def warn(message: str) -> None:
        runtime.lint_warn(f"substr: {message}", line)

    if length is not None:
        if length < 1:
            warn(f"length {length:g} is not >= 1")
            return substr(text, start, length)
        if length != int(length):
            warn(f"non-integer length {length:g} will be truncated")
    if start < 1:
        warn(f"start index {start:g} is invalid, using 1")
    elif start != int(start):
        warn(f"non-integer start index {start:g} will be truncated")
    first = max(int(start), 1)
    if not text:
        warn("source string is zero length")
    elif first > len(text):
        warn(f"start index {first} is past end of string")
    elif length is not None and start >= 1 and int(length) > len(text) - first + 1:
        warn(f"length {int(length)} at start index {first} exceeds length of first argument ({len(text)})")
    return substr(text, start, length)


NAMES = {
    "lint_seen": seen,
    "lint_element": element,
    "lint_field": field_at,
    "lint_argument": argument,
    "lint_substr": substring,
}
"""What the code of a program that is looked at closely calls."""


class LintEmitter(Emitter):
    """Code that says what it comes across."""

    rearranges = False

    def __init__(self, program: Program, facts: Facts, constants: dict[str, Any], scope: str = "") -> None:
        super().__init__(program, facts, constants, scope)
        self.passed: set[int] = set()
        """Variables that are handed on without being looked at."""

    def _var(self, node: Var) -> str:
        code = super()._var(node)
        if id(node) in self.passed or self.is_special(node.name) or self.is_array(node) or self.is_mixed(node.name):
            return code
        what = "argument" if node.name in self.params else "variable"
        return f"lint_seen(R, {code}, {what!r}, {node.name!r}, {self.line})"

    def _index(self, node: Index) -> str:
        return f"lint_element(R, {self.within(node)}, {self.key(node.subscripts)}, {node.name!r}, {self.line})"

    def looked_at(self, target: Expr) -> str:
        if not isinstance(target, Index) or not all(
            isinstance(one, (Num, Str, Var, Field)) for one in target.subscripts
        ):
            return ""
        return self._index(target)

    def field_number_code(self, node: Field) -> str:
        return f"lint_field(R, {super().field_number_code(node)}, {self.line})"

    def store(self, target: Expr, code: str) -> str:
        if isinstance(target, Field):
            return f"R.set_field({super().field_number_code(target)}, {code})"
        return super().store(target, code)

    def _call(self, node: Call) -> str:
        self.passed |= {id(arg) for arg in node.args if isinstance(arg, Var)}
        return super()._call(node)

    def _builtin(self, node: Builtin) -> str:
        if node.name in ("typeof", "isarray"):
            self.passed |= {id(arg) for arg in node.args}
        checks = [
            f"lint_argument(R, {code}, {node.name!r}, {which!r}, {wanted!r}, {self.line}), "
            for table, wanted in ((_TEXTS, "string"), (_NUMBERS, "numeric"))
            for which, arg in zip(table.get(node.name, ()), node.args, strict=False)
            if which is not None and (code := self.plain(arg))
        ]
        if node.name == "substr" and len(node.args) > 1:
            rest = self.number(node.args[2]) if len(node.args) > 2 else "None"
            call = f"lint_substr(R, {self.text(node.args[0])}, {self.number(node.args[1])}, {rest}, {self.line})"
        else:
            call = super()._builtin(node)
        return f"({''.join(checks)}{call})[-1]" if checks else call

    def plain(self, node: Expr) -> str:
        """A value that can be had twice without doing anything."""
        if isinstance(node, (Num, Str)):
            return self.raw(node)
        if isinstance(node, Var) and not self.is_special(node.name) and not self.is_array(node):
            return self.variable(node.name)
        return ""
