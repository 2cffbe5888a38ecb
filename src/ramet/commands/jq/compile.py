"""Compiles a jq program to closures: each expression is a function from an environment and an item to items.

In value mode an item is a value; in path mode, which `path()`, assignments and deletions use, it is a pair of a path
and a value. The environment is a chain of cells; where a name lives in it is settled when the program is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ramet.commands.jq import formats, values
from ramet.commands.jq.parser import Node
from ramet.commands.jq.paths import delete_paths, get_path, get_slice, index, set_path
from ramet.commands.jq.values import Break, CompileError, JqError, Json, compare, described, fail, kind, truthy

Env = Any
"""None, or (parent, value)."""
Run = Callable[[Env, Any], Iterator[Any]]


class Tail:
    """A call that is the last thing a function does: its caller runs it, so that the stack does not grow."""

    __slots__ = ("env", "function", "item", "path")

    def __init__(self, function: Function, env: Env, item: Any, path: bool) -> None:
        self.function, self.env, self.item, self.path = function, env, item, path


@dataclass
class Closure:
    """An argument that is a filter: code and the environment it belongs to."""

    node: Node
    scope: Scope
    env: Env
    compiler: Compiler

    def run(self, path: bool) -> Run:
        return self.compiler.compile(self.node, self.scope, path)


@dataclass
class Function:
    name: str
    params: tuple[str, ...]
    body: Node
    scope: Scope
    """The scope inside: parameters and the function itself are visible."""
    depth: int
    """How long the environment is where the function was defined."""
    compiler: Compiler
    _runs: dict[bool, Run] = field(default_factory=dict)

    def run(self, path: bool) -> Run:
        found = self._runs.get(path)
        if found is None:
            found = self._runs[path] = self.compiler.compile(self.body, self.scope, path, tail=True)
        return found


@dataclass(frozen=True)
class Scope:
    """What names mean at some place of the program, innermost first."""

    parent: Scope | None
    kind: str
    """`variable`, `param`, `function` or `label`."""
    name: str
    arity: int = 0
    function: list[Function] = field(default_factory=list)
    depth: int = 0
    """Length of the environment here."""


ROOT = Scope(None, "root", "")
Native = Callable[["Compiler", tuple[Node, ...], Scope, bool], Run]


class Compiler:
    def __init__(self, natives: dict[tuple[str, int], Native], host: Any) -> None:
        self.natives, self.host = natives, host
        self.cache: dict[tuple[int, int, bool, bool], tuple[Any, Any, Run]] = {}

    # ------------------------------------------------------------------ scopes

    def bind(self, scope: Scope, name: str, what: str = "variable") -> Scope:
        return Scope(scope, what, name, depth=scope.depth + 1)

    def define(self, scope: Scope, node: Node) -> Scope:
        _, name, params, body = node
        holder: list[Function] = []
        outside = Scope(scope, "function", name, len(params), holder, scope.depth)
        inside = outside
        for param in params:
            plain = param.lstrip("$")
            inside = Scope(inside, "param", plain, depth=inside.depth + 1)
            if param.startswith("$"):
                inside = self.bind(inside, param)
        holder.append(Function(name, params, body, inside, scope.depth, self))
        return outside

    def lookup(self, scope: Scope | None, what: tuple[str, ...], name: str, arity: int = 0) -> Scope | None:
        while scope is not None:
            if scope.kind in what and scope.name == name and (scope.kind != "function" or scope.arity == arity):
                return scope
            scope = scope.parent
        return None

    # ------------------------------------------------------------------ dispatch

    def compile(self, node: Node, scope: Scope, path: bool = False, tail: bool = False) -> Run:
        key = (id(node), id(scope), path, tail)
        found = self.cache.get(key)
        if found is None:
            method: Callable[[Node, Scope, bool, bool], Run] = getattr(self, f"_{node[0]}")
            # Node and scope are kept with the code, so that their ids stay theirs.
            found = self.cache[key] = (node, scope, method(node, scope, path, tail))
        return found[2]

    def value(self, node: Node, scope: Scope) -> Run:
        return self.compile(node, scope)

    def hop(self, scope: Scope, target: int) -> Callable[[Env], Env]:
        """From the environment of `scope` to the one that is `target` cells long."""
        count = scope.depth - target
        if count == 0:
            return lambda env: env
        if count == 1:
            return lambda env: env[0]

        def climb(env: Env) -> Env:
            for _ in range(count):
                env = env[0]
            return env

        return climb

    # ------------------------------------------------------------------ leaves

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

    def constant(self, value: Json, path: bool) -> Run:
        if path:

            def run_path(env: Env, item: Any) -> Iterator[Any]:
                # Only what is the very value at the path keeps it: null, true and false are one of a kind.
                same = (value is None or isinstance(value, bool)) and item[1] is value
                yield (item[0] if same else None, value)

            return run_path

        def run(env: Env, item: Any) -> Iterator[Any]:
            yield value

        return run

    def computed(self, run: Run, path: bool) -> Run:
        """Values that are made and not found: in path mode they have no path."""
        if not path:
            return run

        def run_path(env: Env, item: Any) -> Iterator[Any]:
            for value in run(env, item[1]):
                yield (None, value)

        return run_path

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
            """The last parts vary slowest, as jq has it."""
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
                    yield before + shown

        def run(env: Env, item: Any) -> Iterator[Any]:
            return fill(len(parts) - 1, env, item)

        return self.computed(run, path)

    def _collect(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        inner = self.value(node[1], scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            yield list(inner(env, item))

        return self.computed(run, path)

    def _object(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        entries = [(self.value(key, scope), self.value(value, scope)) for key, value in node[1]]
        if all(key[0] == "literal" for key, _ in node[1]) and len(node[1]) <= 8:
            for key, _ in node[1]:
                if not isinstance(key[1], str):
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

    # ------------------------------------------------------------------ access

    def _index(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        source, key_run = self.compile(node[1], scope, path), self.value(node[2], scope)
        simple = node[2][0] == "literal"
        constant = node[2][1] if simple else None
        if path:

            def run_path(env: Env, item: Any) -> Iterator[Any]:
                for at, value in source(env, item):
                    for key in (constant,) if simple else key_run(env, item[1]):
                        yield (_longer(at, key, value), index(value, key))

            return run_path
        if node[1] == ("identity",) and simple and isinstance(constant, str):

            def run_field(env: Env, item: Any) -> Iterator[Any]:
                yield item.get(constant) if type(item) is dict else index(item, constant)

            return run_field

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in source(env, item):
                for key in (constant,) if simple else key_run(env, item):
                    yield index(value, key)

        return run

    def _slice(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        source = self.compile(node[1], scope, path)
        start_run = self.constant(None, False) if node[2] is None else self.value(node[2], scope)
        stop_run = self.constant(None, False) if node[3] is None else self.value(node[3], scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            outer = item[1] if path else item
            for found in source(env, item):
                for stop in stop_run(env, outer):
                    for start in start_run(env, outer):
                        if path:
                            at, value = found
                            key = {"start": start, "end": stop}
                            yield (_longer(at, key, value), get_slice(value, start, stop))
                        else:
                            yield get_slice(found, start, stop)

        return run

    def _iterate(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        source = self.compile(node[1], scope, path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in source(env, item):
                if type(value) is list:
                    yield from value
                elif type(value) is dict:
                    yield from value.values()
                else:
                    raise fail(f"Cannot iterate over {described(value) if value is not None else 'null'}")

        def run_path(env: Env, item: Any) -> Iterator[Any]:
            for at, value in source(env, item):
                if at is None:
                    raise fail(f"Invalid path expression near attempt to iterate through {_short(value)}")
                if type(value) is list:
                    for key, element in enumerate(value):
                        yield ((*at, key), element)
                elif type(value) is dict:
                    for key, element in value.items():
                        yield ((*at, key), element)
                elif value is not None:
                    raise fail(f"Cannot iterate over {described(value)}")
                else:
                    raise fail("Cannot iterate over null")

        return run_path if path else run

    # ------------------------------------------------------------------ composition

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
            results = body(env, item)
            while True:
                try:
                    result = next(results)
                except StopIteration:
                    return
                except JqError as error:
                    caught = error
                    break
                yield result
            if caught.value.__class__ is dict and "__jq" in caught.value:
                raise caught
            if handler is not None:
                yield from handler(env, (None, caught.value) if path else caught.value)

        return run

    def _label(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        body = self.compile(node[2], self.bind(scope, node[1], "label"), path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            mark = object()
            try:
                yield from body((env, mark), item)
            except Break as stop:
                if stop.label is not mark:
                    raise

        return run

    def _break(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        found = self.lookup(scope, ("label",), node[1])
        if found is None:
            raise CompileError(f"$*label-{node[1][1:]} is not defined")
        climb = self.hop(scope, found.depth)

        def run(env: Env, item: Any) -> Iterator[Any]:
            raise Break(climb(env)[1])
            yield

        return run

    def _local(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        return self.compile(node[2], self.define(scope, node[1]), path, tail)

    # ------------------------------------------------------------------ binding

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
        # Keys of object patterns may use variables bound before them in the same pattern.
        keyed = scope
        for name in names:
            keyed = self.bind(keyed, name)

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
            key_run = self.value(key_node, keyed)
            for key in key_run(environment(env, found), value):
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

        def run(env: Env, item: Any) -> Iterator[Any]:
            tick = self.host.tick
            for state in start(env, item):
                holder = [state]
                for value in source(env, item[1] if path else item):
                    tick()

                    def step(bound: Env, holder: list[Any] = holder) -> Iterator[Any]:
                        for current in update(bound, holder[0]):
                            holder[0] = current
                            if extract is None:
                                yield current
                            else:
                                yield from extract(bound, current)

                    yield from self.alternatives(bindings, env, value, step)

        return run

    # ------------------------------------------------------------------ operators

    def _negate(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        inner = self.value(node[1], scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for value in inner(env, item):
                if not values.is_number(value):
                    raise fail(f"{described(value)} cannot be negated")
                yield -value if value else -0.0

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
            results = left(env, item)
            while True:
                try:
                    result = next(results)
                except (StopIteration, JqError):
                    break
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

    # ------------------------------------------------------------------ calls

    def _call(self, node: Node, scope: Scope, path: bool, tail: bool) -> Run:
        name, args = node[1], node[2]
        found = self.lookup(scope, ("param", "function") if not args else ("function",), name, len(args))
        if found is not None and found.kind == "param":
            return self.call_param(found, scope, path)
        if found is not None:
            return self.call_function(found.function[0], args, scope, path, tail)
        native = self.natives.get((name, len(args)))
        if native is None:
            raise CompileError(f"{name}/{len(args)} is not defined")
        return native(self, args, scope, path)

    def call_param(self, found: Scope, scope: Scope, path: bool) -> Run:
        climb = self.hop(scope, found.depth)

        def run(env: Env, item: Any) -> Iterator[Any]:
            closure: Closure = climb(env)[1]
            return closure.run(path)(closure.env, item)

        return run

    def call_function(self, function: Function, args: tuple[Node, ...], scope: Scope, path: bool, tail: bool) -> Run:
        climb = self.hop(scope, function.depth)
        byvalue = [param.startswith("$") for param in function.params]
        runs = [self.value(arg, scope) if flag else None for arg, flag in zip(args, byvalue, strict=True)]

        def environments(at: int, env: Env, item: Any, inner: Env) -> Iterator[Env]:
            if at == len(args):
                yield inner
                return
            run = runs[at]
            if run is None:
                yield from environments(at + 1, env, item, (inner, Closure(args[at], scope, env, self)))
                return
            for value in run(env, item[1] if path else item):
                # `$x` is known both as a variable and as a filter.
                cell = (inner, Closure(("literal", value), ROOT, None, self))
                yield from environments(at + 1, env, item, (cell, value))

        def prepared(env: Env, item: Any) -> Iterator[Env]:
            if not args:
                return iter((climb(env),))
            return environments(0, env, item, climb(env))

        if tail:

            def run_tail(env: Env, item: Any) -> Iterator[Any]:
                for inner in prepared(env, item):
                    yield Tail(function, inner, item, path)

            return run_tail

        def run(env: Env, item: Any) -> Iterator[Any]:
            for inner in prepared(env, item):
                yield from self.trampoline(function, inner, item, path)

        return run

    def trampoline(self, function: Function, env: Env, item: Any, path: bool) -> Iterator[Any]:
        """Runs a function; calls in last place are run here, one after another, on a stack of our own."""
        tick = self.host.tick
        stack = [function.run(path)(env, item)]
        while stack:
            for result in stack[-1]:
                if result.__class__ is Tail:
                    tick()
                    # What is left of the caller is looked at now: usually it is nothing, and the stack stays short.
                    rest = _rest(stack.pop())
                    if rest is not None:
                        stack.append(rest)
                        if len(stack) > 500_000:
                            raise fail("recursion is too deep")
                    stack.append(result.function.run(result.path)(result.env, result.item))
                    break
                yield result
            else:
                stack.pop()


def _rest(results: Iterator[Any]) -> Iterator[Any] | None:
    """What an iterator still has, None when that is nothing; an error it ends with is kept for its turn."""
    try:
        following = next(results)
    except StopIteration:
        return None
    except (JqError, Break) as error:
        return _raising(error)
    return chain((following,), results)


def _raising(error: Exception) -> Iterator[Any]:
    raise error
    yield


def checked(at: Any, value: Json) -> tuple[Json, ...]:
    if at is None:
        raise fail(f"Invalid path expression with result {_short(value)}")
    return at  # type: ignore[no-any-return]


def _longer(at: Any, key: Json, value: Json) -> tuple[Json, ...]:
    if at is None:
        shown = _short(key)
        raise fail(f"Invalid path expression near attempt to access element {shown} of {_short(value)}")
    return (*at, key)


def _short(value: Json) -> str:
    text = values.dumps(value)
    return text if len(text) <= 14 else text[:11] + "..."


def _or_else(left: Json, right: Json) -> Json:
    return left if truthy(left) else right


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
