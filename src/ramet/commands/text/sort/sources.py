"""sort -m: inputs that are in order already, merged as they arrive."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from ramet.commands.framework.inputs import LONG
from ramet.commands.text.sort.keys import Line
from ramet.commands.text.sort.order import Order
from ramet.concurrency.offload import offload
from ramet.core.limits import Budget


async def merged_sources(
    sources: list[AsyncIterator[list[Line]]], order: Order, budget: Budget
) -> AsyncIterator[list[Line]]:
    """The lines of all sources in order, in lists; a very long one is alone in its list."""
    key, slow_key = order.merge_key(), order.patient().merge_key()
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
        place = key(line) if len(line) <= LONG else await offload(budget, partial(slow_key, line))
        heapq.heappush(heap, (place, i, line))

    for i in range(len(sources)):
        await advance(i)
    out: list[Line] = []
    while heap:
        _, i, line = heapq.heappop(heap)
        if len(line) > LONG and out:
            yield out
            out = []
        out.append(line)
        await advance(i)
        if len(out) >= 4096 or len(line) > LONG:
            yield out
            out = []
    if out:
        yield out
