"""`NotionResource`: the pages and databases of a Notion workspace as files.

/pages/<title>__<id>/{page.md,page.json,comments.jsonl}       and a directory for each page below it
/databases/<title>__<id>/{rows.jsonl,database.json}
/databases/<title>__<id>/rows/<title>__<id>/page.md           properties above the text; edits are sent
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.services import front_matter
from ramet.backends.services.auth import TokenAuth, TokenSource
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import fixed, json_line, json_lines, json_object, letter_text, pretty_json
from ramet.backends.services.front_matter import BODY, Value
from ramet.backends.services.names import time_ns, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Place, Rendered
from ramet.backends.services.notion.api import NotionAPI, explain, judge
from ramet.backends.services.notion.texts import changed_piece, fields_of
from ramet.backends.services.notion.values import SENT, plain, rich, sent_of, title_key, title_of, value_of
from ramet.backends.services.pages import first_of
from ramet.backends.services.rest import Rest, patiently
from ramet.backends.services.tree import Service
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

SETTLED: Final = 120.0
"""Seconds after which a time of Notion, which has only minutes, stands for one state of a page."""
MOST_PARTS: Final = 200
"""Parts of a long page that are asked for one by one."""
HEX: Final = "[0-9a-f]{32}"
_ID: Final = re.compile(rf"(?:.*__)?({HEX}|[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})", re.DOTALL)
_NEW: Final = re.compile(r".+\.md", re.DOTALL)
_REQUEST: Final = re.compile(r"(GET|POST|PATCH|DELETE)\s+(/\S*)")
_READS: Final = re.compile(r"/search|/data_sources/[^/?]+/query")
README: Final = """\
# Notion

    pages/<title>__<id>/page.md           title and properties, then the text as Notion's Markdown
    pages/<title>__<id>/comments.jsonl    its open comments
    pages/<title>__<id>/page.json         what Notion says of it
    pages/<title>__<id>/<title>__<id>/    the pages below it, likewise
    databases/<title>__<id>/rows.jsonl    one row a line, with plain values
    databases/<title>__<id>/rows/<title>__<id>/page.md
    databases/<title>__<id>/database.json

The id alone is enough: `cat pages/1f3.../page.md`. Only pages that are shared with the integration are there. Notion's
search, which lists them, may miss new ones; open those by their id.

- Find rows: `jq -r 'select(.Status=="Open").Name' databases/Tasks__*/rows.jsonl`, or let Notion find them:
  `query databases/Tasks__* '{"property": "Status", "status": {"equals": "Open"}}'`
