"""How a block of objects lies in a pack: a zstd frame, in an encrypted store sealed as well.

Each block is sealed on its own, so that reading one file opens a few hundred kilobytes and not a pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol, cast

from ramet.core.errors import RametError
from ramet.store.objects.compression import decompress, split_frame
from ramet.store.objects.objects import Objects

if TYPE_CHECKING:
    from ramet.store.crypto.encrypted_objects import EncryptedObjects
    from ramet.store.crypto.wrapping_keys import KeySource

MARKER: Final = "store.json"
"""The object that says how a store is encrypted."""
PACK_MAGIC: Final = b"RAMETPK1"
SEALED_MAGIC: Final = b"RAMETPS1"


class FrameCodec(Protocol):
    magic: bytes

    def frame(self, packed: bytes) -> bytes:
        """A compressed block as it lies in a pack."""
        ...

    def unpack(self, frame: bytes, most: int | None = None) -> bytes:
        """The block of a frame, or its first bytes; `DamagedFrame` when it is none."""
        ...

    def trailer(self, size: int, last: bytes) -> bytes:
        """What follows the frames of a pack that has this size and whose last frame this is."""
        ...

    def blocks(self, pack: bytes) -> Iterator[tuple[int, bytes]]:
        """The blocks of a pack one after the other, without its index; a damaged one ends what can be found so."""
        ...

    def is_end(self, pack: bytes, at: int) -> bool:
        """Whether the frames of a pack may end here."""
        ...


class PlainFrameCodec:
    magic = PACK_MAGIC

    def frame(self, packed: bytes) -> bytes:
        return packed

    def unpack(self, frame: bytes, most: int | None = None) -> bytes:
        return decompress(frame, most)

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
    """The objects of an encrypted store; None for any other. What they are made of is imported only where they are."""
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
    """A store's objects for the holder of its key. A store that is not encrypted costs one look for its marker.

    `claim` says which marker holds of those that several make at once, where the objects cannot.
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
