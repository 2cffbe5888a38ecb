"""`ConfigReader`: collect problems and settings while a configuration is read.

`${VAR}` and `${VAR:-default}` stand for variables, `$${` for a literal `${`, and `secret:env:NAME` or
`secret:file:PATH` for a secret. The value of a secret never appears in a problem or a setting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path as LocalPath
from typing import Final, NamedTuple

from ramet.core.errors import RametError
from ramet.core.resource import REDACTED
from ramet.workspace.config.nodes import Node, Position

VARIABLE: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}")
NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
SECRET: Final = "secret:"
REFERENCES: Final = (SECRET, "env:", "file:")
LONGEST_SECRET: Final = 64 * 1024


class Problem(NamedTuple):
    """One problem, its position, and a hint."""

    file: str
    line: int
    column: int
    setting: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.setting}: " if self.setting else ""
        return f"{self.file}:{self.line}:{self.column}: {where}{self.message}" + (f"; {self.hint}" if self.hint else "")


class ConfigError(RametError):
    """An invalid configuration, with all its `problems`."""

    def __init__(self, problems: Collection[Problem]) -> None:
        self.problems = tuple(problems)
        first = next(iter(problems))
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            "invalid_config", f"{first.file} has {count}:\n" + "\n".join(map(str, problems)),
            "`ramet config schema` and docs/config.md describe all settings",
            {"problems": [problem._asdict() for problem in problems]},
        )  # fmt: skip

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.problems,)


class Setting(NamedTuple):
    """One value: as shown, as written, its origin, and its position."""

    path: str
    value: object
    written: object
    origin: str
    place: Position | None


class ExpandedText(NamedTuple):
    """A text with variables and secrets filled in."""

    text: str
    origin: str
    secret: bool


@dataclass
class ConfigReader:
    """The file, the sources of variables and secrets, and the results so far."""

    file: str
    folder: LocalPath
    variables: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)

    def wrong(self, place: Position | None, setting: str, message: str, hint: str = "") -> None:
        line, column = place or Position(1, 1)
        self.problems.append(Problem(self.file, line, column, setting, message, hint))

    def unknown(self, node: Node, setting: str, name: str, known: Collection[str], what: str) -> None:
        """Report an unknown name, with a similar known one."""
        self.wrong(node.key or node.place, setting, f"unknown {what} {name!r}", suggestion(name, known))

    def set(self, setting: str, value: object, node: Node, origin: str = "", *, secret: bool = False) -> None:
        where = origin or f"{self.file}:{node.place.line}"
        written = node.value if isinstance(node.value, str | int | float | bool | None) else value
        if secret and not (isinstance(written, str) and (written.startswith(REFERENCES) or "${" in written)):
            written = REDACTED
        self.settings.append(Setting(setting, REDACTED if secret else value, written, where, node.place))

    def default(self, setting: str, value: object) -> None:
        if value is not None and value != () and value != {}:
            self.settings.append(Setting(setting, value, None, "default", None))

    # ---------------------------------------------------------------------------------- variables, secrets

    def text(self, node: Node, setting: str, *, reference: bool = False) -> ExpandedText | None:
        """Return the text of a scalar, or None after a problem. With `reference`, `env:` and `file:` are secrets as
        well."""
        raw = node.value if isinstance(node.value, str) else node.text
        expanded = self._expand(raw, node, setting)
        if expanded is None:
            return None
        if expanded.text.startswith(SECRET) or (reference and expanded.text.startswith(REFERENCES)):
            return self._secret(expanded.text.removeprefix(SECRET), node, setting)
        return expanded

    def _expand(self, raw: str, node: Node, setting: str) -> ExpandedText | None:
        if "${" not in raw:
            return ExpandedText(raw, "", False)
        failed = False
        origins: list[str] = []

        def stand_in(found: re.Match[str]) -> str:
            nonlocal failed
            if found[0] == "$${":
                return "${"
            parts = NAME.fullmatch(found[1])
            if parts is None:
                failed = True
                self.wrong(node.place, setting, f"{found[0]} is not understood", "write ${NAME} or ${NAME:-default}")
                return ""
            name, default = parts[1], parts[2]
            value = self.variables.get(name)
            if value:
                origins.append(f"variable {name}")
                return value
            if default is not None:
                origins.append(f"default of ${{{name}}}")
                return default
            if value is None:
                failed = True
                hint = suggestion(name, self.variables, bar=0.8)
                self.wrong(
                    node.place, setting, f"the variable {name} is not set", hint or f"write ${{{name}:-default}}"
                )
            origins.append(f"variable {name}")
            return ""

        text = VARIABLE.sub(stand_in, raw)
        return None if failed else ExpandedText(text, ", ".join(dict.fromkeys(origins)), False)

    def _secret(self, reference: str, node: Node, setting: str) -> ExpandedText | None:
        kind, _, name = reference.partition(":")
        if kind == "env" and name:
            value = self.variables.get(name)
            if value is None:
                hint = suggestion(name, self.variables, bar=0.8) or "set it before you begin"
                self.wrong(node.place, setting, f"the secret's variable {name} is not set", hint)
                return None
            return ExpandedText(value, f"secret from variable {name}", True)
        if kind == "file" and name:
            place = self.path(name)
            try:
                with open(place, encoding="utf-8") as file:
                    value = file.read(LONGEST_SECRET + 1)
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is not text"
                self.wrong(node.place, setting, f"cannot read the secret's file {place}: {why}")
                return None
            if len(value) > LONGEST_SECRET:
                self.wrong(node.place, setting, f"the secret's file {place} is too large")
                return None
            return ExpandedText(value.rstrip("\r\n"), f"secret from file {place}", True)
        self.wrong(
            node.place, setting, f"{kind!r} is not a source of secrets", "write secret:env:NAME or secret:file:PATH"
        )
        return None

    def path(self, text: str) -> str:
        """Return a path of this machine, relative to the file."""
        return os.path.normpath(self.folder / LocalPath(text).expanduser())


def nearest(name: str, known: Collection[str], *, bar: float = 0.6) -> str:
    """Return the most similar known name, or an empty string."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1, 0.5 if len(name) < 3 else bar)), "")


def suggestion(name: str, known: Collection[str], *, bar: float = 0.6) -> str:
    found = nearest(name, known, bar=bar)
    return f"did you mean {found}?" if found else ""