- Edit: `sed -i 's/^Status: .*/Status: Done/' databases/Tasks__*/rows/Fix*/page.md`. Only what differs is sent.
- New page: `cat > pages/Roadmap__*/Idea.md`. New row: `cat > databases/Tasks__*/rows/Fix.md`, with front matter.
- Comment: `post pages/Roadmap__* -m 'Looks good'`. `rmdir pages/Old__*` moves a page to the trash.
- Search titles: `query . roadmap`. The API: `query . 'GET /users'`, `query -w . 'PATCH /pages/...' '{...}'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class NotionConfig(ServiceConfig):
    """A workspace of Notion, as far as it is shared with an integration."""

    kind: ClassVar[str] = "notion"
    secrets: ClassVar[tuple[str, ...]] = ("api_key",)

    api_key: str | None = None
    """The secret of an integration (`ntn_`), or an OAuth token."""
    api_key_env: str | None = None
    """The environment variable that holds the secret."""
    base_url: str = "https://api.notion.com/v1"
    """The address of the API."""
    api_version: str = "2026-03-11"
    """The version of the API; pages as Markdown need this one or a newer one."""
    requests_per_second: float | None = 3.0
    """Requests that are sent per second at most; Notion allows three."""
    max_pages: int = 20_000
    """Pages that are listed at most; where there are more, listings fail, and pages are opened by their id."""
    allow_delete: bool = False
    """Whether an edit of a text may remove pages and databases that stand in it."""


class NotionResource(Service):
    """`NotionResource(NotionConfig(api_key="ntn_..."))`. `token` is a function that returns the secret."""

    config: NotionConfig

    def __init__(self, config: NotionConfig, *, token: TokenSource | None = None) -> None:
        auth = TokenAuth(token or (lambda: config.secret("api_key")))
        headers = {"Notion-Version": config.api_version}
        self._rest = Rest.of(config, auth, headers=headers, judge=judge, explain=explain)
        self._api = NotionAPI(self._rest)
        self._index: tuple[dict[str, Any], float] = ({}, 0.0)
        self._listing = LoopLocal(asyncio.Lock)
        self._made: dict[tuple[str, str], str] = {}
        """The ids of pages that were made here, by parent and file name."""
        rows = "/databases/*/rows"
        super().__init__(config, (
            Rendered("/README.md", fixed(README)),
            Collection("/pages", self._roots, self._page, _key, self._trash),
            Collection("/pages/*", self._children, self._page, _key, self._trash, self._create, like="/pages"),
            Asked("/pages/*", self._text, self._text_stat, self._edit_page, self._fresh_page),
            Asked("/pages/*/page.md", self._text, self._text_stat, self._edit_page, self._fresh_page),
            Rendered("/pages/*/page.json", pretty_json),
            Asked("/pages/*/comments.jsonl", lambda place: json_lines(self._comments(place))),
            Collection("/databases", self._databases, self._database, _key),
            Rendered("/databases/*/database.json", pretty_json),
            Asked("/databases/*/rows.jsonl", lambda place: json_lines(self._flat(place))),
            Collection(rows, self._rows, self._page, _key, self._trash, self._create, like="/pages"),
            Inbox("/pages/*", self._comment),
        ))  # fmt: skip

    # -------------------------------------------------------------------------------------------- listings

    async def _known(self, path: Path) -> dict[str, Any]:
        """All pages that are not rows, by id: one search, which concurrent listings share."""
        async with self._listing.get():
            if self._index[1] < time.monotonic():
                self._index = await self._searched(path), time.monotonic() + self.config.ttl
            return self._index[0]

    async def _searched(self, path: Path) -> dict[str, Any]:
        known: dict[str, Any] = {}
        filtered = {"filter": {"property": "object", "value": "page"}}
        async with closing(self._api.posted("/search", path, filtered)) as pages:
            async for page in pages:
                if "properties" in page and page["parent"]["type"] not in ("data_source_id", "database_id"):
                    known[page["id"]] = page
                if len(known) > self.config.max_pages:
                    words = f"File too large: there are more than {self.config.max_pages} pages; open one by its id"
                    raise fail(errno.EFBIG, path, words)
        for id in set(self._made.values()) - set(known):
            known[id] = (await self._rest.get(f"/pages/{id}", path=path)).json()
        return known

    async def _roots(self, place: Place) -> AsyncIterator[Item]:
        known = await self._known(place.path)
        for page in known.values():
            if page["parent"].get("page_id") not in known:
                yield self._as_page(page)

    async def _children(self, place: Place) -> AsyncIterator[Item]:
        above = place.data["id"]
        for page in (await self._known(place.path)).values():
            if page["parent"].get("page_id") == above:
                yield self._as_page(page)

    async def _page(self, place: Place, key: str) -> Item:
        if _NEW.fullmatch(key):
            made = self._made.get((place.data["id"] if place.items else "", key))
            if made is None:
                raise fail(errno.ENOENT, place.path)
            page = self._as_page((await self._rest.get(f"/pages/{made}", path=place.path)).json())
            return page._replace(key=key, name=key, stat=page.stat._replace(kind=Kind.FILE))
        page = (await self._rest.get(f"/pages/{key}", path=place.path)).json()
        if page.get("in_trash"):
            raise fail(errno.ENOENT, place.path, "No such file or directory: the page is in the trash")
        return self._as_page(await self._api.whole(page, place.path))

    def _as_page(self, page: Any) -> Item:
        key = page["id"].replace("-", "")
        stat = Stat(Kind.DIR, None, time_ns(page["last_edited_time"]), None, self.config.ttl)
        return Item(key, f"{title_name(title_of(page['properties']))}__{key}", page, stat)

    async def _databases(self, place: Place) -> AsyncIterator[Item]:
        filtered = {"filter": {"property": "object", "value": "data_source"}}
        async with closing(self._api.posted("/search", place.path, filtered)) as found:
            async for one in found:
                if "properties" in one:
                    yield self._as_database(one)

    async def _database(self, place: Place, key: str) -> Item:
        return self._as_database((await self._rest.get(f"/data_sources/{key}", path=place.path)).json())

    def _as_database(self, one: Any) -> Item:
        key = one["id"].replace("-", "")
        stat = Stat(Kind.DIR, None, time_ns(one["last_edited_time"]), None, self.config.ttl)
        return Item(key, f"{title_name(plain(one.get('title')))}__{key}", one, stat)

    async def _entries(self, place: Place, body: dict[str, Any]) -> AsyncIterator[Any]:
        async with closing(self._api.posted(f"/data_sources/{place.data['id']}/query", place.path, body)) as rows:
            async for row in rows:
                if "properties" in row:
                    yield await self._api.whole(row, place.path)

    async def _rows(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._entries(place, {})) as rows:
            async for row in rows:
                yield self._as_page(row)

    async def _flat(self, place: Place, body: dict[str, Any] | None = None) -> AsyncIterator[Any]:
        async with closing(self._entries(place, body or {})) as rows:
            async for row in rows:
                item = self._as_page(row)
                at = f"databases/{self._as_database(place.data).name}/rows/{item.name}/page.md"
                values = {name: value_of(one) for name, one in row["properties"].items()}
                yield {**values, "_id": row["id"], "path": at}

    async def _comments(self, place: Place) -> AsyncIterator[Any]:
        async with closing(self._api.got("/comments", place.path, block_id=place.data["id"])) as comments:
            async for comment in comments:
                yield {"text": plain(comment["rich_text"]), **comment}

    # ------------------------------------------------------------------------------------------------ pages

    async def _markdown(self, id: str, path: Path) -> tuple[str, bool]:
        """The text of a page, and whether it came whole; parts that Notion leaves out are put at its end."""
        said = (await self._rest.get(f"/pages/{id}/markdown", path=path)).json()
        text, todo, seen = str(said["markdown"]), list(said.get("unknown_block_ids") or ()), {id}
        whole = not said.get("truncated") and not todo
        while todo:
            part = todo.pop(0)
            if part in seen:
                continue
            seen.add(part)
            if len(seen) > MOST_PARTS:
                raise fail(errno.EFBIG, path, f"File too large: the page has more than {MOST_PARTS} parts")
            try:
                said = (await self._rest.get(f"/pages/{part}/markdown", path=path)).json()
            except (FileNotFoundError, PermissionError):
                text += f"\n<!-- Notion does not show the block {part} -->"
                continue
            text += "\n" + str(said["markdown"])
            todo += said.get("unknown_block_ids") or ()
        return text, whole

    async def _text(self, place: Place) -> AsyncIterator[bytes]:
        text, _ = await self._markdown(place.data["id"], place.path)
        yield encode(front_matter.render(fields_of(place.data), text))

    def _text_stat(self, place: Place) -> Stat:
        edited = place.items[-1].stat.mtime_ns
        settled = edited is not None and time.time() - edited / 1e9 > SETTLED
        version = f"{place.data['id']} {place.data['last_edited_time']}" if settled else None
        return Stat(Kind.FILE, None, edited, version, self.config.ttl)

    async def _fresh_page(self, place: Place) -> Place:
        page = (await self._rest.get(f"/pages/{place.data['id']}", path=place.path)).json()
        return place._replace(items=(*place.items[:-1], self._as_page(await self._api.whole(page, place.path))))

    async def _edit_page(self, place: Place, old: bytes, new: bytes) -> None:
        page = place.data
        editable = [name for name, one in page["properties"].items() if one["type"] in SENT]
        _, whole = await self._markdown(page["id"], place.path)
        changed = front_matter.edited(place.path, old, new, editable, body=whole)
        body = changed.pop(BODY, None)
        values = sent_of(changed, page["properties"], place.path)
        if body is not None:
            await self._edit_text(place, front_matter.parse(old.decode(), place.path)[1], str(body))
        if values:
            address = f"/pages/{page['id']}"
            await self._rest.send("PATCH", address, path=place.path, json_body={"properties": values}, repeatable=True)

    async def _edit_text(self, place: Place, old: str, new: str) -> None:
        """A small edit names the text that it replaces, so that Notion refuses it if that is gone."""
        piece = changed_piece(old, new)
        deletes = {"allow_deleting_content": True} if self.config.allow_delete else {}
        if piece is None:
            body: dict[str, Any] = {"type": "replace_content", "replace_content": {"new_str": new, **deletes}}
        else:
            updates = [{"old_str": piece[0], "new_str": piece[1]}]
            body = {"type": "update_content", "update_content": {"content_updates": updates, **deletes}}
        address = f"/pages/{place.data['id']}/markdown"
        try:
            await self._rest.send("PATCH", address, path=place.path, json_body=body, repeatable=piece is None)
        except OSError as error:
            if error.errno == errno.EINVAL and piece is not None and "old_str" in str(error.strerror):
                words = "Stale file handle: the service has changed it since you read it; read it again"
                raise fail(errno.ESTALE, place.path, words) from None
            raise

    async def _create(self, place: Place, name: str, data: bytes) -> None:
        """A page below a page, or a row, from `Title.md`; front matter sets its properties."""
        if _NEW.fullmatch(name) is None:
            raise fail(errno.EPERM, place.path, "Operation not permitted: a new page is a file such as Idea.md")
        try:
            fields, text = front_matter.parse(data.decode(), place.path)
        except UnicodeDecodeError:
            raise fail(errno.EINVAL, place.path, "Invalid argument: the text is not UTF-8") from None
        above, is_row = place.data, place.data["object"] == "data_source"
        properties = above["properties"] if is_row else {"title": {"type": "title"}}
        given: dict[str, Value] = {title_key(properties): name.removesuffix(".md"), **fields}
        unknown = [key for key in given if key not in properties or properties[key]["type"] not in SENT]
        if unknown:
            known = ", ".join(key for key, one in properties.items() if one["type"] in SENT)
            raise fail(errno.EINVAL, place.path, f"Invalid argument: cannot set {unknown[0]}: you can set {known}")
        parent = {"type": "data_source_id", "data_source_id": above["id"]} if is_row else {"page_id": above["id"]}
        body = {"parent": parent, "properties": sent_of(given, properties, place.path), "markdown": text}
        made = (await self._rest.send("POST", "/pages", path=place.path, json_body=body)).json()
        self._made[above["id"], name] = made["id"]

    async def _trash(self, place: Place) -> None:
        address = f"/pages/{place.data['id']}"
        await self._rest.send("PATCH", address, path=place.path, json_body={"in_trash": True}, repeatable=True)
        self._made = {key: id for key, id in self._made.items() if id != place.data["id"]}

    async def _comment(self, place: Place, letter: Letter) -> str:
        text = letter_text(letter, place.path, "a comment")
        body = {"parent": {"page_id": place.data["id"]}, "rich_text": rich(text.rstrip("\n"))}
        return str((await self._rest.send("POST", "/comments", path=place.path, json_body=body)).json()["id"])

    # --------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A filter as JSON on a database, a request such as `GET /users`, or words of titles."""
        request = _REQUEST.fullmatch(text.strip())
        if request is not None:
            yield await self._request(path, request[1], request[2], values, write)
            return
        if values:
            raise fail(errno.EINVAL, path, "a search takes no values; quote it as one word")
        if text.lstrip().startswith("{"):
            found = await self._find(path)
            if len(path.parts) < 2 or path.parts[0] != "databases":
                raise fail(errno.EINVAL, path, "a filter is for a database: query databases/NAME '{...}'")
            entries = self._flat(found.place._replace(items=found.place.items[:1]), {"filter": json_object(text, path)})
        else:
            entries = self._hits(text, path)
        async with closing(json_lines(first_of(entries, limit))) as lines:
            async for block in lines:
                yield block

    async def _hits(self, text: str, path: Path) -> AsyncIterator[Any]:
        async with closing(self._api.posted("/search", path, {"query": text})) as found:
            async for one in found:
                if "properties" in one:
                    is_page = one["object"] == "page"
                    item = self._as_page(one) if is_page else self._as_database(one)
                    yield {"path": f"pages/{item.name}/page.md" if is_page else f"databases/{item.name}", **one}

    async def _request(self, path: Path, method: str, address: str, values: Sequence[str], write: bool) -> bytes:
        reads = method == "GET" or (method == "POST" and _READS.fullmatch(address) is not None)
        if not reads:
            if not write:
                raise fail(errno.EROFS, path, f"a {method} changes the service; that takes -w")
            self._check_writable(path)
        if method == "GET":
            return json_line((await patiently(partial(self._rest.get, address, path=path))).json())
        body = json_object(values[0], path) if values else {}
        send = partial(self._rest.send, method, address, path=path, json_body=body, reads=reads)
        return json_line((await patiently(send)).json())

    def forget(self, path: Path = ROOT) -> None:
        super().forget(path)
        self._index = {}, 0.0

    async def close(self) -> None:
        await super().close()
        await self._rest.close()


# ------------------------------------------------------------------------------------------------------- texts


def _key(name: str) -> str | None:
    found = _ID.fullmatch(name)
    if found is not None:
        return found[1].replace("-", "")
    return name if _NEW.fullmatch(name) else None
