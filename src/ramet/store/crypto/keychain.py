"""`Keychain`: all keys of an open store, and the objects that belong to no workspace.

Keyrings are encrypted with the common key only, so that reading a damaged one cannot search keyrings for its key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ramet.store.crypto.format import KEY_ID, DataKey, NameCipher, Sealer, damaged_object, derive, padded_size
from ramet.store.crypto.keyrings import Keyrings
from ramet.store.crypto.wrapping_keys import WrappingKey
from ramet.store.objects.objects import Objects, delete_all

COMMON: Final = bytes(KEY_ID)
"""Id of the common key, for refs, tags and the cursors of feeds."""


class Keychain:
    """The keys of one open store. `check` refuses a wrapping key that no longer opens the store."""

    def __init__(
        self,
        raw: Objects,
        root: bytes,
        key: WrappingKey,
        check: Callable[[WrappingKey], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.names = NameCipher(root)
        self.common = DataKey(COMMON, derive(root, b"ramet common 1"))
        mask = derive(root, b"ramet mask 1")
        self.sealer = Sealer(mask, self.find)
        self.common_sealer = Sealer(mask, self._only_common)
        self._known: dict[bytes, DataKey] = {COMMON: self.common}
        self.rings = Keyrings(CommonObjects(raw, self), key, clock, check)

    def __repr__(self) -> str:
        return "<keychain>"

    def find(self, identity: bytes) -> DataKey:
        found = self._known.get(identity)
        if found is None:
            found = self._known[identity] = DataKey(identity, self.rings.secret(identity))
        return found

    def _only_common(self, identity: bytes) -> DataKey:
        if identity != COMMON:
            raise damaged_object()
        return self.common

    def forget(self) -> None:
        self._known = {COMMON: self.common}
        self.rings.forget()


def label_of(key: str) -> bytes:
    """Return the label that binds an encrypted object to its key: swapped objects do not decrypt."""
    return b"ramet object 1\0" + key.encode("utf-8", "surrogateescape")


class CommonObjects:
    """Objects of no workspace; names and bytes are encrypted with the common key."""

    def __init__(self, raw: Objects, keychain: Keychain) -> None:
        self.raw, self.keychain = raw, keychain
        self._sealer = keychain.common_sealer
        self.local: str | None = getattr(raw, "local", None)
        self.remote: bool = getattr(raw, "remote", False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def key_for(self, key: str) -> DataKey:
        return self.keychain.common

    def get(self, key: str) -> bytes:
        return self.decrypt(key, self.raw.get(self.keychain.names.encrypt(key)))

    def decrypt(self, key: str, sealed: bytes) -> bytes:
        return self._sealer.open(label_of(key), sealed)

    def get_range(self, key: str, start: int, size: int) -> bytes:
        return self.get(key)[start : start + size]

    def _encrypt(self, key: str, data: bytes) -> bytes:
        pad = padded_size(len(data)) - len(data)
        return self.keychain.sealer.seal(self.key_for(key), label_of(key), data, pad)

    def put(self, key: str, data: bytes) -> None:
        self.raw.put(self.keychain.names.encrypt(key), self._encrypt(key, data))

    def put_unsynced(self, key: str, data: bytes) -> None:
        """As `put`, without fsync where the storage supports that."""
        getattr(self.raw, "put_unsynced", self.raw.put)(self.keychain.names.encrypt(key), self._encrypt(key, data))

    def create(self, key: str, data: bytes) -> bool:
        return self.raw.create(self.keychain.names.encrypt(key), self._encrypt(key, data))

    def delete(self, key: str) -> None:
        self.raw.delete(self.keychain.names.encrypt(key))

    def delete_unsynced(self, key: str) -> None:
        """As `delete`, without fsync where the storage supports that."""
        getattr(self.raw, "delete_unsynced", self.raw.delete)(self.keychain.names.encrypt(key))

    def delete_all(self, keys: Sequence[str]) -> None:
        delete_all(self.raw, [self.keychain.names.encrypt(key) for key in keys])

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        names = self.keychain.names
        if names.is_clear(prefix):
            yield from self.raw.list(prefix, after)
            return
        folder = prefix.rpartition("/")[0]
        inside = names.encrypt(folder) + "/" if folder else ""
        low = ""
        if after.rpartition("/")[0] == folder and folder:
            last = names.encrypt(after).rpartition("/")[2]
            low = inside + last if last == after.rpartition("/")[2] else ""
        plain = (names.decrypt(key) for key in self.raw.list(inside, low))
        yield from sorted(key for key in plain if key is not None and key.startswith(prefix) and key > after)
