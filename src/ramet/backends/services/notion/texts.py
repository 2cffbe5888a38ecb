"""What files of Notion's pages hold, and which piece of a text an edit changes."""

from __future__ import annotations

from typing import Any

from ramet.backends.services.front_matter import Value
from ramet.backends.services.notion.values import title_key, value_of


def changed_piece(old: str, new: str) -> tuple[str, str] | None:
    """The lines that differ, with as many around them as make them unique; None if that is most of the text."""
    before, after = old.split("\n"), new.split("\n")
    start = end = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    while True:
        piece, instead = ("\n".join(lines[start : len(lines) - end]) for lines in (before, after))
        if piece.strip() and old.count(piece) == 1 and old.replace(piece, instead) == new:
            break
        if start == 0 and end == 0:
            return None
        start, end = max(0, start - 1), max(0, end - 1)
    if len(piece) * 2 > len(old):
        return None
    return piece, instead


def fields_of(page: Any) -> dict[str, Value]:
    """The properties, the title first."""
    properties = page["properties"]
    first = title_key(properties)
    names = [first, *(name for name in properties if name != first)]
    values = {name: shown(value_of(properties[name])) for name in names if name in properties}
    return {**values, "_id": page["id"], "_url": page.get("url")}


def shown(value: Value) -> Value:
    return None if value == "" else value
