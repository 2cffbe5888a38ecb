"""Relay bytes between two connections in both directions, with back-pressure."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Final, NamedTuple

BLOCK: Final = 64 * 1024
Count = Callable[[int], None]


class Connection(NamedTuple):
    """Both sides of a stream."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def relay(
    one: Connection,
    other: Connection,
    *,
    sent: Count | None = None,
    received: Count | None = None,
    linger: float | None = None,
) -> None:
    """Copy in both directions until both have ended; `sent` counts the bytes from `one` to `other`.

    The end of one direction is passed on; after it the other may be silent for `linger` seconds. A connection that
    breaks ends both; the caller closes them.
    """
    moved = 0

    def counted(count: Count | None) -> Count:
        def add(size: int) -> None:
            nonlocal moved
            moved += size
            if count is not None:
                count(size)

        return add

    both = [
        asyncio.ensure_future(_copy(one.reader, other.writer, counted(sent))),
        asyncio.ensure_future(_copy(other.reader, one.writer, counted(received))),
    ]
    try:
        done, waiting = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        before = -1
        while waiting and moved != before and not any(task.exception() for task in done):
            before = moved
            done, waiting = await asyncio.wait(waiting, timeout=linger)
        for task in both:
            if task.done():
                task.result()
    except OSError as error:
        if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
            raise
        return  # one side has gone
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Count) -> None:
    while block := await reader.read(BLOCK):
        count(len(block))
        writer.write(block)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    else:
        writer.close()  # TLS ends both directions at once
