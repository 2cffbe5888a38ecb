"""`set -x`: the lines that show what runs. What is long becomes text offload, and is written in blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Final

from ramet.concurrency.offload import interruptible, offload
from ramet.concurrency.sizes import LARGE
from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import is_number
from ramet.shell.expand.long_text import blocks, has_any
from ramet.shell.interp.run.assign import AssignWord
from ramet.shell.interp.state.shell_state import ShellState


def trace(sh: ShellState, fields: list[str], raw: bool = False, prefix: str | None = None) -> None:
    """A line of `set -x`."""
    if prefix is None:
        prefix = _prefix(sh)
    _write(sh, f"{prefix}{' '.join(fields if raw else _quoted(sh, fields))}\n")


async def trace_patiently(sh: ShellState, fields: list[str], raw: bool = False) -> None:
    """The same where others may run meanwhile."""
    prefix = _prefix(sh)
    if _is_short(fields) and len(prefix) < LARGE:
        trace(sh, fields, raw, prefix)
        return
    shown = (
        [iter((field,)) for field in fields] if raw else await offload(sh.budget, lambda: _quoted_pieces(sh, fields))
    )
    await _write_pieces(sh, chain((prefix,), _spaced(shown), ("\n",)))


def _spaced(words: Iterable[Iterable[str]]) -> Iterator[str]:
    """Words, each in pieces, with a space between any two of them."""
    for number, pieces in enumerate(words):
        if number:
            yield " "
        yield from pieces


async def _write_pieces(sh: ShellState, pieces: Iterable[str]) -> None:
    for text in blocks(pieces):
        _write(sh, text)
        await sh.budget.yield_turn()


async def trace_value(sh: ShellState, head: str, value: str) -> None:
    """A line that shows an assignment."""
    value = quote.as_locale(sh, value)
    if len(value) < LARGE:
        trace(sh, [head + (quote.word(value) if value else "")], raw=True)
    else:
        shown = await offload(sh.budget, lambda: quote.word_pieces(value))
        await _write_pieces(sh, chain((_prefix(sh), head), shown, ("\n",)))


async def trace_command(sh: ShellState, argv: list[str]) -> None:
    """The trace of a command; a declaration shows its arrays as assignments of their own."""
    shown: list[str] = []
    for place, word in enumerate(argv, 1):
        if not place % _ROW:
            await sh.budget.yield_turn()
        if isinstance(word, AssignWord) and word.items is not None:
            await trace_array(sh, word)
            shown.append(word.name)
            continue
        if isinstance(word, AssignWord) and word.is_long:
            shown.append(await offload(sh.budget, word.__str__))
            continue
        shown.append(word)
    await trace_patiently(sh, shown)
    while argv and argv[0] in ("command", "builtin"):
        argv = argv[1:]
    if argv and argv[0] in ("export", "readonly"):
        for place, (head, value) in enumerate(_marked(argv), 1):
            if not place % _ROW:
                await sh.budget.yield_turn()
            await trace_value(sh, head, value)


def _marked(argv: list[str]) -> Iterator[tuple[str, str]]:
    """The assignments among the words of `export` and `readonly`, which make them one by one, however they came
    about."""
    options = True
    for word in islice(argv, 1, None):
        if isinstance(word, AssignWord):
            if word.items is None:
                yield f"{word.name}{'+' if word.append else ''}=", word.value
            options = False
        elif options and word.startswith("-"):
            if "a" in word or "A" in word:  # arrays are assigned otherwise
                return
            options = word != "--"
        else:
            options = False
            if (assigned := _ASSIGNED(word)) is not None:
                yield assigned[0], word[assigned.end() :]


_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\+?=", re.ASCII).match


async def trace_array(sh: ShellState, word: AssignWord) -> None:
    """The trace of an array among the arguments of a declaration."""
    inner = _items(word) if len(word.items or ()) < _ROW else await offload(sh.budget, partial(_items, word))
    await trace_patiently(sh, [f"{word.name}{'+' if word.append else ''}=({inner})"], raw=True)


_ROW: Final = 256
"""Words that are looked at before others may want to run."""


def _items(word: AssignWord) -> str:
    return " ".join(
        (f"[{quote.single(item.key)}]=" if item.key is not None else "") + quote.single(item.value)
        for item in word.items or ()
    )


def _quoted(sh: ShellState, fields: list[str]) -> list[str]:
    return [quote.word(quote.as_locale(sh, str(field))) for field in fields]


def _quoted_pieces(sh: ShellState, fields: list[str]) -> list[Iterator[str]]:
    return [quote.word_pieces(quote.as_locale(sh, str(field))) for field in interruptible(fields)]


def _is_short(fields: list[str]) -> bool:
    return len(fields) < _ROW and sum(map(len, fields)) < LARGE


def _prefix(sh: ShellState) -> str:
    prefix = sh.variables.get("PS4")
    if prefix is None:
        return ""
    if has_any(prefix, "$`\\"):
        status, sh.xtrace = sh.status, False
        try:
            prefix = sh.prompt(prefix)
        finally:
            sh.status, sh.xtrace = status, True
    return (prefix[0] * sh.trace_level + prefix) if prefix and sh.trace_level else prefix


def _write(sh: ShellState, text: str) -> None:
    target = sh.variables.get("BASH_XTRACEFD")
    if not target or sh.trace_fd_invalid:
        sh.err(text)
        return
    description = sh.fds.get(int(target)) if is_number(target) else None
    if description is not None and description.writer is not None:
        description.writer.write(encode(text))
    else:
        sh.trace_fd_invalid = True
        sh.err(text)
