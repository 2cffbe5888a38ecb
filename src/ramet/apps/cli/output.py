"""Print results: tables on terminals, aligned text in pipes, JSON on request. Imports nothing heavy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ramet.store.model.revisions import Revision


def show(
    rows: list[dict[str, Any]],
    columns: tuple[str, ...],
    as_json: bool,
    *,
    empty: str = "",
    forms: Mapping[str, Callable[[Any], str]] = MappingProxyType({}),
) -> None:
    """Print rows as a table, numbers to the right, or as JSON. `empty` is the notice for no rows."""
    if as_json:
        print(json.dumps(rows, indent=1, default=str))
        return
    if not rows:
        if empty:
            print(empty, file=sys.stderr)
        return
    shaped = {**FORMS, **forms}
    cells = [[_cell(row.get(column), shaped.get(column)) for column in columns] for row in rows]
    numbers = {column for column in columns if _are_numbers([row.get(column) for row in rows])}
    if not sys.stdout.isatty():
        head = [column.replace("_", " ") for column in columns]
        _print_aligned([head, *cells], {columns.index(column) for column in numbers})
        return
    _print_table(columns, cells, numbers)


def _are_numbers(values: list[Any]) -> bool:
    """Whether a column has numbers, and nothing else but gaps."""
    there = [value for value in values if value is not None and value != ""]
    return bool(there) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in there)


def _print_table(columns: tuple[str, ...], cells: list[list[str]], numbers: set[str]) -> None:
    """Print a table that fits the terminal: one-line columns are cut first, then columns for programs are left out."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, table = Console(), Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    long = [column for column in columns if column in ONE_LINE]
    widths = {name: max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(columns)}
    shown = list(columns)
    while True:
        taken = sum(widths[column] for column in shown if column not in long) + 2 * (len(shown) - 1)
        left = (console.width - taken) // max(1, len(long))
        extra = next((column for column in shown if column in DISPENSABLE), None)
        if left >= ROOMY or extra is None or not long:
            break
        shown.remove(extra)
    for column in shown:
        one_line: dict[str, Any] = {"no_wrap": True, "max_width": max(LEAST, left)}
        bound = one_line if column in long else {"overflow": "fold"}
        side: Any = "right" if column in numbers else "left"
        table.add_column(column.replace("_", " "), style=STYLES.get(column), justify=side, **bound)
    for row in cells:
        found = dict(zip(columns, row, strict=True))
        table.add_row(*(Text(found[name].partition("\n")[0] if name in long else found[name]) for name in shown))
    console.print(table)


def _print_aligned(rows: list[list[str]], numbers: set[int]) -> None:
    """Print one line per row, however long; only the first line of a cell, and columns of numbers to the right."""
    lines = [[cell.partition("\n")[0] for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if at in numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def say(told: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a verb: a line of text, or with `--json` an object."""
    print(json.dumps(told, default=str) if as_json else text)


def plural(number: int, what: str, many: str = "") -> str:
    """Return `1 pack`, `2 packs`."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def _cell(value: Any, form: Callable[[Any], str] | None) -> str:
    if value is None or value == "":
        return ""
    if form is not None:
        return form(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def iso_time(seconds: float) -> str:
    """Format a time as ISO 8601 in UTC."""
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> float | None:
    """Seconds since the epoch of a time as users write it: `2h` ago, or a date, local unless it names a zone."""
    import datetime
    import time

    from ramet.core.errors import RametError
    from ramet.store.refs.retention import parse_duration

    if text is None:
        return None
    try:
        return datetime.datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        pass
    try:
        return time.time() - parse_duration(text)
    except RametError:
        raise RametError(
            "invalid_argument", f"cannot read {text!r} as a time", "Write 2026-01-31, 2026-01-31T12:00, 2h or 3d."
        ) from None


def local_time(text: str) -> str:
    """Format an ISO 8601 time in the local time zone."""
    import datetime

    return datetime.datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def ago(text: str) -> str:
    """Format an ISO 8601 time for a terminal: `5 minutes ago`, or after a week the date."""
    import datetime

    then = datetime.datetime.fromisoformat(text)
    seconds = (datetime.datetime.now(datetime.UTC) - then).total_seconds()
    for unit, length, most in (("second", 1, 60), ("minute", 60, 60), ("hour", 3600, 24), ("day", 86400, 7)):
        if seconds < length * most:
            return f"{plural(max(0, int(seconds // length)), unit)} ago"
    return local_time(text)


ONE_LINE: Final = ("message", "command")
"""Columns that a terminal shows on one line each, with an ellipsis where they are too long."""
LEAST: Final = 12
"""Characters that such a column has at least."""
ROOMY: Final = 24
"""Characters below which other columns are left out for it."""
DISPENSABLE: Final = ("id", "session", "cwd", "resumable")
"""Columns that a terminal leaves out, in this order of the table, where the others would not fit."""
STYLES: Final = {
    "revision": "yellow", "workspace": "green", "by": "cyan", "agent": "cyan", "id": "dim", "time": "dim",
}  # fmt: skip
"""Colours of columns on a terminal, by name."""
FORMS: Final[Mapping[str, Callable[[Any], str]]] = {
    "time": local_time,
    "until": local_time,
    "removed": local_time,
    "id": lambda text: text[:12],
}
"""Formats of columns on a terminal, by name."""


def revision_row(revision: Revision) -> dict[str, Any]:
    return {
        "revision": revision.name, "id": revision.id.hex(), "time": iso_time(revision.time),
        "message": revision.message,
        "phase": revision.phase, "lineage": revision.lineage, "resumable": revision.memory is not None,
        "content": revision.content_manifest,
        "parents": [parent.hex() for parent in revision.parents],
        **{key: value for key in ("author", "agent", "trace_id") if (value := getattr(revision, key))},
        **({"notes": [str(note) for note in revision.notes]} if revision.notes else {}),
    }  # fmt: skip


def report_note(made: Revision, message: str) -> None:
    """Say that a commit had nothing to write, and where its message is."""
    if message and made.message != message:
        print(f"nothing changed since {made.name}: the message is a note on it", file=sys.stderr)
