"""Bodies of requests: `-d` and its kin, and uploads."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_from_bytes

from ramet.commands.network.curl.options import CurlError, CurlOptions, Status
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK

READ_FAILED: Final = "Failed to open/read local data from file/application"


@dataclass
class Payload:
    """What a request carries. `stream` is called anew for each attempt."""

    size: int | None
    stream: Callable[[], AsyncIterator[bytes]] | None = None
    content: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    first: list[tuple[str, str]] = field(default_factory=list)
    """Headers that come before all others."""

    def body(self) -> bytes | AsyncIterator[bytes]:
        return self.content if self.stream is None else self.stream()


async def posted(proc: Proc, o: CurlOptions) -> bytes | None:
    """The data of all `-d`, joined; None without any."""
    parts: list[bytes] = []
    given = False
    for name, text in o.order:
        if name not in ("data", "data_raw", "data_binary", "data_urlencode", "json"):
            continue
        piece = await _piece(proc, name, str(text), o.silent)
        joined = b"" if name == "json" or not given else b"&"
        parts.append(joined + piece)
        given = True
    return b"".join(parts) if given else None


async def _piece(proc: Proc, name: str, text: str, quiet: bool) -> bytes:
    if name == "data_raw" or (name != "data_urlencode" and not text.startswith("@")):
        return encode(text)
    if name != "data_urlencode":
        found = await _file(proc, text[1:], quiet)
        return re.sub(rb"[\r\n\0]", b"", found) if name == "data" else found
    key, mark, content = text.partition("=")
    if mark:
        data = encode(content)
    elif "@" in text:
        key, _, word = text.partition("@")
        data = await _file(proc, word, quiet)
        if not data:
            return b""
    else:
        key, data = "", encode(text)
    encoded = quote_from_bytes(data, safe="-._~ ").replace(" ", "+").encode()
    return encode(key) + b"=" + encoded if key else encoded


async def _file(proc: Proc, word: str, quiet: bool) -> bytes:
    try:
        reader = await proc.open(word)
    except OSError:
        if not quiet:
            shown = f'Warning: Couldn\'t read data from file "{word}", this makes an empty POST.\n'
            proc.stderr.write(encode(shown))
        return b""
    try:
        return await reader.read_all(proc.budget.limits.whole)
    except OSError as error:
        raise CurlError(Status.READ, f"{READ_FAILED}: {reason(error)}") from None
    finally:
        await proc.close(reader)


# ------------------------------------------------------------------------------------------------------- files


async def read_file(proc: Proc, word: str, start: int = 0) -> AsyncIterator[bytes]:
    reader = await proc.open(word)
    try:
        while block := await reader.read(BLOCK):
            await proc.budget.yield_turn()
            kept, start = block[start:], max(0, start - len(block))
            if kept:
                yield kept
    finally:
        await proc.close(reader)


async def upload(proc: Proc, word: str, start: int) -> Payload:
    """The file of `-T` from `start` on; stdin has no size and goes out in chunks."""
    if word in ("-", "."):
        return Payload(None, lambda: read_file(proc, "-"))
    try:
        found = await proc.stat(word, follow=True)
        if found.is_dir:
            raise OSError(errno.EISDIR, "Is a directory")
    except OSError:
        proc.stderr.write(encode(f"curl: Can't open '{word}'!\ncurl: try 'curl --help' for more information\n"))
        raise CurlError(Status.READ, READ_FAILED) from None
    size = found.size
    if not start or size is None:
        return Payload(size, lambda: read_file(proc, word))
    if start >= size:
        raise CurlError(Status.PARTIAL, "File already completely uploaded")
    said = ("Content-Range", f"bytes {start}-{size - 1}/{size}")
    return Payload(size - start, lambda: read_file(proc, word, start), first=[said])


async def header_lines(proc: Proc, words: tuple[str, ...], quiet: bool) -> list[str]:
    """The headers of all `-H`, of files too."""
    found: list[str] = []
    for word in words:
        if word.startswith("@"):
            text = decode(await _file(proc, word[1:], quiet))
            found.extend(line.rstrip("\r") for line in text.split("\n") if line.strip())
        else:
            found.append(word)
    return found
