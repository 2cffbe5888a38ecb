"""Blocks of packs, as many as somebody wants, in the order in which the packs hold them.

Rules that this file keeps:
- Blocks that lie beside each other are asked for at once, up to a megabyte: a store far away answers a few dozen
  requests where it would be thousands.
- Of a block nothing after what is wanted of it is unpacked, where that saves anything.
- Of a local store one run of blocks is held at a time, and each is unpacked when it is its turn. A thread beside
  whoever writes small files costs more than it saves: every system call hands the interpreter over. A store far away is
  waited for, so there the next runs come meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from itertools import chain
from typing import Final

from ramet.store.assembling import AHEAD
from ramet.store.indexes import Place
from ramet.store.packs import PackReader

ENOUGH: Final = 48 * 1024
"""Of a block that is wanted as far as this, unpacking all of it at once costs no more than a part."""
RUN: Final = 1024 * 1024
"""Bytes that are asked for at once."""


def unpacked(packs: PackReader, pool: Executor, wanted: Sequence[Place]) -> Iterator[bytes]:
    """Blocks, sorted by where they lie, each at least as far as the size of its place says."""
    runs = _runs(wanted)
    if not packs.remote:
        return chain.from_iterable(packs.fetch_run(run, ENOUGH) for run in runs)
    return chain.from_iterable(_ahead(packs, pool, runs))


def _runs(wanted: Sequence[Place]) -> Iterator[list[Place]]:
    """Blocks that lie one after the other in the same pack."""
    run: list[Place] = []
    for place in wanted:
        if run:
            last = run[-1]
            beside = (place.pack, place.start) == (last.pack, last.start + last.length)
            if not beside or place.start + place.length - run[0].start > RUN:
                yield run
                run = []
        run.append(place)
    if run:
        yield run


def _ahead(packs: PackReader, pool: Executor, runs: Iterator[list[Place]]) -> Iterator[list[bytes]]:
    """Each run in its turn, the next ones being fetched meanwhile."""
    waiting: deque[Future[list[bytes]]] = deque()
    for run in runs:
        waiting.append(pool.submit(_whole, packs, run))
        if len(waiting) == AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _whole(packs: PackReader, run: list[Place]) -> list[bytes]:
    return list(packs.fetch_run(run, ENOUGH))
