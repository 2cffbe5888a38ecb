"""`GoogleSlidesResource`: presentations as Markdown and pictures, to be read.

/owned/<title>__<id>/{deck.md,notes.md,deck.json,comments.jsonl,slides/01.md,slides/01.png}    and /shared likewise
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import fixed
from ramet.backends.services.google.api import PRESENTATION
from ramet.backends.services.google.editor import EditorConfig, EditorService
from ramet.backends.services.google.slides_markdown import deck, notes, notes_text, slide_text
from ramet.backends.services.nodes import Asked, Collection, Item, Place, Rendered
from ramet.backends.services.rest import Params
from ramet.core.errors import fail
from ramet.core.paths import Path, encode
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

_SLIDE: Final = re.compile(r"(\d{1,6})\.(md|png)")
README: Final = """\
# Google Slides

    owned/<title>__<id>/deck.md            the text of all slides
    owned/<title>__<id>/notes.md           the speaker notes
    owned/<title>__<id>/slides/01.md       one slide with its notes
    owned/<title>__<id>/slides/01.png      how it looks
    owned/<title>__<id>/deck.json          what Google says of it
    owned/<title>__<id>/comments.jsonl     comments; `post owned/<title>__<id> -m TEXT` adds one
    shared/...                             likewise, those of others

Presentations are to be read. To change one, use the API:
`query -w . 'POST /v1/presentations/<id>:batchUpdate' '{"requests": [...], "writeControl": {...}}'`.
`rmdir owned/Old__*` moves to the trash.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class GoogleSlidesConfig(EditorConfig):
    """The presentations of an account."""

    kind: ClassVar[str] = "gslides"

    base_url: str = "https://slides.googleapis.com"
    """The address of the API of Slides."""


class GoogleSlidesResource(EditorService):
    """`GoogleSlidesResource(GoogleSlidesConfig(...))`. `token` is a function that returns an access token."""

    config: GoogleSlidesConfig
    mime = PRESENTATION
    scope = "presentations"
    prefix = "/v1/presentations"

    def __init__(self, config: GoogleSlidesConfig, *, token: TokenSource | None = None) -> None:
        stat = self._stat_of_content
        nodes = (
            Rendered("/README.md", fixed(README)),
            Asked("/owned/*/deck.md", self._text(deck), stat),
            Asked("/owned/*/notes.md", self._text(notes), stat),
            Asked("/owned/*/deck.json", self._as_json, stat),
            Collection("/owned/*/slides", self._slides, self._slide, lambda name: name),
            Asked("/owned/*/slides/*", self._content, stat),
        )
        super().__init__(config, nodes, token)

    async def _load(self, id: str, path: Path) -> Any:
        return (await self._rest.get(f"/v1/presentations/{id}", path=path)).json()

    def _text(self, render: Callable[[Any], str]) -> Callable[[Place], AsyncIterator[bytes]]:
        async def read(place: Place) -> AsyncIterator[bytes]:
            yield encode(render(await self._whole(place)))

        return read

    async def _slides(self, place: Place) -> AsyncIterator[Item]:
        count = len((await self._whole(place)).get("slides") or ())
        width = max(2, len(str(count)))
        stat = self._stat_of_content(place)
        for number in range(1, count + 1):
            for ending in ("md", "png"):
                name = f"{number:0{width}}.{ending}"
                yield Item(name, name, number, stat._replace(kind=Kind.FILE))

    async def _slide(self, place: Place, key: str) -> Item:
        found = _SLIDE.fullmatch(key)
        async with closing(self._slides(place)) as slides:
            async for item in slides:
                if found is not None and item.data == int(found[1]) and item.name.endswith(found[2]):
                    return item._replace(key=key)
        raise fail(errno.ENOENT, place.path)

    async def _content(self, place: Place) -> AsyncIterator[bytes]:
        number = place.data
        slides = (await self._whole(place)).get("slides") or ()
        if number > len(slides):
            raise fail(errno.ENOENT, place.path)
        slide = slides[number - 1]
        if place.items[-1].name.endswith(".md"):
            said = notes_text(slide)
            yield encode(slide_text(slide, number) + (f"\nNotes:\n\n{said}\n" if said else ""))
            return
        address = f"/v1/presentations/{place.items[0].data['id']}/pages/{slide['objectId']}/thumbnail"
        params: Params = {"thumbnailProperties.mimeType": "PNG", "thumbnailProperties.thumbnailSize": "LARGE"}
        found = (await self._rest.get(address, path=place.path, params=params)).json()
        # The link ends within half an hour, so it is asked for again each time.
        async with closing(self._rest.download(found["contentUrl"], path=place.path)) as blocks:
            async for block in blocks:
                yield block

    def _stat_of_content(self, place: Place) -> Stat:
        stat = super()._stat_of_content(place)
        return stat._replace(version=None) if place.path.name.endswith(".png") else stat

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A request to the API of Slides or Drive."""
        raw = await self._raw(path, text, values, write)
        if raw is None:
            raise fail(errno.EINVAL, path, "a query is `GET /v1/presentations/...`, or another method with -w")
        yield raw
