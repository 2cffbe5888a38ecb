"""Salvage objects from pack blocks without an index, which have no boundaries.

Trees (msgpack) and kernel states (JSON) delimit themselves; the size of a file is in its tree; a chunk of a large file
ends at a content-defined boundary, and its last chunk has the rest of the size. A candidate counts only when its digest
is one of the missing ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Set
from typing import Final

from blake3 import blake3

from ramet.core.errors import RametError
from ramet.store.model import trees
from ramet.store.model.chunker import first_cut
from ramet.store.model.ids import SIZE, chunk_id, tree_id
from ramet.store.model.trees import DIR, FILE

_TREE: Final = re.compile(rb"(?=[\x90-\x9f]\x98|\xdc..\x98|\xdd....\x98|\x90)", re.DOTALL)
KERNEL: Final = b'{"cache":'
"""First bytes of a kernel state: its keys are sorted."""
_COUNTS: Final = {0xDC: 2, 0xDD: 4}


class MissingObjects:
    """Objects that revisions need and no complete copy has, with what is known about their sizes.

    `good` are the ids of readable objects, read by `read`; `size_of` returns their size.
    """

    def __init__(
        self, good: Set[bytes], read: Callable[[bytes], bytes], size_of: Callable[[bytes], int | None]
    ) -> None:
        self.missing: set[bytes] = set()
        self.sizes: set[int] = set()
        """Possible sizes of missing chunks."""
        self._good, self._read, self._size_of = good, read, size_of
        self._found: dict[bytes, int] = {}
        self._cut: dict[bytes, int] = {}
        """Sizes of files with missing chunks, by their joined chunk ids."""
        self._seen: set[bytes] = set()

    @property
    def parts(self) -> bool:
        """Whether chunks of large files are missing."""
        return bool(self._cut)

    def chunk(self, identity: bytes) -> None:
        if not self._has(identity):
            self.missing.add(identity)

    def tree(self, top: bytes) -> None:
        """Add a tree and everything below it."""
        pending = [top]
        while pending:
            identity = pending.pop()
            if identity in self._seen or identity in self._found:
                continue
            self._seen.add(identity)
            try:
                if identity not in self._good:
                    raise ValueError("not there")
                pending += self._scan_tree(self._read(identity))
            except (ValueError, RametError):
                self.missing.add(identity)

    def knows(self, identity: bytes) -> bool:
        """Return whether an id is or was missing."""
        return identity in self.missing or identity in self._found

    def take(self, identity: bytes, held: bytes) -> None:
        """Record that an object was found."""
        self.missing.discard(identity)
        self._found[identity] = len(held)

    def take_tree(self, identity: bytes, held: bytes) -> None:
        self.take(identity, held)
        for below in self._scan_tree(held):
            self.tree(below)

    def learn(self) -> bool:
        """Derive sizes from found objects: of a file with one missing chunk, the rest. Returns whether there are new
        ones."""
        before = len(self.sizes)
        for payload, size in list(self._cut.items()):
            ids = [payload[at : at + SIZE] for at in range(0, len(payload), SIZE)]
            unknown = [identity for identity in ids if identity in self.missing]
            if not unknown:
                del self._cut[payload]
            elif len(set(unknown)) == 1:
                known = sum(self._length(identity) for identity in ids if identity != unknown[0])
                self.sizes.add((size - known) // len(unknown))
        return len(self.sizes) > before

    def _length(self, identity: bytes) -> int:
        return self._found.get(identity) or self._size_of(identity) or 0

    def _has(self, identity: bytes) -> bool:
        return identity in self._good or identity in self._found

    def _scan_tree(self, encoded: bytes) -> list[bytes]:
        """Add the missing chunks of a tree's files; returns the trees below."""
        nodes = trees.decode(encoded)
        for node in nodes:
            if node.kind == FILE:
                payload = node.payload
                lacking = [
                    part for at in range(0, len(payload), SIZE) if not self._has(part := payload[at : at + SIZE])
                ]
                self.missing.update(lacking)
                if lacking and len(payload) == SIZE:
                    self.sizes.add(node.size)
                elif lacking:
                    self._cut[payload] = node.size
        return [node.payload for node in nodes if node.kind == DIR]


