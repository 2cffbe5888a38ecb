"""Names in jq programs: scopes, environments, functions and closures.

- The environment is a chain of cells; the compiler resolves the cell of each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.values import Json

Env = Any
"""None, or (parent, value)."""
Run = Callable[[Env, Any], Iterator[Any]]


class Tail:
    """A call that is the last thing a function does: its caller runs it, so that the stack does not grow."""

    __slots__ = ("env", "function", "item", "path")

    def __init__(self, function: JqFunction, env: Env, item: Any, path: bool) -> None:
        self.function, self.env, self.item, self.path = function, env, item, path


@dataclass
class Closure:
    """An argument that is a filter: code and the environment it belongs to."""

    node: Node
    scope: Scope
    env: Env
    compiler: Scoped

    def run(self, path: bool) -> Run:
        return self.compiler.compile(self.node, self.scope, path)


@dataclass
class JqFunction:
    name: str
    params: tuple[str, ...]
    body: Node
    scope: Scope
    """The scope inside: parameters and the function itself are visible."""
    depth: int
    """How long the environment is where the function was defined."""
    compiler: Scoped
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
    function: list[JqFunction] = field(default_factory=list)
    depth: int = 0
    """Length of the environment here."""


ROOT = Scope(None, "root", "")


class Scoped:
    """Code for nodes, made once for each place; what a kind of node does is a method named after it."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self.cache: dict[tuple[int, int, bool, bool], tuple[Any, Any, Run]] = {}

    def bind(self, scope: Scope, name: str, what: str = "variable") -> Scope:
        return Scope(scope, what, name, depth=scope.depth + 1)

    def define(self, scope: Scope, node: Node) -> Scope:
        _, name, params, body = node
        holder: list[JqFunction] = []
        outside = Scope(scope, "function", name, len(params), holder, scope.depth)
        inside = outside
        for param in params:
            plain = param.lstrip("$")
            inside = Scope(inside, "param", plain, depth=inside.depth + 1)
            if param.startswith("$"):
                inside = self.bind(inside, param)
        holder.append(JqFunction(name, params, body, inside, scope.depth, self))
        return outside

    def lookup(self, scope: Scope | None, what: tuple[str, ...], name: str, arity: int = 0) -> Scope | None:
        while scope is not None:
            if scope.kind in what and scope.name == name and (scope.kind != "function" or scope.arity == arity):
                return scope
            scope = scope.parent
        return None

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
        """Return values that are made and not found: in path mode they have no path."""
        if not path:
            return run

        def run_path(env: Env, item: Any) -> Iterator[Any]:
            for value in run(env, item[1]):
                yield (None, value)

        return run_path
