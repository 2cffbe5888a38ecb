"""Shell arithmetic: 64-bit integers, all C operators, side effects; expressions that repeat run as generated
Python code.

`evaluate` takes expanded text, `prepare` a text that is known beforehand, `template` one with holes for values
that are
known only when it runs (``$(($1 + 2))``). Text is parsed once (`arith_parse`), walked the first times it is seen,
compiled when it is seen again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ramet.core.depth import room
from ramet.shell.expand.arith_parse import HOLE, MAX, MAX_LEVEL, MIN, ArithFailure, Node, deep, parse_arith, wrap
from ramet.shell.expand.aside import apart


class Vars(Protocol):
    """The variables as arithmetic uses them; plain text values are read straight from ``values``."""

    values: dict[str, Any]
    attrs: dict[str, int]
    key_of: Callable[[str], str]

    def get(self, name: str) -> str | None: ...
    def set(self, name: str, value: str) -> None: ...
    def is_assoc(self, name: str) -> bool: ...
    def item(self, name: str, key: int | str) -> str | None: ...
    def set_item(self, name: str, key: int | str, value: str) -> None: ...


class Unbound(Exception):
    """``set -u`` and a variable without a value."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: unbound variable")
        self.name = name


Code = Callable[[Any], int]
_COMPILE_AT = 3
_KEPT = 4096
_LONGEST = 4096
"""Characters of an expression that is worth compiling."""
_NUMBERS_KEPT = 16384


# ------------------------------------------------------------------ values of variables


def plain(text: str) -> int | None:
    """The value of a text that is just a decimal number, as nearly all are; None for anything else."""
    if len(text) >= 19:
        return None
    if text.isdecimal() and text.isascii():
        if text[0] != "0" or len(text) == 1:
            return int(text)
    elif text[:1] == "-" and text[1:2] != "0" and text[1:].isdecimal() and text.isascii():
        return int(text)
    return None


def number(vars: Any, name: str, value: object) -> int:
    """What a variable is worth when its value is not the usual text of digits."""
    if value.__class__ is not str:
        if value is not None:
            value = vars.get(name)
        if value is None:
            host = getattr(vars, "host", None)
            if host is not None and getattr(host, "nounset", False):
                raise Unbound(name)
            return 0
    assert isinstance(value, str)
    found = plain(value)
    if found is None:
        return nested(vars, value)
    if len(_numbers) <= _NUMBERS_KEPT:
        _numbers[value] = found
    return found


_numbers: dict[object, int] = {}
"""Texts of plain numbers and their values: generated code asks here first, a lookup is cheaper than a conversion."""
_level = 0
_ROOMY = 32
"""Values that are expressions again for which there is room in any case."""
_LONG_EXPRESSION = 1 << 13
"""Characters of an expression that is computed only where it holds up nobody, unless the variables know better."""


def nested(vars: Any, text: str) -> int:
    """The value of a variable is an expression itself."""
    global _level
    if not text or text.isspace():
        return 0
    _level += 1
    try:
        if _level >= MAX_LEVEL - 1:
            raise ArithFailure(text, "expression recursion level exceeded", text)
        longest = getattr(vars, "longest", _LONG_EXPRESSION)
        if len(text) > longest and not apart():
            raise ArithFailure(f"{text[:40]}...", f"limit reached: expression_chars ({longest})", text[:40])
        if _level != _ROOMY:
            return evaluate(text, vars)
        with room:
            return evaluate(text, vars)
    except RecursionError:
        raise ArithFailure(text, "expression recursion level exceeded", text) from None
    finally:
        _level -= 1


EVERY = ("@", "*")
"""Subscripts that name no element of an indexed array; the variables complain and there is no value."""


def element(vars: Any, name: str, key: int | str) -> int:
    """The number in an array's element."""
    if key == "":
        vars.warn(f"{name}[]: bad array subscript")
        vars.warn(f"{name}[]: bad array subscript")  # bash looks twice
        return 0
    value = vars.item(name, key)
    if value is None:
        if key in EVERY:
            return 0
        host = getattr(vars, "host", None)
        if host is not None and getattr(host, "nounset", False) and not vars.elements(name):
            raise Unbound(name)
        return 0
    found = plain(value)
    return found if found is not None else nested(vars, value)


