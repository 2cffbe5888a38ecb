"""Parser of bc: tokens to closures; parsing runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ramet.commands.math.bc.closures import (
    BcPlace,
    assigning,
    builtin_call,
    comparing,
    logic,
    looping,
    negative,
    raising,
    reading,
    row_of,
    sequence,
    stepping,
    user_call,
)
from ramet.commands.math.bc.machine import BcBreak, BcContinue, BcFunction, BcMachine, BcQuit, BcReturn, Evaluate, Run
from ramet.commands.math.bc.numbers import ONE, ZERO, BcNumber, Spot, parse_number
from ramet.commands.math.bc.tokens import BcToken
from ramet.concurrency.offload import checkpoint
from ramet.concurrency.recursion import DEEPEST, HOP, in_new_task, room


class SyntaxTrouble(Exception):
    """Syntax error, with a message where GNU has a specific one."""


_MAIN: Final = "(main)"
_JUMP: Final = 3
"""Bytes of a jump in GNU's code."""
_LIMITS: Final = """\
BC_BASE_MAX     = 2147483647
BC_DIM_MAX      = 16777215
BC_SCALE_MAX    = 2147483647
BC_STRING_MAX   = 2147483647
MAX Exponent    = 9223372036854775807
Number of vars  = 32767
"""
_KEYWORDS = {
    "if",
    "else",
    "while",
    "for",
    "break",
    "continue",
    "return",
    "define",
    "auto",
    "print",
    "halt",
    "quit",
    "length",
    "scale",
    "sqrt",
    "ibase",
    "obase",
    "last",
    "limits",
    "warranty",
    "read",
    "void",
}


