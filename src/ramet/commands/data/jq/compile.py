"""Compile a jq program to closures: each expression maps an environment and an item to items.

- In value mode an item is a value; in path mode, which `path()`, assignments and deletions use, it is a pair of a path
  and a value.
- The environment is a chain of cells; the compiler resolves the cell of each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from ramet.commands.data.jq.compile_flow import Flow
from ramet.commands.data.jq.compile_operators import Operators
from ramet.commands.data.jq.compile_values import Values
from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.scopes import Closure, Env, JqFunction, Run, Scope, Tail
from ramet.commands.data.jq.values import CompileError, JqBreak, JqError, fail

Native = Callable[["Compiler", tuple[Node, ...], Scope, bool], Run]


class Compiler(Values, Flow, Operators):
    """All nodes, and the calls of parameters, functions and natives."""

    def __init__(self, natives: dict[tuple[str, int], Native], host: Any) -> None:
        super().__init__(host)
        self.natives = natives

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

    def call_function(self, function: JqFunction, args: tuple[Node, ...], scope: Scope, path: bool, tail: bool) -> Run:
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
                # `$x` is known both as a variable and, with all that it yields, as a filter.
                cell = (inner, Closure(args[at], scope, env, self))
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

    def trampoline(self, function: JqFunction, env: Env, item: Any, path: bool) -> Iterator[Any]:
        """Runs a function; calls in last place are run here, one after another, on a stack of our own."""
        tick = self.host.tick
        stack = [function.run(path)(env, item)]
        while stack:
            for result in stack[-1]:
                if result.__class__ is Tail:
                    tick()
                    # Check the rest of the caller now: it is usually empty, and the stack stays short.
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
    """Yield what an iterator still has, None when that is nothing; an error it ends with is kept for its turn."""
    try:
        following = next(results)
    except StopIteration:
        return None
    except (JqError, JqBreak) as error:
        return _raising(error)
    return chain((following,), results)


def _raising(error: Exception) -> Iterator[Any]:
    raise error
    yield
