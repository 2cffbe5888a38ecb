"""Compile awk expressions to Python source.

- Each context has its method: number, text, condition or plain value.
- The context makes the code fast: a field that is added is never wrapped, numbers are never converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramet.commands.awk.compile.analyze import SPECIAL, SPECIAL_ARRAYS, Facts
from ramet.commands.awk.compile.append import is_quiet, operands
from ramet.commands.awk.run.values import TypedRegex, number_text
from ramet.commands.awk.syntax.builtin_names import NUMBER_BUILTINS, TEXT_BUILTINS
from ramet.commands.awk.syntax.tree import (
    Assign,
    AwkError,
    Binary,
    Builtin,
    Call,
    Cond,
    Delete,
    Expr,
    Field,
    Getline,
    Grouping,
    In,
    Index,
    Indirect,
    Match,
    Num,
    Program,
    Regex,
    Step,
    Str,
    Typed,
    Unary,
    Var,
)

_COMPARE = frozenset(("<", "<=", "==", "!=", ">", ">="))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "^"))
_PYTHON = {"NR": "R.NR", "FNR": "R.FNR", "RSTART": "R.RSTART", "RLENGTH": "R.RLENGTH"}


_LONG_ROW = 50


def _row(node: Binary, ops: tuple[str, ...]) -> tuple[Expr, list[tuple[str, Expr]]]:
    """Return what a row of operators of one rank begins with, and each operator with what follows it."""
    row: list[tuple[str, Expr]] = []
    first: Expr = node
    while isinstance(first, Binary) and first.op in ops:
        row.append((first.op, first.right))
        first = first.left
    row.reverse()
    return first, row


class Emitter:
    """Generate code for the expressions of one scope (a function, or the rules)."""

    awaits = False
    """Whether the code can await."""

    facts: Facts

    def __init__(self, program: Program, facts: Facts, constants: dict[str, Any], scope: str = "") -> None:
        self.program, self.facts, self.constants, self.scope = program, facts, constants, scope
        self.params = program.functions[scope].params if scope else ()
        self.temps = 0
        self.line = 1
        """The source line of the current code."""

    def enter(self, node: object) -> None:
        """Enter a statement or a rule."""
        self.line = self.program.lines.get(id(node), self.line)

    # ------------------------------------------------------------------ names

    def temp(self) -> str:
        self.temps += 1
        return f"_t{self.temps}"

    def variable(self, name: str) -> str:
        if name in self.params:
            return f"p_{name}"
        return f"v_{name}"

    def array(self, name: str) -> str:
        if name in self.params:
            return f"(p_{name} := aggregate(p_{name}, {name!r}))" if self.is_mixed(name) else f"p_{name}"
        if name in SPECIAL_ARRAYS:
            return f"R.{name.lower()}"
        if name in SPECIAL:
            return f"R.misused({name!r}, None)"
        return self.touched(name, f"a_{name}")

    def is_traced(self, name: str) -> bool:
        return name in self.facts.traced and name not in self.params

    def touched(self, name: str, code: str) -> str:
        """Return code for the use of a global variable, which is recorded if `typeof` reads it."""
        return f"R.touch({name!r}, {code})" if self.is_traced(name) else code

    def lengthened(self, target: Expr) -> str:
        """Return the place of the text that an assignment appends to; empty if it needs a check first."""
        if isinstance(target, Index) and "subarrays" not in self.facts.uses and not self.is_mixed(target.name):
            return self.array(target.name)
        if not isinstance(target, Var) or self.is_special(target.name) or self.is_array(target):
            return ""
        return "" if self.is_traced(target.name) or self.is_mixed(target.name) else self.variable(target.name)

    def is_mixed(self, name: str) -> bool:
        """Return whether only a call tells if a parameter is an array."""
        return (self.scope, name) in self.facts.mixed

    def is_array(self, node: Expr) -> bool:
        return isinstance(node, Var) and self.facts.is_array(node.name, self.scope, self.program)

    def is_special(self, name: str) -> bool:
        return name in SPECIAL and name not in self.params

    def constant(self, prefix: str, value: Any) -> str:
        """Return a name under which the generated module finds a value that was made beforehand."""
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"{prefix}{len(self.constants)}"
        self.constants[name] = value
        return name

    # ------------------------------------------------------------------ kinds

    def kind(self, node: Expr) -> str:
        """Return the kind of a value: `n` number, `s` string, `b` boolean, `v` unknown."""
        if isinstance(node, Grouping) and len(node.items) == 1:
            return self.kind(node.items[0])
        if isinstance(node, (Num, Step)):
            return "n"
        if isinstance(node, Str):
            return "s"
        if isinstance(node, (Regex, Match, In)):
            return "b"
        if isinstance(node, Binary):
            if node.op in _ARITHMETIC:
                return "n"
            return "s" if node.op == " " else "b"
        if isinstance(node, Unary):
            return "b" if node.op == "!" else "n"
        if isinstance(node, Assign):
            return "n" if node.op != "=" else self.kind(node.value)
        if isinstance(node, Builtin):
            return "n" if node.name in NUMBER_BUILTINS else "s" if node.name in TEXT_BUILTINS else "v"
        if isinstance(node, Getline):
            return "n"
        if isinstance(node, Cond):
            yes, no = self.kind(node.yes), self.kind(node.no)
            return yes if yes == no else "v"
        if (
            isinstance(node, Var)
            and node.name in ("NF", "NR", "FNR", "RSTART", "RLENGTH")
            and self.is_special(node.name)
        ):
            return "n"
        return "v"

    # ------------------------------------------------------------------ contexts

    def number(self, node: Expr) -> str:
        kind = self.kind(node)
        if isinstance(node, Str) and "numerals" not in self.facts.uses:
            from ramet.commands.awk.run.values import to_number

            return _float(to_number(node.value))
        if isinstance(node, Field):
            return self.field_number(node)
        code = self.raw(node)
        if kind == "n":
            return code
        if kind == "b":
            return f"(1.0 if {code} else 0.0)"
        if kind == "s":
            return f"to_number({code})"
        name = code.isidentifier()
        return f"({code} if {code}.__class__ is float else num({code}))" if name else f"num({code})"

    def text(self, node: Expr) -> str:
        kind = self.kind(node)
        if isinstance(node, Num):
            if node.value - node.value == 0.0 and node.value == int(node.value):
                return repr(number_text(node.value, "%.6g"))
            return f"number_text({self._num(node)}, R.convfmt)"
        if isinstance(node, Field):
            return self.field_text(node)
        code = self.raw(node)
        if kind == "s":
            return code
        if kind == "n":
            return f"number_text({code}, R.convfmt)"
        if kind == "b":
            return f"('1' if {code} else '0')"
        return f"text({code})"

    def shown(self, node: Expr) -> str:
        """Return code for a value as `print` shows it."""
        kind = self.kind(node)
        if isinstance(node, Num) and (node.value - node.value != 0.0 or node.value != int(node.value)):
            return f"number_text({self._num(node)}, R.ofmt)"
        if kind == "n" and not isinstance(node, Num):
            return f"number_text({self.raw(node)}, R.ofmt)"
        if kind == "v" and not isinstance(node, Field):
            return f"shown({self.raw(node)})"
        return self.text(node)

    def condition(self, node: Expr) -> str:
        kind = self.kind(node)
        if isinstance(node, Num):
            return repr(node.value != 0.0)
        code = self.value(node) if isinstance(node, Field) else self.raw(node)
        if kind == "b":
            return code
        if kind == "n":
            return f"({code} != 0.0)"
        if kind == "s":
            return f"({code} != '')"
        return f"truth({code})"

    def value(self, node: Expr) -> str:
        """Return code for a value that can be stored."""
        if isinstance(node, Field):
            return self.field_value(node)
        code = self.raw(node)
        return f"(1.0 if {code} else 0.0)" if self.kind(node) == "b" else code

    # ------------------------------------------------------------------ expressions, in their own kind

    def raw(self, node: Expr) -> str:
        method: Callable[[Any], str] = getattr(self, f"_{type(node).__name__.lower()}")
        return method(node)

    def _num(self, node: Num) -> str:
        return _float(node.value)

    def _str(self, node: Str) -> str:
        return repr(node.value)

    def _typed(self, node: Typed) -> str:
        return self.constant("t_", TypedRegex(node.source))

    def _regex(self, node: Regex) -> str:
        return self.test(node, self.field_text(Field(Num(0.0))))

    def _var(self, node: Var) -> str:
        if self.is_mixed(node.name):
            return f"scalar(p_{node.name}, {node.name!r})"
        if self.is_array(node):
            return f"R.misused({node.name!r}, {self.array(node.name)})"
        if self.is_special(node.name):
            return self.get_special(node.name)
        return self.touched(node.name, self.variable(node.name))

    def get_special(self, name: str) -> str:
        if name == "NF":
            return "R.get_nf()"
        if name in _PYTHON:
            return _PYTHON[name]
        return f"R.special[{name!r}]"

    def key(self, subscripts: tuple[Expr, ...]) -> str:
        if len(subscripts) == 1:
            return self.text(subscripts[0])
        return "R.subsep.join((" + ", ".join(self.text(item) for item in subscripts) + "))"

    def _index(self, node: Index) -> str:
        if "subarrays" in self.facts.uses:
            return f"element({self.within(node)}, {self.key(node.subscripts)}, {node.name!r})"
        return self.element(node)

    def element(self, node: Index) -> str:
        """Return what an array holds, be it an array itself."""
        return f"{self.within(node)}[{self.key(node.subscripts)}]"

    def passed_on(self, arg: Expr) -> str:
        """Return a value that goes to a place where it may be an array."""
        return self.element(arg) if isinstance(arg, Index) else self.value(arg)

    def within(self, node: Index | In | Delete) -> str:
        """Return the array that a reference is to an element of."""
        return self.nested(self.array(node.name), node.outer, node.name)

    def nested(self, array: str, path: tuple[tuple[Expr, ...], ...], name: str = "") -> str:
        """Return code for a subarray, which creates missing arrays on the way."""
        for subscripts in path:
            array = f"nested({array}, {self.key(subscripts)}, {name!r})"
        return array

    def _field(self, node: Field) -> str:
        return self.field_value(node)

    def field_number_code(self, node: Field) -> str:
        if isinstance(node.number, Num):
            return repr(int(node.number.value))
        return f"int({self.number(node.number)})"

    def field_value(self, node: Field) -> str:
        return f"R.field({self.field_number_code(node)})"

    def field_text(self, node: Field) -> str:
        return f"R.field_text({self.field_number_code(node)})"

    def field_number(self, node: Field) -> str:
        return f"to_number({self.field_text(node)})"

    def _grouping(self, node: Grouping) -> str:
        if len(node.items) == 1:
            return self.raw(node.items[0])
        return self.key(node.items)

    def _cond(self, node: Cond) -> str:
        kind = self.kind(node)
        if kind == "v":
            return f"({self.value(node.yes)} if {self.condition(node.test)} else {self.value(node.no)})"
        return f"({self.raw(node.yes)} if {self.condition(node.test)} else {self.raw(node.no)})"

    def _unary(self, node: Unary) -> str:
        if node.op == "!":
            return f"(not {self.condition(node.operand)})"
        if node.op == "+":
            return self.number(node.operand)
        return f"(-{self.number(node.operand)})"

    def _binary(self, node: Binary) -> str:
        op = node.op
        if op == " ":
            return self.concatenation(node)
        if op in ("&&", "||"):
            first, row = _row(node, (op,))
            word = " and " if op == "&&" else " or "
            return f"({word.join([self.condition(first), *[self.condition(one) for _, one in row]])})"
        if op in _COMPARE:
            return self.comparison(node)
        if op in "/%" and isinstance(node.right, Num) and node.right.value == 0.0:
            where = "" if op == "/" else " in `%'"
            raise AwkError(f"error: division by zero attempted{where}", 1)
        if op in "+-":
            first, row = _row(node, ("+", "-"))
            if len(row) > _LONG_ROW and type(self).arithmetic is Emitter.arithmetic:
                # One row of operators: Python limits the nesting of parentheses.
                return f"({self.number(first)}{''.join([f' {sign} {self.number(one)}' for sign, one in row])})"
        return self.arithmetic(op, self.number(node.left), self.number(node.right))

    def arithmetic(self, op: str, left: str, right: str, assigned: str = "") -> str:
        if op in "+-*":
            return f"({left} {op} {right})"
        if assigned and op in "/%":
            return f"{'divide' if op == '/' else 'modulo'}({left}, {right}, ' in `{op}=\\'')"
        return {"/": "divide", "%": "modulo", "^": "power"}[op] + f"({left}, {right})"

    def concatenation(self, node: Binary) -> str:
        parts = operands(node)
        if len(parts) == 2:
            code = f"({self.text(parts[0])} + {self.text(parts[1])})"
        else:
            code = "''.join((" + ", ".join(self.text(part) for part in parts) + "))"
        # Only variables and function results can grow from turn to turn; fields are checked elsewhere.
        return f"R.grown({code})" if any(isinstance(part, (Var, Index, Call, Builtin)) for part in parts) else code

    def comparison(self, node: Binary) -> str:
        op = node.op
        left, right = self.kind(node.left), self.kind(node.right)
        numeric = {"n", "b"}
        if left in numeric and right in numeric:
            return f"({self.number(node.left)} {op} {self.number(node.right)})"
        folds = "IGNORECASE" in self.facts.uses
        if left == "s" or right == "s":
            if folds:
                return f"(R.folded({self.text(node.left)}) {op} R.folded({self.text(node.right)}))"
            return f"({self.text(node.left)} {op} {self.text(node.right)})"
        if folds:
            return f"(R.compare({self.value(node.left)}, {self.value(node.right)}) {op} 0)"
        return f"(compare({self.value(node.left)}, {self.value(node.right)}, R.convfmt) {op} 0)"

    def _in(self, node: In) -> str:
        return f"({self.key(node.subscripts)} in {self.within(node)})"

    def rx(self, node: Expr) -> str:
        """Return code that yields a compiled regular expression."""
        if isinstance(node, Grouping) and len(node.items) == 1:
            node = node.items[0]
        if isinstance(node, (Regex, Typed)):
            if "IGNORECASE" in self.facts.uses:
                return f"R.rx({node.source!r})"
            from ramet.commands.awk.run.regex import compiled

            return self.constant(
                "x_", compiled(node.source, utf8="bytes" not in self.facts.uses, dialect=self.facts.regex)
            )
        if isinstance(node, Str) and "IGNORECASE" not in self.facts.uses:
            from ramet.commands.awk.run.regex import compiled, odd_escapes

            if odd_escapes(node.value, self.facts.regex.gnu):
                return f"R.dynamic({node.value!r})"  # which reports it
            try:
                made = compiled(node.value, utf8="bytes" not in self.facts.uses, dialect=self.facts.regex)
                return self.constant("x_", made)
            except AwkError:
                pass  # A string is parsed as a pattern only when it is used as one.
        return f"R.dynamic({self.value(node)})"

    def test(self, pattern: Expr, text: str) -> str:
        """Return code for the truth of a match."""
        code = self.rx(pattern)
        found = self.constants.get(code)
        if found is not None:
            if found.plain is not None:
                return f"({found.plain!r} in {text})"
            if found.text is not None:
                search = self.constant("s_", found.text.search)
                return f"({search}({text}) is not None)"
        return f"{code}.test({text})"

    def _match(self, node: Match) -> str:
        if is_quiet(node.pattern):
            code = self.test(node.pattern, self.text(node.text))
        else:  # the text is evaluated before the pattern
            text = self.temp()
            code = f"(({text} := {self.text(node.text)}), {self.test(node.pattern, text)})[1]"
        return f"(not {code})" if node.negated else code

    # ------------------------------------------------------------------ assignment

    def store(self, target: Expr, code: str) -> str:
        """Return an expression that assigns and has the assigned value, which is worked out before the place for it."""
        if isinstance(target, Var):
            if self.is_array(target):
                return f"R.misused({target.name!r}, {self.array(target.name)})"
            if self.is_special(target.name):
                return self.set_special(target.name, code)
            return self.touched(target.name, f"({self.variable(target.name)} := {code})")
        if isinstance(target, Index) and "subarrays" in self.facts.uses:
            return f"put_value({code}, {self.within(target)}, {self.key(target.subscripts)}, {target.name!r})"
        if isinstance(target, Index):
            return f"put({code}, {self.within(target)}, {self.key(target.subscripts)})"
        assert isinstance(target, Field)
        if not isinstance(target.number, Num):
            return f"R.set_field(value={code}, number={self.field_number_code(target)})"
        return f"R.set_field({self.field_number_code(target)}, {code})"

    def set_special(self, name: str, code: str) -> str:
        if name == "NF":
            return f"R.set_nf({code})"
        if name in _PYTHON:
            return f"set_number(R, {name!r}, {code})"
        return f"R.set({name!r}, {code})"

    def _assign(self, node: Assign) -> str:
        target = node.target
        if node.op == "=":
            return self.store(target, self.value(node.value))
        op = node.op[:-1]
        if isinstance(target, Index):
            key = self.temp()
            array = self.within(target)
            right = self.temp()
            computed = self.arithmetic(op, f"num({array}[{key}])", right, "=")
            return (
                f"(({right} := {self.number(node.value)}), ({key} := {self.key(target.subscripts)}), "
                f"put({computed}, {array}, {key}))[2]"
            )
        right = self.temp()
        computed = self.arithmetic(op, self.number(target), right, "=")
        return f"(({right} := {self.number(node.value)}), {self.store(target, computed)})[1]"

    def _step(self, node: Step) -> str:
        target = node.target
        amount = "+ 1.0" if node.amount > 0 else "- 1.0"
        old = self.temp()
        if isinstance(target, Index):
            key, array = self.temp(), self.within(target)
            setup = f"({key} := {self.key(target.subscripts)}), ({old} := num({array}[{key}]))"
            stored = f"put({old} {amount}, {array}, {key})"
        elif isinstance(target, Field):
            number = self.temp()
            setup = f"({number} := {self.field_number_code(target)}), ({old} := to_number(R.field_text({number})))"
            stored = f"R.set_field({number}, {old} {amount})"
        else:
            setup = f"({old} := {self.number(target)}), None"
            stored = self.store(target, f"{old} {amount}")
        return f"({setup}, {stored}){'[2]' if node.prefix else '[1]' if not isinstance(target, Var) else '[0]'}"

    # ------------------------------------------------------------------ calls

    def _call(self, node: Call) -> str:
        if node.name not in self.program.functions:
            return f"undefined({node.name!r})"
        function = self.program.functions[node.name]
        args: list[str] = []
        for param, arg in zip(function.params, node.args, strict=False):
            wanted = self.facts.is_array(param, node.name, self.program)
            if (node.name, param) in self.facts.mixed:
                args.append(self.either(arg))
            elif wanted:
                if isinstance(arg, Index):
                    args.append(self.nested(self.array(arg.name), (*arg.outer, arg.subscripts), arg.name))
                    continue
                if not isinstance(arg, Var):
                    raise AwkError(f"fatal: attempt to use scalar parameter `{param}' as an array")
                args.append(f"aggregate(1.0, {param!r})" if self.is_special(arg.name) else self.array(arg.name))
            else:
                args.append(self.passed_on(arg))
        missing = function.params[len(node.args) :]
        args += [
            "Array()"
            if self.facts.is_array(name, node.name, self.program) and (node.name, name) not in self.facts.mixed
            else "None"
            for name in missing
        ]
        patient = self.awaits and node.name in self.facts.lasting
        code = f"{'w' if patient else 'f'}_{node.name}({', '.join(args)})"
        code = f"(await {code})" if patient or node.name in self.facts.waiting else code
        extra = [self.value(arg) for arg in node.args[len(function.params) :]]
        # Surplus arguments are evaluated and dropped.
        return f"({', '.join(extra)}, {code})[-1]" if extra else code

    def either(self, arg: Expr) -> str:
        """Return what is passed to a parameter that takes arrays and plain values alike."""
        if isinstance(arg, Var):
            if self.is_mixed(arg.name):
                return f"p_{arg.name}"
            if self.is_array(arg):
                return self.array(arg.name)
        return self.passed_on(arg)

    def _indirect(self, node: Indirect) -> str:
        args = [
            self.array(arg.name) if isinstance(arg, Var) and self.is_array(arg) else self.passed_on(arg)
            for arg in node.args
        ]
        called = self.get_special(node.name) if self.is_special(node.name) else self.variable(node.name)
        return f"(await indirect(R, text({called}), ({''.join(f'{arg}, ' for arg in args)})))"

    def _getline(self, node: Getline) -> str:
        keep = node.target is not None
        if node.kind == "main":
            code = f"await R.getline_main({keep})"
        else:
            assert node.source is not None
            code = f"await R.getline_{node.kind}({self.text(node.source)}, {keep})"
        if node.target is None:
            return f"({code})"
        status = self.temp()
        # Subscripts are evaluated even if nothing is stored.
        unused = "".join(f"{self.text(one)}, " for one in _working(node.target))
        if isinstance(node.target, Var) and self.is_traced(node.target.name):
            unused += self.touched(node.target.name, "None")
        return f"(({status} := {code}), ({self.store(node.target, 'R.got')} if {status} > 0.0 else ({unused})))[0]"

    def _builtin(self, node: Builtin) -> str:
        from ramet.commands.awk.run.builtins import EMITTERS

        return EMITTERS[node.name](self, node.args)


def _working(target: Expr) -> tuple[Expr, ...]:
    """Return the subscripts of a target that may do something besides telling which element is meant."""
    known = target.subscripts if isinstance(target, Index) else ()
    return tuple(one for one in known if not isinstance(one, (Num, Str, Var)))


def _float(value: float) -> str:
    """Return a number as Python source; infinity and NaN have no literal."""
    return repr(value) if value - value == 0.0 else f"float('{value}')"
