"""Compile the rules to one loop over a batch of records: `$0` is `rec`, the fields are `F`."""

from __future__ import annotations

from typing import Any

from ramet.commands.awk.compile.analyze import Facts, walk
from ramet.commands.awk.compile.append import bare
from ramet.commands.awk.compile.emit import Emitter
from ramet.commands.awk.run.values import number_text
from ramet.commands.awk.syntax.tree import (
    Assign,
    Binary,
    Builtin,
    Call,
    Expr,
    ExprStmt,
    Field,
    ForIn,
    Num,
    Print,
    Program,
    Rule,
    Step,
    Var,
)


class FastEmitter(Emitter):
    def __init__(
        self, program: Program, facts: Facts, constants: dict[str, Any], fs: str, plain: bool, rules: list[Rule]
    ) -> None:
        super().__init__(program, facts, constants)
        constants["look"] = look
        constants["split_blanks"] = _split_blanks
        constants["field_at"] = field_at
        highest, every = 0, False
        for node in walk(tuple(rules)):
            if isinstance(node, Field):
                if isinstance(node.number, Num):
                    highest = max(highest, int(node.number.value))
                else:
                    every = True
            elif isinstance(node, Var) and node.name == "NF":
                every = True
        self.uses_fields = every or highest > 0
        # Variables live in locals during the loop, unless a function could read them.
        self.local = not any(_calls(node, program) for node in walk(tuple(rules)))
        self.locals: set[str] = set()
        limit = "" if every else f", {highest}"
        if fs == " ":
            self.split = f"rec.split(None{limit})" if plain else "split_blanks(rec)"
        else:
            self.split = f"rec.split({fs!r}{limit})"
        self.blank = fs == " "
        self.presplit = self.uses_fields and _always_splits(rules)

    def variable(self, name: str) -> str:
        if not self.local:
            return super().variable(name)
        self.locals.add(name)
        return f"l_{name}"

    @property
    def all(self) -> str:
        return "F" if self.presplit else f"(F or (F := {self.split}))"

    def at(self, node: Field, missing: str, wrap: str = "") -> str:
        if isinstance(node.number, Num):
            number = int(node.number.value)
            if number == 0:
                return f"{wrap}(rec)" if wrap else "rec"
            item = f"F[{number - 1}]"
            item = f"{wrap}({item})" if wrap else item
            return f"({item} if len({self.all}) >= {number} else {missing})"
        text = f"field_at({self.all}, rec, int({self.number(node.number)}))"
        if wrap:
            found = self.temp()
            return f"({wrap}({found}) if ({found} := {text}) is not None else {missing})"
        return f"({text} or '')" if missing == "''" else text

    def field_text(self, node: Field) -> str:
        return self.at(node, "''")

    def field_value(self, node: Field) -> str:
        return self.at(node, "Field('')", "Field")

    def field_number(self, node: Field) -> str:
        return self.at(node, "0.0", "to_number")

    def get_special(self, name: str) -> str:
        if name == "NF":
            return f"float(len({self.all}))" if self.blank else f"(float(len({self.all})) if rec else 0.0)"
        if name == "NR":
            return "nr"
        return "fnr" if name == "FNR" else super().get_special(name)

    def store(self, target: Expr, code: str) -> str:
        if isinstance(target, Field):
            return f"((rec := text({code})), (F := None))[0]"
        return super().store(target, code)

    def comparison(self, node: Binary) -> str:
        left, right = bare(node.left), bare(node.right)
        if isinstance(left, Field) and isinstance(right, Num):
            found = self.temp()
            shown = number_text(right.value, "%.6g")
            value = self.at(left, "''", "look")
            return (
                f"({found} {node.op} {right.value!r} if ({found} := {value}).__class__ is float "
                f"else {found} {node.op} {shown!r})"
            )
        return super().comparison(node)


def _calls(node: object, program: Program) -> bool:
    """Return whether something calls a function of the program; a sort may do so by name."""
    sorts = isinstance(node, ForIn) or (isinstance(node, Builtin) and node.name in ("asort", "asorti"))
    return isinstance(node, Call) or (sorts and bool(program.functions))


def _always_splits(rules: list[Rule]) -> bool:
    """Return whether every record is split anyway: the first statement uses a field, and `$0` is never changed."""
    for node in walk(tuple(rules)):
        if isinstance(node, (Assign, Step)) and isinstance(node.target, Field):
            return False
        if isinstance(node, Builtin) and node.name in ("sub", "gsub") and len(node.args) < 3:
            return False
    body = rules[0].body if rules and rules[0].pattern is None else None
    if not body:
        return False
    first = body[0]
    if isinstance(first, ExprStmt) and isinstance(first.expr, Assign):
        return _is_field(first.expr.value)
    return isinstance(first, Print) and any(_is_field(arg) for arg in first.args)


def _is_field(node: Expr) -> bool:
    return isinstance(node, Field) and node.number != Num(0.0)


def look(text: str) -> float | str:
    """Return a field as it compares: its number if it looks like one, else its text."""
    try:
        value = float(text)
        if value - value == 0.0 and "_" not in text and text.isascii():
            return value
    except ValueError:
        pass
    from ramet.commands.awk.run.values import looks_numeric

    number = looks_numeric(text)
    return text if number is None else number


def field_at(fields: list[str], record: str, number: int) -> str | None:
    if number == 0:
        return record
    if number < 0:
        from ramet.commands.awk.syntax.tree import AwkError

        raise AwkError(f"fatal: attempt to access field {number}")
    return fields[number - 1] if number <= len(fields) else None


def _split_blanks(text: str) -> list[str]:
    from ramet.commands.awk.run.fields import split_blanks

    return split_blanks(text)
