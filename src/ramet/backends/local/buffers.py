"""`Blocks`: file content in memory as immutable blocks, cheap to append, patch and copy.

- Blocks are replaced, never changed: a copy shares them, and a reader keeps what it started to read.
- Small appends gather in a tail until they make a block. A hole repeats one block of zeros.
- Most files are small: a file of one block is this object and a tuple of bytes, which the garbage collector skips.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

BLOCK: Final = 1024 * 1024
FULL_TAIL: Final = 64 * 1024
ZEROS: Final = bytes(BLOCK)
_ONE: Final = [0]
"""Where the block of a file begins that has one."""


class Blocks:
    __slots__ = ("_blocks", "_starts", "_tail", "_tail_size", "size")

    def __init__(self, data: bytes = b"") -> None:
        self._blocks: Sequence[bytes] = (data,) if data else ()
        self._starts: list[int] | None = None
        """Offsets of the blocks, computed on demand."""
        self._tail: list[bytes] | None = None
        self._tail_size = 0
        self.size = len(data)

    def copy(self) -> Blocks:
        self._settle()
        twin = Blocks()
        twin._blocks, twin.size = self._blocks[:], self.size
        return twin

    def append(self, data: bytes) -> None:
        if not data:
            return
        if len(data) >= FULL_TAIL or not self.size:
            self._settle()
            self._add(data, self.size)
        else:
            if self._tail is None:
                self._tail = []
            self._tail.append(data)
            self._tail_size += len(data)
            if self._tail_size >= FULL_TAIL:
                self.size += len(data)
                self._settle()
                return
        self.size += len(data)

    def _add(self, block: bytes, start: int) -> None:
        """One more block at the end, which begins there."""
        if isinstance(self._blocks, list):
            self._blocks.append(block)
        else:
            self._blocks = [*self._blocks, block] if self._blocks else (block,)
        if self._starts is not None:
            self._starts.append(start)

    def _begins(self) -> list[int]:
        if len(self._blocks) == 1:
            return _ONE
        if self._starts is None:
            self._starts = [0, *accumulate(map(len, self._blocks))][:-1]
        return self._starts

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The content of [start, stop) in blocks, as it is now; later changes do not show."""
        end = self.size if stop is None else min(stop, self.size)
        if start >= end:
            return
        self._settle()
        if start == 0 and end == self.size:
            yield from tuple(self._blocks)
            return
        starts = self._begins()
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, end - 1)
        base = starts[first]
        for block in self._blocks[first:last]:
            if start <= base and base + len(block) <= end:
                yield block
            else:
                yield block[max(0, start - base) : end - base]
            base += len(block)

    def pread(self, offset: int, size: int) -> bytes:
        parts = tuple(self.read(offset, offset + size))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def block(self, offset: int) -> bytes:
        """What follows `offset`: a block as it is kept where one begins there, so that nothing is copied."""
        if offset >= self.size:
            return b""
        self._settle()
        starts = self._begins()
        number = bisect_right(starts, offset) - 1
        block, begin = self._blocks[number], offset - starts[number]
        if begin == 0 and len(block) <= 4 * BLOCK:
            return block
        return block[begin : begin + BLOCK]

    def payload(self, store: object) -> bytes | None:
        """What this content is called in a store that has it already; None when it has to be read to know."""
        return None

    def common(self, other: Blocks) -> int:
        """How many bytes both begin with for sure: those of the blocks that they share."""
        self._settle()
        other._settle()
        size = 0
        for mine, theirs in zip(self._blocks, other._blocks, strict=False):
            if mine is not theirs:
                break
            size += len(mine)
        return size

    def join(self) -> bytes:
        """Everything in one piece, which is kept that way while the file is small."""
        self._settle()
        if not self._blocks:
            return b""
        if len(self._blocks) > 1:
            whole = b"".join(self._blocks)
            if self.size > BLOCK:
                return whole
            self._blocks, self._starts = (whole,), None
        return self._blocks[0]

    def write(self, offset: int, data: bytes) -> None:
        """Replace what is at `offset`; a gap before it becomes a hole."""
        if offset == self.size:
            self.append(data)
            return
        if not data:
            return
        if offset > self.size:
            self.resize(offset)
            self.append(data)
            return
        end = offset + len(data)
        self._settle()
        before = self._part(0, offset)
        after = self._part(end, self.size) if end < self.size else []
        self._set([*before, data, *after])

    def resize(self, size: int) -> None:
        self._settle()
        if size <= self.size:
            self._set(self._part(0, size))
            return
        gap = size - self.size
        blocks = [*self._blocks, *[ZEROS] * (gap // BLOCK)]
        if gap % BLOCK:
            blocks.append(bytes(gap % BLOCK))
        self._set(blocks)

    def _part(self, start: int, end: int) -> list[bytes]:
        """The blocks of [start, end), cut so that later patches copy at most one block's worth."""
        parts: list[bytes] = []
        for block in self.read(start, end):
            if len(block) > 2 * BLOCK:
                parts.extend(block[i : i + BLOCK] for i in range(0, len(block), BLOCK))
            else:
                parts.append(block)
        return parts

    def _set(self, blocks: list[bytes]) -> None:
        self._blocks = blocks if len(blocks) > 1 else tuple(blocks)
        self._starts, self.size = None, sum(map(len, blocks))

    def _settle(self) -> None:
        """Make the tail a block; merge it with a small last block so that reading between appends stays linear."""
        tail = self._tail
        if tail is None:
            return
        start = self.size - self._tail_size
        if self._blocks and len(self._blocks[-1]) < FULL_TAIL:
            last = self._blocks[-1]
            if isinstance(self._blocks, list):
                self._blocks.pop()
            else:
                self._blocks = ()
            if self._starts is not None:
                self._starts.pop()
            tail.insert(0, last)
            start -= len(last)
        self._tail, self._tail_size = None, 0
        self._add(b"".join(tail), start)
