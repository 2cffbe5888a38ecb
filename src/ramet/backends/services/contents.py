"""Contents of a service's files: JSON to be read and in lines, texts, and what is sent back."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from ramet.backends.services.nodes import Item, Place
from ramet.core.errors import fail
from ramet.core.paths import Path, encode
from ramet.core.resource import Data, Letter
from ramet.core.streams import closing

LARGEST_EDIT: Final = 16 << 20
"""Bytes of a document or an attachment that is sent to a service."""


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


async def bounded(data: Data, path: Path) -> bytes:
    """The whole of what is written; EFBIG before anything is sent."""
    if isinstance(data, bytes):
        found = data
    else:
        parts: list[bytes] = []
        size = 0
        async with closing(data) as blocks:
            async for block in blocks:
                size += len(block)
                if size > LARGEST_EDIT:
                    break
                parts.append(block)
        found = b"".join(parts) if size <= LARGEST_EDIT else bytes(LARGEST_EDIT + 1)
    if len(found) > LARGEST_EDIT:
        words = f"File too large: at most {LARGEST_EDIT >> 20} MiB can be sent; nothing was changed"
        raise fail(errno.EFBIG, path, words)
    return found


def fixed(text: str) -> Callable[[Place], bytes]:
    """The content of a file that is always the same."""
    return lambda place: text.encode()


def json_text(value: Any) -> bytes:
    """A value as JSON to be read by people."""
    return encode(json.dumps(value, indent=2, ensure_ascii=False)) + b"\n"


def json_line(value: Any) -> bytes:
    """A value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def json_object(text: str, path: Path) -> dict[str, Any]:
    """A JSON object that the user gave."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise fail(errno.EINVAL, path, f"this is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise fail(errno.EINVAL, path, "this is not a JSON object")
    return found


def pretty_json(place: Place) -> bytes:
    """The innermost item as the service gave it."""
    return json_text(place.data)


async def json_lines(entries: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    """Entries as lines of JSON: the first alone, so that `head -1` asks for no second page, then in blocks."""

    lines: list[bytes] = []
    size, enough = 0, 1
    async with closing(entries) as stream:
        async for entry in stream:
            lines.append(json_line(entry))
            size += len(lines[-1])
            if size >= enough:
                yield b"".join(lines)
                lines, size, enough = [], 0, 64 * 1024
    if lines:
        yield b"".join(lines)


def letter_text(letter: Letter, path: Path, what: str, *, titled: bool = False) -> str:
    """The text of a message to a service that takes Markdown and no attachments."""
    if titled and not letter.subject.strip():
        raise fail(errno.EINVAL, path, f"{what} needs a title: -t TITLE")
    if letter.subject and not titled:
        raise fail(errno.EINVAL, path, f"{what} has no title")
    if letter.attachments:
        raise fail(errno.ENOTSUP, path, f"{what} takes no attachments; nothing was posted")
    try:
        return letter.body.decode()
    except UnicodeDecodeError:
        raise fail(errno.EINVAL, path, "the text is not UTF-8; nothing was posted") from None


def spoken_text(letter: Letter, path: Path, longest: int) -> str:
    """The text of a message to a chat, which may carry files."""
    if letter.subject:
        raise fail(errno.EINVAL, path, "a message has no title; put it into the text")
    try:
        text = letter.body.decode().rstrip("\n")
    except UnicodeDecodeError:
        raise fail(errno.EINVAL, path, "the message is not UTF-8") from None
    if not text.strip() and not letter.attachments:
        raise fail(errno.EINVAL, path, "the message is empty; nothing was posted")
    if len(text) > longest:
        raise fail(errno.EFBIG, path, f"a message has at most {longest} characters; nothing was posted")
    return text


async def among(items: Callable[[Place], AsyncIterator[Item]], place: Place, key: str) -> Item:
    """An item of a collection that can only be listed."""
    async with closing(items(place)) as found:
        async for item in found:
            if item.key == key:
                return item
    raise fail(errno.ENOENT, place.path)
