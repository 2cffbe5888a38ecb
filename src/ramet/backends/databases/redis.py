"""`RedisResource`: a tree in Redis. Every verb is one atomic script on the server.

All keys share one hash tag, so a cluster keeps a tree in one slot. Files are at most 512 MiB, as Redis' strings are.
"""

from __future__ import annotations

import asyncio
import errno
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

from ramet.backends.redacted_urls import unreached, without_password
from ramet.core.errors import RametError, fail, missing_extra, unavailable
from ramet.core.paths import ROOT, Path, decode, encode
from ramet.core.resource import Cap, Data, Description, How
from ramet.core.stat import Attrs, Kind, Stat

BLOCK: Final = 1 << 20
STAGED_SECONDS: Final = 3600
"""How long an upload that was never finished stays."""
KINDS: Final = {b"f": Kind.FILE, b"d": Kind.DIR, b"l": Kind.LINK}


class RedisResource:
    """Files under one prefix of a Redis. `file_ttl` lets files expire that many seconds after they were last written.

        RedisResource(url="redis://localhost:6379/0", prefix="agents")

    `ttl` is how long what was seen may be trusted before the version is asked for, `timeout` the seconds without an
    answer after which the server counts as unreachable.
    """

    caps = (
        Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.COPY | Cap.LINKS
        | Cap.HARDLINKS | Cap.MODES | Cap.MTIMES | Cap.TRUNCATE | Cap.DIRS | Cap.VERSIONS | Cap.PRECONDITIONS
    )  # fmt: skip

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        *,
        prefix: str = "ramet",
        file_ttl: int = 0,
        ttl: float = 5.0,
        timeout: float = 30.0,
    ) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            raise RametError("invalid_config", f"{prefix!r} cannot be a prefix", "use letters and digits")
        try:
            good = urlsplit(url).scheme in ("redis", "rediss", "unix") and urlsplit(url).port != -1
        except ValueError:
            good = False
        if not good:
            raise RametError(
                "invalid_config",
                f"{without_password(url)!r} is not the address of a Redis",
                "give one such as redis://localhost:6379/0, rediss://... for TLS, or unix:///path/to/socket",
            )
        self._url, self._prefix, self._file_ttl, self._ttl, self._timeout = url, prefix, file_ttl, ttl, timeout
        self._keys = f"{{{prefix}}}:"
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, Any]] = {}

    def __repr__(self) -> str:
        return f"RedisResource({without_password(self._url)!r}, prefix={self._prefix!r})"

    def describe(self) -> Description:
        config: dict[str, object] = {
            "url": without_password(self._url), "prefix": self._prefix, "file_ttl": self._file_ttl, "ttl": self._ttl,
        }  # fmt: skip
        secret = urlsplit(self._url).password is not None
        return Description("redis", config, ("url",) if secret else (), needs_override=True)

    # ------------------------------------------------------------------------------------------------ asking

    def _client(self) -> tuple[Any, Any]:
        """The connection pool of the running loop, and the script on it."""
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            try:
                from redis.asyncio import Redis
            except ModuleNotFoundError:
                raise missing_extra("redis", "a mount of a Redis") from None
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff

            # Not every command may be repeated; the retry layer knows which.
            client = Redis.from_url(
                self._url,
                socket_connect_timeout=min(5.0, self._timeout),
                socket_timeout=self._timeout,
                retry=Retry(NoBackoff(), 0),
            )
            script = client.register_script(files("ramet.backends.databases").joinpath("redis.lua").read_bytes())
            found = self._clients[loop] = (client, script)
        return found

    async def _call(self, verb: str, path: Path, *arguments: object) -> list[Any]:
        _, script = self._client()
        words = [verb, time.time_ns(), encode(path), *(encode(a) if isinstance(a, str) else a for a in arguments)]
        answer = await self._guard(path, script(keys=[self._keys], args=words))
        if not isinstance(answer, list) or not answer or not isinstance(answer[0], int):
            raise unavailable(path, f"{without_password(self._url)} answers what no Redis would")
        if answer[0] == errno.EIO:
            raise unavailable(path, f"{without_password(self._url)} has lost what was sent to it")
        if answer[0]:
            raise fail(answer[0], path)
        return answer

    async def _guard(self, path: Path, request: Awaitable[Any]) -> Any:
        with self._translated(path):
            return await request

    @contextmanager
    def _translated(self, path: Path) -> Iterator[None]:
        """What the client raises as what a file system does; no message carries the password."""
        from redis import exceptions as raised

        where = without_password(self._url)
        try:
            yield
        except (raised.AuthenticationError, raised.NoPermissionError):
            raise fail(errno.EACCES, path, f"Permission denied: {where} refuses these credentials") from None
        except (
            raised.ConnectionError, raised.TimeoutError, raised.InvalidResponse, raised.TryAgainError,
            raised.ClusterDownError, OSError, ValueError,
        ) as error:  # fmt: skip
            raise unreached(path, where, error.__context__ or error) from None
        except raised.ReadOnlyError:
            raise fail(errno.EROFS, path) from None
        except raised.OutOfMemoryError:
            raise fail(errno.ENOSPC, path) from None
        except raised.RedisError as error:
            raise fail(errno.EIO, path, str(error)) from None

    def _stat(self, row: list[bytes]) -> Stat:
        kind, mode, at, size, version, target, inode, names = row
        return Stat(
            KINDS[kind], int(size), int(at), decode(version), self._ttl, int(mode),
            decode(target) if kind == b"l" else None, int(inode), int(names),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------- verbs

    async def stat(self, path: Path) -> Stat:
        return self._stat((await self._call("stat", path))[1])

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for name, row in (await self._call("scan", path))[1:]:
            yield decode(name), self._stat(row)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        stat = await self.stat(path)
        if stat.kind is not Kind.FILE:
            raise fail(errno.EISDIR if stat.kind is Kind.DIR else errno.ELOOP, path)
        client, _ = self._client()
        end = stat.size or 0 if stop is None else min(stop, stat.size or 0)
        key = f"{self._keys}c:{stat.inode}:{stat.version}"
        while start < end:
            block = await self._guard(path, client.getrange(key, start, min(end, start + BLOCK) - 1))
            if not block:  # replaced long ago, and the old content is gone
                raise fail(errno.ESTALE, path)
            start += len(block)
            yield block

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        target, staged = "", ""
        if how is How.LINK:
            target = decode(data if isinstance(data, bytes) else b"".join([block async for block in data]))
        else:
            staged = f"{self._keys}w:{uuid.uuid4().hex}"
        try:
            size = await self._stage(path, staged, data) if staged else 0
            arguments = (how.value, at, if_version or "", time.time_ns(), self._file_ttl, staged, size, target)
            return self._stat((await self._call("write", path, *arguments))[1])
        except BaseException:
            if staged:
                with suppress(OSError):  # it goes by itself in the end
                    await self._guard(path, self._client()[0].delete(staged))
            raise

    async def _stage(self, path: Path, key: str, data: Data) -> int:
        """Upload the content under a temporary key, which the script then makes the file's; return its size."""
        client, _ = self._client()
        at = 0
        async for block in _blocks(data):
            await self._guard(path, client.setrange(key, at, block))
            if at == 0:
                await self._guard(path, client.expire(key, STAGED_SECONDS))
            at += len(block)
        return at

    async def mkdir(self, path: Path) -> None:
        await self._call("mkdir", path, time.time_ns())

    async def remove(self, path: Path) -> None:
        await self._call("remove", path, time.time_ns())

    async def rename(self, src: Path, dst: Path) -> None:
        await self._call("rename", src, dst, time.time_ns())

    async def link(self, src: Path, dst: Path) -> None:
        await self._call("link", src, dst, time.time_ns())

    async def copy(self, src: Path, dst: Path) -> None:
        await self._call("copy", src, dst, time.time_ns(), self._file_ttl)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        given = ["" if value is None else value for value in (attrs.mode, attrs.mtime_ns, attrs.size)]
        await self._call("setattr", path, *given, time.time_ns())

    async def close(self) -> None:
        for loop, (client, _) in tuple(self._clients.items()):
            if loop is asyncio.get_running_loop():
                await client.aclose()
            del self._clients[loop]

    # --------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> Iterator[tuple[bytes, bytes]]:
        """Every key without the prefix, with its value as Redis writes it; what `restore` takes."""
        prefix = self._keys.encode()
        with self._blocking() as client:
            with self._translated(ROOT):
                keys = sorted(client.scan_iter(match=_literal(self._keys) + "*", count=1000))
            for key in keys:
                with self._translated(ROOT):
                    value = client.dump(key)
                if value is not None and not key[len(prefix) :].startswith(b"w:"):
                    yield key[len(prefix) :], value

    def restore(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Replace the whole tree by what was dumped."""
        prefix = self._keys.encode()
        with self._blocking() as client:
            with self._translated(ROOT):
                for key in client.scan_iter(match=_literal(self._keys) + "*", count=1000):
                    client.delete(key)
            for key, value in items:
                with self._translated(ROOT):
                    client.restore(prefix + key, 0, value, replace=True)

    def _blocking(self) -> Any:
        """Open a synchronous connection, for snapshots, which run outside the event loop."""
        try:
            from redis import Redis
        except ModuleNotFoundError:
            raise missing_extra("redis", "a mount of a Redis") from None
        return Redis.from_url(self._url, socket_connect_timeout=min(5.0, self._timeout), socket_timeout=self._timeout)


async def _blocks(data: Data) -> AsyncIterator[bytes]:
    if isinstance(data, bytes):
        for start in range(0, len(data), BLOCK):
            yield data[start : start + BLOCK]
    else:
        async for block in data:
            if block:
                yield block


def _literal(text: str) -> str:
    """A text that a Redis pattern matches only as it is."""
    return "".join("\\" + char if char in "*?[]\\^" else char for char in text)
