"""Words compiled to closures that give fields.

Fields come back with unresolved `GlobWord`s in them and `host.has_globs` set: looking into the tree may suspend, so
the caller does it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LARGE, LONG_SCRIPT, SMALL
from ramet.shell.expand.errors import Discard
from ramet.shell.expand.long_text import Parts, put_together
from ramet.shell.expand.values import key_names
from ramet.shell.expand.word.braces import count_words, expand_braces, has_braces, text_blocks
from ramet.shell.expand.word.fields import LONG, PLAIN, Fields, fields_for, may_be_pattern
from ramet.shell.expand.word.param_lookup import is_plain, variable
from ramet.shell.expand.word.tilde import untilded
from ramet.shell.expand.word.to_fields import emit_word, gives_several, in_sequence, put_many, split_aside, unordered
from ramet.shell.expand.word.to_text import concat, part_text
from ramet.shell.syntax.nodes import AnsiQuoted, DoubleQuoted, Escaped, Literal, Param, Part, SingleQuoted, Word

Plan = Callable[[Any, list[str]], Any]


class Words(NamedTuple):
    """Several words as fields: `run(host)` gives a new list each time."""

    wait: bool
    run: Callable[[Any], Any]


def one_field(parts: tuple[Part, ...]) -> bool:
    """Whether a word always gives exactly one field that needs no globbing."""
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
    """The name when the word is just `$name`."""
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


def _plan(word: Word, patient: bool = False) -> tuple[bool, str | None, Callable[[Any], Any] | None, Plan | None]:
    """One word: (wait, constant, function to its one field, function that appends its fields)."""
    parts = word.parts
    if len(parts) == 1 and type(first := parts[0]) is Literal and first.text[0] != "~" and one_field(parts):
        return False, first.text, None, None
    if one_field(parts):
        piece = concat([part_text(part, False, None) for part in parts])
        if patient and piece.large is not None:
            return False, None, None, _joined_field(piece.run, piece.large)
        return piece.wait, piece.const, (piece.parts or piece.run) if patient else piece.run, None
    name = _single_variable(parts)
    if name is not None:
        return False, None, None, _variable_fields(name, patient)
    if len(parts) == 1:
        listed = _listed(parts[0], patient)
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
        fields.patient = patient
        if whole:
            fields.ifs = ""
        pending = inner(host, fields)
        if pending is not None:
            return _finish_later(host, fields, pending)
        return _finish(host, fields)

    return False, None, None, run


def _stays_whole(parts: tuple[Part, ...]) -> bool:
    """Whether a dollar that means nothing comes after all expansions: to bash such a word has none to split, unless
    there is a list of values in it."""
    if not any(map(_loose_dollar, parts)) or _has_list(parts):
        return False
    for part in reversed(parts):
        if _loose_dollar(part):
            return True
        if not isinstance(part, Literal | Escaped | SingleQuoted | AnsiQuoted | DoubleQuoted):
            return False
    return False


def _joined_field(run: Callable[[Any], str], large: Callable[[Any], Coroutine[Any, Any, str] | None]) -> Plan:
    """`"${a[*]}"`."""

    async def later(pending: Awaitable[str], out: list[str]) -> None:
        out.append(await pending)

    def append(host: Any, out: list[str]) -> Awaitable[None] | None:
        pending = large(host)
        if pending is not None:
            return later(pending, out)
        out.append(run(host))
        return None

    return append


def _listed(part: Part, patient: bool) -> Plan | None:
    """A word that is nothing but `"$@"`, `"${a[@]}"` or `"${!a[@]}"`, or the same without quotes: its values as they
    are. None for any other word."""
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
        if patient and not positional and unordered(host, name):
            return _sorted_values(host, name, keys, quoted, out)
        if keys:
            return _keys(host, name, out, quoted, patient)
        found = host.params if positional else host.variables.elements(name)
        if quoted:
            if patient and len(found) > SMALL:
                return _append(host, found, out)
            out += found
            return None
        fields = fields_for(host, out)
        if patient and len(found) > SMALL:
            return _finish_later(host, fields, put_many(host, fields, found, False))
        fields.several_split(found)
        return _finish(host, fields)

    return run


async def _sorted_values(host: Any, name: str, keys: bool, quoted: bool, out: list[str]) -> None:
    array = host.variables.values[host.variables.follow(name)[0]]
    found = await offload(host.budget, partial(key_names, array) if keys else array.values)
    if quoted:
        await _append(host, found, out)
        return
    fields = fields_for(host, out)
    await _finish_later(host, fields, put_many(host, fields, found, False))


def _keys(host: Any, name: str, out: list[str], quoted: bool, patient: bool) -> Awaitable[None] | None:
    name, _ = host.variables.follow(name)
    array = host.variables.array(name)
    if patient and array is not None and len(array) > SMALL:
        return _many_keys(host, array, out, quoted)
    found = host.variables.keys(name)
    if quoted:
        out += found
        return None
    fields = fields_for(host, out)
    fields.several_split(found)
    return _finish(host, fields)


async def _many_keys(host: Any, array: Any, out: list[str], quoted: bool) -> None:
    names = await offload(host.budget, partial(key_names, array))
    if quoted:
        await _append(host, names, out)
    else:
        fields = fields_for(host, out)
        await _finish_later(host, fields, put_many(host, fields, names, False))


async def _append(host: Any, values: list[str], out: list[str]) -> None:
    for start in range(0, len(values), SMALL):
        out += values[start : start + SMALL]
        await host.budget.yield_turn()


def _finish(host: Any, fields: Fields) -> Awaitable[None] | None:
    if fields.end(fields.patient):
        return _finish_aside(host, fields)
    if fields.globs:
        _globs(host, fields)
    return None


def _globs(host: Any, fields: Fields) -> None:
    if host.noglob:
        fields.done[:] = map(str, fields.done)  # what would have been patterns are words like any other
    else:
        host.has_globs = True


async def _finish_aside(host: Any, fields: Fields) -> None:
    await offload(host.budget, fields.end)
    if fields.globs:
        _globs(host, fields)


async def _finish_later(host: Any, fields: Fields, pending: Awaitable[None]) -> None:
    await pending
    fields.patient = True
    more = _finish(host, fields)
    if more is not None:
        await more


def _variable_fields(name: str, patient: bool) -> Plan:
    get = variable(name)

    def run(host: Any, out: list[str]) -> Awaitable[None] | None:
        found = get(host)
        if not found:
            return None
        if len(found) > LONG:
            fields = fields_for(host, out)
            if patient and len(found) > LARGE:
                return _finish_later(host, fields, split_aside(host, fields, found))
            fields.split(found)
            return _finish(host, fields)
        if PLAIN(found) is None and "IFS" not in host.vars:
            out.append(found)
            return None
        ifs = host.vars.get("IFS", " \t\n")
        if ifs == " \t\n" and PLAIN(found) is None:
            out.append(found)
            return None
        fields = fields_for(host, out)
        fields.split(found)
        return _finish(host, fields)

    return run


_SOME: Final = 256
"""Words of a command after which others may want to run."""
_SMALL: Final = 512
"""A brace expansion up to this size is compiled like written words; a bigger one is made when it runs."""


_MEANS_ITSELF: Final = re.compile(r"[A-Za-z0-9_./,:%=-]{1,4096}", re.ASCII).fullmatch


def _constant(source: Word) -> str | None:
    """A word that is one field, always the same; None for most others."""
    parts = source.parts
    if len(parts) == 1:
        only = parts[0]
        kind = type(only)
        if kind is SingleQuoted or (kind is Literal and _MEANS_ITSELF(only.text)):  # type: ignore[union-attr]
            return only.text  # type: ignore[union-attr]
    return None


def _braced(source: Word, patient: bool) -> list[tuple[bool, str | None, Callable[[Any], Any] | None, Plan | None]]:
    constant = _constant(source)
    if constant is not None:
        return [(False, constant, None, None)]
    if not has_braces(source):
        return [_plan(source, patient)]
    try:
        found = [_rejoined(word) for word in itertools.islice(expand_braces(source), _SMALL + 1)]
    except Discard as error:
        return [(False, None, None, _failing(error))]
    plain = _plan(source, True)
    if len(found) == 1:
        return [_plan(found[0], patient)]
    small = [_plan(untilded(word), True) for word in found] if len(found) <= _SMALL else None

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
        if host.parted:
            await _whole(host, out)

    return [(True, None, None, run)]


def _failing(error: Discard) -> Plan:
    """A word whose braces cannot be expanded, which is an error once it is used."""

    def append(host: Any, out: list[str]) -> Awaitable[None] | None:
        raise type(error)(error.parts)

    return append


def _rejoined(word: Word) -> Word:
    """Braces are text: `$x` before one takes the letters that end up behind it into its name, and so does `$`."""
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
    """Whether `$@` or the like is among the parts, or `$*` without quotes."""
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
    """A text in which braces have put a name behind a dollar."""
    if type(part) is not Literal or "$" not in part.text:
        yield part
        return
    for place, text in enumerate(_DOLLAR_NAME.split(part.text)):
        if place % 2:
            yield Param(text, None, "value", "", (), False)
        elif text:
            yield Literal(text)


async def _many_words(host: Any, source: Word, out: list[str]) -> None:
    long = sum([len(part.text) for part in source.parts if isinstance(part, Literal)]) > LONG_SCRIPT
    count = await offload(host.budget, partial(count_words, source)) if long else count_words(source)
    if len(out) + count > host.budget.limits.expansion_words:
        raise host.budget.exceeded("expansion_words", "brace expansion")
    blocks = await offload(host.budget, partial(_all_blocks, source)) if long else text_blocks(source)
    if blocks is not None:
        for block in blocks:
            # An empty word that nothing quotes is no word.
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
            if wait:
                await pending


def _all_blocks(source: Word) -> Iterable[list[str]] | None:
    blocks = text_blocks(source)
    return None if blocks is None else list(blocks)


_ROW: Final = 256
"""Words of one command after which others may want to run."""


async def _whole(host: Any, out: list[str]) -> list[str]:
    """Words of which some were given as the very long parts that are to make them."""
    host.parted = False
    for start in range(0, len(out), _ROW):
        for place, word in enumerate(out[start : start + _ROW], start):
            if isinstance(word, Parts):
                out[place] = await put_together(host, word)
        await host.budget.yield_turn()
    return out


async def fields_of(compiled: Words, host: Any) -> list[str]:
    """The fields of words, whether they have to wait or not."""
    found: Any = compiled.run(host)
    return found if type(found) is list else await found


def words(sources: Sequence[Word], patient: bool = False) -> Words:
    """The words of a command as fields, braces first.

    With `patient` even the words that need not wait may give an awaitable in place of the list: when a value turns
    out to be so large that splitting it would hold up others.
    """
    if len(sources) <= _ROW:
        plans = [plan for source in sources for plan in _braced(source, patient)]
    else:
        known = list(itertools.takewhile(lambda text: text is not None, map(_constant, sources)))
        if len(known) == len(sources):
            return Words(False, lambda host: known.copy())
        plans = [plan for source in sources for plan in _braced(source, patient)]
    if all(constant is not None for _, constant, _, _ in plans):
        fixed = [constant for _, constant, _, _ in plans if constant is not None]
        return Words(False, lambda host: fixed.copy())
    if len(plans) > _ROW or any(wait for wait, _, _, _ in plans):

        async def waiting(host: Any) -> list[str]:
            out: list[str] = []
            for place, (wait, constant, single, append) in enumerate(plans, 1):
                if not place % _ROW:
                    await host.budget.yield_turn()
                if constant is not None:
                    out.append(constant)
                elif single is not None:
                    out.append(await single(host) if wait else single(host))
                elif append is not None:
                    found = append(host, out)
                    if found is not None:
                        await found
            return await _whole(host, out) if host.parted else out

        return Words(True, waiting)
    if all(append is None for _, _, _, append in plans):
        # Every word is one field: the common `cmd const "$x"`.
        pairs = [(constant, single) for _, constant, single, _ in plans]
        if not patient:
            return Words(False, lambda host: [fixed if single is None else single(host) for fixed, single in pairs])

        def run_each(host: Any) -> list[str] | Awaitable[list[str]]:
            out: list[Any] = [fixed if single is None else single(host) for fixed, single in pairs]
            return _whole(host, out) if host.parted else out

        return Words(False, run_each)

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
                elif len(out) > _SOME:
                    await host.budget.yield_turn()
        return await _whole(host, out) if host.parted else out

    def run(host: Any) -> list[str] | Awaitable[list[str]]:
        out: list[str] = []
        for _, constant, single, append in plans:
            if constant is not None:
                out.append(constant)
            elif single is not None:
                out.append(single(host))
            elif append is not None:
                pending = append(host, out)
                if pending is None and len(out) > _SOME and patient and host.budget.check():
                    pending = host.budget.yield_turn()
                if pending is not None:
                    number = next(i for i, plan in enumerate(plans) if plan[3] is append) + 1
                    return rest(host, out, number, pending)
        return _whole(host, out) if patient and host.parted else out

    return Words(False, run)
