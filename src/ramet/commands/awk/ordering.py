"""The order of an array: what `for (k in a)` visits, and what asort and asorti make of it."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ramet.commands.awk.runtime import Runtime
from ramet.commands.awk.tree import AwkError
from ramet.commands.awk.values import Array, Value, compare, looks_numeric, num
from ramet.commands.awk.values import Field as FieldValue


def _rank(value: Value) -> int:
    return (
        0
        if value is None
        or value.__class__ is float
        or (isinstance(value, FieldValue) and looks_numeric(value) is not None)
        else 2
        if isinstance(value, dict)
        else 1
    )


def _by_value(runtime: Runtime, mode: str) -> Callable[[tuple[str, Value], tuple[str, Value]], int]:
    def order(a: tuple[str, Value], b: tuple[str, Value]) -> int:
        left, right = a[1], b[1]
        if left.__class__ is Array or right.__class__ is Array:
            # Arrays come behind everything that is none.
            result = isinstance(left, Array) - isinstance(right, Array)
        elif mode == "num":
            x, y = num(left), num(right)
            result = -1 if x < y else 1 if x > y else 0
            if result == 0:
                result = _compare_text(runtime.text(left), runtime.text(right))
        elif mode == "str":
            result = _compare_text(runtime.text(left), runtime.text(right))
        else:
            result = _rank(left) - _rank(right) or compare(left, right, runtime.convfmt)
        return result or _compare_text(a[0], b[0])

    return order


def _compare_text(left: str, right: str) -> int:
    return -1 if left < right else 1 if left > right else 0


def _by_index(mode: str) -> Callable[[tuple[str, Value], tuple[str, Value]], int]:
    def order(a: tuple[str, Value], b: tuple[str, Value]) -> int:
        if mode == "num":
            x, y = num(a[0]), num(b[0])
            if x != y:
                return -1 if x < y else 1
        return _compare_text(a[0], b[0])

    return order


def ordered(runtime: Runtime, array: Array, how: str) -> list[tuple[str, Value]]:
    """The elements of an array in the order that a name like `@val_num_desc`, or a function, asks for."""
    items = list(array.items())
    if not how or how == "@unsorted":
        return items
    if how.startswith("@"):
        parts = how[1:].split("_")
        if len(parts) != 3 or parts[0] not in ("ind", "val"):
            raise AwkError(f"fatal: sort comparison function `{how}' is not defined")
        compare_items = _by_index(parts[1]) if parts[0] == "ind" else _by_value(runtime, parts[1])
        items.sort(key=functools.cmp_to_key(compare_items), reverse=parts[2] == "desc")
        return items
    function = runtime.namespace.get("f_" + how)
    if function is None:
        raise AwkError(f"fatal: sort comparison function `{how}' is not defined")

    def chosen(a: tuple[str, Value], b: tuple[str, Value]) -> int:
        return int(num(function(a[0], a[1], b[0], b[1])))

    items.sort(key=functools.cmp_to_key(chosen))
    return items


def keys(runtime: Runtime, array: Array) -> list[str]:
    """The indices that `for (k in array)` visits."""
    how = runtime.procinfo.get("sorted_in")
    if how:
        return [key for key, _ in ordered(runtime, array, str(how))]
    first = next(iter(array), "")
    if not _is_whole(first):
        return _as_hashed(list(array))  # what begins with a name holds numbers as names, too
    names = [key for key in array if not _is_whole(key)]
    return _as_hashed(names) + sorted((key for key in array if _is_whole(key)), key=int)


def _is_whole(key: str) -> bool:
    """Whether an index is a natural number in its usual form; gawk keeps those apart and in order, if one is first."""
    return key.isdecimal() and key.isascii() and (key[0] != "0" or key == "0") and len(key) < 16


_TABLE_SIZES = (13, 127, 1021, 8191, 131_071)
_HASHED_MAX = 20_000


def _as_hashed(names: list[str]) -> list[str]:
    """Names in the order in which gawk's hash table holds them, which scripts have come to expect."""
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
                # Chains are taken apart from their head and put together again at it.
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
    values = [FieldValue(key) if indices else value for key, value in items]
    target.clear()
    for index, value in enumerate(values, 1):
        target[str(index)] = value
    return float(len(values))
