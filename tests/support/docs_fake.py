"""Google Docs for the tests: documents as units with a place each, changed by the requests that its mount sends."""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.support.drive_fake import DriveFake
from tests.support.google_fake import refused
from tests.support.service_fake import Call, Reply

DOCUMENT = "application/vnd.google-apps.document"
Unit = dict[str, Any]


class RefusedError(Exception):
    """What Docs answers with 400."""


def paragraph(*runs: Any, named: str = "NORMAL_TEXT", bullet: tuple[str, int] | None = None) -> list[Unit]:
    """Runs are texts, texts with a style, or things."""
    units: list[Unit] = []
    for run in runs:
        if isinstance(run, dict):
            units.append({"thing": run})
            continue
        text, style = run if isinstance(run, tuple) else (run, {})
        units += [{"c": character, "s": dict(style)} for character in text]
    return [*units, {"n": {"named": named, "bullet": bullet}}]


def table(*rows: list[list[Unit]]) -> list[Unit]:
    return [{"table": [list(row) for row in rows]}]


def width(unit: Unit) -> int:
    if "table" in unit:
        return 1 + sum(1 + sum(1 + sum(map(width, cell)) for cell in row) for row in unit["table"])
    return 2 if "c" in unit and ord(unit["c"]) > 0xFFFF else 1


