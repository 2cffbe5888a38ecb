"""Closures of the constructs of bc; independent of the syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ramet.commands.math.bc.machine import BcBreak, BcContinue, BcFunction, BcMachine, BcReturn, Evaluate, Run
from ramet.commands.math.bc.numbers import (
    ONE,
    ZERO,
    BcNumber,
    Check,
    Spot,
    Trouble,
    add,
    arctangent,
    bessel,
    decimal_digits,
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
from ramet.concurrency.recursion import DEEPEST, HOP, in_new_task


def sequence(runs: list[Run]) -> Run:
    async def run(machine: BcMachine) -> None:
        for item in runs:
            await item(machine)

    return run


def raising(kind: type[Exception]) -> Run:
    async def run(machine: BcMachine) -> None:
        raise kind

    return run


def looping(first: Evaluate | None, test: Evaluate | None, step: Evaluate | None, body: Run) -> Run:
    async def run(machine: BcMachine) -> None:
        if first is not None:
            await first(machine)
        while test is None or (await test(machine)).truth:
            await machine.tick()
            try:
                await body(machine)
            except BcBreak:
                return
            except BcContinue:
                pass
            if step is not None:
                await step(machine)

    return run


_LAST_INDEX: Final = 16777215


@dataclass
class BcPlace:
    """A variable or an array element."""

    name: str
    index: Evaluate | None

    def getter(self, spot: Spot) -> Evaluate:
        return partial(self.get, spot=spot)

    async def get(self, machine: BcMachine, spot: Spot) -> BcNumber:
        if self.index is None:
            return machine.get(self.name)
        return machine.arrays.setdefault(self.name, {}).get(await self._at(machine, spot), ZERO)

    async def set(self, machine: BcMachine, number: BcNumber, spot: Spot) -> None:
        if self.index is None:
            machine.set(self.name, number, spot)
        else:
            machine.arrays.setdefault(self.name, {})[await self._at(machine, spot)] = number

    async def _at(self, machine: BcMachine, spot: Spot) -> int:
        assert self.index is not None
        at = (await self.index(machine)).at(0)
        if not 0 <= at <= _LAST_INDEX:
            raise Trouble(f"Array {self.name} subscript out of bounds.", spot)
        return at


def _operate(op: str, a: BcNumber, b: BcNumber, machine: BcMachine, spot: Spot) -> BcNumber:
    if op == "+":
        return add(a, b)
    if op == "-":
        return sub(a, b)
    scale = machine.scale
    if op == "*":
        return mul(a, b, scale)
    try:
        if op == "/":
            return div(a, b, scale)
        if op == "%":
            return mod(a, b, scale)
        if b.scale:
            machine.warn(spot, "non-zero scale in exponent")
        return power(a, b, scale)
    except Trouble as trouble:
        trouble.spot = spot
        raise


def row_of(first: Evaluate, rest: list[tuple[str, Evaluate, Spot]]) -> Evaluate:
    """Run a chain of operators from left to right."""

    async def run(machine: BcMachine) -> BcNumber:
        value = await first(machine)
        for place, (op, operand, spot) in enumerate(rest, 1):
            value = _operate(op, value, await operand(machine), machine, spot)
            if not place & 63:
                await machine.proc.budget.yield_turn()
        return value

    return run


def negative(inner: Evaluate) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        number = await inner(machine)
        return BcNumber(-number.digits, number.scale)

    return run


def logic(left: Evaluate, right: Evaluate, either: bool) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        if (await left(machine)).truth is either:
            return ONE if either else ZERO
        return ONE if (await right(machine)).truth else ZERO

    return run


def comparing(left: Evaluate, op: str, right: Evaluate) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
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


def assigning(place: BcPlace, op: str, value: Evaluate, spot: Spot, end: Spot) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        number = await value(machine)
        if op != "=":
            number = _operate(op[0], await place.get(machine, spot), number, machine, spot)
        await place.set(machine, number, end)
        return number

    return run


def stepping(place: BcPlace, by: int, spot: Spot, *, before: bool) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        old = await place.get(machine, spot)
        new = add(old, BcNumber(by))
        await place.set(machine, new, spot)
        return new if before else old

    return run


def reading(spot: Spot) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        word = await machine.word()
        if not word:
            raise Trouble("read() at the end of the input", spot)
        digits = re.sub(r"[^0-9A-F.]", "", word.upper())
        number = parse_number(digits or "0", machine.ibase)
        return BcNumber(-number.digits, number.scale) if word[0] == "-" else number

    return run


def builtin_call(name: str, arguments: list[Evaluate | str], spot: Spot) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        first = arguments[0] if arguments else None
        if first is None or isinstance(first, str):
            raise Trouble(f"{name} needs one number", spot)
        number = await first(machine)
        if name == "length":
            return BcNumber(
                max(len(decimal_digits(abs(number.digits))), number.scale) if number.digits else max(1, number.scale)
            )
        if name == "scale":
            return BcNumber(number.scale)
        try:
            return root(number, machine.scale)
        except Trouble as trouble:
            trouble.spot = spot
            raise

    return run


_MATH: dict[str, Callable[[BcNumber, int, Check], BcNumber]] = {
    "s": sine,
    "c": lambda x, scale, check: sine(x, scale, check, shift=True),
    "a": arctangent,
    "l": logarithm,
    "e": exponential,
}


def _check_arguments(machine: BcMachine, function: BcFunction, arguments: list[Evaluate | str], spot: Spot) -> None:
    """Report arguments of the wrong kind; in GNU's code their kinds follow the name, last argument first."""
    wrong = 0
    for place, (argument, param) in enumerate(zip(reversed(arguments), reversed(function.params), strict=False), 1):
        is_array = param.endswith("[]")
        if isinstance(argument, str) is not is_array:
            text = f"Parameter type mismatch{'' if is_array else ','} parameter {param.removesuffix('[]')}."
            machine.tell("error", spot._replace(at=spot.at + place), text)
            wrong = len(arguments)
    if wrong or len(arguments) != len(function.params):
        fitting = wrong or min(len(arguments), len(function.params))
        raise Trouble("Parameter number mismatch", spot._replace(at=spot.at + fitting + 1))


def user_call(name: str, arguments: list[Evaluate | str], spot: Spot) -> Evaluate:
    async def run(machine: BcMachine) -> BcNumber:
        await machine.tick()
        function = machine.functions.get(name)
        if function is None:
            if machine.mathlib and name in _MATH and len(arguments) == 1 and not isinstance(arguments[0], str):
                return await machine.offload(_MATH[name], await arguments[0](machine))
            if (
                machine.mathlib
                and name == "j"
                and len(arguments) == 2
                and not any(isinstance(a, str) for a in arguments)
            ):
                order, x = [await a(machine) for a in arguments if not isinstance(a, str)]
                return await machine.offload(partial(bessel, order), x)
            raise Trouble(f"Function {name} not defined.", spot)
        _check_arguments(machine, function, arguments, spot)
        machine.depth += 1
        if machine.depth > DEEPEST:
            machine.depth = 0
            raise Trouble(f"maximum function nesting level exceeded ({DEEPEST})", spot)
        values: list[BcNumber | dict[int, BcNumber]] = []
        for argument, param in zip(arguments, function.params, strict=True):
            if not isinstance(argument, str):
                values.append(await argument(machine))
            elif param in function.shared:
                values.append(machine.arrays.setdefault(argument, {}))
            else:
                values.append(dict(machine.arrays.get(argument, {})))
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
            await (function.body if machine.depth % HOP else in_new_task(function.body))(machine)
            result = ZERO
        except BcReturn as returned:
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
