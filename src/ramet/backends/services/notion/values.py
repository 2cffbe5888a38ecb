"""Properties of Notion's pages as values of front matter, and back."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from ramet.backends.services.front_matter import Value
from ramet.core.errors import fail
from ramet.core.paths import Path

Properties = Mapping[str, Any]


def plain(texts: Any) -> str:
    """Rich text without its formatting."""
    return "".join(str(one.get("plain_text", "")) for one in texts or ())


def rich(text: str) -> list[dict[str, Any]]:
    """Plain text as rich text, in the pieces of 2,000 characters that Notion takes."""
    return [{"type": "text", "text": {"content": text[at : at + 2000]}} for at in range(0, len(text), 2000)]


def title_of(properties: Properties) -> str:
    return next((plain(one["title"]) for one in properties.values() if one["type"] == "title"), "")


def title_key(properties: Properties) -> str:
    """The name of the property that holds the title; every page has one."""
    return next((name for name, one in properties.items() if one["type"] == "title"), "title")


def value_of(one: Any) -> Value:
    """A property as front matter shows it."""
    kind = one["type"]
    value = one.get(kind)
    match kind:
        case "title" | "rich_text":
            return plain(value)
        case "select" | "status":
            return value["name"] if value else None
        case "multi_select" | "files":
            return [str(part["name"]) for part in value]
        case "people" | "relation":
            return [str(part["id"]) for part in value]
        case "date":
            return _range(value) if value else None
        case "created_by" | "last_edited_by":
            return str(value["id"])
        case "number":
            return value if value is None or isinstance(value, int) else _number(value)
        case "unique_id":
            return f"{value['prefix']}-{value['number']}" if value.get("prefix") else value["number"]
        case "formula":
            return value_of(value) if value["type"] != "number" else _number(value["number"])
    if value is None or isinstance(value, str | bool):
        return value
    return _range(value) if isinstance(value, dict) and "start" in value else json.dumps(value, ensure_ascii=False)


def _number(value: float | None) -> Value:
    if value is None or isinstance(value, bool):
        return value
    return int(value) if value == int(value) else repr(value)


def _range(value: Any) -> str:
    return f"{value['start']}/{value['end']}" if value.get("end") else str(value["start"])


def _text(value: Value) -> str:
    if isinstance(value, list):
        raise ValueError("a text")
    return "" if value is None else str(value)


def _named(value: Value) -> Any:
    if isinstance(value, list):
        raise ValueError("one name")
    return None if value is None else {"name": str(value)}


def _several(key: str) -> Callable[[Value], Any]:
    def convert(value: Value) -> Any:
        if value is not None and not isinstance(value, list):
            raise ValueError("a list, as in [one, two]")
        return [{key: part} for part in value or ()]

    return convert


def _to_number(value: Value) -> Any:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    try:
        return float(str(value))
    except ValueError:
        raise ValueError("a number") from None


def _to_date(value: Value) -> Any:
    if value is None:
        return None
    start, _, end = str(value).partition("/")
    return {"start": start, "end": end or None}


def _to_flag(value: Value) -> Any:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _or_none(value: Value) -> Any:
    return _text(value) or None


SENT: Final[Mapping[str, Callable[[Value], Any]]] = {
    "title": lambda value: rich(_text(value)),
    "rich_text": lambda value: rich(_text(value)),
    "number": _to_number,
    "select": _named,
    "status": _named,
    "multi_select": _several("name"),
    "people": _several("id"),
    "relation": _several("id"),
    "date": _to_date,
    "checkbox": _to_flag,
    "url": _or_none,
    "email": _or_none,
    "phone_number": _or_none,
}
"""Kinds of properties that can be set, each with what the API takes."""


def sent_of(changed: Mapping[str, Value], properties: Properties, path: Path) -> dict[str, Any]:
    """Changed values of front matter as the API takes them."""
    made = {}
    for name, value in changed.items():
        kind = properties[name]["type"]
        try:
            made[name] = {kind: SENT[kind](value)}
        except ValueError as error:
            raise fail(errno.EINVAL, path, f"Invalid argument: {name} is {error}") from None
    return made
