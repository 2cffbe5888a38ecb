"""Sorted runs: pieces of input sorted one by one, kept in memory and then in temporary files.

A piece is small enough to be sorted in a slice of the event loop. Runs are not files of the workspace.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import IO, Any

from ramet.commands.text.sort.keys import Line
from ramet.commands.text.sort.merge import Chunk, chunk, merge
from ramet.commands.text.sort.order import Order
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import HUGE
from ramet.core.limits import Budget

PIECE = 1 << 19
"""Bytes of input per run."""
_LINES = 8192
"""Lines per run; they sort in a slice of the event loop."""
_KEYED_LINES = 1024
"""Lines per batch of keys that are slow to compute, and per run of keys that are slow to compare."""
_CHUNK = 64 * 1024
"""Bytes of a run per read of a merge."""
_FAN_IN = 256
"""Runs per merge; more runs are merged in groups first."""

Read = Callable[[int, int], bytes]
"""Bytes of a run, by offset and size."""


class Runs:
    """Sorted runs that hold at most `memory` bytes in memory."""

    def __init__(self, order: Order, end: bytes, memory: int) -> None:
        self._order, self._end, self._memory = order, end, memory
        self._delim = end.decode()
        self._held = self._gathered = 0
        self._small: list[Read] = []
        self._big: list[Read] = []
        self._files: list[IO[bytes]] = []
        self._spill: IO[bytes] | None = None

    async def add(self, data: bytes, budget: Budget) -> None:
        """Add input that ends at a line end."""
        order = self._order
        lines, simple = chunk(data, self._end, order)
        quick = order.key is None or (simple and order.number is not None)
        few = _KEYED_LINES if order.many is None else 2 * _KEYED_LINES
        most = _LINES if quick else few if order.slow else _LINES // 2
        for at in range(0, len(lines), most):
            await budget.yield_turn()
            some = lines[at : at + most]
            if len(data) > HUGE:
                await offload(budget, partial(self._add_with_keys, some, simple))
                continue
            keys = order.keys(some, simple) if quick else await self._made_keys(some, simple, few, budget)
            self._add(some, keys)
        budget.spilled(self._gathered + (self._spill.tell() if self._spill is not None else 0))
        if len(self._small) >= _FAN_IN:
            await self._gather(budget)

    async def _made_keys(self, lines: list[Line], simple: bool, few: int, budget: Budget) -> list[Any]:
        keys: list[Any] = []
        for at in range(0, len(lines), few):
            keys += self._order.keys(lines[at : at + few], simple) or ()
            await budget.yield_turn()
        return keys

    def _add_with_keys(self, lines: list[Line], simple: bool) -> None:
        self._add(lines, self._order.keys(lines, simple))

    def _add(self, lines: list[Line], keys: list[Any] | None) -> None:
        self._order.sort(lines, keys)
        data = packed(lines, self._delim)
        if self._held + len(data) <= self._memory:
            self._held += len(data)
            self._small.append(partial(_part, data))
            return
        if self._spill is None:
            self._spill = self._temporary()
        at = self._spill.tell()
        self._spill.write(data)
        self._small.append(partial(_file_part, self._spill.fileno(), at, at + len(data)))

    def _temporary(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(buffering=0)
        self._files.append(file)
        return file

    async def _gather(self, budget: Budget) -> None:
        """Merge the small runs into a big one."""
        file = self._temporary()
        size = 0
        merged = merge([self._chunks(run) for run in self._small], self._order)
        for lines in merged:
            if lines:
                size += file.write(packed(lines, self._delim))
            await budget.yield_turn()
        self._small, self._held = [], 0
        self._big.append(partial(_file_part, file.fileno(), 0, size))
        self._gathered += size
        if self._spill is not None:
            self._spill.seek(0)
            self._spill.truncate()

    def _chunks(self, read: Read) -> Iterator[Chunk]:
        at = 0
        parts: list[bytes] = []
        while data := read(at, _CHUNK if not parts else PIECE):
            cut = data.rfind(self._end) + 1
            at += cut or len(data)
            parts.append(data[:cut] if cut else data)
            if cut:
                yield chunk(parts[0] if len(parts) == 1 else b"".join(parts), self._end, self._order)
                parts.clear()

    async def merged(self, budget: Budget) -> AsyncIterator[list[Line]]:
        """Yield all lines in order."""
        for lines in merge([self._chunks(run) for run in (*self._big, *self._small)], self._order):
            if lines:
                yield lines
            await budget.yield_turn()

    def close(self) -> None:
        for file in self._files:
            file.close()


def packed(lines: list[Line], delim: str) -> bytes:
    """Encode lines, each with its delimiter."""
    return delim.join([*lines, ""]).encode("latin-1")


def _part(data: bytes, at: int, size: int) -> bytes:
    return data[at : at + size]


def _file_part(fd: int, start: int, stop: int, at: int, size: int) -> bytes:
    return os.pread(fd, min(size, stop - start - at), start + at)
