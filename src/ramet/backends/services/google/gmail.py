"""`GmailResource`: a mailbox of Gmail as files.

    /<label>/<yyyy-mm-dd>/<subject>__<id>.eml    the message as it came
    /<label>/<yyyy-mm-dd>/<subject>__<id>.json   its header in words, its text, the names of what hangs on it
    /<label>/<yyyy-mm-dd>/<subject>__<id>/       its attachments, decoded
    /threads/<subject>__<id>.md                  a conversation to be read

Rules that this file keeps:
- Looking changes nothing: nothing becomes read.
- A removal is a move to the trash, a move between labels changes labels; nothing is deleted for ever.
- A letter is sent once. Nothing here sends again what may have left.
"""

from __future__ import annotations

import base64
import errno
import json
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from ramet.backends.remote import mail_message
from ramet.backends.remote.smtp import composed
from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import digest, json_lines
from ramet.backends.services.google.api import SCOPES, google_rest, paged, raw_query
from ramet.backends.services.google.gmail_index import ALL, DATE, ME, GmailIndex
from ramet.backends.services.google.gmail_message import (
    GmailMessage,
    as_markdown,
    decoded,
    message_of,
    texts_of,
    unpacked,
)
from ramet.backends.services.google.token import GoogleConfig, google_auth
from ramet.backends.services.pages import first_of
from ramet.backends.services.rest import Params, patiently
from ramet.core.errors import RametError, fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Cap, Data, Description, How, Letter
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing

IN_ONE: Final = 4 << 20
"""Bytes of a letter up to which it is sent as JSON."""
LARGEST: Final = 25 << 20
"""Bytes of a letter that Gmail takes."""
_ENTRY: Final = re.compile(r"(?:.*__)?([0-9A-Za-z_-]+?)(\.eml|\.json|)", re.DOTALL)
_THREAD: Final = re.compile(r"(?:.*__)?([0-9A-Za-z_-]+?)\.md", re.DOTALL)
THREADS: Final = "threads"
README: Final = """\
# Gmail

    <label>/<yyyy-mm-dd>/<subject>__<id>.eml     a message as it came; days are UTC
    <label>/<yyyy-mm-dd>/<subject>__<id>.json    from, to, subject, text, labels
    <label>/<yyyy-mm-dd>/<subject>__<id>/        its attachments
    threads/<subject>__<id>.md                   a conversation to be read

Labels are INBOX, SENT, STARRED, ... and those of the user, which nest; ALL has everything but spam and trash. A label
lists its last {days} days; name an older day to open it.

- Read: `jq -r '.from[0].address + " " + .subject' INBOX/2026-05-03/*.json`
- Search: `query . 'from:ada has:attachment newer_than:7d' | jq -r .path`. Gmail finds words, not parts of words.
- Send: `mail send . -s Subject -m Text ada@example.com`; to answer, name the message: `mail send INBOX/.../x.eml ...`
- `rm x.eml` moves to the trash, `mv INBOX/.../x.eml Work/` changes labels; `mkdir` makes a label.
- The API: `query . 'GET /gmail/v1/users/me/profile'`, other methods with -w.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class GmailConfig(GoogleConfig):
    """A mailbox of Gmail."""

    kind: ClassVar[str] = "gmail"

    base_url: str = "https://gmail.googleapis.com"
    """The address of the API."""
    days: int = 30
    """Days of a label that are listed; older ones are opened by their name."""
    max_messages: int = 10_000
    """Messages that are listed at most; where there are more, listings fail, and days are opened by their name."""
    sender: str | None = None
    """The address that letters come from; that of the account when not given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.days < 1:
            raise RametError("invalid_config", "Gmail lists no days", "set days to 1 or more")


class _Spot(NamedTuple):
    """Where a path leads: into a label, to a day of it, to a message, to a file of that."""

    segments: tuple[str, ...] = ()
    label: str = "-"
    day: str = ""
    message: GmailMessage | None = None
    file: str = ""
    """`.eml`, `.json`, `/` for the directory of attachments, `/NAME` for one, `.md` for a conversation."""


