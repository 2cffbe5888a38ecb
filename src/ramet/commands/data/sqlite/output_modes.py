"""The output modes of sqlite3: format rows as list, csv, table, json and the like."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from ramet.core.paths import decode

MODES = (
    "ascii", "box", "column", "csv", "html", "insert", "json", "line", "list", "markdown", "qbox", "quote", "table",
    "tabs", "tcl",
)  # fmt: skip
GRIDS = frozenset(("column", "table", "box", "qbox", "markdown"))
COLUMN_SEPARATORS = {"csv": ",", "tabs": "\t", "ascii": "\x1f", "quote": ",", "tcl": " "}
ROW_SEPARATORS = {"csv": "\r\n", "ascii": "\x1e"}
Rows = Sequence[Sequence[object]]


_UNPLAIN = re.compile("[^!#-&(-~]")


@dataclass
class Look:
    """Everything that decides how rows are shown."""

    mode: str = "list"
    header: bool = False
    header_set: bool = False
    """Whether the user set headers on or off."""
    separator: str = "|"
    newline: str = "\n"
    null: str = ""
    table: str = "table"
    widths: list[int] = field(default_factory=list)

    def change(self, mode: str) -> None:
        """What `.mode` does: the separators of the mode, and headers above columns unless they were decided on."""
        self.mode = mode
        self.separator = COLUMN_SEPARATORS.get(mode, "|")
        self.newline = ROW_SEPARATORS.get(mode, "\n")
        if mode in GRIDS and not self.header_set:
            self.header = True

    def cell(self, value: object) -> str:
        if value is None:
            return self.null
        if isinstance(value, float):
            return real(value)
        if isinstance(value, bytes):
            return decode(value.partition(b"\0")[0])
        return str(value)

    def show(self, names: list[str], rows: Rows) -> str:
        if self.mode in GRIDS:
            return self._grid(names, rows) if rows else ""
        return _SHOWN.get(self.mode, Look._listed)(self, names, rows)

    # ------------------------------------------------------------------ line by line

    def _listed(self, names: list[str], rows: Rows) -> str:
        out = [self.separator.join(names) + self.newline] if self.header and rows else []
        out += [self.separator.join([self.cell(value) for value in row]) + self.newline for row in rows]
        return "".join(out)

    def _csv(self, names: list[str], rows: Rows) -> str:
        out = [self.separator.join(map(self._quoted, names)) + self.newline] if self.header and rows else []
        for row in rows:
            cells = (self.cell(value) if value is None else self._quoted(self.cell(value)) for value in row)
            out.append(self.separator.join(cells) + self.newline)
        return "".join(out)

    def _quoted(self, text: str) -> str:
        """Return a value for a file of CSV: in quotes when it is empty or not of the plainest characters."""
        if text and not _UNPLAIN.search(text) and self.separator not in text:
            return text
        return '"' + text.replace('"', '""') + '"'

    def _json(self, names: list[str], rows: Rows) -> str:
        keys = [json.dumps(name, ensure_ascii=False) for name in names]
        texts = (",".join(f"{key}:{_json(value)}" for key, value in zip(keys, row, strict=True)) for row in rows)
        return "[" + ",\n".join(f"{{{text}}}" for text in texts) + "]\n" if rows else ""

    def _line(self, names: list[str], rows: Rows) -> str:
        width = max(5, *map(len, names))
        return "\n".join(
            "".join(f"{name:>{width}} = {self.cell(value)}\n" for name, value in zip(names, row, strict=True))
            for row in rows
        )

    def _insert(self, names: list[str], rows: Rows) -> str:
        into = identifier(self.table)
        if self.header:
            into += f"({','.join(map(identifier, names))})"
        return "".join(f"INSERT INTO {into} VALUES({','.join(map(quoted, row))});\n" for row in rows)

    def _quote(self, names: list[str], rows: Rows) -> str:
        head = [self.separator.join(quoted(name) for name in names) + self.newline] if self.header and rows else []
        return "".join([*head, *(self.separator.join(map(quoted, row)) + self.newline for row in rows)])

    def _html(self, names: list[str], rows: Rows) -> str:
        out = ["<TR>" + "\n".join(f"<TH>{_html(name)}</TH>" for name in names) + "\n</TR>\n"] if self.header else []
        out += [
            "<TR>" + "\n".join(f"<TD>{_html(self.cell(value))}</TD>" for value in row) + "\n</TR>\n" for row in rows
        ]
        return "".join(out)

    def _tcl(self, names: list[str], rows: Rows) -> str:
        texts = [names] if self.header and rows else []
        texts += [[self.cell(value) for value in row] for row in rows]
        return "".join(self.separator.join(map(_c_string, row)) + self.newline for row in texts)

    # ------------------------------------------------------------------ in columns

    def _grid(self, names: list[str], rows: Rows) -> str:
        """Cells in columns; what is too wide for one that has a width goes on in the line below."""
        one = quoted if self.mode == "qbox" else self.cell
        wanted = [self.widths[i] if i < len(self.widths) else 0 for i in range(len(names))]
        cells = [[_folded(one(value), abs(wanted[i])) for i, value in enumerate(row)] for row in rows]
        widths = [
            abs(wanted[i]) or max(len(name), *(len(line) for row in cells for line in row[i]))
            for i, name in enumerate(names)
        ]
        right = [width < 0 for width in wanted]
        lines = [[_lines_of(row, place) for place in range(max(map(len, row)))] for row in cells]
        several = any(len(group) > 1 for group in lines)
        if self.mode == "column":
            return self._columns(names, lines, widths, right, several)
        return self._boxed(names, lines, widths, right, several)

    def _columns(
        self, names: list[str], lines: list[list[list[str]]], widths: list[int], right: list[bool], several: bool
    ) -> str:
        def shown(row: list[str]) -> str:
            return "  ".join(map(_aligned, row, widths, right)) + "\n"

        head = shown(names) + "  ".join("-" * width for width in widths) + "\n" if self.header else ""
        return head + ("\n" if several else "").join("".join(map(shown, group)) for group in lines)

    def _boxed(
        self, names: list[str], lines: list[list[list[str]]], widths: list[int], right: list[bool], several: bool
    ) -> str:
        bar, top, middle, bottom = _BORDERS[self.mode]
        dash = "─" if "box" in self.mode else "-"

        def border(ends: str) -> str:
            return ends[:1] + ends[1:2].join(dash * (width + 2) for width in widths) + ends[2:] + "\n" if ends else ""

        def shown(row: list[str]) -> str:
            return bar + bar.join(f" {cell} " for cell in map(_aligned, row, widths, right)) + bar + "\n"

        title = bar + bar.join(f" {_centred(name, width)} " for name, width in zip(names, widths, strict=True)) + bar
        between = border(middle) if several and self.mode != "markdown" else ""
        body = between.join("".join(map(shown, group)) for group in lines)
        return border(top) + title + "\n" + border(middle) + body + border(bottom)


_SHOWN = {
    "csv": Look._csv,
    "json": Look._json,
    "line": Look._line,
    "insert": Look._insert,
    "quote": Look._quote,
    "html": Look._html,
    "tcl": Look._tcl,
}
_BORDERS = {
    "table": ("|", "+++", "+++", "+++"),
    "markdown": ("|", "", "|||", ""),
    "box": ("│", "┌┬┐", "├┼┤", "└┴┘"),
    "qbox": ("│", "┌┬┐", "├┼┤", "└┴┘"),
}


def _folded(text: str, width: int) -> list[str]:
    """Return the lines of a cell, none of them wider than `width` unless that is 0."""
    lines = text.split("\n")
    if not width:
        return lines
    return [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]


def _lines_of(row: list[list[str]], place: int) -> list[str]:
    return [cell[place] if place < len(cell) else "" for cell in row]


def _aligned(text: str, width: int, to_right: bool) -> str:
    return text.rjust(width) if to_right else text.ljust(width)


def _centred(text: str, width: int) -> str:
    before = (width - len(text)) // 2
    return (" " * before + text).ljust(width)


def _html(text: str) -> str:
    return escape(text).replace("&#x27;", "&#39;")


def _c_string(text: str) -> str:
    escapes = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'


def _json(value: object) -> str:
    if isinstance(value, bytes):
        return json.dumps(decode(value), ensure_ascii=False)
    return real(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def real(number: float) -> str:
    """Return a floating-point number as SQLite writes it: always with a point."""
    if number != number or number in (float("inf"), float("-inf")):
        return "Inf" if number > 0 else "-Inf"
    text = f"{number:.15g}"
    if "e" in text:
        mantissa, _, power = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"
    return text if "." in text else text + ".0"


def quoted(value: object) -> str:
    """Return a value as a literal of SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return real(value) if isinstance(value, float) else str(value)


_WORDS = frozenset(("table", "select", "index", "group", "order", "from", "where", "values", "default", "check"))


def identifier(name: str) -> str:
    """Return a name, in quotes where it needs them."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in _WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
