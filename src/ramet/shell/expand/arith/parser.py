"""The grammar of arithmetic expressions: text to nested tuples, errors worded as bash words them.

Nodes: ("num", value), ("var", name), ("elt", name, source, index), ("hole", k), ("unary", op, x),
("pow", [x, y, ..], token), ("chain", first, [(op, y, token), ...]), ("and", [..]), ("or", [..]),
("cond", [(c, a), ..], b), ("comma", [..]), ("set", target, op, value, token),
("step", target, delta, post), ("fail", x, failure).
Rows of operators are lists, so that length never nests; what nests all the same (signs, assignments) is walked in
loops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ramet.concurrency.offload import interruptible
from ramet.concurrency.recursion import room

MAX, MIN = (1 << 63) - 1, -(1 << 63)
HOLE = "\0"
Node = tuple[Any, ...]
_DIGITS = {c: n for n, c in enumerate("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@_")}
MAX_LEVEL = 1024
"""Expressions within expressions, as bash counts them: subscripts, and values that are expressions again."""
_ROOMY = 32
"""Levels for which there is always room."""


def wrap(value: int) -> int:
    """The value as a signed 64-bit number."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _fill(texts: Sequence[str], values: Sequence[str]) -> str:
    return texts[0] + "".join([value + text for value, text in zip(values, texts[1:], strict=True)])


class ArithFailure(Exception):
    """An expression that cannot be evaluated; ``message`` is what bash prints after its prefix."""

    def __init__(self, text: str, reason: str, token: str) -> None:
        self.text, self.reason, self.token = text, reason, token
        self.done: list[Node] = []
        """What was read before, and is evaluated before the failure shows, as bash evaluates while it reads."""
        self.subscript = False
        """Whether it is a subscript that cannot be evaluated, which ends more than the command that has it."""
        self.nested = False
        """Whether an expansion within the expression failed, which is reported instead."""
        super().__init__(text, reason, token)

    @property
    def parts(self) -> tuple[str, ...]:
        return self.text.lstrip(" \t"), f': {self.reason} (error token is "', self.token, '")'

    @property
    def message(self) -> str:
        return "".join(self.parts)

    def __str__(self) -> str:
        return self.message

    def filled(self, values: Sequence[str]) -> ArithFailure:
        """The failure of an expression with holes, as one of what stood in them."""
        texts = self.text.split(HOLE)
        if len(texts) != len(values) + 1:
            return self
        left = len(values) - self.token.count(HOLE)
        fresh = ArithFailure(_fill(texts, values), self.reason, _fill(self.token.split(HOLE), values[left:]))
        fresh.subscript = self.subscript
        return fresh

    def after(self, *done: Node) -> ArithFailure:
        """This failure, seen only after all that was read before it."""
        self.done[:0] = done
        return self

    def again(self) -> ArithFailure:
        """A fresh one to raise; this one is kept with its text."""
        fresh = ArithFailure(self.text, self.reason, self.token)
        fresh.subscript = self.subscript
        return fresh

    def in_subscript(self) -> ArithFailure:
        """The same, in the subscript of an array."""
        self.subscript = True
        return self.again()


