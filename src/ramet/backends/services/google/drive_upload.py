"""Uploads to Drive: small contents in one request, larger ones in a session that survives cuts.

Rules that this file keeps:
- At most `CHUNK` bytes twice are in memory, whatever the size.
- A session is asked how much arrived after every cut; only what is missing is sent again.
- The file changes when the last part has arrived, never before.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from ramet.backends.services.rest import Answer, Rest
from ramet.core.errors import Unavailable, fail, unavailable
from ramet.core.paths import Path
from ramet.core.resource import Data
from ramet.core.streams import closing

IN_ONE: Final = 5 << 20
"""Bytes up to which a content is one request."""
CHUNK: Final = 8 << 20
"""Bytes of a part of a session, a multiple of 256 KiB."""
ATTEMPTS: Final = 6
"""Failures in a row, without a byte that arrives, after which an upload is given up."""
_RANGE: Final = re.compile(r"bytes=0-(\d+)")


class DriveUpload:
    """Sends a content to `address`, the address of a file or of all files below /upload."""

    def __init__(
        self,
        rest: Rest,
        method: str,
        address: str,
        about: Mapping[str, Any],
        mime: str,
        path: Path,
        *,
        chunk: int = CHUNK,
        small: int = IN_ONE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rest, self._method, self._address = rest, method, address
        self._about, self._mime, self._path = about, mime, path
        self._chunk, self._small, self._sleep = chunk, small, sleep

    async def send(self, data: Data, fields: str) -> Any:
        """What Drive says of the file afterwards."""
        query = f"supportsAllDrives=true&fields={fields}"
        parts = _parts(data, self._chunk)
        async with closing(parts) as stream:
            first, last = await anext(stream)
            if last and len(first) <= self._small:
                return (await self._whole(first, query)).json()
            return (await self._session(first, last, stream, query)).json()

    async def _whole(self, content: bytes, query: str) -> Answer:
        boundary = f"ramet{secrets.token_hex(16)}"
        head = f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(self._about)}\r\n"
        head += f"--{boundary}\r\nContent-Type: {self._mime}\r\n\r\n"
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        return await self._rest.send(
            self._method,
            f"{self._address}?uploadType=multipart&{query}",
            path=self._path,
            content=body,
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
            repeatable=self._method == "PATCH",  # a new file would be there twice
        )

    async def _session(self, first: bytes, last: bool, rest: AsyncIterator[tuple[bytes, bool]], query: str) -> Answer:
        opened = await self._rest.send(
            self._method,
            f"{self._address}?uploadType=resumable&{query}",
            path=self._path,
            json_body=dict(self._about),
            headers={"X-Upload-Content-Type": self._mime},
            repeatable=True,  # a session changes nothing until it ends
        )
        url = opened.headers.get("location", "")
        if not url:
            raise fail(errno.EIO, self._path, "Drive opens no session for the upload; nothing was changed")
        start, part = 0, first
        while True:
            answer = await self._arrive(url, part, start, last)
            if answer is not None:
                return answer
            if last:
                raise fail(errno.EIO, self._path, "Drive asks for more than there is; nothing was changed")
            start += len(part)
            part, last = await anext(rest)

    async def _arrive(self, url: str, part: bytes, start: int, last: bool) -> Answer | None:
        """Send a part until all of it has arrived; the answer that ends the upload, or None."""
        end = start + len(part)
        total = str(end) if last else "*"
        at, failures, cut = start, 0, False
        while True:
            piece = b"" if cut else part[at - start :]
            span = f"bytes {at}-{end - 1}/{total}" if piece else f"bytes */{total}"
            try:
                answer = await self._rest.put(url, piece, path=self._path, headers=self._headers(span))
            except Unavailable as error:
                failures, cut = failures + 1, True  # how much has arrived is asked first
                if failures >= ATTEMPTS:
                    raise
                await self._sleep(max(error.wait, 0.2 * 2.0**failures))
                continue
            except FileNotFoundError:
                raise unavailable(
                    self._path, "Drive has ended the session of the upload; nothing was changed"
                ) from None
            if answer.status != 308:
                return answer
            found = _RANGE.fullmatch(answer.headers.get("range", ""))
            arrived = int(found[1]) + 1 if found is not None else 0
            if not start <= arrived <= end:
                words = f"Drive has {arrived} bytes of an upload that is at {start}; nothing was changed"
                raise fail(errno.EIO, self._path, words)
            if arrived == end and not last:
                return None
            failures = 0 if arrived > at else failures if cut else failures + 1
            if failures >= ATTEMPTS:
                raise unavailable(self._path, "Drive takes no more of the upload; nothing was changed")
            at, cut = arrived, False

    def _headers(self, span: str) -> dict[str, str]:
        return {"Content-Range": span, "Content-Type": self._mime}


async def _parts(data: Data, size: int) -> AsyncIterator[tuple[bytes, bool]]:
    """A content in parts of exactly `size` bytes, each with whether it is the last, which may be shorter."""
    if isinstance(data, bytes):
        for start in range(0, len(data) or 1, size):
            yield data[start : start + size], start + size >= len(data)
        return
    kept = bytearray()
    async with closing(data) as blocks:
        async for block in blocks:
            kept += block
            while len(kept) > size:  # more follows, so this is not the last
                yield bytes(kept[:size]), False
                del kept[:size]
    yield bytes(kept), True
