"""Parse YAML, JSON and TOML into nodes with their positions, without interpreting them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ramet.core.errors import RametError

Scalar = str | int | float | bool | None
LARGEST: Final = 100_000
"""Nodes per file, counting repeated aliases."""
DEEPEST: Final = 50


class Position(NamedTuple):
    """A position in the file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """A value as written. `text` is the source of a scalar; `key` is the position of its name."""

    value: Scalar | list[Node] | dict[str, Node]
    place: Position
    text: str = ""
    key: Position | None = None

    @property
    def kind(self) -> str:
        """Its type, in words."""
        value = self.value
        if isinstance(value, dict):
            return "a mapping"
        if isinstance(value, list):
            return "a list"
        if value is None:
            return "empty"
        return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "a number"


class ConfigSyntaxError(RametError):
    """The file is not well-formed; has a message and a position."""

    def __init__(self, message: str, place: Position) -> None:
        super().__init__("invalid_config", message, f"Look at line {place.line}.")
        self.message, self.place = message, place

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.place)


def read_nodes(text: str, suffix: str) -> Node:
    """Parse a file by the suffix of its name."""
    if suffix == ".json":
        return _Json(text).document()
    if suffix == ".toml":
        return _toml(text)
    return _yaml(text)


# ----------------------------------------------------------------------------------------------------------- YAML


def _yaml(text: str) -> Node:
    import yaml  # type: ignore[import-untyped]

    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)
        raise ConfigSyntaxError(str(error.problem or error.context or "not YAML"), place) from None
    except yaml.YAMLError as error:
        raise ConfigSyntaxError(str(error).partition("\n")[0], Position(1, 1)) from None
    return Node({}, Position(1, 1)) if top is None else _Yaml(yaml).node(top, 0)


class _Yaml:
    def __init__(self, library: Any) -> None:
        self._library = library
        self._constructor = library.constructor.SafeConstructor()
        self._count = 0
        self._flat: dict[int, Any] = {}

    def node(self, found: Any, depth: int) -> Node:
        place = _mark(found)
        self._count += 1
        if self._count > LARGEST or depth > DEEPEST:
            raise ConfigSyntaxError("the file says too much: are there aliases of aliases?", place)
        if isinstance(found, self._library.ScalarNode):
            return Node(self._scalar(found), place, found.value)
        if isinstance(found, self._library.SequenceNode):
            return Node([self.node(item, depth + 1) for item in found.value], place)
        if id(found) not in self._flat:
            self._flat[id(found)] = found  # keeps the object alive, so that its id stays unique
            self._check_names(found)
            self._constructor.flatten_mapping(found)  # merged keys come first, so that explicit ones win
        made = {key.value: replace(self.node(value, depth + 1), key=_mark(key)) for key, value in found.value}
        return Node(made, place)

    def _check_names(self, found: Any) -> None:
        seen: dict[str, Position] = {}
        for key, _ in found.value:
            if not isinstance(key, self._library.ScalarNode):
                raise ConfigSyntaxError("a name must be text", _mark(key))
            if key.value in seen and key.value != "<<":
                raise ConfigSyntaxError(
                    f"{key.value!r} is given twice, first on line {seen[key.value].line}", _mark(key)
                )
            seen[key.value] = _mark(key)

    def _scalar(self, found: Any) -> Scalar:
        kind = found.tag.rpartition(":")[2]
        if kind in ("null", "bool", "int", "float"):
            value: Scalar = self._constructor.construct_object(found)
            return value
        if not found.tag.startswith("tag:yaml.org,2002:"):
            raise ConfigSyntaxError(f"the tag {found.tag} means nothing here", _mark(found))
        return str(found.value)  # a date is text to us


def _mark(found: Any) -> Position:
    return Position(found.start_mark.line + 1, found.start_mark.column + 1)


# ----------------------------------------------------------------------------------------------------------- JSON


