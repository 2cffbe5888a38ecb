"""Parse JSON as YAML, many times faster than the YAML parser, with the same values and styles.

- Text that is not strict JSON, or means more in YAML, is left to the YAML parser.
"""

from __future__ import annotations

import json
import re

from ramet.commands.data.jq.values import Json
from ramet.commands.data.yaml_style import Document, Looks
from ramet.concurrency.offload import checkpoint
from ramet.concurrency.sizes import BATCH

_BLANK = r"[ \t\n]*"
# Characters that YAML takes for ends of lines, or does not allow, are for its reader to judge.
_TEXT = r'"(?:[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_BEGIN = re.compile(rf"{_BLANK}[\[{{]")
_VALUE = re.compile(rf"{_BLANK}(?:([\[{{])|({_TEXT}|{_NUMBER}|true|false|null))")
_NAME = re.compile(rf"{_BLANK}({_TEXT}){_BLANK}:")
_NEXT = re.compile(rf"{_BLANK}([,\]}}])")
_EMPTY = re.compile(rf"{_BLANK}([\]}}])")
_END = re.compile(r"\s*\Z")


_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}


class _Other(Exception):
    """It is not JSON."""


def _string(source: str) -> Json:
    return json.loads(source) if "\\" in source else source[1:-1]


def _number(source: str) -> Json:
    try:
        return int(source)
    except ValueError:
        return float(source)


class _Open:
    """A collection whose end has not been read."""

    __slots__ = ("children", "keys", "looks", "name", "value")

    def __init__(self, value: list[Json] | dict[str, Json]) -> None:
        self.value = value
        self.children: dict[str | int, Looks] = {}
        self.keys: dict[str, str] = {}
        self.looks = Looks("flow", children=self.children, keys=self.keys)
        self.name = ""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.scalars: dict[str, tuple[Json, Looks]] = {}
        """What was read, once for all that are spelled alike."""
        self.known: dict[int, tuple[Json, Looks]] = {}
        self.open: list[_Open] = []

    def document(self) -> Document:
        count = 0
        while True:
            count += 1
            if not count % BATCH:
                checkpoint()
            done = self.value()
            while done is not None:
                if not self.open:
                    if not _END.match(self.text, self.at):
                        raise _Other
                    return Document(*done, self.known)
                done = self.placed(*done)

    def value(self) -> tuple[Json, Looks] | None:
        """Return the next value; None where one was begun."""
        found = _VALUE.match(self.text, self.at)
        if found is None:
            raise _Other
        self.at = found.end()
        if found[1] is None:
            return self.scalar(found[2])
        self.open.append(_Open([] if found[1] == "[" else {}))
        if empty := _EMPTY.match(self.text, self.at):
            self.at = empty.end()
            return self.closed(empty[1])
        if found[1] == "{":
            self.key()
        return None

    def scalar(self, source: str) -> tuple[Json, Looks]:
        known = self.scalars.get(source)
        if known is None:
            value = _WORDS[source] if source in _WORDS else _number(source) if source[0] != '"' else _string(source)
            known = self.scalars[source] = value, Looks('"' if source[0] == '"' else "", source, value)
        return known

    def key(self) -> None:
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise _Other
        self.at = found.end()
        inner = self.open[-1]
        inner.name = str(self.scalar(found[1])[0])
        inner.keys[inner.name] = found[1]

    def placed(self, value: Json, looks: Looks) -> tuple[Json, Looks] | None:
        """Put a value into what is open; that, when it is closed with it."""
        inner = self.open[-1]
        if isinstance(inner.value, list):
            inner.children[len(inner.value)] = looks
            inner.value.append(value)
        else:
            inner.children[inner.name] = looks
            inner.value[inner.name] = value
        found = _NEXT.match(self.text, self.at)
        if found is None:
            raise _Other
        self.at = found.end()
        if found[1] != ",":
            return self.closed(found[1])
        if isinstance(inner.value, dict):
            self.key()
        return None

    def closed(self, sign: str) -> tuple[Json, Looks]:
        inner = self.open.pop()
        if sign != ("]" if isinstance(inner.value, list) else "}"):
            raise _Other
        self.known[id(inner.value)] = inner.value, inner.looks
        return inner.value, inner.looks


def read(text: str) -> Document | None:
    """Return the document of a text that is an object or an array of JSON."""
    if not _BEGIN.match(text):
        return None
    try:
        return _Reader(text).document()
    except _Other:
        return None
