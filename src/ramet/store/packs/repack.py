"""`RepackWriters`: who writes anew what lies in packs that are damaged or mostly dead.

The rule that this file keeps: in an encrypted store what is written anew has the key that it had. Nobody can read more
because of it, nobody less.
"""

from __future__ import annotations

from ramet.core.errors import RametError
from ramet.store.crypto.codec import as_encrypted
from ramet.store.objects.objects import Objects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


class RepackWriters:
    """A writer for each key; one for all in a store that is not encrypted."""

    def __init__(self, objects: Objects, reader: PackReader) -> None:
        self._objects, self._reader = objects, reader
        self._made: dict[bytes, PackWriter] = {}

    def for_pack(self, pack: str) -> PackWriter | None:
        """The writer for what was in a pack; None when nothing says with which key that was sealed."""
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