class BcParser:
    def __init__(self, items: list[BcToken], machine: BcMachine) -> None:
        self.items, self.at, self.machine = items, 0, machine
        self.depth = self.loops = 0
        self.spot = Spot(_MAIN, 0)

    def code(self, size: int) -> Spot:
        """Return the position after `size` more bytes of GNU's code, which errors report."""
        self.spot = Spot(self.spot.function, self.spot.at + size)
        return self.spot

    def deeper(self) -> None:
        """Enter a nesting level; the caller leaves it."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.depth = 0
            raise SyntaxTrouble

    def peek(self) -> BcToken:
        return self.items[self.at]

    def take(self, text: str) -> bool:
        token = self.items[self.at]
        if token.text == text and token.kind in ("op", "name", "newline"):
            self.at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            raise SyntaxTrouble

    def newlines(self) -> None:
        while self.peek().kind == "newline":
            self.at += 1

    # ------------------------------------------------------------------------------------------- statements

    def line_tokens(self) -> int:
        """Return the number of tokens up to the next newline."""
        rest = range(self.at, len(self.items))
        return next((at for at in rest if self.items[at].kind == "newline"), len(self.items)) - self.at

    def line_deep(self) -> Run | None:
        """Parse a line with room for deep nesting."""
        with room:
            return self.line()

    def line(self) -> Run | None:
        """Parse statements up to a newline; None at the end of input."""
        self.newlines()
        self.loops, self.spot = 0, Spot(_MAIN, 0)
        if self.peek().kind == "end":
            return None
        if self.peek().text == "define":
            return self.definition()
        runs: list[Run] = []
        while True:
            if self.peek().kind in ("newline", "end"):
                self.at += self.peek().kind == "newline"
                break
            if self.take(";"):
                continue
            runs.append(self.statement())
            if self.peek().kind not in ("newline", "end") and self.peek().text != ";":
                raise SyntaxTrouble
        return sequence(runs)

    def definition(self) -> Run:
        self.at += 1
        void = self.take("void")
        name = self.peek()
        if name.kind != "name":
            raise SyntaxTrouble
        self.at += 1
        self.need("(")
        self.spot = Spot(name.text, 0)
        params: list[str] = []
        shared = set[str]()
        while not self.take(")"):
            by_name = self.take("*")
            params.append(self.parameter())
            if params[-1] in params[:-1]:
                raise SyntaxTrouble("duplicate parameter names")
            if by_name:
                shared.add(params[-1])
            if not self.take(",") and self.peek().text != ")":
                raise SyntaxTrouble
        self.newlines()
        self.need("{")
        self.newlines()
        autos: list[str] = []
        while self.take("auto"):
            while True:
                autos.append(self.parameter())
                if not self.take(","):
                    break
            while self.peek().kind == "newline" or self.peek().text == ";":
                self.at += 1
        body = self.block_rest()
        function = BcFunction(name.text, params, autos, body, void, frozenset(shared))

        async def run(machine: BcMachine) -> None:
            machine.functions[function.name] = function

        # Defined before its body is parsed, so that the same line may call it.
        self.machine.functions[function.name] = function
        return run

    def parameter(self) -> str:
        token = self.peek()
        if token.kind != "name":
            raise SyntaxTrouble
        self.at += 1
        if self.take("["):
            self.need("]")
            return token.text + "[]"
        return token.text

    def block_rest(self) -> Run:
        runs: list[Run] = []
        while True:
            if self.take("}"):
                return sequence(runs)
            if self.peek().kind == "newline" or self.peek().text == ";":
                self.at += 1
                continue
            if self.peek().kind == "end":
                raise SyntaxTrouble
            runs.append(self.statement())

    def statement(self) -> Run:
        token = self.peek()
        if token.text == "{" and token.kind == "op":
            self.at += 1
            self.deeper()
            block = self.block_rest()
            self.depth -= 1
            return block if self.depth % HOP else in_new_task(block)
        if token.kind == "string":
            self.at += 1
            text = token.text[1:-1]
            self.code(len(text) + 2)

            async def say(machine: BcMachine) -> None:
                machine.out.append(text)

            return say
        if token.kind == "name" and token.text in (
            "if",
            "while",
            "for",
            "break",
            "continue",
            "return",
            "halt",
            "quit",
            "print",
            "limits",
            "warranty",
        ):
            self.at += 1
            made: Run = getattr(self, f"s_{token.text}")()
            return made
        start = self.at
        value = self.expression()
        self.code(1)
        silent = self._is_assignment(start)
        called = self.items[start].text if self.items[start + 1].text == "(" else ""

        async def run(machine: BcMachine) -> None:
            number = await value(machine)
            function = machine.functions.get(called)
            if not silent and not (function is not None and function.void):
                machine.show(number)
                if len(machine.out) > 256:
                    await machine.flush()

        return run

    def _is_assignment(self, start: int) -> bool:
        """Parse an expression statement; a top-level assignment prints nothing."""
        items = self.items
        if items[start].kind != "name":
            return False
        i = start + 1
        if items[i].text == "[":
            depth = 1
            i += 1
            while depth and i < self.at:
                depth += items[i].text == "["
                depth -= items[i].text == "]"
                i += 1
        return items[i].kind == "op" and items[i].text in ("=", "+=", "-=", "*=", "/=", "%=", "^=") and i < self.at

    def s_if(self) -> Run:
        self.need("(")
        test = self.expression()
        self.need(")")
        self.newlines()
        self.code(_JUMP)
        then = self.statement()
        otherwise: Run | None = None
        if self.take("else"):
            self.newlines()
            self.code(_JUMP)
            otherwise = self.statement()

        async def run(machine: BcMachine) -> None:
            if (await test(machine)).truth:
                await then(machine)
            elif otherwise is not None:
                await otherwise(machine)

        return run

    def s_while(self) -> Run:
        self.need("(")
        test = self.expression()
        self.code(_JUMP)
        self.need(")")
        body = self.body()
        return looping(None, test, None, body)

    def body(self) -> Run:
        """What a loop repeats."""
        self.newlines()
        self.loops += 1
        made = self.statement()
        self.loops -= 1
        self.code(_JUMP)
        return made

    def s_for(self) -> Run:
        self.need("(")
        first = self.part(";", 0)
        test = self.part(";", 1)
        self.code(2 * _JUMP)
        step = self.part(")", 0)
        self.code(_JUMP)
        return looping(first, test, step, self.body())

    def part(self, end: str, missing: int) -> Evaluate | None:
        """Parse a part of the head of `for`; a missing test is 1."""
        value = None if self.peek().text == end else self.expression()
        self.code(missing if value is None else 1 - missing)
        self.need(end)
        return value

    def s_break(self) -> Run:
        return self.jump(BcBreak, "Break outside a for/while")

    def s_continue(self) -> Run:
        return self.jump(BcContinue, "Continue outside a for")

    def jump(self, kind: type[Exception], outside: str) -> Run:
        if not self.loops:
            self.at -= 1
            raise SyntaxTrouble(outside)
        self.code(_JUMP)
        return raising(kind)

    def s_halt(self) -> Run:
        self.code(1)
        return raising(BcQuit)

    def s_quit(self) -> Run:
        # quit works when it is read, even where it would not run.
        raise BcQuit

    def s_limits(self) -> Run:
        # Printed when it is parsed.
        self.machine.out.append(_LIMITS)
        return sequence([])

    def s_warranty(self) -> Run:
        return sequence([])

    def s_return(self) -> Run:
        value: Evaluate | None = None
        if self.peek().kind not in ("newline", "end") and self.peek().text not in (";", "}"):
            value = self.expression()
        self.code(2 if value is None else 1)
        if self.spot.function == _MAIN:
            raise SyntaxTrouble("Return outside of a function.")

        async def run(machine: BcMachine) -> None:
            raise BcReturn(ZERO if value is None else await value(machine))

        return run

    def s_print(self) -> Run:
        parts: list[str | Evaluate] = []
        while True:
            token = self.peek()
            if token.kind == "string":
                self.at += 1
                parts.append(re.sub(r"\\(.)", lambda m: _PRINT.get(m[1], ""), token.text[1:-1]))
                self.code(len(token.text))
            else:
                parts.append(self.expression())
                self.code(1)
            if not self.take(","):
                break

        async def run(machine: BcMachine) -> None:
            for part in parts:
                if isinstance(part, str):
                    machine.out.append(part)
                else:
                    number = await part(machine)
                    machine.last = number
                    machine.out.append(machine.format(number))

        return run

    # ------------------------------------------------------------------------------------------ expressions

    def expression(self) -> Evaluate:
        return self.either()

    def either(self) -> Evaluate:
        left = self.both()
        while self.take("||"):
            self.code(_JUMP)
            left = logic(left, self.both(), True)
            self.code(2 * _JUMP + 2)
        return left

    def both(self) -> Evaluate:
        left = self.negation()
        while self.take("&&"):
            self.code(_JUMP + 2)
            left = logic(left, self.negation(), False)
            self.code(_JUMP + 3)
        return left

    def negation(self) -> Evaluate:
        signs = 0
        while self.take("!"):
            signs += 1
        inner = self.relation()
        self.code(signs)
        if not signs:
            return inner

        async def run(machine: BcMachine) -> BcNumber:
            return ONE if (await inner(machine)).truth is (signs % 2 == 0) else ZERO

        return run

    def relation(self) -> Evaluate:
        left = self.assignment()
        while self.peek().kind == "op" and self.peek().text in ("==", "<=", ">=", "!=", "<", ">"):
            op = self.peek().text
            self.at += 1
            left = comparing(left, op, self.assignment())
            self.code(1)
        return left

    def assignment(self) -> Evaluate:
        """Assignment binds tighter than comparison, looser than arithmetic."""
        mark, spot = self.at, self.spot
        place = self.place()
        if (
            place is not None
            and self.peek().kind == "op"
            and self.peek().text in ("=", "+=", "-=", "*=", "/=", "%=", "^=")
        ):
            op = self.peek().text
            self.at += 1
            if op != "=":
                self.code(2 if place.index is None else 3)
            value = self.assignment()
            operation = self.code(op != "=")
            return assigning(place, op, value, operation, self.code(2))
        self.at, self.spot = mark, spot
        return self.sum()

    def sum(self) -> Evaluate:
        return self.row(self.product, ("+", "-"))

    def product(self) -> Evaluate:
        return self.row(self.unary, ("*", "/", "%"))

    def row(self, operand: Callable[[], Evaluate], operators: tuple[str, ...]) -> Evaluate:
        """Parse operands with operators of one precedence, without recursion."""
        first = operand()
        rest: list[tuple[str, Evaluate, Spot]] = []
        while self.peek().kind == "op" and self.peek().text in operators:
            op = self.peek().text
            self.at += 1
            rest.append((op, operand(), self.code(1)))
            checkpoint()
        return row_of(first, rest) if rest else first

    def power(self) -> Evaluate:
        left = self.primary()
        if self.take("^"):
            return row_of(left, [("^", self.unary_power(), self.code(1))])
        return left

    def unary_power(self) -> Evaluate:
        signs = self.signs()
        power = self.power()
        self.code(signs)
        return negative(power) if signs % 2 else power

    def signs(self) -> int:
        """Count the following minus signs."""
        count = 0
        while self.take("-"):
            count += 1
        return count

    def unary(self) -> Evaluate:
        if self.take("-"):
            # The sign binds tighter than ^ here: -2^2 is 4.
            inner = self.signed()
            self.code(1)
            if self.take("^"):
                return row_of(negative(inner), [("^", self.unary_power(), self.code(1))])
            return negative(inner)
        return self.power()

    def signed(self) -> Evaluate:
        signs = self.signs()
        primary = self.primary()
        self.code(signs)
        return negative(primary) if signs % 2 else primary

    def place(self) -> BcPlace | None:
        token = self.peek()
        if token.kind != "name" or (token.text in _KEYWORDS and token.text not in ("scale", "ibase", "obase", "last")):
            return None
        following = self.items[self.at + 1]
        if following.text == "(":
            return None
        self.at += 1
        if self.take("["):
            if self.peek().text == "]":
                return None
            index = self.expression()
            self.need("]")
            return BcPlace(token.text, index)
        return BcPlace(token.text, None)

    def primary(self) -> Evaluate:
        token = self.peek()
        if token.text in ("++", "--") and token.kind == "op":
            self.at += 1
            place = self.place()
            if place is None:
                raise SyntaxTrouble
            spot = self.code(4 if place.index is None else 5)
            return stepping(place, 1 if token.text == "++" else -1, spot, before=True)
        if token.kind == "number" and token.text != ".":
            self.at += 1
            text = token.text
            kept = text.lstrip("0") or "0"
            self.code(1 if kept in ("0", "1") else len(kept) + 2)

            async def number(machine: BcMachine) -> BcNumber:
                return parse_number(text, machine.ibase)

            return number
        if token.text == "." and token.kind == "number":
            self.at += 1
            return BcPlace("last", None).getter(self.code(2))
        if self.take("("):
            self.deeper()
            inner = self.expression()
            self.depth -= 1
            self.need(")")

            async def grouped(machine: BcMachine) -> BcNumber:
                return await inner(machine)

            return grouped if self.depth % HOP else in_new_task(grouped)
        if token.kind != "name":
            raise SyntaxTrouble
        if self.items[self.at + 1].text == "(" and token.text not in ("if", "while", "for"):
            return self.call(token.text)
        place = self.place()
        if place is None:
            raise SyntaxTrouble
        if self.peek().text in ("++", "--") and self.peek().kind == "op":
            op = self.peek().text
            self.at += 1
            spot = self.code(4 if place.index is None else 6)
            return stepping(place, 1 if op == "++" else -1, spot, before=False)
        return place.getter(self.code(2))

    def call(self, name: str) -> Evaluate:
        self.at += 2
        arguments: list[Evaluate | str] = []
        while not self.take(")"):
            if (
                self.peek().kind == "name"
                and self.items[self.at + 1].text == "["
                and self.items[self.at + 2].text == "]"
            ):
                arguments.append(self.peek().text)
                self.at += 3
                self.code(3)
            else:
                arguments.append(self.expression())
            if not self.take(",") and self.peek().text != ")":
                raise SyntaxTrouble
        if name in ("length", "scale", "sqrt", "read"):
            if len(arguments) != (name != "read"):
                self.at -= 1
                raise SyntaxTrouble
            spot = self.code(2)
            return reading(spot) if name == "read" else builtin_call(name, arguments, spot)
        spot = self.code(2)
        self.code(len(arguments) + 1)
        return user_call(name, arguments, spot)


_PRINT: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "q": '"', "r": "\r", "t": "\t", "\\": "\\"}
