"""shuf: lines, words or numbers in random order, shuffled slice by slice."""

from __future__ import annotations

import os
import random
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from ramet.commands.declare import Command, UsageError, flag, ordered, quote, several, shown, value
from ramet.commands.inputs import parse_count, read_lines, slurp
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.core.proc import Proc

_SLICE = 8192
_MANY = 20_000_000
"""Numbers of a range from which on they are not laid out in memory."""


@dataclass(frozen=True, slots=True)
class ShufOptions:
    echo: bool = flag("-e", "--echo", help="treat each ARG as an input line")
    range: str | None = value(
        "-i", "--input-range", metavar="LO-HI", help="treat each number LO through HI as an input line"
    )
    counts: tuple[str, ...] = several("-n", "--head-count", metavar="COUNT", help="output at most COUNT lines")
    output: str | None = value("-o", "--output", metavar="FILE", help="write result to FILE instead of standard output")
    source: str | None = value("--random-source", metavar="FILE", help="get random bytes from FILE")
    repeat: bool = flag("-r", "--repeat", help="output lines can be repeated")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")
    order: tuple[tuple[str, object], ...] = ordered()


async def shuf(proc: Proc, o: ShufOptions, operands: list[str]) -> int:
    end = b"\0" if o.zero else b"\n"
    chooser = random.Random(os.urandom(32) if o.source is None else (await slurp(proc, o.source))[:64])
    count = min((parse_count(c, "line count") for c in o.counts), default=None)
    if o.range is not None:
        if len({stored for name, stored in o.order if name == "range"}) > 1:
            raise UsageError("multiple -i options specified", hint=False)
        found = re.fullmatch(r"(\d+)-(\d+)", o.range)
        for number in found.groups() if found else ():
            if int(number) >= 1 << 64:
                words = "Value too large for defined data type"
                raise UsageError(f"invalid input range: {quote(number)}: {words}", hint=False)
        if found is None or int(found[1]) > int(found[2]) + 1:
            raise UsageError(f"invalid input range: {quote(o.range)}", hint=False)
        if o.echo:
            raise UsageError("cannot combine -e and -i options")
        if operands:
            raise UsageError(f"extra operand {quote(operands[0])}")
        low, size = int(found[1]), int(found[2]) + 1 - int(found[1])
        if size > _MANY:
            if not o.repeat and (count is None or count > _MANY // 8):
                raise UsageError("memory exhausted", hint=False)
            return await _sparse(proc, o, low, size, count, chooser)
        pool: object = range(low, low + size)
        line_of: Callable[[Any], bytes] = lambda item: str(item).encode()  # noqa: E731
    else:
        if not o.echo and len(operands) > 1:
            raise UsageError(f"extra operand {quote(operands[1])}")
        try:
            pool = (
                [encode(w) for w in operands]
                if o.echo
                else await read_lines(proc, operands[0] if operands else "-", end)
            )
        except OSError as error:
            proc.complain(f"{shown(operands[0])}: {reason(error)}")
            return 1
        line_of = lambda item: item  # noqa: E731
    out = await proc.create(o.output) if o.output is not None else proc.stdout
    assert isinstance(pool, (range, list))
    if o.repeat:
        if not pool:
            if count == 0:
                return 0
            proc.complain("no lines to repeat")
            return 1
        left = count if count is not None else 1 << 62
        while left > 0:
            batch = min(left, 4096)
            out.write(end.join([line_of(chooser.choice(pool)) for _ in range(batch)]) + end)
            left -= batch
            if out.full:
                await out.drain()
            await proc.budget.breathe()
    else:
        wanted = len(pool) if count is None else min(count, len(pool))
        async for picked in _picked(pool, wanted, chooser, proc.budget):
            out.write(end.join([line_of(item) for item in picked]) + end)
            if out.full:
                await out.drain()
    await proc.close(out)
    return 0


async def _sparse(proc: Proc, o: ShufOptions, low: int, size: int, count: int | None, chooser: random.Random) -> int:
    """A few numbers of a range that is far too long to be laid out."""
    end = b"\0" if o.zero else b"\n"
    out = await proc.create(o.output) if o.output is not None else proc.stdout
    seen: set[int] = set()
    left = count if count is not None else 1 << 62
    while left > 0:
        number = low + chooser.randrange(size)
        if not o.repeat:
            if number in seen:
                continue
            seen.add(number)
        out.write(b"%d" % number + end)
        left -= 1
        if out.full:
            await out.drain()
        if not left & 1023:
            await proc.budget.breathe()
    await proc.close(out)
    return 0


async def _picked(
    pool: range | list[Any], count: int, chooser: random.Random, budget: Budget
) -> AsyncIterator[list[Any]]:
    """So many of the pool in random order, a slice at a time."""
    if count * 8 < len(pool):
        if count:
            yield chooser.sample(pool, count)
        return
    items, size, pick = list(pool), len(pool), chooser.random
    for begin in range(0, count, _SLICE):
        stop = min(begin + _SLICE, count)
        for at in range(begin, stop):
            other = at + int(pick() * (size - at))
            items[at], items[other] = items[other], items[at]
        yield items[begin:stop]
        await budget.breathe()


COMMANDS = [
    Command(
        "shuf",
        shuf,
        ShufOptions,
        summary="Write a random permutation of the input lines to standard output.",
        usage="[OPTION]... [FILE]",
    ),
]
