"""Blocks of packs, as many as somebody wants, in the order in which the packs hold them.

Rules that this file keeps:
- Blocks that lie beside each other are asked for at once, up to a megabyte: a store far away answers a few dozen
  requests where it would be thousands.
- Of a block nothing after what is wanted of it is unpacked, where that saves anything.
- The next runs are made ready beside whoever writes the files: of a store far away several are waited for at once, of
  one at hand the next only, since its thread takes turns with the writer. Few blocks are not worth a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from itertools import chain
from typing import Final, TypeVar

from ramet.store.checkout.parallel_write import AHEAD
from ramet.store.packs.index import Location
from ramet.store.packs.reader import PackReader

ENOUGH: Final = 48 * 1024
"""Of a block that is wanted as far as this, unpacking all of it at once costs no more than a part."""
RUN: Final = 1024 * 1024
"""Bytes that are asked for at once."""
FEW: Final = 400
"""Blocks below which they are unpacked by whoever wants them, if their store is at hand."""
T = TypeVar("T")


def read_blocks(
    packs: PackReader, pool: Executor, wanted: Sequence[Location], made: Callable[[Location, bytes], T]
) -> Iterator[T]:
    """What is made of blocks, which are sorted by where they lie and reach at least as far as their places say."""

    def whole(run: list[Location]) -> list[T]:
        return list(map(made, run, packs.fetch_run(run, ENOUGH)))

    runs = _runs(wanted)
    if not packs.remote and len(wanted) < FEW:
        return chain.from_iterable(map(made, run, packs.fetch_run(run, ENOUGH)) for run in runs)
    return chain.from_iterable(_ahead(pool, whole, runs, AHEAD if packs.remote else 2))


def _runs(wanted: Sequence[Location]) -> Iterator[list[Location]]:
    """Blocks that lie one after the other in the same pack."""
    run: list[Location] = []
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


def _ahead(
    pool: Executor, whole: Callable[[list[Location]], list[T]], runs: Iterator[list[Location]], at_once: int
) -> Iterator[list[T]]:
    """Each run in its turn, the next ones being made meanwhile."""
    waiting: deque[Future[list[T]]] = deque()
    for run in runs:
        waiting.append(pool.submit(whole, run))
        if len(waiting) == at_once:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
