"""`UploadWriter`: stream large uploads into packs as they arrive, in bounded memory.

Uploaded chunks are durable but unreferenced until a commit names them. An aborted upload leaves garbage, never a
partial file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ramet.backends.local.buffers import Blocks
from ramet.concurrency.tasks import wait_out
from ramet.store.checkout.lazy_tree import LazyBlocks
from ramet.store.crypto.codec import as_encrypted
from ramet.store.model.chunker import cut
from ramet.store.model.ids import ChunkId, chunk_id
from ramet.store.packs.writer import PackWriter

if TYPE_CHECKING:
    from ramet.store.repository import Repository

T = TypeVar("T")
BATCH_BYTES: Final = 3 * 1024 * 1024
"""Bytes that are chunked and written at a time."""
CONCURRENT_UPLOADS: Final = 2
"""Concurrent uploads per workspace; more wait."""


class UploadWriter:
    """Takes the start of a stream and the rest of it; returns the stored content."""

    def __init__(self, repository: Repository, name: str) -> None:
        self._repository, self._name = repository, name
        self._turns = asyncio.Semaphore(CONCURRENT_UPLOADS)

    async def __call__(self, begun: Blocks, rest: AsyncIterator[bytes]) -> Blocks:
        async with self._turns:
            writer = await asyncio.to_thread(self._writer)
            try:
                return await self._upload(writer, begun, rest)
            except BaseException:
                await asyncio.to_thread(writer.abandon)
                raise

    def _writer(self) -> PackWriter:
        """Create a separate writer, independent of a concurrent commit."""
        repository = self._repository
        repository.require_safe_refs()
        repository.packs.refresh(older=5.0)
        sealed = as_encrypted(repository.objects)
        return PackWriter(repository.objects if sealed is None else sealed.for_workspace(self._name), repository.packs)

    async def _upload(self, writer: PackWriter, begun: Blocks, rest: AsyncIterator[bytes]) -> Blocks:
        ids: list[ChunkId] = []
        left = await _in_thread(_cut, writer, begun.read(), ids)
        size, held, waiting = begun.size, len(left), [left]
        del begun
        async for block in rest:
            waiting.append(block)
            held, size = held + len(block), size + len(block)
            if held >= BATCH_BYTES:
                left = await _in_thread(_cut, writer, waiting, ids)
                held, waiting = len(left), [left]
        await _in_thread(_cut, writer, waiting, ids, True)
        await _in_thread(writer.finish)
        return LazyBlocks(ids, size, self._repository.packs, self._repository.scope(self._name))


def _cut(writer: PackWriter, blocks: Iterable[bytes], ids: list[ChunkId], last: bool = False) -> bytes:
    """Write the complete chunks; returns the remaining bytes."""
    window = b"".join(blocks)
    found, done = cut(window, last=last)
    for chunk in found:
        identity = chunk_id(chunk)
        writer.add(identity, chunk)
        ids.append(identity)
    return window[done:]


async def _in_thread(act: Callable[..., T], *arguments: Any) -> T:
    """Run in a thread, and wait for its end even when cancelled: it still uses the arguments."""
    work = asyncio.ensure_future(asyncio.to_thread(act, *arguments))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await wait_out((work,))
        raise