_TOKEN = re.compile(
    r"[ \t\n\r]*(?:([0-9][0-9A-Za-z_@#]*+)|([A-Za-z_][0-9A-Za-z_]*+)|(\0)"
    r"|(<<=|>>=|\*\*|\+\+|--|<=|>=|==|!=|&&|\|\||<<|>>|[-+*/%&^|]=|[-+*/%&^|<>=!~?:,()]))?",
    re.ASCII,
).match
_END, _NUMBER, _NAME, _HOLE, _OPERATOR = range(5)
_BRACKET = re.compile(r"[\[\]]|\\.|'[^']*+'?|\"(?>(?:[^\"\\]|\\.)*)\"?", re.DOTALL).finditer
_BLANK = re.compile(r"[ \t\n\r]*").match
_LEVELS = {
    op: level
    for level, ops in enumerate(
        (("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
    )
    for op in ops
}
_ASSIGN = {"=": "", "+=": "+", "-=": "-", "*=": "*", "/=": "/", "%=": "%", "&=": "&", "^=": "^", "|=": "|"}
_ASSIGN |= {"<<=": "<<", ">>=": ">>"}


def deep(text: str) -> bool:
    """Whether an expression may nest so deep that parsing and evaluating it need room."""
    return text.count("(") + text.count("[") + text.count("?") > _ROOMY


class _Parser:
    def __init__(self, text: str, base: int = 0, closers: dict[int, int] | None = None) -> None:
        self.text = text
        self.base = base  # where this text begins in the whole expression
        self.closers = closers  # place after a `[` in the whole expression -> place of its `]`
        self.pos = 0
        self.kind = _END
        self.value = ""
        self.start = 0  # of the last token that was not the end: where bash's error token begins
        self.before = 0  # end of the token before the one in sight
        self.holes = 0
        self.depth = 0
        self.level = 0

    def fail(self, reason: str) -> ArithFailure:
        return ArithFailure(self.text, reason, self.text[self.start :])

    def advance(self) -> None:
        self.before = self.pos
        m = _TOKEN(self.text, self.pos)
        assert m is not None  # all of it is optional
        kind = m.lastindex
        if kind is None:
            blank = _BLANK(self.text, self.pos)
            assert blank is not None
            if blank.end() < len(self.text):
                self.start = blank.end()
                raise self.fail(
                    "syntax error: operand expected"
                    if self.kind in (_END, _OPERATOR)
                    else "syntax error: invalid arithmetic operator"
                )
            self.kind, self.value = _END, ""
            return
        self.kind, self.value = kind, m[kind]
        self.start, self.pos = m.span(kind)

    def is_operator(self, op: str) -> bool:
        return self.kind == _OPERATOR and self.value == op

    # ------------------------------------------------------------------- grammar

    def whole(self) -> Node:
        self.advance()
        if self.kind == _END:
            return ("num", 0)
        try:
            node = self.comma()
            if self.kind != _END:
                raise self.unexpected().after(node)
        except ArithFailure as failure:
            if not failure.done:
                raise
            return ("fail", _row(failure.done), failure)
        return node

    def unexpected(self) -> ArithFailure:
        """What is said of the token in sight. bash reads the one after a name as well, and every number at once: one
        that is wrong in itself is what it finds first."""
        start = self.start
        if self.kind == _NAME and not self.text.startswith("[", self.pos):
            self.advance()
        if self.kind == _NUMBER:
            self.constant(self.value)
        self.start = start
        return self.fail("syntax error in expression")

    def comma(self) -> Node:
        self.depth += 1
        items = [self.assignment()]
        try:
            while self.is_operator(","):
                self.advance()
                items.append(self.assignment())
        except ArithFailure as failure:
            failure.after(*items)
            raise
        self.depth -= 1
        return items[0] if len(items) == 1 else ("comma", items)

    def assignment(self) -> Node:
        targets: list[tuple[Node, str]] = []
        while True:
            node = self.conditional()
            if self.kind != _OPERATOR or self.value not in _ASSIGN:
                break
            if node[0] not in ("var", "elt"):
                raise self.fail("attempted assignment to non-variable").after(node)
            targets.append((node, _ASSIGN[self.value]))
            self.advance()
        while targets:
            target, op = targets.pop()
            node = ("set", target, op, node, self.start)
        return node

    def conditional(self) -> Node:
        node = self.either()
        if not self.is_operator("?"):
            return node
        row: list[tuple[Node, Node]] = []
        while True:
            test, yes = node, None
            try:
                self.advance()
                if self.kind == _END or self.is_operator(":"):
                    raise self.fail("expression expected")
                yes = self.comma()
                if not self.is_operator(":"):
                    raise self.fail("`:' expected for conditional expression")
                self.advance()
                if self.kind == _END:
                    raise self.fail("expression expected")
                node = self.either()
            except ArithFailure as failure:
                rest = _row(failure.done)
                row.append((test, rest if yes is None else yes))
                failure.done = [("cond", row, ("num", 0) if yes is None else rest)]
                raise
            row.append((test, yes))
            if not self.is_operator("?"):
                return ("cond", row, node)

    def either(self) -> Node:
        node = self.binary(0)
        if self.is_operator("&&"):
            node = self.both(node)
        return self.rest_of_either(node) if self.is_operator("||") else node

    def rest_of_either(self, first: Node) -> Node:
        items = [first]
        try:
            while self.is_operator("||"):
                self.advance()
                node = self.binary(0)
                items.append(self.both(node) if self.is_operator("&&") else node)
        except ArithFailure as failure:
            failure.done = [("or", [*items, _row(failure.done)])]
            raise
        return ("or", items)

    def both(self, first: Node) -> Node:
        items = [first]
        try:
            while self.is_operator("&&"):
                self.advance()
                items.append(self.binary(0))
        except ArithFailure as failure:
            failure.done = [("and", [*items, _row(failure.done)])]
            raise
        return ("and", items)

    def binary(self, least: int) -> Node:
        left = self.unary()
        if self.is_operator("**"):
            left = self.power(left)
        row: list[tuple[str, Node, int]] | None = None
        row_level = -1
        while self.kind == _OPERATOR:
            if self.value in ("++", "--"):
                # After a number these are two operators, unless a name follows.
                if self._name_follows():
                    break
                self.pos -= 1
                self.value = self.value[0]
            level = _LEVELS.get(self.value)
            if level is None or level < least:
                break
            op = self.value
            try:
                self.advance()
                token = self.start
                right = self.binary(level + 1)
            except ArithFailure as failure:
                failure.after(left)
                raise
            if row is None or row_level != level:
                row = []
                row_level = level
                left = ("chain", left, row)
            row.append((op, right, token))
        return left

    def power(self, base: Node) -> Node:
        row = [base]
        try:
            while self.is_operator("**"):
                self.advance()
                row.append(self.unary())
        except ArithFailure as failure:
            failure.after(*row)
            raise
        return ("pow", row, self.start)

    def unary(self) -> Node:
        signs: list[str] = []
        while self.kind == _OPERATOR and self.value in ("!", "~", "+", "-", "++", "--"):
            op = self.value
            if op in ("++", "--"):
                if self._name_follows():
                    self.advance()
                    target = self.primary()
                    if target[0] not in ("var", "elt"):
                        raise self.fail("syntax error: operand expected")
                    return self._signed(("step", target, 1 if op == "++" else -1, False), signs)
                self.pos -= 1
                op = op[0]
            signs.append(op)
            self.advance()
        return self._signed(self.primary(), signs)

    def _name_follows(self) -> bool:
        blank = _BLANK(self.text, self.pos)
        assert blank is not None
        following = self.text[blank.end() : blank.end() + 1]
        return following.isalpha() or following == "_"

    def _signed(self, node: Node, signs: list[str]) -> Node:
        for op in reversed(signs):
            node = ("unary", op, node)
        return node

    def primary(self) -> Node:
        if self.kind == _NUMBER:
            node: Node = ("num", self.constant(self.value))
            self.advance()
            return node
        if self.kind == _NAME:
            return self.variable()
        if self.kind == _HOLE:
            node = ("hole", self.holes)
            self.holes += 1
            self.advance()
            return node
        if self.is_operator("("):
            self.advance()
            node = self.comma()
            if not self.is_operator(")"):
                raise self.fail("missing `)'").after(node)
            self.advance()
            # A parenthesis is a value, not a place to assign to.
            return ("unary", "+", node) if node[0] in ("var", "elt") else node
        raise self.fail("syntax error: operand expected")

    def variable(self) -> Node:
        name, node = self.value, ("var", self.value)
        target: Node = node
        if self.text.startswith("[", self.pos):
            target = self.subscript(name)
        self.advance()
        if self.kind == _OPERATOR and self.value in ("++", "--"):
            target = ("step", target, 1 if self.value == "++" else -1, True)
            try:
                self.advance()
            except ArithFailure as failure:
                failure.after(target)
                raise
        return target

    def subscript(self, name: str) -> Node:
        begin = self.pos + 1
        if self.closers is None:
            self.closers = _closers(self.text)
        pos = self.closers.get(begin + self.base, -1) - self.base
        if pos < begin:
            raise ArithFailure(self.text, "bad array subscript", self.text[self.start :])
        source = self.text[begin:pos]
        self.pos = pos + 1
        index: Node | ArithFailure
        inner = _Parser(source, self.base + begin, self.closers)
        inner.holes, inner.depth, inner.level = self.holes, self.depth, self.level + 1
        try:
            if inner.level >= MAX_LEVEL:
                raise ArithFailure(self.text, "expression recursion level exceeded", self.text)
            index = inner.whole()
        except ArithFailure as failure:
            index = failure.in_subscript()
        self.holes += source.count(HOLE)
        return ("elt", name, source, index)

    # ------------------------------------------------------------------ constants

    def wrong(self, reason: str, token: str) -> ArithFailure:
        """A bad number; bash shows the expression only up to it."""
        return ArithFailure(self.text[: self.pos], reason, token)

    def constant(self, text: str) -> int:
        if (text[0] != "0" or text == "0") and text.isdecimal():
            return wrap(int(text)) if len(text) < 4000 else wrap(_digits(text, 10))
        base, digits, begin = 10, text, 0
        if "#" in text:
            head, _, digits = text.partition("#")
            if not head.isdecimal() or not 2 <= int(head[:4]) <= 64 or (head[0] == "0" and len(head) > 1):
                raise self.wrong("invalid arithmetic base" if head.isdecimal() else "invalid number", text)
            base = int(head)
            if not digits:
                raise self.wrong("invalid integer constant", text)
        elif text[:2] in ("0x", "0X"):
            base, begin = 16, 2
        elif text[0] == "0":
            base, begin = 8, 1
        value = 0
        for c in interruptible(digits[begin:]):
            digit = _DIGITS.get(c)
            if digit is None:
                raise self.wrong("invalid number", text)
            if base <= 36 and 36 <= digit < 62:
                digit -= 26
            if digit >= base:
                raise self.wrong("value too great for base", text)
            value = (value * base + digit) & ((1 << 64) - 1)  # all that counts in the end
        return wrap(value)


def _row(done: list[Node]) -> Node:
    return done[0] if len(done) == 1 else ("comma", done) if done else ("num", 0)


def _digits(text: str, base: int) -> int:
    value = 0
    for c in interruptible(text):
        value = (value * base + _DIGITS[c]) & ((1 << 64) - 1)
    return value


def _closers(text: str) -> dict[int, int]:
    """Where the brackets of a text are closed."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for bracket in _BRACKET(text):
        if bracket[0] == "[":
            opened.append(bracket.end())
        elif bracket[0] == "]" and opened:
            found[opened.pop()] = bracket.start()
    return found


def parse_arith(text: str) -> Node:
    """The tree of an expression. Raises ArithFailure."""
    if not deep(text):
        return _Parser(text).whole()
    with room:
        try:
            return _Parser(text).whole()
        except RecursionError:
            raise ArithFailure(text, "expression recursion level exceeded", text) from None
