"""Finding objects in the blocks of a pack whose index is lost: nothing in a block says where one object ends.

Trees say it themselves, being msgpack; so does a kernel state, being JSON; a file's size stands in its tree. What is
found is believed only when it has the digest of something that is wanted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from ramet.store import trees
from ramet.store.ids import SIZE, chunk_id, tree_id
from ramet.store.trees import DIR, FILE

_TREE: Final = re.compile(rb"(?=[\x90-\x9f]\x98|\xdc..\x98|\xdd....\x98|\x90)", re.DOTALL)
KERNEL: Final = b'{"cache":'
"""How a kernel state begins: its keys are sorted."""
_COUNTS: Final = {0xDC: 2, 0xDD: 4}


def carve(blocks: Iterable[bytes], wanted: set[bytes]) -> dict[bytes, bytes]:
    """Wanted objects that lie in these blocks, and what the trees among them want in turn."""
    missing, sizes = set(wanted), set[int]()
    found: dict[bytes, bytes] = {}
    held = list(blocks)
    spans: list[list[tuple[int, int]]] = [[] for _ in held]
    more = True
    while more:
        more = False
        for number, block in enumerate(held):
            for start, end in _trees(block):
                identity = tree_id(block[start:end])
                if identity in missing:
                    more = True
                    found[identity] = block[start:end]
                    missing.discard(identity)
                    spans[number].append((start, end))
                    _want(block[start:end], missing, sizes, found)
    for number, block in enumerate(held):
        at = 0
        for start, end in [*sorted(spans[number]), (len(block), len(block))]:
            found.update(_files(block[at:start], missing, sizes))
            at = max(at, end)
    return found


def _want(encoded: bytes, missing: set[bytes], sizes: set[int], found: dict[bytes, bytes]) -> None:
    for node in trees.decode(encoded):
        if node.kind == DIR and node.payload not in found:
            missing.add(node.payload)
        elif node.kind == FILE and node.payload:
            missing.update(node.payload[at : at + SIZE] for at in range(0, len(node.payload), SIZE))
            if len(node.payload) == SIZE:
                sizes.add(node.size)


def _trees(block: bytes) -> list[tuple[int, int]]:
    """Where a tree may begin, and where it then ends."""
    places: list[tuple[int, int]] = []
    for start in (match.start() for match in _TREE.finditer(block)):
        end = _end(block, start)
        if end is not None:
            places.append((start, end))
    return places


def _end(block: bytes, start: int) -> int | None:
    """The end of the msgpack array of entries at a place; None when there is none."""
    first = block[start]
    width = _COUNTS.get(first, 0)
    count = int.from_bytes(block[start + 1 : start + 1 + width], "big") if width else first & 15
    at = start + 1 + width
    for _ in range(count):
        after = _value(block, at)
        if after is None:
            return None
        at = after
    return at


_FIXED: Final = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8,
}  # fmt: skip
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


def _value(block: bytes, at: int) -> int | None:
    """Where the msgpack value at a place ends."""
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
            return None  # nothing that an entry of a tree holds
    return at if at <= len(block) else None


def _files(gap: bytes, missing: set[bytes], sizes: set[int]) -> dict[bytes, bytes]:
    """Wanted chunks that lie one after the other in bytes between trees: from the front, then from the back.

    Between the two may be parts of a large file, whose sizes nobody knows.
    """
    found: dict[bytes, bytes] = {}

    def take(start: int, end: int) -> bool:
        identity = chunk_id(gap[start:end])
        if start < end and identity in missing:
            found[identity] = gap[start:end]
            return True
        return False

    at, end = 0, len(gap)
    while at < end:
        lengths = sorted({end - at, *(size for size in sizes if size <= end - at), *_json(gap[at:])}, reverse=True)
        length = next((length for length in lengths if take(at, at + length)), None)
        if length is None:
            break
        at += length
    while at < end:
        lengths = sorted((size for size in sizes if size <= end - at), reverse=True)
        kernel = gap.rfind(KERNEL, at, end)
        if kernel >= 0:
            lengths.insert(0, end - kernel)
        length = next((length for length in lengths if take(end - length, end)), None)
        if length is None:
            break
        end -= length
    take(at, end)
    return found


def _json(data: bytes) -> list[int]:
    """The length of a JSON object at the beginning of some bytes."""
    if data[:1] != b"{":
        return []
    try:
        return [json.JSONDecoder().raw_decode(data.decode("latin-1"))[1]]
    except ValueError:
        return []
