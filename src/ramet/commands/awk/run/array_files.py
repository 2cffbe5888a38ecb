"""Arrays as files: the format of gawk's `rwarray`, in which each element is a name, a type and a value."""

from __future__ import annotations

import struct
from collections.abc import Callable

from ramet.commands.awk.run.values import Array, Field, TypedRegex, Value

_MAGIC = b"awkrulz\n" + struct.pack(">II", 4, 1)
_STRING, _NUMBER, _ARRAY, _REGEX, _STRNUM, _UNSET = 1, 2, 5, 6, 7, 20
_DEEPEST = 100


class NotAnArray(Exception):
    """The file holds something else, or ends too early."""


def packed(array: Array, looks_numeric: Callable[[str], float | None]) -> bytes:
    out: list[bytes] = [_MAGIC]

    def text(kind: int, data: bytes) -> None:
        out.append(struct.pack(">II", kind, len(data)) + data)

    def put(elements: Array) -> None:
        out.append(struct.pack(">I", len(elements)))
        for key, value in elements.items():
            name = key.encode("utf-8", "surrogateescape")
            out.append(struct.pack(">I", len(name)) + name)
            if isinstance(value, Array):
                out.append(struct.pack(">I", _ARRAY))
                put(value)
            elif value is None:
                text(_UNSET, b"")
            elif isinstance(value, str):
                strnum = isinstance(value, Field) and looks_numeric(value) is not None
                kind = _REGEX if isinstance(value, TypedRegex) else _STRNUM if strnum else _STRING
                text(kind, value.encode("utf-8", "surrogateescape"))
            else:
                text(_NUMBER, f"{value:.17g}".encode() + b"\0")

    put(array)
    return b"".join(out)


def unpacked(data: bytes) -> Array:
    if not data.startswith(_MAGIC):
        raise NotAnArray
    at = len(_MAGIC)

    def number() -> int:
        nonlocal at
        if at + 4 > len(data):
            raise NotAnArray
        at += 4
        return int.from_bytes(data[at - 4 : at], "big")

    def text() -> str:
        nonlocal at
        size = number()
        if at + size > len(data):
            raise NotAnArray
        at += size
        return data[at - size : at].decode("utf-8", "surrogateescape")

    def value(depth: int) -> Value:
        kind = number()
        if kind == _ARRAY:
            return elements(depth + 1)
        found = text()
        if kind == _NUMBER:
            try:
                return float(found.rstrip("\0"))
            except ValueError:
                raise NotAnArray from None
        makers: dict[int, Callable[[str], Value]] = {
            _STRING: str,
            _STRNUM: Field,
            _REGEX: TypedRegex,
            _UNSET: lambda _: None,
        }
        if kind not in makers:
            raise NotAnArray
        return makers[kind](found)

    def elements(depth: int) -> Array:
        if depth > _DEEPEST:
            raise NotAnArray
        made = Array()
        for _ in range(number()):
            name = text()
            made[name] = value(depth)
        return made

    return elements(0)
