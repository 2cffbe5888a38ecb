"""The operators of arithmetic on 64-bit numbers."""

from __future__ import annotations

from collections.abc import Callable

from ramet.shell.expand.arith.parser import ArithFailure, Node, wrap


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
    return int(COMPARE[op](a, b))


COMPARE: dict[str, Callable[[int, int], bool]] = {
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
