"""Workspace configuration files: YAML, JSON or TOML.

    config = load_config("ramet.yaml")      # raises ConfigError with all problems and their positions
    ws = config.workspace()                 # or Workspace.from_config("ramet.yaml")
    async with config.open() as ws: ...     # the same, bound to the store that the file names

`declaration.py` declares all settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path as LocalPath
from typing import Final

from ramet.core.errors import RametError
from ramet.workspace.config.config import Config, config_of
from ramet.workspace.config.nodes import ConfigSyntaxError, Node, Position, read_nodes
from ramet.workspace.config.problems import ConfigError, ConfigReader, Problem, Setting

NAMES: Final = ("ramet.yaml", "ramet.yml", "ramet.toml", "ramet.json")
SUFFIXES: Final = (".yaml", ".yml", ".toml", ".json")
LARGEST: Final = 4 << 20


def load_config(path: str | os.PathLike[str], *, variables: Mapping[str, str] | None = None) -> Config:
    """Load a configuration file. `variables` fill `${NAME}` and `env:NAME`; default: the process environment."""
    config, problems = read_config(path, variables=variables)
    if problems:
        raise ConfigError(problems)
    assert config is not None
    return config


def read_config(
    path: str | os.PathLike[str], *, variables: Mapping[str, str] | None = None
) -> tuple[Config | None, list[Problem]]:
    """As `load_config`, but returns the problems instead of raising."""
    file = LocalPath(path).expanduser()
    if file.suffix not in SUFFIXES:
        raise RametError(
            "invalid_config", f"cannot read {file}: not a configuration file", f"name it with {', '.join(SUFFIXES)}"
        )
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise RametError(
            "not_found", f"{file}: {error.strerror}", "`ramet config init` writes one to begin with"
        ) from None
    return parse_config(raw, str(path), file.absolute(), variables)


def parse_config(
    raw: bytes, label: str, file: LocalPath, variables: Mapping[str, str] | None = None
) -> tuple[Config | None, list[Problem]]:
    """As `read_config`, of the bytes of a file; `label` names it in problems, paths are relative to its directory."""
    reading = ConfigReader(label, file.parent, os.environ if variables is None else variables)
    try:
        top = _nodes(raw, file.suffix)
    except ConfigSyntaxError as error:
        reading.wrong(error.place, "", error.message)
        return None, reading.problems
    config = config_of(top, reading)
    return config, sorted(reading.problems, key=lambda problem: (problem.line, problem.column))


def _nodes(raw: bytes, suffix: str) -> Node:
    if len(raw) > LARGEST:
        raise ConfigSyntaxError(f"the file is larger than {LARGEST} bytes", Position(1, 1))
    try:
        return read_nodes(raw.decode("utf-8-sig"), suffix)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigSyntaxError(
            "the file is not UTF-8", Position(line, error.start - raw.rfind(b"\n", 0, error.start))
        ) from None


__all__ = [
    "NAMES",
    "SUFFIXES",
    "Config",
    "ConfigError",
    "Problem",
    "Setting",
    "load_config",
    "parse_config",
    "read_config",
]
