"""Trees: canonical encoding of one directory, so that a tree's id identifies its content.

An entry is a msgpack array `[name, kind, mode, mtime_ns, size, payload, group, xattrs]`; a tree is the array of its
entries, sorted by the bytes of their names. `payload` is the joined chunk ids of a file, the id of a directory's tree,
or the target of a link; `group` connects the names of a hard-linked file, 0 for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import msgspec

from ramet.store.model.ids import SIZE, ChunkId, TreeId, tree_id

FILE, DIR, LINK = 0, 1, 2
KINDS: Final[tuple[Literal["file", "dir", "link"], ...]] = ("file", "dir", "link")
"""Names of the kinds, by number."""


class Node(NamedTuple):
    """One entry of a tree."""

    name: bytes
    kind: int
    mode: int
    mtime_ns: int
    size: int
    payload: bytes
    group: int = 0
    xattrs: dict[str, bytes] = {}  # noqa: RUF012 - never changed; a tuple's default has to be something

    @property
    def chunks(self) -> list[ChunkId]:
        return [ChunkId(self.payload[i : i + SIZE]) for i in range(0, len(self.payload), SIZE)]

    @property
    def tree(self) -> TreeId:
        return TreeId(self.payload)


_encoder: Final = msgspec.msgpack.Encoder(order="deterministic")
_decoder: Final = msgspec.msgpack.Decoder(list[Node])
Row = tuple[bytes, int, int, int, int, bytes, int, dict[str, bytes]]
"""The fields of a node as a plain tuple, for hot loops over many entries; `Node(*row)` is the node."""
_rows: Final = msgspec.msgpack.Decoder(list[Row])


def encode(nodes: Iterable[Node]) -> bytes:
    return _encoder.encode(sorted(nodes))


def decode(data: bytes) -> list[Node]:
    """Decode the entries of a tree; ValueError when the bytes are not a tree."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"damaged tree: {error}") from None


def decode_rows(data: bytes) -> list[Row]:
    """As `decode`, without creating `Node` objects."""
    try:
        return _rows.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"damaged tree: {error}") from None


def hard_group(number: int, names: int) -> int:
    """Encode the `group` of a hard-linked file: the file's number and its count of names."""
    return number << 16 | min(names, 0xFFFF)


def split_group(group: int) -> tuple[int, int]:
    return group >> 16, group & 0xFFFF


EMPTY: Final = encode(())
EMPTY_ID: Final = tree_id(EMPTY)
