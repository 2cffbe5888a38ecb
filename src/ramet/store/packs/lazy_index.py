"""Undecrypted indexes of encrypted packs: opening a store does not need the keys of all its workspaces."""

from __future__ import annotations

from collections.abc import Set


class LazyIndexes:
    """Encrypted indexes, by the key that opens them."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, dict[str, bytes]] = {}
        self._keys: dict[str, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def names(self) -> list[str]:
        return list(self._keys)

    def put(self, name: str, key: bytes, index: bytes) -> None:
        self._keys[name] = key
        self._by_key.setdefault(key, {})[name] = index

    def small(self, most: int) -> dict[str, bytes]:
        """Return the indexes of up to `most` bytes, by pack name."""
        mine = [item for indexes in list(self._by_key.values()) for item in list(indexes.items())]
        return {name: index for name, index in mine if len(index) <= most}

    def drop(self, names: list[str]) -> None:
        """Drop removed packs."""
        for name in names:
            key = self._keys.pop(name, None)
            if key is not None:
                del self._by_key[key][name]

    def take(self, keys: Set[bytes] | None) -> list[tuple[str, bytes]]:
        """Remove and return the indexes that these keys open; with None, all."""
        found: list[tuple[str, bytes]] = []
        for key in list(self._by_key) if keys is None else self._by_key.keys() & keys:
            mine = self._by_key.pop(key)
            found.extend(mine.items())
            for name in mine:
                self._keys.pop(name, None)
        return found
