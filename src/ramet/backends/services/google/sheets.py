"""`GoogleSheetsResource`: spreadsheets as CSV, one file per tab.

/owned/<title>__<id>/{<tab>.csv,<tab>.formulas.csv,sheet.json,comments.jsonl}    and /shared likewise
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import fixed, json_lines
from ramet.backends.services.google.api import SPREADSHEET
from ramet.backends.services.google.editor import EditorConfig, EditorService
from ramet.backends.services.google.sheets_values import (
    FORMATTED,
    FORMULA,
    Spreadsheets,
    Tab,
    parsed,
    tabs_of,
)
from ramet.backends.services.nodes import Asked, Collection, Item, Place, Rendered
from ramet.backends.services.pages import first_of
from ramet.backends.services.rest import patiently
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

PLAIN, FORMULAS = ".csv", ".formulas.csv"
README: Final = """\
# Google Sheets

    owned/<title>__<id>/<tab>.csv             the cells of a tab as they are shown
    owned/<title>__<id>/<tab>.formulas.csv    the same with formulas, and with numbers as they are stored
    owned/<title>__<id>/sheet.json            tabs and their sizes
    owned/<title>__<id>/comments.jsonl        comments; `post owned/<title>__<id> -m TEXT` adds one
    shared/...                                likewise, those of others

- Edit: `sed -i 's/^Ada,.*/Ada,12/' owned/Budget__*/Jan.csv`. Only cells that differ are sent, as values: `12` is
  a number, `=A1` is a text. A value never replaces a formula; to change formulas, edit `.formulas.csv`.
- Append rows: `echo 'Bob,7' >> owned/Budget__*/Jan.csv`
- A range: `query owned/Budget__* 'Jan!A1:C10'` prints rows as JSON. `rmdir owned/Old__*` moves to the trash.
- The API: `query . 'GET /v4/spreadsheets/<id>'`; to make one:
  `query -w . 'POST /v4/spreadsheets' '{"properties": {"title": "New"}}'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class GoogleSheetsConfig(EditorConfig):
    """The spreadsheets of an account."""

    kind: ClassVar[str] = "gsheets"

    base_url: str = "https://sheets.googleapis.com"
    """The address of the API of Sheets."""


class GoogleSheetsResource(EditorService):
    """`GoogleSheetsResource(GoogleSheetsConfig(...))`. `token` is a function that returns an access token."""

    config: GoogleSheetsConfig
    mime = SPREADSHEET
    scope = "spreadsheets"
    prefix = "/v4/spreadsheets"

    def __init__(self, config: GoogleSheetsConfig, *, token: TokenSource | None = None) -> None:
        edit = (self._edit, self._append) if config.writable else (None, None)  # else large ones come in pieces
        nodes = (
            Rendered("/README.md", fixed(README)),
            Asked("/owned/*/sheet.json", self._as_json, self._stat_of_content),
            Collection("/owned/*", self._tabs, self._tab, lambda name: name if name.endswith(PLAIN) else None),
            Asked("/owned/*/*", self._csv, self._csv_stat, edit[0], append=edit[1]),
        )
        super().__init__(config, nodes, token)
        self._sheets = Spreadsheets(self._rest)

    async def _load(self, id: str, path: Path) -> Any:
        return await self._sheets.about(id, path)

    async def _tabs(self, place: Place) -> AsyncIterator[Item]:
        stat = Stat(Kind.FILE, None, place.items[0].stat.mtime_ns, None, self.config.ttl)
        for name, tab in tabs_of(await self._whole(place)).items():
            for ending in (PLAIN, FORMULAS):
                yield Item(name + ending, name + ending, tab, stat)

    async def _tab(self, place: Place, key: str) -> Item:
        async with closing(self._tabs(place)) as tabs:
            async for item in tabs:
                if item.key == key:
                    return item
        raise fail(errno.ENOENT, place.path)

    def _csv_stat(self, place: Place) -> Stat:
        return place.items[1].stat

    def _csv(self, place: Place) -> AsyncIterator[bytes]:
        tab: Tab = place.items[1].data
        render = FORMULA if place.path.name.endswith(FORMULAS) else FORMATTED
        return self._sheets.csv(place.items[0].data["id"], tab, place.path, render)

    async def _edit(self, place: Place, old: bytes, new: bytes) -> None:
        before, after = parsed(old, place.path), parsed(new, place.path)
        formulas = place.path.name.endswith(FORMULAS)
        about = await self._sheets.about(place.items[0].data["id"], place.path)
        tab = next((tab for tab in tabs_of(about).values() if tab.id == place.items[1].data.id), place.items[1].data)
        await self._sheets.change(place.items[0].data["id"], tab, before, after, place.path, formulas=formulas)

    async def _append(self, place: Place, data: bytes) -> None:
        rows = [row for row in parsed(data, place.path) if row]
        formulas = place.path.name.endswith(FORMULAS)
        await self._sheets.append(place.items[0].data["id"], place.items[1].data, rows, place.path, formulas=formulas)

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A range of a spreadsheet as JSON lines, or a request."""
        raw = await self._raw(path, text, values, write)
        if raw is not None:
            yield raw
            return
        if values:
            raise fail(errno.EINVAL, path, "a range takes no values; quote it as one word")
        id = await patiently(partial(self._id_at, path))
        async with closing(json_lines(first_of(self._sheets.cells(id, text, path), limit))) as lines:
            async for block in lines:
                yield block
