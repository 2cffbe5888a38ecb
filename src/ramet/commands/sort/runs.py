"""Lines sorted in memory, spilled as runs when they are too many, and merged; no run is a file of the workspace."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import IO, Any

from ramet.commands.sort.keys import KeyOf, Line
from ramet.commands.sort.order import ODD_SPACES, Order


def cut_at_line(held: list[bytes], end: bytes) -> tuple[list[bytes], list[bytes]]:
    """Blocks up to the last line end, and what begins the next line; the last block holds a line end."""
    cut = held[-1].rfind(end) + 1
    return [*held[:-1], held[-1][:cut]], [held[-1][cut:]]


def sorted_lines(held: list[bytes], order: Order, delim: str, unique: bool) -> list[Line]:
    data = b"".join(held)
    ascii_only = data.isascii()
    simple = ascii_only and order.number is not None and not any(space in data for space in ODD_SPACES)
    lines = data.decode("ascii" if ascii_only else "latin-1").split(delim)
    del data
    lines.pop()
    if unique and order.key is None:
        # Equal lines are the same line: sorting the distinct ones is the same and less.
        return sorted(set(lines), reverse=order.reverse)
    order.sort(lines, simple)
    return distinct(lines, order.key) if unique else lines


def distinct(lines: list[Line], key: KeyOf | None) -> list[Line]:
    out: list[Line] = []
    last: Any = object()
    for line in lines:
        this = line if key is None else key(line)
        if this != last:
            out.append(line)
            last = this
    return out


def spill(lines: list[Line], delim: str) -> IO[bytes]:
    """A sorted run in an anonymous temporary file of the interpreter, not of the workspace's tree."""
    run = tempfile.TemporaryFile()
    for at in range(0, len(lines), 50_000):
        run.write((delim.join(lines[at : at + 50_000]) + delim).encode("latin-1"))
    run.seek(0)
    return run


def run_lines(run: IO[bytes], delim: str) -> Iterator[Line]:
    rest = ""
    while block := run.read(1 << 20):
        pieces = (rest + block.decode("latin-1")).split(delim)
        rest = pieces.pop()
        yield from pieces


async def batched(lines: Iterable[Line]) -> AsyncIterator[list[Line]]:
    batch: list[Line] = []
    for line in lines:
        batch.append(line)
        if len(batch) >= 10_000:
            yield batch
            batch = []
    if batch:
        yield batch


async def merged_sources(sources: list[AsyncIterator[list[Line]]], order: Order) -> AsyncIterator[list[Line]]:
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
