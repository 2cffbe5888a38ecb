"""`RepackWriters`: pack writers for moving objects out of damaged or mostly dead packs.

In an encrypted store a repacked object keeps its key, so that the set of readers does not change.
"""

from __future__ import annotations

from ramet.core.errors import RametError
from ramet.store.crypto.codec import as_encrypted
from ramet.store.objects.objects import Objects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


class RepackWriters:
    """One writer per encryption key."""

    def __init__(self, objects: Objects, reader: PackReader) -> None:
        self._objects, self._reader = objects, reader
        self._made: dict[bytes, PackWriter] = {}

    def for_pack(self, pack: str) -> PackWriter | None:
        """Return the writer for the objects of a pack; None when its key is unknown."""
        sealed, objects, key = as_encrypted(self._objects), self._objects, b""
        if sealed is not None:
            try:
                objects = sealed = sealed.for_pack(pack)
            except (KeyError, RametError):
                return None
            key = sealed.key_for("packs/").id
        if key not in self._made:
            self._made[key] = PackWriter(objects, self._reader)
        return self._made[key]

    @property
    def bytes_written(self) -> int:
        return sum(writer.bytes_written for writer in self._made.values())

    def finish(self) -> None:
        for writer in self._made.values():
            writer.finish()

    def abandon(self) -> None:
        for writer in self._made.values():
            writer.abandon()
