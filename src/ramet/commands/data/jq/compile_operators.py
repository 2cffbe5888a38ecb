"""Compile jq's operators: arithmetic, comparison, logic, alternatives and path assignments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ramet.commands.data.jq import values
from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.paths import checked, delete_paths, get_path, set_path
from ramet.commands.data.jq.scopes import Env, Run, Scope, Scoped
from ramet.commands.data.jq.values import Json, compare, described, fail, truthy

_ASSIGN = frozenset(("=", "|=", "+=", "-=", "*=", "/=", "%=", "//="))
_OPERATORS: dict[str, Callable[[Json, Json], Json]] = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
    "%": values.modulo,
    "==": lambda a, b: compare(a, b) == 0,
    "!=": lambda a, b: compare(a, b) != 0,
    "<": lambda a, b: compare(a, b) < 0,
    "<=": lambda a, b: compare(a, b) <= 0,
    ">": lambda a, b: compare(a, b) > 0,
    ">=": lambda a, b: compare(a, b) >= 0,
}


class Operators(Scoped):
    """Nodes that join the results of two others, or change the places that one finds."""

    def _negate(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        inner = self.value(node[1], scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in inner(env, item):
                if not values.is_number(value):
                    raise fail(f"{described(value)} cannot be negated")
                yield values.negated(value)

        return self.computed(run, path)

    def _binary(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        op = node[1]
        if op == "//":
            return self.alternative(node, scope, path)
        if op in ("and", "or"):
            return self.computed(self.logic(op, node, scope), path)
        if op in _ASSIGN:
            return self.computed(self.assignment(op, node, scope), path)
        left, right = self.value(node[2], scope), self.value(node[3], scope)
        operate = _OPERATORS[op]

        def run(env: Env, item: Any) -> Iterator[Any]:
            for b in right(env, item):
                for a in left(env, item):
                    yield operate(a, b)

        return self.computed(run, path)

    def alternative(self, node: Node, scope: Scope, path: bool) -> Run:
        left, right = self.compile(node[2], scope, path), self.compile(node[3], scope, path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            any_ = False
            for result in left(env, item):
                if truthy(result[1] if path else result):
                    any_ = True
                    yield result
            if not any_:
                yield from right(env, item)

        return run

    def logic(self, op: str, node: Node, scope: Scope) -> Run:
        left, right = self.value(node[2], scope), self.value(node[3], scope)
        decided = op == "or"

        def run(env: Env, item: Any) -> Iterator[Any]:
            for a in left(env, item):
                if truthy(a) is decided:
                    yield decided
                else:
                    for b in right(env, item):
                        yield truthy(b)

        return run

    def assignment(self, op: str, node: Node, scope: Scope) -> Run:
        target, right = self.compile(node[2], scope, True), self.value(node[3], scope)
        if op == "=":

            def assign(env: Env, item: Any) -> Iterator[Any]:
                for new in right(env, item):
                    result = item
                    for at, _ in target(env, ((), item)):
                        result = set_path(result, checked(at, _), new)
                    yield result

            return assign
        if op == "|=":
            return lambda env, item: iter((self.update(target(env, ((), item)), item, lambda old: right(env, old)),))
        operate = _OPERATORS[op[:-1]] if op != "//=" else _or_else

        def run(env: Env, item: Any) -> Iterator[Any]:
            for b in right(env, item):
                result = item
                for at, _ in target(env, ((), item)):
                    place = checked(at, _)
                    result = set_path(result, place, operate(get_path(result, place), b))
                yield result

        return run

    def update(self, found: Iterator[Any], item: Json, change: Callable[[Json], Iterator[Json]]) -> Json:
        """`|=`: each place becomes the first result of the filter, or goes away when there is none."""
        result, gone = item, []
        for at, value in found:
            place = checked(at, value)
            for new in change(get_path(result, place)):
                result = set_path(result, place, new)
                break
            else:
                gone.append(list(place))
        return delete_paths(result, gone) if gone else result


def _or_else(left: Json, right: Json) -> Json:
    return left if truthy(left) else right