class _Json:
    """A JSON parser with positions, which the standard library lacks."""

    _SPACE = re.compile(r"[ \t\n\r]*")
    _WORD = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def _place(self, at: int) -> Position:
        from bisect import bisect_right

        line = bisect_right(self._starts, at)
        return Position(line, at - self._starts[line - 1] + 1)

    def _wrong(self, message: str, at: int | None = None) -> ConfigSyntaxError:
        return ConfigSyntaxError(message, self._place(self._at if at is None else at))

    def _next(self) -> str:
        found = self._SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def document(self) -> Node:
        top = self._value(0)
        if self._next():
            raise self._wrong("something follows the end of the document")
        return top

    def _value(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._wrong("this is nested too deeply")
        first, start = self._next(), self._at
        if first == "{":
            return Node(dict(self._members(depth)), self._place(start))
        if first == "[":
            return Node(list(self._items(depth)), self._place(start))
        if first == '"':
            value = self._string()
            return Node(value, self._place(start), value)
        word = self._WORD.match(self._text, self._at)
        if word is None:
            raise self._wrong("the file ends here" if not first else "a value is expected here")
        self._at = word.end()
        return Node(json.loads(word[0]), self._place(start), word[0])

    def _string(self) -> str:
        start = self._at
        try:
            value, self._at = json.decoder.scanstring(self._text, self._at + 1, True)  # type: ignore[attr-defined]
        except json.JSONDecodeError as error:
            raise self._wrong(error.msg, min(error.pos, len(self._text))) from None
        return str(value) if start < self._at else ""

    def _members(self, depth: int) -> Iterator[tuple[str, Node]]:
        self._at += 1
        seen: dict[str, Position] = {}
        if self._next() == "}":
            self._at += 1
            return
        while True:
            if self._next() != '"':
                raise self._wrong("a name in double quotes is expected here")
            place = self._place(self._at)
            name = self._string()
            if name in seen:
                raise ConfigSyntaxError(f"{name!r} is given twice, first on line {seen[name].line}", place)
            seen[name] = place
            if self._next() != ":":
                raise self._wrong("a colon is expected here")
            self._at += 1
            yield name, replace(self._value(depth + 1), key=place)
            if self._at_end("}"):
                return

    def _items(self, depth: int) -> Iterator[Node]:
        self._at += 1
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield self._value(depth + 1)
            if self._at_end("]"):
                return

    def _at_end(self, end: str) -> bool:
        found = self._next()
        if found not in (",", end) or not found:
            raise self._wrong(f"a comma or {end} is expected here")
        self._at += 1
        return found == end


# ----------------------------------------------------------------------------------------------------------- TOML

_HEADER = re.compile(r"[ \t]*\[{1,2}([^\]\n]+)\]")
_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_ENTRY = re.compile(rf"[ \t]*({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)[ \t]*=[ \t]*")
_PART = re.compile(_NAME)


def _toml(text: str) -> Node:
    import tomllib

    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error))
        lines = text.count("\n") + 1
        place = Position(int(found[2] or lines), int(found[3] or 1)) if found else Position(1, 1)
        raise ConfigSyntaxError(found[1] if found else str(error), place) from None
    return _toml_node(plain, _toml_places(text), (), Position(1, 1))


def _toml_places(text: str) -> dict[tuple[str, ...], tuple[Position, Position]]:
    """Find the positions of names and values by line; values in an inline table have its position."""
    found: dict[tuple[str, ...], tuple[Position, Position]] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        header = _HEADER.match(line)
        if header is not None:
            table = _parts(header[1])
            place = Position(number, header.start(1) + 1)
            found.setdefault(table, (place, place))
            continue
        entry = _ENTRY.match(line)
        if entry is not None:
            name = Position(number, entry.start(1) + 1)
            found.setdefault((*table, *_parts(entry[1])), (name, Position(number, entry.end() + 1)))
    return found


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(text))


def _toml_node(
    plain: Any, places: dict[tuple[str, ...], tuple[Position, Position]], path: tuple[str, ...], near: Position
) -> Node:
    key, place = places.get(path, (near, near))
    if isinstance(plain, dict):
        made: Any = {name: _toml_node(value, places, (*path, name), place) for name, value in plain.items()}
        return Node(made, place, key=key)
    if isinstance(plain, list):
        return Node([_toml_node(value, places, path, place) for value in plain], place, key=key)
    if isinstance(plain, str | int | float):
        text = str(plain).lower() if isinstance(plain, bool) else str(plain)
        return Node(plain, place, text, key)
    return Node(str(plain), place, str(plain), key)  # a date is text to us
