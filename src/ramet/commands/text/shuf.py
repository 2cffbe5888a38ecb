"""shuf: print lines, words or numbers in random order."""

from __future__ import annotations

import os
import random
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from ramet.commands.framework.command import Command, UsageError, called, flag, ordered, quote, several, value
from ramet.commands.framework.inputs import PART, lead, parse_count, read_lines
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import FileStream, line_blocks

_SLICE = 8192
_MANY = 20_000_000
"""Size of a range from which on it is not kept in memory."""


_SOURCE = 1 << 24
"""Bytes of a random source that are read at most: it may have no end."""


class Bytewise:
    """Random numbers from given bytes by GNU's arithmetic: equal bytes give the order that GNU gives.

    Unused bits of one choice are kept for the next.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data, self.at = name, data, 0
        self.number = self.most = 0

    def randrange(self, choices: int) -> int:
        wanted, number, most = choices - 1, self.number, self.most
        while True:
            while most < wanted:
                if self.at >= len(self.data):
                    raise UsageError(f"{quote(self.name)}: end of file", hint=False)
                number = (number << 8) + self.data[self.at]
                most = (most << 8) + 255
                self.at += 1
            if most == wanted:
                self.number = self.most = 0
                return number
            excess = most - wanted
            unusable = excess % choices
            if number <= most - unusable:
                self.number, self.most = number // choices, excess // choices
                return number % choices
            number, most = number % choices, unusable - 1


Chooser = random.Random | Bytewise


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
    chooser: Chooser = random.Random(os.urandom(32))
    if o.source is not None:
        chooser = Bytewise(o.source, await lead(proc, o.source, _SOURCE))
    count = min((parse_count(c, "line count") for c in o.counts), default=None)
    if o.range is not None:
        if len({stored for name, stored in o.order if name == "range"}) > 1:
            raise UsageError("multiple -i options specified", hint=False)
        found = re.fullmatch(r"(\d+)-(\d+)", o.range)
        for number in found.groups() if found else ():
            if int(number) >= 1 << 64:
                words = "Value too large for defined data type"
                raise UsageError(f"invalid input range: {quote(number)}: {words}", hint=False)
        if found is None:
            ends = o.range.split("-", 1)
            wrong = next((end for end in ends if not end.isdecimal()), "") if len(ends) > 1 else o.range
            raise UsageError(f"invalid input range: {quote(wrong)}", hint=False)
        if int(found[1]) > int(found[2]) + 1:
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
        line_of: Callable[[Any], bytes] = b"%d".__mod__
    else:
        if not o.echo and len(operands) > 1:
            raise UsageError(f"extra operand {quote(operands[1])}")
        try:
            word = operands[0] if operands else "-"
            if o.echo:
                pool = [encode(w) for w in operands]
            elif isinstance(chooser, Bytewise) or count is None or o.repeat:
                pool = await read_lines(proc, word, end)
            else:
                pool = await _sample(proc, word, end, count, chooser)
        except OSError as error:
            proc.complain(f"{called(operands[0])}: {reason(error)}" if operands else f"read error: {reason(error)}")
            return 1
        if isinstance(chooser, Bytewise) and count is not None and not o.echo and not o.repeat:
            pool = await _reservoir(proc, operands[0] if operands else "-", pool, count, chooser)
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
            out.write(end.join([line_of(pool[chooser.randrange(len(pool))]) for _ in range(batch)]) + end)
            left -= batch
            if out.full:
                await out.drain()
            await proc.budget.yield_turn()
    else:
        wanted = len(pool) if count is None else min(count, len(pool))
        async for picked in _pick(pool, wanted, chooser, proc.budget):
            out.write(end.join(map(line_of, picked)) + end)
            if out.full:
                await out.drain()
    await proc.close(out)
    return 0


async def _sample(proc: Proc, word: str, end: bytes, count: int, chooser: random.Random) -> list[bytes]:
    """Read a sample of `count` lines in bounded memory; all lines if there are few."""
    reader = await proc.open(word)
    held: list[tuple[float, bytes]] = []
    drawn = False
    lot = chooser.random
    try:
        async for block in line_blocks(reader, end, PART):
            lines = block.split(end)
            if not lines[-1]:
                lines.pop()
            held += [(lot(), line) for line in lines]
            if len(held) > 2 * count + _DRAWN:
                held, drawn = nsmallest(count, held), True
            await proc.budget.yield_turn()
    finally:
        await proc.close(reader)
    return [line for _, line in (nsmallest(count, held) if drawn else held)]


_DRAWN = 16_384
"""Lines held in addition to the sample."""


async def _sparse(proc: Proc, o: ShufOptions, low: int, size: int, count: int | None, chooser: Chooser) -> int:
    """Print a few numbers of a range too large for memory."""
    end = b"\0" if o.zero else b"\n"
    out = await proc.create(o.output) if o.output is not None else proc.stdout
    moved: dict[int, int] = {}
    at, left = 0, count if count is not None else 1 << 62
    while at < min(left, size if not o.repeat else left):
        other = chooser.randrange(size) if o.repeat else at + chooser.randrange(size - at)
        out.write(b"%d" % (low + moved.get(other, other)) + end)
        if not o.repeat:
            # A swap in a virtual array: only moved entries are stored.
            moved[other] = moved.get(at, at)
        at += 1
        if out.full:
            await out.drain()
        if not at & 1023:
            await proc.budget.yield_turn()
    await proc.close(out)
    return 0


async def _reservoir(proc: Proc, word: str, pool: object, count: int, chooser: Bytewise) -> list[bytes]:
    """Reduce the lines as GNU does: of a stream of unknown length it keeps a reservoir of `count`."""
    assert isinstance(pool, list)
    if word == "-":
        whole = isinstance(proc.stdin, FileStream)
    else:
        whole = (await proc.fs.stat(proc.path(word), follow=True)).kind is Kind.FILE
    if whole or len(pool) < count:
        return pool
    kept = pool[:count]
    for number in range(count, len(pool) + 1):
        place = chooser.randrange(number + 1)
        if place < count and number < len(pool):
            kept[place] = pool[number]
        if not number & 4095:
            await proc.budget.yield_turn()
    return kept


async def _pick(pool: range | list[Any], count: int, chooser: Chooser, budget: Budget) -> AsyncIterator[list[Any]]:
    """Yield `count` items of the pool in random order, in slices."""
    if isinstance(chooser, random.Random) and count * 8 < len(pool):
        if count:
            yield chooser.sample(pool, count)
        return
    size = len(pool)
    items: list[Any] = pool if isinstance(pool, list) else []
    for begin in range(0, size if not items else 0, 8 * _SLICE):
        items += pool[begin : begin + 8 * _SLICE]
        await budget.yield_turn()
    if isinstance(chooser, Bytewise):
        for begin in range(0, count, _SLICE):
            stop = min(begin + _SLICE, count)
            for at in range(begin, stop):
                other = at + chooser.randrange(size - at)
                items[at], items[other] = items[other], items[at]
            yield items[begin:stop]
            await budget.yield_turn()
        return
    pick = chooser.random
    for begin in range(0, count, _SLICE):
        stop = min(begin + _SLICE, count)
        for at in range(begin, stop):
            other = at + int(pick() * (size - at))
            items[at], items[other] = items[other], items[at]
        yield items[begin:stop]
        await budget.yield_turn()


COMMANDS = [
    Command(
        "shuf",
        shuf,
        ShufOptions,
        summary="Write a random permutation of the input lines to standard output.",
        usage="[OPTION]... [FILE]",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
