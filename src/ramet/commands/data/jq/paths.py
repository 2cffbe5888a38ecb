"""Read, set and delete values at paths (getpath, setpath, delpaths), copying only along the path."""

from __future__ import annotations

import math
from typing import Any

from ramet.commands.data.jq.values import JqError, Json, bounded, dumps, equal, fail, is_number, kind, to_double

MAX_INDEX = 536_870_911


def slice_bounds(value: Json, start: Json, stop: Json) -> tuple[int, int]:
    for bound in (start, stop):
        if bound is not None and not is_number(bound):
            raise _no_bounds(value)
    size = len(value) if value is not None else 0
    low = 0 if start is None else to_double(start)
    high = size if stop is None else to_double(stop)
    if low != low:
        low = 0
    if high != high:
        high = size
    if low < 0:
        low += size
    if high < 0:
        high += size
    first, last = math.floor(min(max(low, 0), size)), math.ceil(min(max(high, 0), size))
    return first, max(first, last)


def _no_bounds(value: Json) -> JqError:
    return fail(f"Start and end indices of an {'string' if type(value) is str else 'array'} slice must be numbers")


def _named_bounds(value: Json, key: dict[str, Json]) -> tuple[int, int]:
    """Return the bounds of `.[{"start": ..., "end": ...}]`, neither of which may be left out."""
    if "start" not in key or "end" not in key:
        raise _no_bounds(value)
    return slice_bounds(value, key["start"], key["end"])


def _as_int(key: float) -> int:
    """Return a number as an index: no larger than an int of C is, infinite as it may be."""
    return math.trunc(min(max(key, -1 << 31), (1 << 31) - 1))


def index(value: Json, key: Json) -> Json:
    """`.[key]`."""
    known = type(value)
    if known is dict and type(key) is str:
        return value.get(key)
    if known is list and is_number(key):
        if key != key:
            return None
        at = _as_int(key)
        if at < 0:
            at += len(value)
        return value[at] if 0 <= at < len(value) else None
    if isinstance(key, dict) and (known is list or value is None or known is str):
        if value is None:
            return None
        low, high = _named_bounds(value, key)
        return value[low:high]
    if value is None and (type(key) is str or is_number(key)):
        return None
    if known is list and isinstance(key, list):
        return indices(value, key)
    if isinstance(key, str) and known is not dict:
        raise fail(f'Cannot index {kind(value)} with string "{key}"')
    raise fail(f"Cannot index {kind(value)} with {kind(key)}")


def indices(value: Json, wanted: Json) -> list[Json] | None:
    if isinstance(value, list) and isinstance(wanted, list):
        if not wanted:
            return []
        size = len(wanted)
        found = range(len(value) - size + 1)
        return [at for at in found if all(equal(value[at + i], wanted[i]) for i in range(size))]
    if isinstance(value, str) and isinstance(wanted, str):
        if not wanted:
            return []
        return _byte_offsets(value.encode("utf-8", "surrogatepass"), wanted.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return [at for at, item in enumerate(value) if equal(item, wanted)]
    return index(value, wanted)  # type: ignore[no-any-return]


def _byte_offsets(text: bytes, wanted: bytes) -> list[Json]:
    """Return where a text has another, overlaps and all: as jq 1.7 counts, in bytes."""
    result: list[Json] = []
    at = text.find(wanted)
    while at >= 0:
        result.append(at)
        at = text.find(wanted, at + 1)
    return result


def set_index(value: Json, key: Json, new: Json) -> Json:
    """Return a copy of the value with another element at the key."""
    if isinstance(key, str) and (value is None or isinstance(value, dict)):
        return {**(value or {}), key: new}
    if is_number(key) and (value is None or isinstance(value, list)):
        result = list(value or ())
        if key != key:
            raise fail("Cannot set array element at NaN index")
        at = _as_int(key)
        if at < 0:
            at += len(result)
            if at < 0:
                raise fail("Out of bounds negative array index")
        if at > MAX_INDEX:
            raise fail("Array index too large")
        if at >= len(result):
            bounded(8 * at)
            result.extend([None] * (at + 1 - len(result)))
        result[at] = new
        return result
    if isinstance(key, dict) and (value is None or isinstance(value, list)):
        result = list(value or ())
        low, high = _named_bounds(result, key)
        if not isinstance(new, list):
            raise fail("A slice of an array can only be assigned another array")
        return result[:low] + new + result[high:]
    if isinstance(key, dict) and not isinstance(value, list):
        if isinstance(value, str):
            raise fail("Cannot update string slices")
        raise fail(f"Cannot update field at object index of {kind(value)}")
    if isinstance(key, str):
        raise fail(f'Cannot index {kind(value)} with string "{key}"')
    if isinstance(key, list) and isinstance(value, list):
        raise fail("Cannot update field at array index of array")
    raise fail(f"Cannot index {kind(value)} with {kind(key)}")


def get_path(value: Json, path: list[Json] | tuple[Json, ...]) -> Json:
    for key in path:
        if value is None:
            return None
        value = index(value, key)
    return value


def set_path(value: Json, path: Any, new: Json) -> Json:
    if not path:
        return new
    key, rest = path[0], path[1:]
    below = None if value is None else index(value, key)
    return set_index(value, key, set_path(below, rest, new))


def delete_paths(value: Json, paths: list[Json]) -> Json:
    """Without what is at the paths, all of which are meant as the value was before anything went."""
    if any(not path for path in paths):
        return None
    if value is None or not paths:
        return value
    here = [path[0] for path in paths if len(path) == 1]
    below: dict[Any, tuple[Json, list[Json]]] = {}
    for path in paths:
        if len(path) > 1:
            key = path[0]
            name = repr(_position(value, key)) if is_number(key) and isinstance(value, list) else repr(key)
            below.setdefault(name, (key, []))[1].append(path[1:])
    for key, deeper in below.values():
        element = index(value, key)
        if element is not None:
            value = set_index(value, key, delete_paths(element, deeper))
    if not here:
        return value
    if isinstance(value, dict):
        for key in here:
            if not isinstance(key, str):
                raise fail(f"Cannot delete {kind(key)} field of object")
        return {name: item for name, item in value.items() if name not in here}
    if isinstance(value, list):
        gone: set[int] = set()
        for key in here:
            if is_number(key):
                gone.add(_position(value, key))
            elif isinstance(key, dict):
                gone.update(range(*_named_bounds(value, key)))
            else:
                raise fail(f"Cannot delete {kind(key)} element of array")
        return [item for at, item in enumerate(value) if at not in gone]
    raise fail(f"Cannot delete fields from {kind(value)}")


def _position(value: list[Json], key: Json) -> int:
    at = 1 << 31 if key != key else _as_int(key)
    return at + len(value) if at < 0 else at


def checked(at: Any, value: Json) -> tuple[Json, ...]:
    if at is None:
        raise fail(f"Invalid path expression with result {short(value)}")
    return at  # type: ignore[no-any-return]


def short(value: Json, most: int = 29) -> str:
    """Return the text of a value as far as messages show it."""
    text = dumps(value)
    return text if len(text) <= most else text[: most - 3] + "..."
