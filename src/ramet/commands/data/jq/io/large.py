"""JSON texts of many megabytes: read and written a part at a time, so that nothing holds up the event loop for long.

A large text is first cut into the texts of its members, which costs little; these are then read in groups.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from ramet.commands.data.jq.io.reader import JsonReader, whole_lines
from ramet.commands.data.jq.values import Json, dumps, pretty, quoted
from ramet.concurrency.offload import offload
from ramet.core.limits import Budget

LARGE = 256 * 1024
"""Characters from which on a text is taken apart."""
_GROUP = 32 * 1024
LONG_TEXT = 1 << 20
"""Bytes from which on whatever is done with a text is done while others run."""
_PIECE = 64 * 1024
HEAVY = 2000
"""Parts of a value from which on it is written in pieces."""
Breathe = Callable[[], Awaitable[None]]


@functools.lru_cache(maxsize=1)
def _cutters() -> tuple[Any, Any, Any]:
    import msgspec

    make = msgspec.json.Decoder
    return make(msgspec.Raw).decode_lines, make(list[msgspec.Raw]).decode, make(dict[str, msgspec.Raw]).decode


def cut(data: bytes) -> list[Any] | None:
    """The texts of the values in a stream of them; None when they are not all whole and right."""
    try:
        texts: list[Any] = _cutters()[0](data)
    except (ValueError, RecursionError):
        return None
    return texts


async def read(text: Any, budget: Budget) -> Json:
    """The value of one text that `cut` gave. Raises ParseError."""
    data = bytes(text)
    long = len(data) > LONG_TEXT
    whole = partial(_read_some, [data])
    if len(data) < LARGE or data[:1] not in (b"[", b"{"):
        return (await offload(budget, whole) if long else whole())[0]
    _, members_of, fields_of = _cutters()
    try:
        if data[:1] == b"[":
            members = partial(members_of, data)
            return await _read_members(await offload(budget, members) if long else members(), budget)
        pairs = partial(fields_of, data)
        fields: dict[str, Any] = await offload(budget, pairs) if long else pairs()
    except (ValueError, RecursionError):  # what only the careful reader takes
        return (await offload(budget, whole))[0]
    values = await _read_members(list(fields.values()), budget)
    return dict(zip(fields, values, strict=True))


async def _read_members(texts: list[Any], budget: Budget) -> list[Json]:
    values: list[Json] = []
    group: list[Any] = []
    size = 0
    for text in texts:
        length = memoryview(text).nbytes
        if length < LARGE:
            group.append(text)
            size += length
        if group and (size > _GROUP or length >= LARGE):
            values += _read_some(group)
            group, size = [], 0
            await budget.yield_turn()
        if length >= LARGE:
            values.append(await read(text, budget))
    return values + _read_some(group) if group else values


def _read_some(texts: list[Any]) -> list[Json]:
    data = b"\n".join(texts)
    values = whole_lines(data)
    if values is None:
        reader = JsonReader()
        reader.feed(data, True)
        values = list(reader.take(True))
    return values


# ------------------------------------------------------------------------------------------------------- writing


def pieces(value: Json, indent: str | None, *, sort: bool, ascii_only: bool, margin: str = "\n") -> Iterator[str]:
    """The text of a value, of a large one in parts that take a moment each; without `indent` on one line."""
    if weight(value) < HEAVY:
        yield _text(value, indent, sort, ascii_only, margin)
        return
    if isinstance(value, str):
        yield '"'
        for at in range(0, len(value), _PIECE):
            yield quoted(value[at : at + _PIECE], ascii_only)[1:-1]
        yield '"'
        return
    inner = margin + indent if indent is not None else ""
    is_list = isinstance(value, list)
    yield "[" if is_list else "{"
    colon = ":" if indent is None else ": "
    lead, group, load = inner, list[str](), 0
    members: Iterable[tuple[Any, Json]] = (
        enumerate(value) if is_list else sorted(value.items(), key=itemgetter(0)) if sort else value.items()
    )
    for key, item in members:
        group.append(lead if is_list else f"{lead}{quoted(key, ascii_only)}{colon}")
        heavy = weight(item)
        if heavy < HEAVY:
            group.append(_text(item, indent, sort, ascii_only, inner))
        load += heavy
        if load >= HEAVY:
            yield "".join(group)
            group, load = [], 0
        if heavy >= HEAVY:
            yield from pieces(item, indent, sort=sort, ascii_only=ascii_only, margin=inner)
        lead = "," + inner
    group.append((margin if indent is not None else "") + ("]" if is_list else "}"))
    yield "".join(group)


def _text(value: Json, indent: str | None, sort: bool, ascii_only: bool, margin: str) -> str:
    if indent is None:
        return dumps(value, sort=sort, ascii_only=ascii_only)
    text = pretty(value, indent, sort=sort, ascii_only=ascii_only)
    return text.replace("\n", margin) if len(margin) > 1 else text


def weight(value: Json) -> int:
    """How many parts a value has, counted until they are many."""
    if not isinstance(value, (list, dict)):
        return HEAVY if isinstance(value, str) and len(value) > LONG_TEXT else 1
    todo: list[Any] = [value]
    count = 0
    while todo and count < HEAVY:
        part = todo.pop()
        if isinstance(part, str):
            return HEAVY
        count += len(part) + 1
        if count < HEAVY:
            members = part if isinstance(part, list) else part.values()
            todo += [
                item
                for item in members
                if item.__class__ in _NESTED or (item.__class__ is str and len(item) > LONG_TEXT)
            ]
    return count


_NESTED = (list, dict)


# ------------------------------------------------------------------------------------------------------ forgetting


async def let_go(inputs: list[Json], yield_turn: Breathe) -> None:
    """Forget inputs that nobody needs any more a part at a time: of very many members that takes a while."""
    todo = [inputs]
    for value in inputs if len(inputs) < _FEW else ():
        if isinstance(value, dict):
            members = list(value.values())
            value.clear()
            todo += [members, *(item for item in members[:_FEW] if isinstance(item, list))]
        elif isinstance(value, list):
            todo.append(value)
    while todo:
        part = todo.pop()
        while part:
            del part[-HEAVY:]
            await yield_turn()


_FEW = 100
