"""What each construct of bc does, as closures over its parts; nothing here knows the syntax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ramet.commands.bc.machine import Break, Continue, Evaluate, Machine, Return, Run
from ramet.commands.bc.numbers import (
    ONE,
    ZERO,
    Check,
    Num,
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
    power,
    root,
    sine,
    sub,
)
from ramet.core.depth import DEEPEST, HOP, apart


def sequence(runs: list[Run]) -> Run:
    async def run(machine: Machine) -> None:
        for item in runs:
            await item(machine)

    return run


def raising(kind: type[Exception]) -> Run:
    async def run(machine: Machine) -> None:
        raise kind

    return run


def looping(first: Evaluate | None, test: Evaluate | None, step: Evaluate | None, body: Run) -> Run:
    async def run(machine: Machine) -> None:
        if first is not None:
            await first(machine)
        while test is None or (await test(machine)).truth:
            await machine.tick()
            try:
                await body(machine)
            except Break:
                return
            except Continue:
                pass
            if step is not None:
                await step(machine)

    return run


@dataclass
class Place:
    """A variable or an array element."""

    name: str
    index: Evaluate | None

    async def get(self, machine: Machine) -> Num:
        if self.index is None:
            return machine.get(self.name)
        return machine.arrays.setdefault(self.name, {}).get(await self._at(machine), ZERO)

    async def set(self, machine: Machine, number: Num) -> None:
        if self.index is None:
            machine.set(self.name, number)
        else:
            machine.arrays.setdefault(self.name, {})[await self._at(machine)] = number

    async def _at(self, machine: Machine) -> int:
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


def binary(left: Evaluate, op: str, right: Evaluate) -> Evaluate:
    async def run(machine: Machine) -> Num:
        a = await left(machine)
        b = await right(machine)
        return _operate(op, a, b, machine.scale)

    return run


def negative(inner: Evaluate) -> Evaluate:
    async def run(machine: Machine) -> Num:
        number = await inner(machine)
        return Num(-number.digits, number.scale)

    return run


def logic(left: Evaluate, right: Evaluate, either: bool) -> Evaluate:
    async def run(machine: Machine) -> Num:
        a, b = (await left(machine)).truth, (await right(machine)).truth
        return ONE if (a or b if either else a and b) else ZERO

    return run


def comparing(left: Evaluate, op: str, right: Evaluate) -> Evaluate:
    async def run(machine: Machine) -> Num:
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


def assigning(place: Place, op: str, value: Evaluate) -> Evaluate:
    async def run(machine: Machine) -> Num:
        number = await value(machine)
        if op != "=":
            number = _operate(op[0], await place.get(machine), number, machine.scale)
        await place.set(machine, number)
        return number

    return run


def stepping(place: Place, by: int, *, before: bool) -> Evaluate:
    async def run(machine: Machine) -> Num:
        old = await place.get(machine)
        new = add(old, Num(by))
        await place.set(machine, new)
        return new if before else old

    return run


def builtin_call(name: str, arguments: list[Evaluate | str]) -> Evaluate:
    async def run(machine: Machine) -> Num:
        first = arguments[0] if arguments else None
        if first is None or isinstance(first, str):
            raise Trouble(f"{name} needs one number")
        number = await first(machine)
        if name == "length":
            return Num(
                max(len(decimal_digits(abs(number.digits))), number.scale) if number.digits else max(1, number.scale)
            )
        if name == "scale":
            return Num(number.scale)
        return root(number, machine.scale)

    return run


_MATH: dict[str, Callable[[Num, int, Check], Num]] = {
    "s": sine,
    "c": lambda x, scale, check: sine(x, scale, check, shift=True),
    "a": arctangent,
    "l": logarithm,
    "e": exponential,
}


def user_call(name: str, arguments: list[Evaluate | str]) -> Evaluate:
    async def run(machine: Machine) -> Num:
        await machine.tick()
        function = machine.functions.get(name)
        if function is None:
            if machine.mathlib and name in _MATH and len(arguments) == 1 and not isinstance(arguments[0], str):
                return await machine.beside(_MATH[name], await arguments[0](machine))
            if (
                machine.mathlib
                and name == "j"
                and len(arguments) == 2
                and not any(isinstance(a, str) for a in arguments)
            ):
                order, x = [await a(machine) for a in arguments if not isinstance(a, str)]
                return await machine.beside(partial(bessel, order), x)
            raise Trouble(f"Function {name} not defined.")
        if len(arguments) != len(function.params):
            raise Trouble("Parameter number mismatch")
        machine.depth += 1
        if machine.depth > DEEPEST:
            machine.depth = 0
            raise Trouble(f"maximum function nesting level exceeded ({DEEPEST})")
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
            await (function.body if machine.depth % HOP else apart(function.body))(machine)
            result = ZERO
        except Return as returned:
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
