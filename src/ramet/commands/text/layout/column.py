"""column: arrange lines in columns, or their fields as a table or as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ramet.commands.framework.command import Command, UsageError, flag, help_text, value, version_text
from ramet.commands.framework.inputs import LineInputs, text_width
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH, HUGE, SMALL
from ramet.core.paths import encode
from ramet.core.proc import Proc

Row = tuple[str, ...]
In = TypeVar("In")
Out = TypeVar("Out")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    table: bool = flag("-t", "--table", help="create a table")
    names: str | None = value("-N", "--table-columns", metavar="NAMES", help="comma separated columns names")
    no_headings: bool = flag("-d", "--table-noheadings", help="don't print header")
    limit: str | None = value("-l", "--table-columns-limit", metavar="NUM", help="maximal number of input columns")
    right: str | None = value("-R", "--table-right", metavar="COLUMNS", help="right align text in these columns")
    hide: str | None = value("-H", "--table-hide", metavar="COLUMNS", help="don't print the columns")
    order: str | None = value("-O", "--table-order", metavar="COLUMNS", help="specify order of output columns")
    noextreme: str | None = value(
        "-E", "--table-noextreme", metavar="COLUMNS", help="don't count long text from the columns to column width"
    )
    truncate: str | None = value(
        "-T", "--table-truncate", metavar="COLUMNS", help="truncate text in the columns when necessary"
    )
    wrap: str | None = value("-W", "--table-wrap", metavar="COLUMNS", help="wrap text in the columns when necessary")
    empty_lines: bool = flag("-L", "--table-empty-lines", "--keep-empty-lines", help="don't ignore empty lines")
    header_repeat: bool = flag("-e", "--table-header-repeat", help="repeat header for each page")
    json: bool = flag("-J", "--json", help="use JSON output format for table")
    name: str = value("-n", "--table-name", metavar="NAME", default="table", help="table name for JSON output")
    separator: str | None = value("-s", "--separator", metavar="STRING", help="possible table delimiters")
    output: str = value(
        "-o", "--output-separator", metavar="STRING", default="  ", help="columns separator for table output"
    )
    width: str | None = value(
        "-c", "--output-width", "--columns", metavar="WIDTH", help="width of output in number of characters"
    )
    tree: str | None = value("-r", "--tree", metavar="COLUMN", help="the column that is drawn as a tree")
    tree_id: str | None = value("-i", "--tree-id", metavar="COLUMN", help="the column that names each line")
    tree_parent: str | None = value(
        "-p", "--tree-parent", metavar="COLUMN", help="the column that names the line above"
    )
    fill_rows: bool = flag("-x", "--fillrows", help="fill rows before columns")
    asked: bool = flag("-h", help="display this help")
    version: bool = flag("-V", help="display version")


async def column(proc: Proc, o: ColumnOptions, operands: list[str]) -> int:
    if o.asked or o.version:
        await proc.emit(encode(help_text(COMMANDS[0]) if o.asked else version_text(COMMANDS[0])))
        return 0
    given = (o.names, o.no_headings, o.limit, o.right, o.hide, o.order, o.noextreme, o.truncate, o.wrap)
    if not (o.table or o.json) and any(given):
        raise UsageError("option --table required for all --table-*", hint=False)
    if o.table and o.fill_rows:
        raise UsageError("mutually exclusive arguments: --table --fillrows", hint=False)
    inputs = LineInputs(proc, operands, dash=False, name=str)
    lines: list[str] = []
    wide = False
    async for block in inputs.joined_lines():
        wide = wide or len(block) > HUGE
        work = partial(_texts, block, empty=o.empty_lines and o.table)
        lines += await offload_large(proc.budget, len(block), work)
    if not lines:
        return inputs.status
    if o.table or o.json:
        return await _table(proc, o, lines)
    width = int(o.width) if o.width and o.width.isdigit() else int(proc.env.get("COLUMNS", "") or 80)
    cells = lines
    if not cells:
        return inputs.status
    size, batches = 0, _Batches(proc, wide)
    for begin in range(0, len(cells), BATCH):
        size = max(size, await batches.run(_widest, cells[begin : begin + BATCH]))
    if size >= width:
        for begin in range(0, len(cells), BATCH):
            await proc.emit(await batches.run(_encoded, cells[begin : begin + BATCH]))
        return inputs.status
    size = (size + 8) & ~7
    per_row = max(1, width // size)
    rows = -(-len(cells) // per_row)
    out: list[str] = []
    for row in range(rows):
        picks = (
            range(row * per_row, min((row + 1) * per_row, len(cells))) if o.fill_rows else range(row, len(cells), rows)
        )
        line = ""
        at_ = 0
        for n, i in enumerate(picks):
            line += cells[i]
            at_ += _visible_width(cells[i])
            last = n == len(picks) - 1
            if not last:
                while (at_ & ~7) + 8 <= (n + 1) * size:
                    line += "\t"
                    at_ = (at_ & ~7) + 8
        out.append(line + "\n")
        if len(out) >= BATCH:
            await proc.emit(encode("".join(out)))
            out.clear()
            await proc.budget.yield_turn()
    await proc.emit(encode("".join(out)))
    return inputs.status


def _widest(cells: list[str]) -> int:
    return max(map(_visible_width, cells))


def _encoded(lines: list[str]) -> bytes:
    return encode("\n".join([*lines, ""]))


def _visible_width(text: str) -> int:
    """Measure a text; control characters have no width."""
    return text_width(text) if text.isprintable() else text_width(_CONTROLS.sub("", text))


def _texts(block: bytes, empty: bool) -> list[str]:
    """Split a block into lines; invalid UTF-8 becomes escapes."""
    pieces = block.decode("utf-8", "backslashreplace").split("\n")
    if not pieces[-1]:
        pieces.pop()
    if b"\0" in block:
        pieces = [piece.partition("\0")[0] for piece in pieces]
    return pieces if empty else [piece for piece in pieces if piece and not piece.isspace()]


async def _table(proc: Proc, o: ColumnOptions, lines: list[str]) -> int:
    limit = int(o.limit) if o.limit and o.limit.isdigit() else 0
    # Tuples of strings are not tracked by the garbage collector, lists are.
    rows: list[Row] = []
    cut = _cutter(o.separator, limit)
    names = o.names.split(",") if o.names is not None else []
    count = len(names)
    batches = _Batches(proc, any(len(line) > SMALL for line in lines))
    for begin in range(0, len(lines), BATCH):
        part = await batches.run(lambda some: [tuple(cut(line)) for line in some], lines[begin : begin + BATCH])
        rows += part
        count = max(count, max(map(len, part)))
    if o.json:
        if not names:
            proc.complain("option --table-columns required for --json")
            return 1
        for begin in range(0, max(1, len(rows)), BATCH):
            part, last = rows[begin : begin + BATCH], begin + BATCH >= len(rows)
            await proc.emit(encode(_json_table(o.name, names, part, begin == 0, last)))
            await proc.budget.yield_turn()
        return 0
    if o.tree is not None:
        if o.tree_id is None or o.tree_parent is None:
            proc.complain("options --tree-id and --tree-parent are required for tree formatting")
            return 1
        places = [_columns(word, names, count)[:1] for word in (o.tree, o.tree_id, o.tree_parent)]
        if not all(places) or max(place[0] for place in places) >= count:
            proc.complain("undefined column name for the tree")
            return 1
        rows = _as_tree([row + ("",) * (count - len(row)) for row in rows], *(place[0] for place in places))
    if names and not o.no_headings and rows:
        rows.insert(0, tuple(names))
    widths = [0] * count
    for begin in range(0, len(rows), BATCH):
        part, widths = await batches.run(partial(_measured, widths), rows[begin : begin + BATCH])
        rows[begin : begin + BATCH] = part

    def planned(rows: list[Row]) -> tuple[list[Row], list[int], set[int]]:
        """Fit the rows to the width; return them, the visible columns and the right-aligned ones."""
        order = list(range(count))
        if o.order:
            chosen = [i for i in _columns(o.order, names, count) if i < count]
            order = chosen + [i for i in order if i not in chosen]
        hidden = set(_columns(o.hide, names, count)) if o.hide else set()
        order = [i for i in order if i not in hidden]
        right = set(_columns(o.right, names, count)) if o.right else set()
        return _fitted(proc, o, names, rows, widths, order), order, right

    rows, order, right = await batches.run(planned, rows)
    straight = not batches.wide and order == list(range(count))
    shape = _shape(o.output, widths, order, right) if straight else ""

    def text(some: list[Row]) -> bytes:
        out: list[str] = []
        for row in some:
            if straight and all(map(str.isascii, row)):
                out.append(shape % row)
            else:
                out.append(_row(o.output, widths, order, right, row))
        return encode("".join(out))

    for begin in range(0, len(rows), BATCH):
        await proc.emit(await batches.run(text, rows[begin : begin + BATCH]))
    return 0


def _measured(widths: list[int], rows: list[Row]) -> tuple[list[Row], list[int]]:
    """Pad rows to the same number of cells and measure the columns."""
    count = len(widths)
    full = [row if len(row) == count else row + ("",) * (count - len(row)) for row in rows]
    columns = zip(widths, zip(*full, strict=True), strict=True)
    return full, [max(width, max(map(text_width, cells))) for width, cells in columns]


class _Batches:
    """Work on batches of rows: yields the event loop between them, offloads very wide ones."""

    def __init__(self, proc: Proc, wide: bool) -> None:
        self.proc, self.wide = proc, wide

    async def run(self, work: Callable[[list[In]], Out], some: list[In]) -> Out:
        done = await offload(self.proc.budget, partial(work, some)) if self.wide else work(some)
        await self.proc.budget.yield_turn()
        return done


def _fitted(
    proc: Proc, o: ColumnOptions, names: list[str], rows: list[Row], widths: list[int], order: list[int]
) -> list[Row]:
    """Truncate or wrap columns of a table that is too wide; `widths` is updated."""
    cut = _columns(o.truncate, names, len(widths)) if o.truncate else []
    broken = _columns(o.wrap, names, len(widths)) if o.wrap else []
    able = [i for i in order if i in cut or i in broken]
    limit = int(o.width) if o.width and o.width.isdigit() else int(proc.env.get("COLUMNS", "") or 80)
    excess = sum(widths[i] for i in order) + text_width(o.output) * (len(order) - 1) - limit
    if not able or excess <= 0:
        return rows
    while excess > 0 and any(widths[i] > 1 for i in able):
        for i in able:
            if excess > 0 and widths[i] > 1:
                widths[i] -= 1
                excess -= 1
    out: list[Row] = []
    for row in rows:
        pieces = [_pieces(cell, widths[i]) if i in able else [cell] for i, cell in enumerate(row)]
        tall = max((len(pieces[i]) for i in range(len(row)) if i in broken), default=1)
        out += [tuple([piece[line] if line < len(piece) else "" for piece in pieces]) for line in range(max(tall, 1))]
    return out


def _pieces(text: str, width: int) -> list[str]:
    """Split a text into parts of at most `width` columns."""
    parts, part = [], ""
    for char in text:
        if part and text_width(part + char) > width:
            parts.append(part)
            part = ""
        part += char
    return [*parts, part]


def _cutter(separator: str | None, limit: int) -> Callable[[str], list[str]]:
    """Make a function from a line to its cells."""
    if separator is None:
        if not limit:
            return lambda line: [cell for cell in line.replace("\t", " ").split(" ") if cell] or [""]
        return lambda line: _limited(line.lstrip(" \t"), limit)
    if not separator:
        return lambda line: [line]
    if len(separator) == 1:
        return lambda line: line.split(separator, limit - 1 if limit else -1)
    any_of = re.compile(f"[{re.escape(separator)}]")
    return lambda line: any_of.split(line, maxsplit=limit - 1 if limit else 0)


def _limited(line: str, limit: int) -> list[str]:
    """Split a line into `limit` cells; the last one is the rest of the line.

    As in the original, the rest begins one character after the summed length of the cells before it, so runs of blanks
    leave some blanks in it, or cut it off at the end of a cell.
    """
    cells: list[str] = []
    ends: list[int] = []
    for found in re.finditer(r"[^ \t]+", line):
        if len(cells) == limit - 1:
            break
        cells.append(found[0])
        ends.append(found.end())
    start = sum(len(cell) + 1 for cell in cells)
    if len(cells) == limit - 1 and start < len(line):
        cells.append(line[start : next((end for end in ends if end >= start), len(line))])
    return cells or [""]


def _as_tree(rows: list[Row], shown: int, own: int, above: int) -> list[Row]:
    """The rows in the order of a tree, with its lines drawn before the cells of one column."""
    known = {row[own] for row in rows}
    below: dict[str, list[Row]] = {}
    for row in rows:
        below.setdefault(row[above] if row[above] in known and row[above] != row[own] else "", []).append(row)
    out: list[Row] = []
    # Rows still to draw, each with the indent of its children and its own lead.
    todo = [(row, "", "") for row in reversed(below.pop("", []))]
    while todo:
        row, indent, lead = todo.pop()
        out.append(tuple([lead + cell if place == shown else cell for place, cell in enumerate(row)]))
        children = below.pop(row[own], [])
        for child in reversed(children):
            last = child is children[-1]
            todo.append(
                (child, indent + ("  " if last else "\u2502 "), indent + ("\u2514\u2500" if last else "\u251c\u2500"))
            )
    return out


def _shape(glue: str, widths: list[int], order: list[int], right: set[int]) -> str:
    """The format of a row of plain characters."""
    cells = [
        f"%{widths[i]}s" if i in right else "%s" if n == len(order) - 1 else f"%-{widths[i]}s"
        for n, i in enumerate(order)
    ]
    return glue.replace("%", "%%").join(cells) + "\n"


def _row(glue: str, widths: list[int], order: list[int], right: set[int], row: Row) -> str:
    cells: list[str] = []
    for n, i in enumerate(order):
        pad = " " * (widths[i] - text_width(row[i]))
        last = n == len(order) - 1
        cells.append(pad + row[i] if i in right else row[i] if last else row[i] + pad)
    return glue.join(cells) + "\n"


def _columns(text: str, names: list[str], count: int) -> list[int]:
    out: list[int] = []
    for piece in text.split(","):
        if piece == "-":
            out += [i for i in range(count) if i >= len(names)]
        elif piece == "0":
            out += range(count)
        elif piece in names:
            out.append(names.index(piece))
        elif piece.lstrip("-").isdigit():
            number = int(piece)
            out.append(number - 1 if number > 0 else count + number)
    return out


def _json_table(name: str, names: list[str], rows: list[Row], first: bool, last: bool) -> str:
    """Format rows as JSON, with the head before the first and the tail after the last."""
    import json

    keys = [f"         {json.dumps(n.lower(), ensure_ascii=False)}: " for n in names]
    items: list[str] = []
    for row in rows:
        pairs = [
            key + (json.dumps(row[i], ensure_ascii=False) if row[i : i + 1] not in ((), ("",)) else "null")
            for i, key in enumerate(keys)
        ]
        items.append("{\n" + ",\n".join(pairs) + "\n      }")
    lead = f"{{\n   {json.dumps(name.lower())}: [\n      " if first else ","
    return lead + ",".join(items) + ("\n   ]\n}\n" if last else "")


COMMANDS = [
    Command(
        "column",
        column,
        ColumnOptions,
        summary="Columnate lists.",
        version_letters="V",
        help_letters="h",
        stdin_error=StdinError("read failed: {}", fatal=True),
    ),
]