def divide(a: int, b: int) -> int:
    """Division as in C: toward zero."""
    quotient = abs(a) // abs(b)
    return wrap(quotient if (a < 0) == (b < 0) else -quotient)


def power(a: int, b: int) -> int:
    return wrap(pow(a, b, 1 << 64))


def binary(op: str, a: int, b: int, text: str, at: int) -> int:
    """One operator on two numbers; `at` is where in the text an error begins."""
    if op == "+":
        return wrap(a + b)
    if op == "-":
        return wrap(a - b)
    if op == "*":
        return wrap(a * b)
    if op in "/%":
        if not b:
            raise ArithFailure(text, "division by 0", text[at:])
        return divide(a, b) if op == "/" else wrap(a - b * divide(a, b)) if b != -1 else 0
    if op == "**":
        if b < 0:
            raise ArithFailure(text, "exponent less than 0", text[at:])
        return power(a, b)
    if op == "<<":
        return wrap(a << (b & 63))
    if op == ">>":
        return a >> (b & 63)
    if op == "&":
        return a & b
    if op == "|":
        return a | b
    if op == "^":
        return a ^ b
    return int(_COMPARE[op](a, b))


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    ">": int.__gt__,
    "<=": int.__le__,
    ">=": int.__ge__,
}


def signs_of(node: Node) -> tuple[list[str], Node]:
    """The signs before an operand, the first one first, and the operand."""
    signs: list[str] = []
    while node[0] == "unary":
        signs.append(node[1])
        node = node[2]
    return signs, node


# ------------------------------------------------------------------------- walking


class _Walk:
    """Evaluates a tree once; for texts that are seen too rarely to be compiled."""

    def __init__(self, vars: Any, text: str) -> None:
        self.vars = vars
        self.text = text

    def key(self, node: Node) -> int | str:
        _, name, source, index = node
        if not source:
            return ""
        if self.vars.is_assoc(name):
            return str(self.vars.key_of(source))
        if isinstance(index, ArithFailure):
            if "$" in source or "`" in source:
                return int(self.vars.arith(source))
            if source in EVERY:
                return str(source)
            raise index.again()
        try:
            return _Walk(self.vars, source).value(index)
        except ArithFailure as failure:
            raise failure.in_subscript() from None

    def value(self, node: Node) -> int:
        kind = node[0]
        if kind == "num":
            return int(node[1])
        if kind == "var":
            name = node[1]
            return number(self.vars, name, self.vars.values.get(name))
        if kind == "chain":
            total = self.value(node[1])
            for op, right, token in node[2]:
                total = binary(op, total, self.value(right), self.text, token)
            return total
        if kind == "elt":
            return element(self.vars, node[1], self.key(node))
        method: Callable[[Node], int] = getattr(self, "_" + kind)
        return method(node)

    def _pow(self, node: Node) -> int:
        *values, result = [self.value(one) for one in node[1]]
        for value in reversed(values):
            result = binary("**", value, result, self.text, node[2])
        return result

    def _unary(self, node: Node) -> int:
        signs, operand = signs_of(node)
        value = self.value(operand)
        for op in reversed(signs):
            value = wrap(-value) if op == "-" else value if op == "+" else ~value if op == "~" else int(not value)
        return value

    def _fail(self, node: Node) -> int:
        self.value(node[1])
        raise node[2].again()

    def _and(self, node: Node) -> int:
        for one in node[1]:
            if not self.value(one):
                return 0
        return 1

    def _or(self, node: Node) -> int:
        for one in node[1]:
            if self.value(one):
                return 1
        return 0

    def _cond(self, node: Node) -> int:
        for test, chosen in node[1]:
            if self.value(test):
                return self.value(chosen)
        return self.value(node[2])

    def _comma(self, node: Node) -> int:
        result = 0
        for one in node[1]:
            result = self.value(one)
        return result

    def _store(self, target: Node, key: int | str, value: int) -> None:
        if target[0] == "var":
            self.vars.set(target[1], str(value))
        else:
            self.vars.set_item(target[1], key, str(value))

    def _read(self, target: Node, key: int | str) -> int:
        return self.value(target) if target[0] == "var" else element(self.vars, target[1], key)

    def _set(self, node: Node) -> int:
        row: list[tuple[Node, int | str, int]] = []
        while node[0] == "set":
            _, target, op, right, _ = node
            key: int | str = 0 if target[0] == "var" or not op else self.key(target)
            row.append((node, key, self._read(target, key) if op else 0))
            node = right
        value = self.value(node)
        for (_, target, op, _, token), key, old in reversed(row):
            if op:
                value = binary(op, old, value, self.text, token)
            elif target[0] != "var":
                # Which element is meant is asked only when the value is known: `a[n] = n++`.
                key = self.key(target)
            self._store(target, key, value)
        return value

    def _step(self, node: Node) -> int:
        _, target, delta, post = node
        key: int | str = 0 if target[0] == "var" else self.key(target)
        old = self._read(target, key)
        new = wrap(old + delta)
        self._store(target, key, new)
        return old if post else new


