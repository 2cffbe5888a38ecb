"""`MemoryCache`: whole file contents cached in memory, evicted least recently used first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import ClassVar

from ramet.core.paths import Path
from ramet.core.resource import Resource

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """A whole content: bytes, the version they had (fingerprint), and how long that may be trusted."""

    data: bytes
    fingerprint: str | None
    ttl: float | None
    cached_at: float

    def fresh(self, now: float) -> bool:
        return self.ttl is None or now < self.cached_at + self.ttl


@dataclass
class MemoryCache:
    """Contents in memory, least recently used first out."""

    max_bytes: int = 256 * MIB
    entries: OrderedDict[Path, Entry] = field(default_factory=OrderedDict)
    size: int = 0

    remote: ClassVar[bool] = False
    """Whether contents are also kept where `fetch` and `share` reach them."""

    def claim(self, prefix: Path, resource: Resource) -> None:
        """Register a mount that caches its contents here, below `prefix`."""

    async def fetch(self, path: Path, version: str) -> bytes | None:
        """Return the content of that version from the shared cache."""
        return None

    async def share(self, path: Path, version: str, data: bytes) -> None:
        """Put a content into the shared cache; a failure there is ignored by design."""

    async def close(self) -> None:
        """Close connections."""

    def get(self, path: Path) -> Entry | None:
        found = self.entries.get(path)
        if found is not None:
            self.entries.move_to_end(path)
        return found

    def put(self, path: Path, entry: Entry) -> None:
        self.forget(path)
        if len(entry.data) > self.max_bytes:
            return
        self.entries[path] = entry
        self.size += len(entry.data)
        while self.size > self.max_bytes:
            _, oldest = self.entries.popitem(last=False)
            self.size -= len(oldest.data)

    def forget(self, path: Path) -> None:
        old = self.entries.pop(path, None)
        if old is not None:
            self.size -= len(old.data)

    def adopt(self, other: MemoryCache) -> None:
        """Start with the entries of another store; the bytes are shared."""
        self.entries = other.entries.copy()
        self.size = other.size

    def forget_below(self, top: Path) -> None:
        for path in [p for p in self.entries if p.under(top)]:
            self.forget(path)
