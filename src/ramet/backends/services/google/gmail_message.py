"""A message as Gmail describes it: its parts, its files, its text; base64url that is decoded while it arrives."""

from __future__ import annotations

import base64
import binascii
import errno
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import Any, Final, NamedTuple

from ramet.backends.remote import mail_message
from ramet.backends.remote.mail_message import Part, heading, stem
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.streams import closing


def _parts_mask(depth: int) -> str:
    inner = "partId,mimeType,filename,headers,body(attachmentId,size)"
    return f"{inner},parts({_parts_mask(depth - 1)})" if depth else inner


FIELDS: Final = f"id,threadId,labelIds,historyId,internalDate,sizeEstimate,snippet,payload({_parts_mask(6)})"
"""All of a message but its texts and attachments."""
_START: Final = re.compile(rb'"(?:raw|data)"\s*:\s*"')
_OTHER: Final = re.compile(rb"[^A-Za-z0-9_+/-]")
_SHIFTED: Final = ("iso-2022", "hz", "utf-7")
"""Charsets whose bytes are ASCII, so that UTF-8 would seem to fit."""


class GmailMessage(NamedTuple):
    id: str
    thread: str
    labels: frozenset[str]
    received: datetime
    history: str
    subject: str
    stem: str
    parts: list[Part]
    attached: Mapping[str, str]
    """Ids of attachments by the ids of their parts."""
    snippet: str
    header: Message

    @property
    def day(self) -> str:
        return self.received.strftime("%Y-%m-%d")

    @property
    def mtime_ns(self) -> int:
        return round(self.received.timestamp()) * 1_000_000_000

    @property
    def files(self) -> dict[str, Part]:
        return mail_message.attachments(self.parts)


def message_of(found: Mapping[str, Any]) -> GmailMessage:
    payload = found.get("payload") or {}
    parts: list[Part] = []
    attached: dict[str, str] = {}
    _collect(payload, parts, attached)
    header = _header(payload)
    subject = heading(str(header["subject"] or ""))
    id = str(found["id"])
    return GmailMessage(
        id,
        str(found.get("threadId", id)),
        frozenset(found.get("labelIds") or ()),
        datetime.fromtimestamp(int(found.get("internalDate") or 0) // 1000, UTC),
        str(found.get("historyId", "")),
        subject,
        stem(subject, id),
        parts,
        attached,
        str(found.get("snippet", "")),
        header,
    )


def _header(payload: Mapping[str, Any]) -> Message:
    header = Message()
    for one in payload.get("headers") or ():
        header[str(one["name"])] = re.sub(r"[\r\n]+", " ", str(one.get("value", "")))
    return header


def _collect(part: Mapping[str, Any], parts: list[Part], attached: dict[str, str]) -> None:
    body = part.get("body") or {}
    inner = part.get("parts") or ()
    if inner and not body.get("attachmentId"):
        for one in inner:
            _collect(one, parts, attached)
        return
    header, section = _header(part), str(part.get("partId") or "0")
    disposition = str(header["content-disposition"] or "").partition(";")[0].strip().lower()
    charset = header.get_param("charset") or ""
    if body.get("attachmentId"):
        attached[section] = str(body["attachmentId"])
    parts.append(
        Part(
            section, str(part.get("mimeType", "")).lower(), charset if isinstance(charset, str) else "", "",
            int(body.get("size") or 0), heading(str(part.get("filename") or "")), disposition == "attachment",
        )
    )  # fmt: skip


def texts_of(payload: Mapping[str, Any], message: GmailMessage) -> list[tuple[Part, str]]:
    """The texts of a message that came whole, those as plain text before those as HTML."""
    found: dict[str, bytes] = {}

    def collect(part: Mapping[str, Any]) -> None:
        data = (part.get("body") or {}).get("data")
        if data:
            found[str(part.get("partId") or "0")] = decoded(data)
        for one in part.get("parts") or ():
            collect(one)

    collect(payload)
    bodies = [part for part in message.parts if part.is_body]
    plain = [part for part in bodies if part.type == "text/plain"] or bodies
    return [(part, _text(found.get(part.section, b""), part.charset)) for part in plain]


def _text(data: bytes, charset: str) -> str:
    """A text: as UTF-8 if it is, else as it says, else as far as it can be read."""
    tries = (charset, "utf-8") if charset.lower().startswith(_SHIFTED) else ("utf-8", charset, "latin-1")
    for one in tries:
        try:
            return data.decode(one or "utf-8").replace("\r\n", "\n")
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def decoded(text: str) -> bytes:
    """base64url, with or without its padding."""
    plain = text.rstrip("=")
    return base64.urlsafe_b64decode(plain + "=" * (-len(plain) % 4))


async def unpacked(blocks: AsyncIterator[bytes], path: Path) -> AsyncIterator[bytes]:
    """The content of `{"raw": "..."}` or `{"data": "..."}`, decoded while it arrives."""
    kept, inside = b"", False
    async with closing(blocks) as stream:
        async for block in stream:
            kept += block
            if not inside:
                start = _START.search(kept)
                if start is None:
                    if len(kept) > 65536:
                        break
                    continue
                kept, inside = kept[start.end() :], True
            end = _OTHER.search(kept)
            if end is not None:
                yield _bytes(kept[: end.start()], path)
                return
            cut = len(kept) // 4 * 4
            if cut:
                yield _bytes(kept[:cut], path)
                kept = kept[cut:]
    raise fail(errno.EIO, path, "Gmail answers without the content")


def _bytes(text: bytes, path: Path) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        raise fail(errno.EIO, path, "Gmail answers with a damaged content") from None


def as_markdown(message: GmailMessage, text: str) -> str:
    """A message of a conversation."""
    files = "".join(f"\n[attachment: ALL/{message.day}/{message.stem}/{name}]" for name in message.files)
    when = message.received.strftime("%Y-%m-%d %H:%M")
    return f"## {heading(str(message.header['from'] or 'unknown'))}, {when}\n\n{text.strip()}\n{files}\n"
