"""Decode and encode large JSON texts member by member.

- C code that decodes or encodes JSON holds the GIL: one call for a large text would hold the event loop for seconds.
  So a large text is first cut into the texts of its members, at about a millisecond per megabyte.
- Everything here runs in a thread (`concurrency.offload`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ramet.commands.data.jq.io.reader import whole_lines
from ramet.commands.data.jq.values import Json, dumps, pretty, quoted
from ramet.concurrency.offload import checkpoint
from ramet.concurrency.sizes import BATCH, SMALL

_TRUNCATED: Final = "Input data was truncated"
"""What msgspec says of a text that ends within a value."""


_ITEMS: Final = 64
"""Items of an array that are encoded by one call if they are small."""


class Odd(Exception):
    """The text needs the careful reader: it is not JSON, or spells numbers as only jq reads them."""


@functools.lru_cache(maxsize=1)
def _cutters() -> tuple[Any, Any, Any]:
    import msgspec

    make = msgspec.json.Decoder
    return make(msgspec.Raw).decode_lines, make(list[msgspec.Raw]).decode, make(dict[str, msgspec.Raw]).decode


def decode(data: bytes, last: bool) -> tuple[list[tuple[list[Json], int]], int]:
    """Return batches of values, each with its end in the text, and the end of the last whole value. Raises Odd."""
    texts = _cut(data)
    if texts is None and not last:
        # The last value goes on. Top-level values of several lines end with a bracket at the start of a line.
        end = max(data.rfind(b"\n}"), data.rfind(b"\n]")) + 2
        texts = _cut(data[:end]) if end > 1 else None
        if texts is None:
            return [], 0
    if texts is None:
        raise Odd
    batches: list[tuple[list[Json], int]] = []
    at = 0
    for group in _groups(texts):
        for text in group:
            at = data.index(text, at) + len(text)
        batches.append((_values(group), at))
    return batches, at


def _cut(data: bytes) -> list[bytes] | None:
    """Return the texts of the values in a stream of them; None where the last one is not whole. Raises Odd."""
    try:
        return [bytes(text) for text in _cutters()[0](data)]
    except (ValueError, RecursionError) as error:
        if str(error) == _TRUNCATED:
            return None
        raise Odd from None


def _groups(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield small texts in groups and large ones alone."""
    group: list[bytes] = []
    size = 0
    for text in texts:
        if group and size + len(text) > SMALL:
            checkpoint()
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def _values(group: list[bytes]) -> list[Json]:
    if len(group) == 1 and len(group[0]) > SMALL and group[0][:1] in b"[{":
        return [_large(group[0])]
    values = whole_lines(b"\n".join(group))
    if values is None:
        raise Odd
    return values


def _large(text: bytes) -> Json:
    _, items_of, fields_of = _cutters()
    try:
        members: Any = items_of(text) if text[:1] == b"[" else fields_of(text)
    except (ValueError, RecursionError):
        raise Odd from None
    texts = members if isinstance(members, list) else members.values()
    values = [value for group in _groups(map(bytes, texts)) for value in _values(group)]
    return values if isinstance(members, list) else dict(zip(members, values, strict=True))


# ------------------------------------------------------------------------------------------------------- encoding


def encode(value: Json, indent: str | None, *, sort: bool, ascii_only: bool) -> str:
    """Return the text of a value; without `indent` on one line."""
    return "".join(_pieces(value, indent, sort, ascii_only, "\n"))


def _pieces(value: Json, indent: str | None, sort: bool, ascii_only: bool, margin: str) -> Iterator[str]:
    if not isinstance(value, (list, dict)) or not _is_large(value):
        yield _text(value, indent, sort, ascii_only, margin)
        return
    checkpoint()
    inner = margin + indent if indent is not None else ""
    lead, end = inner, margin if indent is not None else ""
    if isinstance(value, list):
        yield "["
        for at in range(0, len(value), _ITEMS):
            items = value[at : at + _ITEMS]
            if not _is_large(items):
                text = _text(items, indent, sort, ascii_only, margin)
                yield f"{',' if at else ''}{text[1 : -len(end) - 1]}"
                continue
            for place, item in enumerate(items, at):
                yield f",{inner}" if place else inner
                yield from _pieces(item, indent, sort, ascii_only, inner)
        yield end + "]"
        return
    colon = ":" if indent is None else ": "
    yield "{"
    for key in sorted(value) if sort else value:
        yield f"{lead}{quoted(key, ascii_only)}{colon}"
        yield from _pieces(value[key], indent, sort, ascii_only, inner)
        lead = "," + inner
    yield end + "}"


def _text(value: Json, indent: str | None, sort: bool, ascii_only: bool, margin: str) -> str:
    if indent is None:
        return dumps(value, sort=sort, ascii_only=ascii_only)
    text = pretty(value, indent, sort=sort, ascii_only=ascii_only)
    return text.replace("\n", margin) if len(margin) > 1 else text


def _is_large(value: Json) -> bool:
    """Return whether a value has more than a batch of parts; counts no further."""
    todo: list[Any] = [value]
    count = 0
    while todo:
        part = todo.pop()
        count += len(part) + 1
        if count > BATCH:
            return True
        todo += [item for item in (part if isinstance(part, list) else part.values()) if isinstance(item, (list, dict))]
    return False
