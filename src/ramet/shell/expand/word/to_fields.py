"""The parts of a word compiled to closures that put their fields into a builder.

Rule: a part that cannot wait is a plain function; what may turn out to take long gives an awaitable to a patient
builder only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from ramet.concurrency.offload import offload
from ramet.concurrency.recursion import room
from ramet.concurrency.sizes import LARGE, SMALL
from ramet.shell.expand.compile_depth import level
from ramet.shell.expand.long_text import Parts, put_together
from ramet.shell.expand.size_check import joined
from ramet.shell.expand.values import is_heavy, is_slow
from ramet.shell.expand.word.fields import Fields
from ramet.shell.expand.word.param_defaults import chosen
from ramet.shell.expand.word.params import Found, Star, joined_patiently, star_join
from ramet.shell.expand.word.tilde import ASSIGNMENT, TILDE_WORD
from ramet.shell.expand.word.to_text import (
    CHOOSING,
    Text,
    argument_text,
    choice_of,
    const,
    getter,
    part_text,
    sliced,
    with_tildes,
)
from ramet.shell.syntax.nodes import ArithSub, CommandSub, DoubleQuoted, Literal, Param, Part, ProcessSub

ACTIVE, QUOTED, SPLIT = range(3)
"""How unquoted literal text counts: as written in a word, as quoted text, as the result of an expansion."""


class Emit(NamedTuple):
    """A way to put the fields of a part into a builder. Even one that need not wait gives an awaitable when it turns
    out to take long and the builder is patient."""

    wait: bool
    run: Callable[[Any, Fields], Any]


def gives_several(part: Part) -> bool:
    """Whether a quoted part may give more or fewer than one field."""
    looked_at: list[Part] = [part]
    while looked_at:
        one = looked_at.pop()
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
                looked_at += arg.parts
        elif isinstance(one, DoubleQuoted):
            looked_at += one.parts
    return False


def _emit(part: Part, mode: int) -> Emit:
    if isinstance(part, Param) and not part.args and part.subscript is None:
        return _emit_param(part, mode)
    if isinstance(part, DoubleQuoted | Param):
        with level as station:
            if isinstance(part, DoubleQuoted):
                emit = _emit_double(part)
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
        if len(loose) <= LARGE:
            return Emit(False, lambda host, fields: fields.split(loose))

        async def patiently(host: Any, fields: Fields) -> None:
            await offload(host.budget, partial(fields.split, loose))

        return Emit(True, patiently)
    if isinstance(part, CommandSub | ArithSub) and mode != QUOTED:
        return _emit_text(piece, Fields.split) if piece.wait or piece.const is not None else _emit_number(piece)
    if isinstance(part, ProcessSub):
        return _emit_text(piece, Fields.literal if part.body.statements else Fields.split)
    return _emit_text(piece, Fields.quoted)


def _stationed(emit: Emit) -> Emit:
    """The same on a stack of its own, or with room, as `nesting` has it."""
    run = emit.run
    if emit.wait:

        async def inside(host: Any, fields: Fields) -> None:
            await run(host, fields)

        async def apart(host: Any, fields: Fields) -> None:
            await asyncio.create_task(inside(host, fields))

        return Emit(True, apart)

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
            await split_aside(host, fields, found)
        else:
            put(fields, found)

    return Emit(True, waiting)


def _emit_number(piece: Text) -> Emit:
    number, parts = piece.run, piece.parts
    assert parts is not None

    async def later(host: Any, fields: Fields, found: Parts) -> None:
        fields.split(await put_together(host, found))

    def run(host: Any, fields: Fields) -> Awaitable[None] | None:
        found = parts(host) if fields.patient else number(host)
        if isinstance(found, Parts):
            return later(host, fields, found)
        fields.split(found)
        return None

    return Emit(False, run)


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
    """`${a[*]#x}` and the like: all values, with an operator that changes them."""
    return (
        isinstance(part, Param)
        and part.bad is None
        and "*" in (part.name, part.subscript)
        and part.form == "value"
        and bool(part.op)
        and part.op not in CHOOSING
    )


def _emit_loose(part: Part) -> Emit:
    """Changed values of a `*` form beside an `@` form in the same quotes: bash takes them for fields of their
    own, as it splits a text: empty ones only where what separates is not white."""
    assert isinstance(part, Param)
    wait, get = getter(part, True)

    def put(host: Any, fields: Fields, found: Found) -> Awaitable[None] | None:
        if part.op == "@A" and isinstance(found, str):
            between = (host.variables.get("IFS") or " ")[0]
            found = Star(found.split(between) if part.name == "*" else found.split(between, 2))
        if type(found) is not Star or (part.op != "@A" and host.variables.get("IFS") == ""):
            return _put(host, fields, found, True)
        for number, value in enumerate(found):
            if number:
                fields.part()
            if value:
                fields.quoted(value)
        return None

    if not wait:
        return Emit(False, lambda host, fields: put(host, fields, get(host)))

    async def waiting(host: Any, fields: Fields) -> None:
        fields.patient = True
        pending = put(host, fields, await get(host))
        if pending is not None:
            await pending

    return Emit(True, waiting)


def in_sequence(emits: list[Emit]) -> Emit:
    if len(emits) == 1:
        return emits[0]
    if any(emit.wait for emit in emits):

        async def waiting(host: Any, fields: Fields) -> None:
            fields.patient = True
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
        if quoted:
            fields.quoted(found)
        elif fields.patient and len(found) > LARGE:
            return split_aside(host, fields, found)
        else:
            fields.split(found)
    elif found is None:
        if quoted:
            fields.quoted("")
    elif fields.patient and len(found) > SMALL:
        return put_many(host, fields, found, quoted)
    elif fields.patient and is_heavy(found):
        return offload(host.budget, lambda: _put_now(host, fields, found, quoted))
    else:
        _put_now(host, fields, found, quoted)
    return None


def _put_now(host: Any, fields: Fields, found: list[str], quoted: bool) -> None:
    if not quoted:
        if type(found) is Star and not fields.ifs and host.join_star:
            fields.literal("".join(found))
        else:
            fields.several_split(found)
    elif type(found) is Star:
        fields.quoted(star_join(host, found))
    else:
        fields.several(found)


async def put_many(host: Any, fields: Fields, found: list[str], quoted: bool) -> None:
    """The same with so many values that others get their turns meanwhile."""
    await host.budget.yield_turn()
    if not quoted:
        await offload(host.budget, lambda: fields.several_split(found))
    elif type(found) is Star:
        fields.quoted(await joined_patiently(host, found, star_join))
    else:
        last = len(found) - 1
        fields.quoted(found[0])
        fields.end()
        for start in range(1, last, SMALL):
            fields.done += found[start : min(start + SMALL, last)]
            await host.budget.yield_turn()
        fields.quoted(found[last])


async def split_aside(host: Any, fields: Fields, text: str) -> None:
    try:
        await offload(host.budget, lambda: fields.split(text))
    except BaseException:
        raise


def _emit_param(node: Param, mode: int) -> Emit:
    quoted = mode == QUOTED
    wait, get = getter(node, quoted)
    one = not quoted and _one_without_ifs(node)
    if wait:

        async def waiting(host: Any, fields: Fields) -> None:
            fields.patient = True
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
    parts = sliced(node, quoted, get)
    if parts is None:
        return Emit(False, lambda host, fields: _put(host, fields, get(host), quoted))

    def put(host: Any, fields: Fields) -> Awaitable[None] | None:
        found = parts(host) if fields.patient else get(host)
        if isinstance(found, Parts):
            return _put_parts(host, fields, found, quoted)
        return _put(host, fields, found, quoted)

    return Emit(False, put)


async def _put_parts(host: Any, fields: Fields, found: Parts, quoted: bool) -> None:
    pending = _put(host, fields, await put_together(host, found), quoted)
    if pending is not None:
        await pending


def _one_without_ifs(node: Param) -> bool:
    """`${a[@]%x}`, `${a[*]#x}` and `${!a[*]}`: where IFS is empty, what is changed of an array is one word."""
    if node.subscript not in ("@", "*") or node.bad is not None:
        return False
    return node.op[:1] in ("#", "%") if node.form == "value" else node.form == "keys" and node.subscript == "*"


def _spaced(host: Any, fields: Fields, found: Found) -> Found:
    return joined(host, " ", found) if not fields.ifs and isinstance(found, list) and found else found


def _put_within(host: Any, fields: Fields, found: Found, changed: bool) -> Awaitable[None] | None:
    """Values in the word of an operator: where IFS has no space they become one text, with spaces between them."""
    if not isinstance(found, list) or type(found) is Star or not fields.ifs or " " in fields.ifs:
        return _put(host, fields, found, False)
    if changed:
        spaces = str.maketrans(dict.fromkeys(fields.ifs, " "))
        found = [value.translate(spaces) for value in found if value]
    fields.literal(" ".join(found))
    return None


def unordered(host: Any, name: str) -> bool:
    """Whether the elements of an array must first be put into their order, which takes its time."""
    return is_slow(host.variables.values.get(host.variables.follow(name)[0]))


def _put_slice(
    name: str, get: Callable[[Any], Found], quoted: bool, host: Any, fields: Fields
) -> Awaitable[None] | None:
    """`${a[@]:n}`: of an array that must first be put in order the slice is taken aside."""
    if fields.patient and unordered(host, name):
        return _put_aside(host, fields, partial(get, host), quoted)
    return _put(host, fields, get(host), quoted)


async def _put_aside(host: Any, fields: Fields, get: Callable[[], Found], quoted: bool) -> None:
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
        """The value is not absent: it is taken, or nothing is."""
        if node.op[-1] != "+":
            return _put_within(host, fields, found, False) if mode == SPLIT else _put(host, fields, found, quoted)
        if quoted and not isinstance(found, list):
            fields.quoted("")
        return None

    if choice.wait or word.wait or argument.wait or (key is not None and key.wait):

        async def waiting(host: Any, fields: Fields) -> None:
            fields.patient = True
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

    async def chosen_patiently(host: Any, fields: Fields, value: Parts, subscript: str | None) -> None:
        pending = _put(host, fields, chosen(choice, host, await put_together(host, value), subscript), quoted)
        if pending is not None:
            await pending

    def run(host: Any, fields: Fields) -> Any:
        found = get(host)
        if not choice.takes_word(found):
            return kept(host, fields, found)
        if node.op[-1] in "=?":
            subscript = None if key is None else key.run(host)
            word_of = argument.parts
            value = argument.run(host) if word_of is None or not fields.patient else word_of(host)
            if isinstance(value, Parts):
                return chosen_patiently(host, fields, value, subscript)
            return _put(host, fields, chosen(choice, host, value, subscript), quoted)
        if quoted:
            fields.quoted("")
        return word.run(host, fields)

    return Emit(False, run)


def _emit_operand(parts: tuple[Part, ...]) -> list[Emit]:
    """The word of an operator: what a tilde at its start stands for is not split."""
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
    for number, part in enumerate(parts):
        if type(part) is not Literal:
            out.append(_emit(part, ACTIVE))
            continue
        cut = (part,) if number else parts[: number + 1]
        last = number == len(parts) - 1
        # A sentinel keeps `~user` from reaching over the end of the literal when more parts follow.
        pieces = with_tildes(cut if last else (*cut, Literal("")), assign, None, assign)
        if number and not assign:
            pieces = [const(part.text)]
        out += [_emit_text(piece, Fields.literal if piece.const is not None else _put_home) for piece in pieces]
    return out


def _put_home(fields: Fields, text: str) -> None:
    """What a tilde stands for is quoted; one that stands for nothing is text like any other, maybe of a pattern."""
    if text.startswith("~"):
        fields.literal(text)
    else:
        fields.quoted(text)
