"""Read blocks of packs in storage order, with read-ahead.

- Adjacent blocks are fetched with one request of up to a megabyte, which saves thousands of requests to a remote store.
- A block is unpacked only as far as it is needed, where that saves time.
- The next runs are prepared in threads: several for a remote store, one for a local store, whose thread competes with
  the writer. A few blocks of a local store are read inline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from itertools import chain
from typing import Final, TypeVar

from ramet.store.checkout.parallel_write import IN_FLIGHT
from ramet.store.packs.index import Location
from ramet.store.packs.reader import PackReader

WHOLE_BLOCK_BYTES: Final = 48 * 1024
"""Bytes from which on unpacking the whole block costs no more than a part."""
REQUEST_BYTES: Final = 1024 * 1024
"""Bytes per request."""
INLINE_BLOCKS: Final = 400
"""Blocks of a local store up to which they are read inline."""
T = TypeVar("T")


def read_blocks(
    packs: PackReader, pool: Executor, wanted: Sequence[Location], made: Callable[[Location, bytes], T]
) -> Iterator[T]:
    """Yield `made(location, block)` for blocks in storage order, unpacked at least as far as their locations say."""

    def whole(run: list[Location]) -> list[T]:
        return list(map(made, run, packs.fetch_run(run, WHOLE_BLOCK_BYTES)))

    runs = _runs(wanted)
    if not packs.remote and len(wanted) < INLINE_BLOCKS:
        return chain.from_iterable(map(made, run, packs.fetch_run(run, WHOLE_BLOCK_BYTES)) for run in runs)
    return chain.from_iterable(_read_ahead(pool, whole, runs, IN_FLIGHT if packs.remote else 2))


def _runs(wanted: Sequence[Location]) -> Iterator[list[Location]]:
    """Group adjacent blocks of one pack."""
    run: list[Location] = []
    for place in wanted:
        if run:
            last = run[-1]
            adjacent = (place.pack, place.start) == (last.pack, last.start + last.length)
            if not adjacent or place.start + place.length - run[0].start > REQUEST_BYTES:
                yield run
                run = []
        run.append(place)
    if run:
        yield run


def _read_ahead(
    pool: Executor, whole: Callable[[list[Location]], list[T]], runs: Iterator[list[Location]], at_once: int
) -> Iterator[list[T]]:
    """Yield each run in order while the next ones are prepared."""
    waiting: deque[Future[list[T]]] = deque()
    for run in runs:
        waiting.append(pool.submit(whole, run))
        if len(waiting) == at_once:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
