"""`EditorService`: the base of Docs, Sheets and Slides: files of one kind, listed by Drive, read by an API each.

/owned/<title>__<id>/   files of the account
/shared/<title>__<id>/  those of others
"""

from __future__ import annotations

import errno
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import json_lines, json_text, letter_text
from ramet.backends.services.google.api import (
    FIELDS,
    SCOPES,
    comment_on,
    comments_of,
    drive_file,
    google_rest,
    listed_files,
    quoted,
    raw_query,
)
from ramet.backends.services.google.token import GoogleConfig, google_auth
from ramet.backends.services.names import title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Node, Place
from ramet.backends.services.rest import Params
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

KEPT: Final = 32
"""Files whose structure is remembered."""
_ID: Final = re.compile(r"(?:.*__)?([A-Za-z0-9_-]{8,128})", re.DOTALL)
Create = Callable[[Place, str, bytes], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, repr=False)
class EditorConfig(GoogleConfig):
    """What Docs, Sheets and Slides share: Drive lists their files."""

    drive_url: str = "https://www.googleapis.com"
    """The address of the API of Drive, which lists the files."""


class EditorService(Service):
    """A subclass names the kind of its files and asks its own API about one in `_load`."""

    config: EditorConfig
    mime: ClassVar[str]
    scope: ClassVar[str]
    prefix: ClassVar[str]
    """What addresses of its API begin with."""

    def __init__(
        self, config: EditorConfig, nodes: Sequence[Node], token: TokenSource | None, create: Create | None = None
    ) -> None:
        auth = google_auth(config, token, [SCOPES["drive"], SCOPES[self.scope]])
        self._rest = google_rest(config, auth, config.base_url, self.scope)
        self._drive = google_rest(config, auth, config.drive_url, "drive")
        self._ids: dict[str, str] = {}
        """Ids by names: an id may hold what separates it from the title."""
        self._loaded: OrderedDict[str, tuple[str | None, Any]] = OrderedDict()
        super().__init__(config, (
            *nodes,
            Collection("/owned", self._owned, self._one, self._key, self._trash, create),
            Collection("/shared", self._others, self._one, self._key, self._trash, like="/owned"),
            Asked("/owned/*/comments.jsonl", lambda place: json_lines(self._comments(place))),
            Inbox("/owned/*", self._comment),
        ))  # fmt: skip

    # -------------------------------------------------------------------------------------------- listings

    def _owned(self, place: Place) -> AsyncIterator[Item]:
        return self._list("'me' in owners", place)

    def _others(self, place: Place) -> AsyncIterator[Item]:
        return self._list("not 'me' in owners", place)

    async def _list(self, whose: str, place: Place) -> AsyncIterator[Item]:
        query = f"mimeType = {quoted(self.mime)} and {whose} and trashed = false"
        async with closing(listed_files(self._drive, query, place.path)) as files:
            async for data in files:
                yield self._as_item(data)

    def _as_item(self, data: Any) -> Item:
        file = drive_file(data)
        name = f"{title_name(file.name)}__{file.id}"
        if len(self._ids) > 50_000:
            self._ids.clear()
        self._ids[name] = file.id
        return Item(file.id, name, data, Stat(Kind.DIR, None, file.mtime_ns, None, self.config.ttl))

    def _key(self, name: str) -> str | None:
        found = _ID.fullmatch(name)
        return self._ids.get(name) or (found[1] if found is not None else None)

    async def _one(self, place: Place, key: str) -> Item:
        params: Params = {"fields": FIELDS, "supportsAllDrives": "true"}
        data = (await self._drive.get(f"/drive/v3/files/{key}", path=place.path, params=params)).json()
        if data.get("trashed") or data.get("mimeType") != self.mime:
            words = "it is in the trash" if data.get("trashed") else "it is a file of another kind; mount Google Drive"
            raise fail(errno.ENOENT, place.path, f"No such file or directory: {words}")
        return self._as_item(data)

    async def _fresh(self, place: Place) -> Place:
        return place._replace(items=(await self._one(place, place.items[0].data["id"]), *place.items[1:]))

    def _stat_of_content(self, place: Place) -> Stat:
        """A file made from the whole: as new as that."""
        file = drive_file(place.items[0].data)
        return Stat(Kind.FILE, None, file.mtime_ns, file.version, self.config.ttl)

    async def _whole(self, place: Place) -> Any:
        """What the API says of the file, asked again when it has changed."""
        id, version = place.items[0].data["id"], drive_file(place.items[0].data).version
        known = self._loaded.get(id)
        if known is None or version is None or known[0] != version:
            known = self._loaded[id] = version, await self._load(id, place.path)
            while len(self._loaded) > KEPT:
                self._loaded.popitem(last=False)
        self._loaded.move_to_end(id)
        return known[1]

    async def _load(self, id: str, path: Path) -> Any:
        raise NotImplementedError

    async def _as_json(self, place: Place) -> AsyncIterator[bytes]:
        yield json_text(await self._whole(place))

    # -------------------------------------------------------------------------------------------- changing

    async def _trash(self, place: Place) -> None:
        address = f"/drive/v3/files/{place.items[0].data['id']}?supportsAllDrives=true&fields=id"
        await self._drive.send("PATCH", address, path=place.path, json_body={"trashed": True}, repeatable=True)

    def _comments(self, place: Place) -> AsyncIterator[Any]:
        return comments_of(self._drive, place.items[0].data["id"], place.path)

    async def _comment(self, place: Place, letter: Letter) -> str:
        text = letter_text(letter, place.path, "a comment")
        return await comment_on(self._drive, place.items[0].data["id"], text, place.path)

    async def _raw(self, path: Path, text: str, values: Sequence[str], write: bool) -> bytes | None:
        """The answer to a query that is a request, to the API or to Drive."""
        is_drive = "/drive/v3/" in text
        rest, prefix = (self._drive, "/drive/v3/") if is_drive else (self._rest, self.prefix)
        found = await raw_query(rest, self.config, path, text, values, write, (prefix,))
        if found is not None and write:
            self.forget()
        return found

    async def _id_at(self, path: Path) -> str:
        """The file that a query is about."""
        place = (await self._find(path)).place
        if not place.items:
            raise fail(errno.EINVAL, path, "name a file: query owned/<title>__<id> ..., or give a request (GET /...)")
        return str(place.items[0].data["id"])

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        self._loaded.clear()

    async def close(self) -> None:
        await super().close()
        await self._rest.close()
        await self._drive.close()
