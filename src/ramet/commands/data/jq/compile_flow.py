"""Compile jq's control flow: pipes, conditions, errors, labels, reduce, foreach and patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.paths import index
from ramet.commands.data.jq.scopes import Env, Run, Scope, Scoped
from ramet.commands.data.jq.values import UNFIT, CompileError, JqBreak, JqError, Json, as_error, fail, kind, truthy


class Flow(Scoped):
    """Nodes that run other nodes, in turn, by choice or with new names."""

    def _pipe(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        first, second = self.compile(node[1], scope, path), self.compile(node[2], scope, path, tail)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for middle in first(env, item):
                yield from second(env, middle)

        return run

    def _comma(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        first, second = self.compile(node[1], scope, path), self.compile(node[2], scope, path, tail)

        def run(env: Env, item: Any) -> Iterator[Any]:
            yield from first(env, item)
            yield from second(env, item)

        return run

    def _if(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        test = self.value(node[1], scope)
        yes, no = self.compile(node[2], scope, path, tail), self.compile(node[3], scope, path, tail)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for chosen in test(env, item[1] if path else item):
                yield from (yes if truthy(chosen) else no)(env, item)

        return run

    def _try(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        body = self.compile(node[1], scope, path)
        handler = None if node[2] is None else self.compile(node[2], scope, path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            results: Iterator[Any] | None = None
            while True:
                try:
                    if results is None:
                        results = body(env, item)  # what has one result may be computed right here
                    result = next(results)
                except StopIteration:
                    return
                except (JqError, *UNFIT) as error:
                    caught = as_error(error)
                    break
                except JqBreak:  # to jq a way out of a label is an error like others
                    caught = JqError({"__jq": 0})
                    break
                yield result
            if handler is not None:
                yield from handler(env, (None, caught.value) if path else caught.value)

        return run

    def _label(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        body = self.compile(node[2], self.bind(scope, node[1], "label"), path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            mark = object()
            try:
                yield from body((env, mark), item)
            except JqBreak as stop:
                if stop.label is not mark:
                    raise

        return run

    def _break(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        found = self.lookup(scope, ("label",), node[1])
        if found is None:
            raise CompileError(f"$*label-{node[1][1:]} is not defined")
        climb = self.hop(scope, found.depth)

        def run(env: Env, item: Any) -> Iterator[Any]:
            raise JqBreak(climb(env)[1])
            yield

        return run

    def _local(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        return self.compile(node[2], self.define(scope, node[1]), path, tail)

    def _as(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        source = self.value(node[1], scope)
        bindings, inner = self.patterns(node[2], scope)
        body = self.compile(node[3], inner, path, tail and len(node[2]) == 1)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in source(env, item[1] if path else item):
                yield from self.alternatives(bindings, env, value, lambda bound: body(bound, item))

        return run

    def alternatives(
        self,
        bindings: list[Callable[[Env, Json], Iterator[Env]]],
        env: Env,
        value: Json,
        body: Callable[[Env], Iterator[Any]],
    ) -> Iterator[Any]:
        """`?//`: the next pattern is tried when this one, or what follows it, fails."""
        for number, bind in enumerate(bindings):
            try:
                for bound in bind(env, value):
                    yield from body(bound)
                return
            except JqError:
                if number == len(bindings) - 1:
                    raise

    def patterns(
        self, nodes: tuple[Node, ...], scope: Scope
    ) -> tuple[list[Callable[[Env, Json], Iterator[Env]]], Scope]:
        """Functions that extend an environment by what a pattern binds, and the scope that knows the names."""
        names: list[str] = []
        for node in nodes:
            for name in _names(node):
                if name not in names:
                    names.append(name)
        inner = scope
        for name in names:
            inner = self.bind(inner, name)
        made: list[Callable[[Env, Json], Iterator[Env]]] = []
        for node in nodes:
            if node[0] == "var" and len(names) == 1:
                made.append(lambda env, value: iter(((env, value),)))
            else:
                made.append(self.binder(node, names, scope))
        return made, inner

    def binder(self, node: Node, names: list[str], scope: Scope) -> Callable[[Env, Json], Iterator[Env]]:
        for key in _keys(node):
            self.value(key, scope)

        def environment(env: Env, found: dict[str, Json]) -> Env:
            for name in names:
                env = (env, found.get(name))
            return env

        def walk(pattern: Node, value: Json, env: Env, found: dict[str, Json]) -> Iterator[dict[str, Json]]:
            if pattern[0] == "var":
                yield {**found, pattern[1]: value}
            elif pattern[0] == "array":
                if value is not None and not isinstance(value, list):
                    raise fail(f"Cannot index {kind(value)} with number")
                yield from items(pattern[1], 0, value, env, found)
            else:
                yield from entries(pattern[1], 0, value, env, found)

        def items(patterns: Any, at: int, value: Json, env: Env, found: dict[str, Json]) -> Iterator[dict[str, Json]]:
            if at == len(patterns):
                yield found
                return
            for more in walk(patterns[at], index(value, at), env, found):
                yield from items(patterns, at + 1, value, env, more)

        def entries(patterns: Any, at: int, value: Json, env: Env, found: dict[str, Json]) -> Iterator[dict[str, Json]]:
            if at == len(patterns):
                yield found
                return
            key_node, name, inner = patterns[at]
            key_run = self.value(key_node, scope)
            for key in key_run(env, value):
                if not isinstance(key, str):
                    raise fail(f"Cannot index {kind(value)} with {kind(key)}")
                element = index(value, key)
                more = {**found, name: element} if name is not None else found
                if inner is None:
                    yield from entries(patterns, at + 1, value, env, more)
                else:
                    for bound in walk(inner, element, env, more):
                        yield from entries(patterns, at + 1, value, env, bound)

        def bind(env: Env, value: Json) -> Iterator[Env]:
            for found in walk(node, value, env, {}):
                yield environment(env, found)

        return bind

    def _reduce(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        source = self.value(node[1], scope)
        bindings, inner = self.patterns(node[2], scope)
        start, update = self.compile(node[3], scope, path), self.compile(node[4], inner, path)
        nothing: Any = (None, None) if path else None

        def run(env: Env, item: Any) -> Iterator[Any]:
            tick = self.host.tick
            for state in start(env, item):
                current = state
                for value in source(env, item[1] if path else item):
                    tick()

                    def step(bound: Env, before: Any = current) -> Iterator[Any]:
                        last = nothing
                        for result in update(bound, before):
                            last = result
                        yield last

                    for result in self.alternatives(bindings, env, value, step):
                        current = result
                yield current

        return run

    def _foreach(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        source = self.value(node[1], scope)
        bindings, inner = self.patterns(node[2], scope)
        start, update = self.compile(node[3], scope, path), self.compile(node[4], inner, path)
        extract = None if node[5] is None else self.compile(node[5], inner, path)
        nothing: Any = (None, None) if path else None

        def run(env: Env, item: Any) -> Iterator[Any]:
            tick = self.host.tick
            for state in start(env, item):
                holder = [state]
                for value in source(env, item[1] if path else item):
                    tick()

                    def step(bound: Env, holder: list[Any] = holder) -> Iterator[Any]:
                        before, holder[0] = holder[0], nothing
                        for current in update(bound, before):
                            holder[0] = current
                            if extract is None:
                                yield current
                            else:
                                yield from extract(bound, current)

                    yield from self.alternatives(bindings, env, value, step)

        return run


def _keys(pattern: Node) -> Iterator[Node]:
    """Yield what is computed to find the members that a pattern names."""
    for part in pattern[1] if pattern[0] != "var" else ():
        if pattern[0] == "object":
            yield part[0]
            part = part[2]
        if part is not None:
            yield from _keys(part)


def _names(pattern: Node) -> Iterator[str]:
    if pattern[0] == "var":
        yield pattern[1]
    elif pattern[0] == "array":
        for inner in pattern[1]:
            yield from _names(inner)
    else:
        for _, name, inner in pattern[1]:
            if name is not None:
                yield name
            if inner is not None:
                yield from _names(inner)
