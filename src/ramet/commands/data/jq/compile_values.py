"""Compile jq's literals, variables, strings, arrays, objects, indexing, slices and iteration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ramet.commands.data.jq import formats, values
from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.paths import index, short
from ramet.commands.data.jq.scopes import Env, Run, Scope, Scoped
from ramet.commands.data.jq.values import UNFIT, CompileError, JqError, Json, described, fail


class Values(Scoped):
    """Nodes whose results are made from the input or found in it."""

    def _identity(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        def run(env: Env, item: Any) -> Iterator[Any]:
            yield item

        return run

    def _literal(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        return self.constant(node[1], path)

    def _number(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        text = node[1]
        plain = text.isdecimal()
        return self.constant(values.parse_int(text) if plain else values.parse_float(text), path)

    def _variable(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        name = node[1]
        found = self.lookup(scope, ("variable",), name)
        if found is None:
            fixed, known = self.host.variable(name)
            if not known:
                raise CompileError(f"{name} is not defined")
            return self.constant(fixed, path)
        climb = self.hop(scope, found.depth)

        def run(env: Env, item: Any) -> Iterator[Any]:
            yield climb(env)[1]

        return self.computed(run, path)

    def _format(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        form = formats.known(node[1])

        def run(env: Env, item: Any) -> Iterator[Any]:
            yield form(item)

        return self.computed(run, path)

    def _interpolation(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        form = formats.known(node[1]) if node[1] else values.to_text
        parts = [part if isinstance(part, str) else self.value(part, scope) for part in node[2]]

        def fill(at: int, env: Env, item: Any) -> Iterator[str]:
            """Yield the last parts vary slowest, as jq has it."""
            if at < 0:
                yield ""
                return
            part = parts[at]
            if isinstance(part, str):
                for before in fill(at - 1, env, item):
                    yield before + part
                return
            for value in part(env, item):
                shown = form(value)
                for before in fill(at - 1, env, item):
                    values.bounded(len(before) + len(shown))
                    yield before + shown

        def run(env: Env, item: Any) -> Iterator[Any]:
            return fill(len(parts) - 1, env, item)

        return self.computed(run, path)

    def _collect(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        inner = self.value(node[1], scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            made = list(islice(inner(env, item), values.LONGEST.get() // 8 + 1))
            values.bounded(8 * len(made))
            yield made

        return self.computed(run, path)

    def _object(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        entries = [(self.value(key, scope), self.value(value, scope)) for key, value in node[1]]
        for (key, _), (key_run, _) in zip(node[1], entries, strict=True):
            if key[0] != "literal" and _is_constant(key) and (name := self.folded(key_run)) is not None:
                raise CompileError(f"Cannot use {described(name)} as object key")
            if key[0] == "literal" and not isinstance(key[1], str):
                raise CompileError(f"Cannot use {described(key[1])} as object key")

        def fill(at: int, env: Env, item: Any) -> Iterator[dict[str, Json]]:
            if at == len(entries):
                yield {}
                return
            key_run, value_run = entries[at]
            for key in key_run(env, item):
                if not isinstance(key, str):
                    raise fail(f"Cannot use {described(key)} as object key")
                for value in value_run(env, item):
                    for rest in fill(at + 1, env, item):
                        yield {key: value, **rest} if key not in rest else {key: rest[key], **rest}

        def run(env: Env, item: Any) -> Iterator[Any]:
            return fill(0, env, item)

        return self.computed(run, path)

    @staticmethod
    def folded(run: Run) -> Json:
        """Return what a constant is when the program is read, unless that is text, or an error."""
        try:
            value = next(run((), None))
        except (JqError, *UNFIT):
            return None
        return None if isinstance(value, str) else value

    def _index(self, node: Node, scope: Scope, path: bool, tail: bool, lenient: bool = False) -> Run:
        source = self.compile(node[1], scope, path)
        if node[2][0] != "literal":
            return _at_keys(source, self.value(node[2], scope), path, lenient)
        constant = node[2][1]
        if path:
            return _at_keys(source, self.constant(constant, False), path, lenient)
        if lenient:

            def run_lenient(env: Env, item: Any) -> Iterator[Any]:
                for value in source(env, item):
                    try:
                        found = index(value, constant)
                    except JqError:
                        continue
                    yield found

            return run_lenient
        if node[1] == ("identity",) and isinstance(constant, str):

            def run_field(env: Env, item: Any) -> Iterator[Any]:
                yield item.get(constant) if type(item) is dict else index(item, constant)

            return run_field

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in source(env, item):
                yield index(value, constant)

        return run

    def _slice(self, node: Node, scope: Scope, path: bool, tail: bool, lenient: bool = False) -> Run:
        source = self.compile(node[1], scope, path)
        start_run = self.constant(None, False) if node[2] is None else self.value(node[2], scope)
        stop_run = self.constant(None, False) if node[3] is None else self.value(node[3], scope)

        def bounds(env: Env, item: Any) -> Iterator[Json]:
            for start in start_run(env, item):
                for stop in stop_run(env, item):
                    yield {"start": start, "end": stop}

        return _at_keys(source, bounds, path, lenient)

    def _iterate(self, node: Node, scope: Scope, path: bool, tail: bool, lenient: bool = False) -> Run:
        source = self.compile(node[1], scope, path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in source(env, item):
                if type(value) is list:
                    yield from value
                elif type(value) is dict:
                    yield from value.values()
                elif not lenient:
                    raise fail(f"Cannot iterate over {described(value)}")

        def run_path(env: Env, item: Any) -> Iterator[Any]:
            for at, value in source(env, item):
                if at is None:
                    raise fail(f"Invalid path expression near attempt to iterate through {short(value)}")
                if type(value) is list:
                    for key, element in enumerate(value):
                        yield ((*at, key), element)
                elif type(value) is dict:
                    for key, element in value.items():
                        yield ((*at, key), element)
                elif not lenient:
                    raise fail(f"Cannot iterate over {described(value)}")

        return run_path if path else run

    def _optional(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        """`.a?`, `.[f]?`, `.[]?`: values that have no such elements are passed over."""
        inner = node[1]
        if inner[0] == "index":
            return self._index(inner, scope, path, tail, lenient=True)
        if inner[0] == "slice":
            return self._slice(inner, scope, path, tail, lenient=True)
        return self._iterate(inner, scope, path, tail, lenient=True)


_FOLDED = frozenset(("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">="))
"""The operators that are worked out when the program is read, between numbers."""


def _is_constant(node: Node) -> bool:
    """Return whether a node is worked out when the program is read."""
    if node[0] == "binary":
        return node[1] in _FOLDED and all(part[0] == "number" or _is_constant(part) for part in node[2:4])
    if node[0] == "pipe":
        return node[2] == ("identity",) and _is_constant(node[1])
    if node[0] == "collect":
        return _is_constant(node[1])
    if node[0] == "object":
        return all(_is_constant(key) and _is_constant(value) for key, value in node[1])
    return node[0] in ("literal", "number")


def _at_keys(source: Run, keys: Run, path: bool, lenient: bool) -> Run:
    """Return the elements of values at keys: of all values at the first key, then at the next."""

    def run(env: Env, item: Any) -> Iterator[Any]:
        for key in keys(env, item):
            for value in source(env, item):
                try:
                    found = index(value, key)
                except JqError:
                    if lenient:
                        continue
                    raise
                yield found

    def run_path(env: Env, item: Any) -> Iterator[Any]:
        for key in keys(env, item[1]):
            for at, value in source(env, item):
                longer = _longer(at, key, value)
                try:
                    found = index(value, key)
                except JqError:
                    if lenient:
                        continue
                    raise
                yield longer, found

    return run_path if path else run


def _longer(at: Any, key: Json, value: Json) -> tuple[Json, ...]:
    if at is None:
        shown = short(key, 14)
        raise fail(f"Invalid path expression near attempt to access element {shown} of {short(value)}")
    return (*at, key)
