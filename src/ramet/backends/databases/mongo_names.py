"""Documents as lines, and their `_id`s as file names: a name says the value and its type, and gives both back.

An ObjectId is its 24 digits, a whole number its digits, a text itself; a text that could be taken for something else,
and every other type, is extended JSON. A name that would be too long is a digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from bson import ObjectId, json_util
from bson.binary import UuidRepresentation
from bson.errors import BSONError

from ramet.backends.file_names import as_name, fits, from_name

LONG: Final = "%sha256-"
SUFFIX: Final = ".json"
_OBJECT_ID: Final = re.compile(r"[0-9a-f]{24}")
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_AMBIGUOUS: Final = re.compile(r'[0-9a-f]{24}|-?[0-9.].*|[{\["].*|true|false|null|NaN|-?Infinity|', re.DOTALL)


OPTIONS: Final = json_util.JSONOptions(
    json_mode=json_util.JSONMode.RELAXED, uuid_representation=UuidRepresentation.STANDARD, tz_aware=True
)


def line(document: Any) -> bytes:
    """Encode as relaxed extended JSON: readable, and every type is kept."""
    return written(document).encode() + b"\n"


def written(value: Any) -> str:
    return json_util.dumps(value, json_options=OPTIONS, ensure_ascii=False)


def folded(line: bytes) -> bytes:
    """A line in which every letter that can stand for an ASCII one, in whichever case, is that one in lower case."""
    return line.replace("\u017f".encode(), b"s").replace("\u212a".encode(), b"k").lower()


def parsed(text: str) -> Any:
    return json_util.loads(text, json_options=OPTIONS)


def file_name(value: Any) -> str:
    """The file of the document with this `_id`."""
    if isinstance(value, ObjectId):
        name = str(value)
    elif isinstance(value, str) and not _AMBIGUOUS.fullmatch(value):
        name = as_name(value)
    else:
        name = as_name(written(value))
    if fits(name + SUFFIX):
        return name + SUFFIX
    return LONG + hashlib.sha256(written(value).encode()).hexdigest() + SUFFIX


def value_of(name: str) -> tuple[Any] | None:
    """The `_id` that a file's name stands for; None for a name that no document has."""
    if not name.endswith(SUFFIX):
        return None
    text = from_name(name.removesuffix(SUFFIX))
    if text is None:
        return None
    value: Any = text
    if _OBJECT_ID.fullmatch(text):
        value = ObjectId(text)
    elif _WHOLE.fullmatch(text):
        value = int(text)
    elif _AMBIGUOUS.fullmatch(text):
        try:
            value = parsed(text)
        except (ValueError, TypeError, BSONError):
            return None
    return (value,) if file_name(value) == name else None


def fields(documents: list[Any]) -> dict[str, object]:
    """Which fields some documents have, of which types, and in how many of them."""
    found: dict[str, dict[str, int]] = {}
    for document in documents:
        seen: dict[str, set[str]] = {}
        _collect(document, "", seen)
        for path, types in seen.items():
            for name in types:
                counts = found.setdefault(path, {})
                counts[name] = counts.get(name, 0) + 1
    return {path: dict(sorted(types.items())) for path, types in sorted(found.items())}


def _collect(value: Any, path: str, seen: dict[str, set[str]]) -> None:
    if isinstance(value, dict):
        if path:
            seen.setdefault(path, set()).add("object")
        for name, below in value.items():
            _collect(below, f"{path}.{name}" if path else str(name), seen)
    elif isinstance(value, list):
        seen.setdefault(path, set()).add("array")
        for item in value:
            _collect(item, path + "[]", seen)
    else:
        seen.setdefault(path, set()).add(_TYPES.get(type(value).__name__, type(value).__name__))


_TYPES: Final = {
    "str": "string", "int": "int", "float": "double", "bool": "bool", "NoneType": "null", "datetime": "date",
    "ObjectId": "objectId", "Decimal128": "decimal", "Int64": "long", "bytes": "binData", "Binary": "binData",
    "UUID": "binData", "DatetimeMS": "date",
}  # fmt: skip


def pretty(value: object) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str).encode() + b"\n"
