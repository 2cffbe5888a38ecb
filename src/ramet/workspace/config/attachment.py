"""Attach a configuration file to a workspace of a store: whenever it is opened later, it has its mounts and rules.

- The store keeps the text of the file and its place, so secrets stay the references that they are in it.
- Paths stay relative to the directory of the file. A fork by a writer of the workspace keeps it.
- A past revision is opened with its rules and variables, and without its mounts: they are of now.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as LocalPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ramet.core.errors import RametError
from ramet.store.commit.secret_scan import kinds
from ramet.workspace.config import parse_config
from ramet.workspace.config.config import Config
from ramet.workspace.config.problems import ConfigError, Problem

if TYPE_CHECKING:
    from ramet.workspace.stored.store import Store


MOUNTS: Final = "ramet-mount.json"
"""Place of a configuration that is no file: the directories that `ramet mount --live` mounts."""


class Attachment(NamedTuple):
    """The file that a workspace was made with: its place, and its text at that time."""

    file: str
    text: str

    def read(self, variables: Mapping[str, str] | None = None) -> tuple[Config | None, list[Problem]]:
        """As `read_config`, of the text that was kept."""
        return parse_config(self.text.encode(), self.file, LocalPath(self.file), variables)

    @property
    def config(self) -> Config:
        """The configuration; raises `ConfigError`, for instance where the variable of a secret is not set."""
        config, problems = self.read()
        if problems:
            raise ConfigError(problems)
        assert config is not None
        return config

    @property
    def outdated(self) -> bool:
        """Whether the file is there, and says something else by now."""
        try:
            return LocalPath(self.file).read_text("utf-8-sig") != self.text
        except (OSError, UnicodeDecodeError):
            return False


def attach(store: Store, name: str, path: str | os.PathLike[str]) -> Config:
    """Make a workspace remember a configuration file, in place of an earlier one; return what it says."""
    file = LocalPath(path).expanduser().absolute()
    try:
        made = Attachment(str(file), file.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or "it is not UTF-8"
        raise RametError("not_found", f"{path}: {why}", "`ramet config init` writes one to begin with") from None
    config = made.config
    for number, line in enumerate(made.text.split("\n"), 1):
        if found := kinds(line.encode()):
            raise RametError(
                "secret_found", f"cannot keep {path}: line {number} seems to hold a secret ({', '.join(found)})",
                "Write secret:env:NAME or secret:file:PATH in its place.",
            )  # fmt: skip
    store[name]
    store.repository.check_access(name, "readwrite")
    store.repository.configs.set(name, {"file": made.file, "text": made.text})
    return config


def detach(store: Store, name: str) -> None:
    """Make a workspace forget its configuration file."""
    store[name]
    store.repository.check_access(name, "readwrite")
    store.repository.configs.clear(name)


def attach_directory(store: Store, name: str, prefix: str, folder: str, mode: str = "write") -> None:
    """Mount a directory of this machine in a workspace whenever it is opened."""
    mounts = _own_mounts(store, name)
    mounts[prefix] = {"resource": "disk", "mode": mode, "config": {"root": os.path.abspath(folder)}}
    _set_mounts(store, name, mounts)


def detach_directory(store: Store, name: str, prefix: str) -> bool:
    """Take such a mount away; False where there is none at this place."""
    found = attached(store, name)
    if found is None or found.file != MOUNTS:
        return False
    mounts = _own_mounts(store, name)
    if mounts.pop(prefix, None) is None:
        return False
    _set_mounts(store, name, mounts)
    return True


def _own_mounts(store: Store, name: str) -> dict[str, Any]:
    found = attached(store, name)
    if found is not None and found.file != MOUNTS:
        raise RametError(
            "unsupported", f"cannot mount a directory in {name}: it has the configuration {found.file}",
            f"Add the mount to the file, then run `ramet config use {name} {found.file}`.",
        )  # fmt: skip
    return {} if found is None else dict(json.loads(found.text)["mounts"])


def _set_mounts(store: Store, name: str, mounts: dict[str, Any]) -> None:
    store[name]
    store.repository.check_access(name, "readwrite")
    if mounts:
        store.repository.configs.set(name, {"file": MOUNTS, "text": json.dumps({"mounts": mounts}, indent=1)})
    else:
        store.repository.configs.clear(name)


def attached(store: Store, name: str) -> Attachment | None:
    """Return the configuration file of a workspace; None for one without, or that does not exist."""
    found = store.repository.configs.of(name) if name in store else None
    return None if found is None else Attachment(str(found["file"]), str(found["text"]))


def without_mounts(config: Config) -> Config:
    """Return the configuration for a past revision: live data does not replace what was saved."""
    commands = {name: command for name, command in config.commands.items() if command.mount is None}
    return replace(config, mounts=(), commands=commands)
