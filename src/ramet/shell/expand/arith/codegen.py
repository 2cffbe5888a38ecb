"""Generate Python code for arithmetic expressions that run repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramet.concurrency.recursion import room
from ramet.shell.expand.arith.operators import COMPARE, binary, signs_of
from ramet.shell.expand.arith.parser import MAX, MIN, ArithFailure, Node, wrap

EXPANDED = '$`"'
"""Characters of a subscript that is expanded before it is evaluated."""
EVERY = ("@", "*")
"""Subscripts that name no element of an indexed array; the variables complain and there is no value."""
NUMBERS_KEPT = 16384
"""Texts whose numbers are remembered."""


class _Writer:
    """Writes a tree as Python statements: operands in order, variables read without a call where they are plain
    text."""

    _DEEP = 24

    def __init__(self, text: str) -> None:
        self.text = text
        self.source_name = "TEXT"
        """What stands for the text that an error shows: that of a subscript within one."""
        self.constants: dict[str, object] = {}
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.indent = 1
        self.count = 0

    def new(self, stem: str = "t") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def function(self, node: Node, arguments: str) -> str:
        """Writes a function that evaluates ``node``; its name."""
        lines, indent = self.lines, self.indent
        self.lines, self.indent = [], 1
        name = self.new("f")
        result = self.value(node)
        self.line(f"return {result}")
        head = [f"def {name}({arguments}):", "    values = V.values; get = values.get; attrs = V.attrs"]
        self.functions.extend(head + self.lines)
        self.lines, self.indent = lines, indent
        return name

    def value(self, node: Node) -> str:
        """Emits what computes ``node``; the Python expression (a constant or a name) that holds the result."""
        if self.indent > self._DEEP:
            temp = self.new()
            self.line(f"{temp} = {self.function(node, 'V, H')}(V, H)")
            return temp
        kind = node[0]
        if kind == "num":
            return str(node[1]) if node[1] >= 0 else f"({node[1]})"
        if kind == "hole":
            return f"H[{node[1]}]"
        if kind == "var":
            return self.load(node[1])[0]
        method: Callable[[Node], str] = getattr(self, "_" + kind)
        return method(node)

    def load(self, name: str) -> tuple[str, str]:
        """Reads a variable: where the number is, and where its text."""
        text, temp = self.new("v"), self.new()
        self.line(f"{text} = get({name!r})")
        self.line(f"{temp} = known({text})")
        self.line(f"if {temp} is None: {temp} = number(V, {name!r}, {text})")
        return temp, text

    def save(self, name: str, value: str, text: str | None) -> None:
        """Writes a variable; ``text`` holds its old value when it was read."""
        if text is None:
            text = self.new("v")
            self.line(f"{text} = get({name!r})")
        self.line(f"if {name!r} in attrs or ({text}.__class__ is not str and {text} is not None):")
        self.line(f"    V.set({name!r}, str({value}))")
        self.line("else:")
        self.line(f"    {text} = values[{name!r}] = str({value})")
        self.line(f"    if len(NUMBERS) > {NUMBERS_KEPT}: NUMBERS.clear()")
        self.line(f"    NUMBERS[{text}] = {value}")

    def wrapped(self, expression: str) -> str:
        temp = self.new()
        self.line(f"{temp} = {expression}")
        self.line(f"if not {MIN} <= {temp} <= {MAX}: {temp} = wrap({temp})")
        return temp

    def operate(self, op: str, a: str, b: str, token: int) -> str:
        if op in ("+", "-", "*"):
            return self.wrapped(f"{a} {op} {b}")
        temp = self.new()
        if op in COMPARE:
            self.line(f"{temp} = 1 if {a} {op} {b} else 0")
        elif op in "&|^":
            self.line(f"{temp} = {a} {op} {b}")
        elif op == ">>":
            self.line(f"{temp} = {a} >> ({b} & 63)")
        elif op in "/%":
            python = "//" if op == "/" else "%"
            self.line(f"if {a} >= 0 and {b} > 0: {temp} = {a} {python} {b}")
            self.line(f"else: {temp} = binary({op!r}, {a}, {b}, {self.source_name}, {token!r})")
        else:
            self.line(f"{temp} = binary({op!r}, {a}, {b}, {self.source_name}, {token!r})")
        return temp

    def _chain(self, node: Node) -> str:
        total = self.value(node[1])
        for op, right, token in node[2]:
            total = self.operate(op, total, self.value(right), token)
        return total

    def _pow(self, node: Node) -> str:
        *values, result = [self.value(one) for one in node[1]]
        for value in reversed(values):
            result = self.operate("**", value, result, node[2])
        return result

    def _unary(self, node: Node) -> str:
        signs, operand = signs_of(node)
        value = self.value(operand)
        for op in reversed(signs):
            if op == "-":
                value = self.wrapped(f"-{value}")
            elif op != "+":
                temp = self.new()
                self.line(f"{temp} = ~{value}" if op == "~" else f"{temp} = 0 if {value} else 1")
                value = temp
        return value

    def _fail(self, node: Node) -> str:
        failure = node[2]
        self.value(node[1])
        self.line(f"raise ArithFailure({failure.text!r}, {failure.reason!r}, {failure.token!r})")
        return "0"

    def _and(self, node: Node) -> str:
        return self._logical(node, "0", "1", "not ")

    def _or(self, node: Node) -> str:
        return self._logical(node, "1", "0", "")

    def _logical(self, node: Node, early: str, full: str, test: str) -> str:
        # One turn of a loop that is left as soon as the answer is known: no nesting, however long the row is.
        temp = self.new()
        self.line(f"{temp} = {early}")
        self.line("while 1:")
        self.indent += 1
        for one in node[1]:
            self.line(f"if {test}{self.value(one)}: break")
        self.line(f"{temp} = {full}; break")
        self.indent -= 1
        return temp

    def _cond(self, node: Node) -> str:
        temp = self.new()
        if len(node[1]) == 1:
            ((test, chosen),) = node[1]
            self.line(f"if {self.value(test)}:")
            self.indent += 1
            self.line(f"{temp} = {self.value(chosen)}")
            self.indent -= 1
            self.line("else:")
            self.indent += 1
            self.line(f"{temp} = {self.value(node[2])}")
            self.indent -= 1
            return temp
        self.line("while 1:")
        self.indent += 1
        for test, chosen in node[1]:
            self.line(f"if {self.value(test)}:")
            self.indent += 1
            self.line(f"{temp} = {self.value(chosen)}; break")
            self.indent -= 1
        self.line(f"{temp} = {self.value(node[2])}; break")
        self.indent -= 1
        return temp

    def _comma(self, node: Node) -> str:
        result = "0"
        for one in node[1]:
            result = self.value(one)
        return result

    def key(self, node: Node) -> str:
        """Emits the key of an array's element: text for an associative array, else a number."""
        _, name, source, index = node
        if not source:
            return "''"
        temp = self.new("k")
        self.line(f"if V.is_assoc({name!r}): {temp} = V.key_of({source!r})")
        self.line("else:")
        self.indent += 1
        if isinstance(index, ArithFailure) and any(char in source for char in EXPANDED):
            self.line(f"{temp} = V.arith({source!r})")
        elif source in EVERY:
            self.line(f"{temp} = {source!r}")
        elif isinstance(index, ArithFailure):
            self.line(f"raise ArithFailure({index.text!r}, {index.reason!r}, {index.token!r}).in_subscript()")
        elif index[0] in ("num", "hole"):
            self.line(f"{temp} = {self.value(index)}")
        else:
            outer, self.source_name = self.source_name, repr(source)
            self.line("try:")
            self.indent += 1
            self.line(f"{temp} = {self.value(index)}")
            self.indent -= 1
            self.line("except ArithFailure as failure: raise failure.in_subscript() from None")
            self.source_name = outer
        self.indent -= 1
        return temp

    def _elt(self, node: Node) -> str:
        key, temp = self.key(node), self.new()
        self.line(f"{temp} = element(V, {node[1]!r}, {key})")
        return temp

    def _set(self, node: Node) -> str:
        row: list[tuple[Node, str, str, str | None]] = []
        while node[0] == "set":
            _, target, op, right, _ = node
            key, old, text = "", "", None
            if op and target[0] == "var":
                old, text = self.load(target[1])
            elif op:
                key, old = self.key(target), self.new()
                self.line(f"{old} = element(V, {target[1]!r}, {key})")
            row.append((node, key, old, text))
            node = right
        value = self.value(node)
        for (_, target, op, _, token), key, old, text in reversed(row):
            if op:
                value = self.operate(op, old, value, token)
            if target[0] == "var":
                self.save(target[1], value, text)
                continue
            # Which element is meant is asked only when the value is known: `a[n] = n++`.
            self.line(f"V.set_item({target[1]!r}, {key or self.key(target)}, str({value}))")
        return value

    def _step(self, node: Node) -> str:
        _, target, delta, post = node
        name = target[1]
        sign = "+" if delta > 0 else "-"
        if target[0] == "var":
            old, text = self.load(name)
            new = self.wrapped(f"{old} {sign} 1")
            self.save(name, new, text)
        else:
            key = self.key(target)
            old = self.new()
            self.line(f"{old} = element(V, {name!r}, {key})")
            new = self.wrapped(f"{old} {sign} 1")
            self.line(f"V.set_item({name!r}, {key}, str({new}))")
        return old if post else new


def generated(text: str, node: Node, holes: bool, scope: dict[str, Any]) -> Callable[..., int]:
    """The function that evaluates `node`; `scope` has what reads the values of variables."""
    writer = _Writer(text)
    with room:
        name = writer.function(node, "V, H" if holes else "V, H=()")
    scope = {**scope, "TEXT": text, "ArithFailure": ArithFailure, "binary": binary, "wrap": wrap}
    exec(compile("\n".join(writer.functions), "<arithmetic>", "exec"), scope)
    function: Callable[..., int] = scope[name]
    return function
