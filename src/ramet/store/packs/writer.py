"""`PackWriter`: collect objects into blocks, compress them in threads, write packs as they grow.

- The thread that adds objects owns all tables. Other threads compress, hash and write bytes in order, and return
  futures.
- A pack is durable before its index exists, and counts as stored only when both do.
- The backlog is bounded in bytes and in objects: adding blocks while compressing or writing is behind.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

from blake3 import blake3

from ramet.core.errors import RametError
from ramet.store.crypto.codec import as_encrypted, frame_codec
from ramet.store.model.ids import chunk_id
from ramet.store.objects.compression import OBJECT_BYTES, compress
from ramet.store.objects.objects import Objects, ObjectWriter
from ramet.store.packs.index import RECORD, Location, encode_index
from ramet.store.packs.reader import PackReader

BLOCK_BYTES: Final = 64 * 1024
"""Bytes of a block: reading one file unpacks one. Twice the size saves 1.4 % of space and doubles that cost."""
TREE_BLOCK_BYTES: Final = 256 * 1024
PACK_BYTES: Final = 64 * 1024 * 1024
PACK_OBJECTS: Final = 128 * 1024
"""Objects after which a pack is closed at any size, to bound the memory for its records."""
MERGE_LOOKUPS_AFTER: Final = 2000
"""Lookups after which a merged index is cheaper than separate ones."""
COPY_SEARCH_COST: Final = 64
UNMERGED_NEW_PACKS: Final = 8
"""New packs that are searched one by one; more are merged."""
BACKLOG_BYTES: Final = 32 * 1024 * 1024
"""Bytes that may wait for compression: enough to keep the threads busy while a pack is closed."""
WRITE_BYTES: Final = 1024 * 1024
"""Bytes of frames per write."""
LOW_MEMORY_DIVISOR: Final = 16
"""Divisor of the pack size in low-memory mode."""
SALT_BYTES: Final = 16
"""Random bytes at the beginning of a pack."""
_ENTRY: Final = struct.Struct(">32sII")
_entry: Final = _ENTRY.pack
_CORES: Final = min(2, os.cpu_count() or 1)
"""Compression threads: with more, the thread that adds objects is the bottleneck."""


class _Block:
    """Objects that will be compressed together."""

    __slots__ = ("ids", "parts", "size")

    def __init__(self) -> None:
        self.ids = bytearray()
        """Id, offset and size of each object, packed: a block may hold thousands of tiny files."""
        self.parts: list[bytes | memoryview] = []
        self.size = 0


class _PendingFrame(NamedTuple):
    """A block that is being compressed."""

    frame: Future[bytes]
    ids: bytearray
    held: int
    """Bytes of memory that it holds."""
    walked: bool
    """Whether it holds trees."""


class _ClosedPack(NamedTuple):
    """A pack that is durable."""

    name: str
    records: bytes
    """Its index."""
    size: int


class _PackClose(NamedTuple):
    """A pack that is being closed, and its frames of trees."""

    pack: _Pack
    closed: Future[_ClosedPack]
    walked: list[tuple[int, bytes]]


class _Pack:
    """A pack that is being written. Called by one thread at a time."""

    def __init__(self, objects: Objects, magic: bytes, grow: bool) -> None:
        self._objects, self._magic, self._grow = objects, magic, grow
        self._digest = blake3()
        self._file: ObjectWriter | None = None
        self._pieces: list[bytes] = []
        """The bytes so far, where the storage has no partial writes."""
        self._size = 0

    def write(self, frames: list[bytes]) -> None:
        if not self._size:
            frames = [self._magic, *frames]
            begin = getattr(self._objects, "open_writer", None) if self._grow else None
            self._file = None if begin is None else begin("packs", self._magic)
        data = b"".join(frames)
        self._digest.update(data)
        self._size += len(data)
        if self._file is None:
            self._pieces.append(data)
        else:
            self._file.write(data)

    def close(self, frames: list[bytes], records: list[bytes]) -> _ClosedPack:
        """Write the last frames, then the index: an index must never exist before its pack."""
        self.write(frames)
        name = self._digest.hexdigest()
        if self._file is None:
            self._objects.put(f"packs/{name}.pack", b"".join(self._pieces))
            self._pieces = []
        else:
            self._file.name(f"packs/{name}.pack")
        index = encode_index(records)
        self._objects.put(f"packs/{name}.idx", index)
        return _ClosedPack(name, index, self._size)

    def drop(self) -> None:
        if self._file is not None:
            self._file.drop()


class PackWriter:
    """Collects objects into blocks, compresses them in threads, writes packs; `finish()` makes all durable."""

    def __init__(self, objects: Objects, reader: PackReader) -> None:
        self._objects, self._reader = objects, reader
        self._codec = frame_codec(objects)
        sealed = as_encrypted(objects)
        self._keys: frozenset[bytes] | None = sealed.visible if sealed is not None else None
        """In an encrypted store, the keys of the writing workspace: objects of other keys do not count as stored."""
        self._pending_ids: set[bytes] = set()
        """Ids that were added and are not in a stored pack yet."""
        self._lookups: list[Callable[[bytes], Location | None]] | None = None
        """Lookups over all packs: one merged index, and one for each pack written since."""
        self._asked = 0
        self._chunks, self._trees = _Block(), _Block()
        self._pending: deque[_PendingFrame] = deque()
        self._held = self._waiting = 0
        """Bytes and objects in pending blocks."""
        self._last: object = None
        """The buffer that the last block is a view of."""
        self._frames: list[bytes] = []
        """Frames that are not handed to the write thread yet."""
        self._unwritten = 0
        self._newest = b""
        self._walked: list[tuple[int, bytes]] = []
        """Frames of trees with their starts: the next commit to a remote store reads some of them."""
        self._records: list[bytes] = []
        self._size = 0
        self._pack: _Pack | None = None
        self._writing: deque[Future[None]] = deque()
        self._closing: _PackClose | None = None
        self._full, self._most, self._cores = (PACK_BYTES, BACKLOG_BYTES, _CORES)
        if reader.low_memory:
            self._full, self._most, self._cores = PACK_BYTES // LOW_MEMORY_DIVISOR, BACKLOG_BYTES // 4, 1
        self._compressors: ThreadPoolExecutor | None = None
        self._write_thread: ThreadPoolExecutor | None = None
        self._durable: list[Callable[[], None]] = []
        self.objects_written = 0
        self.bytes_written = 0
        self.check_content: Callable[[bytes | memoryview], None] | None = None
        """Checks every chunk before it is stored, and may refuse it."""

    def on_durable(self, then: Callable[[], None]) -> None:
        """Call `then` once everything added is durable, and never otherwise."""
        self._durable.append(then)

    def packs(self) -> list[str]:
        return self._reader.names()

    def read(self, key: bytes) -> bytes:
        """Read an object that the store already had."""
        return self._reader.read(key)

    # ------------------------------------------------------------------------------------------------- adding

    def add(self, key: bytes, data: bytes | memoryview) -> None:
        """Store a chunk unless the store has it."""
        if key in self._pending_ids or self._in_packs(key):
            return
        if self.check_content is not None:
            self.check_content(data)
        self._add(self._chunks, key, data, BLOCK_BYTES)

    def add_all(self, keys: Sequence[bytes], contents: Sequence[bytes]) -> None:
        """Store many small chunks unless the store has them; skips empty keys."""
        if self._lookups is None or self.check_content is not None:
            for key, data in zip(keys, contents, strict=True):
                if key:
                    self.add(key, data)
            return
        mine, block, ask = self._pending_ids, self._chunks, bool(self._lookups)
        before = block.size
        for key, data in zip(keys, contents, strict=True):
            if key in mine or not key or (ask and self._in_packs(key)):
                continue
            mine.add(key)
            size = len(data)
            if before and before + size > BLOCK_BYTES:
                self._submit_block(block)
                before, ask = 0, bool(self._lookups)
            block.ids += _entry(key, before, size)
            block.parts.append(data)
            before = block.size = before + size

    def add_tree(self, key: bytes, data: bytes) -> None:
        """Store a tree unless the store has it. Trees have separate blocks: walks read little else."""
        if not (key in self._pending_ids or self._in_packs(key)):
            self._add(self._trees, key, data, TREE_BLOCK_BYTES)

    def has(self, key: bytes) -> bool:
        return key in self._pending_ids or self._in_packs(key)

    def _add(self, block: _Block, key: bytes, data: bytes | memoryview, full: int) -> None:
        size, before = len(data), block.size
        if size > OBJECT_BYTES:
            raise RametError(
                "limit_exceeded",
                f"cannot store one object of {size} bytes: the limit is {OBJECT_BYTES}",
                "divide a directory with millions of entries",
            )
        self._pending_ids.add(key)
        if before and before + size > full:
            self._submit_block(block)
            before = 0
        block.ids += _entry(key, before, size)
        block.parts.append(data)
        block.size = before + size

    def _in_packs(self, key: bytes) -> bool:
        """Return whether a stored pack has an object."""
        if self._lookups is not None:
            return bool(self._lookups) and any(find(key) is not None for find in self._lookups)
        self._asked += 1
        if self._asked > MERGE_LOOKUPS_AFTER:
            self._ask_all()
        found = self._reader.keeps(key, self._keys)
        if not found and self._keys is not None and self._reader.find(key) is not None:
            self._asked += COPY_SEARCH_COST  # searching for a copy with a usable key costs as much as many lookups
        return found

    def _ask_all(self) -> None:
        """Switch to one merged index of all packs."""
        known = self._reader.known(self._keys)
        self._lookups = [known.find] if known else []

    # -------------------------------------------------------------------------------------------- compressing

    def _submit_block(self, block: _Block, last: bool = False) -> None:
        """Submit a block for compression, and start a new one."""
        parts = block.parts
        if not parts:
            return
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        held = self._held_bytes(data)
        self._held += held
        self._waiting += len(parts)
        frame: Future[bytes]
        if last and self._compressors is None:
            # A commit this small finishes before a thread would start.
            frame = Future()
            frame.set_result(compress(data))
        else:
            if self._compressors is None:
                self._compressors = ThreadPoolExecutor(self._cores, thread_name_prefix="ramet-zstd")
                self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="ramet-packs")
            frame = self._compressors.submit(compress, data)
        self._pending.append(_PendingFrame(frame, block.ids, held, block is self._trees))
        block.ids, block.parts, block.size = bytearray(), [], 0
        if self._closing is not None and self._closing.closed.done():
            self._register_pack()
        while self._pending and self._pending[0].frame.done():
            self._append_frame()
        if self._held > self._most or self._waiting > PACK_OBJECTS // 4:
            self._drain(self._most // 2, PACK_OBJECTS // 8)

    def _held_bytes(self, data: bytes | memoryview) -> int:
        """Return the bytes of memory that a block holds: a view holds its whole buffer."""
        if type(data) is memoryview:
            if data.obj is self._last:
                return 0
            self._last = data.obj
            return memoryview(data.obj).nbytes
        return len(data)

    def _drain(self, held: int = -1, waiting: int = -1) -> None:
        """Wait for compressed blocks until the backlog is within these bounds."""
        while self._pending and (self._held > held or self._waiting > waiting):
            self._append_frame()

    def _append_frame(self) -> None:
        """Append the next compressed block to the pack."""
        pressed = self._pending.popleft()
        # Encrypted here and not in the compression threads, which would wait for the GIL again.
        frame = self._codec.frame(pressed.frame.result())
        if not self._records:
            self._begin_pack()
        start, length = self._size, len(frame)
        entries = _ENTRY.iter_unpack(pressed.ids)
        self._records += [RECORD.pack(key, start, length, offset, size) for key, offset, size in entries]
        count = len(pressed.ids) // _ENTRY.size
        self._waiting -= count
        self._held -= pressed.held
        self.objects_written += count
        if pressed.walked and self._reader.remote:
            self._walked.append((start, frame))
        self._put(frame)
        if self._size >= self._full or len(self._records) >= PACK_OBJECTS:
            self._close_pack()
        elif self._unwritten >= WRITE_BYTES and self._write_thread is not None and self._pack is not None:
            while len(self._writing) > 1:
                self._writing.popleft().result()
            self._writing.append(self._write_thread.submit(self._pack.write, self._frames))
            self._frames, self._unwritten = [], 0

    def _begin_pack(self) -> None:
        """Begin a pack with random bytes, which make its name unique."""
        self._pack = _Pack(self._objects, self._codec.magic, self._write_thread is not None)
        self._size = len(self._codec.magic)
        salt = os.urandom(SALT_BYTES)
        frame = self._codec.frame(compress(salt))
        self._records.append(RECORD.pack(chunk_id(salt), self._size, len(frame), 0, SALT_BYTES))
        self._put(frame)

    def _put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._newest = frame
        self._size += len(frame)
        self._unwritten += len(frame)

    # ------------------------------------------------------------------------------------------------ packs

    def _close_pack(self) -> None:
        """Close the pack; later frames go into a new one."""
        if self._pack is None:
            return
        self._register_pack()  # at most one pack is being closed, to bound memory
        while self._writing:
            self._writing.popleft().result()
        self._frames.append(self._codec.trailer(self._size, self._newest))
        closed: Future[_ClosedPack]
        if self._write_thread is None:
            closed = Future()
            closed.set_result(self._pack.close(self._frames, self._records))
        else:
            closed = self._write_thread.submit(self._pack.close, self._frames, self._records)
        self._closing = _PackClose(self._pack, closed, self._walked)
        self._frames, self._unwritten, self._walked, self._records, self._pack = [], 0, [], [], None

    def _register_pack(self, last: bool = False) -> None:
        """Register the closed pack as stored."""
        if self._closing is None:
            return
        name, index, size = self._closing.closed.result()
        walked, self._closing = self._closing.walked, None
        sealed = as_encrypted(self._objects)
        self._reader.add(name, index, sealed.key_for(f"packs/{name}.idx").id if sealed is not None else b"")
        for start, frame in walked:
            self._reader.cache_frame(name, start, frame)
        self.bytes_written += size + len(index)
        fresh = self._reader.index(name)
        if last:
            self._pending_ids.clear()
        else:
            self._pending_ids.difference_update(fresh.ids())
        if self._lookups is not None:
            self._lookups.append(fresh.find)
            if len(self._lookups) > UNMERGED_NEW_PACKS:
                self._ask_all()

    def finish(self) -> None:
        try:
            self._submit_block(self._chunks, last=True)
            self._submit_block(self._trees, last=True)
            self._drain()
            self._close_pack()
            self._register_pack(last=True)
        except BaseException:
            self.abandon()
            raise
        self._shut_down()
        for then in self._durable:
            then()

    def abandon(self) -> None:
        """Drop everything unwritten; packs already written are garbage for the next collection."""
        self._shut_down()
        if self._closing is not None:
            self._closing.pack.drop()
        if self._pack is not None:
            self._pack.drop()
        self._pack = self._closing = None

    def _shut_down(self) -> None:
        for pool in (self._compressors, self._write_thread):
            if pool is not None:
                pool.shutdown(cancel_futures=True)
