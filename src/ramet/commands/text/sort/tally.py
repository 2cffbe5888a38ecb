"""Count repeated lines instead of keeping them, so that only distinct lines are sorted.

Input whose lines are mostly new goes to the runs instead; the first lines decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import chain, islice, repeat

from ramet.commands.text.sort.keys import Line
from ramet.commands.text.sort.merge import chunk
from ramet.commands.text.sort.order import Order
from ramet.commands.text.sort.runs import Runs
from ramet.core.limits import Budget

_TRIAL = 120_000
"""Lines after which repetitions must have occurred."""
_ENTRY = 160
"""Bytes of overhead per counted line."""
_BATCH = 8192
_BLOCK = 1 << 18
"""Characters per output block."""
_PART = 1 << 16
"""Lines counted between two yields."""


class Tally:
    """Distinct lines with their counts, in order of first occurrence."""

    def __init__(self, order: Order, end: bytes, memory: int) -> None:
        self._order, self._end, self._memory = order, end, memory
        self._counts: Counter[Line] = Counter()
        self._lines = 0
        self._bytes = 0

    async def add(self, data: bytes, budget: Budget) -> bool:
        """Count input that ends at a line end; return False when counting no longer pays."""
        if data.count(self._end) <= _PART:
            return self._add(data)
        begin, pays = 0, True
        while begin < len(data):
            end = data.find(self._end, begin + _PART - 1) + 1 or len(data)
            pays = self._add(data[begin:end])
            begin = end
            await budget.yield_turn()
        return pays

    def _add(self, data: bytes) -> bool:
        lines, _ = chunk(data, self._end, self._order)
        known = len(self._counts)
        self._counts.update(lines)
        self._lines += len(lines)
        distinct = len(self._counts)
        if lines:
            self._bytes += (distinct - known) * (len(data) // len(lines) + _ENTRY)
        return self._bytes <= self._memory and (self._lines < _TRIAL or distinct * 4 < self._lines * 3)

    def pieces(self, unique: bool) -> Iterator[bytes]:
        """Yield the counted lines as input again; each line once if `unique`."""
        delim = self._end.decode()
        distinct = iter(self._counts)
        while batch := list(islice(distinct, _BATCH)):
            if unique:
                yield (delim.join(batch) + delim).encode("latin-1")
                continue
            lines = chain.from_iterable(map(repeat, batch, map(self._counts.__getitem__, batch)))
            while part := list(islice(lines, _BATCH)):
                yield (delim.join(part) + delim).encode("latin-1")

    async def sorted(self, budget: Budget) -> AsyncIterator[bytes]:
        """Yield the counted lines in order."""
        if not self._lines:
            return
        runs = Runs(self._order, self._end, self._memory)
        for data in self.pieces(unique=True):
            await runs.add(data, budget)
            await budget.yield_turn()
        async for lines in runs.merged(budget):
            for block in self._repeated(lines):
                yield block.encode("latin-1")
                await budget.yield_turn()
        runs.close()

    def _repeated(self, lines: list[Line]) -> Iterator[str]:
        """Yield lines as often as they were counted, in blocks."""
        delim, held, size = self._end.decode(), [""], 0
        for line in lines:
            text, times = line + delim, self._counts[line]
            most = max(1, _BLOCK // len(text))
            while times > most:
                yield "".join(held)
                held, size, times = [text * most], 0, times - most
            held.append(text * times)
            size += len(held[-1])
            if size > _BLOCK:
                yield "".join(held)
                held, size = [], 0
        yield "".join(held)