# ------------------------------------------------------------------------ generating


class _Generate:
    """Writes a tree as Python statements: operands in order, variables read without a call where they are plain
    text."""

    _DEEP = 24

    def __init__(self, text: str) -> None:
        self.text = text
        self.shown = "TEXT"
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
        self.line(f"    if len(NUMBERS) > {_NUMBERS_KEPT}: NUMBERS.clear()")
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
        if op in _COMPARE:
            self.line(f"{temp} = 1 if {a} {op} {b} else 0")
        elif op in "&|^":
            self.line(f"{temp} = {a} {op} {b}")
        elif op == ">>":
            self.line(f"{temp} = {a} >> ({b} & 63)")
        elif op in "/%":
            python = "//" if op == "/" else "%"
            self.line(f"if {a} >= 0 and {b} > 0: {temp} = {a} {python} {b}")
            self.line(f"else: {temp} = binary({op!r}, {a}, {b}, {self.shown}, {token!r})")
        else:
            self.line(f"{temp} = binary({op!r}, {a}, {b}, {self.shown}, {token!r})")
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
        if isinstance(index, ArithFailure) and ("$" in source or "`" in source):
            self.line(f"{temp} = V.arith({source!r})")
        elif source in EVERY:
            self.line(f"{temp} = {source!r}")
        elif isinstance(index, ArithFailure):
            self.line(f"raise ArithFailure({index.text!r}, {index.reason!r}, {index.token!r}).in_subscript()")
        elif index[0] in ("num", "hole"):
            self.line(f"{temp} = {self.value(index)}")
        else:
            shown, self.shown = self.shown, repr(source)
            self.line("try:")
            self.indent += 1
            self.line(f"{temp} = {self.value(index)}")
            self.indent -= 1
            self.line("except ArithFailure as failure: raise failure.in_subscript() from None")
            self.shown = shown
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


def _generated(text: str, node: Node, holes: bool) -> Callable[..., int]:
    generator = _Generate(text)
    with room:
        name = generator.function(node, "V, H" if holes else "V, H=()")
    scope: dict[str, Any] = {
        "TEXT": text,
        "ArithFailure": ArithFailure,
        "number": number,
        "element": element,
        "binary": binary,
        "wrap": wrap,
        "NUMBERS": _numbers,
        "known": _numbers.get,
    }
    exec(compile("\n".join(generator.functions), "<arithmetic>", "exec"), scope)
    function: Callable[..., int] = scope[name]
    return function


# ------------------------------------------------------------------------------ API

_trees: dict[str, list[Any]] = {}  # text -> [tree or failure, times seen, code]
_codes: dict[str, Code] = {}
_templates: dict[tuple[str, ...], Callable[[Any, Sequence[str]], int | None] | None] = {}


