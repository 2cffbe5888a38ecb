"""Files of many chunks, put together by several threads: each chunk is fetched, checked and written where it belongs.

Rules that this file keeps:
- No more than a few chunks are on their way at a time, however large a file is.
- What was written once is copied from there when it comes again, inside the kernel and many chunks at once; never from
  a place where something else than the chunk was found, and never before it is there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Final, NamedTuple

from ramet.store.model.ids import chunk_id
from ramet.store.packs.index import Location
from ramet.store.packs.reader import PackReader

AHEAD: Final = 8
"""Chunks that are on their way."""
PLACED: Final = 200_000
"""Chunks whose place is remembered."""
RUN: Final = 8 * 1024 * 1024
"""Bytes that are copied at a time."""


class _ChunkTarget(NamedTuple):
    """A chunk, where it lies in the store, and where in the file it belongs."""

    identity: bytes
    place: Location
    at: int


class _CopyRange(NamedTuple):
    """Chunks that lie one after the other in a file that was written before."""

    path: bytes
    start: int
    parts: list[_ChunkTarget]

    @property
    def size(self) -> int:
        return self.parts[-1].at + self.parts[-1].place.size - self.parts[0].at


class LargeFileWriter:
    """Writes large files of one checkout, one after the other."""

    def __init__(self, packs: PackReader, pool: Executor) -> None:
        self._packs, self._pool = packs, pool
        self._placed: dict[bytes, tuple[bytes, int]] = {}
        """Where in which file chunks were written, as long as there are not too many."""

    def write(self, file: int, path: bytes, ids: list[bytes]) -> bool:
        """Write chunks one after the other into an empty file that is open; whether all are what their ids say."""
        work = _FileAssembly(file, path, self._placed, self._submit)
        places = self._packs.places(set(ids))
        at = 0
        try:
            for identity in ids:
                work.add(_ChunkTarget(identity, places[identity], at))
                at += places[identity].size
            work.close()
        except BaseException:
            work.wait()
            raise
        return work.whole

    def _submit(self, file: int, run: _CopyRange | None, parts: list[_ChunkTarget]) -> Future[bool]:
        return self._pool.submit(self._make, file, run, parts)

    def _make(self, file: int, run: _CopyRange | None, parts: list[_ChunkTarget]) -> bool:
        """Write chunks, if they can be had from a file by copying; whether all of them are good."""
        if run is not None and _copied(run, file):
            return True
        good = [self._fetched(file, part) for part in parts]
        return all(good)

    def _fetched(self, file: int, part: _ChunkTarget) -> bool:
        place = part.place
        frame = self._packs.fetch(place)
        data = frame if place.size == len(frame) else frame[place.offset : place.offset + place.size]
        view, at = memoryview(data), part.at
        while view:
            done = os.pwrite(file, view, at)
            view, at = view[done:], at + done
        return chunk_id(data) == part.identity


class _FileAssembly:
    """A file that is being written: what is on its way, and what can be copied at once."""

    def __init__(
        self,
        file: int,
        path: bytes,
        placed: dict[bytes, tuple[bytes, int]],
        submit: Callable[[int, _CopyRange | None, list[_ChunkTarget]], Future[bool]],
    ) -> None:
        self._file, self._path, self._placed, self._submit = file, path, placed, submit
        self._running: deque[tuple[Future[bool], list[_ChunkTarget]]] = deque()
        self._in_flight: set[bytes] = set()
        self._run: _CopyRange | None = None
        self.whole = True

    def add(self, part: _ChunkTarget) -> None:
        while part.identity in self._in_flight:
            self._take()
        found = self._placed.get(part.identity)
        if found is None:
            self._end_run()
            self._start(None, [part])
            return
        run = self._run
        if run is not None and found == (run.path, run.start + run.size) and run.size < RUN:
            run.parts.append(part)
            return
        self._end_run()
        self._run = _CopyRange(*found, [part])

    def close(self) -> None:
        self._end_run()
        while self._running:
            self._take()

    def wait(self) -> None:
        """Let nothing go on that writes to the file."""
        for future, _ in self._running:
            if not future.cancel():
                future.exception()
        self._running.clear()

    def _end_run(self) -> None:
        if self._run is not None:
            run, self._run = self._run, None
            self._start(run, run.parts)

    def _start(self, run: _CopyRange | None, parts: list[_ChunkTarget]) -> None:
        while len(self._running) >= AHEAD:
            self._take()
        self._running.append((self._submit(self._file, run, parts), parts))
        if run is None:
            self._in_flight.add(parts[0].identity)

    def _take(self) -> None:
        """Wait for what began first."""
        future, parts = self._running[0]
        good = future.result()
        self._running.popleft()
        self.whole = self.whole and good
        for part in parts if good else ():
            if len(self._placed) < PLACED:
                self._placed.setdefault(part.identity, (self._path, part.at))
        self._in_flight.difference_update([part.identity for part in parts])


def _copied(run: _CopyRange, target: int) -> bool:
    """Copy chunks from where they were written; False when that fails, and all have to be written anew."""
    try:
        source = os.open(run.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        at, end, to = run.start, run.start + run.size, run.parts[0].at
        while at < end:
            moved = os.copy_file_range(source, target, end - at, at, to)
            if not moved:
                return False
            at, to = at + moved, to + moved
        return True
    except OSError:
        return False  # another file system, or a kernel without it
    finally:
        os.close(source)
