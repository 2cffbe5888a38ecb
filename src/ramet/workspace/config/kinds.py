"""Kinds of configuration values: each reads a node, and describes itself in the JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ramet.workspace.config.nodes import Node
from ramet.workspace.config.problems import ConfigReader, nearest, suggestion


class _Invalid:
    def __repr__(self) -> str:
        return "INVALID"


INVALID: Final = _Invalid()
"""Returned instead of a value after a problem was reported."""
VARIABLE: Final = {"type": "string", "pattern": r"^\$\{"}
"""A variable, allowed in place of a number or a choice."""


class Kind(Protocol):
    @property
    def says(self) -> str:
        """Description for the reference page."""
        ...

    def schema(self) -> dict[str, Any]: ...

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        """Return the value, or INVALID after reporting a problem."""
        ...


@dataclass(frozen=True)
class Field:
    """A named setting."""

    kind: Kind
    text: str = ""
    default: Any = None
    required: bool = False
    find_text: Callable[[], str] | None = None
    """Finds the help text when it is not given here; called only when the text is shown."""

    @property
    def help(self) -> str:
        return self.text if self.find_text is None else self.find_text()

    def schema(self) -> dict[str, Any]:
        found = self.kind.schema()
        if self.help:
            found["description"] = self.help
        if self.default is not None and isinstance(self.default, str | int | float | bool):
            found["default"] = self.default
        return found


# -------------------------------------------------------------------------------------------------------- scalars


@dataclass(frozen=True)
class TextKind:
    """Text. A `secret` is never shown, and must not be in plain text; `path` is a path of this machine.

    A `recorded` value (in history, revisions, snapshots) must not be a secret.
    """

    secret: bool = False
    path: bool = False
    pattern: str | None = None
    pattern_says: str = ""
    reference: bool = False
    recorded: bool = False

    @property
    def says(self) -> str:
        return "a secret" if self.secret else "a path" if self.path else "text"

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": ["string", "number", "boolean"]}
        if self.secret:
            starts = "secret:|env:|file:|\\$\\{" if self.reference else "secret:|\\$\\{"
            found = {"type": "string", "pattern": f"^({starts})"}
        elif self.path:
            found = {"type": "string"}
        elif self.pattern is not None:
            found = {"type": "string", "pattern": f"^({self.pattern}|.*\\$\\{{.*)$"}
        return found

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if isinstance(node.value, dict | list) or node.value is None:
            reading.wrong(node.place, setting, f"{self.says} is expected, and this is {node.kind}")
            return INVALID
        found = reading.text(node, setting, reference=self.reference)
        if found is None:
            return INVALID
        if self.secret and not found.secret and not found.origin:
            hint = "write secret:env:NAME or secret:file:PATH"
            reading.wrong(node.place, setting, "a secret in plain text is not allowed here", hint)
            return INVALID
        if self.recorded and found.secret:
            hint = "give it its name below `secrets:`, which are variables, too"
            reading.wrong(node.place, setting, "a secret would be recorded here", hint)
            return INVALID
        if self.pattern is not None and re.fullmatch(self.pattern, found.text) is None:
            message = "" if found.secret else f"{found.text!r} cannot be used"
            reading.wrong(node.place, setting, message or "the secret cannot be used", self.pattern_says)
            return INVALID
        value = reading.path(found.text) if self.path and "://" not in found.text else found.text
        reading.set(setting, value, node, found.origin, secret=self.secret or found.secret)
        return value


SIZES: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SIZES.update({f"{unit}ib": size for unit, size in SIZES.items() if unit not in ("", "b")})
SIZES.update({f"{unit}b": 10 ** (3 * power) for power, unit in enumerate("kmgt", 1)})
TIMES: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MEASURE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")


@dataclass(frozen=True)
class NumberKind:
    """A number, plain or with a unit: a size (`16MiB`), a time (`30s`), a count."""

    unit: str = ""  # "", "size" or "time"
    whole: bool = False
    least: float = 0

    @property
    def says(self) -> str:
        return {"size": "a size, as in 16MiB", "time": "seconds, or as in 5m"}.get(
            self.unit, "a whole number" if self.whole else "a number"
        )

    def schema(self) -> dict[str, Any]:
        number = {"type": "integer" if self.whole else "number", "minimum": self.least}
        if not self.unit:
            return {"anyOf": [number, dict(VARIABLE)]}
        return {"anyOf": [number, {"type": "string", "pattern": r"^([0-9.]+\s*[A-Za-z]*|\$\{.*)$"}]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        value, origin = node.value, ""
        if isinstance(value, str):
            found = reading.text(node, setting)
            if found is None:
                return INVALID
            value, origin = self.parse(found.text), found.origin
        if not isinstance(value, int | float) or isinstance(value, bool):
            what = f"{node.value!r}" if isinstance(node.value, str) else node.kind
            reading.wrong(node.place, setting, f"{self.says} is expected, and this is {what}")
            return INVALID
        if self.whole and value != int(value):
            reading.wrong(node.place, setting, f"{self.says} is expected, and this is {value}")
            return INVALID
        if value < self.least or value != value or value in (float("inf"), float("-inf")):
            reading.wrong(node.place, setting, f"{value} is too small: {self.least:g} is the least")
            return INVALID
        value = int(value) if self.whole else float(value)
        reading.set(setting, value, node, origin)
        return value

    def parse(self, text: str) -> float | None:
        """Return the number of a text such as `16MiB`; None for any other text."""
        found = MEASURE.fullmatch(text.strip())
        if found is None:
            return None
        table: Mapping[str, float] = SIZES if self.unit == "size" else TIMES if self.unit == "time" else {"": 1}
        factor = table.get(found[2].lower())
        if factor is None:
            return None
        return int(found[1]) * factor if found[1].isdigit() else float(found[1]) * factor


@dataclass(frozen=True)
class FlagKind:
    """Yes or no."""

    says = "true or false"

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, dict(VARIABLE)]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        value, origin = node.value, ""
        if isinstance(value, str):
            found = reading.text(node, setting)
            if found is None:
                return INVALID
            known = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False}
            value, origin = {**known, "0": False, "": False}.get(found.text.lower()), found.origin
        if not isinstance(value, bool):
            reading.wrong(node.place, setting, f"true or false is expected, and this is {node.kind}")
            return INVALID
        reading.set(setting, value, node, origin)
        return value


@dataclass(frozen=True)
class ChoiceKind:
    """One of several words, with alternative spellings."""

    words: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()

    @property
    def says(self) -> str:
        return " or ".join(f"`{word}`" for word in self.words)

    def schema(self) -> dict[str, Any]:
        numbers = [int(word) for word in self.words if word.isdigit()]
        return {"anyOf": [{"enum": [*numbers, *self.words, *(other for other, _ in self.also)]}, dict(VARIABLE)]}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if isinstance(node.value, dict | list) or node.value is None:
            reading.wrong(node.place, setting, f"one of {', '.join(self.words)} is expected, and this is {node.kind}")
            return INVALID
        found = reading.text(node, setting)
        if found is None:
            return INVALID
        word = dict(self.also).get(found.text, found.text)
        if word not in self.words:
            hint = suggestion(found.text, self.words) or f"use {' or '.join(self.words)}"
            reading.wrong(node.place, setting, f"{found.text!r} is not one of the choices", hint)
            return INVALID
        reading.set(setting, word, node, found.origin)
        return word


# ------------------------------------------------------------------------------------------------------- compound


@dataclass(frozen=True)
class TableKind:
    """A mapping with known names."""

    fields: Mapping[str, Field]
    what: str = "setting"
    need_one: tuple[str, ...] = ()
    """At least one of these is required."""

    says = "a mapping"

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: field.schema() for name, field in self.fields.items()},
        }
        needed = [name for name, field in self.fields.items() if field.required]
        if needed:
            found["required"] = needed
        if self.need_one:
            found["anyOf"] = [{"required": [name]} for name in self.need_one]
        return found

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        given = mapping_of(node, setting, reading)
        if given is None:
            return INVALID
        made: dict[str, Any] = {}
        for name, item in given.items():
            place = join_setting(setting, name)
            field = self.fields.get(name)
            if field is None:
                reading.unknown(item, setting, name, self.fields, self.what)
                continue
            made[name] = field.kind.read(item, place, reading)
        strangers = [name for name in given if name not in self.fields]
        for name, field in self.fields.items():
            if name not in given:
                if field.required:
                    made[name] = INVALID
                    if any(nearest(other, self.fields) == name for other in strangers):
                        continue  # reported as a typo
                    reading.wrong(node.key or node.place, setting, f"{name} is missing", field.help)
                else:
                    reading.default(join_setting(setting, name), field.default)
                    made[name] = field.default
        there = {*given, *(nearest(name, self.fields) for name in strangers)}
        if self.need_one and not there & set(self.need_one):
            reading.wrong(node.key or node.place, setting, f"{' or '.join(self.need_one)} is needed")
        return made


@dataclass(frozen=True)
class MapKind:
    """A mapping with arbitrary names."""

    inner: Kind
    pattern: str = r".+"
    pattern_says: str = ""

    @property
    def says(self) -> str:
        return f"names, each with {self.inner.says}"

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": self.inner.schema(),
            "propertyNames": {"pattern": f"^({self.pattern})$"},
        }

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        made: dict[str, Any] = {}
        for name, item in (mapping_of(node, setting, reading) or {}).items():
            if re.fullmatch(self.pattern, name) is None:
                reading.wrong(item.key or item.place, setting, f"{name!r} cannot be a name here", self.pattern_says)
                continue
            made[name] = self.inner.read(item, join_setting(setting, name), reading)
        return made


@dataclass(frozen=True)
class ListKind:
    """A list."""

    inner: Kind

    @property
    def says(self) -> str:
        return f"a list, each {self.inner.says}"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.inner.schema()}

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        if not isinstance(node.value, list):
            if node.value is None:
                return ()
            reading.wrong(node.place, setting, f"a list is expected, and this is {node.kind}", "put it in [ ]")
            return INVALID
        return tuple(self.inner.read(item, f"{setting}[{number}]", reading) for number, item in enumerate(node.value))


@dataclass(frozen=True)
class LazyKind:
    """A kind that is created on use, because it imports something."""

    make: Callable[[], Kind]

    @property
    def says(self) -> str:
        return self.make().says

    def schema(self) -> dict[str, Any]:
        return self.make().schema()

    def read(self, node: Node, setting: str, reading: ConfigReader) -> Any:
        return self.make().read(node, setting, reading)


def mapping_of(node: Node, setting: str, reading: ConfigReader) -> dict[str, Node] | None:
    if node.value is None:
        return {}
    if isinstance(node.value, dict):
        return node.value
    reading.wrong(node.place, setting, f"a mapping is expected, and this is {node.kind}")
    return None


def join_setting(setting: str, name: str) -> str:
    """Join `mounts` and `/data` to `mounts./data`."""
    return f"{setting}.{name}" if setting else name
