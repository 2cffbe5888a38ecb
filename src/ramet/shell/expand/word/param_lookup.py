"""Compile the lookup of parameters: variables, keys, and operators that are offloaded for large values."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH
from ramet.shell.expand.size_check import within
from ramet.shell.expand.values import is_slow, key_names
from ramet.shell.expand.word.param_defaults import refuse_unset
from ramet.shell.expand.word.params import Apply, Base, Found, Star, one_text, star_join, unbound
from ramet.shell.expand.word.pieces import Text, const, ready
from ramet.shell.syntax.nodes import Param
from ramet.text.pattern.matcher import is_costly

NO_ARGUMENTS: Final = ("", "")


def nothing(found: Found, node: Param) -> bool:
    """Return whether an operation has no value to work on: its arguments are not expanded then."""
    if found:
        return False
    if found is None or node.subscript in _ALL:
        return True
    # Slices of the parameters may begin with `$0`, which is there also without them.
    return node.op != ":" if node.name in _ALL else found == "" and node.op[:1] in ("#", "%")


_ALL: Final = ("@", "*")


HEAVY: Final = frozenset("#%/^,~")
HEAVY_AT: Final = frozenset(("@Q", "@U", "@L", "@u", "@E", "@K", "@k", "@A", "@P"))


def keys(node: Param, base: Base) -> Callable[[Any], Awaitable[Found]]:
    """Compile `${!a[@]}`."""
    kind = Star if node.subscript == "*" else list

    async def run(host: Any) -> Found:
        array = host.variables.array(host.variables.follow(node.name)[0])
        if array is None:
            return base(host, None)
        return kind(await offload_large(host.budget, len(array), partial(key_names, array), BATCH))

    return run


def _is_large(found: str | list[str], pattern: str) -> bool:
    if type(found) is str:
        return is_costly(pattern, len(found))
    return len(found) > BATCH or is_costly(pattern, sum(map(len, found)))


def applied(
    node: Param, key: Text | None, args: list[Text], base: Base, apply: Apply, strict: bool
) -> Callable[[Any], Awaitable[Found]]:
    """Compile a parameter with an operator that looks at every character; work on large values is offloaded."""
    whole = node.subscript in ("@", "*") and node.form == "value"
    runs, at_once = [arg.run for arg in args], not any(arg.wait for arg in args)

    async def run(host: Any) -> Found:
        subscript = None if key is None else await key.run(host) if key.wait else key.run(host)
        if whole and is_slow(host.variables.array(host.variables.follow(node.name)[0])):
            found = await offload(host.budget, partial(base, host, subscript))
        else:
            found = base(host, subscript)
        if found is None:
            if strict and host.nounset:
                refuse_unset(host, node)
            return apply(host, None, NO_ARGUMENTS)
        if nothing(found, node):
            return apply(host, found, NO_ARGUMENTS)
        values = [run(host) for run in runs] if at_once else [await ready(host, arg) for arg in args]
        await host.budget.yield_turn()  # one command may have many of these
        if not _is_large(found, values[0] if values else ""):
            return apply(host, found, values)
        if node.op == "@P":
            return await _prompts(host, found) if isinstance(found, list) else apply(host, found, values)
        changed = await offload(host.budget, lambda: apply(host, found, values))
        if type(changed) is str:
            within(host, len(changed))
        return changed

    return run


async def _prompts(host: Any, found: list[str]) -> list[str]:
    """Expand `${a[@]@P}` of many values on the event loop: prompts may change the shell."""
    expanded = type(found)()
    for value in found:
        expanded.append(host.prompt(value))
        await host.budget.yield_turn()
    return expanded


def is_plain(name: str) -> bool:
    return (name[0].isalpha() or name[0] == "_") and name != "_"


def variable(name: str) -> Callable[[Any], str | None]:
    def get(host: Any) -> str | None:
        value = host.vars.get(name)
        if type(value) is str:
            return value
        found: str | None = host.variables.get(name)
        if found is None and host.nounset:
            unbound(host, name)
        return found

    return get


def all_values(node: Param, join: Callable[[Any, Any], str]) -> Text:
    """Compile `${a[*]}`, `$*` and the like as one text."""
    name, positional = node.name, node.subscript is None
    if join is one_text and (node.subscript or name) == "*":
        join = star_join  # a list is as good as a `Star` then
    return Text(False, lambda host: join(host, host.params if positional else host.variables.elements(name)))


_SPECIAL_IN_KEY: Final = re.compile(r"[\[\]$`~\\'\"]")


def escape_key(text: str) -> str:
    """Escape the expanded part of a subscript, so that reading the expression does not expand it again."""
    return _SPECIAL_IN_KEY.sub(r"\\\g<0>", text)


def escaped_key(piece: Text) -> Text:
    if piece.const is not None:
        return const(escape_key(piece.const))
    inner = piece.run
    if not piece.wait:
        return Text(False, lambda host: escape_key(inner(host)))

    async def run(host: Any) -> str:
        return escape_key(await inner(host))

    return Text(True, run)
