"""`GoogleDocsResource`: documents of Google as Markdown that can be edited.

/owned/<title>__<id>/{doc.md,doc.json,comments.jsonl,tabs/01-<title>.md}    and /shared likewise
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import fixed
from ramet.backends.services.google.api import DOCUMENT, FIELDS
from ramet.backends.services.google.docs_edit import edit_requests
from ramet.backends.services.google.docs_markdown import DocumentTab, blocks_of, markdown, tabs_of
from ramet.backends.services.google.drive_upload import DriveUpload
from ramet.backends.services.google.editor import EditorConfig, EditorService
from ramet.backends.services.names import title_name
from ramet.backends.services.nodes import Asked, Collection, Item, Place, Rendered
from ramet.backends.services.rest import Params
from ramet.core.errors import fail
from ramet.core.paths import Path, decode, encode
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

_NEW: Final = re.compile(r".+\.md", re.DOTALL)
_TAB: Final = re.compile(r"(\d{1,4})-.*\.md", re.DOTALL)
README: Final = """\
# Google Docs

    owned/<title>__<id>/doc.md               a document as Markdown
    owned/<title>__<id>/tabs/01-<title>.md   one tab of it
    owned/<title>__<id>/doc.json             what Google says of it
    owned/<title>__<id>/comments.jsonl       comments; `post owned/<title>__<id> -m TEXT` adds one
    shared/...                               likewise, those of others

- Edit: `sed -i 's/May/June/' owned/Plan__*/doc.md`. Only what differs is sent; the rest keeps its formatting. Headings,
  lists, **bold**, *italic*, `code`, links and the cells of tables can be changed. New tables, images and footnotes are
  refused. A document with several tabs is edited by its tabs/.
