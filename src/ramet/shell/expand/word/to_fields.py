"""Compile the parts of a word to functions that add their fields to a builder (`Fields`).

A part that cannot wait is a plain function, which returns an awaitable when its value turns out to be large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from ramet.concurrency.offload import offload
from ramet.concurrency.recursion import level, room
from ramet.concurrency.sizes import LARGE, MANY
from ramet.shell.expand.errors import TooLong
from ramet.shell.expand.size_check import joined
from ramet.shell.expand.values import is_slow
from ramet.shell.expand.word.fields import Fields
from ramet.shell.expand.word.param_defaults import chosen
from ramet.shell.expand.word.params import Found, Star, star_join
from ramet.shell.expand.word.tilde import ASSIGNMENT, TILDE_WORD
from ramet.shell.expand.word.to_text import (
    CHOOSING,
    Text,
    argument_text,
    choice_of,
    const,
    getter,
    number,
    part_text,
    with_tildes,
)
from ramet.shell.syntax.nodes import ArithSub, CommandSub, DoubleQuoted, Literal, Param, Part, ProcessSub

ACTIVE, QUOTED, SPLIT = range(3)
"""How unquoted literal text counts: as written in a word, as quoted text, as the result of an expansion."""


class Emit(NamedTuple):
    """A way to add the fields of a part to a builder; without `wait`, `run` returns None or an awaitable."""

    wait: bool
    run: Callable[[Any, Fields], Any]


def gives_several(part: Part) -> bool:
    """Return whether a quoted part may give more or fewer than one field."""
    pending: list[Part] = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, Param):
            if (
                one.name == "@"
                or one.subscript == "@"
                or one.form == "indirect"
                or (one.form == "names" and one.op == "@")
                or one.op == "@k"
            ):
                return True
            for arg in one.args:
                pending += arg.parts
        elif isinstance(one, DoubleQuoted):
            pending += one.parts
    return False


def _emit(part: Part, mode: int) -> Emit:
    if isinstance(part, Param) and not part.args and part.subscript is None:
        return _emit_param(part, mode)
    if isinstance(part, DoubleQuoted | Param) or (isinstance(part, ArithSub) and mode != QUOTED):
        with level as station:
            if isinstance(part, DoubleQuoted):
                emit = _emit_double(part)
            elif isinstance(part, ArithSub):
                emit = _emit_number(part)
            elif part.bad is None and part.op in CHOOSING:
                emit = _emit_choice(part, mode)
            else:
                emit = _emit_param(part, mode)
        return _stationed(emit) if station else emit
    piece = part_text(part, mode == QUOTED, None)
    if type(part) is Literal and mode == ACTIVE:
        fixed = part.text
        return Emit(False, lambda host, fields: fields.literal(fixed))
    if type(part) is Literal and mode == SPLIT:
        loose = part.text
        return Emit(False, lambda host, fields: split(host, fields, loose))
    if isinstance(part, CommandSub) and mode != QUOTED:
        return _emit_text(piece, Fields.split)
    if isinstance(part, ProcessSub):
        return _emit_text(piece, Fields.literal if part.body.statements else Fields.split)
    return _emit_text(piece, Fields.quoted)


def _stationed(emit: Emit) -> Emit:
    """Return the same in a separate task, or with a raised recursion limit."""
    run = emit.run
    if emit.wait:

        async def inside(host: Any, fields: Fields) -> None:
            await run(host, fields)

        async def in_task(host: Any, fields: Fields) -> None:
            await asyncio.create_task(inside(host, fields))

        return Emit(True, in_task)

    def called(host: Any, fields: Fields) -> Any:
        with room:
            return run(host, fields)

    return Emit(False, called)


def _emit_text(piece: Text, put: Callable[[Fields, str], None]) -> Emit:
    inner = piece.run
    if piece.const is not None:
        fixed = piece.const
        return Emit(False, lambda host, fields: put(fields, fixed))
    if not piece.wait:
        return Emit(False, lambda host, fields: put(fields, inner(host)))

    async def waiting(host: Any, fields: Fields) -> None:
        found = await inner(host)
        if put is Fields.split and len(found) > LARGE:
            await offload(host.budget, partial(fields.split, found))
        else:
            put(fields, found)

    return Emit(True, waiting)


def _emit_number(part: ArithSub) -> Emit:
    wait, value = number(part.body)
    if wait:

        async def waiting(host: Any, fields: Fields) -> None:
            fields.split(str(await value(host)))

        return Emit(True, waiting)

    async def later(host: Any, fields: Fields, resume: Callable[[], int]) -> None:
        fields.split(str(await offload(host.budget, resume)))

    def run(host: Any, fields: Fields) -> Awaitable[None] | None:
        try:
            fields.split(str(value(host)))
        except TooLong as error:
            if error.resume is None:
                raise
            return later(host, fields, error.resume)
        return None

    return Emit(False, run)


def split(host: Any, fields: Fields, text: str) -> Awaitable[None] | None:
    """Split a text into fields; a large one is offloaded."""
    if len(text) > LARGE:
        return offload(host.budget, partial(fields.split, text))
    fields.split(text)
    return None


def _emit_double(part: DoubleQuoted) -> Emit:
    if not any(gives_several(inner) for inner in part.parts):
        return _emit_text(part_text(part, False, None), Fields.quoted)
    listed = any(
        isinstance(inner, Param)
        and "@" in (inner.name, inner.subscript)
        and inner.form != "length"
        and inner.op not in ("+", ":+")
        for inner in part.parts
    )
    emits = [_emit_loose(inner) if listed and _changed(inner) else _emit(inner, QUOTED) for inner in part.parts]
    loose = listed and _changed(part.parts[0])
    if len(part.parts) > 1 and not loose and not all(gives_several(inner) for inner in part.parts):
        emits.insert(0, Emit(False, lambda host, fields: fields.quoted("")))
    return in_sequence(emits)


def _changed(part: Part) -> bool:
    """Return whether this is `${a[*]#x}` or the like: all values, with an operator that changes them."""
    return (
        isinstance(part, Param)
        and part.bad is None
        and "*" in (part.name, part.subscript)
        and part.form == "value"
        and bool(part.op)
        and part.op not in CHOOSING
    )


def _emit_loose(part: Part) -> Emit:
    """Compile changed values of a `*` form in the same quotes as an `@` form: bash makes separate fields of them,
    empty ones only where the separator is not white."""
    assert isinstance(part, Param)
    wait, get = getter(part, True)

    def put(host: Any, fields: Fields, found: Found) -> Awaitable[None] | None:
        if part.op == "@A" and isinstance(found, str):
            between = (host.variables.get("IFS") or " ")[0]
            found = Star(found.split(between) if part.name == "*" else found.split(between, 2))
        if type(found) is not Star or (part.op != "@A" and host.variables.get("IFS") == ""):
            return _put(host, fields, found, True)
        for place, value in enumerate(found):
            if place:
                fields.part()
            if value:
                fields.quoted(value)
        return None

    if not wait:
        return Emit(False, lambda host, fields: put(host, fields, get(host)))

    async def waiting(host: Any, fields: Fields) -> None:
        pending = put(host, fields, await get(host))
        if pending is not None:
            await pending

    return Emit(True, waiting)


def in_sequence(emits: list[Emit]) -> Emit:
    if len(emits) == 1:
        return emits[0]
    if any(emit.wait for emit in emits):

        async def waiting(host: Any, fields: Fields) -> None:
            for emit in emits:
                pending = emit.run(host, fields)
                if pending is not None:
                    await pending

        return Emit(True, waiting)
    runs = [emit.run for emit in emits]

    async def rest(host: Any, fields: Fields, place: int, pending: Awaitable[None] | None) -> None:
        while True:
            if pending is not None:
                await pending
            place += 1
            if place == len(runs):
                return
            pending = runs[place](host, fields)

    def run(host: Any, fields: Fields) -> Awaitable[None] | None:
        place = 0
        for one in runs:
            pending = one(host, fields)
            if pending is not None:
                return rest(host, fields, place, pending)
            place += 1  # noqa: SIM113 - enumerate costs a tuple per part
        return None

    return Emit(False, run)


def _put(host: Any, fields: Fields, found: Found, quoted: bool) -> Awaitable[None] | None:
    if isinstance(found, str):
        if not quoted:
            return split(host, fields, found)
        fields.quoted(found)
    elif found is None:
        if quoted:
            fields.quoted("")
    elif quoted:
        if type(found) is Star:
            fields.quoted(star_join(host, found))
        else:
            fields.several(found)
    elif type(found) is Star and not fields.ifs and host.join_star:
        fields.literal("".join(found))
    else:
        return split_several(host, fields, found)
    return None


def split_several(host: Any, fields: Fields, values: list[str]) -> Awaitable[None] | None:
    """Split several values into fields; many are offloaded."""
    if len(values) > MANY:
        return offload(host.budget, partial(fields.several_split, values))
    fields.several_split(values)
    return None


def _emit_param(node: Param, mode: int) -> Emit:
    quoted = mode == QUOTED
    wait, get = getter(node, quoted)
    one = not quoted and _one_without_ifs(node)
    if wait:

        async def waiting(host: Any, fields: Fields) -> None:
            found = await get(host)
            if one:
                found = _spaced(host, fields, found)
            within = mode == SPLIT
            pending = _put_within(host, fields, found, True) if within else _put(host, fields, found, quoted)
            if pending is not None:
                await pending

        return Emit(True, waiting)
    if node.op == ":" and node.subscript in ("@", "*") and mode != SPLIT:
        return Emit(False, partial(_put_slice, node.name, get, quoted))
    if mode == SPLIT:
        changed = bool(node.op)
        return Emit(False, lambda host, fields: _put_within(host, fields, get(host), changed))
    if one:
        return Emit(False, lambda host, fields: _put(host, fields, _spaced(host, fields, get(host)), False))
    return Emit(False, lambda host, fields: _put(host, fields, get(host), quoted))


def _one_without_ifs(node: Param) -> bool:
    """Return whether this is one word under an empty IFS: `${a[@]%x}`, `${a[*]#x}`, `${!a[*]}`."""
    if node.subscript not in ("@", "*") or node.bad is not None:
        return False
    return node.op[:1] in ("#", "%") if node.form == "value" else node.form == "keys" and node.subscript == "*"


def _spaced(host: Any, fields: Fields, found: Found) -> Found:
    return joined(host, " ", found) if not fields.ifs and isinstance(found, list) and found else found


def _put_within(host: Any, fields: Fields, found: Found, changed: bool) -> Awaitable[None] | None:
    """Add values in the word of an operator: where IFS has no space they become one text, joined by spaces."""
    if not isinstance(found, list) or type(found) is Star or not fields.ifs or " " in fields.ifs:
        return _put(host, fields, found, False)
    if changed:
        spaces = str.maketrans(dict.fromkeys(fields.ifs, " "))
        found = [value.translate(spaces) for value in found if value]
    fields.literal(" ".join(found))
    return None


def unordered(host: Any, name: str) -> bool:
    """Return whether an array has many elements that must be put in order first."""
    return is_slow(host.variables.values.get(host.variables.follow(name)[0]))


def _put_slice(
    name: str, get: Callable[[Any], Found], quoted: bool, host: Any, fields: Fields
) -> Awaitable[None] | None:
    """Add the elements of `${a[@]:n}`; from an unordered array they are read in a thread."""
    if unordered(host, name):
        return _put_offloaded(host, fields, partial(get, host), quoted)
    return _put(host, fields, get(host), quoted)


async def _put_offloaded(host: Any, fields: Fields, get: Callable[[], Found], quoted: bool) -> None:
    pending = _put(host, fields, await offload(host.budget, get), quoted)
    if pending is not None:
        await pending


def _emit_choice(node: Param, mode: int) -> Emit:
    quoted = mode == QUOTED
    choice = choice_of(node, quoted)
    if node.op[-1] in "=?":
        argument = argument_text(choice, quoted, None)
        key = choice.key
        word = Emit(argument.wait, lambda host, fields: None)
    else:
        key, argument = None, const("")
        word = in_sequence(
            ([_emit(inner, QUOTED) for inner in choice.word.parts] if quoted else _emit_operand(choice.word.parts))
            or [Emit(False, (lambda host, fields: fields.quoted("")) if quoted else (lambda host, fields: None))]
        )
    get = choice.get

    def kept(host: Any, fields: Fields, found: Found) -> Awaitable[None] | None:
        """Add the value, or nothing, where the word is not taken."""
        if node.op[-1] != "+":
            return _put_within(host, fields, found, False) if mode == SPLIT else _put(host, fields, found, quoted)
        if quoted and not isinstance(found, list):
            fields.quoted("")
        return None

    if choice.wait or word.wait or argument.wait or (key is not None and key.wait):

        async def waiting(host: Any, fields: Fields) -> None:
            found = await get(host) if choice.wait else get(host)
            if not choice.takes_word(found):
                pending = kept(host, fields, found)
            elif node.op[-1] in "=?":
                value = await argument.run(host) if argument.wait else argument.run(host)
                subscript = None if key is None else await key.run(host) if key.wait else key.run(host)
                pending = _put(host, fields, chosen(choice, host, value, subscript), quoted)
            else:
                if quoted:
                    # There is a field, even if the word is a `$@` of no parameters.
                    fields.quoted("")
                pending = word.run(host, fields)
            if pending is not None:
                await pending

        return Emit(True, waiting)

    def run(host: Any, fields: Fields) -> Any:
        found = get(host)
        if not choice.takes_word(found):
            return kept(host, fields, found)
        if node.op[-1] in "=?":
            subscript = None if key is None else key.run(host)
            return _put(host, fields, chosen(choice, host, argument.run(host), subscript), quoted)
        if quoted:
            fields.quoted("")
        return word.run(host, fields)

    return Emit(False, run)


def _emit_operand(parts: tuple[Part, ...]) -> list[Emit]:
    """Compile the word of an operator: a home directory from a tilde at its start is not split."""
    tilde = TILDE_WORD.match(parts[0].text) if parts and type(parts[0]) is Literal else None
    if tilde is None or (tilde.end() == len(tilde.string) and len(parts) > 1) or any(map(str.isspace, tilde[1])):
        return [_emit(part, SPLIT) for part in parts]
    rest = tilde.string[tilde.end() :]
    others = (*((Literal(rest),) if rest else ()), *parts[1:])
    (home,) = with_tildes((Literal(tilde[0]),), False, None, False)
    return [_emit_text(home, _put_home), *[_emit(part, SPLIT) for part in others]]


def emit_word(parts: tuple[Part, ...]) -> list[Emit]:
    first = parts[0]
    if type(first) is Literal and "~" in first.text:
        assigned = ASSIGNMENT.match(first.text)
        if first.text[0] == "~":
            return _emit_tildes(parts, False)
        if assigned is not None:
            head = Literal(assigned[0])
            rest = first.text[assigned.end() :]
            return [_emit(head, ACTIVE), *_emit_tildes((*((Literal(rest),) if rest else ()), *parts[1:]), True)]
    return [_emit(part, ACTIVE) for part in parts]


def _emit_tildes(parts: tuple[Part, ...], assign: bool) -> list[Emit]:
    out: list[Emit] = []
    for place, part in enumerate(parts):
        if type(part) is not Literal:
            out.append(_emit(part, ACTIVE))
            continue
        cut = (part,) if place else parts[: place + 1]
        last = place == len(parts) - 1
        # A sentinel keeps `~user` from reaching over the end of the literal when more parts follow.
        pieces = with_tildes(cut if last else (*cut, Literal("")), assign, None, assign)
        if place and not assign:
            pieces = [const(part.text)]
        out += [_emit_text(piece, Fields.literal if piece.const is not None else _put_home) for piece in pieces]
    return out


def _put_home(fields: Fields, text: str) -> None:
    """Add a home directory as quoted text; a tilde that was not expanded may be part of a pattern."""
    if text.startswith("~"):
        fields.literal(text)
    else:
        fields.quoted(text)
