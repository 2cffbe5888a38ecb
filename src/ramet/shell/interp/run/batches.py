"""Operands and lines of builtins, however many: others run in between.

A builtin is a plain function as long as it has little to do. What it does with each operand it hands to `each`, and
what it lists to `write_lines`: for few of them that is a loop, for many a coroutine that leaves the event loop to
others after every row and lets whoever reads the messages catch up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, TypeVar

from ramet.concurrency.sizes import LARGE
from ramet.concurrency.sorting import sorting
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.shell.expand.long_text import blocks
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.messages import message_of
from ramet.shell.interp.state.shell_state import ShellState

T = TypeVar("T")

MANY: Final = 256
"""Operands, or lines, that are seen to at once."""


def each(sh: ShellState, words: Sequence[str], one: Callable[[str], Result | None]) -> Result:
    """Does something with every operand; the status of the last one that failed, 0 where none did."""
    if len(words) > MANY or any(len(word) > LARGE for word in words):
        return drive(_each(sh, words, one))
    status = 0
    for place, word in enumerate(words):
        result = one(word)
        if not isinstance(result, int | None):
            return drive(_each(sh, words[place + 1 :], one, status, result))
        status = result or status
    return status


async def _each(
    sh: ShellState,
    words: Sequence[str],
    one: Callable[[str], Result | None],
    status: int = 0,
    begun: Awaitable[int] | None = None,
) -> int:
    if begun is not None:
        status = await begun or status
    for start in range(0, len(words), MANY):
        for word in words[start : start + MANY]:
            if len(word) > LARGE:
                await turn(sh)
            result = one(word)
            if not isinstance(result, int | None):
                result = await result
            status = result or status
        await turn(sh)
    return status


async def turn(sh: ShellState) -> None:
    """Others run, and the reader of the messages catches up."""
    await sh.budget.yield_turn()
    description = sh.fds.get(2)
    writer = None if description is None else description.writer
    if writer is not None and writer.full:
        try:
            await writer.drain()
        except OSError:
            return  # there is nowhere left to say it


def refuse(sh: ShellState, *message: str, status: int = 1) -> Result:
    """`sh.error` with a message of several parts, of which some may be very long."""
    if sum(map(len, message)) < LARGE:
        return sh.error("".join(message), status)
    return drive(refused_patiently(sh, message, status))


async def refused_patiently(sh: ShellState, message: Sequence[str], status: int = 1) -> int:
    """The same for who can wait."""
    if sum(map(len, message)) < LARGE:
        return sh.error("".join(message), status)
    sh.err(sh.message_prefix())
    for text in blocks(chain(message, ("\n",))):
        sh.err(text)
        await turn(sh)
    return status


async def told(sh: ShellState, error: Exception) -> None:
    """Report an error where it happened, unless somebody has: `sh.complain_once` for who can wait."""
    if not getattr(error, "reported", False):
        error.reported = True  # type: ignore[attr-defined]
        await refused_patiently(sh, message_of(error))


async def plain(sh: ShellState, words: Sequence[str], start: int) -> list[str]:
    """The words from one on, as texts and nothing more."""
    found: list[str] = []
    for place in range(start, len(words), _RUN):
        found += map(str, words[place : place + _RUN])
        await sh.budget.yield_turn()
    return found


def then(result: Result, following: Callable[[int], Result]) -> Result:
    """What follows once a status is there."""
    return following(result) if isinstance(result, int) else drive(_then(result, following))


async def _then(result: Result, following: Callable[[int], Result]) -> int:
    found = following(result if isinstance(result, int) else await result)
    return found if isinstance(found, int) else await found


def write_lines(sh: ShellState, lines: Iterable[str], count: int, who: str, status: int = 0) -> Result:
    """Writes lines or pieces of them, about `count`, some at a time if that is much; `status` unless writing fails."""
    if count > MANY:
        return drive(_write_many(sh, lines, who, status))
    row: list[str] = []
    size = 0
    rest = iter(lines)
    sh.pending_output = row
    for line in rest:
        row.append(line)
        size += len(line)
        if size > LARGE:
            sh.pending_output = []
            return drive(_write_many(sh, chain(row, rest), who, status))
    sh.pending_output = []
    text = row[0] if len(row) == 1 else "".join(row)
    written = sh.out(encode(text), who) if text else 0
    return status or written


async def _write_many(sh: ShellState, lines: Iterable[str], who: str, status: int) -> int:
    for text in blocks(lines):
        written = sh.out(encode(text), who) if text else 0
        if written if isinstance(written, int) else await written:
            return status or 1
        await turn(sh)
    return status


_RUN: Final = 4096


async def in_order(names: Iterable[str], count: int, budget: Budget) -> list[str]:
    """Texts in their order; many are sorted by parts, none of which holds up others."""
    if count <= _RUN:
        return sorted(names)
    given: list[str] = []
    rest = iter(names)
    while row := list(islice(rest, _RUN)):
        given += row
        await budget.yield_turn()
    steps = sorting(given)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return list(end.value)
        await budget.yield_turn()


def rows(of: Iterable[T]) -> Iterator[list[T]]:
    """Some at a time, so that others can run in between."""
    rest = iter(of)
    while row := list(islice(rest, MANY)):
        yield row


async def in_buckets(names: Iterable[str], bucket: Callable[[str], int], buckets: int, budget: Budget) -> Iterator[str]:
    """Texts by bucket, and as they come within one: the order of a table of bash's."""
    table: list[list[str]] = [[] for _ in range(buckets)]
    for row in rows(names):
        for name in row:
            table[bucket(name) % buckets].append(name)
        await budget.yield_turn()
    return chain.from_iterable(table)
