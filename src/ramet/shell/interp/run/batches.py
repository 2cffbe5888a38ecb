"""Loops of builtins over many operands or lines, in batches between which the event loop runs.

A builtin is a plain function as long as it has little to do. It hands its operands to `each` and its listing to
`write_lines`: short ones are handled at once, long ones in a coroutine that lets the reader of its output catch up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from ramet.concurrency.sizes import BATCH
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import ShellState

T = TypeVar("T")


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
    for word in words:
        result = one(word)
        if not isinstance(result, int | None):
            result = await result
        status = result or status
        if sh.budget.check():
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
    batch: list[str] = []

    async def flush() -> int:
        written = sh.out(encode("".join(batch)), who)
        batch.clear()
        await turn(sh)
        return written if isinstance(written, int) else await written

    for line in lines:
        batch.append(line)
        if (len(batch) >= BATCH or sh.budget.check()) and await flush():
            return status or 1
    return (await flush() and (status or 1)) or status


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
