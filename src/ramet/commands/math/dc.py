"""dc: the reverse-polish desk calculator; numbers are those of bc, of any precision, never floating point."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ramet.commands.framework.command import Command, UsageError, ordered, several
from ramet.commands.framework.inputs import slurp
from ramet.commands.math.bc.numbers import (
    Num,
    Trouble,
    add,
    based_text,
    decimal_digits,
    decimal_text,
    div,
    mod,
    mul,
    parse_number,
    power,
    root,
    sub,
)
from ramet.concurrency.bigtext import decoded
from ramet.concurrency.offload import offload_large
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc

Value = Num | str
_TOKEN = re.compile(r"_?[0-9A-F]+(?:\.[0-9A-F]*)?|_?\.[0-9A-F]+|_|\s+|!?[<>=]|.", re.DOTALL)
_WIDTH = 69
_MODULAR = 10**11
"""Bits of the exponent times the square of those of the modulus: what takes about a second."""
_DEPTH = 10_000


@dataclass(frozen=True, slots=True)
class DcOptions:
    expressions: tuple[str, ...] = several("-e", "--expression", metavar="EXPR", help="evaluate EXPR")
    files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="evaluate the contents of FILE")
    order: tuple[tuple[str, object], ...] = ordered()


@dataclass
class _Machine:
    proc: Proc
    stack: list[Value] = field(default_factory=list)
    registers: dict[str, list[Value]] = field(default_factory=dict)
    arrays: dict[str, dict[int, Value]] = field(default_factory=dict)
    scale: int = 0
    ibase: int = 10
    obase: int = 10
    out: list[bytes] = field(default_factory=list)

    def complain(self, message: str) -> None:
        self.proc.stderr.write(encode(f"dc: {message}\n"))

    # ------------------------------------------------------------------ the stack

    def need(self, count: int) -> bool:
        if len(self.stack) < count:
            self.complain("stack empty")
            return False
        return True

    def numbers(self, count: int) -> list[Num] | None:
        """The topmost values, if all of them are numbers; else nothing is taken."""
        if not self.need(count):
            return None
        taken = [value for value in self.stack[-count:] if isinstance(value, Num)]
        if len(taken) < count:
            self.complain("non-numeric value")
            return None
        del self.stack[-count:]
        return taken

    def shown(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        text = decimal_text(value) if self.obase == 10 else based_text(value, self.obase)
        if len(text) <= _WIDTH:
            return text
        return "\\\n".join(text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH))

    # ------------------------------------------------------------------ running

    async def run(self, text: str) -> None:
        """Macros run in a loop of their own, so that the last command of one may call another for ever."""
        frames: list[tuple[str, int]] = [(text, 0)]
        while frames:
            source, at = frames.pop()
            while at < len(source):
                token = _TOKEN.match(source, at)
                assert token is not None
                at = token.end()
                macro: str | None = None
                word = token[0]
                if word.isspace():
                    continue
                if word[0] in "0123456789ABCDEF._" and word not in ("_", "."):
                    number = parse_number(word.lstrip("_").rstrip("."), self.ibase)
                    self.stack.append(Num(-number.digits, number.scale) if word[0] == "_" else number)
                elif word == "[":
                    at = self.string(source, at)
                elif word == "#":
                    end = source.find("\n", at)
                    at = len(source) if end < 0 else end
                elif word in ("<", ">", "=", "!<", "!>", "!="):
                    macro, at = self.compared(word, source[at : at + 1]), at + 1
                elif word in "slSL:;":
                    self.register(word, source[at : at + 1])
                    at += 1
                elif word in "qQ":
                    levels = 2 if word == "q" else self.popped_integer()
                    if levels > len(frames) + 1:
                        return
                    # This frame is one of those that end.
                    del frames[len(frames) - (levels - 1) :]
                    break
                elif word == "x":
                    macro = self.macro()
                elif word == "?":
                    macro = await self.asked()
                elif word == "!":
                    end = source.find("\n", at)
                    await self.shell(source[at : len(source) if end < 0 else end])
                    at = len(source) if end < 0 else end
                else:
                    self.command(word)
                if macro is not None:
                    if at < len(source):
                        frames.append((source, at))
                    if len(frames) > _DEPTH:
                        raise UsageError("macros are nested too deeply", hint=False)
                    source, at = macro, 0
                await self.yield_turn()

    async def yield_turn(self) -> None:
        if self.out:
            await self.proc.emit(b"".join(self.out))
            self.out.clear()
        await self.proc.budget.yield_turn()

    def string(self, source: str, at: int) -> int:
        depth, start = 1, at
        while at < len(source) and depth:
            depth += {"[": 1, "]": -1}.get(source[at], 0)
            at += 1
        self.stack.append(source[start : at - 1 if not depth else at])
        return at

    def macro(self) -> str | None:
        if not self.need(1) or not isinstance(self.stack[-1], str):
            return None
        value = self.stack.pop()
        assert isinstance(value, str)
        return value

    async def asked(self) -> str | None:
        data = await self.proc.stdin.readline()
        return decode(data).rstrip("\n") or None

    async def shell(self, line: str) -> None:
        await self.yield_turn()
        await self.proc.run(["sh", "-c", line])

    def compared(self, how: str, name: str) -> str | None:
        pair = self.numbers(2)
        if pair is None:
            return None
        order = sub(pair[1], pair[0]).digits
        holds = {"<": order < 0, ">": order > 0, "=": order == 0}[how[-1]]
        if holds == how.startswith("!"):
            return None
        stored = self.registers.get(name, [])
        if not stored:
            self.complain(f"register '{name}' (0{ord(name):o}) is empty")
            return None
        if isinstance(stored[-1], str):
            return stored[-1]
        self.stack.append(stored[-1])
        return None

    def popped_integer(self) -> int:
        taken = self.numbers(1)
        return taken[0].at(0) if taken is not None else 0

    def register(self, how: str, name: str) -> None:
        stored = self.registers.setdefault(name, [])
        if how in "sS" and self.need(1):
            value = self.stack.pop()
            if how == "s" and stored:
                stored.pop()
            stored.append(value)
        elif how in "lL":
            if not stored:
                if how == "L":
                    self.complain(f"stack register '{name}' (0{ord(name):o}) is empty")
                else:
                    self.stack.append(Num(0))
                return
            self.stack.append(stored[-1] if how == "l" else stored.pop())
        elif how == ":" and self.need(2):
            index = self.popped_integer()
            self.arrays.setdefault(name, {})[index] = self.stack.pop()
        elif how == ";" and self.need(1):
            self.stack.append(self.arrays.get(name, {}).get(self.popped_integer(), Num(0)))

    # ------------------------------------------------------------------ commands of one letter

    def command(self, word: str) -> None:
        simple = _COMMANDS.get(word)
        if simple is not None:
            simple(self)
        elif word in _ARITHMETIC:
            pair = self.numbers(2)
            if pair is None:
                return
            try:
                self.stack.append(_ARITHMETIC[word](pair[0], pair[1], self.scale))
            except Trouble as error:
                self.stack += pair
                self.complain(str(error).lower())
        else:
            self.complain(f"'{word}' (0{ord(word):o}) unimplemented")

    def print_line(self) -> None:
        if self.need(1):
            self.out.append(encode(self.shown(self.stack[-1]) + "\n"))

    def print_plain(self) -> None:
        if self.need(1):
            self.out.append(encode(self.shown(self.stack.pop())))

    def print_bytes(self) -> None:
        if not self.need(1):
            return
        value = self.stack.pop()
        if isinstance(value, str):
            self.out.append(encode(value))
        else:
            number = abs(value.at(0))
            self.out.append(number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big"))

    def print_all(self) -> None:
        self.out += [encode(self.shown(value) + "\n") for value in reversed(self.stack)]

    def duplicate(self) -> None:
        if self.need(1):
            self.stack.append(self.stack[-1])

    def swap(self) -> None:
        if self.need(2):
            self.stack[-1], self.stack[-2] = self.stack[-2], self.stack[-1]

    def rotate(self) -> None:
        count = self.popped_integer()
        if abs(count) < 2 or not self.need(abs(count)):
            return
        part = self.stack[-abs(count) :]
        self.stack[-abs(count) :] = part[1:] + part[:1] if count > 0 else part[-1:] + part[:-1]

    def clear(self) -> None:
        self.stack.clear()

    def square_root(self) -> None:
        taken = self.numbers(1)
        if taken is None:
            return
        if taken[0].digits < 0:
            self.stack += taken
            self.complain("square root of negative number")
        else:
            self.stack.append(root(taken[0], self.scale))

    def divide_both(self) -> None:
        pair = self.numbers(2)
        if pair is None:
            return
        if not pair[1].digits:
            self.stack += pair
            self.complain("divide by zero")
        else:
            self.stack += [div(pair[0], pair[1], self.scale), mod(pair[0], pair[1], self.scale)]

    def modular_power(self) -> None:
        taken = self.numbers(3)
        if taken is None:
            return
        base, exponent, modulus = (number.at(0) for number in taken)
        if not modulus or exponent < 0:
            self.stack += taken
            self.complain("remainder by zero" if not modulus else "negative exponent")
        elif exponent.bit_length() * modulus.bit_length() ** 2 > _MODULAR:
            self.stack += taken
            self.complain("numbers too large for a modular power")
        else:
            self.stack.append(Num(pow(base, exponent, modulus)))

    def set_scale(self) -> None:
        number = self.popped_integer()
        if number < 0:
            self.complain("scale must be a nonnegative number")
        else:
            self.scale = min(number, 100_000)

    def set_input(self) -> None:
        number = self.popped_integer()
        if not 2 <= number <= 16:
            self.complain("input base must be a number between 2 and 16 (inclusive)")
        else:
            self.ibase = number

    def set_output(self) -> None:
        number = self.popped_integer()
        if number < 2:
            self.complain("output base must be a number greater than 1")
        else:
            self.obase = number

    def digits_of(self) -> None:
        if not self.need(1):
            return
        value = self.stack.pop()
        size = len(value) if isinstance(value, str) else max(len(decimal_digits(abs(value.digits))), value.scale)
        self.stack.append(Num(size))

    def places_of(self) -> None:
        if self.need(1):
            value = self.stack.pop()
            self.stack.append(Num(value.scale if isinstance(value, Num) else 0))

    def as_text(self) -> None:
        if not self.need(1):
            return
        value = self.stack.pop()
        self.stack.append(value[:1] if isinstance(value, str) else chr(value.at(0) & 0xFF))

    def push(self, number: int) -> None:
        self.stack.append(Num(number))


_ARITHMETIC: dict[str, Callable[[Num, Num, int], Num]] = {
    "+": lambda a, b, scale: add(a, b),
    "-": lambda a, b, scale: sub(a, b),
    "*": mul,
    "/": div,
    "%": mod,
    "^": power,
}
_COMMANDS: dict[str, Callable[[_Machine], None]] = {
    "p": _Machine.print_line,
    "n": _Machine.print_plain,
    "P": _Machine.print_bytes,
    "f": _Machine.print_all,
    "c": _Machine.clear,
    "d": _Machine.duplicate,
    "r": _Machine.swap,
    "R": _Machine.rotate,
    "v": _Machine.square_root,
    "~": _Machine.divide_both,
    "|": _Machine.modular_power,
    "k": _Machine.set_scale,
    "i": _Machine.set_input,
    "o": _Machine.set_output,
    "K": lambda machine: machine.push(machine.scale),
    "I": lambda machine: machine.push(machine.ibase),
    "O": lambda machine: machine.push(machine.obase),
    "z": lambda machine: machine.push(len(machine.stack)),
    "Z": _Machine.digits_of,
    "X": _Machine.places_of,
    "a": _Machine.as_text,
}


async def dc(proc: Proc, o: DcOptions, operands: list[str]) -> int:
    machine = _Machine(proc)
    sources: list[str] = []
    for name, stored in [*o.order, *(("files", word) for word in operands)]:
        if name == "expressions":
            sources.append(str(stored))
            continue
        try:
            data = await slurp(proc, str(stored))
            sources.append(await offload_large(proc.budget, len(data), partial(decoded, data)))
        except OSError:
            proc.stderr.write(encode(f"dc: Could not open file {stored}\n"))
            return 0
    if not sources:
        data = await proc.stdin.read_all()
        sources = [await offload_large(proc.budget, len(data), partial(decoded, data))]
    try:
        for source in sources:
            await machine.run(source)
    finally:
        if machine.out:
            await proc.emit(b"".join(machine.out))
    return 0


COMMANDS = [
    Command(
        "dc",
        dc,
        DcOptions,
        summary="A reverse-polish calculator of any precision.",
        usage="[OPTION]... [FILE]...",
        examples=[("echo '2 k 10 3 / p' | dc", "two places behind the point"), ("dc -e '16 o 255 p'", "in base 16")],
    ),
]
