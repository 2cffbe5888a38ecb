"""Typed ids of objects. Equal content has equal ids in any store, compressed or encrypted."""

from __future__ import annotations

import hashlib
from typing import Final, Literal, NewType

from blake3 import blake3

ChunkId = NewType("ChunkId", bytes)
TreeId = NewType("TreeId", bytes)
RevisionId = NewType("RevisionId", bytes)
ObjectId = ChunkId | TreeId | RevisionId

SIZE: Final = 32
TREE_TAG: Final = b"ramet tree 1\n"
REVISION_TAG: Final = b"ramet revision 1\n"


def chunk_id(data: bytes | memoryview) -> ChunkId:
    """Digest a chunk with BLAKE3, the fastest digest for bulk data."""
    return ChunkId(blake3(data).digest())


def tree_id(encoded: bytes) -> TreeId:
    return TreeId(hashlib.sha256(TREE_TAG + encoded).digest())


def revision_id(encoded: bytes) -> RevisionId:
    return RevisionId(hashlib.sha256(REVISION_TAG + encoded).digest())


def kind_of(key: bytes, data: bytes) -> Literal["chunk", "tree"] | None:
    """Return which kind of object these bytes are under this id; None when they are damaged."""
    if data[:1] >= _TREE_HEAD and tree_id(data) == key:
        return "tree"
    if chunk_id(data) == key:
        return "chunk"
    return None


_TREE_HEAD: Final = b"\x90"
"""Trees are msgpack arrays, whose first byte is this or above; few files begin so."""
EMPTY_CHUNK: Final = chunk_id(b"")
