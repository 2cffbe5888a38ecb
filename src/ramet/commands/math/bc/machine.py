"""State of a running bc program: variables, arrays, functions, registers and jumps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from ramet.commands.math.bc.numbers import MOST_PLACES, ZERO, BcNumber, Check, Spot, based_text, decimal_text
from ramet.concurrency.offload import interrupt_check, offload
from ramet.concurrency.sizes import LONG_NUMBER
from ramet.core.errors import LimitExceeded
from ramet.core.paths import encode
from ramet.core.proc import Proc


class BcQuit(Exception):
    pass


class BcBreak(Exception):
    pass


class BcContinue(Exception):
    pass


class BcReturn(Exception):
    def __init__(self, value: BcNumber) -> None:
        self.value = value


Evaluate = Callable[["BcMachine"], Awaitable[BcNumber]]
Run = Callable[["BcMachine"], Awaitable[None]]


@dataclass
class BcFunction:
    name: str
    params: list[str]
    autos: list[str]
    body: Run
    void: bool = False
    shared: frozenset[str] = frozenset()
    """Arrays passed by reference."""


@dataclass
class BcMachine:
    """Variables, arrays, functions and the three registers."""

    proc: Proc
    scale: int = 0
    ibase: int = 10
    obase: int = 10
    last: BcNumber = ZERO
    names: dict[str, BcNumber] = field(default_factory=dict)
    arrays: dict[str, dict[int, BcNumber]] = field(default_factory=dict)
    functions: dict[str, BcFunction] = field(default_factory=dict)
    mathlib: bool = False
    out: list[str] = field(default_factory=list)
    depth: int = 0
    line_length: int = 70
    steps: int = 0
    unread: bytes = b""
    """Standard input consumed by read() and not used yet."""

    async def tick(self) -> None:
        self.steps += 1
        if self.steps & 127 == 0:
            await self.proc.budget.yield_turn()

    async def offload(self, function: Callable[[BcNumber, int, Check], BcNumber], number: BcNumber) -> BcNumber:
        """Call a function of the math library; in a thread for many digits."""
        check, scale = interrupt_check(self.proc.budget), self.scale
        if scale + number.digits.bit_length() < LONG_NUMBER:
            return function(number, scale, check)
        return await offload(self.proc.budget, partial(function, number, scale, check))

    async def word(self) -> str:
        """Return the next word of the standard input; empty at its end."""
        await self.flush()
        while True:
            words = self.unread.split(None, 1)
            ended = len(words) > 1 or (words and self.unread[-1:].isspace())
            if ended or not (block := await self.proc.stdin.read()):
                self.unread = words[1] if len(words) > 1 else b""
                return words[0].decode("latin-1") if words else ""
            self.unread = b"".join((self.unread, block))
            self.proc.stdin.hold(len(self.unread))

    async def flush(self) -> None:
        if self.out:
            data = encode("".join(self.out))
            self.out.clear()
            await self.proc.emit(data)

    def show(self, number: BcNumber) -> None:
        text = self.format(number)
        if self.line_length > 1:
            width, at = self.line_length - 2, 0
            while len(text) - at > width + 1:
                self.out.append(text[at : at + width] + "\\\n")
                at += width
            text = text[at:]
        self.out.append(text + "\n")
        self.last = number

    def format(self, number: BcNumber) -> str:
        if self.obase == 10:
            return decimal_text(number)
        return based_text(number, self.obase)

    def get(self, name: str) -> BcNumber:
        special = {"scale": self.scale, "ibase": self.ibase, "obase": self.obase}
        if name in special:
            return BcNumber(special[name])
        return self.last if name == "last" else self.names.get(name, ZERO)

    def warn(self, spot: Spot, text: str) -> None:
        self.tell("warning", spot, text)

    def tell(self, kind: str, spot: Spot, text: str) -> None:
        self.proc.stderr.write(encode(f"Runtime {kind} (func={spot.function}, adr={spot.at}): {text}\n"))

    def _bounded(self, name: str, whole: int, low: int, high: int, spot: Spot) -> int:
        if whole < low:
            self.warn(spot, f"{name} too small, set to {low}" if low else f"negative {name}, set to 0")
        elif whole > high:
            self.warn(spot, f"{name} too large, set to {high}")
        return max(low, min(high, whole))

    def set(self, name: str, number: BcNumber, spot: Spot) -> None:
        whole = number.at(0)
        if name == "scale":
            scale = self._bounded(name, whole, 0, 2**31 - 1, spot)
            if scale > MOST_PLACES:
                raise LimitExceeded("digits after the point", MOST_PLACES)
            self.scale = scale
        elif name == "ibase":
            self.ibase = self._bounded(name, whole, 2, 36, spot)
        elif name == "obase":
            self.obase = self._bounded(name, whole, 2, 2**31 - 1, spot)
        elif name == "last":
            self.last = number
        else:
            self.names[name] = number
