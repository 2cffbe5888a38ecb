"""Loops of builtins over many operands or lines, in batches between which the event loop runs.

A builtin is a plain function as long as it has little to do. It hands its operands to `each` and its listing to
`write_lines`: short ones are handled at once, long ones in a coroutine that lets the reader of its output catch up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH
from ramet.concurrency.sizes import MANY as MANY_ITEMS
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import ShellState

T = TypeVar("T")

MANY = BATCH


def each(sh: ShellState, words: Sequence[str], one: Callable[[str], Result | None]) -> Result:
    """Call `one` with every operand; return the status of the last one that failed, 0 where none did."""
    if len(words) > BATCH:
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
    for batch in rows(words):
        for word in batch:
            result = one(word)
            if not isinstance(result, int | None):
                result = await result
            status = result or status
        await turn(sh)
    return status


async def turn(sh: ShellState) -> None:
    """Yield the event loop, and let the reader of stderr catch up."""
    await sh.budget.yield_turn()
    description = sh.fds.get(2)
    writer = None if description is None else description.writer
    if writer is not None and writer.full:
        try:
            await writer.drain()
        except OSError:
            return  # stderr is closed: there is nowhere to report it


def refuse(sh: ShellState, *message: str, status: int = 1) -> Result:
    """Report an error in several parts."""
    return sh.error("".join(message), status)


async def refused_patiently(sh: ShellState, message: Sequence[str], status: int = 1) -> int:
    return sh.error("".join(message), status)


async def told(sh: ShellState, error: Exception) -> None:
    sh.complain_once(error)


async def plain(sh: ShellState, words: Sequence[str], start: int) -> list[str]:
    return [str(word) for word in words[start:]]


def then(result: Result, following: Callable[[int], Result]) -> Result:
    """Return what follows a status, once that is known."""
    return following(result) if isinstance(result, int) else drive(_then(result, following))


async def _then(result: Result, following: Callable[[int], Result]) -> int:
    found = following(result if isinstance(result, int) else await result)
    return found if isinstance(found, int) else await found


def write_lines(sh: ShellState, lines: Iterable[str], count: int, who: str, status: int = 0) -> Result:
    """Write about `count` lines, many of them in batches; return `status` unless writing fails."""
    if count > BATCH:
        return drive(_write_many(sh, lines, who, status))
    row: list[str] = []
    sh.pending_output = row
    row += lines
    sh.pending_output = []
    text = "".join(row)
    written = sh.out(encode(text), who) if text else 0
    return status or written


async def _write_many(sh: ShellState, lines: Iterable[str], who: str, status: int) -> int:
    for batch in rows(lines):
        written = sh.out(encode("".join(batch)), who)
        if written if isinstance(written, int) else await written:
            return status or 1
        await turn(sh)
    return status


async def in_order(names: Iterable[str], count: int, budget: Budget) -> list[str]:
    """Return texts in their order."""
    given = list(names)
    return await offload_large(budget, count, lambda: sorted(given), MANY_ITEMS)


def rows(of: Iterable[T]) -> Iterator[list[T]]:
    """Yield batches of the items."""
    rest = iter(of)
    while row := list(islice(rest, BATCH)):
        yield row


async def in_buckets(names: Iterable[str], bucket: Callable[[str], int], buckets: int, budget: Budget) -> Iterator[str]:
    """Return texts by bucket, and in their order within one, as a hash table of bash's lists them."""
    table: list[list[str]] = [[] for _ in range(buckets)]
    for row in rows(names):
        for name in row:
            table[bucket(name) % buckets].append(name)
        await budget.yield_turn()
    return chain.from_iterable(table)
