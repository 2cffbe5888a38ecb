"""`sort -m`: merge sorted inputs as they arrive."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from typing import Any

from ramet.commands.text.sort.keys import Line
from ramet.commands.text.sort.order import Order


async def merged_sources(sources: list[AsyncIterator[list[Line]]], order: Order) -> AsyncIterator[list[Line]]:
    """Yield the lines of all sources in order, in lists."""
    key = order.merge_key()
    heap: list[tuple[Any, int, Line]] = []
    batches: list[list[Line]] = [[] for _ in sources]
    spots = [0] * len(sources)

    async def advance(i: int) -> None:
        if spots[i] >= len(batches[i]):
            batches[i] = await anext(sources[i], [])
            spots[i] = 0
            if not batches[i]:
                return
        line = batches[i][spots[i]]
        spots[i] += 1
        heapq.heappush(heap, (key(line), i, line))

    for i in range(len(sources)):
        await advance(i)
    out: list[Line] = []
    while heap:
        _, i, line = heapq.heappop(heap)
        out.append(line)
        await advance(i)
        if len(out) >= 4096:
            yield out
            out = []
    if out:
        yield out
