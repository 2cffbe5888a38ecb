"""The syntax of bc: text to tokens, tokens to closures; nothing runs while it is parsed."""

from __future__ import annotations

import re
from typing import NamedTuple

from ramet.commands.bc.closures import (
    Place,
    assigning,
    binary,
    builtin_call,
    comparing,
    logic,
    looping,
    negative,
    raising,
    sequence,
    stepping,
    user_call,
)
from ramet.commands.bc.machine import Break, Continue, Evaluate, Function, Machine, Quit, Return, Run
from ramet.commands.bc.numbers import ONE, ZERO, Num, parse_number
from ramet.core.abandoned import checkpoint
from ramet.core.depth import DEEPEST, HOP, apart


class SyntaxTrouble(Exception):
    pass


_TOKEN = re.compile(
    r"(?P<skip>[ \t\r]+|\\\n|/\*.*?\*/|#[^\n]*)|(?P<newline>\n"
    r")|(?P<string>\"[^\"]*\")|(?P<number>(?:[0-9A-Z](?:\\\n)?)+(?:\.[0-9A-Z]*)?|\.[0-9A-Z]+|\.)"
    r"|(?P<name>[a-z][a-z0-9_]*)|(?P<op>\+\+|--|&&|\|\||[-+*/%^=<>!]=|[-+*/%^=<>!(){}\[\],;])|(?P<bad>.)",
    re.S,
)
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


class Token(NamedTuple):
    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    out: list[Token] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if not len(out) & 1023:
            checkpoint()
        if kind == "skip":
            continue
        out.append(Token(kind, found[0].replace("\\\n", "") if kind == "number" else found[0]))
    out.append(Token("end", ""))
    return out