def find_objects(blocks: Iterable[bytes], wants: MissingObjects) -> dict[bytes, bytes]:
    """Find missing objects in these blocks, and in turn those that found trees need."""
    found: dict[bytes, bytes] = {}
    held = list(blocks)
    spans: list[list[tuple[int, int]]] = [[] for _ in held]
    more = True
    while more:
        more = False
        for number, block in enumerate(held):
            for start, end in _trees(block):
                identity = tree_id(block[start:end])
                if identity not in found and wants.knows(identity):  # a copy elsewhere may have another key
                    more = True
                    found[identity] = block[start:end]
                    if end - start > 1:  # the empty tree is one byte and matches anywhere
                        spans[number].append((start, end))
                    wants.take_tree(identity, found[identity])
    more = True
    while more:
        for number, block in enumerate(held):
            at = 0
            for start, end in [*sorted(spans[number]), (len(block), len(block))]:
                if start > at:
                    found.update(_files(block[at:start], wants))
                at = max(at, end)
        more = wants.learn()
    return found


def _trees(block: bytes) -> list[tuple[int, int]]:
    """Return the candidate ranges of trees."""
    places: list[tuple[int, int]] = []
    for start in (match.start() for match in _TREE.finditer(block)):
        end = _array_end(block, start)
        if end is not None:
            places.append((start, end))
    return places


def _array_end(block: bytes, start: int) -> int | None:
    """Return the end of a msgpack array of entries; None when there is none."""
    first = block[start]
    width = _COUNTS.get(first, 0)
    count = int.from_bytes(block[start + 1 : start + 1 + width], "big") if width else first & 15
    at = start + 1 + width
    for _ in range(count):
        after = _value_end(block, at)
        if after is None:
            return None
        at = after
    return at


_FIXED: Final = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _value_end(block: bytes, at: int) -> int | None:
    """Return the end of the msgpack value at an offset."""
    pending = 1
    while pending:
        if at >= len(block):
            return None
        first = block[at]
        at += 1
        pending -= 1
        if first <= 0x7F or first >= 0xE0:
            continue
        if first in _FIXED:
            at += _FIXED[first]
        elif first in _SIZED:
            width = _SIZED[first]
            at += width + int.from_bytes(block[at : at + width], "big")
        elif 0xA0 <= first <= 0xBF:
            at += first & 31
        elif 0x90 <= first <= 0x9F:
            pending += first & 15
        elif 0x80 <= first <= 0x8F:
            pending += 2 * (first & 15)
        else:
            return None  # not part of a tree entry
    return at if at <= len(block) else None


def _files(gap: bytes, wants: MissingObjects) -> dict[bytes, bytes]:
    """Find adjacent missing chunks between trees: from the front, then from the back.

    Bytes of unknown objects may lie between the two.
    """
    found: dict[bytes, bytes] = {}

    def take(start: int, end: int) -> bool:
        identity = chunk_id(gap[start:end])
        if start == end or not wants.knows(identity):
            return False
        found[identity] = gap[start:end]
        wants.take(identity, gap[start:end])
        return True

    at, end = 0, len(gap)
    while at < end:
        lengths = {end - at, *(size for size in wants.sizes if size <= end - at), *_json_length(gap[at:])}
        if wants.parts:
            lengths.add(first_cut(gap[at:]))
        length = _longest(gap[at:], sorted(lengths), wants)
        if not length:
            break
        take(at, at + length)
        at += length
    while at < end:
        sizes = sorted((size for size in wants.sizes if size <= end - at), reverse=True)
        kernel = gap.rfind(KERNEL, at, end)
        if kernel >= 0:
            sizes.insert(0, end - kernel)
        length = next((size for size in sizes if take(end - size, end)), 0)
        if not length:
            break
        end -= length
    take(at, end)
    return found


def _longest(data: bytes, lengths: list[int], wants: MissingObjects) -> int:
    """Return the longest of these lengths at which the bytes begin with a missing chunk; 0 for none. Hashes
    incrementally.

    The longest, because a large file may begin like a small one.
    """
    view, digest, done, found = memoryview(data), blake3(), 0, 0
    for length in lengths:
        digest.update(view[done:length])
        done = length
        if length and wants.knows(digest.digest()):
            found = length
    return found


def _json_length(data: bytes) -> list[int]:
    """Return the length of the JSON object at the start of the bytes."""
    if data[:1] != b"{":
        return []
    try:
        return [json.JSONDecoder().raw_decode(data.decode("latin-1"))[1]]
    except ValueError:
        return []
