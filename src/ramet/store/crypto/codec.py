"""`FrameCodec`: how a block of objects is stored in a pack, as a zstd frame, encrypted or not.

Each block is encrypted separately, so that reading one file decrypts a block and not a whole pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol, cast

from ramet.core.errors import RametError
from ramet.store.objects.compression import OBJECT_BYTES, decompress, split_frame
from ramet.store.objects.objects import Objects

if TYPE_CHECKING:
    from ramet.store.crypto.encrypted_objects import EncryptedObjects
    from ramet.store.crypto.wrapping_keys import KeySource

MARKER: Final = "store.json"
"""Key of the object that describes the encryption of a store."""
PACK_MAGIC: Final = b"RAMETPK1"
SEALED_MAGIC: Final = b"RAMETPS1"


class FrameCodec(Protocol):
    magic: bytes

    def frame(self, packed: bytes) -> bytes:
        """Encode a compressed block as a frame of a pack."""
        ...

    def unpack(self, frame: bytes, most: int | None = None, bound: int = OBJECT_BYTES) -> bytes:
        """Decode the block of a frame, or its first `most` bytes; `DamagedFrame` also when it is above `bound`."""
        ...

    def trailer(self, size: int, last: bytes) -> bytes:
        """Return the bytes after the frames of a pack, given its size and its last frame."""
        ...

    def blocks(self, pack: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the blocks of a pack with their offsets, without its index; stops at the first damaged one."""
        ...

    def is_end(self, pack: bytes, at: int) -> bool:
        """Return whether the frames of a pack may end at this offset."""
        ...


class PlainFrameCodec:
    magic = PACK_MAGIC

    def frame(self, packed: bytes) -> bytes:
        return packed

    def unpack(self, frame: bytes, most: int | None = None, bound: int = OBJECT_BYTES) -> bytes:
        return decompress(frame, most, bound)

    def trailer(self, size: int, last: bytes) -> bytes:
        return b""

    def blocks(self, pack: bytes) -> Iterator[tuple[int, bytes]]:
        at = len(self.magic)
        while at < len(pack) and (found := split_frame(pack[at:])) is not None:
            yield at, found[0]
            at += found[1]

    def is_end(self, pack: bytes, at: int) -> bool:
        return at == len(pack)


def as_encrypted(objects: Objects) -> EncryptedObjects | None:
    """Return the objects of an encrypted store, None for a plain one, without importing the encryption."""
    return cast("EncryptedObjects", objects) if hasattr(objects, "keychain") else None


def require_encrypted(objects: Objects) -> EncryptedObjects:
    found = as_encrypted(objects)
    if found is None:
        raise RametError(
            "unsupported", "this store is not encrypted",
            "a store is encrypted from the start: with key=, or RAMET_KEY and `keys init`",
        )  # fmt: skip
    return found


def unlock(
    objects: Objects,
    key: KeySource | None,
    plain_cache: bool,
    clock: Callable[[], float],
    claim: Callable[[bytes], bytes] | None = None,
) -> Objects:
    """Open the objects of a store with its key. A plain store costs one lookup of its marker.

    `claim` decides which marker wins when several processes create the store, where the objects cannot.
    """
    if key is None and as_encrypted(objects) is None:
        try:
            objects.get(MARKER)
        except KeyError:
            return objects
    from ramet.store.crypto.encrypted_objects import open_encrypted

    return open_encrypted(objects, key, plain_cache=plain_cache, clock=clock, claim=claim)


def frame_codec(objects: Objects) -> FrameCodec:
    sealed = as_encrypted(objects)
    return PlainFrameCodec() if sealed is None else sealed.frames
