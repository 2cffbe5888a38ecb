"""Shell arithmetic: 64-bit integers, all C operators, side effects; expressions that repeat run as generated
Python code.

`evaluate` takes expanded text, `prepare` a text that is known beforehand, `template` one with holes for values
that are known only when it runs (``$(($1 + 2))``). Text is parsed once (`arith_parse`), walked the first times it is
seen, compiled when it is seen again (`arith_code`).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ramet.concurrency.offload import checkpoint, in_thread
from ramet.concurrency.recursion import room
from ramet.shell.expand.arith.codegen import EVERY, EXPANDED, NUMBERS_KEPT, generated
from ramet.shell.expand.arith.operators import binary, signs_of
from ramet.shell.expand.arith.parser import HOLE, MAX_LEVEL, ArithFailure, Node, deep, parse_arith, wrap
from ramet.shell.plain_mode import FAST


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
_COMPILE_AT = 3 if FAST else sys.maxsize
"""How often an expression is seen before it is compiled."""
_KEPT = 4096
_LONGEST = 4096
"""Characters of an expression that is worth compiling."""


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
        leads = value is not None
        if leads:
            value = vars.get(name)
        if value is None:
            host = getattr(vars, "host", None)
            if host is not None and getattr(host, "nounset", False):
                raise Unbound(vars.follow(name)[0] if leads else name)
            return 0
    assert isinstance(value, str)
    found = plain(value)
    if found is None:
        return nested(vars, value)
    if len(_numbers) <= NUMBERS_KEPT:
        _numbers[value] = found
    return found


_numbers: dict[object, int] = {}
"""Texts of plain numbers and their values: generated code asks here first, a lookup is cheaper than a conversion."""
_level = 0
_ROOMY = 32
"""Values that are expressions again for which there is room in any case."""
_LONG_EXPRESSION = 1 << 13
"""Characters of an expression that is computed on the event loop, where the variables set no limit."""


def nested(vars: Any, text: str) -> int:
    """The value of a variable is an expression itself."""
    global _level
    if not text or text.isspace():
        return 0
    _level += 1
    try:
        if _level >= MAX_LEVEL - 1:
            raise ArithFailure(text, "expression recursion level exceeded", text)
        if in_thread():
            checkpoint()
        else:
            _count(vars, text)
        if _level != _ROOMY:
            return evaluate(text, vars)
        with room:
            return evaluate(text, vars)
    except RecursionError:
        raise ArithFailure(text, "expression recursion level exceeded", text) from None
    finally:
        _level -= 1


class _Held:
    """What has been computed of values that are expressions since the event loop had its last turn."""

    slice_end, work = 0.0, 0


_held = _Held()
_EACH = 32
"""Cost of an expression in addition to its characters."""
_MOST = 24
"""How many times as long as an expression all those may be that its variables stand for in turn."""


def _count(vars: Any, text: str) -> None:
    """Refuse a long expression, and values that double with each variable they name."""
    longest = getattr(vars, "longest", _LONG_EXPRESSION)
    host = getattr(vars, "host", None)
    if host is not None and host.budget.slice_end != _held.slice_end:
        _held.slice_end, _held.work = host.budget.slice_end, 0
    _held.work += len(text) + _EACH
    if len(text) > longest or _held.work > longest * _MOST:
        head = text if len(text) <= _HEAD else f"{text[:_HEAD]}..."
        raise ArithFailure(head, f"limit reached: expression_chars ({longest})", text[:_HEAD])


_HEAD = 40


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
        if host is not None and getattr(host, "nounset", False) and not vars.has_value(name):
            raise Unbound(name)
        return 0
    found = plain(value)
    return found if found is not None else nested(vars, value)


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
            if any(char in source for char in EXPANDED):
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


# ------------------------------------------------------------------------------ API

_SCOPE: dict[str, Any] = {"number": number, "element": element, "NUMBERS": _numbers, "known": _numbers.get}
"""What generated code calls."""
_trees: dict[str, list[Any]] = {}  # text -> [tree or failure, times seen, code]
_codes: dict[str, Code] = {}
_templates: dict[tuple[str, ...], Callable[[Any, Sequence[str]], int | None] | None] = {}


def own_failure(error: Exception) -> bool:
    """Whether the expression itself cannot be evaluated, no subscript or expansion in it: only its command fails."""
    return isinstance(error, ArithFailure) and not error.subscript and not error.nested


def evaluate(text: str, vars: Any) -> int:
    """The value of an expanded expression. Raises ArithFailure, or what the variables raise."""
    if len(text) > _LONGEST:
        return _walk(vars, text, parse_arith(text))  # to look it up, and to keep it, takes too much
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
    if entry[1] >= _COMPILE_AT:
        entry[2] = generated(text, tree, False, _SCOPE)
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
    kept = len(text) <= _LONGEST
    found = _codes.get(text) if kept else None
    if found is None:
        try:
            tree = parse_arith(text)
            found = generated(text, tree, False, _SCOPE) if kept else _walked(text, tree)
        except ArithFailure as failure:
            wrong = failure

            def found(vars: Any) -> int:
                raise wrong.again()

        if kept:
            if len(_codes) >= _KEPT:
                _codes.clear()
            _codes[text] = found
    return found


def template(texts: Sequence[str]) -> Callable[[Any, Sequence[str]], int | None] | None:
    """The code of an expression with a hole between each two of ``texts``.

    It is called with the variables and the text for each hole, and returns None, with nothing done, when one of
    them is not a plain
    number: then the texts must be joined and evaluated. The answer is None where no hole may be a whole number.
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
    function = generated(source, tree, True, _SCOPE)

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
                if len(_numbers) <= NUMBERS_KEPT:
                    _numbers[text] = value
            numbers.append(value)
        for place in signed:
            if numbers[place] < 0:
                return None
        for name in arrays:
            if vars.is_assoc(name):
                return None
        try:
            return function(vars, numbers)
        except ArithFailure as failure:
            raise failure.filled(values) from None

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