class GmailResource:
    """`GmailResource(GmailConfig(client_id=..., client_secret=..., refresh_token=...))`.

    `token` is a function that returns an access token.
    """

    def __init__(self, config: GmailConfig, *, token: TokenSource | None = None) -> None:
        self.config = config
        self._rest = google_rest(
            config, google_auth(config, token, [SCOPES["gmail"]]), config.base_url, "gmail"
        )  # fmt: skip
        self._index = GmailIndex(self._rest, config.ttl, config.days, config.max_messages)
        self._sender = config.sender

    @property
    def caps(self) -> Cap:
        return Cap.WRITE | Cap.RENAME | Cap.ON_CLOSE if self.config.writable else Cap.READ

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"

    def describe(self) -> Description:
        return self.config.describe()

    # ---------------------------------------------------------------------------------------------- finding

    async def _find(self, path: Path) -> _Spot:
        parts = tuple(path.parts)
        if not parts:
            return _Spot()
        if parts[0] == THREADS:
            return await self._find_thread(path, parts[1:])
        cut = next((number for number, part in enumerate(parts) if DATE.fullmatch(part)), len(parts))
        segments, rest = parts[:cut], parts[cut:]
        label = (await self._index.labels(path)).get(segments)
        if label is None or (rest and label == "-"):
            raise fail(errno.ENOENT, path)
        if not rest:
            return _Spot(segments, label)
        try:
            messages = await self._index.messages(label, rest[0], path)
        except ValueError:  # 2026-02-31
            raise fail(errno.ENOENT, path) from None
        if len(rest) == 1:
            if not messages:
                raise fail(errno.ENOENT, path)
            return _Spot(segments, label, rest[0])
        message, kind = self._named(messages, rest[1])
        if message is None or (not kind and not message.files):
            raise fail(errno.ENOENT, path)
        if len(rest) == 2:
            return _Spot(segments, label, rest[0], message, kind or "/")
        if kind or len(rest) > 3:
            raise fail(errno.ENOTDIR, path)
        if rest[2] not in message.files:
            raise fail(errno.ENOENT, path)
        return _Spot(segments, label, rest[0], message, f"/{rest[2]}")

    @staticmethod
    def _named(messages: Sequence[GmailMessage], name: str) -> tuple[GmailMessage | None, str]:
        """The message with the id at the end of a name; the subject may have been another one."""
        found = _ENTRY.fullmatch(name)
        if found is None:
            return None, ""
        for message in messages:
            if message.id == found[1] or name == message.stem + found[2]:
                return message, found[2]
        return None, found[2]

    async def _find_thread(self, path: Path, rest: tuple[str, ...]) -> _Spot:
        if not rest:
            return _Spot((THREADS,))
        found = _THREAD.fullmatch(rest[0])
        if found is None:
            raise fail(errno.ENOENT, path)
        thread = await self._last_of_thread(found[1], path)
        if len(rest) > 1:
            raise fail(errno.ENOTDIR, path)
        return _Spot((THREADS,), "-", "", thread, ".md")

    async def _last_of_thread(self, id: str, path: Path) -> GmailMessage:
        for message in await self._index.messages("", "", path):
            if message.thread == id:
                return message
        params = {"format": "metadata", "fields": "id,historyId,messages(id,threadId,internalDate,payload/headers)"}
        found = (await self._rest.get(f"{ME}/threads/{id}", path=path, params=params)).json()
        return message_of(found["messages"][-1])

    # ---------------------------------------------------------------------------------------------- looking

    @property
    def _directory(self) -> Stat:
        return Stat(Kind.DIR, ttl=self.config.ttl)

    @property
    def _readme(self) -> bytes:
        return README.replace("{days}", str(self.config.days)).encode()

    @property
    def _readme_stat(self) -> Stat:
        return Stat(Kind.FILE, len(self._readme), None, digest(self._readme), self.config.ttl)

    def _stat(self, message: GmailMessage, file: str) -> Stat:
        stat = Stat(Kind.FILE, None, message.mtime_ns, None, self.config.ttl)
        if file == ".md":
            return stat
        if file == ".json":
            return stat._replace(version=f"{message.id}.{message.history}")
        if file == ".eml":
            return stat._replace(version=message.id)
        part = message.files[file[1:]]
        return stat._replace(size=part.size, version=f"{message.id}.{part.section}")

    async def stat(self, path: Path) -> Stat:
        if path.parts == ["README.md"]:
            return self._readme_stat
        spot = await self._find(path)
        return self._directory if spot.message is None or spot.file == "/" else self._stat(spot.message, spot.file)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        if path.parts == ["README.md"]:
            raise fail(errno.ENOTDIR, path)
        spot = await self._find(path)
        if spot.message is not None:
            if spot.file != "/":
                raise fail(errno.ENOTDIR, path)
            for name in spot.message.files:
                yield name, self._stat(spot.message, f"/{name}")
        elif spot.day:
            for message in await self._index.messages(spot.label, spot.day, path):
                yield f"{message.stem}.eml", self._stat(message, ".eml")
                yield f"{message.stem}.json", self._stat(message, ".json")
                if message.files:
                    yield message.stem, self._directory
        elif spot.segments == (THREADS,):
            seen: set[str] = set()
            for message in await self._index.messages("", "", path):
                if message.thread not in seen:
                    seen.add(message.thread)
                    yield f"{mail_message.stem(message.subject, message.thread)}.md", self._stat(message, ".md")
        else:
            if not spot.segments:
                yield "README.md", self._readme_stat
                yield THREADS, self._directory
            for below in await self._index.labels(path):
                if below[:-1] == spot.segments:
                    yield below[-1], self._directory
            if spot.segments and spot.label != "-":
                for day in await self._index.days(spot.label, path):
                    yield day, self._directory

    # ---------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """The whole content; a layer cuts ranges out of it."""
        if path.parts == ["README.md"]:
            yield self._readme
            return
        spot = await self._find(path)
        message = spot.message
        if message is None or spot.file == "/":
            raise fail(errno.EISDIR, path)
        if spot.file == ".md":
            yield await self._conversation(message.thread, path)
        elif spot.file == ".json":
            yield await self._json(spot, message, path)
        else:
            source = f"{ME}/messages/{message.id}?format=raw&fields=raw"
            if spot.file != ".eml":
                section = message.files[spot.file[1:]].section
                if section not in message.attached:
                    yield await self._inline(message, section, path)
                    return
                source = f"{ME}/messages/{message.id}/attachments/{message.attached[section]}?fields=data"
            async with closing(unpacked(self._rest.stream(source, path=path), path)) as blocks:
                async for block in blocks:
                    yield block

    async def _whole(self, id: str, path: Path) -> Any:
        return (await self._rest.get(f"{ME}/messages/{id}", path=path, params={"format": "full"})).json()

    async def _inline(self, message: GmailMessage, section: str, path: Path) -> bytes:
        """A small part that comes with the message."""
        todo = [(await self._whole(message.id, path)).get("payload") or {}]
        while todo:
            part = todo.pop()
            if str(part.get("partId") or "0") == section:
                return decoded((part.get("body") or {}).get("data") or "")
            todo += part.get("parts") or ()
        raise fail(errno.EIO, path, "Gmail answers without the attachment")

    async def _json(self, spot: _Spot, message: GmailMessage, path: Path) -> bytes:
        found = await self._whole(message.id, path)
        about: dict[str, object] = {
            "id": message.id, "thread": message.thread, "folder": "/".join(spot.segments),
            "labels": sorted(found.get("labelIds") or ()), "received": message.received.isoformat(),
            "snippet": message.snippet,
        }  # fmt: skip
        texts = texts_of(found.get("payload") or {}, message)
        return mail_message.as_json(about, message.header, texts, message.files)

    async def _conversation(self, thread: str, path: Path) -> bytes:
        found = (await self._rest.get(f"{ME}/threads/{thread}", path=path, params={"format": "full"})).json()
        parts: list[str] = []
        for one in found.get("messages") or ():
            message = message_of(one)
            if not parts:
                parts.append(f"# {message.subject or 'no subject'}\n")
            texts = texts_of(one.get("payload") or {}, message)
            parts.append(as_markdown(message, "\n".join(text for _, text in texts)))
        return encode("\n".join(parts))

    # --------------------------------------------------------------------------------------------- changing

    def _check_writable(self, path: Path) -> None:
        if not self.config.writable:
            words = f"Read-only file system: set writable=True in {type(self.config).__name__}"
            raise fail(errno.EROFS, path, words)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self._check_writable(path)
        raise fail(errno.EROFS, path, "Read-only file system: a message does not change; to send one, use mail send")

    async def mkdir(self, path: Path) -> None:
        """Make a label."""
        self._check_writable(path)
        if tuple(path.parts) in await self._index.labels(path) or path.parts == [THREADS]:
            raise fail(errno.EEXIST, path)
        body = {"name": "/".join(path.parts), "labelListVisibility": "labelShow", "messageListVisibility": "show"}
        await self._rest.send("POST", f"{ME}/labels", path=path, json_body=body)
        self._index.forget()

    async def _own(self, path: Path) -> tuple[_Spot, GmailMessage]:
        spot = await self._find(path)
        if spot.message is None or spot.file != ".eml":
            raise fail(errno.EPERM, path, "Operation not permitted: a message is moved or removed by its .eml")
        return spot, spot.message

    async def remove(self, path: Path) -> None:
        """Move to the trash."""
        self._check_writable(path)
        _, message = await self._own(path)
        await self._change(message, "trash", {}, path)

    async def rename(self, src: Path, dst: Path) -> None:
        """Change labels: what is moved keeps its name and its day."""
        self._check_writable(src)
        spot, message = await self._own(src)
        parts = tuple(dst.parts)
        found, kind = self._named([message], parts[-1])
        cut = next((number for number, part in enumerate(parts) if DATE.fullmatch(part)), len(parts) - 1)
        label = (await self._index.labels(dst)).get(parts[:cut])
        if found is None or kind != ".eml" or len(parts) - cut > 2:
            raise fail(errno.EPERM, dst, "Operation not permitted: Gmail names messages itself; keep the name")
        if label is None or label == "-":
            raise fail(errno.ENOENT, dst, "No such file or directory: there is no such label; make it with mkdir")
        if label == spot.label:
            return
        if label == "TRASH":
            await self._change(message, "trash", {}, src)
            return
        if spot.label == "TRASH":
            await self._change(message, "untrash", {}, src)
        body = {
            "addLabelIds": [label] if label else [],
            "removeLabelIds": [spot.label] if spot.label not in ("", "TRASH") else [],
        }
        await self._change(message, "modify", body, src)

    async def _change(self, message: GmailMessage, verb: str, body: dict[str, Any], path: Path) -> None:
        address = f"{ME}/messages/{message.id}/{verb}?fields=id,labelIds,historyId"
        answer = await self._rest.send("POST", address, path=path, json_body=body or None, repeatable=True)
        said = answer.json()
        labels = frozenset(said.get("labelIds") or ())
        self._index.place(message._replace(labels=labels, history=str(said.get("historyId") or message.history)))

    async def copy(self, src: Path, dst: Path) -> None:
        self._check_writable(dst)
        raise fail(errno.ENOTSUP, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        self._check_writable(path)
        raise fail(errno.ENOTSUP, path)

    # ---------------------------------------------------------------------------------------------- sending

    async def post(self, letter: Letter) -> str:
        """Send a letter, once."""
        place = letter.answers or letter.place or ROOT
        self._check_writable(place)
        if not letter.to:
            raise fail(errno.EINVAL, place, "a letter needs an address; use mail send")
        references: tuple[str, ...] = ()
        thread = None
        if letter.answers is not None:
            spot = await self._find(letter.answers)
            if spot.message is None or spot.file not in (".eml", ".json"):
                raise fail(errno.EINVAL, letter.answers, "not a message")
            header, thread = spot.message.header, spot.message.thread
            known = str(header["references"] or header["in-reply-to"] or "").split()
            references = (*known, str(header["message-id"] or "").strip())
        if self._sender is None:
            self._sender = await patiently(lambda: self._index.address(place))
        message = composed(letter, self._sender, references)
        raw = message.as_bytes()
        if len(raw) > LARGEST:
            raise fail(errno.EFBIG, place, f"Gmail sends at most {LARGEST >> 20} MB; nothing was sent")
        about = {"threadId": thread} if thread else {}
        said = (await patiently(lambda: self._send(raw, about, place))).json()
        self._index.forget()
        return str(said["id"])

    async def _send(self, raw: bytes, about: dict[str, str], path: Path) -> Any:
        if len(raw) <= IN_ONE:
            body = {**about, "raw": base64.urlsafe_b64encode(raw).decode().rstrip("=")}
            return await self._rest.send("POST", f"{ME}/messages/send", path=path, json_body=body)
        boundary = f"ramet{secrets.token_hex(16)}"
        head = f"--{boundary}\r\nContent-Type: application/json\r\n\r\n{json.dumps(about)}\r\n"
        head += f"--{boundary}\r\nContent-Type: message/rfc822\r\n\r\n"
        return await self._rest.send(
            "POST", f"/upload{ME}/messages/send?uploadType=multipart", path=path,
            content=head.encode() + raw + f"\r\n--{boundary}--\r\n".encode(),
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
        )  # fmt: skip

    # --------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """Gmail's own search, or a request."""
        raw = await raw_query(self._rest, self.config, path, text, values, write, ("/gmail/v1/", "/upload/gmail/v1/"))
        if raw is not None:
            if write:
                self.forget()
            yield raw
            return
        if values:
            raise fail(errno.EINVAL, path, "a search of Gmail takes no values; quote it as one word")
        async with closing(json_lines(first_of(self._hits(text, path), limit))) as lines:
            async for block in lines:
                yield block

    async def _hits(self, text: str, path: Path) -> AsyncIterator[Any]:
        params: Params = {"q": text, "maxResults": 100, "fields": "nextPageToken,messages/id"}
        ids: list[str] = []
        async with closing(paged(self._rest, f"{ME}/messages", "messages", path, params)) as found:
            async for one in found:
                ids.append(str(one["id"]))
                if len(ids) == 50:
                    for hit in await self._shown(ids, path):
                        yield hit
                    ids = []
        for hit in await self._shown(ids, path):
            yield hit

    async def _shown(self, ids: list[str], path: Path) -> list[dict[str, Any]]:
        return [
            {
                "path": f"{ALL}/{message.day}/{message.stem}.eml", "id": message.id, "thread": message.thread,
                "date": message.received.isoformat(), "from": mail_message.heading(str(message.header["from"] or "")),
                "subject": message.subject, "labels": sorted(message.labels), "snippet": message.snippet,
            }
            for message in await self._index.described(ids, path)
        ]  # fmt: skip

    def forget(self, path: Path = ROOT) -> None:
        self._index.forget()

    async def close(self) -> None:
        self.forget()
        await self._rest.close()