- Add: `echo '- one more' >> owned/Plan__*/doc.md` makes new paragraphs at the end.
- New: `cat plan.md > owned/Plan.md`; Google makes a document of the Markdown. `rmdir owned/Old__*` moves to the trash.
- The API: `query . 'GET /v1/documents/<id>'`, `query -w . 'POST /v1/documents/<id>:batchUpdate' '{"requests": [...]}'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class GoogleDocsConfig(EditorConfig):
    """The documents of an account."""

    kind: ClassVar[str] = "gdocs"

    base_url: str = "https://docs.googleapis.com"
    """The address of the API of Docs."""


class GoogleDocsResource(EditorService):
    """`GoogleDocsResource(GoogleDocsConfig(...))`. `token` is a function that returns an access token."""

    config: GoogleDocsConfig
    mime = DOCUMENT
    scope = "documents"
    prefix = "/v1/documents"

    def __init__(self, config: GoogleDocsConfig, *, token: TokenSource | None = None) -> None:
        stat = self._stat_of_content
        self._made: dict[str, str] = {}
        """The ids of documents that were made here, by file name."""
        nodes = (
            Rendered("/README.md", fixed(README)),
            Asked("/owned/*", self._text, stat, self._edit, self._fresh, self._append),
            Asked("/owned/*/doc.md", self._text, stat, self._edit, self._fresh, self._append),
            Asked("/owned/*/doc.json", self._as_json, stat),
            Collection("/owned/*/tabs", self._tabs, self._tab, lambda name: name),
            Asked("/owned/*/tabs/*", self._tab_text, stat, self._edit_tab, self._fresh, self._append_tab),
        )
        super().__init__(config, nodes, token, self._create)

    async def _load(self, id: str, path: Path) -> Any:
        params: Params = {"includeTabsContent": "true"}
        return (await self._rest.get(f"/v1/documents/{id}", path=path, params=params)).json()

    def _key(self, name: str) -> str | None:
        return name if name in self._made else super()._key(name)

    async def _one(self, place: Place, key: str) -> Item:
        made = self._made.get(key)
        if made is None:
            return await super()._one(place, key)
        item = await super()._one(place, made)
        return item._replace(key=key, name=key, stat=item.stat._replace(kind=Kind.FILE))

    async def _text(self, place: Place) -> AsyncIterator[bytes]:
        tabs = tabs_of(await self._whole(place))
        texts = [markdown(blocks_of(tab)) for tab in tabs]
        if len(tabs) > 1:
            texts = [f"<!-- tab: {tab.title} -->\n\n{text}" for tab, text in zip(tabs, texts, strict=True)]
        yield encode("\n".join(texts))

    async def _tabs(self, place: Place) -> AsyncIterator[Item]:
        stat = self._stat_of_content(place)
        for number, tab in enumerate(tabs_of(await self._whole(place)), 1):
            name = f"{number:02}-{title_name(tab.title)}.md"
            yield Item(name, name, number - 1, Stat(Kind.FILE, None, stat.mtime_ns, stat.version, stat.ttl))

    async def _tab(self, place: Place, key: str) -> Item:
        found = _TAB.fullmatch(key)
        async with closing(self._tabs(place)) as tabs:
            async for item in tabs:
                if found is not None and item.data == int(found[1]) - 1:
                    return item._replace(key=key)
        raise fail(errno.ENOENT, place.path)

    async def _tab_text(self, place: Place) -> AsyncIterator[bytes]:
        tabs = tabs_of(await self._whole(place))
        if place.data >= len(tabs):
            raise fail(errno.ENOENT, place.path)
        yield encode(markdown(blocks_of(tabs[place.data])))

    # ---------------------------------------------------------------------------------------------- changing

    async def _fresh(self, place: Place) -> Place:
        self._loaded.pop(place.items[0].data["id"], None)
        data = (await super()._one(place, place.items[0].data["id"])).data
        return place._replace(items=(place.items[0]._replace(data=data), *place.items[1:]))

    async def _edit(self, place: Place, old: bytes, new: bytes) -> None:
        document = await self._whole(place)
        await self._send(place, document, _only_tab(document, place.path), new)

    async def _edit_tab(self, place: Place, old: bytes, new: bytes) -> None:
        document = await self._whole(place)
        await self._send(place, document, tabs_of(document)[place.data], new)

    async def _append(self, place: Place, data: bytes) -> None:
        document = await self._whole(await self._fresh(place))
        await self._add(place, document, _only_tab(document, place.path), data)

    async def _append_tab(self, place: Place, data: bytes) -> None:
        document = await self._whole(await self._fresh(place))
        await self._add(place, document, tabs_of(document)[place.data], data)

    async def _add(self, place: Place, document: Any, tab: DocumentTab, data: bytes) -> None:
        """New blocks behind the last one, before the footnotes."""
        blocks = blocks_of(tab)
        text = [block for block in blocks if not block.fixed]
        notes = [block for block in blocks if block.fixed]
        gap = "" if text and text[-1].form.kind == "item" else "\n"
        new = encode(markdown(text) + gap) + data + encode("\n\n" + markdown(notes))
        await self._send(place, document, tab, new)

    async def _send(self, place: Place, document: Any, tab: DocumentTab, new: bytes) -> None:
        try:
            new.decode()
        except UnicodeDecodeError:
            raise fail(
                errno.EINVAL, place.path, "Invalid argument: the text is not UTF-8; nothing was changed"
            ) from None
        content = (tab.data.get("body") or {}).get("content") or ()
        first = next((int(one.get("startIndex", 1)) for one in content if "paragraph" in one), 1)
        requests = edit_requests(blocks_of(tab), decode(new), tab.id, place.path, first)
        if not requests:
            return
        body = {"requests": requests, "writeControl": {"requiredRevisionId": document["revisionId"]}}
        try:
            await self._rest.send(
                "POST", f"/v1/documents/{place.items[0].data['id']}:batchUpdate", path=place.path, json_body=body
            )
        except OSError as error:
            if error.errno == errno.EINVAL and "revision" in (error.strerror or "").lower():
                words = "Stale file handle: the document has been changed since you read it; read it again"
                raise fail(errno.ESTALE, place.path, words) from None
            raise

    async def _create(self, place: Place, name: str, content: bytes) -> None:
        if not _NEW.fullmatch(name):
            raise fail(errno.EINVAL, place.path, "Invalid argument: a new document is a file that ends in .md")
        about = {"name": name.removesuffix(".md"), "mimeType": DOCUMENT}
        upload = DriveUpload(self._drive, "POST", "/upload/drive/v3/files", about, "text/markdown", place.path / name)
        self._made[name] = str((await upload.send(content, FIELDS))["id"])

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A request to the API of Docs or Drive."""
        raw = await self._raw(path, text, values, write)
        if raw is None:
            raise fail(errno.EINVAL, path, "a query is `GET /v1/documents/...`, or another method with -w")
        yield raw


def _only_tab(document: Any, path: Path) -> DocumentTab:
    tabs = tabs_of(document)
    if len(tabs) > 1:
        raise fail(errno.EINVAL, path, "Invalid argument: edit one of tabs/; the document has several")
    return tabs[0]
