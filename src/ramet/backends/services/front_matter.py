"""Front matter: the fields of a thing above its Markdown body, in both directions.

    ---
    title: Login fails
    labels: [bug, web]
    ---

    The body.

- What `render` writes, `parse` reads back exactly; `parse` also takes lists with one `- item` a line.
- `edits` finds only what differs. A key that is left out stays as it is; an unknown or read-only key is an error.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Collection, Mapping
from typing import Final

from ramet.core.errors import fail
from ramet.core.paths import Path

Value = str | int | bool | None | list[str]
Fields = Mapping[str, Value]

BODY: Final = "body"
"""The name of the text below the fields in what `edits` returns."""
_FENCE: Final = "---"
_KEY: Final = re.compile(r"([^\W\d][\w -]*|\"(?:[^\"\\]|\\.)*\"):(?:[ \t]+(.*?))?[ \t\r]*")
_PLAIN_KEY: Final = re.compile(r"[^\W\d](?:[\w -]*[\w-])?")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+(.*?)[ \t]*")
_PLAIN: Final = re.compile(r"[^\s\[\]{}\"'#&*!|>%@`,:?-](?:[^\x00-\x1f\x7f\[\]{},#:]*[^\s\[\]{},#:\x00-\x1f\x7f])?")
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_LISTED: Final = re.compile(r"\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^,\"'\s][^,]*?|)\s*(?:,|$)", re.DOTALL)


def render(fields: Fields, body: str) -> str:
    lines = [f"{_written_key(name)}: {_written(value)}".rstrip() for name, value in fields.items()]
    text = body.replace("\r\n", "\n")
    return "\n".join([_FENCE, *lines, _FENCE, "", text]).rstrip("\n") + "\n"


def _written_key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _written(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_quoted, value))}]"
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _quoted(value)


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not _NUMBER.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def parse(text: str, path: Path) -> tuple[dict[str, Value], str]:
    """The fields and the body of a text; a text without front matter is all body."""
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return {}, text.strip("\n")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise fail(errno.EINVAL, path, "the front matter has no end: a line `---` is missing")
    fields: dict[str, Value] = {}
    last = ""
    for number, line in enumerate(lines[1:end], 2):
        item = _ITEM.fullmatch(line)
        if item is not None and last and (fields[last] is None or isinstance(fields[last], list)):
            before = fields[last]
            fields[last] = [*(before if isinstance(before, list) else []), str(_scalar(item[1], number, path))]
            continue
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.fullmatch(line)
        if found is None:
            raise fail(errno.EINVAL, path, f"line {number} of the front matter is not `key: value`")
        last = _text(found[1], number, path) if found[1].startswith('"') else found[1].rstrip()
        if last in fields:
            raise fail(errno.EINVAL, path, f"the front matter has {last} twice")
        fields[last] = _value(found[2] or "", number, path)
    return fields, "\n".join(lines[end + 1 :]).strip("\n")


def _value(text: str, number: int, path: Path) -> Value:
    if not text.startswith("["):
        return _scalar(text, number, path)
    if not text.endswith("]"):
        raise fail(errno.EINVAL, path, f"the list in line {number} of the front matter has no end")
    inner, found, at = text[1:-1].strip(), [], 0
    while at < len(inner):
        item = _LISTED.match(inner, at)
        if item is None or item.end() == at:
            raise fail(errno.EINVAL, path, f"the list in line {number} of the front matter cannot be read")
        found.append(_text(item[1], number, path))
        at = item.end()
    return found


def _scalar(text: str, number: int, path: Path) -> str | int | bool | None:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if _NUMBER.fullmatch(text) else _text(text, number, path)


def _text(text: str, number: int, path: Path) -> str:
    if text.startswith('"'):
        try:
            found = json.loads(text, strict=False)
        except ValueError:
            raise fail(errno.EINVAL, path, f"the quotes in line {number} of the front matter do not match") from None
        return str(found)
    if text.startswith("'"):
        if len(text) < 2 or not text.endswith("'"):
            raise fail(errno.EINVAL, path, f"the quotes in line {number} of the front matter do not match")
        return text[1:-1].replace("''", "'")
    return text


def edited(path: Path, old: bytes, new: bytes, editable: Collection[str], *, body: bool = True) -> dict[str, Value]:
    """What differs between two rendered files."""
    try:
        text = new.decode()
    except UnicodeDecodeError:
        raise fail(errno.EINVAL, path, "Invalid argument: the text is not UTF-8") from None
    return edits(path, old.decode(), text, editable, body=body)


def edits(path: Path, old: str, new: str, editable: Collection[str], *, body: bool = True) -> dict[str, Value]:
    """What differs between two rendered texts, by key; the body is `BODY`."""
    before, text_before = parse(old, path)
    after, text_after = parse(new, path)
    found: dict[str, Value] = {}
    for key, value in after.items():
        if key not in before:
            raise fail(errno.EINVAL, path, f"unknown key {key}: there are {', '.join(before)}")
        if value == before[key] or (value in (None, []) and before[key] in (None, [])):
            continue
        if key not in editable:
            raise fail(errno.EINVAL, path, f"{key} is read-only: you can edit {', '.join(editable)}")
        found[key] = value
    if text_after.rstrip() != text_before.rstrip():
        if not body:
            raise fail(errno.EINVAL, path, f"the text is read-only: you can edit {', '.join(editable)}")
        found[BODY] = text_after
    return found
