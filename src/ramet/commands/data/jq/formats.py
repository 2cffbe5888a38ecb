"""jq's string formats: @csv, @tsv, @html, @uri, @sh, @base64 and the like."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from urllib.parse import quote, unquote

from ramet.commands.data.jq.values import Json, described, dumps, fail, to_text


def _row(value: Json, name: str, cell: Callable[[Json], str], separator: str) -> str:
    if not isinstance(value, list):
        raise fail(f"{described(value)} cannot be {name}-formatted, only array")
    return separator.join(cell(item) for item in value)


def _csv_cell(item: Json) -> str:
    if isinstance(item, str):
        return '"' + item.replace('"', '""') + '"'
    return _plain_cell(item, "csv")


def _plain_cell(item: Json, name: str) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if item is None:
        return ""
    if isinstance(item, (list, dict)):
        raise fail(f"{described(item)} is not valid in a {name} row")
    return dumps(item)


def _tsv_cell(item: Json) -> str:
    if isinstance(item, str):
        return item.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return _plain_cell(item, "csv")


def _html(value: Json) -> str:
    text = to_text(value)
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&apos;"), ('"', "&quot;")):
        text = text.replace(char, entity)
    return text


def _sh(value: Json) -> str:
    return " ".join(_sh_word(item) for item in (value if isinstance(value, list) else [value]))


def _sh_word(item: Json) -> str:
    if isinstance(item, str):
        return "'" + item.replace("'", "'\\''").replace("\0", "\\0") + "'"
    if isinstance(item, (list, dict)):
        raise fail(f"{described(item)} can not be escaped for shell")
    return dumps(item)


def _base64d(value: Json) -> str:
    text = to_text(value)
    trimmed = text.partition("=")[0]
    padding = "=" * (-len(trimmed) % 4)
    if not _BASE64.fullmatch(trimmed):
        raise fail(f"{described(text)} is not valid base64 data")
    if len(trimmed) % 4 == 1:
        raise fail(f"{described(text)} trailing base64 byte found")
    return _decoded(base64.b64decode(trimmed + padding))


_BASE64 = re.compile("[A-Za-z0-9+/]*")


def _decoded(data: bytes) -> str:
    """Bytes as text; a character that the end cuts short takes with it all that comes behind its first byte."""
    for at in range(max(0, len(data) - 3), len(data)):
        lead = data[at]
        if 0xC2 <= lead <= 0xF4 and at + (2 + (lead >= 0xE0) + (lead >= 0xF0)) > len(data):
            return data[:at].decode("utf-8", "replace") + "\ufffd"
    return data.decode("utf-8", "replace")


def _base32d(value: Json) -> str:
    text = to_text(value)
    try:
        data = base64.b32decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 8))
    except (ValueError, binascii.Error):
        raise fail(f"{described(text)} is not valid base32 data") from None
    return data.decode("utf-8", "replace")


FORMATS: dict[str, Callable[[Json], str]] = {
    "@text": to_text,
    "@json": dumps,
    "@csv": lambda value: _row(value, "csv", _csv_cell, ","),
    "@tsv": lambda value: _row(value, "tsv", _tsv_cell, "\t"),
    "@html": _html,
    "@uri": lambda value: quote(to_text(value).encode(), safe="-_.~"),
    "@urid": lambda value: unquote(to_text(value), errors="replace"),
    "@sh": _sh,
    "@base64": lambda value: base64.b64encode(to_text(value).encode()).decode(),
    "@base64d": _base64d,
    "@base32": lambda value: base64.b32encode(to_text(value).encode()).decode(),
    "@base32d": _base32d,
}


def known(name: str) -> Callable[[Json], str]:
    found = FORMATS.get(name)
    if found is None:
        message = f"{name[1:]} is not a valid format"

        def refuse(value: Json) -> str:
            raise fail(message)

        return refuse
    return found
