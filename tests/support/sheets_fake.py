"""Google Sheets and Slides for the tests, beside the Drive that lists them."""

from __future__ import annotations

import re
from typing import Any

from tests.support.drive_fake import DriveFake
from tests.support.google_fake import refused
from tests.support.service_fake import Call, Reply

SPREADSHEET = "application/vnd.google-apps.spreadsheet"
PRESENTATION = "application/vnd.google-apps.presentation"
Grid = list[list[Any]]


class SheetsFake(DriveFake):
    """Cells hold what was put in; formulas have results in `results`."""

    def __init__(self) -> None:
        super().__init__()
        self.sheets: dict[str, dict[str, Any]] = {}
        self.grids: dict[tuple[str, str], Grid] = {}
        self.results: dict[str, Any] = {}
        at = "/v4/spreadsheets/{id}"
        self.route("GET", at, lambda call, id: Reply(200, self.sheets[id]))
        self.route("POST", f"{at}:batchUpdate", self._grow)
        self.route("POST", f"{at}/values:batchUpdate", self._update)
        self.route("POST", f"{at}/values/{{cells}}:append", self._append)
        self.route("GET", f"{at}/values:batchGet", self._values)

    def add_sheet(self, title: str, tabs: dict[str, Grid], rows: int = 1000, columns: int = 26, **more: Any) -> str:
        id = self.add(title, None, mime=SPREADSHEET, **more)
        self.sheets[id] = {
            "spreadsheetId": id, "properties": {"title": title},
            "sheets": [
                {"properties": {"sheetId": number, "title": tab, "index": number, "sheetType": "GRID",
                                "gridProperties": {"rowCount": rows, "columnCount": columns}}}
                for number, tab in enumerate(tabs)
            ],
        }  # fmt: skip
        for tab, grid in tabs.items():
            self.grids[id, tab] = grid
        return id

    def _grid(self, id: str, cells: str) -> tuple[Grid, int, int, int, int]:
        """The cells of a tab, and the first row, the first column, the last row and the last column of a range."""
        found = re.fullmatch(r"'((?:[^']|'')*)'(?:!(.*))?", cells) or re.fullmatch(r"(\w+)(?:!(.*))?", cells)
        assert found is not None, cells
        grid = self.grids[id, found[1].replace("''", "'")]
        first, _, last = (found[2] or "1:1000000").partition(":")
        top, left = _place(first)
        bottom, right = _place(last or first)
        return grid, top or 0, left or 0, bottom if bottom is not None else 10**6, right if right is not None else 10**6

    def _values(self, call: Call, id: str) -> Reply:
        cells = call.query["ranges"]
        grid, top, left, bottom, right = self._grid(id, cells)
        limit = self.sheets[id]["sheets"][0]["properties"]["gridProperties"]["rowCount"]
        if top >= limit:
            return refused(400, f"Range ({cells}) exceeds grid limits.", "badRequest")
        rows = [[self._shown(cell, call) for cell in row[left : right + 1]] for row in grid[top : bottom + 1]]
        for row in rows:
            while row and row[-1] in ("", None):
                row.pop()
        while rows and not rows[-1]:
            rows.pop()
        found = {"range": cells, "majorDimension": "ROWS", **({"values": rows} if rows else {})}
        return Reply(200, {"spreadsheetId": id, "valueRanges": [found]})

    def _shown(self, cell: Any, call: Call) -> Any:
        if call.query.get("valueRenderOption") == "FORMULA":
            return cell
        cell = self.results.get(cell, cell) if isinstance(cell, str) else cell
        if isinstance(cell, bool):
            return "TRUE" if cell else "FALSE"
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    def _update(self, call: Call, id: str) -> Reply:
        for one in call.json["data"]:
            grid, top, left, _, _ = self._grid(id, one["range"])
            for down, row in enumerate(one["values"]):
                while len(grid) <= top + down:
                    grid.append([])
                there = grid[top + down]
                there.extend([""] * (left + len(row) - len(there)))
                there[left : left + len(row)] = row
        self.change(id)
        return Reply(200, {"spreadsheetId": id, "totalUpdatedRows": 1})

    def _append(self, call: Call, id: str, cells: str) -> Reply:
        grid, *_ = self._grid(id, cells)
        grid += call.json["values"]
        self.change(id)
        return Reply(200, {"spreadsheetId": id})

    def _grow(self, call: Call, id: str) -> Reply:
        for request in call.json["requests"]:
            grown = request["appendDimension"]
            about = next(s for s in self.sheets[id]["sheets"] if s["properties"]["sheetId"] == grown["sheetId"])
            name = "rowCount" if grown["dimension"] == "ROWS" else "columnCount"
            about["properties"]["gridProperties"][name] += grown["length"]
        return Reply(200, {"spreadsheetId": id})


def _place(text: str) -> tuple[int | None, int | None]:
    found = re.fullmatch(r"([A-Z]*)(\d*)", text)
    assert found is not None, text
    column = 0
    for letter in found[1]:
        column = column * 26 + ord(letter) - 64
    return int(found[2]) - 1 if found[2] else None, column - 1 if found[1] else None


class SlidesFake(DriveFake):
    def __init__(self) -> None:
        super().__init__()
        self.decks: dict[str, dict[str, Any]] = {}
        self.picture = b"\x89PNG hunter"
        at = "/v1/presentations/{id}"
        self.route("GET", at, lambda call, id: Reply(200, self.decks[id]))
        self.route("GET", f"{at}/pages/{{page}}/thumbnail", lambda call, id, page: Reply(
            200, {"contentUrl": f"{self.signed}/shot.png", "width": 1600, "height": 900}))  # fmt: skip
        self.route("POST", f"{at}:batchUpdate", lambda call, id: Reply(200, {"presentationId": id}))
        self.route("GET", "/shot.png", self._shot)

    def _shot(self, call: Call) -> Reply:
        assert "authorization" not in call.headers, "a signed link gets no token"
        return Reply(200, self.picture)

    def add_deck(self, title: str, slides: list[dict[str, Any]]) -> str:
        id = self.add(title, None, mime=PRESENTATION)
        self.decks[id] = {"presentationId": id, "title": title, "slides": slides, "revisionId": "r1"}
        return id


def text_of(*paragraphs: tuple[str, dict[str, Any]], bullets: bool = False) -> dict[str, Any]:
    """The text of a shape."""
    elements: list[dict[str, Any]] = []
    for words, style in paragraphs:
        marker: dict[str, Any] = {"style": {}}
        if bullets:
            marker["bullet"] = {"listId": "l", "nestingLevel": style.pop("level", 0)}
        elements += [{"paragraphMarker": marker}, {"textRun": {"content": f"{words}\n", "style": style}}]
    return {"textElements": elements}


def shape(id: str, text: dict[str, Any], y: float, x: float = 0, kind: str = "BODY") -> dict[str, Any]:
    return {
        "objectId": id, "transform": {"translateY": y, "translateX": x, "unit": "EMU"},
        "shape": {"shapeType": "TEXT_BOX", "placeholder": {"type": kind}, "text": text},
    }  # fmt: skip
