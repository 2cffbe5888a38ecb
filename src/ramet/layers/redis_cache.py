"""`RedisCache`: file contents cached in a Redis that machines share.

Rules that this file keeps:
- The key is the resource's description, the path and the version, so a hit is what the backend has now. Nothing is
  overwritten or invalidated.
- A content without a version, or of a resource that cannot describe itself, stays in memory.
- Damaged data counts as absent. A Redis that is full, slow or gone costs time, never a read: after a failure it is not
  asked for a while.
- Redis bounds it: entries expire, and `maxmemory` with an LRU policy makes room.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import zlib
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from ramet.core.errors import missing_extra
from ramet.core.paths import Path
from ramet.core.resource import Described, Resource, extension
from ramet.layers.memory_cache import MIB, MemoryCache

PATIENCE: Final = 2.0
"""Seconds to wait for an answer."""
PAUSE: Final = 10.0
"""Seconds without a request after a failure."""


@dataclass
class RedisCache(MemoryCache):
    """A `MemoryCache` whose contents are also kept in the Redis at `url`, for `seconds` after they were last stored."""

    url: str = field(default="redis://localhost:6379/0", repr=False)
    prefix: str = "ramet"
    seconds: int = 7 * 24 * 3600
    max_file_bytes: int = 32 * MIB
    _identities: dict[Path, str] = field(default_factory=dict)
    _clients: dict[asyncio.AbstractEventLoop, Any] = field(default_factory=dict)
    _silent_until: float = 0.0

    remote: ClassVar[bool] = True

    def claim(self, prefix: Path, resource: Resource) -> None:
        described = extension(resource, Described)  # type: ignore[type-abstract]
        if described is not None:
            description = described.describe()
            text = json.dumps([description.type, description.config], sort_keys=True, default=str)
            self._identities[prefix] = hashlib.sha256(text.encode()).hexdigest()

    def _key(self, path: Path, version: str) -> str | None:
        prefix = path
        while prefix not in self._identities:
            if len(prefix) <= 1:
                return None
            prefix = prefix.parent
        parts = f"{self._identities[prefix]}\0{version}\0{path.below(prefix)}".encode("utf-8", "surrogateescape")
        return f"{self.prefix}:cache:{hashlib.sha256(parts).hexdigest()}"

    def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            try:
                from redis.asyncio import Redis
            except ModuleNotFoundError:
                raise missing_extra("redis", "a cache in Redis") from None
            found = Redis.from_url(self.url, socket_connect_timeout=PATIENCE, socket_timeout=PATIENCE)
            self._clients[loop] = found
        return found

    async def _ask(self, *words: object) -> bytes | None:
        """One command; None when it fails, and for a while after."""
        if time.monotonic() < self._silent_until:
            return None
        client = self._client()
        try:
            answer: bytes | None = await client.execute_command(*words)
            return answer
        except (OSError, _redis_error()):
            self._silent_until = time.monotonic() + PAUSE
            return None

    async def fetch(self, path: Path, version: str) -> bytes | None:
        key = self._key(path, version)
        found = None if key is None else await self._ask("GET", key)
        if not isinstance(found, bytes) or len(found) < 4 or zlib.crc32(found[4:]).to_bytes(4, "big") != found[:4]:
            return None
        return found[4:]

    async def share(self, path: Path, version: str, data: bytes) -> None:
        key = self._key(path, version)
        if key is not None and len(data) <= self.max_file_bytes:
            await self._ask("SET", key, zlib.crc32(data).to_bytes(4, "big") + data, "EX", self.seconds)

    async def close(self) -> None:
        for loop, client in tuple(self._clients.items()):
            if loop is asyncio.get_running_loop():
                await client.aclose()
            del self._clients[loop]


def _redis_error() -> type[Exception]:
    from redis.exceptions import RedisError

    return RedisError
