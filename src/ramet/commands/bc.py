"""bc: an arbitrary precision calculator whose programs are parsed into closures and then run."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ramet.commands.bc_numbers import (
    ONE,
    ZERO,
    Num,
    Trouble,
    add,
    arctangent,
    based_text,
    bessel,
    decimal_text,
    div,
    exponential,
    logarithm,
    mod,
    mul,
    parse_number,
    power,
    root,
    sine,
    sub,
)
from ramet.commands.declare import Command, flag, shown
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class BcOptions:
    mathlib: bool = flag("-l", "--mathlib", help="use the predefined math routines")
    quiet: bool = flag("-q", "--quiet", help="don't print initial banner")
    standard: bool = flag("-s", "--standard", help="non-standard bc constructs are errors")
    warn: bool = flag("-w", "--warn", help="warn about non-standard bc constructs")
    interactive: bool = flag("-i", "--interactive", help="force interactive mode")


# ------------------------------------------------------------------------------------------------------- parsing


class SyntaxTrouble(Exception):
    pass


class Quit(Exception):
    pass


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Num) -> None:
        self.value = value


_TOKEN = re.compile(
    r"(?P<skip>[ \t\r]+|\\\n|/\*.*?\*/|#[^\n]*)|(?P<newline>\n"
    r")|(?P<string>\"[^\"]*\")|(?P<number>(?:[0-9A-F](?:\\\n)?)+(?:\.[0-9A-F]*)?|\.[0-9A-F]+|\.)"
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

Evaluate = Callable[["_Machine"], Awaitable[Num]]
Run = Callable[["_Machine"], Awaitable[None]]


class Token(NamedTuple):
    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    out: list[Token] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind == "skip":
            continue
        out.append(Token(kind, found[0].replace("\\\n", "") if kind == "number" else found[0]))
    out.append(Token("end", ""))
    return out


@dataclass
class Function:
    name: str
    params: list[str]
    autos: list[str]
    body: Run
    void: bool = False


@dataclass
class _Machine:
    """Variables, arrays, functions and the three registers."""

    proc: Proc
    scale: int = 0
    ibase: int = 10
    obase: int = 10
    last: Num = ZERO
    names: dict[str, Num] = field(default_factory=dict)
    arrays: dict[str, dict[int, Num]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    mathlib: bool = False
    out: list[str] = field(default_factory=list)
    depth: int = 0
    line_length: int = 70
    steps: int = 0

    async def tick(self) -> None:
        self.steps += 1
        if self.steps & 127 == 0:
            await self.proc.budget.breathe()

    async def flush(self) -> None:
        if self.out:
            data = encode("".join(self.out))
            self.out.clear()
            await self.proc.emit(data)

    def show(self, number: Num) -> None:
        text = self.format(number)
        if self.line_length > 1:
            width = self.line_length - 2
            while len(text) > width + 1:
                self.out.append(text[:width] + "\\\n")
                text = text[width:]
        self.out.append(text + "\n")
        self.last = number

    def format(self, number: Num) -> str:
        if self.obase == 10:
            return decimal_text(number)
        return based_text(number, self.obase)

    def get(self, name: str) -> Num:
        special = {"scale": self.scale, "ibase": self.ibase, "obase": self.obase}
        if name in special:
            return Num(special[name])
        return self.last if name == "last" else self.names.get(name, ZERO)

    def set(self, name: str, number: Num) -> None:
        whole = number.at(0)
        if name == "scale":
            if whole < 0:
                raise Trouble("negative scale")
            self.scale = min(whole, 100_000)
        elif name == "ibase":
            self.ibase = max(2, min(36, whole))
        elif name == "obase":
            self.obase = max(2, min(2**31, whole))
        elif name == "last":
            self.last = number
        else:
            self.names[name] = number


class _Parser:
    def __init__(self, items: list[Token], machine: _Machine) -> None:
        self.items, self.at, self.machine = items, 0, machine

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
        return _sequence(runs)

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

        async def run(machine: _Machine) -> None:
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
                return _sequence(runs)
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
            return self.block_rest()
        if token.kind == "string":
            self.at += 1
            text = token.text[1:-1]

            async def say(machine: _Machine) -> None:
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

        async def run(machine: _Machine) -> None:
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

        async def run(machine: _Machine) -> None:
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
        return _loop(None, test, None, body)

    def s_for(self) -> Run:
        self.need("(")
        first = None if self.peek().text == ";" else self.expression()
        self.need(";")
        test = None if self.peek().text == ";" else self.expression()
        self.need(";")
        step = None if self.peek().text == ")" else self.expression()
        self.need(")")
        self.newlines()
        return _loop(first, test, step, self.statement())

    def s_break(self) -> Run:
        return _raising(_Break)

    def s_continue(self) -> Run:
        return _raising(_Continue)

    def s_halt(self) -> Run:
        return _raising(Quit)

    def s_quit(self) -> Run:
        # quit works when it is read, even where it would not run.
        raise Quit

    def s_limits(self) -> Run:
        return _sequence([])

    s_warranty = s_limits

    def s_return(self) -> Run:
        value: Evaluate | None = None
        if self.peek().kind not in ("newline", "end") and self.peek().text not in (";", "}"):
            value = self.expression()

        async def run(machine: _Machine) -> None:
            raise _Return(ZERO if value is None else await value(machine))

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

        async def run(machine: _Machine) -> None:
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
            left = _logic(left, self.both(), True)
        return left

    def both(self) -> Evaluate:
        left = self.negation()
        while self.take("&&"):
            left = _logic(left, self.negation(), False)
        return left

    def negation(self) -> Evaluate:
        if self.take("!"):
            inner = self.negation()

            async def run(machine: _Machine) -> Num:
                return ZERO if (await inner(machine)).truth else ONE

            return run
        return self.relation()

    def relation(self) -> Evaluate:
        left = self.assignment()
        while self.peek().kind == "op" and self.peek().text in ("==", "<=", ">=", "!=", "<", ">"):
            op = self.peek().text
            self.at += 1
            left = _compare(left, op, self.assignment())
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
            return _assign(place, op, value)
        self.at = mark
        return self.sum()

    def sum(self) -> Evaluate:
        left = self.product()
        while self.peek().kind == "op" and self.peek().text in ("+", "-"):
            op = self.peek().text
            self.at += 1
            left = _binary(left, op, self.product())
        return left

    def product(self) -> Evaluate:
        left = self.unary()
        while self.peek().kind == "op" and self.peek().text in ("*", "/", "%"):
            op = self.peek().text
            self.at += 1
            left = _binary(left, op, self.unary())
        return left

    def power(self) -> Evaluate:
        left = self.primary()
        if self.take("^"):
            return _binary(left, "^", self.unary_power())
        return left

    def unary_power(self) -> Evaluate:
        if self.take("-"):
            return _negative(self.unary_power())
        return self.power()

    def unary(self) -> Evaluate:
        if self.take("-"):
            # The sign binds tighter than ^ here: -2^2 is 4.
            inner = self.signed()
            if self.take("^"):
                return _binary(_negative(inner), "^", self.unary_power())
            return _negative(inner)
        return self.power()

    def signed(self) -> Evaluate:
        if self.take("-"):
            return _negative(self.signed())
        return self.primary()

    def place(self) -> _Place | None:
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
            return _Place(token.text, index)
        return _Place(token.text, None)

    def primary(self) -> Evaluate:
        token = self.peek()
        if token.text in ("++", "--") and token.kind == "op":
            self.at += 1
            place = self.place()
            if place is None:
                raise SyntaxTrouble
            return _step(place, 1 if token.text == "++" else -1, before=True)
        if token.kind == "number" and token.text != ".":
            self.at += 1
            text = token.text

            async def number(machine: _Machine) -> Num:
                return parse_number(text, machine.ibase)

            return number
        if token.text == "." and token.kind == "number":
            self.at += 1
            return _Place("last", None).get
        if self.take("("):
            inner = self.expression()
            self.need(")")

            async def grouped(machine: _Machine) -> Num:
                return await inner(machine)

            return grouped
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
            return _step(place, 1 if op == "++" else -1, before=False)
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
            return _builtin(name, arguments)
        return _user_call(name, arguments)


_PRINT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "q": '"', "r": "\r", "t": "\t", "\\": "\\", "e": "\\"}


def _sequence(runs: list[Run]) -> Run:
    async def run(machine: _Machine) -> None:
        for item in runs:
            await item(machine)

    return run


def _raising(kind: type[Exception]) -> Run:
    async def run(machine: _Machine) -> None:
        raise kind

    return run


def _loop(first: Evaluate | None, test: Evaluate | None, step: Evaluate | None, body: Run) -> Run:
    async def run(machine: _Machine) -> None:
        if first is not None:
            await first(machine)
        while test is None or (await test(machine)).truth:
            await machine.tick()
            try:
                await body(machine)
            except _Break:
                return
            except _Continue:
                pass
            if step is not None:
                await step(machine)

    return run


@dataclass
class _Place:
    """A variable or an array element."""

    name: str
    index: Evaluate | None

    async def get(self, machine: _Machine) -> Num:
        if self.index is None:
            return machine.get(self.name)
        return machine.arrays.setdefault(self.name, {}).get(await self._at(machine), ZERO)

    async def set(self, machine: _Machine, number: Num) -> None:
        if self.index is None:
            machine.set(self.name, number)
        else:
            machine.arrays.setdefault(self.name, {})[await self._at(machine)] = number

    async def _at(self, machine: _Machine) -> int:
        assert self.index is not None
        at = (await self.index(machine)).at(0)
        if at < 0:
            raise Trouble("Array subscript out of bounds")
        return at


def _operate(op: str, a: Num, b: Num, scale: int) -> Num:
    if op == "+":
        return add(a, b)
    if op == "-":
        return sub(a, b)
    if op == "*":
        return mul(a, b, scale)
    if op == "/":
        return div(a, b, scale)
    return mod(a, b, scale) if op == "%" else power(a, b, scale)


def _binary(left: Evaluate, op: str, right: Evaluate) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        a = await left(machine)
        b = await right(machine)
        if op == "^" and abs(b.at(0)) * max(1, abs(a.digits).bit_length()) > 50_000_000:
            raise Trouble("exponent too large")
        return _operate(op, a, b, machine.scale)

    return run


def _negative(inner: Evaluate) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        number = await inner(machine)
        return Num(-number.digits, number.scale)

    return run


def _logic(left: Evaluate, right: Evaluate, either: bool) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        a, b = (await left(machine)).truth, (await right(machine)).truth
        return ONE if (a or b if either else a and b) else ZERO

    return run


def _compare(left: Evaluate, op: str, right: Evaluate) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        difference = sub(await left(machine), await right(machine)).digits
        result = {
            "==": difference == 0,
            "<=": difference <= 0,
            ">=": difference >= 0,
            "!=": difference != 0,
            "<": difference < 0,
            ">": difference > 0,
        }[op]
        return ONE if result else ZERO

    return run


def _assign(place: _Place, op: str, value: Evaluate) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        number = await value(machine)
        if op != "=":
            number = _operate(op[0], await place.get(machine), number, machine.scale)
        await place.set(machine, number)
        return number

    return run


def _step(place: _Place, by: int, *, before: bool) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        old = await place.get(machine)
        new = add(old, Num(by))
        await place.set(machine, new)
        return new if before else old

    return run


def _builtin(name: str, arguments: list[Evaluate | str]) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        first = arguments[0] if arguments else None
        if first is None or isinstance(first, str):
            raise Trouble(f"{name} needs one number")
        number = await first(machine)
        if name == "length":
            return Num(max(len(str(abs(number.digits))), number.scale) if number.digits else max(1, number.scale))
        if name == "scale":
            return Num(number.scale)
        return root(number, machine.scale)

    return run


_MATH: dict[str, Callable[[Num, int], Num]] = {
    "s": sine,
    "c": lambda x, s: sine(x, s, shift=True),
    "a": arctangent,
    "l": logarithm,
    "e": exponential,
}


def _user_call(name: str, arguments: list[Evaluate | str]) -> Evaluate:
    async def run(machine: _Machine) -> Num:
        await machine.tick()
        function = machine.functions.get(name)
        if function is None:
            if machine.mathlib and name in _MATH and len(arguments) == 1 and not isinstance(arguments[0], str):
                return _MATH[name](await arguments[0](machine), machine.scale)
            if (
                machine.mathlib
                and name == "j"
                and len(arguments) == 2
                and not any(isinstance(a, str) for a in arguments)
            ):
                order, x = [await a(machine) for a in arguments if not isinstance(a, str)]
                return bessel(order, x, machine.scale)
            raise Trouble(f"Function {name} not defined.")
        if len(arguments) != len(function.params):
            raise Trouble("Parameter number mismatch")
        machine.depth += 1
        if machine.depth > 500:
            machine.depth = 0
            raise Trouble("function calls nested too deeply")
        values: list[Num | dict[int, Num]] = [
            dict(machine.arrays.get(argument, {})) if isinstance(argument, str) else await argument(machine)
            for argument in arguments
        ]
        local = [*function.params, *function.autos]
        saved_names = {n: machine.names.get(n) for n in local if not n.endswith("[]")}
        saved_arrays = {n[:-2]: machine.arrays.get(n[:-2]) for n in local if n.endswith("[]")}
        for param, value in zip(function.params, values, strict=True):
            if isinstance(value, dict):
                machine.arrays[param.removesuffix("[]")] = value
            else:
                machine.names[param] = value
        for auto in function.autos:
            if auto.endswith("[]"):
                machine.arrays[auto[:-2]] = {}
            else:
                machine.names[auto] = ZERO
        try:
            await function.body(machine)
            result = ZERO
        except _Return as returned:
            result = returned.value
        finally:
            machine.depth -= 1
            for n, old in saved_names.items():
                if old is None:
                    machine.names.pop(n, None)
                else:
                    machine.names[n] = old
            for n, array in saved_arrays.items():
                if array is None:
                    machine.arrays.pop(n, None)
                else:
                    machine.arrays[n] = array
        return result

    return run


# ------------------------------------------------------------------------------------------------------- running


async def bc(proc: Proc, o: BcOptions, operands: list[str]) -> int:
    machine = _Machine(proc, mathlib=o.mathlib, scale=20 if o.mathlib else 0)
    length = proc.env.get("BC_LINE_LENGTH", "")
    if length.isdigit():
        machine.line_length = int(length) if int(length) != 1 else 70
    try:
        for word in operands:
            try:
                reader = await proc.open(word)
                text = decode(await reader.read_all())
                await proc.close(reader)
            except OSError as error:
                del error
                proc.stderr.write(encode(f"File {shown(word)} is unavailable.\n"))
                return 1
            await _program(machine, text, word)
        await _program(machine, decode(await proc.stdin.read_all()), "(standard_in)")
    except Quit:
        pass
    await machine.flush()
    return 0


async def _program(machine: _Machine, text: str, name: str) -> None:
    items = tokens(text)
    parser = _Parser(items, machine)
    while True:
        start = parser.at
        try:
            run = parser.line()
        except SyntaxTrouble:
            await machine.flush()
            line = 1 + sum(1 for t in items[: parser.at + 1] if t.kind == "newline")
            machine.proc.stderr.write(encode(f"{name} {line}: syntax error\n"))
            while parser.peek().kind not in ("newline", "end"):
                parser.at += 1
            if parser.peek().kind == "end":
                return
            parser.at += 1
            continue
        if run is None:
            return
        try:
            await run(machine)
        except Trouble as trouble:
            await machine.flush()
            machine.depth = 0
            where = "(main)"
            machine.proc.stderr.write(encode(f"Runtime error (func={where}, adr={parser.at - start}): {trouble}\n"))
        except (_Break, _Continue, _Return):
            pass
        except RecursionError:
            machine.proc.stderr.write(b"Runtime error: nested too deeply\n")
        await machine.proc.budget.breathe()


COMMANDS = [
    Command(
        "bc",
        bc,
        BcOptions,
        summary="An arbitrary precision calculator language.",
        usage="[OPTION]... [FILE]...",
        examples=[("echo 'scale=4; 10/3' | bc", "3.3333"), ("echo 's(1)' | bc -l", "with the math library")],
    ),
]
