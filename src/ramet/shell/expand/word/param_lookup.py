"""What parameters stand for: plain variables at once; keys, names and changes of large values beside the event loop."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import SMALL
from ramet.shell.expand.long_text import long_match
from ramet.shell.expand.size_check import within
from ramet.shell.expand.values import is_heavy, is_slow, key_names
from ramet.shell.expand.word.param_defaults import refuse_unset
from ramet.shell.expand.word.params import Apply, Base, Found, Star, joined_patiently, one_text, star_join, unbound
from ramet.shell.expand.word.pieces import Text, const, ready
from ramet.shell.syntax.nodes import Param

NO_ARGUMENTS: Final = ("", "")


def nothing(found: Found, node: Param) -> bool:
    """Whether an operation has nothing to work on: its arguments are not even expanded then."""
    if found:
        return False
    if found is None or node.subscript in _ALL:
        return True
    # Slices of the parameters may begin with `$0`, which is there also without them.
    return node.op != ":" if node.name in _ALL else found == "" and node.op[:1] in ("#", "%")


_ALL: Final = ("@", "*")


HEAVY: Final = frozenset("#%/^,~")
HEAVY_AT: Final = frozenset(("@Q", "@U", "@L", "@u", "@E", "@K", "@k", "@A", "@P"))
_MANY_VALUES: Final = 1024
"""Values of an array from which on it does not matter how long they are."""


def keys(node: Param, base: Base) -> Callable[[Any], Awaitable[Found]]:
    """The keys of an array; those of a large one become texts aside."""
    kind = Star if node.subscript == "*" else list

    async def run(host: Any) -> Found:
        array = host.variables.array(host.variables.follow(node.name)[0])
        if array is None or len(array) < _MANY_VALUES:
            return base(host, None)
        return kind(await offload(host.budget, partial(key_names, array)))

    return run


def names(base: Base) -> Callable[[Any], Awaitable[Found]]:
    """`${!prefix@}`: of very many variables those that begin so are sought aside."""

    async def run(host: Any) -> Found:
        return (
            base(host, None) if len(host.vars) < _MANY_VALUES else await offload(host.budget, partial(base, host, None))
        )

    return run


def _is_large(found: str | list[str], pattern: str) -> bool:
    """Whether working on a value is done aside."""
    if type(found) is str:
        return long_match(pattern, len(found))
    return len(found) >= _MANY_VALUES or long_match(pattern, sum(map(len, found)))


def applied(
    node: Param, key: Text | None, args: list[Text], base: Base, apply: Apply, strict: bool
) -> Callable[[Any], Awaitable[Found]]:
    """A parameter with an operator that looks at every character: large values are worked on aside."""
    whole = node.subscript in ("@", "*") and node.form == "value"
    runs, at_once = [arg.run for arg in args], not any(arg.wait or arg.parts is not None for arg in args)

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
        if node.op == "@P" and isinstance(found, list):
            return await _prompts(host, found)
        changed = await offload(host.budget, lambda: apply(host, found, values))
        if type(changed) is str:
            within(host, len(changed))
        return changed

    return run


async def _prompts(host: Any, found: list[str]) -> list[str]:
    """`${a[@]@P}` of many values: what they expand to is for the shell itself to find."""
    shown = type(found)()
    for start in range(0, len(found), _SOME):
        shown += [host.prompt(value) for value in found[start : start + _SOME]]
        await host.budget.yield_turn()
    return shown


_SOME: Final = 256


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


def has_many(host: Any, node: Param) -> bool:
    """Whether there are so many values that others get their turns while they become one text."""
    if node.subscript is None:
        return len(host.params) > SMALL or is_heavy(host.params)
    array = host.variables.array(host.variables.follow(node.name)[0])
    return array is not None and (len(array) > SMALL or is_slow(array) or is_heavy(array.stored()))


async def joined_aside(host: Any, get: Callable[[], Found], join: Callable[[Any, Any], str]) -> str:
    found = await offload(host.budget, get)
    return await joined_patiently(host, found, join) if isinstance(found, list) else join(host, found)


def all_values(node: Param, join: Callable[[Any, Any], str]) -> Text:
    """`${a[*]}`, `$*` and the like where one text is wanted."""
    name, positional = node.name, node.subscript is None
    if join is one_text and (node.subscript or name) == "*":
        join = star_join  # they need not be marked as what they are

    def run(host: Any) -> str:
        return join(host, host.params if positional else host.variables.elements(name))

    def large(host: Any) -> Coroutine[Any, Any, str] | None:
        if not has_many(host, node):
            return None
        return joined_aside(host, lambda: host.params if positional else host.variables.elements(name), join)

    return Text(False, run, None, large)


_SPECIAL_IN_KEY: Final = re.compile(r"[\[\]$`~\\'\"]")


def kept_key(text: str) -> str:
    """What a part of a subscript was expanded to, such that reading the expression does not expand it again."""
    return _SPECIAL_IN_KEY.sub(r"\\\g<0>", text)


def kept(piece: Text) -> Text:
    if piece.const is not None:
        return const(kept_key(piece.const))
    inner = piece.run
    if not piece.wait:
        return Text(False, lambda host: kept_key(inner(host)))

    async def run(host: Any) -> str:
        return kept_key(await inner(host))

    return Text(True, run)
