"""Command registry: built-in commands, user commands, plugins, and overrides by mount or suffix."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from ramet.commands.framework.table import COMMANDS
from ramet.core.paths import Path, encode
from ramet.core.proc import Exec, Proc

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

UserCommand = Callable[[Proc], object]
"""A user command: takes a Proc; may be async; returns an exit status, text or bytes to print, or None."""


@dataclass(frozen=True)
class CommandOverride:
    """An alternative implementation for operands on one mount, or with one file name suffix."""

    run: Exec
    mount: Path | None = None
    suffix: str | None = None

    def takes(self, proc: Proc, word: str) -> bool:
        if self.suffix is not None and not word.endswith(self.suffix):
            return False
        return self.mount is None or proc.fs.mount_of(proc.path(word)) == self.mount


class CommandRegistry(Mapping[str, Exec]):
    """Commands by name. A workspace has one; its sessions share it."""

    def __init__(self, base: Mapping[str, Exec] = COMMANDS) -> None:
        self._base = base
        self._own: dict[str, Exec] = {}
        self._overrides: dict[str, list[CommandOverride]] = {}

    def adopt(self, other: CommandRegistry) -> None:
        """Add the commands of another registry."""
        self._own.update(other._own)
        self._overrides.update({name: list(found) for name, found in other._overrides.items()})

    def __getitem__(self, name: str) -> Exec:
        found = self._own.get(name)
        if found is None:
            found = self._base.get(name)
        if found is None:
            found = self._own[name] = as_exec(_plugins()[name].load())
        if name in self._overrides:
            return _OverriddenCommand(found, self._overrides[name])
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._base if name not in self._own)

    def __len__(self) -> int:
        return len(set(self._own) | set(self._base))

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._base or name in _plugins()

    def unsure(self, name: str) -> bool:
        """Return whether looking up a name requires scanning installed packages."""
        return name not in self._own and name not in self._base and _METADATA not in sys.modules

    def add(self, name: str, command: UserCommand, *, mount: Path | None = None, suffix: str | None = None) -> None:
        run = as_exec(command)
        if mount is None and suffix is None:
            self._own[name] = run
        else:
            self._overrides.setdefault(name, []).append(CommandOverride(run, mount, suffix))


_METADATA: Final = "importlib.metadata"
"""Module that lists installed packages; slow to import."""


@cache
def _plugins() -> dict[str, EntryPoint]:
    """Return commands of installed packages, from the entry point group `ramet.commands`.

    Looked up when a name is neither built-in nor the user's, and imported when it is run.
    """
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return {entry.name: entry for entry in entry_points(group="ramet.commands")}


class _OverriddenCommand:
    """Runs an override when every file operand belongs to it, else the original command."""

    def __init__(self, ordinary: Exec, overrides: list[CommandOverride]) -> None:
        self._ordinary, self._overrides = ordinary, overrides

    async def __call__(self, proc: Proc) -> int:
        words = [word for word in proc.argv[1:] if word and not word.startswith("-")]
        for override in self._overrides:
            files = [word for word in words if override.takes(proc, word)]
            if files and (override.suffix is not None or len(files) == len(words)):
                return await override.run(proc)
        return await self._ordinary(proc)


def as_exec(command: UserCommand) -> Exec:
    """Wrap a callable as a command: its return value becomes output and exit status."""

    async def run(proc: Proc) -> int:
        answer = command(proc)
        if inspect.isawaitable(answer):
            answer = await _await(answer)
        if isinstance(answer, int):
            return int(answer)
        if isinstance(answer, str | bytes):
            data = encode(answer) if isinstance(answer, str) else answer
            await proc.emit(data if data.endswith(b"\n") or not data else data + b"\n")
        elif answer is not None:
            raise TypeError(f"a command returns an exit status, text, bytes or None, not {type(answer).__name__}")
        return 0

    return run


async def _await(answer: Awaitable[object]) -> object:
    return await answer
