"""expr: evaluate an expression of integers, strings and patterns."""

from __future__ import annotations

import re
from functools import partial

from ramet.commands.framework.command import Command, UsageError, quote, typographic
from ramet.commands.framework.posix_regex import offload_long
from ramet.concurrency.recursion import DEEPEST, room
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.patterns import EXPR, PatternError, compile


class ExprError(Exception):
    """Wrong expression; the message to print."""


async def expr(proc: Proc, o: None, words: list[str]) -> int:
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        raise UsageError("missing operand", status=2)
    try:
        result = await offload_long(proc, words, partial(_result, words))
    except ExprError as bad:
        said = str(bad).partition("expecting ')' ")
        proc.complain(said[0] + said[1] + typographic(proc, said[2]) if said[1] else typographic(proc, said[0]))
        return 2
    await proc.emit(encode(str(result)) + b"\n")
    return 0 if _truth(result) else 1


Value = str | int


def _result(words: list[str]) -> Value:
    parser = _Expr(words)
    with room:
        result = parser.alternative(True)
    if parser.at < len(words):
        raise ExprError(f"syntax error: unexpected argument {quote(words[parser.at])}")
    return result


_INTEGER = re.compile(r"-?\d+")


def _truth(value: Value) -> bool:
    if isinstance(value, int):
        return value != 0
    return not (value == "" or re.fullmatch(r"-?0+", value) is not None)


def _number(value: Value) -> int:
    if isinstance(value, int):
        return value
    if _INTEGER.fullmatch(value) is None:
        raise ExprError("non-integer argument")
    return int(value)


class _Expr:
    """Precedence: `|`, `&`, comparisons, `+ -`, `* / %`, `:`, primaries. Both sides are always parsed, used or not."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.at, self.depth = words, 0, 0

    def peek(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def next(self) -> str:
        if self.at >= len(self.words):
            raise ExprError(f"syntax error: missing argument after {quote(self.words[-1])}")
        self.at += 1
        return self.words[self.at - 1]

    def alternative(self, live: bool) -> Value:
        left = self.conjunction(live)
        while self.peek() == "|":
            self.at += 1
            right = self.conjunction(live and not _truth(left))
            if not _truth(left):
                left = right if _truth(right) else 0
        return left

    def conjunction(self, live: bool) -> Value:
        left = self.comparison(live)
        while self.peek() == "&":
            self.at += 1
            right = self.comparison(live and _truth(left))
            if not (_truth(left) and _truth(right)):
                left = 0
        return left

    def comparison(self, live: bool) -> Value:
        left = self.sum(live)
        while (op := self.peek()) in ("<", "<=", "=", "==", "!=", ">=", ">"):
            self.at += 1
            right = self.sum(live)
            a, b = str(left), str(right)
            x: object = a
            y: object = b
            if _INTEGER.fullmatch(a) and _INTEGER.fullmatch(b):
                x, y = int(a), int(b)
            else:
                x, y = encode(a), encode(b)
            left = int(
                {"<": x < y, "<=": x <= y, "=": x == y, "==": x == y, "!=": x != y, ">=": x >= y, ">": x > y}[op or ""]  # type: ignore[operator]
            )
        return left

    def sum(self, live: bool) -> Value:
        left = self.product(live)
        while (op := self.peek()) in ("+", "-"):
            self.at += 1
            right = self.product(live)
            if live:
                left = _number(left) + _number(right) if op == "+" else _number(left) - _number(right)
        return left

    def product(self, live: bool) -> Value:
        left = self.match(live)
        while (op := self.peek()) in ("*", "/", "%"):
            self.at += 1
            right = self.match(live)
            if not live:
                continue
            a, b = _number(left), _number(right)
            if op == "*":
                left = a * b
                continue
            if b == 0:
                raise ExprError("division by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            left = quotient if op == "/" else a - b * quotient
        return left

    def match(self, live: bool) -> Value:
        left = self.primary(live)
        while self.peek() == ":":
            self.at += 1
            left = _match(str(left), str(self.primary(live)))
        return left

    def primary(self, live: bool) -> Value:
        word = self.next()
        if word == "(":
            self.depth += 1
            if self.depth > DEEPEST:
                raise ExprError(f"syntax error: maximum nesting level exceeded ({DEEPEST})")
            value = self.alternative(live)
            self.depth -= 1
            closing = self.peek()
            if closing is None:
                raise ExprError(f"syntax error: expecting ')' after {quote(self.words[-1])}")
            if closing != ")":
                raise ExprError(f"syntax error: expecting ')' instead of {quote(closing)}")
            self.at += 1
            return value
        if word == ")":
            raise ExprError("syntax error: unexpected ')'")
        if word == "+":
            return self.next()
        if word in ("length", "match", "substr", "index") and self.at >= len(self.words):
            raise ExprError(f"syntax error: missing argument after '{word}'")
        if word == "length" and self.at < len(self.words):
            return len(_text(self.primary(live)))
        if word == "match" and self.at < len(self.words):
            text = str(self.primary(live))
            return _match(text, str(self.primary(live)))
        if word == "index" and self.at < len(self.words):
            text, chars = _text(self.primary(live)), _text(self.primary(live))
            return min((text.index(c) + 1 for c in chars if c in text), default=0)
        if word == "substr" and self.at < len(self.words):
            text = _text(self.primary(live))
            position, length = self.primary(live), self.primary(live)
            try:
                start, size = _number(position), _number(length)
            except ExprError:
                return ""
            return text[start - 1 : start - 1 + size] if start > 0 and size > 0 else ""
        return word


def _text(value: Value) -> str:
    return str(value)


def _match(text: str, pattern: str) -> Value:
    try:
        matcher = compile(encode("^" + pattern if not pattern.startswith("^") else pattern), EXPR)
    except PatternError as error:
        raise ExprError(str(error)) from None
    raw = encode(text)
    spans = matcher.spans(raw)
    has_group = matcher.groups > 0
    if not spans:
        return "" if has_group else 0
    if has_group:
        start, end = spans[1]
        return decode(raw[start:end]) if start >= 0 else ""
    return len(decode(raw[spans[0][0] : spans[0][1]]))


COMMANDS = [
    Command(
        "expr",
        expr,
        raw=True,
        bad_usage=2,
        summary="Evaluate expressions.",
        usage="EXPRESSION",
        details="Operators, lowest first: |  &  < <= = != >= >  + -  * / %  STRING : REGEXP;\n"
        "match, substr, index, length; ( ).",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        write_error=("write error: ", 3),
    ),
]