def evaluate(text: str, vars: Any) -> int:
    """The value of an expanded expression. Raises ArithFailure, or what the variables raise."""
    entry = _trees.get(text)
    if entry is None:
        found = plain(text)
        if found is not None:
            return found
        if len(_trees) >= _KEPT:
            _trees.clear()
        try:
            tree: Node | ArithFailure = parse_arith(text)
        except ArithFailure as failure:
            tree = failure
        entry = _trees[text] = [tree, 0, None]
    code = entry[2]
    if code is not None:
        return int(code(vars))
    tree = entry[0]
    if isinstance(tree, ArithFailure):
        raise tree.again()
    entry[1] += 1
    if entry[1] >= _COMPILE_AT and len(text) <= _LONGEST:
        entry[2] = _generated(text, tree, False)
    return _walk(vars, text, tree)


def _walk(vars: Any, text: str, tree: Node) -> int:
    if not deep(text):
        return _Walk(vars, text).value(tree)
    with room:
        try:
            return _Walk(vars, text).value(tree)
        except RecursionError:
            raise ArithFailure(text, "expression recursion level exceeded", text) from None


def _walked(text: str, tree: Node) -> Code:
    return lambda vars: _walk(vars, text, tree)


def prepare(text: str) -> Code:
    """The code of an expression that will run often. Never raises; a wrong expression fails when it runs."""
    found = _codes.get(text)
    if found is None:
        try:
            tree = parse_arith(text)
            found = _generated(text, tree, False) if len(text) <= _LONGEST else _walked(text, tree)
        except ArithFailure as failure:
            wrong = failure

            def found(vars: Any) -> int:
                raise wrong.again()

        if len(_codes) >= _KEPT:
            _codes.clear()
        _codes[text] = found
    return found


def template(texts: Sequence[str]) -> Callable[[Any, Sequence[str]], int | None] | None:
    """The code of an expression with a hole between each two of ``texts``.

    It is called with the variables and the text for each hole, and returns None, with nothing done, when one of
    them is not a plain
    number: then the texts must be joined and evaluated. The answer is None where no hole may be a number of its own.
    """
    key = tuple(texts)
    if key in _templates:
        return _templates[key]
    code = _template(key)
    if len(_templates) >= _KEPT:
        _templates.clear()
    _templates[key] = code
    return code


def _template(texts: tuple[str, ...]) -> Callable[[Any, Sequence[str]], int | None] | None:
    minus: list[bool] = []
    for before, after in itertools.pairwise(texts):
        if (before and (before[-1].isalnum() or before[-1] in "_@#$\"'\\")) or (
            after and (after[0].isalnum() or after[0] in "_@#[\"'")
        ):
            return None
        minus.append(before.endswith(("-", "+")))
    if any(not text for text in texts[1:-1]):
        return None
    source = HOLE.join(texts)
    if len(source) > _LONGEST:
        return None
    try:
        tree = parse_arith(source)
    except ArithFailure:
        return None
    if tree[0] == "fail":
        return None
    arrays = _keyed_arrays(tree)
    function = _generated(source, tree, True)

    signed = tuple(place for place, after in enumerate(minus) if after)
    known = _numbers.get

    def run(vars: Any, values: Sequence[str]) -> int | None:
        numbers: list[int] = []
        for text in values:
            value = known(text)
            if value is None:
                value = plain(text)
                if value is None:
                    return None
                if len(_numbers) <= _NUMBERS_KEPT:
                    _numbers[text] = value
            numbers.append(value)
        for place in signed:
            if numbers[place] < 0:
                return None
        for name in arrays:
            if vars.is_assoc(name):
                return None
        return function(vars, numbers)

    return run


def _keyed_arrays(node: Any) -> set[str]:
    """The arrays in whose subscripts a hole stands."""
    found: set[str] = set()
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple | list):
            if len(one) == 4 and one[0] == "elt" and HOLE in one[2]:
                found.add(one[1])
            stack.extend(part for part in one if isinstance(part, tuple | list))
    return found
