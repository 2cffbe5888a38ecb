"""`LargeFileWriter`: write files of many chunks with several threads.

- A bounded number of chunks is in flight, at any file size.
- A repeated chunk is copied inside the kernel from where it was written, many at once; never from a damaged copy, and
  never before it is written.
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

IN_FLIGHT: Final = 8
"""Chunks in flight."""
REMEMBERED_CHUNKS: Final = 200_000
"""Chunks whose written location is remembered."""
COPY_BYTES: Final = 8 * 1024 * 1024
"""Bytes per copy."""


class _ChunkTarget(NamedTuple):
    """A chunk, its location in the store, and its offset in the file."""

    identity: bytes
    place: Location
    at: int


class _CopyRange(NamedTuple):
    """Adjacent chunks of a file that was written before."""

    path: bytes
    start: int
    parts: list[_ChunkTarget]

    @property
    def size(self) -> int:
        return self.parts[-1].at + self.parts[-1].place.size - self.parts[0].at


class LargeFileWriter:
    """Writes the large files of one checkout, one after the other."""

    def __init__(self, packs: PackReader, pool: Executor) -> None:
        self._packs, self._pool = packs, pool
        self._placed: dict[bytes, tuple[bytes, int]] = {}
        """Path and offset of written chunks, up to a limit."""

    def write(self, file: int, path: bytes, ids: list[bytes]) -> bool:
        """Write chunks into an empty open file; returns whether all have their digests."""
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
        """Write chunks, by copying where possible; returns whether all are valid."""
        if run is not None and _copy_range(run, file):
            return True
        good = [self._fetch_chunk(file, part) for part in parts]
        return all(good)

    def _fetch_chunk(self, file: int, part: _ChunkTarget) -> bool:
        place = part.place
        frame = self._packs.fetch(place)
        data = frame if place.size == len(frame) else frame[place.offset : place.offset + place.size]
        view, at = memoryview(data), part.at
        while view:
            done = os.pwrite(file, view, at)
            view, at = view[done:], at + done
        return chunk_id(data) == part.identity


class _FileAssembly:
    """A file that is being written: chunks in flight, and ranges to copy."""

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
        if run is not None and found == (run.path, run.start + run.size) and run.size < COPY_BYTES:
            run.parts.append(part)
            return
        self._end_run()
        self._run = _CopyRange(*found, [part])

    def close(self) -> None:
        self._end_run()
        while self._running:
            self._take()

    def wait(self) -> None:
        """Stop all writes to the file."""
        for future, _ in self._running:
            if not future.cancel():
                future.exception()
        self._running.clear()

    def _end_run(self) -> None:
        if self._run is not None:
            run, self._run = self._run, None
            self._start(run, run.parts)

    def _start(self, run: _CopyRange | None, parts: list[_ChunkTarget]) -> None:
        while len(self._running) >= IN_FLIGHT:
            self._take()
        self._running.append((self._submit(self._file, run, parts), parts))
        if run is None:
            self._in_flight.add(parts[0].identity)

    def _take(self) -> None:
        """Wait for the oldest write."""
        future, parts = self._running[0]
        good = future.result()
        self._running.popleft()
        self.whole = self.whole and good
        for part in parts if good else ():
            if len(self._placed) < REMEMBERED_CHUNKS:
                self._placed.setdefault(part.identity, (self._path, part.at))
        self._in_flight.difference_update([part.identity for part in parts])


def _copy_range(run: _CopyRange, target: int) -> bool:
    """Copy chunks from an earlier file; False when they must be fetched."""
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
        return False  # another filesystem, or an old kernel
    finally:
        os.close(source)
