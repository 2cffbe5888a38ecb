"""Compile the words of a command to one function that gives their fields.

Fields may hold unresolved `GlobWord`s, with `host.has_globs` set: the caller looks into the tree, which may suspend.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH, LONG_SCRIPT
from ramet.shell.expand.errors import LineError
from ramet.shell.expand.values import key_names
from ramet.shell.expand.word.braces import count_words, expand_braces, has_braces, text_blocks
from ramet.shell.expand.word.fields import PLAIN, Fields, fields_for, may_be_pattern
from ramet.shell.expand.word.param_lookup import is_plain, variable
from ramet.shell.expand.word.tilde import untilded
from ramet.shell.expand.word.to_fields import emit_word, gives_several, in_sequence, split, split_several, unordered
from ramet.shell.expand.word.to_text import concat, part_text
from ramet.shell.syntax.nodes import AnsiQuoted, DoubleQuoted, Escaped, Literal, Param, Part, SingleQuoted, Word

Plan = Callable[[Any, list[str]], Any]


class Words(NamedTuple):
    """Several words as fields: `run(host)` gives a new list each time, or an awaitable, always with `wait`."""

    wait: bool
    run: Callable[[Any], Any]


def one_field(parts: tuple[Part, ...]) -> bool:
    """Return whether a word always gives exactly one field that needs no globbing."""
    bare: list[str] = []
    for part in parts:
        if type(part) is Literal:
            if "~" in part.text and (part.text[0] == "~" or "=~" in part.text or ":~" in part.text):
                return False
            bare.append(part.text)
        elif isinstance(part, Escaped | SingleQuoted | AnsiQuoted) or (
            isinstance(part, DoubleQuoted) and not any(gives_several(inner) for inner in part.parts)
        ):
            bare.append("x")
        else:
            return False
    return not may_be_pattern(bare[0] if len(bare) == 1 else "".join(bare))


def _single_variable(parts: tuple[Part, ...]) -> str | None:
    """Return the name when the word is just `$name`."""
    if len(parts) == 1:
        part = parts[0]
        if (
            isinstance(part, Param)
            and part.bad is None
            and not part.op
            and part.subscript is None
            and part.form == "value"
            and is_plain(part.name)
        ):
            return part.name
    return None


def _plan(word: Word) -> tuple[bool, str | None, Callable[[Any], Any] | None, Plan | None]:
    """Compile one word: (wait, constant, function to its one field, function that appends its fields)."""
    parts = word.parts
    if len(parts) == 1 and type(first := parts[0]) is Literal and first.text[0] != "~" and one_field(parts):
        return False, first.text, None, None
    if one_field(parts):
        piece = concat([part_text(part, False, None) for part in parts])
        return piece.wait, piece.const, piece.run, None
    name = _single_variable(parts)
    if name is not None:
        return False, None, None, _variable_fields(name)
    if len(parts) == 1:
        listed = _listed(parts[0])
        if listed is not None:
            return False, None, None, listed
    emit = in_sequence(emit_word(parts))
    whole = _stays_whole(parts)
    if emit.wait:

        async def waiting(host: Any, out: list[str]) -> None:
            fields = fields_for(host, out)
            if whole:
                fields.ifs = ""
            await _finish_later(host, fields, emit.run(host, fields))

        return True, None, None, waiting
    inner = emit.run

    def run(host: Any, out: list[str]) -> Awaitable[None] | None:
        fields = fields_for(host, out)
        if whole:
            fields.ifs = ""
        pending = inner(host, fields)
        if pending is not None:
            return _finish_later(host, fields, pending)
        _finish(host, fields)
        return None

    return False, None, None, run


def _stays_whole(parts: tuple[Part, ...]) -> bool:
    """Return whether a plain dollar comes after all expansions: bash splits no such word, unless it holds a list."""
    if not any(map(_loose_dollar, parts)) or _has_list(parts):
        return False
    for part in reversed(parts):
        if _loose_dollar(part):
            return True
        if not isinstance(part, Literal | Escaped | SingleQuoted | AnsiQuoted | DoubleQuoted):
            return False
    return False


def _listed(part: Part) -> Plan | None:
    """Compile `"$@"`, `"${a[@]}"`, `"${!a[@]}"` or the same without quotes; None for any other word."""
    quoted = isinstance(part, DoubleQuoted)
    inner = part.parts[0] if isinstance(part, DoubleQuoted) and len(part.parts) == 1 else part
    if (
        not isinstance(inner, Param)
        or inner.bad is not None
        or inner.op
        or inner.form not in ("value", "keys")
        or not (inner.subscript == "@" or (inner.name == "@" and inner.subscript is None and inner.form == "value"))
    ):
        return None
    name, keys = inner.name, inner.form == "keys"
    positional = name == "@"

    def run(host: Any, out: list[str]) -> Awaitable[None] | None:
        if not positional and unordered(host, name):
            return later(host, out)
        if positional:
            found = host.params
        else:
            found = host.variables.keys(name) if keys else host.variables.elements(name)
        return _put_values(host, found, quoted, out)

    async def later(host: Any, out: list[str]) -> None:
        array = host.variables.values[host.variables.follow(name)[0]]
        found = await offload(host.budget, partial(key_names, array) if keys else array.values)
        pending = _put_values(host, found, quoted, out)
        if pending is not None:
            await pending

    return run


def _put_values(host: Any, values: list[str], quoted: bool, out: list[str]) -> Awaitable[None] | None:
    if quoted:
        out += values
        return None
    fields = fields_for(host, out)
    pending = split_several(host, fields, values)
    if pending is not None:
        return _finish_later(host, fields, pending)
    _finish(host, fields)
    return None


def _finish(host: Any, fields: Fields) -> None:
    fields.end()
    if not fields.globs:
        return
    if host.noglob:
        fields.done[:] = map(str, fields.done)  # patterns are plain words then
    else:
        host.has_globs = True


async def _finish_later(host: Any, fields: Fields, pending: Awaitable[None]) -> None:
    await pending
    _finish(host, fields)


def _variable_fields(name: str) -> Plan:
    get = variable(name)

    def run(host: Any, out: list[str]) -> Awaitable[None] | None:
        found = get(host)
        if not found:
            return None
        if len(found) <= LONG_SCRIPT and PLAIN(found) is None and host.vars.get("IFS", " \t\n") == " \t\n":
            out.append(found)
            return None
        fields = fields_for(host, out)
        pending = split(host, fields, found)
        if pending is not None:
            return _finish_later(host, fields, pending)
        _finish(host, fields)
        return None

    return run


_SMALL: Final = 512
"""Words of a brace expansion that is compiled like written words; a bigger one is made when it runs."""


_MEANS_ITSELF: Final = re.compile(r"[A-Za-z0-9_./,:%=-]{1,4096}", re.ASCII).fullmatch


def _constant(source: Word) -> str | None:
    """Return the one field of a constant word; None for most others."""
    parts = source.parts
    if len(parts) == 1:
        only = parts[0]
        kind = type(only)
        if kind is SingleQuoted or (kind is Literal and _MEANS_ITSELF(only.text)):  # type: ignore[union-attr]
            return only.text  # type: ignore[union-attr]
    return None


def _braced(source: Word) -> list[tuple[bool, str | None, Callable[[Any], Any] | None, Plan | None]]:
    constant = _constant(source)
    if constant is not None:
        return [(False, constant, None, None)]
    if not has_braces(source):
        return [_plan(source)]
    try:
        found = [_rejoined(word) for word in itertools.islice(expand_braces(source), _SMALL + 1)]
    except LineError as error:
        return [(False, None, None, _failing(error))]
    plain = _plan(source)
    if len(found) == 1:
        return [_plan(found[0])]
    small = [_plan(untilded(word)) for word in found] if len(found) <= _SMALL else None

    async def run(host: Any, out: list[str]) -> None:
        if "braceexpand" not in host.options:
            plans = [plain]
        elif small is not None:
            plans = small
        else:
            await _many_words(host, source, out)
            return
        for wait, constant, single, append in plans:
            if constant is not None:
                out.append(constant)
            elif single is not None:
                out.append(await single(host) if wait else single(host))
            elif append is not None:
                pending = append(host, out)
                if pending is not None:
                    await pending

    return [(True, None, None, run)]


def _failing(error: LineError) -> Plan:
    """Compile a word whose braces cannot be expanded, which is an error once it is used."""

    def append(host: Any, out: list[str]) -> Awaitable[None] | None:
        raise type(error)(error.parts)

    return append


def _rejoined(word: Word) -> Word:
    """Rejoin names: `$x` or `$` before a brace takes the letters that end up after it into its name."""
    parts = word.parts
    if not any((isinstance(part, Param) and not part.braced) or _loose_dollar(part) for part in parts):
        return word
    out: list[Part] = []
    for part in itertools.chain.from_iterable(map(_with_names, parts)):
        before = out[-1] if out else None
        if (
            type(part) is Literal
            and isinstance(before, Param)
            and not before.braced
            and is_plain(before.name)
            and (more := _NAME_REST.match(part.text)) is not None
        ):
            out[-1] = Param(before.name + more[0], braced=False)
            if more.end() < len(part.text):
                out.append(Literal(part.text[more.end() :]))
        else:
            out.append(part)
    return Word(tuple(out))


_NAME_REST: Final = re.compile(r"[A-Za-z0-9_]+")
_DOLLAR_NAME: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])", re.ASCII)


def _has_list(parts: tuple[Part, ...], quoted: bool = False) -> bool:
    """Return whether `$@` or the like is among the parts, or `$*` without quotes."""
    for part in parts:
        if type(part) is DoubleQuoted and _has_list(part.parts, True):
            return True
        if type(part) is not Param or part.form == "length":
            continue
        if part.name == "@" or part.subscript == "@" or (part.form == "names" and part.op == "@"):
            return True
        if not quoted and not part.op and (part.name == "*" or part.subscript == "*"):
            return True
        if part.op[-1:] in ("-", "+") and _has_list(part.args[0].parts, quoted):
            return True
    return False


def _loose_dollar(part: Part) -> bool:
    return type(part) is Literal and "$" in part.text


def _with_names(part: Part) -> Iterator[Part]:
    """Yield the parts of a text in which braces have put a name after a dollar."""
    if type(part) is not Literal or "$" not in part.text:
        yield part
        return
    for place, text in enumerate(_DOLLAR_NAME.split(part.text)):
        if place % 2:
            yield Param(text, None, "value", "", (), False)
        elif text:
            yield Literal(text)


async def _many_words(host: Any, source: Word, out: list[str]) -> None:
    size = sum([len(part.text) for part in source.parts if isinstance(part, Literal)])
    count = await offload_large(host.budget, size, partial(count_words, source), LONG_SCRIPT)
    if len(out) + count > host.budget.limits.expansion_words:
        raise host.budget.exceeded("expansion_words", "brace expansion")
    blocks = text_blocks(source)
    if blocks is not None:
        for block in blocks:
            # An empty unquoted word vanishes.
            out += block if all(block) else filter(None, block)
            await host.budget.yield_turn()
        return
    for count, word in enumerate(expand_braces(source)):
        if not count & 255:
            await host.budget.yield_turn()
        parts = word.parts
        if len(parts) == 1 and type(parts[0]) is Literal and not PLAIN(parts[0].text) and parts[0].text[:1] != "~":
            out.append(parts[0].text)
            continue
        wait, constant, single, append = _plan(word)
        if constant is not None:
            out.append(constant)
        elif single is not None:
            out.append(await single(host) if wait else single(host))
        elif append is not None:
            pending = append(host, out)
            if pending is not None:
                await pending


async def fields_of(compiled: Words, host: Any) -> list[str]:
    """Return the fields of words, waiting where they must be waited for."""
    found: Any = compiled.run(host)
    return found if type(found) is list else await found


def words(sources: Sequence[Word]) -> Words:
    """Compile the words of a command, braces first."""
    plans = [plan for source in sources for plan in _braced(source)]
    if all(constant is not None for _, constant, _, _ in plans):
        fixed = [constant for _, constant, _, _ in plans if constant is not None]
        return Words(False, lambda host: fixed.copy())
    if len(plans) > BATCH or any(wait for wait, _, _, _ in plans):

        async def waiting(host: Any) -> list[str]:
            out: list[str] = []
            for place, (wait, constant, single, append) in enumerate(plans, 1):
                if not place % BATCH:
                    await host.budget.yield_turn()
                if constant is not None:
                    out.append(constant)
                elif single is not None:
                    out.append(await single(host) if wait else single(host))
                elif append is not None:
                    found = append(host, out)
                    if found is not None:
                        await found
            return out

        return Words(True, waiting)
    if all(append is None for _, _, _, append in plans):
        # Every word is one field: the common `cmd const "$x"`.
        pairs = [(constant, single) for _, constant, single, _ in plans]
        return Words(False, lambda host: [fixed if single is None else single(host) for fixed, single in pairs])

    async def rest(host: Any, out: list[str], number: int, pending: Awaitable[None]) -> list[str]:
        await pending
        for _, constant, single, append in plans[number:]:
            if constant is not None:
                out.append(constant)
            elif single is not None:
                out.append(single(host))
            elif append is not None:
                more = append(host, out)
                if more is not None:
                    await more
                elif len(out) > BATCH:
                    await host.budget.yield_turn()
        return out

    def run(host: Any) -> list[str] | Awaitable[list[str]]:
        out: list[str] = []
        for _, constant, single, append in plans:
            if constant is not None:
                out.append(constant)
            elif single is not None:
                out.append(single(host))
            elif append is not None:
                pending = append(host, out)
                if pending is None and len(out) > BATCH and host.budget.check():
                    pending = host.budget.yield_turn()
                if pending is not None:
                    number = next(i for i, plan in enumerate(plans) if plan[3] is append) + 1
                    return rest(host, out, number, pending)
        return out

    return Words(False, run)
