"""Bodies of requests: `-d` and its kin, multipart forms, uploads."""

from __future__ import annotations

import errno
import posixpath
import re
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_from_bytes

from ramet.commands.network.curl.options import CurlError, CurlOptions, Status
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK

_TYPES: Final = {
    ".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
    ".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf",
    ".xml": "application/xml",
}  # fmt: skip
READ_FAILED: Final = "Failed to open/read local data from file/application"


@dataclass
class Payload:
    """What a request carries. `stream` is called anew for each attempt."""

    size: int | None
    stream: Callable[[], AsyncIterator[bytes]] | None = None
    content: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)

    def body(self) -> bytes | AsyncIterator[bytes]:
        return self.content if self.stream is None else self.stream()


async def posted(proc: Proc, o: CurlOptions) -> bytes | None:
    """The data of all `-d`, joined; None without any."""
    parts: list[bytes] = []
    given = False
    for name, text in o.order:
        if name not in ("data", "data_raw", "data_binary", "data_urlencode", "json"):
            continue
        piece = await _piece(proc, name, str(text))
        joined = b"" if name == "json" or not given else b"&"
        parts.append(joined + piece)
        given = True
    return b"".join(parts) if given else None


async def _piece(proc: Proc, name: str, text: str) -> bytes:
    if name == "data_raw" or (name != "data_urlencode" and not text.startswith("@")):
        return encode(text)
    if name != "data_urlencode":
        found = await _file(proc, text[1:])
        return re.sub(rb"[\r\n\0]", b"", found) if name == "data" else found
    at, equals = text.find("@"), text.find("=")
    if equals >= 0 and (at < 0 or equals < at):
        key, content = text[:equals], encode(text[equals + 1 :])
    elif at >= 0:
        key, content = text[:at], await _file(proc, text[at + 1 :])
    else:
        key, content = "", encode(text)
    encoded = quote_from_bytes(content, safe="-._~ ").replace(" ", "+").encode()
    return encode(key) + b"=" + encoded if key else encoded


async def _file(proc: Proc, word: str) -> bytes:
    try:
        reader = await proc.open(word)
    except OSError:
        shown = f'Warning: Couldn\'t read data from file "{word}", this makes an empty POST.\n'
        proc.stderr.write(encode(shown))
        return b""
    try:
        return await reader.read_all(proc.budget.limits.whole)
    except OSError as error:
        raise CurlError(Status.READ, f"{READ_FAILED}: {reason(error)}") from None
    finally:
        await proc.close(reader)


# ------------------------------------------------------------------------------------------------------- forms


@dataclass
class _Part:
    head: bytes
    content: bytes
    word: str = ""
    size: int | None = None


async def form(proc: Proc, o: CurlOptions) -> Payload:
    """A multipart/form-data body; files are read while they are sent."""
    boundary = "-" * 24 + secrets.token_hex(8)
    parts = [
        await _part(proc, name == "form_string", str(text)) for name, text in o.order if name in ("form", "form_string")
    ]
    mark = f"--{boundary}\r\n".encode()
    end = f"--{boundary}--\r\n".encode()
    sizes = [None if part.size is None else len(mark) + len(part.head) + part.size + 2 for part in parts]
    total = None if None in sizes else sum(size for size in sizes if size is not None) + len(end)

    async def stream() -> AsyncIterator[bytes]:
        for part in parts:
            yield mark + part.head
            if not part.word:
                yield part.content
            else:
                async for block in read_file(proc, part.word):
                    yield block
            yield b"\r\n"
        yield end

    return Payload(total, stream, headers=[("Content-Type", f"multipart/form-data; boundary={boundary}")])


async def _part(proc: Proc, literal: bool, text: str) -> _Part:
    name, equals, content = text.partition("=")
    if not equals:
        raise CurlError(Status.USAGE, f"Illegally formatted input field: {text[:60]!r}")
    extra: dict[str, str] = {}
    if not literal:
        kept: list[str] = []
        for at, piece in enumerate(content.split(";")):
            key, mark, said = piece.strip().partition("=")
            if at and mark and key in ("type", "filename", "headers", "encoder"):
                extra[key] = said.strip('"')
            else:
                kept.append(piece)
        content = ";".join(kept)
    if literal or content[:1] not in ("@", "<"):
        raw = encode(content)
        return _Part(_head(name, extra.get("filename"), extra.get("type")), raw, size=len(raw))
    word = content[1:].strip('"')
    try:
        size = None if word == "-" else (await proc.stat(word, follow=True)).size
        if word == "-" or size is None or content[0] == "<":
            raw = b"".join([block async for block in read_file(proc, word)])
            shown = (
                None if content[0] == "<" else extra.get("filename", "-" if word == "-" else posixpath.basename(word))
            )
            return _Part(_head(name, shown, extra.get("type")), raw, size=len(raw))
    except OSError:
        raise CurlError(Status.READ, READ_FAILED) from None
    shown = extra.get("filename", posixpath.basename(word))
    kind = extra.get("type") or _TYPES.get(posixpath.splitext(shown)[1].lower(), "application/octet-stream")
    return _Part(_head(name, shown, kind), b"", word, size)


def _head(name: str, filename: str | None, kind: str | None) -> bytes:
    line = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    if filename is not None:
        line += f'; filename="{_quoted(filename)}"'
    return encode(line + (f"\r\nContent-Type: {kind}" if kind else "") + "\r\n\r\n")


def _quoted(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


# ------------------------------------------------------------------------------------------------------- files


async def read_file(proc: Proc, word: str) -> AsyncIterator[bytes]:
    reader = await proc.open(word)
    try:
        while block := await reader.read(BLOCK):
            await proc.budget.yield_turn()
            yield block
    finally:
        await proc.close(reader)


async def upload(proc: Proc, word: str) -> Payload:
    """The file of `-T`; stdin has no size and goes out in chunks."""
    if word in ("-", "."):
        return Payload(None, lambda: read_file(proc, "-"))
    try:
        found = await proc.stat(word, follow=True)
        if found.is_dir:
            raise OSError(errno.EISDIR, "Is a directory")
    except OSError:
        proc.stderr.write(encode(f"curl: Can't open '{word}'!\n"))
        raise CurlError(Status.READ, READ_FAILED) from None
    return Payload(found.size, lambda: read_file(proc, word))


async def header_lines(proc: Proc, words: tuple[str, ...]) -> list[str]:
    """The headers of all `-H`, of files too."""
    found: list[str] = []
    for word in words:
        if word.startswith("@"):
            text = decode(await _file(proc, word[1:]))
            found.extend(line.rstrip("\r") for line in text.split("\n") if line.strip())
        else:
            found.append(word)
    return found
