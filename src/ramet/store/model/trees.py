"""Trees: one directory as canonical bytes. Equal directories encode equally, so a tree's id is its content.

An entry is a msgpack array `[name, kind, mode, mtime_ns, size, payload, group, xattrs]`; a tree is the array of its
entries, sorted by the bytes of their names. `payload` is the joined chunk ids of a file, the id of a directory's tree,
or the target of a link; `group` ties the names of a hard-linked file together, 0 for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from ramet.store.model.ids import SIZE, ChunkId, TreeId, tree_id

FILE, DIR, LINK = 0, 1, 2


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
"""The fields of a node as they are, for whoever looks at very many of them: `Node(*row)` is the node."""
_rows: Final = msgspec.msgpack.Decoder(list[Row])


def encode(nodes: Iterable[Node]) -> bytes:
    return _encoder.encode(sorted(nodes))


def decode(data: bytes) -> list[Node]:
    """The entries of a tree; ValueError when the bytes are not one."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"damaged tree: {error}") from None


def decode_rows(data: bytes) -> list[Row]:
    """As `decode`, but the fields of each entry alone."""
    try:
        return _rows.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"damaged tree: {error}") from None


def hard_group(number: int, names: int) -> int:
    """The `group` of a file with several names: which file, and how many names it has."""
    return number << 16 | min(names, 0xFFFF)


def split_group(group: int) -> tuple[int, int]:
    return group >> 16, group & 0xFFFF


EMPTY: Final = encode(())
EMPTY_ID: Final = tree_id(EMPTY)
