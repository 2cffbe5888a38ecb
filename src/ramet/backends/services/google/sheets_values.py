"""Spreadsheets as CSV: tabs, cells, and the changes between two versions of a CSV."""

from __future__ import annotations

import csv
import errno
import io
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ramet.backends.file_names import as_name
from ramet.backends.services.rest import Params, Rest
from ramet.core.errors import fail
from ramet.core.paths import Path, encode

ROWS: Final = 10_000
"""Rows that one request asks for."""
LARGEST: Final = 2_000_000
"""Cells of a CSV that can be edited; more can be read and appended to."""
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
FORMATTED: Final = "FORMATTED_VALUE"
FORMULA: Final = "FORMULA"
Cells = list[list[str]]


class Tab(NamedTuple):
    id: int
    title: str
    rows: int
    columns: int
    is_grid: bool

    @property
    def range(self) -> str:
        return f"'{self.title.replace(chr(39), chr(39) * 2)}'"


class Spreadsheets:
    """The spreadsheets of an account over the Sheets API."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest

    async def about(self, id: str, path: Path) -> Any:
        """A spreadsheet without its cells."""
        fields = "spreadsheetId,spreadsheetUrl,properties,namedRanges,sheets(properties)"
        return (await self.rest.get(f"/v4/spreadsheets/{id}", path=path, params={"fields": fields})).json()

    async def csv(self, id: str, tab: Tab, path: Path, render: str = FORMATTED) -> AsyncIterator[bytes]:
        """The cells as CSV, as wide as the widest of the first rows; large sheets come in pieces."""
        if not tab.is_grid:
            return
        width, blanks = 0, 0
        for first in range(1, max(tab.rows, 1) + 1, ROWS):
            last = min(first + ROWS - 1, max(tab.rows, 1))
            rows = await self._rows(id, f"{tab.range}!{first}:{last}", path, render)
            width = width or max(map(len, rows), default=0)
            if not rows:
                blanks += last - first + 1
                continue
            blank: Cells = [[""] * width for _ in range(blanks)]
            blanks = last - first + 1 - len(rows)
            yield written([*blank, *([*row, *[""] * (width - len(row))] for row in rows)])

    async def _rows(self, id: str, cells: str, path: Path, render: str) -> Cells:
        params: Params = {"ranges": cells, "valueRenderOption": render, "majorDimension": "ROWS"}
        address = f"/v4/spreadsheets/{id}/values:batchGet"
        (found,) = (await self.rest.get(address, path=path, params=params)).json()["valueRanges"]
        return [[text_of(value) for value in row] for row in found.get("values") or ()]

    async def cells(self, id: str, cells: str, path: Path, render: str = FORMATTED) -> AsyncIterator[list[str]]:
        for row in await self._rows(id, cells, path, render):
            yield row

    # ------------------------------------------------------------------------------------------------- changing

    async def append(self, id: str, tab: Tab, rows: Cells, path: Path, *, formulas: bool) -> None:
        """New rows behind the last; sent once."""
        if not rows:
            return
        address = f"/v4/spreadsheets/{id}/values/{quote(tab.range, safe='')}:append"
        option = "USER_ENTERED" if formulas else "RAW"
        values = [[value_of(cell, formulas) for cell in row] for row in rows]
        await self.rest.send(
            "POST", f"{address}?valueInputOption={option}&insertDataOption=INSERT_ROWS", path=path,
            json_body={"values": values, "majorDimension": "ROWS"},
        )  # fmt: skip

    async def change(self, id: str, tab: Tab, old: Cells, new: Cells, path: Path, *, formulas: bool) -> None:
        """Send the cells that differ, all in one request; what is gone becomes empty."""
        runs = changed_runs(old, new)
        if not runs:
            return
        if not formulas:
            await self._check_formulas(id, tab, runs, path)
        rows, columns = len(new), max(map(len, new), default=0)
        grow = [
            {"appendDimension": {"sheetId": tab.id, "dimension": dimension, "length": wanted - there}}
            for dimension, wanted, there in (("ROWS", rows, tab.rows), ("COLUMNS", columns, tab.columns))
            if wanted > there
        ]
        if grow:
            await self.rest.send(
                "POST", f"/v4/spreadsheets/{id}:batchUpdate", path=path, json_body={"requests": grow}
            )  # fmt: skip
        data = [
            {
                "range": f"{tab.range}!{place(row, column)}", "majorDimension": "ROWS",
                "values": [[value_of(cell, formulas) for cell in cells]],
            }
            for row, column, cells in runs
        ]  # fmt: skip
        body = {"valueInputOption": "USER_ENTERED" if formulas else "RAW", "data": data}
        await self.rest.send(
            "POST", f"/v4/spreadsheets/{id}/values:batchUpdate", path=path, json_body=body, repeatable=True
        )

    async def _check_formulas(self, id: str, tab: Tab, runs: Sequence[tuple[int, int, list[str]]], path: Path) -> None:
        """A value must not replace a formula unnoticed."""
        first, last = min(run[0] for run in runs), max(run[0] for run in runs)
        last = min(last, tab.rows - 1)
        if last < first:
            return
        rows = await self._rows(id, f"{tab.range}!{first + 1}:{last + 1}", path, FORMULA)
        for row, column, cells in runs:
            there = rows[row - first] if row - first < len(rows) else []
            for number in range(column, column + len(cells)):
                if number < len(there) and there[number].startswith("="):
                    words = f"Invalid argument: {place(row, number)} holds a formula; edit the .formulas.csv"
                    raise fail(errno.EINVAL, path, words)


# ------------------------------------------------------------------------------------------------------ cells as text


def tabs_of(about: Any) -> dict[str, Tab]:
    """The tabs of a spreadsheet by the names of their files, without the extension."""
    found: dict[str, Tab] = {}
    for sheet in about.get("sheets") or ():
        properties = sheet["properties"]
        grid = properties.get("gridProperties") or {}
        tab = Tab(
            int(properties.get("sheetId", 0)), str(properties.get("title", "")), int(grid.get("rowCount", 0)),
            int(grid.get("columnCount", 0)), properties.get("sheetType", "GRID") == "GRID",
        )  # fmt: skip
        if tab.is_grid:
            name = encode(as_name(tab.title))[:200].decode("utf-8", "ignore")
            found[name if name not in found else f"{name}__{tab.id}"] = tab
    return found


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "" if value is None else str(value)


def value_of(text: str, formulas: bool) -> Any:
    """A cell as Sheets stores it: numbers and truths as such, the rest as text; formulas are parsed by Sheets."""
    if formulas:
        return text
    if text in ("TRUE", "FALSE"):
        return text == "TRUE"
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def written(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return encode(text.getvalue())


def parsed(content: bytes, path: Path) -> Cells:
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except UnicodeDecodeError:
        raise fail(errno.EINVAL, path, "Invalid argument: the CSV is not UTF-8; nothing was changed") from None
    except csv.Error as error:
        raise fail(errno.EINVAL, path, f"Invalid argument: this is not CSV: {error}; nothing was changed") from None
    if sum(map(len, rows)) > LARGEST:
        words = f"File too large: at most {LARGEST:,} cells can be edited; append with >>, or use query -w"
        raise fail(errno.EFBIG, path, words)
    return rows


def changed_runs(old: Cells, new: Cells) -> list[tuple[int, int, list[str]]]:
    """Neighbouring cells of a row that differ: row, first column, and what they become."""
    runs: list[tuple[int, int, list[str]]] = []
    for row in range(max(len(old), len(new))):
        before, after = (rows[row] if row < len(rows) else [] for rows in (old, new))
        if before == after:
            continue
        run: list[str] = []
        for column in range(max(len(before), len(after)) + 1):
            was = before[column] if column < len(before) else ""
            now = after[column] if column < len(after) else ""
            if was != now:
                run.append(now)
            elif run:
                runs.append((row, column - len(run), run))
                run = []
    return runs


def place(row: int, column: int) -> str:
    """A cell as Sheets names it: (0, 27) is AB1."""
    letters, number = "", column + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row + 1}"
