"""The order of awk arrays: `for (k in a)`, asort, asorti and PROCINFO["sorted_in"]."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Coroutine
from functools import partial
from operator import itemgetter
from typing import Any

from ramet.commands.awk.run.streams import Runtime
from ramet.commands.awk.run.values import Array, Value, as_number, num
from ramet.commands.awk.run.values import Field as FieldValue
from ramet.commands.awk.syntax.tree import AwkError
from ramet.concurrency.offload import interruptible, offload
from ramet.concurrency.sizes import BATCH

Item = tuple[str, Value]


def _value_key(runtime: Runtime, mode: str) -> Callable[[Item], Any]:
    """Return what values are sorted by, arrays behind everything that is none, and what is equal by its index."""

    def by_number(item: Item) -> Any:
        key, value = item
        if value.__class__ is Array:
            return 1, 0.0, "", key
        return 0, _sortable(num(value)), runtime.text(value), key

    def by_text(item: Item) -> Any:
        key, value = item
        return (1, "", key) if value.__class__ is Array else (0, runtime.text(value), key)

    def by_type(item: Item) -> Any:
        key, value = item
        if value.__class__ is Array:
            return 2, 0.0, "", key
        number = as_number(value)
        return (1, 0.0, value or "", key) if number is None else (0, _sortable(number), "", key)

    return {"num": by_number, "str": by_text}.get(mode, by_type)


def _sortable(number: float) -> Any:
    """Return a number as a part of a key; what is none comes behind all others."""
    return number if number == number else math.inf


def _index_key(mode: str) -> Callable[[Item], Any]:
    if mode == "num":
        return lambda item: (_sortable(num(item[0])), item[0])
    return itemgetter(0)


def ordered(runtime: Runtime, array: Array, how: str) -> list[tuple[str, Value]]:
    """Return the elements of an array in the order that a name like `@val_num_desc`, or a function, asks for."""
    items = list(array.items())
    if not how or how == "@unsorted":
        return items
    if how.startswith("@"):
        parts = how[1:].split("_")
        if len(parts) != 3 or parts[0] not in ("ind", "val"):
            raise AwkError(f"fatal: sort comparison function `{how}' is not defined")
        key = _index_key(parts[1]) if parts[0] == "ind" else _value_key(runtime, parts[1])
        return sorted(items, key=key, reverse=parts[2] == "desc")
    function = runtime.namespace.get("f_" + how)
    if function is None:
        raise AwkError(f"fatal: sort comparison function `{how}' is not defined")
    params = runtime.functions[how][1]
    taken, own = len(params), params[4:]

    def chosen(a: tuple[str, Value], b: tuple[str, Value]) -> int:
        found = function(*(*a, *b)[:taken], *(Array() if is_array else None for is_array in own))
        return int(num(_driven(found) if isinstance(found, Coroutine) else found))

    items.sort(key=functools.cmp_to_key(chosen))
    return items


def _driven(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine that never suspends: a sort cannot await."""
    try:
        while True:
            work.send(None)
    except StopIteration as end:
        found: Value = end.value
        return found


def _may_wait(runtime: Runtime, how: str) -> bool:
    """Return whether the comparison function awaits, which no thread can."""
    return how in runtime.functions and runtime.functions[how][0]


async def offload_keys(runtime: Runtime, array: Array) -> list[str]:
    """Run `keys` in a thread if the array is large."""
    if len(array) < BATCH or _may_wait(runtime, str(runtime.procinfo.get("sorted_in") or "")):
        return keys(runtime, array)
    return await offload(runtime.proc.budget, partial(keys, runtime, array))


async def offload_asort(runtime: Runtime, array: Array, into: Array | None, how: Value, indices: bool) -> float:
    """Run `asort` in a thread if the array is large."""
    if len(array) < BATCH or _may_wait(runtime, runtime.text(how)):
        return asort(runtime, array, into, how, indices)
    return await offload(runtime.proc.budget, partial(asort, runtime, array, into, how, indices))


def keys(runtime: Runtime, array: Array) -> list[str]:
    """Return the indices that `for (k in array)` visits."""
    how = runtime.procinfo.get("sorted_in")
    if how:
        return [key for key, _ in ordered(runtime, array, str(how))]
    first = next(iter(array), "")
    if not _is_whole(first):
        return _as_hashed(list(array))  # what begins with a name holds numbers as names, too
    names = [key for key in array if not _is_whole(key)]
    return _as_hashed(names) + sorted([key for key in array if _is_whole(key)], key=int)


def _is_whole(key: str) -> bool:
    """Return whether an index is a plain natural number; gawk sorts those if the first index is one."""
    return key.isdecimal() and key.isascii() and (key[0] != "0" or key == "0") and len(key) < 16


_TABLE_SIZES = (13, 127, 1021, 8191, 131_071)
_HASHED_MAX = 20_000


def _as_hashed(names: list[str]) -> list[str]:
    """Return names in the order in which gawk's hash table holds them, which scripts have come to expect."""
    if len(names) < 2 or len(names) > _HASHED_MAX:
        return names
    level, size = 0, _TABLE_SIZES[0]
    hashes = {name: _hash(name) for name in names}
    table: dict[int, list[str]] = {}
    for count, name in enumerate(names, 1):
        if count // size > 2 and level + 1 < len(_TABLE_SIZES):
            level += 1
            size = _TABLE_SIZES[level]
            moved: dict[int, list[str]] = {}
            for bucket in sorted(table):
                # Chains are rebuilt from their head.
                for other in reversed(table[bucket]):
                    moved.setdefault(hashes[other] % size, []).append(other)
            table = moved
        table.setdefault(hashes[name] % size, []).append(name)
    return [name for bucket in sorted(table) for name in reversed(table[bucket])]


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode("utf-8", "surrogateescape"):
        value = (byte + 65_599 * value) & 0xFFFFFFFF
    return value


def asort(runtime: Runtime, array: Array, into: Array | None, how: Value, indices: bool) -> float:
    default = "@ind_str_asc" if indices else "@val_type_asc"
    items = ordered(runtime, array, runtime.text(how) or default)
    target = array if into is None else into
    count = len(items)
    values = [FieldValue(key) if indices else value for key, value in items]
    for _ in interruptible(range(len(target))):
        target.popitem()
    for index, value in enumerate(interruptible(values), 1):
        target[str(index)] = value
    return float(count)
