"""`GmailIndex`: what is known of a mailbox of Gmail, kept fresh by its history.

Rules that this file keeps:
- Messages are described in batches of `TOGETHER`; nothing is asked twice about a message, whose content never changes.
- When `ttl` has ended, one request for the history refreshes every listing; where Gmail has forgotten it, all are
  listed again.
- The day of a message is that of `internalDate`, in UTC.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from ramet.backends.file_names import as_name
from ramet.backends.services.google.api import explain, paged
from ramet.backends.services.google.gmail_message import FIELDS, GmailMessage, message_of
from ramet.backends.services.rest import Params, Rest, rate_limited
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path
from ramet.core.streams import closing

ME: Final = "/gmail/v1/users/me"
TOGETHER: Final = 100
"""Messages that one request describes; Gmail takes no more."""
MOST_MESSAGES: Final = 50_000
"""Messages that one mount remembers."""
ALL: Final = "ALL"
HIDDEN: Final = frozenset(("SPAM", "TRASH"))
RESERVED: Final = frozenset((ALL, "threads", "README.md"))
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_HTTP: Final = re.compile(rb"HTTP/1\.1 (\d{3})[^\r\n]*\r?\n.*?\r?\n\r?\n(.*)", re.DOTALL)


@dataclass
class _Listing:
    ids: dict[str, None]
    first: float
    last: float
    until: float


class GmailIndex:
    def __init__(self, rest: Rest, ttl: float, days: int, most: int) -> None:
        self._rest, self._ttl, self._days, self._most = rest, ttl, days, most
        self._known: OrderedDict[str, GmailMessage] = OrderedDict()
        self._listings: dict[tuple[str, str], _Listing] = {}
        self._labels: tuple[dict[tuple[str, ...], str], float] = ({}, 0.0)
        self._history = ""
        self._batches = True
        self._lock = LoopLocal(asyncio.Lock)

    # ------------------------------------------------------------------------------------------------- labels

    async def labels(self, path: Path) -> dict[tuple[str, ...], str]:
        """Ids of labels by the segments of their names; those that only lead to others have none."""
        known, until = self._labels
        if until <= time.monotonic():
            answer = (await self._rest.get(f"{ME}/labels", path=path)).json()
            known = {(ALL,): ""}
            for label in answer.get("labels") or ():
                segments = tuple(_segment(part) for part in str(label["name"]).split("/"))
                if segments[0] in RESERVED:
                    segments = (f"{segments[0]}__{label['id']}", *segments[1:])
                for depth in range(1, len(segments)):
                    known.setdefault(segments[:depth], "-")
                known[segments] = str(label["id"])
            self._labels = known, time.monotonic() + self._ttl
        return known

    # ------------------------------------------------------------------------------------------------ listings

    async def days(self, label: str, path: Path) -> list[str]:
        """The days within the window that have messages, newest first."""
        return list(dict.fromkeys(message.day for message in await self.messages(label, "", path)))

    async def messages(self, label: str, day: str, path: Path) -> list[GmailMessage]:
        """The messages of a label on a day, or in the window; newest first."""
        async with self._lock.get():
            await self._refresh(path)
            listing = self._listings.get((label, day))
            if listing is None:
                listing = await self._list(label, day, path)
            found = await self.described(listing.ids, path)
        return sorted(found, key=lambda message: message.received, reverse=True)

    async def message(self, id: str, path: Path) -> GmailMessage:
        known = self._known.get(id)
        if known is None:
            known = next(iter(await self.described([id], path)), None)
        if known is None:
            raise fail(errno.ENOENT, path)
        return known

    async def _list(self, label: str, day: str, path: Path) -> _Listing:
        if not self._history:
            self._history = await self._profile(path)
        if day:
            begin = datetime.fromisoformat(f"{day}T00:00:00+00:00")
            first, last = begin.timestamp(), (begin + timedelta(days=1)).timestamp()
            terms = f"after:{int(first) - 1} before:{int(last)}"
        else:
            today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            first, last = (today - timedelta(days=self._days)).timestamp(), float("inf")
            terms = f"after:{int(first) - 1}"
        params: Params = {
            "q": terms, "labelIds": label or None, "maxResults": 500, "fields": "nextPageToken,messages/id",
            "includeSpamTrash": "true" if label in HIDDEN else None,
        }  # fmt: skip
        ids: dict[str, None] = {}
        async with closing(paged(self._rest, f"{ME}/messages", "messages", path, params)) as found:
            async for one in found:
                ids[str(one["id"])] = None
                if len(ids) > self._most:
                    words = f"File too large: more than {self._most} messages in {self._days} days; name a day"
                    raise fail(errno.EFBIG, path, f"{words} (2026-05-03), or set fewer days")
        listing = _Listing(ids, first, last, time.monotonic() + self._ttl)
        for message in await self.described(ids, path):
            if not first <= message.received.timestamp() < last:
                del ids[message.id]
        self._listings[label, day] = listing
        if len(self._listings) > 1000:
            del self._listings[next(iter(self._listings))]
        return listing

    async def _profile(self, path: Path) -> str:
        try:
            answer = await self._rest.get(f"{ME}/profile", path=path, params={"fields": "historyId,emailAddress"})
        except FileNotFoundError:
            return ""  # a server without profiles: listings are asked for again
        return str(answer.json().get("historyId", ""))

    async def address(self, path: Path) -> str:
        """The address of the account."""
        return str((await self._rest.get(f"{ME}/profile", path=path)).json()["emailAddress"])

    # ------------------------------------------------------------------------------------------------ freshness

    async def _refresh(self, path: Path) -> None:
        stale = [key for key, listing in self._listings.items() if listing.until <= time.monotonic()]
        if not stale:
            return
        if not self._history:
            for key in stale:
                del self._listings[key]
            return
        params: Params = {"startHistoryId": self._history, "maxResults": 500}
        changed: dict[str, Any] = {}
        token: str | None = None
        while True:
            try:
                answer = await self._rest.get(f"{ME}/history", path=path, params={**params, "pageToken": token})
            except FileNotFoundError:  # too long ago
                self._listings.clear()
                self._known.clear()
                self._history = ""
                return
            said = answer.json()
            for record in said.get("history") or ():
                for kind in ("messagesAdded", "labelsAdded", "labelsRemoved", "messagesDeleted"):
                    for one in record.get(kind) or ():
                        changed[str(one["message"]["id"])] = None if kind == "messagesDeleted" else one["message"]
            token = said.get("nextPageToken")
            if token is None:
                break
        self._history = str(said.get("historyId") or self._history)
        await self._apply(changed, path)
        for listing in self._listings.values():
            listing.until = time.monotonic() + self._ttl

    async def _apply(self, changed: dict[str, Any], path: Path) -> None:
        for id, message in changed.items():
            known = self._known.get(id)
            if message is None:
                self.drop(id)
            elif known is not None and "labelIds" in message:
                history = str(message.get("historyId") or self._history)
                self._known[id] = known._replace(labels=frozenset(message["labelIds"]), history=history)
            elif known is not None:
                del self._known[id]
        for message in await self.described([id for id, one in changed.items() if one is not None], path):
            self.place(message)

    def place(self, message: GmailMessage) -> None:
        """Put a message into the listings where it belongs, and out of the others."""
        self._known[message.id] = message
        for (label, _), listing in self._listings.items():
            inside = label in message.labels if label else not message.labels & HIDDEN
            if inside and listing.first <= message.received.timestamp() < listing.last:
                listing.ids[message.id] = None
            else:
                listing.ids.pop(message.id, None)

    def drop(self, id: str) -> None:
        self._known.pop(id, None)
        for listing in self._listings.values():
            listing.ids.pop(id, None)

    def forget(self) -> None:
        """Ask for the history at the next look."""
        for listing in self._listings.values():
            listing.until = 0.0
        self._labels = self._labels[0], 0.0

    # ------------------------------------------------------------------------------------------------- batches

    async def described(self, ids: Iterable[str], path: Path) -> list[GmailMessage]:
        """These messages; those that are gone meanwhile are left out."""
        wanted = list(ids)
        missing = [id for id in wanted if id not in self._known]
        for start in range(0, len(missing), TOGETHER):
            for found in await self._batch(missing[start : start + TOGETHER], path):
                self._known[str(found["id"])] = message_of(found)
        described = [self._known[id] for id in wanted if id in self._known]
        while len(self._known) > max(MOST_MESSAGES, len(wanted)):
            self._known.popitem(last=False)
        return described

    async def _batch(self, ids: Sequence[str], path: Path) -> list[Any]:
        query = urlencode({"format": "full", "fields": FIELDS})
        if not self._batches or len(ids) == 1:
            return [one for one in await asyncio.gather(*(self._single(id, query, path) for id in ids)) if one]
        boundary = f"ramet{secrets.token_hex(16)}"
        parts = [
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
            f"GET {ME}/messages/{id}?{query} HTTP/1.1\r\n\r\n"
            for number, id in enumerate(ids)
        ]
        try:
            answer = await self._rest.send(
                "POST", "/batch", path=path, content=f"{''.join(parts)}--{boundary}--".encode(), reads=True,
                headers={"Content-Type": f"multipart/mixed; boundary={boundary}"},
            )  # fmt: skip
        except FileNotFoundError:
            self._batches = False  # a server without batches
            return await self._batch(ids, path)
        return _answers(answer.body, answer.headers.get("content-type", ""), path)

    async def _single(self, id: str, query: str, path: Path) -> Any:
        try:
            return (await self._rest.get(f"{ME}/messages/{id}?{query}", path=path)).json()
        except FileNotFoundError:
            return None


def _answers(body: bytes, kind: str, path: Path) -> list[Any]:
    """The answers of a batch; one that failed for a while fails all, so that they are asked for again."""
    boundary = re.search(r'boundary="?([^";]+)"?', kind)
    if boundary is None:
        raise fail(errno.EIO, path, "Gmail answers a batch with something else")
    found: list[Any] = []
    for part in body.split(b"--" + boundary[1].encode())[1:-1]:
        inner = _HTTP.search(part)
        if inner is None:
            raise fail(errno.EIO, path, "Gmail answers a batch with something else")
        status = int(inner[1])
        if status == 404:
            continue
        if status in (403, 429):
            raise rate_limited(path, "Gmail", 0.0)
        if status >= 500:
            raise unavailable(path, f"Gmail answers {status}")
        said = json.loads(inner[2])
        if status >= 300:
            raise fail(errno.EIO, path, f"Gmail answers {status}: {explain(said)[:200]}")
        found.append(said)
    return found


def _segment(name: str) -> str:
    """A part of a label's name as a directory; one that looks like a day does not."""
    plain = as_name(name)
    return f"%{ord(plain[0]):02X}{plain[1:]}" if DATE.fullmatch(plain) else plain