class DocsFake(DriveFake):
    def __init__(self) -> None:
        super().__init__()
        self.docs: dict[str, dict[str, Any]] = {}
        self.route("GET", "/v1/documents/{id}", lambda call, id: Reply(200, self.document(id)))
        self.route("POST", "/v1/documents/{id}:batchUpdate", self._update)

    def add_doc(self, title: str, *tabs: list[Unit], **more: Any) -> str:
        id = self.add(title, None, mime=DOCUMENT)
        self.docs[id] = {
            "title": title, "tabs": copy.deepcopy(list(tabs)), "revision": 1,
            "lists": {"disc": ["GLYPH_TYPE_UNSPECIFIED"] * 9, "numbers": ["DECIMAL"] * 9}, **more,
        }  # fmt: skip
        return id

    # ---------------------------------------------------------------------------------------------------- as JSON

    def document(self, id: str) -> dict[str, Any]:
        doc = self.docs.get(id) or {"title": "", "tabs": [paragraph("")], "revision": 1, "lists": {}}
        lists = {
            name: {"listProperties": {"nestingLevels": [{"glyphType": glyph} for glyph in glyphs]}}
            for name, glyphs in doc["lists"].items()
        }
        tabs = []
        for number, units in enumerate(doc["tabs"]):
            content = [{"endIndex": 1, "sectionBreak": {"sectionStyle": {}}}, *self._content(units, 1)]
            inner = {"body": {"content": content}, "lists": lists, **doc.get("more", {})}
            properties = {"tabId": f"t.{number}", "title": f"Tab {number + 1}", "index": number}
            tabs.append({"tabProperties": properties, "documentTab": inner})
        return {"documentId": id, "title": doc["title"], "revisionId": f"r{doc['revision']}", "tabs": tabs}

    def _content(self, units: list[Unit], at: int) -> list[Any]:
        content: list[Any] = []
        elements: list[Any] = []
        start = at
        for unit in units:
            end = at + width(unit)
            if "table" in unit:
                content.append({"startIndex": at, "endIndex": end, "table": self._table(unit["table"], at)})
                start = end
            elif "thing" in unit:
                elements.append({"startIndex": at, "endIndex": end, **unit["thing"]})
            else:
                text, style = ("\n", {}) if "n" in unit else (unit["c"], unit["s"])
                last = elements[-1] if elements else {}
                if "textRun" in last and (last["textRun"]["textStyle"] == style or "n" in unit):
                    last["textRun"]["content"] += text
                    last["endIndex"] = end
                else:
                    run = {"content": text, "textStyle": dict(style)}
                    elements.append({"startIndex": at, "endIndex": end, "textRun": run})
            if "n" in unit:
                made: dict[str, Any] = {
                    "elements": elements, "paragraphStyle": {"namedStyleType": unit["n"]["named"]},
                }  # fmt: skip
                if unit["n"]["bullet"]:
                    made["bullet"] = {"listId": unit["n"]["bullet"][0], "nestingLevel": unit["n"]["bullet"][1]}
                content.append({"startIndex": start, "endIndex": end, "paragraph": made})
                elements, start = [], end
            at = end
        assert not elements, "a paragraph without an end"
        return content

    def _table(self, rows: Any, at: int) -> dict[str, Any]:
        made, at = [], at + 1
        for row in rows:
            cells, at = [], at + 1
            for cell in row:
                end = at + 1 + sum(map(width, cell))
                cells.append({"startIndex": at, "endIndex": end, "content": self._content(cell, at + 1)})
                at = end
            made.append({"tableCells": cells})
        return {"rows": len(rows), "columns": len(rows[0]), "tableRows": made}

    # --------------------------------------------------------------------------------------------------- requests

    def _update(self, call: Call, id: str) -> Reply:
        doc = self.docs[id]
        given = call.json
        if given.get("writeControl", {}).get("requiredRevisionId") not in (None, f"r{doc['revision']}"):
            words = "The required revision ID 'r1' does not match the latest revision."
            return refused(400, words, "badRequest")
        tabs, lists = copy.deepcopy(doc["tabs"]), copy.deepcopy(doc["lists"])
        try:
            for request in given["requests"]:
                (name,) = request
                getattr(self, "_" + re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name))(
                    tabs, lists, request[name]
                )
        except RefusedError as error:
            return refused(400, f"Invalid requests: {error}", "badRequest")
        doc["tabs"], doc["lists"] = tabs, lists
        doc["revision"] += 1
        self.change(id)
        return Reply(200, {"documentId": id, "replies": [{} for _ in given["requests"]]})

    def _tab(self, tabs: Any, where: Any) -> list[Unit]:
        found: list[Unit] = tabs[int(where.get("tabId", "t.0")[2:])]
        return found

    def _locate(self, units: list[Unit], index: int, at: int = 1) -> tuple[list[Unit], int]:
        for number, unit in enumerate(units):
            if at == index:
                return units, number
            end = at + width(unit)
            if at < index < end and "table" in unit:
                at += 1
                for row in unit["table"]:
                    at += 1
                    for cell in row:
                        inside = sum(map(width, cell))
                        if at + 1 <= index < at + 1 + inside:
                            return self._locate(cell, index, at + 1)
                        at += 1 + inside
                raise RefusedError(f"index {index} is in the structure of a table")
            at = end
        raise RefusedError(f"index {index} is not the place of a character")

    def _span(self, tabs: Any, where: Any) -> tuple[list[Unit], int, int]:
        units, first = self._locate(self._tab(tabs, where), where["startIndex"])
        size, last = where["endIndex"] - where["startIndex"], first
        if size <= 0:
            raise RefusedError("the range is empty")
        while size > 0:
            if last >= len(units):
                raise RefusedError("the range leaves its segment")
            size -= width(units[last])
            last += 1
        if size:
            raise RefusedError("the range cuts a character")
        return units, first, last

    def _delete_content_range(self, tabs: Any, lists: Any, request: Any) -> None:
        units, first, last = self._span(tabs, request["range"])
        if last == len(units):
            raise RefusedError("the newline at the end of the segment cannot be deleted")
        if "n" in units[last - 1] and "table" in units[last] and "table" not in units[first]:
            raise RefusedError("the newline before a table cannot be deleted")
        del units[first:last]

    def _insert_text(self, tabs: Any, lists: Any, request: Any) -> None:
        units, at = self._locate(self._tab(tabs, request["location"]), request["location"]["index"])
        if "table" in units[at]:
            raise RefusedError("text must be inserted inside of a paragraph")
        ends = next(unit for unit in units[at:] if "n" in unit)
        style = units[at - 1]["s"] if at and "c" in units[at - 1] else {}
        units[at:at] = [
            {"n": dict(ends["n"])} if character == "\n" else {"c": character, "s": dict(style)}
            for character in request["text"]
        ]

    def _update_text_style(self, tabs: Any, lists: Any, request: Any) -> None:
        units, first, last = self._span(tabs, request["range"])
        for unit in units[first:last]:
            if "c" in unit:
                for name in request["fields"].split(","):
                    value = request["textStyle"].get(name)
                    unit["s"].pop(name, None)
                    if value:
                        unit["s"][name] = value

    def _paragraphs(self, tabs: Any, where: Any) -> list[tuple[list[Unit], int, int]]:
        """The paragraphs that a range touches: units, first, and the newline; the last one first."""
        units, first, last = self._span(tabs, where)
        while first and "n" not in units[first - 1] and "table" not in units[first - 1]:
            first -= 1
        found, begin = [], first
        for number in range(first, len(units)):
            if "n" in units[number]:
                found.append((units, begin, number))
                begin = number + 1
                if begin >= last:
                    break
        return found[::-1]

    def _update_paragraph_style(self, tabs: Any, lists: Any, request: Any) -> None:
        for units, _, end in self._paragraphs(tabs, request["range"]):
            units[end]["n"]["named"] = request["paragraphStyle"]["namedStyleType"]

    def _create_paragraph_bullets(self, tabs: Any, lists: Any, request: Any) -> None:
        name = "numbers" if request["bulletPreset"].startswith("NUMBERED") else "disc"
        for units, begin, end in self._paragraphs(tabs, request["range"]):
            level = 0
            while "c" in units[begin + level] and units[begin + level]["c"] == "\t":
                level += 1
            units[end]["n"]["bullet"] = (name, level)
            del units[begin : begin + level]

    def _delete_paragraph_bullets(self, tabs: Any, lists: Any, request: Any) -> None:
        for units, _, end in self._paragraphs(tabs, request["range"]):
            units[end]["n"]["bullet"] = None
