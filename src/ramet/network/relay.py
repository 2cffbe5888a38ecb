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
    one: Connection, other: Connection, *, sent: Count | None = None, received: Count | None = None
) -> None:
    """Copy in both directions until both have ended; `sent` counts the bytes from `one` to `other`.

    The end of one direction is passed on. A connection that breaks ends both; the caller closes them.
    """
    both = [
        asyncio.ensure_future(_copy(one.reader, other.writer, sent)),
        asyncio.ensure_future(_copy(other.reader, one.writer, received)),
    ]
    try:
        await asyncio.gather(*both)
    except OSError as error:
        if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
            raise
        return  # one side has gone
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Count | None) -> None:
    while block := await reader.read(BLOCK):
        if count is not None:
            count(len(block))
        writer.write(block)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    else:
        writer.close()  # TLS ends both directions at once