class Parser:
    def __init__(self, items: list[Token], machine: Machine) -> None:
        self.items, self.at, self.machine = items, 0, machine
        self.depth = 0

    def deeper(self) -> None:
        """One more level; the caller takes it back."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.depth = 0
            raise SyntaxTrouble

    def peek(self) -> Token:
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

    def line(self) -> Run | None:
        """One input line: statements up to a newline; None at the end of input."""
        self.newlines()
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
        params: list[str] = []
        while not self.take(")"):
            self.take("*")
            params.append(self.parameter())
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
        function = Function(name.text, params, autos, body, void)

        async def run(machine: Machine) -> None:
            machine.functions[function.name] = function

        # Known at once, so that the same line may call it.
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
            return block if self.depth % HOP else apart(block)
        if token.kind == "string":
            self.at += 1
            text = token.text[1:-1]

            async def say(machine: Machine) -> None:
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
        silent = self._is_assignment(start)
        called = self.items[start].text if self.items[start + 1].text == "(" else ""

        async def run(machine: Machine) -> None:
            number = await value(machine)
            function = machine.functions.get(called)
            if not silent and not (function is not None and function.void):
                machine.show(number)
                if len(machine.out) > 256:
                    await machine.flush()

        return run

    def _is_assignment(self, start: int) -> bool:
        """A statement that assigns at its top level prints nothing."""
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
        then = self.statement()
        otherwise: Run | None = None
        mark = self.at
        while self.peek().kind == "newline" or (self.peek().text == ";" and self.items[self.at + 1].text == "else"):
            self.at += 1
        if self.take("else"):
            self.newlines()
            otherwise = self.statement()
        else:
            self.at = mark

        async def run(machine: Machine) -> None:
            if (await test(machine)).truth:
                await then(machine)
            elif otherwise is not None:
                await otherwise(machine)

        return run

    def s_while(self) -> Run:
        self.need("(")
        test = self.expression()
        self.need(")")
        self.newlines()
        body = self.statement()
        return looping(None, test, None, body)

    def s_for(self) -> Run:
        self.need("(")
        first = None if self.peek().text == ";" else self.expression()
        self.need(";")
        test = None if self.peek().text == ";" else self.expression()
        self.need(";")
        step = None if self.peek().text == ")" else self.expression()
        self.need(")")
        self.newlines()
        return looping(first, test, step, self.statement())

    def s_break(self) -> Run:
        return raising(Break)

    def s_continue(self) -> Run:
        return raising(Continue)

    def s_halt(self) -> Run:
        return raising(Quit)

    def s_quit(self) -> Run:
        # quit works when it is read, even where it would not run.
        raise Quit

    def s_limits(self) -> Run:
        return sequence([])

    s_warranty = s_limits

    def s_return(self) -> Run:
        value: Evaluate | None = None
        if self.peek().kind not in ("newline", "end") and self.peek().text not in (";", "}"):
            value = self.expression()

        async def run(machine: Machine) -> None:
            raise Return(ZERO if value is None else await value(machine))

        return run

    def s_print(self) -> Run:
        parts: list[str | Evaluate] = []
        while True:
            token = self.peek()
            if token.kind == "string":
                self.at += 1
                parts.append(re.sub(r"\\(.)", lambda m: _PRINT.get(m[1], "\\" + m[1]), token.text[1:-1]))
            else:
                parts.append(self.expression())
            if not self.take(","):
                break

        async def run(machine: Machine) -> None:
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
            left = logic(left, self.both(), True)
        return left

    def both(self) -> Evaluate:
        left = self.negation()
        while self.take("&&"):
            left = logic(left, self.negation(), False)
        return left

    def negation(self) -> Evaluate:
        signs = 0
        while self.take("!"):
            signs += 1
        inner = self.relation()
        if not signs:
            return inner

        async def run(machine: Machine) -> Num:
            return ONE if (await inner(machine)).truth is (signs % 2 == 0) else ZERO

        return run

    def relation(self) -> Evaluate:
        left = self.assignment()
        while self.peek().kind == "op" and self.peek().text in ("==", "<=", ">=", "!=", "<", ">"):
            op = self.peek().text
            self.at += 1
            left = comparing(left, op, self.assignment())
        return left

    def assignment(self) -> Evaluate:
        """Assignment binds tighter than comparison, looser than arithmetic."""
        mark = self.at
        place = self.place()
        if (
            place is not None
            and self.peek().kind == "op"
            and self.peek().text in ("=", "+=", "-=", "*=", "/=", "%=", "^=")
        ):
            op = self.peek().text
            self.at += 1
            value = self.assignment()
            return assigning(place, op, value)
        self.at = mark
        return self.sum()

    def sum(self) -> Evaluate:
        left = self.product()
        length = 0
        while self.peek().kind == "op" and self.peek().text in ("+", "-"):
            op = self.peek().text
            self.at += 1
            left = binary(left, op, self.product())
            length += 1
            if not length % HOP:
                left = apart(left)
        return left

    def product(self) -> Evaluate:
        left = self.unary()
        length = 0
        while self.peek().kind == "op" and self.peek().text in ("*", "/", "%"):
            op = self.peek().text
            self.at += 1
            left = binary(left, op, self.unary())
            length += 1
            if not length % HOP:
                left = apart(left)
        return left

    def power(self) -> Evaluate:
        left = self.primary()
        if self.take("^"):
            return binary(left, "^", self.unary_power())
        return left

    def unary_power(self) -> Evaluate:
        odd = self.signs()
        power = self.power()
        return negative(power) if odd else power

    def signs(self) -> bool:
        """Whether an odd number of minus signs follows."""
        odd = False
        while self.take("-"):
            odd = not odd
        return odd

    def unary(self) -> Evaluate:
        if self.take("-"):
            # The sign binds tighter than ^ here: -2^2 is 4.
            inner = self.signed()
            if self.take("^"):
                return binary(negative(inner), "^", self.unary_power())
            return negative(inner)
        return self.power()

    def signed(self) -> Evaluate:
        odd = self.signs()
        primary = self.primary()
        return negative(primary) if odd else primary

    def place(self) -> Place | None:
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
            return Place(token.text, index)
        return Place(token.text, None)

    def primary(self) -> Evaluate:
        token = self.peek()
        if token.text in ("++", "--") and token.kind == "op":
            self.at += 1
            place = self.place()
            if place is None:
                raise SyntaxTrouble
            return stepping(place, 1 if token.text == "++" else -1, before=True)
        if token.kind == "number" and token.text != ".":
            self.at += 1
            text = token.text

            async def number(machine: Machine) -> Num:
                return parse_number(text, machine.ibase)

            return number
        if token.text == "." and token.kind == "number":
            self.at += 1
            return Place("last", None).get
        if self.take("("):
            self.deeper()
            inner = self.expression()
            self.depth -= 1
            self.need(")")

            async def grouped(machine: Machine) -> Num:
                return await inner(machine)

            return grouped if self.depth % HOP else apart(grouped)
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
            return stepping(place, 1 if op == "++" else -1, before=False)
        return place.get

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
            else:
                arguments.append(self.expression())
            if not self.take(",") and self.peek().text != ")":
                raise SyntaxTrouble
        if name in ("length", "scale", "sqrt", "read"):
            return builtin_call(name, arguments)
        return user_call(name, arguments)


_PRINT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "q": '"', "r": "\r", "t": "\t", "\\": "\\", "e": "\\"}
